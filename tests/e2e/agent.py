"""A whole agent loop with the real Claude Code and a scripted model: what its hooks record, and what the next start is
told."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.clients import Desk
from tests.harness import ROOT, eventually, free_port

HOOK_BUDGET_MS = 150
_EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "SessionEnd")


def _steps(desk: Desk) -> list[dict[str, Any]]:
    note = str(desk.project / "note.txt")
    return [
        {"name": "Bash", "input": {"command": "echo hello-from-the-agent", "description": "say"}},
        {"name": "Bash", "input": {"command": "exit 3", "description": "fail"}},
        {"name": "Write", "input": {"file_path": note, "content": "alpha\n"}},
        {"name": "Read", "input": {"file_path": note}},
        {"name": "Edit", "input": {"file_path": note, "old_string": "alpha", "new_string": "beta"}},
        {"name": "mcp__nudge__nudge_get_hint", "input": {"component": "api", "key": "test"}},
    ]


@contextmanager
def _model(desk: Desk, steps: list[dict[str, Any]], saved: Path) -> Iterator[int]:
    port = free_port()
    script = desk.machine.base / f"steps-{saved.name}.json"
    script.write_text(json.dumps(steps))
    command = [sys.executable, str(ROOT / "tests/e2e/scripted_model.py"), str(port), str(script), str(saved)]
    with subprocess.Popen(command) as process:
        eventually(lambda: _listens(port), "the scripted model listens")
        try:
            yield port
        finally:
            process.kill()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wire(desk: Desk) -> tuple[Path, Path]:
    """Hooks and MCP server as `nudge connect` writes them, in files of this run's own."""
    nudge = str(Path(sys.executable).parent / "nudge")
    hook = [{"hooks": [{"type": "command", "command": f"{nudge} record", "timeout": 5}]}]
    hooks, servers = desk.machine.base / "hooks.json", desk.machine.base / "mcp.json"
    hooks.write_text(json.dumps({"hooks": dict.fromkeys(_EVENTS, hook)}))
    servers.write_text(json.dumps({"mcpServers": {"nudge": {"command": nudge, "args": ["serve"]}}}))
    return hooks, servers


def _run_claude(desk: Desk, port: int) -> list[dict[str, Any]]:
    hooks, servers = _wire(desk)
    environ = {
        "IS_SANDBOX": "1",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    command = [
        "claude",
        "-p",
        "please do it",
        "--settings",
        str(hooks),
        "--mcp-config",
        str(servers),
        "--strict-mcp-config",
        "--dangerously-skip-permissions",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-hook-events",
        "--debug-file",
        str(desk.machine.base / "debug.log"),
    ]
    done = subprocess.run(
        command,
        cwd=desk.project,
        env={**desk.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def recorded_and_told(desk: Desk) -> None:
    """A run of Bash, failing Bash, Write, Read, Edit and an MCP call is in `nudge trace last`; the next start is told
    of it."""
    desk.run("nudge", "set", "api", "test", "pytest -q", "--global")
    with _model(desk, _steps(desk), desk.machine.base / "first") as port:
        _run_claude(desk, port)
    trace = json.loads(desk.run("nudge", "trace", "last", "--json"))
    seen = {row["obs_type"] for prompt in trace["prompts"] for row in prompt["observations"]}
    assert {"session_start", "command", "command_error", "file_write", "file_read", "file_edit", "mcp_call"} <= seen, (
        seen
    )
    assert [prompt["content"] for prompt in trace["prompts"] if prompt["source"] == "user"] == ["please do it"]
    with _model(desk, [], desk.machine.base / "second") as port:
        _run_claude(desk, port)
    request = (desk.machine.base / "second" / "request-0.json").read_text()
    assert "records of earlier work" in request and "note.txt" in request and "api/test" in request
    assert max(hook_milliseconds(desk)) <= HOOK_BUDGET_MS, hook_milliseconds(desk)


def hook_milliseconds(desk: Desk) -> list[int]:
    """What Claude Code itself says its hooks took, from its debug log."""
    log = (desk.machine.base / "debug.log").read_text(errors="replace")
    found = [int(ms) for ms in re.findall(r"nudge record\] finished with status 0 \((\d+)ms\)", log)]
    print("   hooks took (ms):", sorted(found))
    return found
