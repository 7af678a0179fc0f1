"""Transcripts to read: recorded ones of Claude Code 2.1.325, and made ones; and a server that keeps what it is
handed."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nudge.core.errors import Invalid, NudgeError
from nudge.history import store, traces
from nudge.storage import migrations
from tests.unit.history.payloads import extract

FIXTURES = Path(__file__).parents[2] / "fixtures"
NOON = 1_790_000_000.0
LONG_AGO = NOON - 30 * 86_400


def hook_events(now: float = NOON) -> list[dict[str, Any]]:
    """What the hooks told of the recorded sessions, as `nudge record` makes events of it."""
    payloads = (FIXTURES / "transcript_hooks.jsonl").read_text(encoding="utf-8").splitlines()
    result = (extract(json.loads(payload), now=now) for payload in payloads)
    return [event for event in result if event is not None]


def recorded(home: Path) -> Path:
    """The recorded transcripts, placed as the client places them."""
    folder = home / "projects" / "-home-u-proj"
    (folder / "521000e6" / "subagents").mkdir(parents=True)
    names = {
        "transcript.jsonl": "521000e6.jsonl",
        "transcript_agent.jsonl": "521000e6/subagents/agent-afc6.jsonl",
        "transcript_fork.jsonl": "af7b65f4.jsonl",
    }
    for age, (name, place) in enumerate(names.items()):
        (folder / place).write_bytes((FIXTURES / name).read_bytes())
        os.utime(folder / place, (NOON + age, NOON + age))
    return home / "projects"


class Script:
    """A transcript in the making, one second an entry."""

    def __init__(self, path: Path, session: str = "s-1", cwd: str = "/home/u/proj", at: float = LONG_AGO) -> None:
        self.path, self._session, self._cwd, self._at = path, session, cwd, at
        self._number = 0

    def write(self, raw: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(raw)

    def entry(self, type: str, **fields: Any) -> None:
        self._number += 1
        when = datetime.fromtimestamp(self._at + self._number, UTC).isoformat()
        common = {
            "uuid": f"{self._session}-{self._number}",
            "sessionId": self._session,
            "cwd": self._cwd,
            "timestamp": when,
        }
        self.write(json.dumps({"type": type, **common, **fields}) + "\n")

    def prompt(self, text: str, **fields: Any) -> None:
        self.entry("user", message={"role": "user", "content": text}, promptId=f"p-{self._number}", **fields)

    def call(self, identity: str, name: str = "Bash", **arguments: Any) -> None:
        block = {
            "type": "tool_use",
            "id": identity,
            "name": name,
            "input": arguments or {"command": f"make {identity}"},
        }
        self.entry("assistant", message={"role": "assistant", "content": [block]})

    def result(self, identity: str, text: str = "", *, error: bool = False, **fields: Any) -> None:
        block = {"type": "tool_result", "tool_use_id": identity, "content": text, "is_error": error}
        self.entry("user", message={"role": "user", "content": [block]}, **fields)

    def commands(self, *identities: str) -> None:
        for identity in identities:
            self.call(identity)
            self.result(identity)


class Server:
    """A history of its own; notes the size of each batch. `fail` is raised, in its turn, instead of an answer."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        migrations.migrate(self.connection)
        self.batches: list[list[dict[str, Any]]] = []
        self.fail: list[BaseException | None] = []

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        if method == "nudge.session_trace":
            return traces.trace(self.connection, params["session_id"], params.get("before"), params.get("after"))
        assert method == "nudge.record_many"
        if self.fail and (error := self.fail.pop(0)) is not None:
            raise error
        self.batches.append(params["events"])
        return self.record(params["events"])

    def record(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        recorded, refused = 0, []
        for event in events:
            try:
                recorded += store.insert_event(self.connection, event) is not None
            except Invalid as error:
                refused.append({"event_id": event.get("event_id"), "reason": error.message})
        return {"recorded": recorded, "known": len(events) - recorded - len(refused), "refused": refused}

    def rows(self, columns: str = "obs_type, content") -> list[tuple[Any, ...]]:
        return self.connection.execute(f"SELECT {columns} FROM observations ORDER BY timestamp, id").fetchall()  # noqa: S608

    def contents(self, obs_type: str) -> list[str]:
        return [content for kind, content in self.rows() if kind == obs_type]


class Stopped(KeyboardInterrupt):
    pass


class Refusal(NudgeError):
    reason = "E_STORAGE"
