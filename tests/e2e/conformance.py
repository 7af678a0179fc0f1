"""The protocol's own conformance suite against `/mcp`."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from typing import Any

from tests.e2e.clients import Desk

SCENARIOS = ("server-initialize", "ping", "tools-list", "prompts-list", "dns-rebinding-protection")
"""That hold for any server."""

UNDECLARED = {
    "logging": ("logging-set-level",),
    "completions": ("completion-complete",),
    "resources": (
        "resources-list",
        "resources-read-text",
        "resources-read-binary",
        "resources-templates-read",
        "resources-subscribe",
        "resources-unsubscribe",
    ),
}
"""By the capability that Nudge does not declare."""

OF_A_TEST_SERVER = (
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "json-schema-2020-12",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "server-sse-polling",
    "server-sse-multiple-streams",
)
"""They call tools and prompts that only a server made for the suite has. Those of SSE look for a tool that closes its
stream; without one they check nothing."""


def conformance_suite(desk: Desk) -> None:
    """What holds for any server passes; the rest is left out by name, and nothing of it is a capability that Nudge
    declares. The suite has no token to send."""
    url = f"http://127.0.0.1:{desk.machine.http_only('--no-auth').port}/mcp"
    left_out = {name for names in UNDECLARED.values() for name in names}.union(OF_A_TEST_SERVER)
    listed = desk.run("conformance", "list", "--server")
    assert set(re.findall(r"^  - (\S+)", listed, re.MULTILINE)) == left_out.union(SCENARIOS), listed
    assert not _capabilities(url) & UNDECLARED.keys()
    for scenario in SCENARIOS:
        done = desk.execute("conformance", "server", "--url", url, "--scenario", scenario)
        assert done.returncode == 0 and _all_passed(done), f"{scenario}\n{done.stdout}{done.stderr}"


def _capabilities(url: str) -> set[str]:
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info}).encode()
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as response:  # noqa: S310
        answer: Any = json.load(response)
    return set(answer["result"]["capabilities"])


def _all_passed(done: subprocess.CompletedProcess[str]) -> bool:
    """At least one check, none failed and none with a warning."""
    counts = re.search(r"^Passed: (\d+)/(\d+), 0 failed, 0 warnings", done.stdout, re.MULTILINE)
    return counts is not None and counts[1] == counts[2] != "0"
