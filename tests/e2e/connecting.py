"""`nudge connect` and `nudge disconnect` with the real clients: they list the server, get their files back to the
byte."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e import claude
from tests.e2e.clients import BIN, INSTALLED, Desk
from tests.harness import ROOT, TIMEOUT, eventually
from tests.unit.history.payloads import kind_of

OPENCODE_VERSION = "1.18.33"
PACKAGES = ("@openai/codex@0.166.0", "@google/gemini-cli@0.61.0", f"opencode-ai@{OPENCODE_VERSION}")
COMMANDS = ("codex", "gemini", "opencode")

CLAUDE_SETTINGS = """{
\t"model": "opus",
\t"hooks": {
\t\t"PostToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}],
\t\t"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]
\t},
\t"permissions": {"allow": ["Bash(ls:*)"]}
}"""
CODEX_CONFIG = """# how I like it
model = "m"  # not a real one

[mcp_servers.other]
command = "cat"
enabled = false

[tui]
theme = "dark"
"""
CODEX_HOOKS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true", "timeout": 9}]}]}}'
GEMINI_SETTINGS = """{
    // how I like it
    "ui": { "theme": "GitHub" }, /* really */
    "security": { "auth": { "selectedType": "gemini-api-key" } },
    "mcpServers": {
        "other": { "command": "/bin/false" } // broken
    },
    "hooks": {
        "AfterTool": [
            { "matcher": "write_.*", "hooks": [{ "type": "command", "command": "true" }] }
        ]
    }
    // the end
}
"""
OPENCODE_CONFIG = """{
  "$schema": "https://opencode.ai/config.json", // for the editor
  "mcp": {
    /* not now */
    "other": { "type": "local", "command": ["/bin/false"], "enabled": false },
  },
  "share": "disabled",
}
"""


def install() -> None:
    """Only OpenCode's install script is run: it fetches nothing, it puts the program in its place."""
    if all((BIN / command).exists() for command in COMMANDS):
        return
    print("installing", *PACKAGES, flush=True)
    npm = ["npm", "--no-audit", "--no-fund", "--prefix", str(INSTALLED)]
    subprocess.run([*npm, "install", *PACKAGES], check=True, capture_output=True)
    subprocess.run([*npm, "install-scripts", "approve", "opencode-ai"], check=False, capture_output=True, cwd=INSTALLED)
    subprocess.run([*npm, "rebuild", "opencode-ai"], check=True, capture_output=True, cwd=INSTALLED)


class Wired:
    """A home with one client's files in it; `nudge` on PATH notes what its hooks are told before it does anything."""

    def __init__(self, desk: Desk, client: str, files: dict[str, str]) -> None:
        self.desk, self.client = desk, client
        self.home = desk.machine.home
        self.log = desk.machine.base / "hooks.log"
        self.executable = self._install_nudge()
        self._files = [self.home / name for name in files]
        for path, text in zip(self._files, files.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())

    def _install_nudge(self) -> Path:
        real = shutil.which("nudge", path=self.desk.environ["PATH"])
        path = self.desk.machine.base / "bin" / "nudge"
        path.parent.mkdir()
        path.write_text(
            f'#!/bin/sh\n[ "$1" = record ] || exec {real} "$@"\n{{ cat; echo; }} | tee -a {self.log} | {real} record\n'
        )
        path.chmod(0o755)
        self.desk.environ["PATH"] = f"{path.parent}:{self.desk.environ['PATH']}"
        return path

    def contents(self) -> list[bytes | None]:
        return [path.read_bytes() if path.exists() else None for path in self._files]

    def round_trip(self, check: Callable[[], None]) -> None:
        """Connect, once and only once; let the client have its say; disconnect, and look at every byte."""
        before = self.contents()
        done = self.desk.run("nudge", "connect", self.client, "--yes")
        assert "next:" in done and self.contents() != before, done
        connected = self.contents()
        assert "is already connected" in self.desk.run("nudge", "connect", self.client)
        check()
        assert self.contents() == connected, "the client has changed its own files: nothing to compare with"
        self.desk.run("nudge", "disconnect", self.client)
        assert self.contents() == before, [path.read_text() for path in self._files if path.exists()]

    def recorded(self) -> list[str]:
        """What the hooks told, classified as `nudge record` does."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [kind_of(json.loads(line)) or "ignored" for line in lines if line.strip()]


def claude_code_is_wired(desk: Desk) -> None:
    """By its own command; connected it lists the server, disconnected its files are as they were."""
    wired = Wired(
        desk,
        "claude-code",
        {".claude.json": '{"hasCompletedOnboarding": true}', ".claude/settings.json": CLAUDE_SETTINGS},
    )
    desk.run("claude", "mcp", "add", "--scope", "user", "other", "--", "/bin/false")
    desk.run("claude", "mcp", "list")  # on its first start it adds things of its own

    def check() -> None:
        listed = desk.run("claude", "mcp", "list")
        assert f"nudge: {wired.executable} serve - ✔ Connected" in listed, listed

    wired.round_trip(check)


def codex_is_wired(desk: Desk) -> None:
    """Its app server connects to the server and lists the tools, and it knows our hooks beside another's."""
    wired = Wired(desk, "codex", {".codex/config.toml": CODEX_CONFIG, ".codex/hooks.json": CODEX_HOOKS})

    def check() -> None:
        servers, hooks = _ask_codex(desk)
        tools = {server["name"]: set(server["tools"]) for server in servers["data"]}
        assert "nudge_get_hint" in tools["nudge"], tools
        commands = [hook["command"] for hook in hooks["data"][0]["hooks"]]
        assert sum("nudge-hook record" in command for command in commands) == 5 and "true" in commands, commands
        assert not hooks["data"][0]["errors"] and not hooks["data"][0]["warnings"]

    wired.round_trip(check)


def _ask_codex(desk: Desk) -> list[dict[str, Any]]:
    """The answers to two questions, put to `codex app-server`."""
    questions: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "t", "title": "t", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "mcpServerStatus/list", "params": {}},
        {"id": 3, "method": "hooks/list", "params": {"cwds": [str(desk.project)]}},
    ]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        ["codex", "app-server"], cwd=desk.project, env=desk.environ, stdin=pipe, stdout=pipe, stderr=nowhere
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write("".join(json.dumps(question) + "\n" for question in questions).encode())
        server.stdin.flush()
        answers: dict[int, dict[str, Any]] = {}
        while not {2, 3} <= set(answers):
            line = server.stdout.readline()
            assert line, "codex app-server ended"
            message = json.loads(line)
            answers[message.get("id")] = message.get("result")
        server.stdin.close()
        server.wait(TIMEOUT)
    return [answers[2], answers[3]]


def gemini_is_wired(desk: Desk) -> None:
    """It connects to the server, although its settings have comments; they keep them."""
    wired = Wired(desk, "gemini", {".gemini/settings.json": GEMINI_SETTINGS})
    desk.environ["GEMINI_CLI_TRUST_WORKSPACE"] = "true"

    def check() -> None:
        listed = desk.run("gemini", "mcp", "list")
        assert f"✓ nudge: {wired.executable} serve (stdio) - Connected" in listed, listed

    wired.round_trip(check)


def keep_opencode_offline(home: Path) -> None:
    """As after its first start, when it has fetched the package that plugins may import; ours does not."""
    folder = home / ".config/opencode"
    (folder / "node_modules").mkdir(parents=True)
    fetched = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": OPENCODE_VERSION}}}}
    (folder / "package-lock.json").write_text(json.dumps(fetched))


def opencode_is_wired(desk: Desk) -> None:
    """It connects to the server and loads the plugin; its configuration keeps comments and trailing commas."""
    keep_opencode_offline(desk.machine.home)
    desk.environ["OPENCODE_DISABLE_MODELS_FETCH"] = "1"
    wired = Wired(
        desk, "opencode", {".config/opencode/opencode.jsonc": OPENCODE_CONFIG, ".config/opencode/plugin/nudge.js": ""}
    )
    (wired.home / ".config/opencode/plugin/nudge.js").unlink()

    def check() -> None:
        listed = desk.run("opencode", "mcp", "list")
        line = next((line for line in listed.splitlines() if "nudge" in line), "")
        assert "✓" in line and "connected" in line, listed
        assert "plugin/nudge.js" in desk.run("opencode", "debug", "config")

    wired.round_trip(check)


def the_plugin_is_valid(desk: Desk) -> None:
    """Claude Code validates marketplace and plugin strictly, installs it, and finds server, hooks and skill in it."""
    for directory in (ROOT / "plugin", ROOT / "plugin" / "plugins" / "nudge"):
        verdict = desk.run("claude", "plugin", "validate", str(directory), "--strict")
        assert "✔ Validation passed" in verdict and "⚠" not in verdict, verdict
    desk.run("claude", "plugin", "marketplace", "add", str(ROOT / "plugin"))
    assert "nudge" in desk.run("claude", "plugin", "install", "nudge@nudge")
    details = desk.run("claude", "plugin", "details", "nudge")
    assert all(word in details for word in ("SessionStart", "nudge")), details
    listed = desk.run("claude", "mcp", "list")
    assert "nudge serve - ✔ Connected" in listed, listed


def _observed_kinds(desk: Desk) -> list[str]:
    trace = desk.json("trace", "last")
    return [row["obs_type"] for prompt in trace["prompts"] for row in prompt["observations"]]


def the_plugin_works(desk: Desk) -> None:
    """Its hooks run from the plugin's own directory and record, its server answers, and `nudge connect` sees it and
    does not wire a second set."""
    desk.run("claude", "plugin", "marketplace", "add", str(ROOT / "plugin"))
    desk.run("claude", "plugin", "install", "nudge@nudge")
    settings = desk.machine.home / ".claude/settings.json"
    before = settings.read_bytes()
    assert "already connected by the plugin nudge@nudge" in desk.run("nudge", "connect", "claude-code", "--yes")
    assert settings.read_bytes() == before
    name = "mcp__plugin_nudge_nudge__nudge_set_hint"
    meta = {"scope": {"cwd_glob": [f"{desk.project}/**"]}}
    hint = {"component": "api", "key": "test", "value": "make check", "meta": meta}
    first = claude.run(desk, "first", [claude.bash("echo by-the-plugin"), {"name": name, "input": hint}])
    assert first.answer(1)["hint"]["value"] == "make check", first.results
    kinds = ["command", "mcp_call", "session_end", "session_start", "session_stop"]
    # The client's server ends beside the last hook, which then leaves its event to the next server.
    eventually(lambda: sorted(_observed_kinds(desk)) == kinds, "every event of the session is stored")
    second = claude.run(desk, "second")
    assert "api/test" in second.told and "make check" in second.told, second.injected


CHECKS: tuple[Callable[[Desk], None], ...] = (
    claude_code_is_wired,
    codex_is_wired,
    gemini_is_wired,
    opencode_is_wired,
    the_plugin_is_valid,
    the_plugin_works,
)
