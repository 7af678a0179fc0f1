"""Installing real MCP clients and running them with a home of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.harness import ROOT, Machine

INSTALLED = ROOT / ".e2e"
PACKAGES = (
    "node@22",
    "@anthropic-ai/claude-code@2.1.325",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/conformance@0.1.16",
)
COMMANDS = ("node", "claude", "mcp-inspector", "conformance")
BIN = INSTALLED / "node_modules" / ".bin"


def install() -> None:
    """Node 22 beside the clients: npm on an older Node silently picks an older Claude Code."""
    if all((BIN / command).exists() for command in COMMANDS):
        return
    INSTALLED.mkdir(exist_ok=True)
    print("installing", *PACKAGES, flush=True)
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(INSTALLED), *PACKAGES],
        check=True,
        capture_output=True,
    )
    approve = ["npm", "install-scripts", "approve", "--all", "--prefix", str(INSTALLED)]
    if subprocess.run(approve, check=False, capture_output=True, cwd=INSTALLED).returncode == 0:
        subprocess.run(["npm", "rebuild", "--prefix", str(INSTALLED)], check=True, capture_output=True)


class Desk:
    """One user's desk: a home, a project, the clients on PATH and `nudge` as it is installed here."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        machine.use_default_directory()
        machine.store_settings({})
        self.project = machine.base / "project"
        self.project.mkdir()
        scripts = Path(sys.executable).parent
        self.environ = {**machine.environ, "PATH": f"{BIN}:{scripts}:{os.environ['PATH']}", "DISABLE_AUTOUPDATER": "1"}

    def run(self, *command: str, cwd: str | None = None) -> str:
        """All that the command printed, whatever its exit code."""
        done = self.execute(*command, cwd=cwd)
        return done.stdout + done.stderr

    def json(self, *command: str) -> Any:
        """What `nudge` answers as JSON; notes of a command are on stderr."""
        return json.loads(self.execute("nudge", *command, "--json").stdout)

    def execute(self, *command: str, cwd: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=cwd or self.project,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )
