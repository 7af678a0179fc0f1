"""Which notes and which open attempt a session that starts is told of, by its hook alone and by a server."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from nudge.core import limits
from nudge.history import store
from nudge.journal import store as journal
from nudge.journal.attempts import Plan
from nudge.notes import store as notes
from nudge.notes.fields import Draft
from nudge.notes.note import Lifetimes
from nudge.telling.start_rows import attempts_at_start, start_notes
from tests.unit.history.stored import NOW, empty, event

REPO = "github.com/acme/api"


class Attempts:
    """Open attempts of sessions that history knows."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def start(self, session: str, *, age: float = 0.0, namespace: str = REPO, ended: bool = False) -> int:
        at = NOW - age
        store.insert_event(self.connection, event("session_start", "startup", int(at), session_id=session))
        plan = Plan(f"goal of {session}", "`make test` passes", "the cache is cold")
        draft = Draft(title="", content="", namespace=namespace)
        attempt = journal.start(self.connection, plan, session, draft, at, parallel=True)
        if ended:
            store.insert_event(self.connection, event("session_end", "other", int(at) + 1, session_id=session))
        return attempt.id

    def told(self, session: str = "new", source: str = "startup", **seen: float) -> list[dict[str, Any]]:
        return attempts_at_start(self.connection, REPO, session, source, NOW + 2, seen.get)


@pytest.fixture
def attempts() -> Iterator[Attempts]:
    connection = empty()
    yield Attempts(connection)
    connection.close()


def test_the_latest_orphan_is_told_with_the_number_of_others(attempts: Attempts) -> None:
    """Sessions that ended, or were silent for half an hour; not those at work, nor those of another repo."""
    attempts.start("silent", age=limits.ORPHANED_AFTER)
    number = attempts.start("ended", ended=True)
    attempts.start("at work")
    attempts.start("elsewhere", namespace="github.com/acme/web", ended=True)
    [told] = attempts.told()
    assert (told["id"], told["goal"], told["prediction"]) == (number, "goal of ended", "`make test` passes")
    assert told["hypothesis"] == "the cache is cold"
    assert (told["is_own"], told["others"]) == (False, 1)


def test_a_server_may_have_seen_more_than_the_history(attempts: Attempts) -> None:
    """A session that only calls tools is at work too."""
    attempts.start("silent", age=limits.ORPHANED_AFTER)
    assert attempts.told() and not attempts.told(silent=NOW)


@pytest.mark.parametrize("source", ["resume", "compact"])
def test_a_session_that_goes_on_is_told_of_its_own(attempts: Attempts, source: str) -> None:
    """Before any orphan; a session that starts has none of its own."""
    number = attempts.start("new")
    orphan = attempts.start("ended", ended=True)
    [told] = attempts.told(source=source)
    assert (told["id"], told["is_own"]) == (number, True)
    assert [row["id"] for row in attempts.told(source="startup")] == [orphan]


def test_nothing_open_nothing_told(attempts: Attempts) -> None:
    """An open attempt of an active session is not told to others."""
    attempts.start("at work")
    assert attempts.told() == []


class Notes:
    """Notes of a repo, as a start asks for them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def add(self, title: str, *, kind: str = "decision", branch: str | None = None, **fields: Any) -> int:
        files = fields.pop("files", [])
        draft = Draft(
            **{"title": title, "content": "", "namespace": REPO, "kind": kind, **fields},
            metadata={"files": files} if files else {},
            origin={"branch": branch} if branch else {},
        )
        return notes.store(self.connection, draft, NOW, Lifetimes())[0].id

    def told(self, *files: str, branch: str | None = "main") -> list[str]:
        return [row["title"] for row in start_notes(self.connection, REPO, files, branch, NOW)]


@pytest.fixture
def stored() -> Iterator[Notes]:
    connection = empty()
    yield Notes(connection)
    connection.close()


def test_no_note_is_told_because_it_is_new(stored: Notes) -> None:
    """Of what was decided, a start tells what somebody pinned, in this repo or globally."""
    stored.add("State is in Redis", priority=10, files=["state.py"])
    stored.add("Ask before a release", tags=("pinned",), kind="note")
    stored.add("Answer in English", tags=("pinned",), namespace="global")
    stored.add("Use tabs", tags=("pinned",), namespace="github.com/acme/web")
    stored.add("Tabs were discussed", tags=("unpinned", 'a "pinned" one'))
    assert set(stored.told()) == {"Ask before a release", "Answer in English"}


def test_notes_about_the_files_of_open_work_are_told(stored: Notes) -> None:
    """Decisions, lessons, bugfixes and discoveries; by their files, and by what their text names; after pinned ones."""
    stored.add("Retries are capped", files=["src/api/retry.py"])
    stored.add("Floats in money.py lose a cent", kind="lesson")
    stored.add("A feature of retries", kind="feature", files=["src/api/retry.py"])
    stored.add("Elsewhere", files=["lib/retry.py"])
    stored.add("Ask before a release", tags=("pinned",), kind="note")
    assert stored.told("src/api/retry.py") == ["Ask before a release", "Retries are capped"]
    assert stored.told("src/money.py") == ["Ask before a release", "Floats in money.py lose a cent"]


def test_a_note_of_another_branch_is_not_told(stored: Notes) -> None:
    """What was made on a shared branch, or on one that is not known, holds everywhere."""
    for branch in ("main", "fix", None):
        stored.add(f"made on {branch}", tags=("pinned",), branch=branch)
    assert set(stored.told(branch="fix")) == {"made on main", "made on fix", "made on None"}
    assert set(stored.told(branch="main")) == {"made on main", "made on None"}
    assert len(stored.told(branch=None)) == 3


def test_a_superseded_note_is_not_told(stored: Notes) -> None:
    """What was resolved in favor of another note is wrong by now."""
    old, new = stored.add("State is in Redis", tags=("pinned",)), stored.add("State is in SQLite", tags=("pinned",))
    assert len(stored.told()) == 2
    notes.resolve(stored.connection, new, old, NOW, Lifetimes())
    assert stored.told() == ["State is in SQLite"]


def test_the_notes_of_a_start_are_found_by_an_index(stored: Notes) -> None:
    """A start must not read every note of a repo."""
    statements: list[str] = []
    stored.connection.set_trace_callback(statements.append)
    stored.told("src/api/retry.py")
    stored.connection.set_trace_callback(None)
    plans = [row[3] for sql in statements for row in stored.connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert any("notes_pinned" in plan for plan in plans)
    assert not any(plan.startswith(("SCAN notes", "SCAN note_files")) for plan in plans)


def test_an_attempt_of_another_branch_is_not_told(attempts: Attempts) -> None:
    """Its work is not here. A branch that is not known excludes nothing."""
    number = attempts.start("ended", ended=True)
    attempts.connection.execute("UPDATE notes SET origin = json_set(origin, '$.branch', 'fix')")

    def told(branch: str | None) -> list[int]:
        rows = attempts_at_start(attempts.connection, REPO, "new", "startup", NOW + 2, branch=branch)
        return [row["id"] for row in rows]

    assert told("fix") == told(None) == [number] and told("main") == []
