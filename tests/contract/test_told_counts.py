"""What `nudge stats` and `nudge told` count, on scripted sessions of which every number is known."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from nudge.telling import ledger
from tests.contract.repos import clone
from tests.contract.scripted import Agent
from tests.harness import TIMEOUT, Machine

BROKEN, ANSWER = "/usr/bin/python3 -m pytest tests/a.py", "pytest tests/a.py"
ERROR = "Exit code 1\n/usr/bin/python3: No module named pytest"
HALF = "shadow:50%"


class Desk:
    """A clone, and the sessions that work in it."""

    def __init__(self, machine: Machine, **environ: str) -> None:
        self.machine, self.repo = machine, clone(machine.base / "api")
        (Path(self.repo) / "tests").mkdir()
        (Path(self.repo) / "tests/a.py").touch()
        machine.prepared_server(**environ)

    def agent(self, session: str) -> Agent:
        return Agent(self.machine, session, self.repo)

    def learns(self, session: str) -> Agent:
        """A session that fails, and finds by itself what works."""
        agent = self.agent(session)
        agent.fails(BROKEN, ERROR)
        agent.runs(ANSWER, "1 passed")
        return agent

    def counts(self, *moments: tuple[str, int, int], met_again: int = 0, answered: int = 0, spared: int = 0) -> None:
        """Check the counts of the one week: those that were told and used at each kind of moment, and of failures."""
        told, used = sum(row[1] for row in moments), sum(row[2] for row in moments)
        expected = {"told": told, "used": used, "in_vain": told - used}
        expected |= {"met_again": met_again, "answered": answered, "spared": spared}
        self.check(lambda week: ({name: week[name] for name in expected}, _moments(week)), (expected, list(moments)))

    def check(self, get: Any, expected: Any) -> None:
        """What is counted is stored in the background: wait until the numbers are as expected."""
        until = time.monotonic() + TIMEOUT
        while True:
            weeks = self.machine.json("stats", "--all-repos")["weeks"]
            found = get(weeks[0]) if weeks else None
            if found == expected or time.monotonic() > until:
                assert found == expected, self.machine.cli("told", "--all-repos").stdout
                return

    def told(self) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = self.machine.json("told", "--all-repos")["lines"]
        return lines


def _moments(counts: dict[str, Any]) -> list[tuple[str, int, int]]:
    rows = [(row["moment"], row["told"], row["used"]) for row in counts["moments"]]
    return [row for row in rows if row[1]]


def _lines(start: str) -> int:
    """The number of lines of a start that says what fails here: the fact, and what else has its command."""
    assert "fails here" in start
    return sum(line.startswith("- ") for line in start.splitlines())


@pytest.fixture
def desk(machine: Machine) -> Desk:
    return Desk(machine)


def test_an_answer_that_is_followed_is_used(desk: Desk) -> None:
    """The first session meets nothing again. The second fails alike, is told what worked, and runs it, with other
    arguments; running it once more counts for nothing."""
    desk.learns("s1")
    agent = desk.agent("s2")
    assert '"pytest' in agent.fails(BROKEN, ERROR)
    agent.runs(f"cd tests && {ANSWER} -q")
    agent.runs(ANSWER)
    desk.counts(("failure", 1, 1), met_again=1, answered=1)


def test_what_was_done_before_it_was_told_is_told_in_vain(desk: Desk) -> None:
    """The session had run the command with success before it failed: it needed no line, whatever it runs later. That a
    command failed before, or was only printed, is no such thing."""
    desk.learns("s1")
    knew = desk.agent("knew")
    knew.runs(ANSWER)
    assert knew.fails(BROKEN, ERROR)
    knew.runs(ANSWER)
    desk.counts(("failure", 1, 0), met_again=1, answered=1)
    assert [line["unused"] for line in desk.told()] == ["before"]
    assert "done before it was told" in desk.machine.cli("told", "--all-repos").stdout


def test_a_command_that_was_only_printed_was_not_done_before(desk: Desk) -> None:
    """It is printed, and it fails, before it is told; then it runs."""
    agent = desk.agent("s2")
    agent.runs(f"echo {ANSWER}")
    agent.fails(ANSWER, "Exit code 1\nConnectionRefusedError: [Errno 111] Connection refused")
    desk.learns("s1")
    assert agent.fails(BROKEN, ERROR)
    agent.runs(ANSWER)
    desk.counts(("failure", 1, 1), met_again=1, answered=1)


def test_an_answer_that_fails_is_told_in_vain(desk: Desk) -> None:
    """The agent did what it was told, and it did not work; nor does printing the command count as running it."""
    desk.learns("s1")
    agent = desk.agent("s2")
    assert agent.fails(BROKEN, ERROR)
    agent.runs(f"echo {ANSWER}")
    agent.runs(f"{ANSWER} || true")
    agent.fails(ANSWER, "Exit code 1\nConnectionRefusedError: [Errno 111] Connection refused")
    desk.counts(("failure", 1, 0), met_again=1, answered=1)


def test_a_line_that_is_told_twice_is_used_once(desk: Desk) -> None:
    """Told at the start and again when it failed all the same: the answer is what helped, and nothing was spared."""
    desk.learns("s1")
    desk.learns("s2")
    desk.check(lambda week: week["told"], 1)
    agent = desk.agent("s3")
    lines = _lines(agent.start())
    assert agent.fails(BROKEN, ERROR)
    agent.runs(ANSWER)
    desk.counts(("start", lines, 0), ("failure", 2, 2), met_again=2, answered=2)
    assert [line["unused"] for line in desk.told()] == [None, *["repeated"] * lines, None]


def test_a_failure_is_spared_by_a_start(desk: Desk) -> None:
    """A session that is told at its start and runs the answer without failing is spared the failure; one that does
    neither is told in vain."""
    desk.learns("s1")
    desk.learns("s2")
    agent = desk.agent("s3")
    lines = _lines(agent.start())
    agent.runs(ANSWER)
    lines += _lines(desk.agent("s4").start())
    desk.counts(("start", lines, 1), ("failure", 1, 1), met_again=1, answered=1, spared=1)


def test_a_session_that_goes_on_is_told_in_vain_what_it_has_done(desk: Desk) -> None:
    """The start of a session that was resumed tells again what it has run already."""
    desk.learns("s1")
    desk.learns("s2")
    agent = desk.agent("s3")
    agent.runs(ANSWER)
    lines = _lines(agent.start("resume"))
    agent.runs(ANSWER)
    desk.counts(("start", lines, 0), ("failure", 1, 1), met_again=1, answered=1)


def test_a_known_failure_that_is_not_answered_was_met_again(desk: Desk) -> None:
    """The line is banned: the session finds for the second time what an earlier one had found."""
    desk.learns("s1")
    desk.agent("s2").fails(BROKEN, ERROR)
    desk.counts(("failure", 1, 0), met_again=1, answered=1)
    name = desk.told()[0]["name"]
    assert desk.machine.cli("told", "--never", name, cwd=desk.repo).returncode == 0
    desk.learns("s3")
    desk.counts(("failure", 1, 0), met_again=2, answered=1)


def test_notes_are_used_when_they_are_fetched_afterwards(desk: Desk) -> None:
    """A note about a prompt, and one about a file: the one that was fetched before is told in vain."""
    store = ("note", "store", "--kind", "decision", "-c", "Redis lost them twice.")
    desk.machine.cli(*store, "-T", "Session tokens live in Postgres", cwd=desk.repo)
    desk.machine.cli(*store, "-T", "The tests of a.py need no network", "--files", "tests/a.py", cwd=desk.repo)
    agent = desk.agent("s1")
    agent.calls("memory_get", id=2)
    assert "m1" in agent.asks("move the session tokens from postgres into redis")
    assert "m2" in agent.reads(f"{desk.repo}/tests/a.py")
    agent.calls("memory_get", id=1)
    agent.calls("memory_get", id=2)
    desk.counts(("prompt", 1, 1), ("file", 1, 0))


def test_a_shadow_session_is_counted_beside_the_others(machine: Machine) -> None:
    """What it would have been told, and what it did without: it finds the answer itself, so its use is what the same
    line is worth at most; nothing is answered there. A line of its start is spared without having been told, too."""
    desk = Desk(machine, NUDGE_TELL=HALF)
    told, shadow = (
        list(islice((f"s{number}" for number in range(99) if ledger.is_shadow(HALF, f"s{number}") is side), 3))
        for side in (False, True)
    )
    desk.learns(told[0])
    assert desk.agent(told[1]).fails(BROKEN, ERROR)
    agent = desk.agent(shadow[0])
    assert agent.fails(BROKEN, ERROR) == ""
    agent.runs(ANSWER)
    spared = desk.agent(shadow[1])
    assert spared.start() == ""
    spared.runs(ANSWER)
    lines = _lines(desk.agent(told[1]).start("resume"))
    desk.check(
        lambda week: [
            (side["told"], side["used"], side["met_again"], side["answered"], side["spared"])
            for side in (week, week["shadow"])
        ],
        [(1 + lines, 0, 1, 1, 0), (1 + lines, 2, 1, 0, 1)],
    )
    table = desk.machine.cli("stats", "--all-repos").stdout.splitlines()
    assert table[0].endswith("|  withheld  done anyway  met again  spared")
    assert table[1].split()[-4:] == [str(1 + lines), "2", "1", "1"]
