"""The two halves meet: what agents did moves the hints they did it with, and what a hook told is in the session's
trace."""

from __future__ import annotations

import json
import os
from typing import Any

from nudge.core.context import this_system
from nudge.storage import spool
from tests.contract.repos import clone, git
from tests.harness import Machine, eventually


def _ran(
    machine: Machine,
    command: str,
    session: str,
    call: str,
    *,
    failed: bool = False,
    error: str = "Exit code 2",
    cwd: str | None = None,
    **environ: str,
) -> None:
    event: dict[str, Any] = {
        "session_id": session,
        "cwd": cwd or str(machine.base),
        "tool_name": "Bash",
        "tool_use_id": call,
        "tool_input": {"command": command},
    }
    outcome = {"error": error} if failed else {"tool_response": {"stdout": "", "stderr": "", "interrupted": False}}
    name = "PostToolUseFailure" if failed else "PostToolUse"
    done = machine.cli("record", stdin=json.dumps({**event, **outcome, "hook_event_name": name}), **environ)
    assert done.returncode == 0, done.stderr


def _uses(machine: Machine) -> int:
    eventually(lambda: not spool.pending(machine.runtime), "the spool is drained")
    uses: int = machine.json("get", "api", "test")["hint"].get("use_count", 0)
    return uses


def test_a_command_that_worked_raises_its_hint_once_a_session(machine: Machine) -> None:
    """Successes and failures are counted, each session once, other commands not; the explanation has both."""
    machine.json("set", "api", "test", "pytest -q", "--type", "command", "--global")
    _ran(machine, "pytest -q", "s1", "t1")
    _ran(machine, "pytest -q", "s1", "t2")
    _ran(machine, "pytest -x", "s1", "t3")
    eventually(lambda: _uses(machine) == 1, "the hint is credited")
    _ran(machine, "pytest -q", "s2", "t4")
    eventually(lambda: _uses(machine) == 2, "another session credits it again")
    _ran(machine, "pytest -q", "s3", "t5", failed=True)
    eventually(lambda: machine.json("get", "api", "test")["hint"].get("failure_count") == 1, "a failure is counted")
    reasons = machine.json("get", "api", "test")["match_explain"]["reasons"]
    assert reasons[-2:] == ["worked 2 times, last now", "failed 1 time"]


def test_failed_tests_are_no_failure_of_the_hint(machine: Machine) -> None:
    """The command did what it is for: only the session's work is wrong. It may still be credited in that session."""
    machine.json("set", "api", "test", "npm test", "--type", "command", "--global")
    _ran(machine, "npm test", "s1", "t1")
    eventually(lambda: _uses(machine) == 1, "the hint is credited")
    report = "Exit code 1\nFAIL src/auth.test.ts\n  ● login › works\n\nTests:       1 failed, 11 passed, 12 total"
    _ran(machine, "npm test", "s2", "t2", failed=True, error=report)
    _ran(machine, "npm test", "s3", "t3", failed=True, error="Exit code 1\nsrc/a.ts(3,5): error TS2304: no name")
    _ran(machine, "npm test", "s2", "t4")
    eventually(lambda: _uses(machine) == 2, "the success after it credits the hint")
    assert "failure_count" not in machine.json("get", "api", "test")["hint"]


def test_a_hint_for_elsewhere_is_not_credited(machine: Machine) -> None:
    """Only a hint that is eligible where the command ran."""
    machine.json("set", "api", "test", "pytest -q", "--type", "command", "--scope-cwd-glob", "/elsewhere/**")
    machine.json("set", "api", "mark", "true", "--type", "command", "--global")
    _ran(machine, "pytest -q", "s1", "t1")
    _ran(machine, "true", "s1", "t2")
    eventually(
        lambda: machine.json("get", "api", "mark")["hint"].get("use_count") == 1, "the later command is credited"
    )
    (listed,) = [row for row in machine.json("ls", "api")["hints"] if row["key"] == "test"]
    assert "use_count" not in listed["hint"]


def _used(machine: Machine) -> dict[str, int]:
    """How much more often each variant of api/test worked than it failed, by its command."""
    eventually(lambda: not spool.pending(machine.runtime), "the spool is drained")
    hints = [row["hint"] for row in machine.json("ls", "api")["hints"] if row["key"] == "test"]
    return {hint["value"]["cmd"]: hint.get("use_count", 0) - hint.get("failure_count", 0) for hint in hints}


def test_the_variant_that_says_the_command_is_credited(machine: Machine) -> None:
    """Not the one that `get` would return here, which says something else; and what failed is lowered in the same
    way."""
    repo = clone(machine.base / "api")
    machine.json("set", "api", "test", "make test", "--type", "command", "--global")
    machine.json("set", "api", "test", "DOCKER=1 make test", "--type", "command", cwd=repo)
    assert machine.json("get", "api", "test", cwd=repo)["hint"]["value"]["cmd"] == "DOCKER=1 make test"
    _ran(machine, "make test", "s1", "t1", cwd=repo)
    eventually(lambda: _used(machine) == {"make test": 1, "DOCKER=1 make test": 0}, "the global one is credited")
    _ran(machine, "DOCKER=1 make test", "s1", "t2", cwd=repo)
    eventually(lambda: _used(machine) == {"make test": 1, "DOCKER=1 make test": 1}, "then the repo's own")
    _ran(machine, "make test", "s2", "t3", cwd=repo, failed=True)
    eventually(lambda: _used(machine) == {"make test": 0, "DOCKER=1 make test": 1}, "and the global one lowered")


def test_a_hint_for_an_environment_is_credited_where_that_is_so(machine: Machine) -> None:
    """The hook is asked for the variables that such a hint needs; where they are not set it is not the hint for that
    place."""
    machine.json("set", "api", "test", "make test", "--type", "command", "--scope-env-match", "STAGE=ci")
    machine.json("set", "api", "mark", "true", "--type", "command", "--global")
    _ran(machine, "make test", "s1", "t1")
    _ran(machine, "true", "s1", "t2")
    eventually(
        lambda: machine.json("get", "api", "mark")["hint"].get("use_count") == 1, "the later command is credited"
    )
    assert _used(machine) == {"make test": 0}

    def credited() -> bool:
        """On a busy machine an event may have to wait in the spool, and comes out of it without the environment."""
        _ran(machine, "make test", os.urandom(4).hex(), "t3", STAGE="ci")
        return _used(machine)["make test"] > 0

    eventually(credited, "the hint for that stage is credited")


def test_the_branch_is_the_one_at_the_time(machine: Machine) -> None:
    """An event that waited in the spool is judged by the branch on which its command ran."""
    repo = clone(machine.base / "api", "hotfix")
    machine.json("set", "api", "test", "make test", "--type", "command", "--scope-branch", "hotfix")
    machine.cli("stop")
    eventually(machine.lock_is_free, "the server ends")
    _ran(machine, "make test", "s1", "t1", cwd=repo)
    git(machine.base / "api", "checkout", "--quiet", "-b", "main")
    machine.json("ls")
    eventually(lambda: _used(machine) == {"make test": 1}, "the hint for the branch is credited")


def test_what_a_hook_told_by_itself_is_in_the_trace(machine: Machine) -> None:
    """A session that starts before any server is told by the hook; the next server keeps what was told."""
    machine.json("set", "api", "test", "pytest -q", "--scope-cwd-glob", f"{machine.base}/**")
    machine.cli("stop")
    eventually(machine.lock_is_free, "the server ends")
    start = {"session_id": "s9", "cwd": str(machine.base), "hook_event_name": "SessionStart", "source": "startup"}
    told = machine.cli("record", stdin=json.dumps(start), NUDGE_AUTOSTART="0")
    assert told.returncode == 0 and "api/test" in told.stdout
    machine.json("ls")
    eventually(lambda: not spool.pending(machine.runtime), "the spool is drained")
    (kept,) = machine.json("trace", "s9")["injections"]
    assert kept["text"].strip() == told.stdout.strip()


def test_a_hint_for_everywhere_is_told_where_it_was_credited(machine: Machine) -> None:
    """By `bump` or by a command that worked there, and not in another repo; a scope of os alone names no place. The
    same without a server, and after a negative credit no more."""
    one, two = clone(machine.base / "one"), clone(machine.base / "two")
    machine.json("set", "tools", "k", "echo global", "--type", "command", "--global")
    machine.json("set", "tools", "os", "echo os", "--type", "command", "--global", "--scope-os", str(this_system()))

    def told(cwd: str) -> list[str]:
        return [name for name in ("tools/k", "tools/os") if name in machine.cli("inject", cwd=cwd).stdout]

    assert told(one) == told(two) == []
    machine.json("bump", "tools", "k", cwd=one)
    assert (told(one), told(two)) == (["tools/k"], [])
    _ran(machine, "echo os", "s1", "t1", cwd=two)
    eventually(lambda: told(two) == ["tools/os"], "the command that worked is told")
    assert told(one) == ["tools/k"]
    machine.json("set", "tools", "k", "echo changed", "--type", "command", "--global", cwd=two)
    assert (told(one), told(two)) == (["tools/k"], ["tools/os"])
    machine.json("bump", "tools", "k", "--delta", "2", cwd=two)
    machine.json("bump", "tools", "k", "--delta", "-1", cwd=one)
    assert (told(one), told(two)) == ([], ["tools/k", "tools/os"])
    machine.cli("stop")
    eventually(machine.lock_is_free, "the server ends")
    for cwd, is_told in ((one, False), (two, True)):
        start = {"session_id": f"start {cwd}", "cwd": cwd, "hook_event_name": "SessionStart", "source": "startup"}
        printed = machine.cli("record", stdin=json.dumps(start), NUDGE_AUTOSTART="0").stdout
        assert ("tools/k" in printed) is is_told
