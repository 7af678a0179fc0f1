"""Run every check against the real clients, one line each; exit 1 when one fails."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from tests.e2e import agent, clients, wiring
from tests.e2e.clients import Desk
from tests.harness import Machine


def claude_connects(desk: Desk) -> None:
    """`claude mcp list` shows the server connected, and so does `claude mcp get`."""
    desk.run("claude", "mcp", "add", "nudge", "--", "nudge", "serve")
    assert "nudge: nudge serve - ✔ Connected" in desk.run("claude", "mcp", "list")
    assert "✔ Connected" in desk.run("claude", "mcp", "get", "nudge")


def inspector_lists_and_calls(desk: Desk) -> None:
    """The inspector lists the tools and calls them; what it set is there for the next process."""
    inspect = ("mcp-inspector", "--cli", "nudge", "serve", "--method")
    listed = desk.run(*inspect, "tools/list")
    names = [tool["name"] for tool in json.loads(listed[: listed.rindex("}") + 1])["tools"]]
    assert "nudge_get_hint" in names and len(names) == 10
    hint = ("--tool-arg", "component=api", "--tool-arg", "key=test")
    desk.run(*inspect, "tools/call", "--tool-name", "nudge_set_hint", *hint, "--tool-arg", "value=pytest -q")
    assert "pytest -q" in desk.run(*inspect, "tools/call", "--tool-name", "nudge_get_hint", *hint)


def two_clients_share(desk: Desk) -> None:
    """A hint that one client's server holds is read by another client, and by the CLI."""
    holder = desk.machine.serve(cwd=str(desk.project))
    holder.initialize()
    holder.call("nudge_set_hint", component="api", key="run", value="make run", meta={"scope": {}})
    inspect = ("mcp-inspector", "--cli", "nudge", "serve", "--method", "tools/call", "--tool-name", "nudge_get_hint")
    assert "make run" in desk.run(*inspect, "--tool-arg", "component=api", "--tool-arg", "key=run")
    assert desk.run("nudge", "get", "api", "run", "--value-only").strip() == "make run"


CHECKS: tuple[Callable[[Desk], None], ...] = (
    claude_connects,
    inspector_lists_and_calls,
    two_clients_share,
    agent.recorded_and_told,
    *wiring.CHECKS,
)


def run(check: Callable[[Desk], None]) -> bool:
    machine = Machine()
    began = time.monotonic()
    try:
        check(Desk(machine))
        verdict = "ok"
    except AssertionError as error:
        verdict = f"FAILED {error}"
    finally:
        machine.close()
    print(f"{check.__name__:32} {time.monotonic() - began:6.1f} s  {verdict}", flush=True)
    return verdict == "ok"


def main() -> int:
    clients.install()
    wiring.install()
    results = [run(check) for check in CHECKS]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
