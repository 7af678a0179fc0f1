from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nudge.usecases.recall_hints import recall_hints

HINTS = {"api/test": ("docker", "tests"), "api/build": ("docker",), "web/lint": ("tests", "docker", "lint")}


def query(operation: str, params: Mapping[str, Any]) -> Any:
    """Hints with the one word that is asked for; the later ones score higher."""
    assert operation == "nudge.query" and params["context"] == {"os": "linux"}
    names = [name.split("/") for name, words in HINTS.items() if params["text"] in words]
    hits = [{"component": component, "key": key, "score": len(key)} for component, key in names]
    return {"hints": hits[: params["limit"]]}


def recalled(text: str, limit: int = 5) -> list[str]:
    return [f"{hit['component']}/{hit['key']}" for hit in recall_hints(query, text, {"os": "linux"}, limit)]


def test_the_most_words_come_first_then_the_score() -> None:
    """Each hint once."""
    assert recalled("lint the tests in docker") == ["web/lint", "api/test", "api/build"]
    assert recalled("docker") == ["api/build", "api/test", "web/lint"]


def test_words_that_say_nothing_are_not_asked_for() -> None:
    """Nothing is found where no word is left that a hint has."""
    assert recalled("where is the moon") == []


def test_the_limit() -> None:
    """Of all together, not of each word."""
    assert len(recalled("lint tests docker", 2)) == 2
