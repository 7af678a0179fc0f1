"""No credential, and nothing marked private, survives in anything that is recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.context import Context
from nudge.core.text import to_unicode
from nudge.history.extract import locate
from nudge.history.redact import redact_ends, redact_event, redact_start, redact_text, remove_private
from nudge.security.secrets import find_secret
from nudge.storage import spool
from tests.unit.history.payloads import bash, extract, failure, payload, tool
from tests.unit.security.hostile_corpus import HOSTILE
from tests.unit.security.rule_samples import SAMPLED, SAMPLES

NOW = 1_800_000_000.0

# A rule that judges a whole text has nothing to say about a part of one.
ANYWHERE = sorted({text for rule, samples in SAMPLED if not rule.whole for text in samples.must_match})
ALONE = sorted({*ANYWHERE, *(text for samples in SAMPLES for text in samples.must_match), *HOSTILE})


def places(secret: str) -> list[dict[str, Any]]:
    """Payloads that hold it wherever a client could put it."""
    return [
        bash(f"run this: {secret}"),
        bash("ls", stdout=secret),
        tool("Bash", {"command": "ls", "description": secret}, {"stdout": ""}),
        failure("Bash", {"command": "ls"}, f"Exit code 1\n{secret}"),
        failure("Bash", {"command": "ls"}, "noise " * 5_000 + secret),
        tool("shell", {"command": "x"}, {"exit_code": 1, "stderr": f"it says: {secret}"}),
        bash("git commit -m x", stdout=f"[main abc1234] use {secret}"),
        tool("Read", {"file_path": f"/p/{secret}"}),
        tool("Grep", {"pattern": f"find {secret}", "path": f"/p/{secret}"}),
        tool("Task", {"description": secret, "prompt": f"use {secret}", "subagent_type": secret}),
        tool("WebFetch", {"url": f"https://x.dev/?q={secret}"}),
        tool("mcp__srv__call", {"value": f"with {secret}", f"name {secret}": 1}),
        tool("Other", {"value": f"with {secret}"}),
        failure("mcp__srv__call", {}, f"denied: {secret}"),
        payload("UserPromptSubmit", prompt=f"please use {secret} for it"),
        payload("SessionStart", source=secret, model=secret),
        bash("ls", cwd=f"/p/{secret}", agent_id=f"x {secret}", prompt_id=f"x {secret}", tool_name_extra=secret),
    ]


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text in an event, with the name it stands under; names are texts too."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield "", str(key)
            yield from leaves(part, str(key))
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part, name)
    elif isinstance(value, str):
        yield name, value


def found_in(event: dict[str, Any]) -> list[str]:
    ids = ("event_id", "session_id")
    return [f"{name}: {text}" for name, text in leaves(event) if name not in ids and find_secret(text)]


@pytest.mark.parametrize("secret", ANYWHERE)
def test_no_credential_survives_in_any_place(secret: str) -> None:
    """Commands, errors, paths, prompts, names and values: no leaf of any event holds anything the guard would
    refuse."""
    for row in places(secret):
        event = extract(row, now=NOW)
        assert event is not None
        assert found_in(locate(event, Context(repo=secret, project=secret))) == []
        assert secret not in json.dumps(event, ensure_ascii=False)


def test_no_credential_survives_on_its_own() -> None:
    """A value that is nothing but a credential needs no words around it to be one."""
    for secret in ALONE:
        asked = tool("WebSearch", {"query": secret})
        for row in (payload("UserPromptSubmit", prompt=secret), bash(secret), tool("mcp__s__t", {"v": secret}), asked):
            event = extract(row, now=NOW)
            assert event is not None
            assert found_in(event) == [], secret


def test_the_spool_file_is_clean(tmp_path: Path) -> None:
    """The bytes on disk, not only what is read back."""
    for secret in ANYWHERE:
        for row in places(secret)[:4]:
            event = extract(row, now=NOW)
            assert event is not None
            spool.write(str(tmp_path), event)
    kept = [Path(path).read_text(encoding="utf-8") for path in spool.pending(str(tmp_path))]
    assert len(kept) == 4 * len(ANYWHERE)
    assert not [text for text in kept for secret in ANYWHERE if json.dumps(secret, ensure_ascii=False)[1:-1] in text]


def test_a_short_value_is_a_credential_by_its_name() -> None:
    """In an argument the name stands apart from the value."""
    event = extract(
        tool("mcp__s__login", {"user": "bob", "password": "hunter" + "22", "api_key": "k3yb0ardc4t"}),
        now=NOW,
    )
    assert event is not None
    assert event["metadata"]["arguments"] == {
        "user": "bob",
        "password": "[REDACTED:password]",
        "api_key": "[REDACTED:key]",
    }
    assert "hunter" not in event["content"] and "k3yb" not in event["content"]


def test_a_credential_at_the_cut_is_not_halved() -> None:
    """Text is redacted before it is cut: the first half of a token would not be known for one."""
    token = "gh" + "p_" + "a1B2c3D4e5" * 4
    for before in range(460, 500):
        assert "a1B2" not in redact_start("x " * (before // 2) + token, 500)
    assert "a1B2" not in redact_ends("x " * 990 + token + " y" * 990, 2_000)
    assert "a1B2" not in redact_start("x " * (limits.REDACTED_AT_ONCE // 2 - 10) + token, 10**6)


def test_ids_stay_what_they_are() -> None:
    """They look like credentials and are none; but a credential in the place of an id goes."""
    ids = {
        "event_id": "9fceb02d0ae598e95dc970b74767f193",
        "session_id": "x8Kd0LpQz7VbN3mRtY6wHs2JcF9gAeUi",
        "prompt_id": None,
    }
    assert redact_event(ids) == ids
    assert redact_event({"agent_id": "gh" + "p_" + "a1B2c3D4e5" * 4}) == {"agent_id": "[REDACTED:github-token]"}


def test_other_values_are_not_touched() -> None:
    """Numbers, nothing, truth and lists keep their form, ordinary text its bytes."""
    event = {
        "content": "make test\n",
        "metadata": {"exit_code": 0, "list": ["a", 1, None], "flag": True, "deep": {"x": 1.5}},
        "repo": None,
    }
    assert redact_event(event) == event


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <private>b</private> c", "a  c"),
        ("<private>b</private>", ""),
        ("a <private>b", "a "),
        ("a <PRIVATE>b</Private> c", "a  c"),
        ("echo a < private > b", "echo a < private > b"),
        ("sort <private >public", "sort <private >public"),
        ("<private>a<private>b</private>c</private>d", "d"),
        ("<private>a</private>b<private>c</private>d", "bd"),
        ("a</private> b", "a b"),
        ("a <privateer> b", "a <privateer> b"),
        ("private < b", "private < b"),
        ("<private\n>b</private>c", "<private\n>bc"),
        ('a <private reason="x">b</private> c', "a  c"),
        ("a <Private\n reason='x y'\n as=z>b</private> c", "a  c"),
        ("cat < private > public", "cat < private > public"),
        ("sort <private -u >public", "sort <private -u >public"),
        ("sort <private 2>errors", "sort <private 2>errors"),
    ],
)
def test_what_is_private_leaves_nothing(text: str, kept: str) -> None:
    """Nested, unclosed, in any case of letters."""
    assert remove_private(text) == kept


@pytest.mark.parametrize(
    "told",
    [
        payload("UserPromptSubmit", prompt="do <private>PRIV</private> it"),
        bash("echo <private>PRIV</private>"),
        failure("Bash", {"command": "x"}, "a <private>" + "PRIV " * 9_000 + "</private> b"),
        failure("Bash", {"command": "x"}, "word " * 9_000 + "<private>" + "PRIV " * 9_000),
        tool("mcp__s__t", {"v": "<private>PRIV", "<private>PRIV</private>": 1}),
        tool("Read", {"file_path": "/p/<private>PRIV</private>"}),
        tool("Task", {"prompt": "x" * 400 + "<private>" + "PRIV" * 400}),
    ],
)
def test_private_text_is_not_recorded(told: dict[str, Any]) -> None:
    """In every field, and also where its beginning is cut off."""
    assert "PRIV" not in json.dumps(extract(told, now=NOW))


def test_text_that_no_disk_can_hold_is_mended() -> None:
    """Half of a surrogate pair and NUL."""
    assert to_unicode("a\ud800b\0c") == "a?bc"
    assert to_unicode("a\0b") == "ab"
    assert redact_text("grün 😀") == "grün 😀"
    assert extract(bash("echo \ud83d"), now=NOW)["content"] == "echo ?"  # type: ignore[index]


def test_both_ends_of_a_long_text() -> None:
    """Within the limit, whichever way it is cut."""
    for size in (0, 10, 2_000, 2_001, 20_000, 200_000):
        text = redact_ends("ab " * (size // 3), 2_000)
        assert len(text) <= 2_000
        assert ("[...]" in text) == (size > 2_001)


@pytest.mark.parametrize("text", [" " * 40_000 + "boom", "boom" + "\n" * 40_000, " " * 40_000, ""])
def test_blanks_at_an_end_of_a_long_text(text: str) -> None:
    """An error may end in a screenful of nothing: what it says is kept, and nothing fails."""
    assert redact_ends(text, 2_000) == text.strip()
    assert redact_start(text, 500) in ("", "boom")
