"""What machines change without having seen each other: all end with the same, byte for byte, and keep what lost."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from nudge.core.clock import Clock
from nudge.hints.scope import scope_of
from nudge.team.entry import Body, Entry
from nudge.team.sharing import hint_name
from nudge.team.sync_ops import Exchange
from nudge.team.versions import clock_at
from tests.unit.team.machines import REPO, SCOPE, Log, Machine, exchange, play

_ROLES = ("alice", "bob", "carol")
Change = Callable[[Machine], Awaitable[None]]


async def _edit_note(machine: Machine) -> None:
    await machine.note("One", f"words of {machine.role}")


async def _delete_note(machine: Machine) -> None:
    (note,) = (await machine.call("nudge.memory_list", namespace=REPO))["memories"]
    await machine.call("nudge.memory_delete", id=note["id"])


async def _archive_note(machine: Machine) -> None:
    await machine.call("nudge.memory_forget", namespace=REPO, title="One")


async def _edit_hint(machine: Machine) -> None:
    await machine.hint("one", f"make {machine.role}")


async def _delete_hint(machine: Machine) -> None:
    await machine.call("nudge.delete_hint", component="api", key="one")


async def _nothing(_: Machine) -> None: ...


async def _edit_twice(machine: Machine) -> None:
    """The second edit is made when the first was sent."""
    await machine.note("One", f"first words of {machine.role}")
    await machine.hint("one", f"make {machine.role}-first")
    await machine.round()
    await machine.note("One", f"words of {machine.role}")
    await machine.hint("one", f"make {machine.role}")


_CASES: dict[str, tuple[Change, Change, Change]] = {
    "note edited, edited": (_edit_note, _edit_note, _nothing),
    "note edited, deleted": (_edit_note, _delete_note, _nothing),
    "note deleted, edited": (_delete_note, _edit_note, _nothing),
    "note deleted, deleted": (_delete_note, _delete_note, _nothing),
    "note edited by all": (_edit_note, _edit_note, _edit_note),
    "hint edited, edited": (_edit_hint, _edit_hint, _nothing),
    "hint edited, deleted": (_edit_hint, _delete_hint, _nothing),
    "hint deleted, edited": (_delete_hint, _edit_hint, _nothing),
    "hint edited by all": (_edit_hint, _edit_hint, _edit_hint),
    "an edit, then two of which the first was sent": (_edit_note, _edit_twice, _nothing),
    "a hint, then two of which the first was sent": (_edit_hint, _edit_twice, _nothing),
    "two of which the first was sent by all": (_edit_twice, _edit_twice, _edit_twice),
}


async def _next_millisecond() -> None:
    """A clock of a version has milliseconds: two changes in one are ordered by origin."""
    began = int(time.time() * 1_000)
    while int(time.time() * 1_000) == began:
        pass


async def _state(machine: Machine) -> dict[str, Any]:
    """All that is shared, and what was kept of it."""
    fields = "title, content, kind, tier, priority, confidence, tags, metadata, created_at, updated_at"
    sql = f"SELECT {fields} FROM notes WHERE namespace = ? ORDER BY title"  # noqa: S608 - constants
    lost = "SELECT kind, key, clock, origin, fields FROM team_conflicts ORDER BY kind, key, clock, origin"
    exported = await machine.call("nudge.export")
    return {
        "notes": await machine.app.read(lambda connection: connection.execute(sql, (REPO,)).fetchall()),
        "hints": [
            (key, hint["value"], hint["created_at"], hint["updated_at"])
            for content in exported["payload"]["components"].values()
            for key, hint in content["hints"].items()
        ],
        "lost": await machine.app.read(lambda connection: connection.execute(lost).fetchall()),
    }


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=lambda order: "".join(map(str, order)))
@pytest.mark.parametrize("case", _CASES)
def test_changes_that_nobody_else_had_seen(tmp_path: Path, case: str, order: Sequence[int]) -> None:
    """Three machines, in whichever order they come back: the same state, and the same versions that lost, on all. Each
    version that somebody made last is either the one that counts or kept."""
    last: dict[str, Any] = {}

    async def scenario(alice: Machine, bob: Machine, carol: Machine, log: Log) -> None:
        members = (alice, bob, carol)
        await alice.note("One", "first words")
        await alice.hint("one", "make first")
        await exchange(*members)
        begun = len(log.rows)
        for machine, change in zip(members, _CASES[case], strict=True):
            await _next_millisecond()
            await change(machine)
        for index in order:
            await members[index].round()
        await exchange(*members)
        states = [await _state(machine) for machine in members]
        assert states[0] == states[1] == states[2]
        replaced = {row.read_body().after for row in log.rows}
        leaves = sorted((row for row in log.rows[begun:] if row.clock not in replaced), key=lambda row: row.version)
        digests = {row.kind: row.read_body().digest for row in leaves}  # of the last, which counts
        expected = {(row.clock, row.origin) for row in leaves if row.read_body().digest != digests[row.kind]}
        assert {(row[2], row[3]) for row in states[0]["lost"]} == expected
        last["leaves"] = len(leaves)

    play(tmp_path, scenario, _ROLES)
    assert last["leaves"] >= 2


def test_a_deletion_counts_from_when_it_was_made(tmp_path: Path) -> None:
    """Not from when the network was back: an edit that somebody made after it wins, and the deletion is kept."""

    async def scenario(alice: Machine, bob: Machine, _: Log) -> None:
        for title in ("deleted", "archived", "renamed"):
            await alice.note(title, "first words")
        await exchange(alice, bob)
        notes = {note["title"]: note for note in (await alice.call("nudge.memory_list", namespace=REPO))["memories"]}
        await alice.call("nudge.memory_delete", id=notes["deleted"]["id"])
        await alice.call("nudge.memory_forget", ids=[notes["archived"]["id"]])
        await alice.call("nudge.memory_update", id=notes["renamed"]["id"], title="another name")
        await _next_millisecond()
        for title in ("deleted", "archived", "renamed"):
            await bob.note(title, "changed later")
        await exchange(bob, alice)
        expected = dict.fromkeys(("deleted", "archived", "renamed"), "changed later")
        assert await alice.notes() == await bob.notes() == {**expected, "another name": "first words"}
        conflicts = (await bob.call("nudge.team_status", conflicts=True))["conflicts"]
        assert {(one["name"], one["fields"]) for one in conflicts} == {(title, None) for title in expected}

    play(tmp_path, scenario)


def test_what_was_made_after_it_was_seen_is_no_conflict(tmp_path: Path) -> None:
    """However long the machines were apart, and whichever log is read first."""

    async def scenario(alice: Machine, bob: Machine, carol: Machine, log: Log) -> None:
        await carol.app.require_database().write(lambda connection: connection.execute("DELETE FROM team_repos"))
        for step in range(3):
            for machine in (alice, bob):
                await machine.note("One", f"{machine.role} {step}")
                await machine.hint("one", f"make {machine.role}-{step}")
                await exchange(alice, bob)
        await carol.call("nudge.team_share", repo=REPO)
        log.rows.sort(key=lambda row: row.origin, reverse=True)
        await carol.round()
        states = [await _state(machine) for machine in (alice, bob, carol)]
        assert states[0] == states[1] == states[2] and len(log.rows) == 12
        assert states[0]["lost"] == []

    play(tmp_path, scenario, _ROLES)


def test_a_repo_that_is_received_again_has_the_same_conflicts(tmp_path: Path) -> None:
    async def scenario(alice: Machine, bob: Machine, _: Log) -> None:
        await alice.note("One", "first words")
        await alice.hint("one", "make first")
        await exchange(alice, bob)
        await _edit_twice(bob)
        for change in (_edit_note, _edit_hint):
            await _next_millisecond()
            await change(alice)
        await exchange(alice, bob)
        before = await _state(bob)
        assert len(before["lost"]) == 2
        await bob.call("nudge.team_share", repo=REPO)
        await exchange(alice, bob)
        assert await _state(bob) == before == await _state(alice)

    play(tmp_path, scenario)


def test_a_hint_that_lost_is_kept_when_the_process_dies_before_it_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change log has the version that wins, the database not yet: the rows come again."""

    class Died(BaseException): ...

    async def scenario(alice: Machine, bob: Machine, _: Log) -> None:
        await _edit_hint(alice)
        await _next_millisecond()
        await _edit_hint(bob)
        await bob.round()
        with monkeypatch.context() as patched:

            async def die(*_: Any) -> None:
                await real(*_)
                raise Died

            real = Exchange._commit_hints
            patched.setattr(Exchange, "_commit_hints", die)
            with contextlib.suppress(Died):
                await alice.round()
        assert alice.hints() == {"one": "make bob"}
        await exchange(alice, bob)
        for machine in (alice, bob):
            conflicts = (await machine.call("nudge.team_status", conflicts=True))["conflicts"]
            assert [one["fields"]["value"] for one in conflicts] == ["make alice"]

    play(tmp_path, scenario)


def test_the_status_counts_what_waits_and_what_is_to_come(tmp_path: Path) -> None:
    """A hint that no round has taken yet waits, and rows that are being received are expected."""

    async def scenario(alice: Machine, bob: Machine, log: Log) -> None:
        async def row(machine: Machine) -> tuple[int, int, int]:
            (found,) = (await machine.call("nudge.team_status"))["repos"]
            return found["waiting"], found["received"], found["expected"]

        await alice.hint("before", "make before")
        assert await row(alice) == (1, 0, 0)
        await alice.round()
        assert await row(alice) == (0, 1, 1)
        await alice.hint("later", "make later")
        await alice.call("nudge.set_hint", component="api", key="elsewhere", value="make", meta={"scope": {}})
        assert await row(alice) == (1, 1, 1)
        await alice.round()
        log.loses_rows = True
        with pytest.raises(Exception, match="no rows"):
            await bob.round()
        assert await row(bob) == (0, 0, 2)

    play(tmp_path, scenario)


def test_a_clock_that_was_set_corrects_only_its_own_times(tmp_path: Path) -> None:
    """A machine that was a day ahead dates its own hints and notes anew, exactly as they are sent, and leaves those of
    a machine that is two minutes ahead."""

    async def scenario(alice: Machine, bob: Machine, _: Log) -> None:
        for machine, ahead in ((alice, 86_400.0), (bob, 120.0)):
            clock = Clock(machine.app.lifetime.clock.offset + ahead)
            machine.app.lifetime.clock = clock
        await bob.hint("theirs", "make theirs")
        await bob.note("Theirs", "words")
        await exchange(bob, alice)
        await alice.hint("own", "make own")
        await alice.note("Own", "words")
        await exchange(alice, bob)
        states = [await _state(machine) for machine in (alice, bob)]
        assert states[0] == states[1] and len(states[0]["hints"]) == len(states[0]["notes"]) == 2
        tomorrow = time.time() + 43_200.0
        assert all(row[-1] < tomorrow for row in states[0]["notes"])

    play(tmp_path, scenario)


def test_what_one_made_and_a_clock_behind_it_changed(tmp_path: Path) -> None:
    """By the clocks of both it was changed before it was made; all have the same times of it."""

    async def scenario(alice: Machine, bob: Machine, _: Log) -> None:
        alice.app.lifetime.clock = Clock(alice.app.lifetime.clock.offset - 50.0)
        await bob.note("One", "words of bob")
        await bob.hint("one", "make bob")
        await exchange(bob, alice)
        await _edit_note(alice)
        await _edit_hint(alice)
        await exchange(alice, bob)
        states = [await _state(machine) for machine in (alice, bob)]
        assert states[0] == states[1] and states[0]["lost"] == []
        assert [row[1] for row in states[0]["notes"]] == ["words of alice"]

    play(tmp_path, scenario)


def test_what_is_changed_before_its_time_has_come(tmp_path: Path) -> None:
    """What a clock made that is two minutes ahead, and a right one changed: all have the same times of it."""

    async def scenario(alice: Machine, bob: Machine, log: Log) -> None:
        when = time.time() + 120.0
        times = {"created_at": when, "updated_at": when}
        hint = Body(0, {"value": "make ahead", "meta": {"scope": SCOPE}, **times}).to_text()
        note = Body(0, {"content": "words", "kind": "decision", "tier": "long", **times}).to_text()
        key = hint_name(REPO, ("api", "one", scope_of(SCOPE).key)).key
        log.rows = [
            Entry(REPO, "ahead", 1, clock_at(when), "hint", key, hint),
            Entry(REPO, "ahead", 2, clock_at(when), "note", "One", note),
        ]
        await exchange(alice, bob)
        await _edit_note(alice)
        await _edit_hint(alice)
        await exchange(alice, bob)
        states = [await _state(machine) for machine in (alice, bob)]
        assert states[0] == states[1] and states[0]["lost"] == []
        assert alice.hints() == {"one": "make alice"} and await alice.notes() == {"One": "words of alice"}

    play(tmp_path, scenario)
