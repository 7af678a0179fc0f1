"""Sessions of an agent, played event by event against a server, with what each event is answered.

An event goes over the wire as a hook sends it, with the two seconds of any other call to answer in: a busy machine does
not make a session go untold.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

from nudge.clients import registry
from nudge.core.context import resolve
from nudge.history.extract import extract, locate
from nudge.process.client import Client
from tests.harness import Machine

_numbers = itertools.count()
_PACE = 17  # seconds between two events of a session that is in the past


class Agent:
    """One session in a directory."""

    def __init__(self, machine: Machine, session: str, cwd: str, name: str | None = None, ago: float = 0) -> None:
        """`name`: of the agent's client, where it matters. `ago`: how many seconds before now it begins; each event is
        some seconds after the one before."""
        self._ago = ago
        own = {**machine.environ, "NUDGE_RUNTIME_DIR": machine.runtime}  # this process has another home
        self._client, self.session, self._cwd = Client(environ=own), session, cwd
        self._name = {} if name is None else {"client": name}

    def start(self, source: str = "startup") -> str:
        """What it is told at its start."""
        self._record("SessionStart", source=source)
        context = resolve(self._cwd).to_json()
        params = {"session_id": self.session, "source": source, "context": context}
        return str(self._client.call("nudge.inject", params)["text"])

    def ends(self) -> None:
        self._record("SessionEnd", reason="exit")

    def asks(self, prompt: str) -> str:
        return self._record("UserPromptSubmit", prompt=prompt)

    def fails(self, command: str, error: str) -> str:
        return self._tool("PostToolUseFailure", "Bash", {"command": command}, error=error)

    def runs(self, command: str, output: str = "") -> str:
        response = {"stdout": output, "stderr": "", "interrupted": False}
        return self._tool("PostToolUse", "Bash", {"command": command}, tool_response=response)

    def reads(self, path: str) -> str:
        return self._tool("PostToolUse", "Read", {"file_path": path}, tool_response={"type": "text"})

    def edits(self, path: str) -> str:
        return self._tool("PostToolUse", "Edit", {"file_path": path, "old_string": "a", "new_string": "b"})

    def calls(self, tool: str, **arguments: Any) -> str:
        return self._tool("PostToolUse", f"mcp__nudge__{tool}", arguments, tool_response="{}")

    def _tool(self, event: str, name: str, arguments: dict[str, Any], **outcome: Any) -> str:
        identity = f"t{next(_numbers)}"
        return self._record(event, tool_name=name, tool_use_id=identity, tool_input=arguments, **outcome)

    def _record(self, name: str, **fields: Any) -> str:
        payload = {"hook_event_name": name, "session_id": self.session, "cwd": self._cwd, **fields}
        event = extract(registry.detect(payload, {}).translate(payload), now=time.time() - self._ago)
        self._ago = max(self._ago - _PACE, 0)
        assert event is not None, payload
        located = {**locate(event, resolve(self._cwd)), **self._name}
        return str(self._client.call("nudge.record", {"event": located}).get("tell") or "")
