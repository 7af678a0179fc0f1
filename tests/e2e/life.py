"""One user's home with Claude Code in it, five checkouts, and an installation of Nudge whose clock a test sets."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.contract.repos import git
from tests.e2e import claude
from tests.e2e.claude import Run, Step
from tests.e2e.clients import Desk
from tests.e2e.installation import Installation, data_below
from tests.harness import TIMEOUT, eventually

SETTINGS = '{\n\t"model": "opus",\n\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}\n}'
_AS_SOMEBODY = ("-c", "user.name=a", "-c", "user.email=a@example.com")


class Life:
    """One user's home and checkouts: two repos called `api`, and two clones and a worktree of `shop`."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.machine = desk, desk.machine
        self.nudge = Installation(desk)
        self.x_api = self._checkout("x/api", "git@example.com:x/api.git")
        self.y_api = self._checkout("y/api", "https://example.com/y/api")
        self.shop = self._checkout("shop", "git@example.com:acme/shop.git")
        self.shop_2 = self._checkout("shop-2", "https://example.com/acme/shop", branch="dev")
        self.shop_tree = str(self.machine.base / "work/shop-tree")
        git(Path(self.shop), "worktree", "add", "--quiet", "-b", "topic", self.shop_tree)
        self.outside = self.machine.base / "outside.txt"
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

    def failures(self, cwd: str) -> list[int]:
        """The ids of the commands that failed in a project, latest first."""
        recent = self.json("recent", cwd=cwd)
        return [row["id"] for row in recent if row["obs_type"] == "command_error"]

    @property
    def hook(self) -> Path:
        """The script that `nudge connect` puts into the client's settings."""
        return self.machine.home / ".local/share/nudge/nudge-hook"

    @contextmanager
    def variables(self, **variables: str) -> Iterator[None]:
        """What the user has exported in the terminal where Claude Code is started."""
        before = dict(self.desk.environ)
        self.desk.environ.update(variables)
        try:
            yield
        finally:
            self.desk.environ.clear()
            self.desk.environ.update(before)

    @contextmanager
    def server(self, *flags: str) -> Iterator[None]:
        """`nudge serve` with these flags, in place of the server that runs."""
        self.stop()
        nowhere = subprocess.DEVNULL
        command = [str(self.nudge.executable), "serve", "--detach", *flags]
        with subprocess.Popen(command, env=self.desk.environ, stdin=nowhere, stdout=nowhere, stderr=nowhere) as process:
            try:
                eventually(lambda: self.machine.ready().pid == process.pid, "the server is there")
                yield
            finally:
                process.kill()
                process.wait(TIMEOUT)

    def stop(self, *flags: str) -> None:
        self.cli("stop", "--force", *flags)
        eventually(self.machine.lock_is_free, "the server ends")

    @property
    def stored(self) -> bytes:
        """All that Nudge has on the disk."""
        return data_below(Path(self.machine.runtime), self.machine.home / ".local/share/nudge")


def edit(cwd: str, new: str) -> list[Step]:
    file = f"{cwd}/src/a.py"
    change = {"file_path": file, "old_string": "one = 1", "new_string": new}
    return [{"name": "Read", "input": {"file_path": file}}, {"name": "Edit", "input": change}]
