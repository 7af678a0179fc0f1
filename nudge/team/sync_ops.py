"""What runs in the background while a team is joined: takes changes into the outbox, sends them, receives those of
others. Nobody waits for it: a server that is slow or away costs nothing but freshness.

A round looks at the server's clock first, then at what its log has of this store: less than was sent means that the
database was restored, other rows mean that this store is a copy. In both cases the store goes on under a new origin.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sqlite3
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from nudge.core import limits, paths
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.clock import boot_seconds
from nudge.core.errors import HandingOver, NudgeError, QuotaExceeded
from nudge.core.visibility import Visibility
from nudge.hints.model import Change
from nudge.notes.note import Lifetimes
from nudge.team import hints_ops, store
from nudge.team.address import Address
from nudge.team.conflicts_ops import reasons_of
from nudge.team.entry import HINT, NOTE, Entry, Name
from nudge.team.notes_ops import Notes
from nudge.team.server_ops import Hello, Server, TeamProblem, connect
from nudge.team.server_sql import FORMAT
from nudge.team.store import SharedRepo, Team
from nudge.team.versions import Known, StoreTime, clock_problem

T = TypeVar("T")
Connect = Callable[[Address, str | None], Awaitable[Server]]

_log = logging.getLogger(__name__)
_NEWER = "the shared log is of a newer format; upgrade Nudge"
_NOT_LET_IN = "this role is not let into it; an administrator adds it to nudge_team.repos"
_PRIVATE = "it is a private repo"
_FEWEST_ROWS = 20


def new_origin() -> str:
    return str(uuid.uuid4())


def home_of(database: str) -> str:
    """Say where a database is; a copy of it is on another machine, or is another file."""
    found = os.stat(database)
    return f"{paths.machine_tag()}:{found.st_dev}:{found.st_ino}"


@dataclass(slots=True)
class Report:
    """What the last round came to, for `nudge team status`."""

    problem: str | None = None
    repos: dict[str, str] = field(default_factory=dict)
    """Problems of single repos."""
    role: str | None = None
    read_only: bool = False
    rounds: int = 0


class TeamSync:
    """The background task. `password` is kept in memory only."""

    def __init__(self, app: App, password: str | None = None, connect: Connect = connect) -> None:
        self._app, self._connect = app, connect
        self.password = password
        self.report = Report()
        self._server: Server | None = None
        self._url = ""
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._rows = limits.TEAM_ROWS
        self._seen_calls, self._seen_at = app.calls, boot_seconds()

    def start(self) -> None:
        self._app.on_write.add(self._note_write)
        self._task = self._app.in_background(self.run())

    async def stop(self) -> None:
        self._app.on_write.discard(self._note_write)
        if self._task is not None:
            self._task.cancel()
        await self._disconnect()

    def wake(self) -> None:
        """Look now, also when the last look failed."""
        self._failures = 0
        self._wake.set()

    async def explain_conflicts(self, items: Sequence[dict[str, Any]]) -> None:
        """Say of explained hints and notes which versions of them lost."""
        reasons = await self._app.read(lambda connection: reasons_of(connection, items))
        for item, more in zip(items, reasons, strict=True):
            if more:
                item["matches"]["reasons"] = [*item["matches"].get("reasons", ()), *more]

    def _note_write(self, operation: str) -> None:
        if not self._failures and not operation.startswith("nudge.record"):
            self._wake.set()

    async def run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.round()
            except HandingOver:
                return
            except Exception as error:  # whatever the server sent must not end the task
                await self._fail(error)
            else:
                self._failures = 0
            await self._pause()

    async def _fail(self, error: Exception) -> None:
        known = error.message if isinstance(error, NudgeError) else f"it failed ({type(error).__name__})"
        if known != self.report.problem:
            _log.warning("team: %s", known)
        self.report.problem = known
        self._failures += 1
        await self._disconnect()

    async def _pause(self) -> None:
        """Wait for a change, a notification or the next poll."""
        if self._is_idle():
            await self._disconnect()
        seconds = limits.TEAM_IDLE_POLL if self._server is None else limits.TEAM_POLL
        if self._failures:
            seconds = min(limits.TEAM_RETRY * 2 ** (self._failures - 1), limits.TEAM_RETRY_MOST)
        try:
            async with asyncio.timeout(seconds * random.uniform(0.8, 1.2)):  # a team must not come all at once
                await self._wake.wait()
            await asyncio.sleep(limits.TEAM_BURST)
        except TimeoutError:
            pass

    def _is_idle(self) -> bool:
        if self._app.calls != self._seen_calls:
            self._seen_calls, self._seen_at = self._app.calls, boot_seconds()
        return boot_seconds() - self._seen_at > limits.TEAM_IDLE

    # One round

    async def round(self) -> None:
        """Exchange what there is. Raises NudgeError for what prevents it."""
        team, shared = await self._app.read(lambda connection: (store.read_team(connection), store.repos(connection)))
        if team is None:
            return
        server = await self._connected(team, shared)
        hello = await server.hello()
        self.report.role, self.report.read_only = hello.role, hello.read_only
        if hello.format > FORMAT:
            raise TeamProblem(_NEWER)
        if (problem := clock_problem(time.time() - hello.now)) is not None:
            raise TeamProblem(problem)
        repos, self.report.repos = await self._allowed(server, shared)
        exchange = Exchange(self._app, server, hello, team, repos, self._rows)
        try:
            await exchange.run()
        except TeamProblem as slow:
            self._rows = max(exchange.rows // 2, _FEWEST_ROWS) if slow.is_slow else self._rows
            raise
        self._rows = min(self._rows * 2, limits.TEAM_ROWS)
        self.report.problem = exchange.problem
        self.report.rounds += 1

    async def _connected(self, team: Team, shared: Sequence[SharedRepo]) -> Server:
        names = " ".join(repo.project for repo in shared)
        if self._server is not None and self._url != f"{team.url} {names}":
            await self._disconnect()
        if self._server is None:
            address, _ = Address.parse(team.url)
            self._server = await self._connect(address, self.password)
            self._url = f"{team.url} {names}"
            await self._server.listen([repo.project for repo in shared], self._wake.set)
        return self._server

    async def _disconnect(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            await server.close()

    async def _allowed(
        self, server: Server, shared: Sequence[SharedRepo]
    ) -> tuple[dict[str, SharedRepo], dict[str, str]]:
        """The repos that may be exchanged, and why the others may not."""
        visible = Visibility(self._app.lifetime.settings.private_projects)
        problems = {repo.project: _PRIVATE for repo in shared if visible.is_private(repo.project)}
        others = [repo for repo in shared if repo.project not in problems]
        readable = await server.readable([repo.project for repo in others]) if others else set()
        problems.update({repo.project: _NOT_LET_IN for repo in others if repo.project not in readable})
        return {repo.project: repo for repo in others if repo.project in readable}, problems


class Exchange:
    """One round with a server that answered."""

    def __init__(
        self, app: App, server: Server, hello: Hello, team: Team, repos: Mapping[str, SharedRepo], rows: int
    ) -> None:
        self._app, self._server, self._hello, self._team, self._repos = app, server, hello, team, repos
        self.rows = rows
        self.problem: str | None = None
        self._heads: dict[tuple[str, str], int] = {}

    async def run(self) -> None:
        if self._repos:
            await self._read_heads()
            await self._settle_origin()
            await self._settle_lifetime()
            await self._note_heads()
            await self._gather_hints()
            await self._take_changes()
            await self._push()
            await self._pull()
        await self._note_contact()

    async def _write(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run `work` of a connection and these arguments in a transaction."""
        return await self._app.write(Call(), lambda connection: work(connection, *arguments))

    async def _read(self, work: Callable[..., T], *arguments: Any) -> T:
        return await self._app.read(lambda connection: work(connection, *arguments))

    def _time(self) -> StoreTime:
        now = self._app.now()
        return StoreTime(now, time.time() - now)

    def _notes(self, connection: sqlite3.Connection) -> Notes:
        settings = self._app.lifetime.settings
        lifetimes = Lifetimes.configured(settings.memories)
        database = self._app.require_database()
        return Notes(
            connection,
            self._team,
            self._time(),
            lifetimes,
            guard=settings.secret_guard,
            is_awaited=lambda: database.has_other_writes,
        )

    # Who this store is

    async def _read_heads(self) -> None:
        found = await self._server.heads(list(self._repos))
        self._heads = {(project, origin): n for project, origin, n in found}

    async def _settle_origin(self) -> None:
        """Find out what became of rows whose arrival nobody confirmed. Go on under a new origin when this store is a
        copy, when its log has rows that it did not write or lost some that it sent, or when the origin is another
        role's."""
        heads = {project: self._heads.get((project, self._team.origin), 0) for project in self._repos}
        sent = await self._read(_sent, heads)
        is_other = self._team.home != home_of(self._app.require_database().path)
        for project, head in heads.items():
            if head > sent[project] and not is_other:
                is_other = not await self._confirm(project, sent[project], head)
        has_lost = any(head < sent[project] for project, head in heads.items())
        if not (is_other or has_lost or self._hello.read_only):
            is_other = await self._server.register(self._team.origin) != self._hello.role
        if is_other or has_lost:
            lost = await self._read(store.find_lost, self._team, heads)
            await self._begin_origin([one for one in lost if one[0].project in self._repos])

    async def _settle_lifetime(self) -> None:
        lifetime = self._app.lifetime.id
        if self._team.lifetime != lifetime:
            await self._write(store.begin_lifetime, self._team, lifetime)
            self._team = replace(self._team, lifetime=lifetime)

    async def _begin_origin(self, lost: Sequence[tuple[Name, Known]] = ()) -> None:
        hints = {hint.identity: hint for hint in self._app.lifetime.store.hints()}
        origin, home = new_origin(), home_of(self._app.require_database().path)

        def begin(connection: sqlite3.Connection) -> Team:
            self._team = store.begin_origin(connection, self._team, origin, home)
            for name, known in lost:
                if name.kind == NOTE:
                    self._notes(connection).add_again(name, known)
                else:
                    hints_ops.add_again(connection, self._team, name, known, hints)
            return self._team

        self._team = await self._write(begin)
        if not self._hello.read_only:
            await self._server.register(origin)

    async def _confirm(self, project: str, sent: int, head: int) -> bool:
        """Whether the rows behind `sent` are the first that wait here; if so, they were sent."""
        while sent < head:
            rows = await self._server.rows([(project, self._team.origin, sent)], self.rows)
            waiting = await self._read(store.outbox, self._team, project, len(rows))
            if not rows or rows != waiting:
                return False
            sent = rows[-1].n
            await self._acknowledge(project, sent)
        return True

    async def _acknowledge(self, project: str, n: int) -> None:
        await self._write(store.acknowledge, self._team, project, n)

    # Out

    async def _gather_hints(self) -> None:
        """Have hints numbered in the change log, and take those that were there before."""
        names = [name for name, repo in self._repos.items() if repo.hints]
        log = self._app.lifetime.outbox.log
        if not names:
            return
        known = await self._read(store.taken, log) if log else None
        new = [name for name in names if known is None or not self._repos[name].is_gathered]
        if not new:
            return
        if known is not None:
            await self._take_hints()  # before the hints as they are now: none may be taken after a later version of it
        elif not log:
            await self._app.changes.serialize(Call(), self._begin_numbers)
        log, last, hints = (
            self._app.lifetime.outbox.log,
            self._app.lifetime.outbox.last,
            self._app.lifetime.store.hints(),
        )
        gathered = await asyncio.to_thread(hints_ops.gather, hints, frozenset(new))
        for part in range(0, len(gathered), 50):
            await self._write(self._take_gathered, gathered[part : part + 50])
        await self._write(_note_gathered, new, log, last if known is None else None)

    async def _begin_numbers(self) -> None:
        self._app.changes.send_hints(uuid.uuid4().hex[:16])

    def _take_gathered(self, connection: sqlite3.Connection, part: Sequence[hints_ops.OutgoingHint]) -> None:
        for one in part:
            hints_ops.take(connection, self._team, one, self._time())

    async def _take_changes(self) -> None:
        await self._take_hints()
        while await self._write(self._take_notes):
            pass
        await self._correct_hints()

    def _take_notes(self, connection: sqlite3.Connection) -> bool:
        return self._notes(connection).take_changes()

    async def _take_hints(self) -> None:
        outbox = self._app.lifetime.outbox
        names = frozenset(name for name, repo in self._repos.items() if repo.hints)
        while outbox.log and names:
            log = outbox.log
            after = await self._read(store.taken, log) or 0
            changes = outbox.waiting(after, 50)
            if not changes:
                return
            await self._write(hints_ops.take_changes, self._team, names, log, changes, self._time())

    async def _correct_hints(self) -> None:
        """Give hints that are about to be sent the times that they are sent with."""
        waiting = await self._read(store.waiting, HINT)

        async def correct() -> None:
            hints = {hint.identity: hint for hint in self._app.lifetime.store.hints()}
            if puts := await asyncio.to_thread(hints_ops.misdated, waiting, hints):
                decision = self._app.lifetime.store.decide_change(self._app.now(), Change(tuple(puts)))
                await self._app.changes.commit_large(decision, Call(), is_outgoing=False)

        if waiting:
            await self._app.changes.serialize(Call(), correct)

    async def _push(self) -> None:
        """Send what waits, a repo after the other. A server that only reads is no reason not to read."""
        try:
            for project in self._repos:
                while entries := await self._next_entries(project):
                    await self._server.push(self._team.origin, self._hello.epoch_number, entries)
                    await self._acknowledge(project, entries[-1].n)
        except TeamProblem as problem:
            if not problem.is_read_only:
                raise
            self.problem = problem.message

    async def _next_entries(self, project: str) -> list[Entry]:
        entries = await self._read(store.outbox, self._team, project, self.rows)
        size = 0
        for count, entry in enumerate(entries):
            size += len(entry.body)
            if size > limits.TEAM_ROWS_BYTES and count:
                return entries[:count]
        return entries

    # In

    async def _pull(self) -> None:
        behind = await self._read(self._find_behind)
        while behind:
            rows = await self._server.rows([(*log, n) for log, n in behind.items()], self.rows)
            if not rows:
                return
            await self._take_in(rows)
            for row in rows:
                behind[row.project, row.origin] = row.n
            behind = {log: n for log, n in behind.items() if n < self._heads[log]}

    def _find_behind(self, connection: sqlite3.Connection) -> dict[tuple[str, str], int]:
        """The cursors of logs that have more than was received."""
        found = {}
        for project in self._repos:
            here = store.cursors(connection, project)
            logs = [(log, head) for log, head in self._heads.items() if log[0] == project]
            found.update({log: here.get(log[1], 0) for log, head in logs if here.get(log[1], 0) < head})
        return found

    async def _take_in(self, rows: Sequence[Entry]) -> None:
        hints = [row for row in rows if row.kind == HINT and self._repos[row.project].hints]
        if hints:
            await self._app.changes.serialize(Call(), partial(self._take_in_hints, hints))
        logs: dict[tuple[str, str], list[Entry]] = {}
        for row in rows:
            logs.setdefault((row.project, row.origin), []).append(row)
        for (project, _), entries in logs.items():
            kinds = self._repos[project].kinds
            while entries:
                done = await self._write(self._apply, entries, kinds)
                entries = entries[done:]

    def _apply(self, connection: sqlite3.Connection, entries: Sequence[Entry], kinds: frozenset[str]) -> int:
        return self._notes(connection).apply(entries, kinds)

    async def _take_in_hints(self, entries: Sequence[Entry]) -> None:
        """Within `serialize`: no hint changes between what is read, decided and committed."""
        await self._take_hints()
        known = await self._read(hints_ops.read_known, entries)
        hints = {hint.identity: hint for hint in self._app.lifetime.store.hints()}
        guard, now = self._app.lifetime.settings.secret_guard, self._app.now()
        incoming = await asyncio.to_thread(hints_ops.decide, entries, hints, known, now, guard=guard)
        if incoming.lost or incoming.bases:
            await self._write(hints_ops.keep_lost, incoming)
        await self._commit_hints(incoming.change)
        await self._write(hints_ops.note_incoming, incoming)

    async def _commit_hints(self, change: Change) -> None:
        """Commit a change as a whole or, when there is no room for all of it, those hints that have room."""
        if not change:
            return
        lifetime = self._app.lifetime
        try:
            decision = lifetime.store.decide_change(self._app.now(), change)
        except QuotaExceeded as full:
            self.problem = f"hints were left out: {full.message}"
            for one in hints_ops.split(change):
                try:
                    decision = lifetime.store.decide_change(self._app.now(), one)
                except QuotaExceeded:
                    continue
                self._app.changes.commit(decision, Call(), is_outgoing=False)
        else:
            await self._app.changes.commit_large(decision, Call(), is_outgoing=False)

    async def _note_heads(self) -> None:
        """Have the status say how much there is before it is here."""
        ours = self._team.origin
        heads = [(project, origin, n) for (project, origin), n in self._heads.items() if origin != ours]
        await self._write(store.note_heads, heads)

    async def _note_contact(self) -> None:
        def note(connection: sqlite3.Connection) -> list[str]:
            store.note_contact(connection, self._hello.epoch, self._app.now())
            return store.unknown_roles(connection)

        unknown = await self._write(note)
        if unknown:
            roles = await self._server.roles(unknown)
            await self._write(store.note_roles, roles)


def _sent(connection: sqlite3.Connection, projects: Iterable[str]) -> dict[str, int]:
    return {project: store.sent(connection, project) for project in projects}


def _note_gathered(connection: sqlite3.Connection, projects: Iterable[str], log: str, last: int | None) -> None:
    for project in projects:
        store.note_gathered(connection, project)
    if last is not None:
        store.note_taken(connection, log, last)
