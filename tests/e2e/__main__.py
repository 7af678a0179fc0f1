"""Run every check against the real clients, one line each; exit 1 when one fails."""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable

from nudge.interfaces.mcp import choose_tools
from tests.e2e import (
    agent,
    clients,
    conformance,
    connecting,
    failures,
    journal,
    learning,
    other_clients,
    page,
    page_hostile,
    page_keeps,
    page_pictures,
    page_refused,
    page_trusts,
    statusline,
    two_days,
)
from tests.e2e.clients import Desk
from tests.harness import Machine


def claude_connects(desk: Desk) -> None:
    """`claude mcp list` shows the server connected, and so does `claude mcp get`."""
    desk.run("claude", "mcp", "add", "nudge", "--", "nudge", "serve")
    assert "nudge: nudge serve - ✔ Connected" in desk.run("claude", "mcp", "list")
    assert "✔ Connected" in desk.run("claude", "mcp", "get", "nudge")


def inspector_lists_and_calls(desk: Desk) -> None:
    """The inspector lists the default tools, has nothing to say against their schemas, and calls them; what it set is
    there for the next process."""
    inspect = ("mcp-inspector", "--cli", "nudge", "serve", "--method")
    listed = desk.execute(*inspect, "tools/list", "--strict")
    assert [tool["name"] for tool in json.loads(listed.stdout)["tools"]] == choose_tools("default")
    assert listed.returncode == 0 and listed.stderr == "", listed.stderr
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
    conformance.conformance_suite,
    agent.recorded_and_told,
    agent.hooks_are_cheap,
    learning.failure_is_answered,
    learning.prompt_is_answered,
    learning.two_sessions_edit_one_file,
    learning.changed_manifest_is_said,
    learning.session_goes_on,
    *journal.CHECKS,
    *connecting.CHECKS,
    statusline.status_line_is_shown,
    *other_clients.CHECKS,
    *failures.CHECKS,
    *page.CHECKS,
    *page_keeps.CHECKS,
    *page_hostile.CHECKS,
    *page_refused.CHECKS,
    *page_trusts.CHECKS,
    *page_pictures.CHECKS,
    two_days.two_days,
)


def run(check: Callable[[Desk], None]) -> bool:
    machine = Machine()
    began = time.monotonic()
    try:
        check(Desk(machine))
        verdict = "ok"
    except Exception as error:
        traceback.print_exc()
        verdict = f"FAILED {type(error).__name__}: {error}"
    finally:
        machine.close()
    print(f"{check.__name__:32} {time.monotonic() - began:6.1f} s  {verdict}", flush=True)
    return verdict == "ok"


def _make_pictures() -> int:
    is_made = all(run(check) for check in page_pictures.CHECKS)
    if is_made:
        page_pictures.keep()
    return 0 if is_made else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="checks whose name contains this")
    parser.add_argument("--pictures", action="store_true", help="only make the pictures of the documents anew")
    options = parser.parse_args()
    if options.pictures:
        return _make_pictures()
    clients.install()
    connecting.install()
    results = [run(check) for check in CHECKS if options.only in check.__name__]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
