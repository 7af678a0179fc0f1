"""What was told, and what shows that it was used."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from nudge.history import store
from nudge.history.purge import Conditions, purge_observations
from nudge.learning.outcome import RecordedEvent
from nudge.learning.shell import parse_commands
from nudge.storage import migrations
from nudge.storage.sqlite import match_texts
from nudge.telling import ledger, report
from nudge.telling.ledger import Ledger, Line, Settled, StoredLine
from nudge.telling.use import COMMAND, FILE, IDENTITY, find_use, runs

if TYPE_CHECKING:
    from nudge.telling.use import Uses

NOW = 1_800_000_000.0
FAILED = "Exit code 1\nFAILED tests/test_io.py::test_links - AssertionError"
LINE = Line(
    "fact python3",
    "fact",
    "text",
    "known",
    ((COMMAND, "uv run pytest"), (IDENTITY, "#12"), (FILE, "/a.py"), (FILE, "./docs/b.md")),
)


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
        ({"type": "command", "content": "uv run pytest | tail", "metadata": {"error": FAILED}}, True),
        (
            {"type": "command", "content": "uv run pytest | tail", "metadata": {"error": "No module named pytest"}},
            False,
        ),
        ({"type": "command_error", "content": "uv run pytest", "metadata": {}}, False),
        ({"type": "command", "content": "nudge show 12"}, True),
        ({"type": "mcp_call", "content": "", "metadata": {"arguments": {"ids": "11 12"}}}, True),
        ({"type": "mcp_call", "content": "", "metadata": {"arguments": {"ids": "[12]"}}}, False),
        ({"type": "file_read", "content": "/a.py", "file_path": "/a.py"}, True),
        ({"type": "file_edit", "content": "/a.py", "file_path": "/a.py"}, False),
        ({"type": "file_read", "content": "/x/docs/b.md", "file_path": "/x/docs/b.md"}, True),
        ({"type": "file_read", "content": "/x/old_docs/b.md", "file_path": "/x/old_docs/b.md"}, False),
        ({"type": "user_prompt", "content": "uv run pytest"}, False),
    ],
)
def test_what_shows_that_a_line_was_used(event: dict[str, Any], is_use: bool) -> None:
    """Its command run, its id fetched, its file opened; once. A command that failed was no help, unless tests did."""
    assert (find_use(RecordedEvent(event, 1), LINE.uses) is not None) == is_use
    known = Ledger()
    known.add_lines("s1", [StoredLine(7, int(NOW), ledger.START, LINE.name, LINE.uses, is_open=True)])
    assert known.settle("s1", RecordedEvent(event, 1)) == Settled([7] if is_use else [])
    assert not known.settle("s1", RecordedEvent(event, 1))


@pytest.mark.parametrize(
    ("line", "told", "is_run"),
    [
        ("timeout 60 uv run pytest tests/a.py", "uv run pytest", True),
        ("cd web && npm ci && npm test -- --watch", "npm test", True),
        ("cd web && CI=1 npm test", "cd web && npm test", True),
        ("cd api && npm test", "cd web && npm test", False),
        ("npm test", "CI=1 npm test", False),
        ("CI=1 npm test", "CI=1 npm test", True),
        ("echo uv run pytest", "uv run pytest", False),
        ("grep -rn uv run pytest .", "uv run pytest", False),
        ('git commit -m "uv run pytest"', "uv run pytest", False),
        ("uv run pytest || true", "uv run pytest", False),
        ("pytest || uv run pytest", "uv run pytest", False),
        ("git log --oneline -5", "git log --oneline", True),
        ("anything", "", False),
    ],
)
def test_what_runs_a_command_that_was_told(line: str, told: str, is_run: bool) -> None:
    """The command itself, with its variables, alone or through another program; not its words in another command, and
    not where the line works whether it does or not."""
    assert runs(parse_commands(line), told) is is_run


def _stored(number: int, moment: str, timestamp: float = NOW, uses: Uses = LINE.uses) -> StoredLine:
    return StoredLine(number, int(timestamp), moment, f"line {number}", uses, is_open=True)


def test_one_act_is_one_use() -> None:
    """It counts for the line that was told last, and of the lines of one text for the first; an act that does what two
    lines say differently is a use of both."""
    known = Ledger()
    known.add_lines("s1", [_stored(1, ledger.START), _stored(2, ledger.START), _stored(3, ledger.PROMPT, NOW + 1)])
    known.add_lines("s1", [_stored(4, ledger.PROMPT, NOW + 1)])
    event = {"type": "command", "content": "uv run pytest", "timestamp": NOW + 2}
    assert known.settle("s1", RecordedEvent(event, 1)) == Settled([3], dict.fromkeys((1, 2, 4), ledger.REPEATED))
    assert not known.settle("s1", RecordedEvent(event, 1))
    known.add_lines("s2", [_stored(5, ledger.START), _stored(6, ledger.START, uses=((COMMAND, "ruff check"),))])
    both = {"type": "command", "content": "ruff check && uv run pytest", "timestamp": NOW}
    assert known.settle("s2", RecordedEvent(both, 1)) == Settled([5, 6])


def test_an_event_that_comes_late_may_be_older_than_the_line() -> None:
    """An event of the spool counts by its time: what was done before a line was told is not a use of it."""
    known = Ledger()
    known.add_lines("s1", [_stored(1, ledger.START, NOW), _stored(2, ledger.START, NOW)])
    event = {"type": "command", "content": "uv run pytest", "timestamp": NOW - 5}
    assert known.settle("s1", RecordedEvent(event, 1), is_late=True) == Settled(
        [], {1: ledger.BEFORE, 2: ledger.BEFORE}
    )
    known.add_lines("s1", [_stored(3, ledger.START, NOW)])
    assert known.settle("s1", RecordedEvent({**event, "timestamp": NOW + 5}, 2), is_late=True) == Settled([3])


@pytest.mark.parametrize(
    ("done", "used_at", "unused"), [(NOW - 5, None, ledger.BEFORE), (NOW + 5, NOW + 5, None), (None, None, None)]
)
def test_a_start_that_is_stored_late_counts_what_came_after_it(
    connection: sqlite3.Connection, done: float | None, used_at: float | None, unused: str | None
) -> None:
    """A hook without a server tells at once, and the spool brings the lines after other events of the session."""
    if done is not None:
        event = {"event_id": "e", "session_id": "s1", "type": "command", "content": "uv run pytest"}
        store.insert_event(connection, {**event, "timestamp": int(done)})
    (line,) = ledger.store(connection, "s1", "api", NOW, ledger.START, [LINE], is_shadow=False, is_late=True)
    assert connection.execute("SELECT used_at, unused FROM told").fetchall() == [(used_at, unused)]
    assert line.is_open is (done is None)
    assert ledger.load_session(connection, "s1") == [line]


def test_a_line_is_claimed_once_in_a_session_and_never_when_banned() -> None:
    """Another session is told it too, and so is another project; before the bans are read nobody is."""
    known = Ledger()
    assert known.claim("s1", "api", [LINE]) == []
    known.banned = set()
    assert known.claim("s1", "api", [LINE]) == [LINE] == known.claim("s2", "api", [LINE])
    assert known.claim("s1", "api", [LINE]) == []
    assert known.claim("s1", "api", [LINE], again=True) == [LINE], "a failure is answered although its start told of it"
    known.set_banned([("api", LINE.name)], never=True)
    assert known.claim("s3", "api", [LINE]) == []
    assert known.claim("s3", "shop", [LINE]) == [LINE] == known.claim("s4", None, [LINE])


def test_lines_told_often_and_never_used_are_known(connection: sqlite3.Connection) -> None:
    """After five starts in the project; one use is enough to stay, and shadow sessions do not count."""
    for number in range(5):
        assert ledger.never_used(connection, "api", [LINE.name]) == set()
        ledger.store(connection, f"x{number}", "api", NOW, ledger.START, [LINE], is_shadow=True)
        rows = ledger.store(connection, f"s{number}", "api", NOW + number, ledger.START, [LINE], is_shadow=False)
    assert ledger.never_used(connection, "api", [LINE.name]) == {LINE.name}
    assert ledger.never_used(connection, "shop", [LINE.name]) == set()
    ledger.settle(connection, Settled([row.id for row in rows]), NOW)
    assert ledger.never_used(connection, "api", [LINE.name]) == set()


@pytest.mark.parametrize(
    ("met", "expected"),
    [
        ((), {"met_again": 0, "spared": 1}),
        ((LINE,), {"met_again": 1, "spared": 0}),
        ((Line("fact python", "fact", "text", "known", LINE.uses),), {"met_again": 1, "spared": 0}),
        ((Line("fact ruff", "fact", "text", "known", ((COMMAND, "uvx ruff"),)),), {"met_again": 1, "spared": 1}),
        ((Line("test a::b", "test", "text", "known"),), {"met_again": 0, "spared": 1}),
    ],
)
def test_a_failure_that_was_met_is_not_spared(
    connection: sqlite3.Connection, met: tuple[Line, ...], expected: dict[str, int]
) -> None:
    """A fact of the start that was used spares its failure, unless the session met it, under whichever of the facts
    with that answer. A test that fails again is no failure that a fact could spare."""
    (told,) = ledger.store(connection, "s1", "api", NOW, ledger.START, [LINE], is_shadow=False)
    ledger.settle(connection, Settled([told.id]), NOW + 2)
    ledger.store(connection, "s1", "api", NOW + 1, ledger.FAILURE, met, is_shadow=False)
    (week,) = report.weeks(connection, None, (), NOW)
    assert {name: week[name] for name in expected} == expected


def test_a_ban_is_of_one_project(connection: sqlite3.Connection) -> None:
    """Of the one that is named, or of all in which the line was told; a line that was not told there is not banned."""
    for project in ("api", "shop"):
        ledger.store(connection, "s1", project, NOW, ledger.FAILURE, [LINE], is_shadow=False)
    assert ledger.ban(connection, "api", LINE.name, NOW) == [("api", LINE.name)]
    assert ledger.ban(connection, "web", LINE.name, NOW) == []
    assert ledger.load_banned(connection) == {("api", LINE.name)}
    assert ledger.unban(connection, "shop", LINE.name) == []
    both = [("api", LINE.name), ("shop", LINE.name)]
    assert ledger.ban(connection, None, LINE.name, NOW) == both == ledger.unban(connection, None, LINE.name)
    assert ledger.load_banned(connection) == set()


def test_bans_of_before_stay_in_force() -> None:
    """Where the line was told, and everywhere when nobody knows where that was."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(connection, migrations.MIGRATIONS[:5])
    for project in ("api", "shop"):
        connection.execute("INSERT INTO projects VALUES (?, ?)", (project, project))
        connection.execute(
            "INSERT INTO sessions (id, project, client, started_at) VALUES (?, ?, 'x', 0)", (f"in {project}", project)
        )
    connection.execute(
        "INSERT INTO told (session_id, timestamp, moment, kind, name, text, reason, uses, is_shadow)"
        " VALUES ('in api', 0, 'start', 'fact', 'fact make', '', '', '[]', 0)"
    )
    connection.execute("INSERT INTO banned_lines VALUES ('fact make', 0), ('m5', 0)")
    migrations.migrate(connection)
    assert ledger.load_banned(connection) == {("api", "fact make"), ("api", "m5"), ("shop", "m5")}
    assert connection.execute("SELECT project FROM told").fetchall() == [("api",)]


def test_the_ban_of_a_fact_under_the_name_of_a_hint_stays_in_force() -> None:
    """Earlier versions made a hint of a fact and told it under the hint's name; in its project only."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(connection, migrations.MIGRATIONS[:15])
    fact = "INSERT INTO facts VALUES (?, 'launcher', ?, 'pytest', '', ?, 's', 1, 2, 0, '{}')"
    for project, subject, answer in (
        *(("api", "pytest", "uv run pytest …"), ("api", "tox", "uv run tox")),
        ("shop", "pytest", "uv run pytest …"),
    ):
        connection.execute(fact, (project, subject, answer))
    told = (
        "INSERT INTO told (project, session_id, timestamp, moment, kind, name, text, reason, uses, is_shadow)"
        " VALUES (?, 's', 0, 'start', 'hint', 'api/test', '', '', ?, 0)"
    )
    uses = '[["command", "uv run pytest"], ["id", "api/test"]]'
    for project, used in (("api", uses), ("api", "damaged"), ("shop", uses)):
        connection.execute(told, (project, used))
    connection.execute("INSERT INTO banned_lines VALUES ('api', 'api/test', 7)")
    migrations.migrate(connection)
    assert ledger.load_banned(connection) == {("api", "api/test"), ("api", "fact pytest")}


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
        store.insert_event(connection, event)
        ledger.store_side(connection, name, True, timestamp)
    assert report.shadow_counts(connection, None, (), NOW - 200, is_shadow=True) == [(0, 1), (0, 1)]
    assert report.shadow_counts(connection, None, (), NOW - 50, is_shadow=True) == [(0, 1)]


def test_a_purge_deletes_what_was_told_of_it(connection: sqlite3.Connection) -> None:
    """A line that names a deleted observation goes with it."""
    event = {"event_id": "e", "session_id": "s1", "timestamp": int(NOW), "type": "command", "content": "make"}
    number = store.insert_event(connection, event)
    lines = [Line("fact make", "fact", f"works: make #{number}", ""), Line("m7", "note", "kept #999", "")]
    ledger.store(connection, "s2", None, NOW, ledger.FAILURE, lines, is_shadow=False)
    purge_observations(connection, Conditions(now=NOW, ids=[int(number or 0)]), NOW, match_texts)
    assert [row[0] for row in connection.execute("SELECT name FROM told")] == ["m7"]
