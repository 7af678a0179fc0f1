"""Two agents on one machine: what one of them finds out, the other one knows.

Each agent is a `nudge serve` on stdio, started as an MCP client starts it. The first becomes PRIMARY and holds the
hints, the second a
PROXY to it; with a Nudge server running already, both are PROXYs, and neither can tell.

    .venv/bin/python examples/two_agents.py
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from types import TracebackType
from typing import Any

NUDGE_SERVE = [sys.executable, "-m", "nudge", "serve"]  # `nudge serve`, also where the command is not on PATH
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "two-agents", "version": "1"}}


class Agent:
    """The MCP client's end of one `nudge serve`: one JSON-RPC message a line."""

    def __enter__(self) -> Agent:
        self._server = subprocess.Popen(NUDGE_SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._last_id = 0
        self._request("initialize", HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """An MCP server ends when its client closes the pipe."""
        self._server.communicate()

    def call(self, tool: str, **arguments: Any) -> Any:
        result = self._request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise SystemExit(result["structuredContent"]["error"]["message"])
        return result["structuredContent"]

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._server.stdout is not None
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        answer: dict[str, Any] = json.loads(self._server.stdout.readline())
        return dict(answer["result"])

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(message) + "\n")
        self._server.stdin.flush()


def main() -> None:
    name = {"component": "two-agents", "key": "test"}
    with ExitStack() as desk:
        one, two = desk.enter_context(Agent()), desk.enter_context(Agent())

        # Everywhere, and for five minutes only: this is an example, and your hints are real.
        meta = {"reason": "the suite needs a real router", "tags": ["test"], "ttl": "PT5M", "scope": {}}
        one.call("nudge_set_hint", **name, value={"type": "command", "cmd": "DOCKER=1 make test"}, meta=meta)
        print("one learned:  two-agents/test")

        found = two.call("nudge_get_hint", **name)
        print("two was told:", found["hint"]["value"]["cmd"])
        print("because:     ", found["hint"]["meta"]["reason"])

        two.call("nudge_bump", **name)
        print("one sees why:", "; ".join(one.call("nudge_get_hint", **name)["match_explain"]["reasons"]))


if __name__ == "__main__":
    main()
