"""Machines of a team in this process, and a log that stands for the server."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nudge.core.app import App
from nudge.core.call import Call
from nudge.hints.lifetime import open_in_memory
from nudge.interfaces.operations import OPERATIONS
from nudge.settings.config import Settings
from nudge.storage.database import Database
from nudge.team import store
from nudge.team.entry import Entry
from nudge.team.server_ops import Hello, TeamProblem
from nudge.team.store import SharedRepo
from nudge.team.sync_ops import TeamSync, home_of, new_origin

REPO = "github.com/acme/app"
SCOPE = {"repo": f"git:{REPO}"}


@dataclass
class Log:
    """The rows, as a server keeps them, and what is wrong with it."""

    rows: list[Entry] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    read_only: bool = False
    ahead: float = 0.0
    loses_answer: bool = False
    loses_rows: bool = False


class Connection:
    def __init__(self, log: Log, role: str) -> None:
        self._log, self._role = log, role

    async def hello(self) -> Hello:
        return Hello(time.time() - self._log.ahead, self._role, 1, "epoch", 1, self._log.read_only)

    async def readable(self, projects: Sequence[str]) -> set[str]:
        return set(projects)

    async def register(self, origin: str) -> str | None:
        return self._log.roles.setdefault(origin, self._role)

    async def heads(self, projects: Sequence[str]) -> list[tuple[str, str, int]]:
        heads: dict[tuple[str, str], int] = {}
        for row in self._log.rows:
            heads[row.project, row.origin] = max(row.n, heads.get((row.project, row.origin), 0))
        return [(*log, n) for log, n in heads.items() if log[0] in projects]

    async def rows(self, cursors: Sequence[tuple[str, str, int]], most: int) -> list[Entry]:
        if self._log.loses_rows:
            raise TeamProblem("no rows", "timeout")
        found = [
            row
            for project, origin, n in cursors
            for row in sorted(self._log.rows, key=lambda row: row.n)
            if (row.project, row.origin) == (project, origin) and row.n > n
        ]
        return found[:most]

    async def push(self, origin: str, epoch: int, entries: Sequence[Entry]) -> None:
        if self._log.read_only:
            raise TeamProblem("read-only", "25006")
        assert epoch == 1
        for entry in entries:
            last = max(
                (row.n for row in self._log.rows if row.origin == origin and row.project == entry.project), default=0
            )
            assert entry.n == last + 1 and entry.origin == origin, "a gap, or a number twice"
            self._log.rows.append(entry)
        if self._log.loses_answer:
            self._log.loses_answer = False
            raise TeamProblem("the answer was lost", "timeout")

    async def roles(self, origins: Sequence[str]) -> list[tuple[str, str]]:
        return [(origin, self._log.roles[origin]) for origin in origins if origin in self._log.roles]

    async def listen(self, projects: Sequence[str], wake: Callable[[], None]) -> None: ...

    async def close(self) -> None: ...


class Machine:
    """One machine, whose rounds the test makes."""

    def __init__(self, folder: Path, log: Log, role: str) -> None:
        folder.mkdir()
        self.log, self.role = log, role
        self.app = App(open_in_memory(Settings({})), OPERATIONS)
        self.app.database = Database.open(str(folder / "nudge.db"))
        self.team = self.app.team = TeamSync(self.app, connect=self._connect)

    async def _connect(self, *_: Any) -> Connection:
        return Connection(self.log, self.role)

    async def join(self, **kinds: bool) -> None:
        database = self.app.require_database()
        home, shared = home_of(database.path), SharedRepo(REPO, kinds.get("notes", True), kinds.get("hints", True))
        url, origin = f"postgresql://{self.role}@localhost/team", new_origin()

        def write(connection: sqlite3.Connection) -> None:
            store.join(connection, url, origin, home, 0.0)
            store.share(connection, shared)

        await database.write(write)

    async def call(self, operation: str, **params: Any) -> Any:
        return await self.app.execute(operation, params, Call(interface="cli"))

    async def note(self, title: str, content: str) -> None:
        await self.call("nudge.memory_store", title=title, content=content, namespace=REPO, kind="decision")

    async def hint(self, key: str, value: str) -> None:
        await self.call("nudge.set_hint", component="api", key=key, value=value, meta={"scope": SCOPE})

    async def round(self) -> None:
        await self.team.round()

    async def notes(self) -> dict[str, str]:
        rows = "SELECT title, content FROM notes WHERE namespace = ?"
        return dict(await self.app.read(lambda connection: connection.execute(rows, (REPO,)).fetchall()))

    def hints(self) -> dict[str, Any]:
        return {hint.key: hint.value for hint in self.app.lifetime.store.hints()}


def play(folder: Path, scenario: Callable[..., Awaitable[None]], roles: Sequence[str] = ("alice", "bob")) -> None:
    """Play a scenario with machines that share the repo, and their log."""

    async def main() -> None:
        log = Log()
        machines = [Machine(folder / role, log, role) for role in roles]
        try:
            for machine in machines:
                await machine.join()
            await scenario(*machines, log)
        finally:
            for machine in machines:
                machine.app.require_database().close()

    asyncio.run(main())


async def exchange(*machines: Machine) -> None:
    for _ in range(2):
        for machine in machines:
            await machine.round()
