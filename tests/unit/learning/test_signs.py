"""The signs of all families are looked for in one pass."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nudge.learning import failures
from nudge.learning.own_work import FAILED_TESTS, OWN_WORK_SIGNS
from nudge.security.patterns import AnyOf

DATA = Path(__file__).parents[2] / "bench" / "data"


def outputs() -> Iterator[str]:
    for name in ("failure_pairs", "dev_failure_pairs"):
        for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines():
            for session in json.loads(line)["sessions"]:
                yield from (step["output"] for step in session if step.get("exit"))


def test_the_set_finds_what_the_patterns_find() -> None:
    """Both engines agree on every output of a failed command in the benchmarks."""
    texts = [*outputs(), "modul\u00e9 \u201cnot found\u201d", "", "\n\n"]
    assert len(texts) > 200
    for text in texts:
        expected = [place for place, (_, sign) in enumerate(failures._SIGNS) if re.search(sign, text, re.MULTILINE)]
        assert failures._SIGN_SET.find(text) == expected


@pytest.mark.parametrize("signs", [OWN_WORK_SIGNS, FAILED_TESTS, failures._CAUSE])
def test_the_automaton_finds_what_the_expression_finds(signs: AnyOf) -> None:
    """In every output of a failed command in the benchmarks, and in each of its lines."""
    expression = re.compile("|".join(signs._patterns), re.MULTILINE)
    texts = [text for output in outputs() for text in (output, *output.splitlines())]
    assert any(map(signs.search, texts))
    assert [text for text in texts if signs.search(text) != (expression.search(text) is not None)] == []


@pytest.mark.parametrize("text", ["x" * 4_000, "error: " * 600, "\x00\x1b[31m" * 500, "not found: \udcff"])
def test_odd_texts_have_no_family_or_one(text: str) -> None:
    """Whatever a tool prints."""
    assert failures.diagnose(text, 1) is not None
