"""The tier `autonomous`: tags and contradictions are proposed for each note soon after it was stored, and groups when
nothing has been asked of the server for a while. All of it in the background, one question after the other: no call
waits for it, and it stores nothing but proposals."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from functools import partial

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.clock import boot_seconds
from nudge.core.errors import Conflict, NotFound, Unavailable
from nudge.core.visibility import Visibility
from nudge.core.words import content_words
from nudge.notes import ranking
from nudge.notes import store as notes
from nudge.notes.fields import ATTEMPT
from nudge.notes.note import Note
from nudge.notes.store import NoteFilter
from nudge.proposals import store
from nudge.proposals.answers import groups_in_answer
from nudge.proposals.disclosure import why_note_is_withheld
from nudge.proposals.ops import propose_contradiction, propose_tags
from nudge.proposals.questions import ask_for_groups

_RECALLED = 6  # notes among which a contradiction is looked for, beside those with similar titles
_READING = frozenset(("nudge.memory_recall", "nudge.memory_proposal_accept", "nudge.memory_proposal_undo"))
"""Operations that write, but no text of a note."""


class Proposer:
    """Proposes by itself where the session's tier says so. The server calls `look` once a second."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._has_new, self._may_group = True, True
        self._task: asyncio.Task[None] | None = None
        self._calls, self._quiet_since = app.calls, boot_seconds()
        self._grouped: dict[str, float] = {}
        """When the latest note of a namespace was changed, as it was when groups were looked for there."""
        if app.model.is_autonomous:
            app.on_write.add(self._note_write)

    def _note_write(self, operation: str) -> None:
        if operation.startswith("nudge.memory_") and operation not in _READING:
            self._has_new = True

    def look(self) -> None:
        """Begin what is due, unless something is under way or the model is left alone."""
        app = self._app
        if not app.model.is_autonomous:
            return
        if app.calls != self._calls:
            self._calls, self._quiet_since = app.calls, boot_seconds()
        if (self._task is not None and not self._task.done()) or not app.model.is_ready:
            return
        if self._has_new:
            self._has_new = False
            self._task = app.in_background(self._examine_new())
        elif self._may_group and boot_seconds() - self._quiet_since >= limits.QUIET_SECONDS:
            self._may_group = False
            self._task = app.in_background(self._find_groups())

    async def _examine_new(self) -> None:
        app = self._app
        since = app.now() - limits.EXAMINED_FOR
        find = partial(store.find_unexamined, since=since, now=app.now(), limit=limits.EXAMINED_AT_ONCE)
        ids = await app.read(find)
        try:
            for note_id in ids:
                await self._examine(note_id)
        except (Conflict, Unavailable):  # a note changed meanwhile, or the model gave no answer: again later
            self._has_new = True
            return
        self._may_group = self._may_group or bool(ids)
        self._has_new = self._has_new or len(ids) == limits.EXAMINED_AT_ONCE

    async def _examine(self, note_id: int) -> None:
        app, visible = self._app, self._visible()
        try:
            note, others = await app.read(partial(_with_others, note_id=note_id, now=app.now()))
        except NotFound:  # deleted meanwhile
            return
        allowed = await asyncio.to_thread(_without_withheld, [note, *others], visible)
        if note in allowed:
            await propose_tags(app, note, visible, Call())
            for other in allowed[1:]:
                await propose_contradiction(app, note, other, visible, Call())
        await app.write(Call(), partial(store.note_examined, note_id=note.id, updated_at=note.updated_at))

    async def _find_groups(self) -> None:
        """Look for groups in one namespace that changed since it was last looked at."""
        app = self._app
        found = await app.read(partial(store.namespaces_to_group, now=app.now(), least=limits.LEAST_PROPOSED_GROUP))
        due = [(namespace, changed) for namespace, changed in found if self._grouped.get(namespace) != changed]
        if not due:
            return
        namespace, changed = due[0]
        self._may_group = True
        try:
            await self._group(namespace)
        except Unavailable:
            return
        self._grouped[namespace] = changed

    async def _group(self, namespace: str) -> None:
        app, visible = self._app, self._visible()
        listed = await app.read(partial(_ungrouped, namespace=namespace, now=app.now()))
        allowed = await asyncio.to_thread(_without_withheld, listed, visible)
        members = allowed[: limits.GROUPED_TITLES]
        if len(members) < limits.LEAST_PROPOSED_GROUP:
            return
        question = ask_for_groups([note.draft.title for note in members])
        groups = await app.model.ask(question, lambda content: groups_in_answer(content, len(members)))
        for numbers, tag in groups:
            chosen = [members[number - 1] for number in numbers]
            await app.write(
                Call(), partial(_propose_group, chosen=chosen, tag=tag, model=app.model.name, now=app.now())
            )

    def _visible(self) -> Visibility:
        return Visibility(self._app.lifetime.settings.private_projects)


def _with_others(connection: sqlite3.Connection, note_id: int, now: float) -> tuple[Note, list[Note]]:
    """A note, and those that it may contradict: with a similar title, or about the same by their words."""
    note = notes.get(connection, note_id, now)
    ids = dict.fromkeys(ranking.similar_titles(connection, note, now))
    if content_words(note.draft.title):
        where = NoteFilter(namespaces=(note.draft.namespace,))
        ids |= dict.fromkeys(
            match.note.id for match in ranking.recall(connection, note.draft.title, where, _RECALLED, now)
        )
    new = [other for other in ids if other != note_id and not store.has_pair(connection, note_id, other)]
    found = notes.get_many(connection, new, now)
    others = [found[other] for other in new if other in found and found[other].draft.kind != ATTEMPT]
    return note, others[: limits.PROPOSED_PAIRS]


def _ungrouped(connection: sqlite3.Connection, namespace: str, now: float) -> list[Note]:
    ids = store.notes_to_group(connection, namespace, now, 2 * limits.GROUPED_TITLES)
    found = notes.get_many(connection, ids, now)
    return [found[note_id] for note_id in ids if note_id in found]


def _without_withheld(listed: Sequence[Note], visible: Visibility) -> list[Note]:
    """On a thread: a long text takes 50 ms."""
    return [note for note in listed if why_note_is_withheld(note, visible) is None]


def _propose_group(connection: sqlite3.Connection, chosen: list[Note], tag: str, model: str, now: float) -> None:
    """Propose a group of notes that are still as the model saw them."""
    current = notes.get_many(connection, [note.id for note in chosen], now)
    if all(note.id in current and current[note.id].draft.title == note.draft.title for note in chosen):
        store.propose(connection, store.GROUP, [note.id for note in chosen], {"tag": tag}, model, now)
