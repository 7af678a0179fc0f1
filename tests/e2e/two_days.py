"""Two days in the life of somebody who works with Claude Code: five checkouts, a reboot, 60 hours of silence.

Each step is a function whose docstring says what it shows; the steps build on each other, and the first that fails
ends the story.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nudge.storage.changelog import read_log
from tests.contract.repos import git
from tests.e2e import claude
from tests.e2e.claude import Run, Step, bash, tool
from tests.e2e.clients import Desk
from tests.e2e.installation import Installation, data_below
from tests.harness import eventually, is_alive

TOKEN = "ghp_" + "7hQ2xVb9LmZ4kR8nT1wYcE5sJ6dF3gA0uPoI"  # the form of a token; nobody's
SETTINGS = '{\n\t"model": "opus",\n\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}\n}'
SILENCE = 60  # hours
_TRIES = 3
_AS_SOMEBODY = ("-c", "user.name=a", "-c", "user.email=a@example.com")


class Life:
    """One user's home and checkouts."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.machine = desk, desk.machine
        self.nudge = Installation(desk)
        self.x_api = self._checkout("x/api", "git@example.com:x/api.git")
        self.y_api = self._checkout("y/api", "https://example.com/y/api")
        self.shop = self._checkout("shop", "git@example.com:acme/shop.git")
        self.shop_2 = self._checkout("shop-2", "https://example.com/acme/shop", branch="dev")
        self.shop_tree = str(self.machine.base / "work/shop-tree")
        git(Path(self.shop), "worktree", "add", "--quiet", "-b", "topic", self.shop_tree)
        self.session = ""
        self.settings = self.machine.home / ".claude/settings.json"
        self.settings.parent.mkdir()
        self.settings.write_text(SETTINGS)

    def _checkout(self, folder: str, origin: str, branch: str = "main") -> str:
        path = self.machine.base / "work" / folder
        (path / "src").mkdir(parents=True)
        (path / "src/a.py").write_text("one = 1\n")
        git(path, "init", "--quiet", "--initial-branch", branch)
        git(path, "remote", "add", "origin", origin)
        git(path, "add", "src")
        git(path, *_AS_SOMEBODY, "commit", "--quiet", "-m", "first")
        return str(path)

    def agent(self, name: str, cwd: str, *steps: Step) -> Run:
        return claude.run(self.desk, name, steps, cwd=cwd)

    def cli(self, *arguments: str, cwd: str | None = None) -> str:
        return self.desk.run("nudge", *arguments, cwd=cwd)

    def json(self, *arguments: str, cwd: str | None = None) -> Any:
        done = self.desk.execute("nudge", *arguments, "--json", cwd=cwd)
        assert done.stdout.startswith(("{", "[")), done
        return json.loads(done.stdout)

    @property
    def stored(self) -> bytes:
        """All that Nudge has on the disk."""
        return data_below(Path(self.machine.runtime), self.machine.home / ".local/share/nudge")


def edit(cwd: str, new: str) -> list[Step]:
    file = f"{cwd}/src/a.py"
    change = {"file_path": file, "old_string": "one = 1", "new_string": new}
    return [{"name": "Read", "input": {"file_path": file}}, {"name": "Edit", "input": change}]


# Day one


def connect(life: Life) -> None:
    """`nudge connect` writes one short command for each hook: a script of the owner's alone."""
    life.desk.run("claude", "mcp", "list")  # on its first start it adds things of its own to its state
    assert "next:" in life.cli("connect", "claude-code", "--yes")
    hooks = json.loads(life.settings.read_text())["hooks"]
    ours = [hook for groups in hooks.values() for group in groups for hook in group["hooks"] if "args" in hook]
    assert len(ours) == 6 and len(hooks["Stop"]) == 1
    (command,) = {hook["command"] for hook in ours}
    assert all(hook["args"] == ["record"] for hook in ours)
    assert command == str(life.machine.home / ".local/share/nudge/nudge-hook"), command
    assert stat.S_IMODE(os.stat(command).st_mode) == 0o700
    assert "is already connected" in life.cli("connect", "claude-code")


def health_check(life: Life) -> None:
    """`claude mcp list` connects, and leaves no session and no process behind."""
    assert f"nudge: {life.nudge.executable} serve - ✔ Connected" in life.desk.run("claude", "mcp", "list")
    eventually(lambda: not life.machine.pids(), "the server has ended")
    assert not (Path(life.machine.runtime) / "changes.log").exists()


def work_in_x(life: Life) -> None:
    """An agent keeps a hint for its repo; a near miss is answered with what was meant; a token in a command reaches
    neither the disk nor a later model."""
    run = life.agent(
        "day-1-x",
        life.x_api,
        bash(f"echo deploy-x --token {TOKEN}"),
        bash("python3 -c 'import no_such_flask'"),
        tool("nudge_set_hint", component="api", key="test", value="pytest -q tests/x"),
        tool("nudge_get_hint", component="api", key="tset"),
        tool("nudge_get_hint", component="ap", key="test"),
        tool("nudge_get_hint", component="cart", key="test"),
    )
    assert "No module named" in run.results[1]
    assert run.answer(2)["hint"]["meta"]["scope"] == {"repo": "git:example.com/x/api"}
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
    """A hint by the command line for the repo, and edits of one file in two clones and a worktree."""
    assert "git:example.com/acme/shop" in life.cli("set", "shop", "build", "make -j4", cwd=life.shop)
    for name, cwd in (("1", life.shop), ("2", life.shop_2), ("tree", life.shop_tree)):
        run = life.agent(f"day-1-shop-{name}", cwd, *edit(cwd, f"one = '{name}'"))
        assert "shop/build" in run.told and "make -j4" in run.told, run.injected
        assert (Path(cwd) / "src/a.py").read_text() == f"one = '{name}'\n"


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
    )
    assert "api/test" in run.told and "pytest -q tests/x" in run.told, run.injected
    assert "deploy-y" not in run.told and "npm test" not in run.told
    assert TOKEN not in json.dumps(run.requests)
    found, hint, query = map(run.answer, range(3))
    assert [row["obs_type"] for row in found["result"]] == ["command_error"], found
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
    """In each clone and in the worktree: the same hint, and one history of the file with every sibling's edit; clone
    and branch are shown where they are not those of here."""
    places = {life.shop: "main", life.shop_2: "dev", life.shop_tree: "topic"}
    for number, (cwd, branch) in enumerate(places.items()):
        run = life.agent(f"day-2-shop-{number}", cwd, tool("file_history", file_path="src/a.py"))
        assert "shop/build" in run.told and "make -j4" in run.told, run.injected
        touches = [touch for row in run.answer(0)["sessions"] for touch in row["touches"]]
        edits = {(touch.get("clone"), touch.get("branch")) for touch in touches if touch["obs_type"] == "file_edit"}
        assert edits == {(None, None)} | {place for place in places.items() if place != (cwd, branch)}, run.results[0]
    recent = life.cli("recent", cwd=life.shop)
    assert f"(on dev, in {life.shop_2})" in recent and f"in {life.shop})" not in recent, recent


def invisible_characters(life: Life) -> None:
    """A hint with bidirectional and zero-width characters reaches the model without them."""
    life.cli("set", "shop", "odd", "make \u202etset\u200b all", cwd=life.shop)
    run = life.agent("day-2-odd", life.shop, tool("nudge_get_hint", component="shop", key="odd"))
    everything = json.dumps(run.requests, ensure_ascii=False)
    assert "\u202e" not in everything and "\u200b" not in everything and "make" in run.results[0]


def forget(life: Life) -> None:
    """After `stop --forget` an agent's miss says how many hints there were and what brings them back."""
    life.cli("stop", "--force", "--forget")
    eventually(life.machine.lock_is_free, "the server ends")
    run = life.agent("day-2-forgotten", life.shop, tool("nudge_get_hint", component="shop", key="build"))
    message = run.answer(0)["error"]["message"]
    assert "nudge import --previous" in message, message
    assert life.json("import", "--previous")["imported"] == 4
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
    assert not (life.machine.home / ".local/share/nudge/nudge-hook").exists()


STEPS: tuple[Callable[[Life], None], ...] = (
    connect,
    health_check,
    work_in_x,
    work_in_y,
    work_in_the_shops,
    secret_value,
    ctrl_c,
    reboot,
    x_is_told,
    y_is_told,
    shops_share,
    invisible_characters,
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
