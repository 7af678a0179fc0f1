"""The check of the language model: nothing without one, one question that says nothing of the user, and what leaves
this machine."""

from __future__ import annotations

from typing import Any
from unittest import mock

from nudge.doctor.language_model import check_language_model
from nudge.doctor.model import OK, WARN
from nudge.settings.config import Settings
from tests.unit.doctor.conftest import Make, levels, only
from tests.unit.proposals.model_server import NAME, model_server, recorded, saying


def settings(url: str, **changed: Any) -> Settings:
    return Settings({"tier": "smart", "llm_url": url, "llm_model": NAME, **changed})


def test_without_a_model_nothing_is_said(make: Make) -> None:
    assert [*check_language_model(make())] == []


def test_it_answers_or_the_reason_is_said(make: Make) -> None:
    with model_server() as server:
        server.answer = lambda _: saying({"terms": ["storage"]})
        result = only(check_language_model(make(settings=settings(server.url))))
        assert result.level == OK and result.message.startswith(f"{NAME} answers in ")
        (request,) = server.requests
        assert "database" in request["messages"][1]["content"]
        server.answer = lambda _: recorded("ollama", "unknown_model")
        result = only(check_language_model(make(settings=settings(server.url))))
        assert result.level == WARN and "no model of this name" in result.message and result.fix


def test_half_a_setting_is_said(make: Make) -> None:
    result = only(check_language_model(make(settings=Settings({"tier": "autonomous"}))))
    assert result.level == WARN and "llm_url is not set" in result.message


def test_what_leaves_the_machine_is_said(make: Make) -> None:
    """Also when the model answers."""
    remote = settings("https://models.example/v1", llm_remote=True)
    with mock.patch("nudge.doctor.language_model.LanguageModel.ask", return_value=["storage"]):
        findings = [*check_language_model(make(settings=remote))]
    assert levels(findings) == [WARN, OK]
    assert "titles and texts of notes" in findings[0].message and "https://models.example/v1" in findings[0].message
