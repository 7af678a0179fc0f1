"""Which notes and which open attempt a session that starts is told of, by its hook alone and by a server."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from nudge import limits
from nudge.history import store
from nudge.memories import journal
from nudge.memories import store as notes
from nudge.memories.attempts import Plan
from nudge.memories.note import Draft, Lifetimes
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


def test_a_superseded_decision_is_not_told() -> None:
    """What was resolved in favor of another note is wrong by now."""
    connection = empty()
    for title in ("State is in Redis", "State is in SQLite"):
        draft = Draft(title=title, content="", namespace=REPO, kind="decision")
        notes.store(connection, draft, NOW, Lifetimes())
    assert len(start_notes(connection, REPO, NOW)) == 2
    notes.resolve(connection, 2, 1, NOW, Lifetimes())
    assert [note["title"] for note in start_notes(connection, REPO, NOW)] == ["State is in SQLite"]
    connection.close()
