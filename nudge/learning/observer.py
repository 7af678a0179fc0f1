"""Learning from recorded events: the facts in memory take in the outcome of each command and answer a failure that is
known; what changed is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from nudge.core.app import App
from nudge.core.errors import NudgeError
from nudge.history.observations import FILE_CHANGES
from nudge.learning import store
from nudge.learning.broken_tests import BrokenTest
from nudge.learning.fact import Fact
from nudge.learning.facts import Changes, Facts
from nudge.learning.outcome import RecordedEvent
from nudge.learning.unanswered import Unanswered
from nudge.storage.database import Database
from nudge.telling.ledger import Line
from nudge.telling.use import IDENTITY

_LEARNED_AT_ONCE = 4  # spooled events; a hook waits for so many at most


async def load_facts(app: App, database: Database) -> Facts:
    """The facts in memory; the first call reads them from the database."""
    if app.facts is None:
        loaded = await database.read(store.load)
        if app.facts is None:  # another call may have loaded them meanwhile
            app.facts = loaded
            await app.in_learning_thread(loaded.prepare)
    return app.facts


class LearnResult(NamedTuple):
    """What the outcome of a command says."""

    line: Line | None
    """About its failure, if that is known and the session was not told of it yet."""
    unanswered: Unanswered | None
    """Its failure, if nothing is known about it."""
    changes: Changes
    """To be passed to `store_changes`."""


async def learn(app: App, all_facts: Facts, recorded: RecordedEvent) -> LearnResult:
    """Update the facts in memory with the outcome of a command."""
    now = app.now()

    def observe() -> LearnResult:
        outcome, event, unanswered = recorded.outcome, recorded.event, None
        if outcome is not None and event.get("type") == "command_error":
            unanswered = all_facts.unanswered(str(event["session_id"]), outcome)
        answer, changes = _observe(all_facts, recorded, now, can_tell=True)
        return LearnResult(_line_about(answer, now), unanswered if answer is None else None, changes)

    return await app.in_learning_thread(observe)


async def learn_all(app: App, all_facts: Facts, recorded: Sequence[RecordedEvent]) -> list[Changes]:
    """Update the facts in memory with events that no hook waits for, in small portions: a hook that does wait gets its
    answer between two of them."""
    now = app.now()
    taught: list[Changes] = []
    for start in range(0, len(recorded), _LEARNED_AT_ONCE):
        portion = recorded[start : start + _LEARNED_AT_ONCE]
        taught += await app.in_learning_thread(partial(_observe_all, all_facts, portion, now))
    return taught


def _observe_all(all_facts: Facts, recorded: Iterable[RecordedEvent], now: float) -> list[Changes]:
    return [_observe(all_facts, one, now, can_tell=False)[1] for one in recorded]


def _observe(
    all_facts: Facts, recorded: RecordedEvent, now: float, *, can_tell: bool
) -> tuple[Fact | BrokenTest | None, Changes]:
    event, outcome = recorded.event, recorded.outcome
    if event.get("type") in FILE_CHANGES and isinstance(path := event.get("file_path"), str):
        all_facts.note_edit(str(event["session_id"]), path)
    project = event.get("project")
    if outcome is None or not isinstance(project, str) or not project:
        return None, Changes()
    happened_at = min(float(event["timestamp"]), now)  # an event from the spool may be old
    session = str(event["session_id"])
    return all_facts.observe(project.casefold(), session, outcome, happened_at, now, can_tell=can_tell)


def _line_about(answer: Fact | BrokenTest | None, now: float) -> Line | None:
    if answer is None or not (text := answer.text(now)):
        return None
    if isinstance(answer, Fact):
        return Line(answer.name, "fact", text, "this failure is known", answer.uses)
    return Line(f"test {answer.id}", "test", text, "this test failed before", ((IDENTITY, f"#{answer.latest[1]}"),))


async def store_changes(database: Database, taught: Sequence[Changes]) -> None:
    """Store what events taught. A write that fails is not an error: the facts stay in memory until the server ends."""
    changed = [changes for changes in taught if changes]
    if not changed:
        return

    def write(connection: sqlite3.Connection) -> None:
        for changes in changed:
            store.store(connection, changes)

    with suppress(NudgeError):
        await database.write(write)
