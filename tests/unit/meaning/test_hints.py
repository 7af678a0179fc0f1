"""Hints by their meaning: where no hint has the words, and never in place of one that has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nudge.core.call import Call
from nudge.core.context import Context
from nudge.core.errors import NotFound
from tests.unit.meaning.service import PROJECT, Service

GLOBAL = Call()
ELSEWHERE = Call(context=Context(repo="git:github.com/acme/web", project="github.com/acme/web"))


def fill(service: Service, **meta: Any) -> None:
    for component, key, value, reason in (
        ("fleet", "list", "bin/fleet ls", "every ship"),
        ("auth", "reset", "bin/reset", "a new password"),
        ("db", "purge", "make purge", "erase the old rows"),
    ):
        service("set_hint", call=GLOBAL, component=component, key=key, value=value, meta={"reason": reason, **meta})


def names(hits: list[dict[str, Any]]) -> list[str]:
    return [f"{hit['component']}/{hit['key']}" for hit in hits]


def test_a_query_finds_what_it_means(service: Service, model: Path) -> None:
    """The closest hints, with the cosine as the reason; without a model, nothing. A hint that has a word is found by
    that alone."""
    fill(service)
    assert service("query", text="vessel", context={})["hints"] == []
    service.use(model)
    found = service("query", text="vessel", context={})
    assert [(hit["key"], hit["by_meaning"]) for hit in found["hints"]] == [("list", True)]
    assert "means nearly the same" in found["hints"][0]["match_explain"]["reasons"][0]
    by_word = service("query", text="ship", context={})
    assert names(by_word["hints"]) == ["fleet/list"] and "by_meaning" not in by_word["hints"][0]
    assert service("query", text="vessel", component="db", context={})["hints"] == []
    assert service("query", text="zebra", context={})["hints"] == []


def test_a_hint_for_elsewhere_is_not_offered(service: Service, model: Path) -> None:
    service.use(model)
    fill(service, scope={"repo": f"git:{PROJECT}"})
    here = Call(context=Context(repo=f"git:{PROJECT}", project=PROJECT))
    assert names(service("query", text="vessel", call=here)["hints"]) == ["fleet/list"]
    assert service("query", text="vessel", call=ELSEWHERE)["hints"] == []


def test_a_missed_hint_names_what_is_close(service: Service, model: Path) -> None:
    """`get` of a name that nobody set names the hints that mean nearly the same."""
    fill(service)
    service.use(model)
    with pytest.raises(NotFound, match="close in meaning: db/purge") as missed:
        service("get_hint", component="rows", key="delete", context={})
    assert missed.value.data["near"] == ["db/purge"]
    with pytest.raises(NotFound) as other:
        service("get_hint", component="zebra", key="run", context={})
    assert "near" not in other.value.data


def test_the_value_of_a_secret_is_not_embedded(service: Service, model: Path) -> None:
    """A secret is found by its name and reason only."""
    service.use(model)
    meta = {"sensitivity": "secret"}
    service("set_hint", call=GLOBAL, component="x", key="y", value="vessel ship boat", meta=meta)
    assert service("query", text="boat vessel", tags=None, context={})["hints"] != []  # the words of the value
    assert names(service("query", text="ships boats vessel", context={})["hints"]) in ([], ["x/y"])
    assert not any("vessel" in text for text in service.app.meaning._texts if text.startswith("x y"))
