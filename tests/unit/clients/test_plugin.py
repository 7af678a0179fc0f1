"""The Claude Code plugin says the same as `nudge connect claude-code`. That Claude Code takes it is checked with the
real one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from nudge import __version__
from nudge.clients import claude_code
from nudge.clients.client import NAME
from nudge.clients.executable import HOOK_SCRIPT, Executable, is_our_hook

ROOT = Path(__file__).parents[3] / "plugin"
PLUGIN = ROOT / "plugins" / "nudge"


def document(path: Path) -> Any:
    return json.loads(path.read_text())


HOOKS = document(PLUGIN / "hooks" / "hooks.json")["hooks"]
HANDLERS = [group["hooks"][0] for groups in HOOKS.values() for group in groups]
SCRIPT = f"${{CLAUDE_PLUGIN_ROOT}}/hooks/{HOOK_SCRIPT}"


def test_it_hooks_the_same_events() -> None:
    """With the same timeouts."""
    assert {event: groups[0]["hooks"][0]["timeout"] for event, groups in HOOKS.items()} == {
        event: claude_code.CLIENT.hook_timeout(event) for event in claude_code.CLIENT.connected_events
    }


def test_the_plugin_brings_its_own_hook_script(tmp_path: Path) -> None:
    """The one that `nudge connect` installs, but for the path. Without `nudge` on PATH it succeeds and says nothing."""
    assert {(handler["command"], *handler["args"]) for handler in HANDLERS} == {(SCRIPT, "record")}
    assert is_our_hook(f"{SCRIPT} record")
    path = PLUGIN / "hooks" / HOOK_SCRIPT
    assert path.read_text() == Executable(NAME).hook_script and os.access(path, os.X_OK)
    done = subprocess.run([path, "record"], env={"PATH": str(tmp_path)}, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_it_has_the_version_of_the_package() -> None:
    """In both manifests; the marketplace points at the plugin."""
    manifest = document(PLUGIN / ".claude-plugin" / "plugin.json")
    (listed,) = document(ROOT / ".claude-plugin" / "marketplace.json")["plugins"]
    assert manifest["version"] == listed["version"] == __version__
    assert (ROOT / listed["source"]).resolve() == PLUGIN and manifest["name"] == listed["name"]


def test_it_serves() -> None:
    """The same server as everywhere."""
    assert document(PLUGIN / ".mcp.json") == {"mcpServers": {"nudge": {"command": "nudge", "args": ["serve"]}}}


def test_the_skill_knows_every_tool_of_an_agent_s_day() -> None:
    """Which one before, after, on failure, and for the past."""
    skill = (PLUGIN / "skills" / "nudge" / "SKILL.md").read_text()
    hints = ("nudge_get_hint", "nudge_query", "nudge_set_hint", "nudge_bump", "nudge_list_components")
    history = ("search", "get_observations", "timeline", "file_history", "session_trace", "recent_context")
    notes = ("memory_recall", "memory_store", "memory_get", "memory_explain", "memory_resolve")
    assert [tool for tool in (*hints, *notes, *history) if f"`{tool}" not in skill] == []
    assert skill.startswith("---\nname: nudge\ndescription: ")


def test_the_readme_says_enough() -> None:
    """The directory of plugins wants forty words."""
    assert len((PLUGIN / "README.md").read_text().split()) >= 40
