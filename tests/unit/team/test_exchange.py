"""What machines of a team send, receive, keep and refuse, with a log that stands for the server.
With a real PostgreSQL and real processes: `make team`."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nudge.hints.commit_ops import HintChanges
from nudge.hints.lifetime import open_in_memory
from nudge.settings.config import Settings
from nudge.team.entry import Body, Entry
from nudge.team.server_ops import TeamProblem
from tests.unit.team import machines
from tests.unit.team.machines import REPO, SCOPE, Log, Machine, exchange

Scenario = Callable[[Machine, Machine, Log], Awaitable[None]]
Play = Callable[[Scenario], None]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Plays a scenario with two machines that share the repo."""
    return partial(machines.play, tmp_path)


def test_what_one_knows_the_other_gets(play: Play) -> None:
    """Notes and hints, what was there before it was shared and what comes later, changes and deletions; nothing is
    sent back."""

    async def scenario(alice: Machine, bob: Machine, log: Log) -> None:
        await alice.note("First", "tabs")
        await alice.hint("test", "make test")
        await exchange(alice, bob)
        assert await bob.notes() == {"First": "tabs"} and bob.hints() == {"test": "make test"}
        assert len(log.rows) == 2
        await bob.note("First", "spaces")
        await alice.hint("lint", "make lint")
        await alice.call("nudge.delete_hint", component="api", key="test")
        await exchange(alice, bob)
        assert await alice.notes() == {"First": "spaces"} and bob.hints() == {"lint": "make lint"}
        assert len(log.rows) == 5

    play(scenario)


def test_a_lost_answer_doubles_nothing(play: Play) -> None:
    async def scenario(alice: Machine, bob: Machine, log: Log) -> None:
        await alice.note("First", "words")
        log.loses_answer = True
        with contextlib.suppress(TeamProblem):
            await alice.round()
        await alice.note("Second", "words")
        await exchange(alice, bob)
        assert [row.n for row in log.rows] == [1, 2] and len(log.roles) == 2
        assert set(await bob.notes()) == {"First", "Second"}

    play(scenario)


def test_a_log_that_lost_rows_gets_them_again(play: Play) -> None:
    """Under a new origin: those who saw the lost rows have passed their numbers."""

    async def scenario(alice: Machine, bob: Machine, log: Log) -> None:
        await alice.note("Kept", "words")
        await exchange(alice, bob)
        await alice.note("Lost", "words")
        await alice.hint("lost", "make lost")
        await exchange(alice, bob)
        del log.rows[1:]
        await exchange(alice, bob)
        assert sorted(row.key for row in log.rows if row.kind == "note") == ["Kept", "Lost"]
        assert sum(row.kind == "hint" for row in log.rows) == 1 and len({row.origin for row in log.rows}) == 2
        assert await bob.notes() == await alice.notes() == {"Kept": "words", "Lost": "words"}

    play(scenario)


def test_a_server_that_only_reads_is_read(play: Play) -> None:
    async def scenario(alice: Machine, bob: Machine, log: Log) -> None:
        await alice.note("Before", "words")
        await exchange(alice)
        log.read_only = True
        await bob.note("Waits", "words")
        await exchange(bob)
        assert set(await bob.notes()) == {"Before", "Waits"} and len(log.rows) == 1
        assert bob.team.report.problem == "read-only"
        log.read_only = False
        await exchange(bob, alice)
        assert set(await alice.notes()) == {"Before", "Waits"} and bob.team.report.problem is None

    play(scenario)


def test_a_clock_that_is_ahead_sends_nothing(play: Play) -> None:
    async def scenario(alice: Machine, _: Machine, log: Log) -> None:
        log.ahead = 86_400.0
        await alice.note("Tomorrow", "words")
        with pytest.raises(TeamProblem, match="24 h 0 min ahead"):
            await alice.round()
        assert log.rows == []

    play(scenario)


def test_what_must_not_leave_does_not(play: Play) -> None:
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
        await exchange(alice, bob)
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
def test_what_comes_in_is_checked(play: Play, kind: str, key: str, fields: dict[str, Any]) -> None:
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


def test_any_order_of_changes_and_rounds_comes_to_the_same(play: Play) -> None:
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
        await exchange(alice, bob)
        assert await alice.notes() == await bob.notes() != {}
        assert alice.hints() == bob.hints()

    play(scenario)


def test_hints_of_a_team_outlive_the_session(play: Play) -> None:
    """A session of hints ends after 30 days without a process, or by `nudge stop --forget`: those of the team are
    received again, one's own included, and nothing is sent for it."""

    async def scenario(alice: Machine, bob: Machine, log: Log) -> None:
        await alice.hint("theirs", "make theirs")
        await bob.hint("own", "make own")
        await alice.hint("gone", "make gone")
        await exchange(alice, bob)
        await alice.call("nudge.delete_hint", component="api", key="gone")
        await exchange(alice, bob)
        rows = len(log.rows)
        bob.app.lifetime = open_in_memory(Settings({}))
        bob.app.changes = HintChanges(bob.app.lifetime, bob.app.confirm_role)
        await bob.hint("new", "make new")
        assert bob.hints() == {"new": "make new"}
        await exchange(bob, alice)
        assert bob.hints() == alice.hints() == {"theirs": "make theirs", "own": "make own", "new": "make new"}
        assert len(log.rows) == rows + 1

    play(scenario)
