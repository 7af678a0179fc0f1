"""The ledger through the doors: what was told is listed with its use, a line can be banned, and some sessions are told
nothing for comparison."""

from __future__ import annotations

from typing import Any

from tests.contract.test_telling import decide, in_time, prompted, record
from tests.harness import Machine, eventually

_PROMPT = "move the session tokens from redis into postgres"


def _decided(machine: Machine, **environ: str) -> None:
    machine.http_only(**environ)
    decide(machine, "Session tokens live in Redis", "Postgres was too slow.")


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
    assert "used 1" in machine.cli("stats", "--all-projects").stdout


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
    assert machine.cli("told", "--allow", "m1").returncode == 0
    in_time(lambda session: prompted(machine, f"again-{session}", _PROMPT))


def test_a_shadow_session_is_told_nothing_and_logged(machine: Machine) -> None:
    """With a share of 100 % every session is one."""
    _decided(machine, NUDGE_TELL="shadow:100%")
    assert record(machine, hook_event_name="SessionStart", session_id="s1", source="startup") == ""
    (line,) = _told(machine, 1)
    assert line["is_shadow"] is True
    assert machine.json("stats", "--all-projects")["weeks"][0]["told"] == 0


def test_nothing_is_told_when_telling_is_off(machine: Machine) -> None:
    """Neither at a start nor on a prompt, and the ledger stays empty."""
    _decided(machine, NUDGE_TELL="0")
    assert record(machine, hook_event_name="SessionStart", session_id="s1", source="startup") == ""
    assert prompted(machine, "s1", _PROMPT) == ""
    assert machine.json("told", "--all-projects")["lines"] == []
