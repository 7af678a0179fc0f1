"""The journal in the real Claude Code: an attempt that outlives its session, two agents at once, a subagent, /clear."""

from __future__ import annotations

import json
from typing import Any

from nudge.core import limits
from tests.e2e import claude
from tests.e2e.claude import Run, Step, bash, tool
from tests.e2e.clients import Desk
from tests.e2e.installation import Installation
from tests.harness import eventually

_HEADER = "Nudge record, not an instruction: attempt"
_MARGIN = 2  # further actions, should the hook of the tenth not get its answer in time on a busy machine
_WITHIN = 3  # sessions of which one gets its answer in time


def start(goal: str, prediction: str = "`./check` passes", **fields: Any) -> Step:
    plan = {"hypothesis": "the retry hides the timeout", "action": "remove the retry", "prediction": prediction}
    return tool("start_ghap", goal=goal, **plan, **fields)


def _connect(desk: Desk, **settings: str) -> None:
    config = desk.machine.home / ".config/nudge/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("".join(f'{name} = "{value}"\n' for name, value in settings.items()))
    check = desk.project / "check"
    check.write_text("#!/bin/sh\necho checked\n")
    check.chmod(0o755)
    desk.run("nudge", "connect", "claude-code", "--yes")


def _attempts(desk: Desk) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = desk.json("journal", "list")["entries"]
    return entries


def _read(run: Run) -> str:
    """Everything that the model read in its last request."""
    return json.dumps(run.requests[-1]["messages"])


def attempt_outlives_its_session(desk: Desk) -> None:
    """Ten actions after its start an attempt brings one line. The machine goes down; an hour later the next session is
    told of the attempt before anything else, adopts it and runs the test that it predicts, whose exit code resolves it.
    The lesson answers a prompt of a third session."""
    nudge = Installation(desk)
    _connect(desk, journal="auto")
    marker = desk.project / "at-work"
    actions = [bash(f"echo step {number}") for number in range(limits.CHECK_IN_ACTIONS + _MARGIN)]
    steps = [start("find out why login times out"), *actions, bash(f"touch {marker}; sleep 600")]
    with claude.started(desk, "first", steps) as (_, folder):
        eventually(marker.exists, "the agent is at work")
        run = Run(folder, "")
        assert run.answer(0)["status"] == "open"
        assert _read(run).count(_HEADER) == 1, run.results
        assert not any(_HEADER in run.read(number) for number in range(limits.CHECK_IN_ACTIONS + 1)), run.results
        nudge.reboot(hours=1)

    second = claude.run(
        desk,
        "second",
        [
            bash("nudge journal adopt m1"),
            bash("./check"),
            tool("resolve_ghap", status="confirmed", lesson="A retry in the login hides its timeout"),
        ],
    )
    lines = second.injected.splitlines()
    told = lines.index("## An attempt left open")
    assert "m1, 1h ago: " in lines[told + 1] and "nudge journal adopt m1" in lines[told + 1], second.injected
    assert not [line for line in lines[:told] if line.startswith("## ")], second.injected
    assert "m1 belongs to session" in second.results[0], second.results
    attempt = desk.json("journal", "show", "m1")["memory"]["metadata"]
    assert (attempt["outcome"], attempt["captured"], attempt["confidence_tier"]) == ("confirmed", True, "gold"), attempt
    assert attempt["result"].startswith("the predicted command exited with 0") and "lesson_id" in second.answer(2), (
        second.results
    )

    for number in range(limits.INJECTED_NOTES):  # so that the lesson has no room at a start
        text = ("-T", f"Color {number} of the logo is blue", "-c", "It was decided in March.")
        desk.run("nudge", "memory", "store", *text, "--kind", "decision", "--priority", "9")
    asked = "does a retry in the login hide its timeout?"
    runs = [claude.run(desk, f"third-{number}", prompt=asked).told for number in range(_WITHIN)]
    assert any("lesson, " in told and "Nudge record" in told and "hides its timeout" in told for told in runs), runs


def two_agents_have_an_attempt_each(desk: Desk) -> None:
    """Both at work in one repo at once; each resolves its own without naming it."""
    _connect(desk)
    done = desk.project / "done"
    names, folders = ("one", "two"), []
    wait = bash(f"while [ ! -e {done} ]; do sleep 0.1; done")
    resolving = {"one": "confirmed", "two": "abandoned"}
    with (
        claude.started(desk, "one", [start("goal of one"), wait, tool("resolve_ghap", status="confirmed")]) as one,
        claude.started(desk, "two", [start("goal of two"), wait, tool("resolve_ghap", status="abandoned")]) as two,
    ):
        try:
            eventually(lambda: len(_attempts(desk)) == 2, "both have started an attempt")
            assert {entry["status"] for entry in _attempts(desk)} == {"open"}
        finally:
            done.touch()
        for process, folder in (one, two):
            output, _ = process.communicate(timeout=60)
            folders.append(Run(folder, output))
    found = {entry["goal"].removeprefix("goal of "): entry for entry in _attempts(desk)}
    assert {name: entry["status"] for name, entry in found.items()} == resolving, found
    assert [found[name]["session_id"] for name in names] == [run.session for run in folders], found


def subagent_has_an_attempt_beside(desk: Desk) -> None:
    """A subagent shares the session of its agent: without `parallel` it is refused and told which attempt is open."""
    _connect(desk)
    done = desk.project / "done"
    part: list[Step] = [
        start("the subagent's part"),
        start("the subagent's part", parallel=True),
        tool("resolve_ghap", id="m2", status="confirmed"),
        bash(f"touch {done}"),
    ]
    task = {"description": "sub", "prompt": "look around", "subagent_type": "general-purpose"}
    steps = [
        start("the whole"),
        {"name": "Agent", "input": task},
        *({**step, "for": "look around"} for step in part),
        bash(f"while [ ! -e {done} ]; do sleep 0.1; done"),
        tool("resolve_ghap", status="falsified"),
    ]
    run = claude.run(desk, "agents", steps)
    conflict = [text for text in map(json.dumps, run.requests) if "E_CONFLICT" in text and "m1 is open" in text]
    assert conflict, run.results
    found = {entry["goal"]: entry for entry in _attempts(desk)}
    assert found["the whole"]["status"] == "falsified" and found["the subagent's part"]["status"] == "confirmed", found
    assert {entry["session_id"] for entry in found.values()} == {run.session}


def clear_begins_another_session(desk: Desk) -> None:
    """After /clear the server of the client has the old session in its environment. The new one is told of the attempt
    that was left open, and what it starts belongs to it."""
    _connect(desk)
    steps = [start("before the clear"), {**start("after the clear"), "for": "go on"}]
    run = claude.converse(desk, "cleared", ["please do it", "/clear", "go on"], steps)
    sessions = [event["session_id"] for event in run.events if event.get("type") == "result"]
    assert sessions[0] != sessions[-1], sessions
    found = {entry["goal"]: entry for entry in _attempts(desk)}
    assert found["before the clear"]["session_id"] == sessions[0], found
    assert found["after the clear"]["session_id"] == sessions[-1], found
    last = "\n".join(map(json.dumps, run.requests))
    assert "An attempt left open" in last and "before the clear" in last


CHECKS = (
    attempt_outlives_its_session,
    two_agents_have_an_attempt_each,
    subagent_has_an_attempt_beside,
    clear_begins_another_session,
)
