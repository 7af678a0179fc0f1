"""What was told, and what shows that it was used."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from nudge.history import ledger, store
from nudge.history.ledger import COMMAND, FILE, IDENTITY, Ledger, Line
from nudge.history.purge import Conditions, purge_observations
from nudge.storage import migrations
from nudge.storage.sqlite import match_texts

NOW = 1_800_000_000.0
FAILED = "Exit code 1\nFAILED tests/test_io.py::test_links - AssertionError"
LINE = Line("fact python3", "fact", "text", "known", ((COMMAND, "uv run pytest"), (IDENTITY, "#12"), (FILE, "/a.py")))


@pytest.fixture
def connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(connection)
    return connection


@pytest.mark.parametrize(
    ("event", "is_use"),
    [
        ({"type": "command", "content": "cd x && uv run pytest -q"}, True),
        ({"type": "command", "content": "uv run pytester"}, False),
        (
            {"type": "command_error", "content": "uv run pytest", "metadata": {"error": "Exit code 4\nno conftest"}},
            False,
        ),
        ({"type": "command_error", "content": "uv run pytest", "metadata": {"error": FAILED}}, True),
        ({"type": "command", "content": "nudge show 12"}, True),
        ({"type": "mcp_call", "content": "", "metadata": {"arguments": {"ids": "11 12"}}}, True),
        ({"type": "mcp_call", "content": "", "metadata": {"arguments": {"ids": "[12]"}}}, False),
        ({"type": "file_read", "content": "/a.py", "file_path": "/a.py"}, True),
        ({"type": "file_edit", "content": "/a.py", "file_path": "/a.py"}, False),
        ({"type": "user_prompt", "content": "uv run pytest"}, False),
    ],
)
def test_what_shows_that_a_line_was_used(event: dict[str, Any], is_use: bool) -> None:
    """Its command run, its id fetched, its file opened; once. A command that failed was no help, unless tests did."""
    known = Ledger()
    known.add_rows("s1", [7], [LINE])
    assert known.take_used("s1", event) == ([7] if is_use else [])
    assert known.take_used("s1", event) == []


def test_a_line_is_claimed_once_in_a_session_and_never_when_banned() -> None:
    """Another session is told it too."""
    known = Ledger()
    assert known.claim("s1", [LINE]) == [LINE] == known.claim("s2", [LINE])
    assert known.claim("s1", [LINE]) == []
    assert known.claim("s1", [LINE], again=True) == [LINE], "a failure is answered although its start told of it"
    known.banned = {LINE.name}
    assert known.claim("s3", [LINE]) == []


def test_lines_told_often_and_never_used_are_known(connection: sqlite3.Connection) -> None:
    """After five starts; one use is enough to stay, and shadow sessions do not count."""
    for number in range(5):
        assert ledger.never_used(connection, [LINE.name]) == set()
        ledger.store(connection, f"x{number}", NOW, ledger.START, [LINE], is_shadow=True)
        rows = ledger.store(connection, f"s{number}", NOW + number, ledger.START, [LINE], is_shadow=False)
    assert ledger.never_used(connection, [LINE.name]) == {LINE.name}
    ledger.mark_used(connection, rows, NOW)
    assert ledger.never_used(connection, [LINE.name]) == set()


def test_the_side_of_a_session_is_always_the_same() -> None:
    """And about as often as the share says."""
    shadows = sum(ledger.is_shadow("shadow:20%", f"session {number}") for number in range(2_000))
    assert 300 < shadows < 500
    assert not any(ledger.is_shadow(setting, "s") for setting in ("1", "0", "shadow:0%"))
    assert ledger.is_shadow("shadow:100%", "s")


def test_a_stored_side_decides_while_there_is_a_comparison(connection: sqlite3.Connection) -> None:
    """In memory and from the table; without one the share does, and without a comparison every session is told."""
    kept = next(f"s{number}" for number in range(1_000) if not ledger.is_shadow("shadow:50%", f"s{number}"))
    ledger.store_side(connection, kept, True, NOW)
    ledger.store_side(connection, kept, False, NOW)
    known = Ledger()
    known.add_session(kept, [], is_shadow=ledger.load_side(connection, kept))
    for is_shadow in (known.is_shadow, lambda setting, name: ledger.is_shadow_in_history(connection, setting, name)):
        assert is_shadow("shadow:50%", kept) and is_shadow("shadow:1%", kept)
        assert not is_shadow("1", kept)
        assert is_shadow("shadow:100%", "new") and not is_shadow("shadow:0%", "new")


def test_sessions_that_may_have_lost_commands_are_not_compared(connection: sqlite3.Connection) -> None:
    """Those whose side is older than commands are kept."""
    for name, timestamp in (("old", NOW - 100), ("new", NOW)):
        event = {"event_id": name, "session_id": name, "type": "command", "content": "ls", "timestamp": int(timestamp)}
        store.record(connection, event)
        ledger.store_side(connection, name, True, timestamp)
    assert ledger.shadow_counts(connection, None, (), NOW - 200, is_shadow=True) == [(0, 1), (0, 1)]
    assert ledger.shadow_counts(connection, None, (), NOW - 50, is_shadow=True) == [(0, 1)]


def test_a_purge_deletes_what_was_told_of_it(connection: sqlite3.Connection) -> None:
    """A line that names a deleted observation goes with it."""
    event = {"event_id": "e", "session_id": "s1", "timestamp": int(NOW), "type": "command", "content": "make"}
    number = store.record(connection, event)
    lines = [Line("fact make", "fact", f"works: make #{number}", ""), Line("m7", "note", "kept #999", "")]
    ledger.store(connection, "s2", NOW, ledger.FAILURE, lines, is_shadow=False)
    purge_observations(connection, Conditions(now=NOW, ids=[int(number or 0)]), NOW, match_texts)
    assert [row[0] for row in connection.execute("SELECT name FROM told")] == ["m7"]
