"""`kill -9` at every step of push and pull: what was acknowledged is everywhere once, and nothing is there twice."""

from __future__ import annotations

import random
import time

from nudge.core.errors import NudgeError
from tests.harness import eventually
from tests.team.launcher import STEPS
from tests.team.machines import REPO, Member, wait_until_same
from tests.team.postgres import Postgres
from tests.team.together import team

_SEED = 26
_LAST_CALL = 4  # a step is called about so often in a round
_UNREACHED = 1.5  # seconds after which the step was not reached in this life; then the process is killed at rest


class _Victim:
    """A machine whose server dies again and again, and what it acknowledged."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.notes: list[str] = []
        self.hints: list[str] = []
        self.at_step = 0

    def live_and_die(self, number: int, step: str, moment: str, count: int) -> None:
        """Start, change something, and die at the step."""
        self.member.start(TEAM_TEST_DIES=f"{step}:{moment}:{count}")
        if self._acknowledges(lambda: self.member.note(f"Note {number}", f"words {number}")):
            self.notes.append(f"Note {number}")
        if self._acknowledges(
            lambda: self.member.hint(f"hint-{number}", f"make {number}", component=f"alice{number // 100}")
        ):
            self.hints.append(f"hint-{number}")
        until = time.monotonic() + _UNREACHED
        while self.member.is_running and time.monotonic() < until:
            time.sleep(0.02)
        self.at_step += not self.member.is_running
        self.member.kill()

    def _acknowledges(self, change: object) -> bool:
        try:
            assert callable(change)
            change()
        except (NudgeError, OSError):
            return False
        return True


def kills(postgres: Postgres, number: int) -> str:
    chance = random.Random(_SEED)
    with team("alice", "bob") as (alice, bob):
        for member in (alice, bob):
            member.join(postgres.url(member.role))
        alice.kill()
        victim, theirs = _Victim(alice), []
        plan = [(step, moment) for step in STEPS for moment in ("before", "after")]
        for index in range(number):
            bob.note(f"Bob {index}", f"words {index}")
            bob.hint(f"bob-{index}", f"make {index}", component=f"bob{index // 100}")
            theirs.append(f"Bob {index}")
            step, moment = plan[index % len(plan)]
            victim.live_and_die(index, step, moment, chance.randint(1, _LAST_CALL))
        alice.start()
        eventually(lambda: alice.is_up_to_date() and bob.is_up_to_date(), "all is sent and received", timeout=120)
        state = wait_until_same([alice, bob])
        titles, keys = [row[0] for row in state["notes"]], [row[1] for row in state["hints"]]
        lost = [title for title in (*victim.notes, *theirs) if title not in titles]
        lost += [key for key in victim.hints if key not in keys]
        sql = "SELECT count(*) FROM (SELECT 1 FROM nudge_team.ops GROUP BY project, kind, key HAVING count(*) > 1) AS t"
        ((twice,),) = postgres.rows(sql)
        gaps = "SELECT count(*) FROM (SELECT 1 FROM nudge_team.ops GROUP BY origin HAVING max(n) <> count(*)) AS t"
        assert postgres.rows(gaps) == [["0"]]
        assert not lost and twice == "0", (lost, twice)
        assert victim.at_step >= number // 3, f"only {victim.at_step} of {number} died at a step"
        acknowledged = len(victim.notes) + len(victim.hints) + 2 * len(theirs)
        origins = postgres.rows(f"SELECT count(DISTINCT origin) FROM nudge_team.ops WHERE project = '{REPO}'")[0][0]  # noqa: S608
        return (
            f"{number} kills, {victim.at_step} of them at a step: {acknowledged} acknowledged changes,"
            f" {len(lost)} lost, {twice} twice, {origins} origins"
        )
