"""The machines of a team: each with its own home and its own PRIMARY, whose clock may be wrong."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nudge.process import endpoint
from tests.harness import Machine, eventually

LAUNCHER = str(Path(__file__).with_name("launcher.py"))
REPO = "github.com/acme/app"
_PAUSES = {
    "TEAM_TEST_LIMIT_TEAM_BURST": "0.02",
    "TEAM_TEST_LIMIT_TEAM_POLL": "0.5",
    "TEAM_TEST_LIMIT_TEAM_RETRY": "0.2",
    "TEAM_TEST_LIMIT_TEAM_RETRY_MOST": "0.5",
}
"""Of the background task: a test waits for an event, and the product's pauses would be its length."""


class Member(Machine):
    """One machine of one person. `ahead`: by how many seconds its clock is ahead; `ago`: by how many seconds what it
    does was done in the past."""

    def __init__(self, role: str, *, ahead: float = 0.0, ago: float = 0.0, **environ: str) -> None:
        super().__init__(NUDGE_PRIVATE_PROJECTS="github.com/acme/secret", **environ)
        self.role, self.ahead, self.ago = role, ahead, ago
        self._server: Any = None
        self.database = str(self.base / "nudge.db")
        self.environ["NUDGE_DB"] = self.database

    def start(self, **environ: str) -> None:
        """Start the PRIMARY; ready when this returns."""
        self.store_settings(environ)
        with open(self.base / "stderr", "ab") as stderr:
            self._server = subprocess.Popen(
                [sys.executable, LAUNCHER, "serve", "--http-only"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env={
                    **self.environ,
                    **_PAUSES,
                    "TEAM_TEST_AHEAD": str(self.ahead),
                    "TEAM_TEST_AGO": str(self.ago),
                    **environ,
                },
                cwd=str(self.base),
                start_new_session=True,
            )
        self.processes.append(self._server)
        eventually(self._is_ready, "the server is ready, or died")

    def _is_ready(self) -> bool:
        """Whether this life of the server answers, not one before it; or it is over."""
        current = self.endpoint()
        is_current = current is not None and current.pid == self._server.pid
        return not self.is_running or bool(is_current and current and current.state == endpoint.READY)

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self._server is not None:
            self._server.send_signal(number)
            self._server.wait(30)
            self._server = None

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    @property
    def is_running(self) -> bool:
        return self._server is not None and self._server.poll() is None

    def call(self, operation: str, **params: Any) -> Any:
        """Call an operation as the command line does."""
        from nudge.process.client import Client

        return Client(environ=self.environ, autostart=False).call(operation, params)

    def join(self, url: str, repo: str = REPO) -> None:
        self.call("nudge.team_join", url=url)
        self.call("nudge.team_share", repo=repo)

    def wait_until_sent(self, repo: str = REPO) -> None:
        eventually(lambda: self.is_up_to_date(repo), f"{self.role} has sent and received all", timeout=90)

    def is_up_to_date(self, repo: str = REPO) -> bool:
        row = self.repo(repo)
        return not row["waiting"] and row["received"] == row["expected"] > 0

    def leave_network(self) -> None:
        """Go on without the server: its address leads nowhere."""
        self.stop()
        self.start(TEAM_TEST_OFFLINE="1")

    def come_back(self) -> None:
        self.stop()
        self.start()

    def forget(self, title: str, repo: str = REPO) -> None:
        found = self.call("nudge.memory_list", namespace=repo, limit=200)["memories"]
        (note_id,) = [note["id"] for note in found if note["title"] == title]
        self.call("nudge.memory_delete", id=note_id)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.call("nudge.team_status")
        return found

    def repo(self, name: str = REPO) -> Mapping[str, Any]:
        row: Mapping[str, Any] = next(row for row in self.status()["repos"] if row["repo"] == name)
        return row

    def note(self, title: str, content: str, repo: str = REPO, **fields: Any) -> None:
        self.call("nudge.memory_store", title=title, content=content, kind="decision", namespace=repo, **fields)

    def hint(self, key: str, value: str, component: str = "api", repo: str = REPO) -> None:
        self.call("nudge.set_hint", component=component, key=key, value=value, meta={"scope": {"repo": f"git:{repo}"}})

    def state(self, repo: str = REPO) -> dict[str, Any]:
        """All that is shared of a repo, as it is here."""
        fields = "title, content, kind, tier, priority, confidence, tags, metadata, created_at, updated_at"
        database = f"file:{self.database}?mode=ro"
        with contextlib.closing(sqlite3.connect(database, uri=True)) as connection:
            live = "namespace = ? AND (expires_at IS NULL OR expires_at > ?)"
            sql = f"SELECT {fields} FROM notes WHERE {live} ORDER BY title"  # noqa: S608 - constants
            notes = connection.execute(sql, (repo, time.time() + self.ahead - self.ago)).fetchall()
        exported = self.call("nudge.export")["payload"]["components"]
        hints = []
        for component, content in exported.items():
            for key, held in content["hints"].items():
                hints += [
                    (component, key, hint["value"], hint["meta"], hint["created_at"], hint["updated_at"])
                    for hint in (held if isinstance(held, list) else [held])
                ]
        return {
            "notes": notes,
            "hints": sorted(hints, key=str),
        }

    def received(self, repo: str = REPO) -> dict[str, int]:
        """How much of each origin's log is here, its own included."""
        sql = "SELECT origin, min(n, head) FROM team_cursors WHERE project = ? AND min(n, head) > 0"
        with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
            return dict(connection.execute(sql, (repo,)).fetchall())


def wait_until_same(members: list[Member], repo: str = REPO) -> dict[str, Any]:
    """Wait until every member has everything that one of them sent, and all have the same."""

    def settled() -> Any:
        rows = [member.repo(repo) for member in members]
        if any(row["waiting"] or row["received"] != row["expected"] for row in rows):
            return None
        received = [member.received(repo) for member in members]
        if any(one != received[0] for one in received):
            return None
        states = [member.state(repo) for member in members]
        return states[0] if all(state == states[0] for state in states) else None

    try:
        state: dict[str, Any] = eventually(settled, "all members have the same", timeout=60)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{_differences(members, repo)}") from None
    return state


def _differences(members: list[Member], repo: str) -> str:
    """What each member has that the first has not, and the other way round."""
    states = [member.state(repo) for member in members]
    lines = []
    for member, state in zip(members, states, strict=True):
        lines.append(f"{member.role}: {dict(member.repo(repo))}")
        for kind, first in states[0].items():
            lines += [f"  + {row}" for row in state[kind] if row not in first]
            lines += [f"  - {row}" for row in first if row not in state[kind]]
    return "\n".join(lines)
