from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nudge.cli import output
from nudge.core.errors import Conflict, Invalid, NudgeError, QuotaExceeded, SecretRejected, StorageFailed
from nudge.core.text import escape
from nudge.hints.admission import SecretFinding

PEN = output.Styler(color=False, unicode=True, width=40)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_survives(data: object) -> None:
    """JSON output is the object itself, without a character that could steer a terminal."""
    for indent in (None, 2):
        text = output.encode_json(data, indent)
        assert json.loads(text) == data
        assert text.isascii() or escape(text, keep_lines=True) == text


@given(st.text(), st.integers(0, 60))
def test_clipped_text_fits(text: str, taken: int) -> None:
    """A clipped text never runs over the terminal's edge, down to the least column that is still of use."""
    assert output.columns(PEN.clip(text, taken)) <= max(40 - taken, 20)


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        (None, "everywhere"),
        ({}, "everywhere"),
        ({"repo": "git:org/x"}, "repo git:org/x"),
        ({"repo": ["git:a/b", "git:c/d"], "branch": ["dev"]}, "repo git:a/b or git:c/d, branch dev"),
        ({"env_required": ["CI"], "env_match": {"MODE": ["a", "b"], "T": "1"}}, "env CI set, env MODE=a or b, env T=1"),
    ],
)
def test_scope_text(scope: dict[str, object] | None, words: str) -> None:
    """A scope reads as its conditions."""
    assert output.scope_text(scope) == words


def test_columns() -> None:
    """An ideograph is two columns wide, an accent none."""
    assert [output.columns(text) for text in ("abc", "宽", "e\u0301")] == [3, 2, 1]


@pytest.mark.parametrize(
    ("verb", "error", "text"),
    [
        ("set", Invalid("must be 1 to 10", field="meta.priority"), "--priority: must be 1 to 10"),
        ("set", Invalid("is too long", field="meta.tags[3]"), "--tags: is too long"),
        ("set", Invalid("is too long", field="meta.scope.env_match.A[0]"), "--scope-env-match: is too long"),
        (
            "set",
            SecretRejected(SecretFinding("value", "x").phrase(), field="value"),
            "value: looks like a secret (x); to keep it anyway, add --allow-secret\n",
        ),
        (
            "set",
            SecretRejected("looks like a secret (x); another version's advice", field="value.cmd"),
            "value.cmd: looks like a secret (x); to keep it anyway, add --allow-secret\n",
        ),
        (
            "set",
            SecretRejected(SecretFinding("key", "x").phrase(), field="key"),
            "key: looks like a secret (x); only the value may hold one\n",
        ),
        ("search", StorageFailed("the database failed: malformed"), "failed: malformed; see: nudge doctor\n"),
        ("search", StorageFailed("the database is busy; try again"), "the database is busy; try again\n"),
        ("connect", StorageFailed("cannot write x: disk full"), "cannot write x: disk full\n"),
        ("export", QuotaExceeded("too many; wait", limit="hints of an import", max=8), "too many; wait\n"),
        (
            "set",
            QuotaExceeded("it is full", limit="hints", max=8),
            "full; make room with: nudge delete COMPONENT KEY\n",
        ),
        ("set", Invalid("such as PT2H or P1DT12H", field="meta.ttl"), "--ttl: such as 30d, 12h, PT2H or P1DT12H"),
        ("import", Invalid("such as PT2H or P1DT12H", field="a.meta.ttl"), "a.meta.ttl: such as PT2H or P1DT12H"),
        ("search", Invalid("must be one of x", field="obs_type"), "--type: must be one of x"),
        (
            "note resolve",
            Invalid("must be another note than winner_id", field="loser_id"),
            "WRONG: must be another note than RIGHT",
        ),
        ("journal start", Conflict("m3 is open; resolve it first, or say parallel: true"), "or add --parallel\n"),
    ],
)
def test_an_error_names_what_to_type(
    capsys: pytest.CaptureFixture[str], verb: str, error: NudgeError, text: str
) -> None:
    """A message at the terminal has the options and arguments of the command line; --json has the fields."""
    assert output.report_error(error, verb=verb, as_json=False) == 3
    assert text in capsys.readouterr().err
    output.report_error(error, verb=verb, as_json=True)
    assert json.loads(capsys.readouterr().out)["error"] == error.to_json()
