"""Two days in the life of somebody who works with Claude Code: five checkouts, a reboot, 60 hours of silence.

Each step is a function whose docstring says what it shows; the steps build on each other, and the first that fails
ends the story. What the client, its model or its user can see, and the step that shows it:

| promise | step |
|---|---|
| hints outlive a reboot and days of silence; `set` says how long they live | `x_is_told`, `work_in_x` |
| after `stop --forget` a miss and `ls` say how many hints there were, and how to get them back | `forget` |
| a value kept with `--allow-secret` is in no file and ends with the process | `secret_value`, `x_is_told` |
| two repos with one short name are two projects | `work_in_y`, `y_is_told` |
| one history of a file in all clones and worktrees, with branch and clone; outside a repo by its path | `shops_share` |
| an explicit condition keeps the repo, and `set` prints the whole scope | `work_in_the_shops` |
| the text of an error is found, with its command; results say when there are more | `x_is_told`, `private_project` |
| a near miss is answered with what was meant | `work_in_x` |
| `nudge_bump` with a context credits the variant of that place | `precise_calls` |
| `files_open` counts; `..` in a path is `E_SCOPE_INVALID`; a hand-written file is imported | `precise_calls` |
| hooks are one short command, also where Claude Code shows it after `/compact` | `connect`, `compact` |
| with the package gone no hook fails; `disconnect` leaves the settings as they were | `package_removed`, `disconnect` |
| `claude mcp list` leaves no session behind; a server that is told to end ends in time | `health_check`, `ctrl_c` |
| tokens in commands reach no disk, tokens in hints are refused | `work_in_x`, `precise_calls` |
| private projects and the guard hold for every caller, whatever it has exported | `private_project` |
| no invisible or bidirectional character in any result | `invisible_characters` |

The inspector's `--strict` is in `tests.e2e.__main__`, `nudge connect` beside the plugin in `tests.e2e.connecting`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import stat
from collections.abc import Callable
from pathlib import Path

from nudge.storage.changelog import read_log
from tests.e2e import claude
from tests.e2e.claude import bash, tool, write
from tests.e2e.clients import Desk
from tests.e2e.life import SETTINGS, Life, edit
from tests.harness import eventually
from tests.processes import is_alive

TOKEN = "ghp_" + "7hQ2xVb9LmZ4kR8nT1wYcE5sJ6dF3gA0uPoI"  # the form of a token; nobody's
SILENCE = 60  # hours
_TRIES = 3


# Day one


def connect(life: Life) -> None:
    """`nudge connect` writes one short command for each hook: a script of the owner's alone."""
    life.desk.run("claude", "mcp", "list")  # on its first start it adds things of its own to its state
    assert "next:" in life.cli("connect", "claude-code", "--yes")
    hooks = json.loads(life.settings.read_text())["hooks"]
    ours = [hook for groups in hooks.values() for group in groups for hook in group["hooks"] if "args" in hook]
    assert len(ours) == 7 and len(hooks["Stop"]) == 2
    (command,) = {hook["command"] for hook in ours}
    assert all(hook["args"] == ["record"] for hook in ours)
    assert command == str(life.hook), command
    assert stat.S_IMODE(os.stat(command).st_mode) == 0o700
    assert "is already connected" in life.cli("connect", "claude-code")


def health_check(life: Life) -> None:
    """`claude mcp list` connects, and leaves no session and no process behind."""
    assert f"nudge: {life.nudge.executable} serve - ✔ Connected" in life.desk.run("claude", "mcp", "list")
    eventually(lambda: not life.machine.pids(), "the server has ended")
    assert not (Path(life.machine.runtime) / "changes.log").exists()


def work_in_x(life: Life) -> None:
    """An agent keeps a hint for its repo, and reads how long it lives; a near miss is answered with what was meant; a
    token in a command reaches neither the disk nor a later model."""
    run = life.agent(
        "day-1-x",
        life.x_api,
        bash(f"echo deploy-x --token {TOKEN}"),
        bash("python3 -c 'import no_such_flask'"),
        tool("nudge_set_hint", component="api", key="test", value="pytest -q tests/x"),
        tool("nudge_get_hint", component="api", key="tset"),
        tool("nudge_get_hint", component="ap", key="test"),
        tool("nudge_get_hint", component="cart", key="test"),
        write(Path(life.x_api) / "plan-x.txt", "the plan"),
    )
    assert "No module named" in run.results[1]
    assert run.answer(2)["hint"]["meta"]["scope"] == {"repo": "git:example.com/x/api"}
    assert "kept until it is not used for 30 days" in run.answer(2)["note"], run.results[2]
    for number in (3, 4, 5):
        assert run.answer(number)["error"]["near"] == ["api/test"], run.results[number]
    assert "did you mean api/test?" in run.results[3]
    eventually(lambda: b"deploy-x" in life.stored, "the command is recorded")
    assert TOKEN.encode() not in life.stored and b"[REDACTED" in life.stored


def work_in_y(life: Life) -> None:
    """The other `api` keeps its own hint under the same name, and is told nothing of the first as its own."""
    run = life.agent(
        "day-1-y",
        life.y_api,
        tool("nudge_get_hint", component="api", key="test"),
        bash("echo deploy-y"),
        tool("nudge_set_hint", component="api", key="test", value="npm test"),
    )
    assert "E_NOT_FOUND" in run.results[0] and "pytest" not in run.results[0], run.results
    assert run.answer()["hint"]["version"] == 1
    assert "pytest -q tests/x" not in run.told and "deploy-x" not in run.told
    assert TOKEN not in run.told


def work_in_the_shops(life: Life) -> None:
    """Hints by the command line, for the repo also when another condition is given; edits of one file in two clones and
    a worktree, and of one outside any repo."""
    assert "git:example.com/acme/shop" in life.cli("set", "shop", "build", "make -j4", cwd=life.shop)
    systems = ("--scope-os", "linux", "--scope-os", "darwin")
    scope = "scope: repo git:example.com/acme/shop, os darwin or linux"
    assert scope in (said := life.cli("set", "shop", "run", "make run", *systems, cwd=life.shop)), said
    life.agent("day-1-outside", life.shop, write(life.outside, "x"))
    for name, cwd in (("1", life.shop), ("2", life.shop_2), ("tree", life.shop_tree)):
        run = life.agent(f"day-1-shop-{name}", cwd, *edit(cwd, f"one = '{name}'"))
        assert "shop/build" in run.told and "make -j4" in run.told, run.injected
        assert (Path(cwd) / "src/a.py").read_text() == f"one = '{name}'\n"


def precise_calls(life: Life) -> None:
    """An agent in one `api` credits the variant of the other, and not its own, by saying where it worked. A file that
    is open makes a hint for its directory apply. A path with `..`, and a token in the middle of a command, are refused.
    A hand-written file is imported, and what was edited in it changes."""
    pack = life.machine.base / "pack.json"
    for value in ("make old", "make lint"):
        pack.write_text(json.dumps({"components": {"shop": {"hints": {"lint": {"value": value}}}}}))
        life.cli("import", str(pack))
    scope = {"cwd_glob": [f"{life.shop}/src/**"]}
    name = {"component": "shop", "key": "format"}
    run = life.agent(
        "day-1-precise",
        life.y_api,
        tool("nudge_bump", component="api", key="test", context={"cwd": life.x_api}),
        tool("nudge_get_hint", component="api", key="test"),
        tool("nudge_bump", component="api", key="test", context={"cwd": life.shop}),
        tool("nudge_set_hint", **name, value="ruff format", meta={"scope": scope}),
        tool("nudge_get_hint", **name),
        tool("nudge_get_hint", **name, context={"files_open": [f"{life.shop}/src/a.py"]}),
        tool("nudge_set_hint", component="shop", key="up", value={"type": "path", "abs": "/srv/../etc"}),
        tool("nudge_set_hint", component="shop", key="push", value=f"curl -H 'Authorization: token {TOKEN}' host"),
        tool("nudge_get_hint", component="shop", key="lint"),
    )
    bumped, own, nowhere, _, closed, opened, path, token, imported = map(run.answer, range(9))
    assert bumped["hint"]["value"] == "pytest -q tests/x" and bumped["hint"]["use_count"] == 1, bumped
    assert own["hint"].get("use_count", 0) == 0, own
    assert nowhere["error"]["reason"] == "E_NOT_FOUND" and len(nowhere["error"]["why_not"]) == 2, nowhere
    assert closed["error"]["reason"] == "E_NOT_FOUND", closed
    assert opened["hint"]["value"] == "ruff format", opened
    assert path["error"]["reason"] == "E_SCOPE_INVALID", path
    assert token["error"]["reason"] == "E_SECRET_REJECTED", token
    assert imported["hint"]["value"] == "make lint" and imported["hint"]["version"] == 2, imported


def compact(life: Life) -> None:
    """After `/compact` Claude Code shows its user the command of a hook: a path and a word."""
    run = claude.converse(life.desk, "day-1-compact", ["please do it", "/compact"], [bash("echo hello")], cwd=life.shop)
    (shown,) = [event["message"]["content"] for event in run.events if "local-command-stdout" in json.dumps(event)]
    assert f"PostCompact [{life.hook} record] completed successfully" in shown, shown


def secret_value(life: Life) -> None:
    """A value that is kept with `--allow-secret` is given to the agent, and is in no file."""
    life.cli("set", "shop", "token", TOKEN, "--allow-secret", cwd=life.shop)
    run = life.agent("day-1-secret", life.shop, tool("nudge_get_hint", component="shop", key="token"))
    assert run.answer(0)["hint"]["value"] == TOKEN
    assert TOKEN.encode() not in life.stored


def ctrl_c(life: Life) -> None:
    """Ctrl-C in the middle of a command: the client and its server end before the client loses patience and kills it,
    the session is closed, nothing is lost."""
    # On a busy machine a process may not get the half second of processor time that the client waits.
    assert any(_ends_in_time(life, number) for number in range(1, _TRIES + 1)), "Claude Code killed it each time"
    assert life.json("get", "shop", "build", cwd=life.shop)["hint"]["value"] == "make -j4"


def _ends_in_time(life: Life, number: int) -> bool:
    """Press Ctrl-C; whether Claude Code did not have to kill its server."""
    marker = life.machine.base / f"at-work-{number}"
    steps = [tool("nudge_get_hint", component="shop", key="build"), bash(f"touch {marker}; sleep 60")]
    run = claude.interrupt(life.desk, f"day-1-ctrl-c-{number}", steps, marker, cwd=life.shop)
    server = eventually(life.machine.endpoint, "a server is there")
    eventually(lambda: all(pid == server.pid for pid in life.machine.pids()), "the client's processes have ended")
    last = life.json("trace", "last", cwd=life.shop)
    seen = [row["obs_type"] for prompt in last["prompts"] for row in prompt["observations"]]
    assert seen[-1] == "session_end", seen
    return "SIGKILL" not in run.debug


# Day two


def reboot(life: Life) -> None:
    """Every process is killed, and the machine boots again, 60 hours later by its clock; nothing runs."""
    life.cli("ls")
    life.session = life.json("status")["session"]["id"]
    server = life.machine.ready().pid
    life.nudge.reboot(SILENCE)
    assert not is_alive(server) and life.machine.pids() == []
    assert "no server is running" in life.cli("status")


def x_is_told(life: Life) -> None:
    """The first thing that happens on day two: the hint that an agent set on day one is injected, with what was done
    here and nothing of the other `api`; searching for the error's text finds the failure; the session is that of day
    one, on the clock of the new boot."""
    run = life.agent(
        "day-2-x",
        life.x_api,
        tool("search", query="No module named"),
        tool("nudge_get_hint", component="api", key="test"),
        tool("nudge_query", text="pytest"),
        tool("get_observations", ids=life.failures(life.x_api)),
    )
    assert "api/test" in run.told and "pytest -q tests/x" in run.told, run.injected
    assert "deploy-y" not in run.told and "npm test" not in run.told
    assert TOKEN not in json.dumps(run.requests)
    found, hint, query, failure = map(run.answer, range(4))
    assert [row["obs_type"] for row in found["result"]] == ["command_error"], found
    assert failure["result"][0]["metadata"]["command"] == "python3 -c 'import no_such_flask'", failure
    assert hint["hint"]["value"] == "pytest -q tests/x"
    assert [hit["hint"]["value"] for hit in query["hints"]] == ["pytest -q tests/x"]
    life.cli("ls")  # starts a server when none is left
    session = life.json("status")["session"]
    assert session["id"] == life.session and session["age"] > SILENCE * 3_600, session
    log = read_log(f"{life.machine.runtime}/changes.log")
    assert log is not None and log.header is not None and log.header["boot_id"] == life.nudge.boot_id
    assert "E_NOT_FOUND" in life.cli("get", "shop", "token", cwd=life.shop), "a secret value outlived its process"


def y_is_told(life: Life) -> None:
    """The other `api` gets its own hint, and not the first one's; `api` alone names neither of them."""
    run = life.agent("day-2-y", life.y_api, tool("nudge_get_hint", component="api", key="test"))
    assert "npm test" in run.told, run.injected
    assert "pytest -q tests/x" not in run.told and "deploy-x" not in run.told
    assert run.answer(0)["hint"]["value"] == "npm test"
    assert "name one of x/api, y/api" in life.cli("purge", "--project", "api")


def shops_share(life: Life) -> None:
    """In each clone and in the worktree: the same hint, and one history of the file with every sibling's edit, its
    clone and its branch. A file outside any repo is found by its path."""
    places = {life.shop: "main", life.shop_2: "dev", life.shop_tree: "topic"}
    for number, cwd in enumerate(places):
        run = life.agent(f"day-2-shop-{number}", cwd, *map(_history_of, ("src/a.py", str(life.outside))))
        assert "shop/build" in run.told and "make -j4" in run.told, run.injected
        touches = [touch for row in run.answer(0)["sessions"] for touch in row["touches"]]
        edits = {(touch.get("clone"), touch.get("branch")) for touch in touches if touch["obs_type"] == "file_edit"}
        assert edits == set(places.items()), run.results[0]
        assert len(run.answer(1)["sessions"]) == 1, run.results[1]
    recent = life.cli("recent", cwd=life.shop)
    assert f"(on dev, in {life.shop_2})" in recent and f"in {life.shop})" not in recent, recent


def _history_of(path: str) -> claude.Step:
    return tool("file_history", file_path=path)


def invisible_characters(life: Life) -> None:
    """Hints, commands, file names, notes and prompts with bidirectional and zero-width characters: none of them is in
    anything that Nudge gives the next model, at its start or in a tool's result."""
    life.cli("set", "shop", "odd", "make \u202etset\u200b all", "--reason", "it \u2066is\u2069 odd", cwd=life.shop)
    file = Path(life.shop) / "odd\u202eyp.\u200bpy"
    first = life.agent(
        "day-2-odd",
        life.shop,
        bash("make odd\u202e-target \u200b\u2067"),
        write(file, "odd"),
        tool("memory_store", title="An odd\u202e note", content="odd \u200bwords\U000e0041", tags=["pinned"]),
    )
    note = first.answer(2)["id"]
    run = life.agent(
        "day-2-odd-again",
        life.shop,
        tool("nudge_get_hint", component="shop", key="odd"),
        tool("nudge_query", text="odd"),
        tool("nudge_get_hint", component="shop", key="odds"),
        tool("search", query="odd"),
        tool("get_observations", ids=life.failures(life.shop)),
        tool("recent_context"),
        tool("session_trace", session_id=first.session),
        tool("memory_recall", context="odd note"),
        tool("memory_get", id=note),
    )
    everything = json.dumps(run.requests, ensure_ascii=False)
    assert not [char for char in "\u202e\u200b\u2066\u2067\u2069\U000e0041" if char in everything]
    assert "did you mean shop/odd?" in run.results[2]
    others = [*run.results[:2], *run.results[3:]]
    assert not [result for result in others if "odd" not in result or result.startswith('{"error"')], others
    assert "## Notes" in run.told and "An odd" in run.told, run.injected


def private_project(life: Life) -> None:
    """A project that `nudge serve` was told is private is shown to nobody elsewhere, whatever the caller has exported,
    and after the server was killed too; in itself it is as before. Nor can a caller turn the guard off."""
    flags = ("--private-projects", "x/api", "--cross-project")
    exported = {"NUDGE_PRIVATE_PROJECTS": "", "NUDGE_CROSS_PROJECT": "1", "NUDGE_SECRET_GUARD": "0"}
    asks = (
        tool("search", query="deploy OR echo", project=None),
        tool("search", query="echo OR file", project=None, limit=1),
        tool("recent_context", project=None),
        tool("nudge_set_hint", component="api", key="token", value=TOKEN),
    )
    with life.server(*flags):
        with life.variables(**exported):
            _is_hidden(life.agent("day-2-private", life.y_api, *asks))
        run = life.agent("day-2-own", life.x_api, asks[0])
        assert "deploy-x" in run.results[0] and "deploy-y" in run.results[0], run.results
        os.kill(life.machine.ready().pid, signal.SIGKILL)
        with life.variables(**exported):
            _is_hidden(life.agent("day-2-private-again", life.y_api, *asks))


def _is_hidden(run: claude.Run) -> None:
    """Of the private project nothing, of the others what was asked for."""
    assert "Other repos" in run.told and "[shop]" in run.told, run.injected
    found, one, recent, refused = run.results
    assert "deploy-y" in found and run.answer(1)["more"] is True, (found, one)
    everything = "\n".join((run.told, found, one, recent))
    assert not [word for word in ("deploy-x", "plan-x", '"project":"x/api"') if word in everything], everything
    assert "E_SECRET_REJECTED" in refused, refused


def forget(life: Life) -> None:
    """After `stop --forget` an agent's miss says how many hints there were, those of private projects too, and what
    brings them back; so does `ls`."""
    listed = sum(component["hint_count"] for component in life.json("ls")["components"])
    life.stop("--forget")
    run = life.agent("day-2-forgotten", life.shop, tool("nudge_get_hint", component="shop", key="build"))
    message = run.answer(0)["error"]["message"]
    kept = re.search(r"(\d+) hints of the previous session are kept", message)
    assert kept and "nudge import --previous" in message, message
    count = int(kept[1])
    assert count >= listed > 0 and kept[0] in life.cli("ls"), (count, listed)
    assert life.json("import", "--previous")["imported"] == count
    assert life.json("get", "shop", "build", cwd=life.shop)["hint"]["value"] == "make -j4"


def package_removed(life: Life) -> None:
    """With the package gone, and then the program too, Claude Code works as before: no hook fails."""
    for name, remove in (("package", life.nudge.remove_package), ("program", life.nudge.remove)):
        remove()
        run = life.agent(f"day-2-no-{name}", life.x_api, bash("echo hello"), bash("exit 3"))
        hooks = [event for event in run.events if event.get("subtype") == "hook_response"]
        assert len(hooks) >= 4 and all(hook["exit_code"] == 0 and not hook["stderr"] for hook in hooks), hooks
        assert run.results[0] == "hello"
    life.nudge.put_back()


def disconnect(life: Life) -> None:
    """The client's settings are as they were, byte for byte; its state has no server of ours; the script is gone."""
    life.cli("disconnect", "claude-code")
    assert life.settings.read_bytes() == SETTINGS.encode(), life.settings.read_text()
    assert "nudge" not in json.loads((life.machine.home / ".claude.json").read_text()).get("mcpServers", {})
    assert not life.hook.exists()


STEPS: tuple[Callable[[Life], None], ...] = (
    connect,
    health_check,
    work_in_x,
    work_in_y,
    work_in_the_shops,
    precise_calls,
    compact,
    secret_value,
    ctrl_c,
    reboot,
    x_is_told,
    y_is_told,
    shops_share,
    invisible_characters,
    private_project,
    forget,
    package_removed,
    disconnect,
)


def two_days(desk: Desk) -> None:
    """Every step below, in order."""
    life = Life(desk)
    for step in STEPS:
        print(f"   {step.__name__}: {' '.join((step.__doc__ or '').split())}", flush=True)
        step(life)
