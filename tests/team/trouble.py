"""A server that is down, slow, read-only or restored from a backup, a role that is revoked, a machine that was away."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from nudge.team.server_sql import RESTORED, compact_sql
from tests.harness import eventually, free_port
from tests.team.machines import REPO, Member, wait_until_same
from tests.team.postgres import Postgres
from tests.team.together import team

_DAY = 86_400.0


class Proxy:
    """Passes bytes on to the server, each piece after a delay."""

    def __init__(self, port: int) -> None:
        self.delay, self.port = 0.0, free_port()
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", self.port))
        self._listening.settimeout(0.2)
        self._open = True
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while self._open:
            with contextlib.suppress(TimeoutError, OSError):
                ours, _ = self._listening.accept()
                theirs = socket.create_connection(("127.0.0.1", self._target))
                for pair in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65_536):
                time.sleep(self.delay)
                target.sendall(piece)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._open = False
        self._listening.close()


@contextlib.contextmanager
def proxy(postgres: Postgres) -> Iterator[Proxy]:
    one = Proxy(postgres.port)
    try:
        yield one
    finally:
        one.close()


def _slowest_call(member: Member, number: int = 30) -> float:
    """The longest of some calls that an agent makes, in seconds."""
    slowest = 0.0
    for index in range(number):
        began = time.monotonic()
        member.hint(f"speed-{index % 5}", f"make {index} {began}")
        member.call("nudge.get_hint", component="api", key="speed-0", context={"repo": f"git:{REPO}"})
        slowest = max(slowest, time.monotonic() - began)
    return slowest


def _problem(member: Member, part: str) -> str:
    def found() -> str | None:
        problem = member.status()["problem"]
        return problem if problem and part in problem else None

    problem: str = eventually(found, f"{member.role} says {part!r}")
    return problem


def away(postgres: Postgres) -> str:
    """Down, then slow, then read-only: commands go on as fast as before, the status says why, and all arrives later."""
    with proxy(postgres) as between, team("alice", "bob") as (alice, bob):
        alice.join(postgres.url("alice", port=between.port))
        bob.join(postgres.url("bob"))
        alice.note("First", "words")
        wait_until_same([alice, bob])
        usual = _slowest_call(alice)
        postgres.stop()
        problems = [_problem(alice, "")]
        alice.note("While down", "words")
        down = _slowest_call(alice)
        postgres.start()
        wait_until_same([alice, bob])
        between.delay = 2.0
        alice.note("While slow", "words")
        problems.append(_problem(alice, "within 1.5 s"))
        slow = _slowest_call(alice)
        between.delay = 0.0
        wait_until_same([alice, bob])
        postgres.psql("ALTER SYSTEM SET default_transaction_read_only = on")
        postgres.psql("SELECT pg_reload_conf()")
        alice.note("While read-only", "words")
        problems.append(_problem(alice, "read-only"))
        postgres.psql("SET default_transaction_read_only = off; ALTER SYSTEM RESET default_transaction_read_only")
        postgres.psql("SELECT pg_reload_conf()")
        wait_until_same([alice, bob])
        assert max(down, slow) <= 5 * usual + 0.25, (usual, down, slow)
        return (
            f"slowest call {usual * 1e3:.0f} ms, server down {down * 1e3:.0f} ms, slow {slow * 1e3:.0f} ms; told:"
            f" {'; '.join(problems)}"
        )


def restored(postgres: Postgres) -> str:
    """A database that is put back to yesterday's backup gets again what it lost, from those who wrote it, whether the
    administrator told members about it or not."""
    with team("alice", "bob") as (alice, bob):
        for member in (alice, bob):
            member.join(postgres.url(member.role))
        alice.note("Before", "in the backup")
        bob.hint("before", "make before")
        wait_until_same([alice, bob])
        lost = 0
        for told in (True, False):
            backup = postgres.base / f"backup-{told}"
            postgres.dump(Path("/tmp") / backup.name)  # the server's user need not write to our directory
            for index in range(3):
                alice.note(f"After {told} {index}", "not in the backup")
                bob.hint(f"after-{told}-{index}", "make after")
            alice.note("Before", f"changed after the backup {told}")
            expected = wait_until_same([alice, bob])
            postgres.restore(Path("/tmp") / backup.name)
            (Path("/tmp") / backup.name).unlink()
            if told:
                postgres.psql(RESTORED, database="team")
            lost += 7
            eventually(partial(_has_rows, postgres, lost + 2), "the log has it again", timeout=60)
            with team("dave") as (dave,):
                dave.join(postgres.url("dave"))
                assert wait_until_same([alice, bob, dave]) == expected
        return f"{lost} changes that the backups did not have came back; a fresh machine has the same"


_COUNT = "SELECT count(*) FROM nudge_team.ops"


def _has_rows(postgres: Postgres, number: int) -> bool:
    return int(postgres.rows(_COUNT)[0][0]) >= number


def revoked(postgres: Postgres) -> str:
    """A role that is let out of a repo gets and sends nothing of it, and is told so; let in again, it has all."""
    with team("alice", "bob") as (alice, bob):
        for member in (alice, bob):
            member.join(postgres.url(member.role))
        alice.note("First", "words")
        wait_until_same([alice, bob])
        postgres.psql("REVOKE repo_0 FROM bob")
        alice.note("Not for bob", "words")
        bob.note("From bob", "words")
        problem = eventually(lambda: bob.repo()["problem"], "bob is told")
        assert "not let into it" in problem
        assert not [row for row in bob.state()["notes"] if row[0] == "Not for bob"]
        assert not [row for row in alice.state()["notes"] if row[0] == "From bob"]
        postgres.psql("REVOKE nudge_team FROM bob")
        _problem(bob, "no right to the shared log")
        postgres.psql("GRANT nudge_team, repo_0 TO bob")
        wait_until_same([alice, bob])
        return f"told: {problem}; let in again, it has all"


def month_away(postgres: Postgres) -> str:
    """A machine that was offline for 31 days, in which a note and the session of its hints ended: what it changed then
    is of then, and it has the same as the others."""
    with team("alice", "bob", ago=31 * _DAY) as (alice, bob):
        for member in (alice, bob):
            member.join(postgres.url(member.role))
        for title in ("Both", "Only bob", "Deleted", "Deleted there"):
            alice.note(title, "a month ago")
        alice.note("Short", "of the time", tier="short")
        alice.hint("both", "make ago")
        alice.hint("only-alice", "make ago")
        before = wait_until_same([alice, bob])
        bob.leave_network()
        bob.note("Both", "bob, a month ago")
        bob.note("Only bob", "bob, a month ago")
        bob.hint("both", "make bob-ago")
        bob.forget("Deleted there")
        bob.stop()
        alice.stop()
        alice.ago = bob.ago = 0.0
        alice.start()
        alice.note("Both", "alice, now")
        alice.note("Deleted there", "alice, now")
        alice.hint("both", "make now")
        alice.forget("Deleted")
        alice.wait_until_sent()
        bob.start()
        after = wait_until_same([alice, bob])
    words = {row[0]: row[1] for row in after["notes"]}
    assert words == {"Both": "alice, now", "Only bob": "bob, a month ago", "Deleted there": "alice, now"}, words
    assert {row[1]: row[2] for row in after["hints"]} == {"both": "make now", "only-alice": "make ago"}, after["hints"]
    age = {row[0]: row[-1] for row in before["notes"]}["Both"] - time.time()
    assert abs(age + 31 * _DAY) < 600, age
    return f"{len(before['notes'])} notes and {len(before['hints'])} hints of a month ago, {len(words)} notes now"


def long_away(postgres: Postgres) -> str:
    """A machine that was away while things were changed, deleted and compacted has the same as a fresh one."""
    with team("alice", "bob", ahead={"alice": -100 * _DAY}) as (alice, bob):
        for member in (alice, bob):
            member.join(postgres.url(member.role))
        for index in range(20):
            alice.note(f"Note {index}", "as it was")
        wait_until_same([alice, bob])
        bob.stop()
        for version in range(3):
            for index in range(10):
                alice.note(f"Note {index}", f"version {version}")
            alice.wait_until_sent()
        for index in range(10, 15):
            alice.forget(f"Note {index}")
        alice.wait_until_sent()
        before = int(postgres.rows(_COUNT)[0][0])
        postgres.psql(compact_sql(90), database="team")
        after = int(postgres.rows(_COUNT)[0][0])
        assert after < before, (before, after)
        bob.start()
        with team("dave") as (dave,):
            dave.join(postgres.url("dave"))
            state = wait_until_same([alice, bob, dave])
        assert len(state["notes"]) == 15
        return f"{before} changes compacted to {after}; the one that was away and a fresh one have the same"
