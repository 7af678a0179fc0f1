"""The ledger through the interfaces: what was told is listed with its use, a line can be banned, and some sessions are
told nothing for comparison."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import islice
from typing import Any

from nudge.telling import ledger
from tests.contract.test_telling import decide, in_time, prompted, record
from tests.harness import Machine, eventually

_PROMPT = "move the session tokens from redis into postgres"


def _decided(machine: Machine, **environ: str) -> None:
    machine.prepared_server(**environ)
    decide(machine, "Session tokens live in Redis", "Postgres was too slow.", tags=["pinned"])


def _told(machine: Machine, count: int) -> list[dict[str, Any]]:
    """The ledger, when it has so many lines."""

    def lines() -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] = machine.json("told", "--all-projects")["lines"]
        return found if len(found) >= count else None

    result: list[dict[str, Any]] = eventually(lines, "the lines are in the ledger")
    return result


def test_what_was_told_is_listed_and_counts_as_used_when_it_is_fetched(machine: Machine) -> None:
    """With moment and reason; `memory_get` of the note is a use of the line."""
    _decided(machine)
    session, _ = in_time(lambda session: prompted(machine, session, _PROMPT))
    line = next(line for line in _told(machine, 1) if line["session_id"] == session)
    assert (line["moment"], line["name"], line["used_at"], line["is_shadow"]) == ("prompt", "m1", None, False)
    assert "redis" in line["reason"] and '"Session tokens live in Redis"' in line["text"]
    record(
        machine,
        hook_event_name="PostToolUse",
        session_id=session,
        tool_name="mcp__nudge__memory_get",
        tool_use_id="t1",
        tool_input={"id": 1},
        tool_response="{}",
    )

    def used() -> bool:
        return any(line["used_at"] for line in _told(machine, 1) if line["session_id"] == session)

    eventually(used, "the use is in the ledger")
    (week,) = machine.json("stats", "--all-projects")["weeks"]
    assert week["used"] == 1 <= week["told"] and week["spared"] == 0
    table = machine.cli("stats", "--all-projects").stdout.splitlines()
    assert table[0].split() == ["week", "moment", "told", "used", "in", "vain", "met", "again", "answered", "spared"]
    assert ["prompt", str(week["told"]), "1"] in [row.split()[:3] for row in table]


def test_the_start_is_in_the_ledger(machine: Machine) -> None:
    """Each line of a session's first text, with the start as its moment."""
    _decided(machine)
    record(machine, hook_event_name="SessionStart", session_id="s1", source="startup")
    (line,) = _told(machine, 1)
    assert (line["moment"], line["name"], line["kind"]) == ("start", "m1", "note")
    assert prompted(machine, "s1", _PROMPT) == "", "it was told at the start"


def test_a_banned_line_is_never_told(machine: Machine) -> None:
    """Neither on a prompt nor at a start, until it is allowed again; by the number of the row or by its name."""
    _decided(machine)
    in_time(lambda session: prompted(machine, session, _PROMPT))
    number = str(_told(machine, 1)[0]["id"])
    assert machine.json("told", "--never", number) == {"line": "m1", "never": True}
    assert machine.json("told", "--all-projects")["never"] == ["m1"]
    assert prompted(machine, "banned", _PROMPT) == ""
    assert "Redis" not in record(machine, hook_event_name="SessionStart", session_id="next", source="startup")
    assert machine.cli("told", "--never", "m99").returncode == 1
    assert machine.cli("told", "--allow", "m1", "--project", "shop").returncode == 1, "it is banned elsewhere"
    assert machine.cli("told", "--allow", "m1", "--project", "api").returncode == 0
    in_time(lambda session: prompted(machine, f"again-{session}", _PROMPT))


_BROKEN = "/usr/bin/python3 -m pytest tests/a.py"


def _run(machine: Machine, repo: str, session: str, command: str, error: str = "") -> str:
    name = "PostToolUseFailure" if error else "PostToolUse"
    outcome: dict[str, Any] = {"error": error} if error else {"tool_response": {}}
    call = {"tool_name": "Bash", "tool_use_id": f"{command} in {session}", "tool_input": {"command": command}}
    return record(machine, cwd=repo, hook_event_name=name, session_id=session, **call, **outcome)


def _fail(machine: Machine, repo: str, session: str) -> str:
    return _run(machine, repo, session, _BROKEN, "Exit code 1\n/usr/bin/python3: No module named pytest")


def test_a_ban_holds_in_its_project_and_for_the_next_server(machine: Machine) -> None:
    """A failure whose line is banned is met with silence, also as the first event that a server gets; another project
    with the same failure is answered."""
    machine.prepared_server()
    for repo in ("/nowhere/api", "/nowhere/shop"):
        _fail(machine, repo, f"first in {repo}")
        _run(machine, repo, f"first in {repo}", "pytest tests/a.py")
    in_time(lambda session: _fail(machine, "/nowhere/api", session))
    name = _told(machine, 1)[0]["name"]
    assert machine.cli("told", "--never", name, "--project", "/nowhere/shop").returncode == 1, "never told there"
    assert machine.cli("told", "--never", name, "--project", "/nowhere/api").returncode == 0
    assert machine.json("told", "--project", "/nowhere/api")["never"] == [name]
    assert machine.json("told", "--project", "/nowhere/shop")["never"] == []
    machine.cli("stop", "--force")
    eventually(machine.lock_is_free, "the server ends")
    machine.prepared_server()
    for number in range(3):
        assert _fail(machine, "/nowhere/api", f"after the ban {number}") == ""
    in_time(lambda session: _fail(machine, "/nowhere/shop", f"other-{session}"))


def test_a_shadow_session_is_told_nothing_and_logged(machine: Machine) -> None:
    """With a share of 100 % every session is one."""
    _decided(machine, NUDGE_TELL="shadow:100%")
    assert record(machine, hook_event_name="SessionStart", session_id="s1", source="startup") == ""
    (line,) = _told(machine, 1)
    assert line["is_shadow"] is True
    (week,) = machine.json("stats", "--all-projects")["weeks"]
    assert (week["told"], week["shadow"]["told"]) == (0, 1)


def test_nothing_is_told_when_telling_is_off(machine: Machine) -> None:
    """Neither at a start nor on a prompt, and the ledger stays empty."""
    _decided(machine, NUDGE_TELL="0")
    assert record(machine, hook_event_name="SessionStart", session_id="s1", source="startup") == ""
    assert prompted(machine, "s1", _PROMPT) == ""
    assert machine.json("told", "--all-projects")["lines"] == []


# The comparison

_HALF = "shadow:50%"
_SESSIONS = {  # commands and failures of each session
    False: [(2, 0), (1, 1), (0, 2), (0, 0)],
    True: [(1, 2), (0, 4)],
}


def _named(is_shadow: bool, count: int) -> list[str]:
    """Ids of sessions on one side."""
    ids = (f"session-{number}" for number in range(1_000))
    return list(islice((name for name in ids if ledger.is_shadow(_HALF, name) is is_shadow), count))


def _work(machine: Machine, session: str, passed: int, failed: int) -> None:
    prompted(machine, session, "please do it")
    for number in range(passed + failed):
        name = "PostToolUse" if number < passed else "PostToolUseFailure"
        outcome = {"tool_response": {"stdout": "ok"}} if number < passed else {"error": "Exit code 3"}
        event = {"tool_name": "Bash", "tool_use_id": f"t{number}", "tool_input": {"command": f"make step-{number}"}}
        record(machine, hook_event_name=name, session_id=session, **event, **outcome)


def test_shadow_sessions_are_compared_with_the_others(machine: Machine) -> None:
    """Failures and commands of a session, mean and 95 % interval by Student's t, checked by hand; a session that ran no
    command counts, one in which nothing was asked does not."""
    machine.prepared_server(NUDGE_TELL=_HALF)
    for is_shadow, sessions in _SESSIONS.items():
        *names, empty = _named(is_shadow, len(sessions) + 1)
        for name, (passed, failed) in zip(names, sessions, strict=True):
            _work(machine, name, passed, failed)
        record(machine, hook_event_name="SessionStart", session_id=empty, source="startup")

    def compared() -> Any:
        comparison = machine.json("stats", "--all-projects")["comparison"]
        counted = comparison and (comparison["told"]["sessions"], comparison["shadow"]["sessions"])
        return comparison if counted == (4, 2) else None

    comparison = eventually(compared, "every coin is kept")
    # told: failures 0 1 2 0: mean 0.75, s^2 = 2.75 / 3, error = 3.182 * sqrt(0.9167 / 4) = 1.523
    #       commands 2 2 2 0: mean 1.5, s^2 = 3 / 3, error = 3.182 * sqrt(1 / 4) = 1.591
    assert comparison["told"] == {
        "sessions": 4,
        "failures": {"mean": 0.75, "low": 0.0, "high": 2.27},
        "commands": {"mean": 1.5, "low": 0.0, "high": 3.09},
    }
    # shadow: failures 2 4: mean 3, s^2 = 2, error = 12.706 * sqrt(2 / 2) = 12.706
    #         commands 3 4: mean 3.5, s^2 = 0.5, error = 12.706 * sqrt(0.5 / 2) = 6.353
    assert comparison["shadow"] == {
        "sessions": 2,
        "failures": {"mean": 3.0, "low": 0.0, "high": 15.71},
        "commands": {"mean": 3.5, "low": 0.0, "high": 9.85},
    }
    # difference, by Welch: failures -2.25, e^2 = 0.2292 + 1, freedom = 1.2292^2 / (0.2292^2 / 3 + 1^2 / 1) = 1.48 -> 1,
    #   error = 12.706 * sqrt(1.2292) = 14.087; commands -2, e^2 = 0.25 + 0.25, freedom = 0.5^2 / (0.25^2 / 3 + 0.25^2)
    #   = 3, error = 3.182 * sqrt(0.5) = 2.25
    assert comparison["difference"] == {
        "failures": {"mean": -2.25, "low": -16.34, "high": 11.84},
        "commands": {"mean": -2.0, "low": -4.25, "high": 0.25},
    }
    printed = machine.cli("stats", "--all-projects").stdout.splitlines()
    assert printed[-3:] == [
        "told: 4 sessions, each with failures 0.75 (0 to 2.27), commands 1.5 (0 to 3.09)",
        "shadow: 2 sessions, each with failures 3 (0 to 15.71), commands 3.5 (0 to 9.85)",
        "difference: failures -2.25 (-16.34 to 11.84), commands -2 (-4.25 to 0.25)",
    ]


def test_one_session_has_no_interval(machine: Machine) -> None:
    """What one session did says nothing about the next; without any session on a side nothing is compared."""
    machine.prepared_server(NUDGE_TELL=_HALF)
    (told,), (shadow,) = _named(False, 1), _named(True, 1)
    _work(machine, told, 1, 0)
    assert machine.json("stats", "--all-projects")["comparison"] is None
    _work(machine, shadow, 0, 1)
    comparison = eventually(lambda: machine.json("stats", "--all-projects")["comparison"], "both coins are kept")
    assert comparison["difference"]["failures"] == {"mean": -1.0, "low": None, "high": None}
    assert comparison["told"]["commands"] == {"mean": 1.0, "low": None, "high": None}
    assert "failures 1 (too few sessions for an interval)" in machine.cli("stats", "--all-projects").stdout


def test_a_session_stays_on_its_side(machine: Machine) -> None:
    """The coin is kept with the session: a share that changes while it goes on does not change its side."""
    _decided(machine, NUDGE_TELL="shadow:1%")
    (session,) = islice((f"s{number}" for number in range(1_000) if ledger.is_shadow(_HALF, f"s{number}")), 1)
    assert not ledger.is_shadow("shadow:1%", session)
    start: dict[str, Any] = {"hook_event_name": "SessionStart", "session_id": session}
    assert "Redis" in record(machine, **start, source="startup")
    eventually(lambda: _coin(machine, session) == 0, "the coin is kept")
    machine.cli("stop", "--force")
    eventually(machine.lock_is_free, "the server ends")
    machine.prepared_server(NUDGE_TELL="shadow:99%")
    assert "Redis" in record(machine, **start, source="resume")
    assert record(machine, hook_event_name="SessionStart", session_id="another", source="startup") == ""


def _coin(machine: Machine, session: str) -> int | None:
    with closing(sqlite3.connect(f"{machine.runtime}/nudge.db")) as connection:
        row = connection.execute("SELECT is_shadow FROM coins WHERE session_id = ?", (session,)).fetchone()
    return None if row is None else int(row[0])
