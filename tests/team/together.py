"""What a team is promised when all goes well: a fresh machine gets all, and all end with the same, byte for byte."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from nudge.core.errors import RemoteError
from tests.harness import eventually
from tests.team.machines import REPO, Member, wait_until_same
from tests.team.postgres import Postgres

ROLES = ("alice", "bob", "carol", "dave")
_AHEAD = {"bob": 120.0, "carol": 86_400.0}
"""Seconds by which clocks are ahead: two minutes, a day."""
_CHANGES = 5


@contextmanager
def team(*roles: str, ahead: dict[str, float] | None = None, ago: float = 0.0) -> Iterator[list[Member]]:
    members = [Member(role, ahead=(ahead or {}).get(role, 0.0), ago=ago) for role in roles]
    try:
        for member in members:
            member.start()
        yield members
    finally:
        for member in members:
            member.close()


def fresh_machine(postgres: Postgres, number: int) -> str:
    """A machine that joins later gets all of N changes, and its status says so."""
    with team("alice", "bob") as (alice, bob):
        for index in range(number):
            alice.note(f"Decision {index}", f"We decided on {index} at length. " * 3)
            if index % 5 == 0:
                alice.hint(f"key-{index}", f"make target-{index}", component=f"c{index % 7}")
        alice.join(postgres.url("alice"))
        alice.wait_until_sent()
        bob.join(postgres.url("bob"))
        wait_until_same([alice, bob])
        row = bob.repo()
        assert row["received"] == row["expected"] == number + len(range(0, number, 5)), row
        return f"{row['received']} of {row['expected']} changes, and the same state"


def offline_edits(postgres: Postgres) -> str:
    """What two machines change while they do not see each other comes to the same on all, in whichever order they come
    back; the version that loses is kept."""
    orders = list(itertools.permutations(("alice", "bob")))
    with team(*ROLES[:2], "dave", ahead={"bob": _AHEAD["bob"]}) as members:
        alice, bob, _ = members
        for member in members:
            member.join(postgres.url(member.role))
        for round_, order in enumerate(orders):
            alice.note(f"Shared {round_}", "first words")
            alice.note(f"Gone {round_}", "to be deleted")
            alice.hint(f"both-{round_}", "make first")
            wait_until_same(members)
            alice.leave_network()
            bob.leave_network()
            alice.note(f"Shared {round_}", f"alice's words {round_}")
            alice.hint(f"both-{round_}", f"make alice-{round_}")
            alice.forget(f"Gone {round_}")
            bob.note(f"Shared {round_}", f"bob's words {round_}")
            bob.hint(f"both-{round_}", f"make bob-{round_}")
            bob.note(f"Gone {round_}", "not deleted, but changed")
            by_role = {"alice": alice, "bob": bob}
            for role in order:
                by_role[role].come_back()
                by_role[role].wait_until_sent()
            wait_until_same(members)
        lost = [member.repo()["conflicts"] for member in members]
        assert all(count == 3 * len(orders) for count in lost), lost
        explained = alice.call("nudge.memory_explain", names=["api/both-0"], context={"repo": f"git:{REPO}"})
        reasons = explained["items"][0]["matches"]["reasons"]
        assert any("was not made from it" in reason for reason in reasons), reasons
        return f"{len(orders)} orders, 3 machines the same; {lost[2]} versions that lost are kept"


def four_machines(postgres: Postgres) -> str:
    """All at once, each with its own home, store and server: one clock is two minutes ahead, one a day. That one is
    refused until it is set right; then all four have all of it."""
    with team(*ROLES, ahead=_AHEAD) as members:
        alice, bob, carol, dave = members

        def work(member: Member) -> str | None:
            refused = None
            try:
                member.join(postgres.url(member.role))
            except RemoteError as error:
                refused = str(error)
            for index in range(_CHANGES):
                member.note(f"{member.role} {index}", f"words {index}")
                member.note(f"Of all {index}", f"{member.role} says {index}")
                member.hint(f"{member.role}-{index}", f"make {index}")
                member.hint(f"of-all-{index}", f"make {member.role}-{index}")
            return refused

        with ThreadPoolExecutor(len(members)) as threads:
            refused = dict(zip(ROLES, threads.map(work, members), strict=True))
        assert [role for role, why in refused.items() if why] == ["carol"], refused
        assert "24 h 0 min ahead of the server's" in str(refused["carol"]) or "23 h" in str(refused["carol"])
        three = wait_until_same([alice, bob, dave])
        assert len(three["notes"]) == len(three["hints"]) == 4 * _CHANGES
        assert not [row for row in three["notes"] if row[1].startswith("carol")]
        carol.stop()
        carol.ahead = 0.0
        carol.start()
        carol.join(postgres.url("carol"))
        state = wait_until_same(members)
        assert len(state["notes"]) == len(state["hints"]) == 5 * _CHANGES
        rows = [member.repo() for member in members]
        assert len({row["conflicts"] for row in rows}) == 1 and rows[0]["conflicts"] > 0, rows
        ((total,),) = postgres.rows("SELECT count(*) FROM nudge_team.ops")
        assert all(row["received"] == row["expected"] == int(total) for row in rows), (rows, total)
        return (
            f"{rows[0]['received']} of {total} changes on each of 4, the same state, the same {rows[0]['conflicts']}"
            f" versions that lost; told: {refused['carol']}"
        )


def wrong_clock(postgres: Postgres) -> str:
    """A machine whose clock is a day ahead takes no part, and is told why; once it is set right, it has the same as
    all others, and its changes have the time at which they were made."""
    with team("alice", "carol", ahead=_AHEAD) as (alice, carol):
        alice.join(postgres.url("alice"))
        alice.note("Clock", "of alice")
        with pytest.raises(RemoteError, match=r"2[34] h [0-9]+ min ahead of the server's"):
            carol.join(postgres.url("carol"))
        carol.stop()
        carol.ahead = 0.0
        carol.start()
        carol.join(postgres.url("carol"))
        wait_until_same([alice, carol])
        carol.stop()
        carol.ahead = 86_400.0
        carol.start()
        carol.note("From tomorrow", "written by a clock that is ahead")
        carol.hint("tomorrow", "make tomorrow")
        eventually(lambda: "ahead of the server" in (carol.status()["problem"] or ""), "the clock is refused")
        assert alice.repo()["expected"] == carol.repo()["expected"]
        carol.stop()
        carol.ahead = 0.0
        carol.start()
        carol.wait_until_sent()
        alice.note("From tomorrow", "written later by a clock that is right")
        wait_until_same([alice, carol])
        (content,) = [row[1] for row in carol.state()["notes"] if row[0] == "From tomorrow"]
        assert content == "written later by a clock that is right", content
    return "refused with a sentence; set right, it does not win against what came later"
