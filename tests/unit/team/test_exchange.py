"""Machines of a team in this process, and a log that stands for the server: what is sent, received, kept and refused.
With a real PostgreSQL and real processes: `make team`."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from nudge.core.app import App
from nudge.core.call import Call
from nudge.hints.lifetime import open_in_memory
from nudge.interfaces.operations import OPERATIONS
from nudge.settings.config import Settings
from nudge.storage.database import Database
from nudge.team import store
from nudge.team.entry import Body, Entry
from nudge.team.server_ops import Hello, TeamProblem
from nudge.team.store import SharedRepo
from nudge.team.sync_ops import TeamSync, home_of, new_origin

REPO = "github.com/acme/app"
SCOPE = {"repo": f"git:{REPO}"}


@dataclass
class Log:
    """The rows, as a server keeps them. `fails` raises before what is asked is done, `loses` after it."""

    rows: list[Entry] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    read_only: bool = False
    ahead: float = 0.0
    loses_answer: bool = False


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


Scenario = Callable[[Machine, Machine, Log], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Scenario], None]:
    """Plays a scenario with two machines that share the repo."""

    def run(scenario: Scenario) -> None:
        async def main() -> None:
            log = Log()
            machines = Machine(tmp_path / "a", log, "alice"), Machine(tmp_path / "b", log, "bob")
            try:
                for machine in machines:
                    await machine.join()
                await scenario(*machines, log)
            finally:
                for machine in machines:
                    machine.app.require_database().close()

        asyncio.run(main())

    return run


async def _exchange(*machines: Machine) -> None:
    for _ in range(2):
        for machine in machines:
            await machine.round()


def test_what_one_knows_the_other_gets(play: Callable[[Scenario], None]) -> None:
    """Notes and hints, what was there before it was shared and what comes later, changes and deletions; nothing is
    sent back."""

    async def scenario(alice: Machine, bob: Machine, log: Log) -> None:
        await alice.note("First", "tabs")
        await alice.hint("test", "make test")
        await _exchange(alice, bob)
        assert await bob.notes() == {"First": "tabs"} and bob.hints() == {"test": "make test"}
        assert len(log.rows) == 2
        await bob.note("First", "spaces")
        await alice.hint("lint", "make lint")
        await alice.call("nudge.delete_hint", component="api", key="test")
        await _exchange(alice, bob)
        assert await alice.notes() == {"First": "spaces"} and bob.hints() == {"lint": "make lint"}
        assert len(log.rows) == 5

    play(scenario)


def test_a_lost_answer_doubles_nothing(play: Callable[[Scenario], None]) -> None:
    async def scenario(alice: Machine, bob: Machine, log: Log) -> None:
        await alice.note("First", "words")
        log.loses_answer = True
        with contextlib.suppress(TeamProblem):
            await alice.round()
        await alice.note("Second", "words")
        await _exchange(alice, bob)
        assert [row.n for row in log.rows] == [1, 2] and len(log.roles) == 2
        assert set(await bob.notes()) == {"First", "Second"}

    play(scenario)


def test_a_log_that_lost_rows_gets_them_again(play: Callable[[Scenario], None]) -> None:
    """Under a new origin: those who saw the lost rows have passed their numbers."""

    async def scenario(alice: Machine, bob: Machine, log: Log) -> None:
        await alice.note("Kept", "words")
        await _exchange(alice, bob)
        await alice.note("Lost", "words")
        await alice.hint("lost", "make lost")
        await _exchange(alice, bob)
        del log.rows[1:]
        await _exchange(alice, bob)
        assert sorted(row.key for row in log.rows if row.kind == "note") == ["Kept", "Lost"]
        assert sum(row.kind == "hint" for row in log.rows) == 1 and len({row.origin for row in log.rows}) == 2
        assert await bob.notes() == await alice.notes() == {"Kept": "words", "Lost": "words"}

    play(scenario)


def test_a_server_that_only_reads_is_read(play: Callable[[Scenario], None]) -> None:
    async def scenario(alice: Machine, bob: Machine, log: Log) -> None:
        await alice.note("Before", "words")
        await _exchange(alice)
        log.read_only = True
        await bob.note("Waits", "words")
        await _exchange(bob)
        assert set(await bob.notes()) == {"Before", "Waits"} and len(log.rows) == 1
        assert bob.team.report.problem == "read-only"
        log.read_only = False
        await _exchange(bob, alice)
        assert set(await alice.notes()) == {"Before", "Waits"} and bob.team.report.problem is None

    play(scenario)


def test_a_clock_that_is_ahead_sends_nothing(play: Callable[[Scenario], None]) -> None:
    async def scenario(alice: Machine, _: Machine, log: Log) -> None:
        log.ahead = 86_400.0
        await alice.note("Tomorrow", "words")
        with pytest.raises(TeamProblem, match="24 h 0 min ahead"):
            await alice.round()
        assert log.rows == []

    play(scenario)


def test_what_must_not_leave_does_not(play: Callable[[Scenario], None]) -> None:
    """Credentials that the guard was told to let in, secrets, what is private, other repos, directories."""

    async def scenario(alice: Machine, bob: Machine, log: Log) -> None:
        token = "ghp_" + "a1B2c3D4" * 5
        alice.app.lifetime.settings.secret_guard = False
        await alice.note("Credential", f"the token is {token}")
        await alice.note("Private", "public words <private>hunter2 of mine</private>")
        await alice.call(
            "nudge.memory_store", title="Elsewhere", content="of another repo", namespace="example.com/o/r"
        )
        for key, meta in (
            ("secret", {"sensitivity": "secret"}),
            ("dir", {"scope": {**SCOPE, "cwd_glob": ["/home/a/**"]}}),
        ):
            await alice.call("nudge.set_hint", component="api", key=key, value="x y", meta={"scope": SCOPE, **meta})
        await alice.call("nudge.set_hint", component="api", key="everywhere", value="make", meta={"scope": {}})
        await _exchange(alice, bob)
        sent = "\n".join(row.body + row.key for row in log.rows)
        assert "hunter2" not in sent and token not in sent and "Elsewhere" not in sent
        assert "public words" in sent and not [row for row in log.rows if row.kind == "hint"]

    play(scenario)


@pytest.mark.parametrize(
    ("kind", "key", "fields"),
    [
        ("note", "Bad kind", {"content": "x", "kind": "nonsense"}),
        ("note", "No times", {"content": "x", "kind": "decision"}),
        ("note", "Credential", {"content": "ghp_" + "a1B2c3D4" * 5, "created_at": 1, "updated_at": 1}),
        ("note", "An attempt", {"content": "x", "kind": "attempt", "created_at": 1, "updated_at": 1}),
        ("hint", "no json", {"value": "x"}),
        ("hint", '["api","test","{}"]', {"value": "everywhere", "meta": {}, "created_at": 1, "updated_at": 1}),
    ],
)
def test_what_comes_in_is_checked(
    play: Callable[[Scenario], None], kind: str, key: str, fields: dict[str, Any]
) -> None:
    """A row that is not valid is left out, named, and does not stop those behind it."""

    async def scenario(_: Machine, bob: Machine, log: Log) -> None:
        clock = int(time.time() * 1_000) << 16
        good = {"content": "words", "kind": "decision", "tier": "long", "created_at": 1.0, "updated_at": 1.0}
        log.rows = [
            Entry(REPO, "o", 1, clock, kind, key, Body(0, fields).to_text()),
            Entry(REPO, "o", 2, clock, "note", "No body", "nonsense"),
            Entry(REPO, "o", 3, clock, "note", "Good", Body(0, good).to_text()),
        ]
        await bob.round()
        assert await bob.notes() == {"Good": "words"} and bob.hints() == {}
        row = await bob.call("nudge.team_status", withheld=True)
        assert {one["name"] for one in row["withheld"]} == {key, "No body"}
        assert (row["repos"][0]["received"], row["repos"][0]["expected"]) == (3, 3)

    play(scenario)


def test_any_order_of_changes_and_rounds_comes_to_the_same(play: Callable[[Scenario], None]) -> None:
    """Random changes on both machines, some rounds between them: in the end both have the same."""

    async def scenario(alice: Machine, bob: Machine, _: Log) -> None:
        chance = random.Random(3)
        for step in range(60):
            machine = chance.choice((alice, bob))
            match chance.randrange(4):
                case 0:
                    await machine.note(f"Note {chance.randrange(4)}", f"{machine.role} {step}")
                case 1:
                    await machine.hint(f"key{chance.randrange(4)}", f"{machine.role} {step}")
                case 2:
                    for key in list(machine.hints())[:1]:
                        await machine.call("nudge.delete_hint", component="api", key=key)
                case _:
                    await machine.round()
        await _exchange(alice, bob)
        assert await alice.notes() == await bob.notes() != {}
        assert alice.hints() == bob.hints()

    play(scenario)
