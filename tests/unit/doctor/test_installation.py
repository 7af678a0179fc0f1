from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from nudge import __version__
from nudge.clients import claude_code, opencode
from nudge.clients.client import Home
from nudge.clients.executable import Executable
from nudge.doctor import fix, installation
from nudge.doctor.model import Snapshot
from tests.unit.doctor.conftest import Make, levels, only


@pytest.mark.parametrize(
    ("version", "level", "fix"),
    [
        (__version__, "ok", None),
        ("999.0", "warn", "uv tool upgrade nudge-mcp"),
        ("0.0.1", "warn", "nudge stop --force"),
    ],
)
def test_versions(make: Make, version: str, level: str, fix: str | None) -> None:
    """The fix is for the older of the two: stop the server, or upgrade the command."""
    result = only(installation.check_versions(make(status={"version": version, "members": []})))
    assert (result.level, result.fix) == (level, fix)


def test_members_of_another_version(make: Make) -> None:
    """Clients with another version are mentioned, without a warning."""
    status = {"version": __version__, "members": [{"version": "0.0.9"}, {"version": __version__}]}
    result = only(installation.check_versions(make(status=status)))
    assert result.level == "ok" and "0.0.9" in result.message
    assert only(installation.check_versions(make())).level == "ok"


def program(folder: Path, content: str = "#!/bin/sh\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "nudge"
    path.write_text(content)
    path.chmod(0o755)
    return path


def on_path(*programs: Path) -> dict[str, str]:
    return {"PATH": os.pathsep.join(str(path.parent) for path in programs)}


def test_one_installation(make: Make, tmp_path: Path) -> None:
    """One file is one installation, however many names lead to it; none at all is a warning."""
    first = program(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "nudge").symlink_to(first)
    environ = on_path(first, tmp_path / "b" / "nudge")
    assert only(installation.check_programs(make(environ=environ))).message == str(first)
    assert only(installation.check_programs(make(environ={"PATH": str(tmp_path)}))).level == "warn"


@pytest.mark.parametrize(
    ("place", "content", "fix"),
    [
        ("share/uv/tools/nudge-mcp/bin", "", "uv tool uninstall nudge-mcp"),
        ("share/pipx/venvs/nudge-mcp/bin", "", "pipx uninstall nudge-mcp"),
        ("venv/bin", "#!/opt/venv/bin/python3\n", "/opt/venv/bin/python3 -m pip uninstall nudge-mcp"),
    ],
)
def test_two_installations(make: Make, tmp_path: Path, place: str, content: str, fix: str) -> None:
    """The fix uninstalls the unused one with the tool that installed it."""
    environ = on_path(program(tmp_path / "first"), program(tmp_path / place, content))
    assert only(installation.check_programs(make(environ=environ))).fix == fix


def test_two_installations_of_unknown_origin(make: Make, tmp_path: Path) -> None:
    """The fix for a script without a known installer is to remove the file."""
    second = program(tmp_path / "second")
    assert (
        only(installation.check_programs(make(environ=on_path(program(tmp_path / "first"), second)))).fix
        == f"rm {second}"
    )


def test_python_and_sqlite(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions are shown; a SQLite without full-text search is a warning, since hints do not need it."""
    assert sys.version.split()[0] in only(installation.check_python(make())).message
    monkeypatch.setattr(installation, "_has_full_text_search", lambda: False)
    assert only(installation.check_sqlite(make())).level == "warn"
    monkeypatch.setattr(installation, "_has_full_text_search", lambda: True)
    assert only(installation.check_sqlite(make())).level == "ok"
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    assert "no SQLite" in only(installation.check_sqlite(make())).message


def test_a_slow_environment(make: Make, tmp_path: Path) -> None:
    """What slows every start is named: no cached bytecode, a shim in front."""
    shim = program(tmp_path / "shims", "#!/usr/bin/env bash\nexec pyenv exec nudge\n")
    result = list(installation.check_environment(make(environ={**on_path(shim), "PYTHONDONTWRITEBYTECODE": "1"})))
    assert [finding.fix for finding in result] == ["unset PYTHONDONTWRITEBYTECODE", "uv tool install nudge-mcp"]
    assert levels(installation.check_environment(make(environ=on_path(program(tmp_path / "bin"))))) == ["ok"]


# The agent clients' settings


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def fixes(snapshot: Snapshot) -> list[str | None]:
    return [finding.fix for finding in installation.check_memory_tools(snapshot) if finding.level == "warn"]


def test_other_memory_tools(make: Make, tmp_path: Path) -> None:
    """Servers, hooks and plugins of every client that is looked at, each with the command that removes it."""
    hook = {
        "hooks": [{"type": "command", "command": "npx claude-mem hook"}, {"type": "command", "command": "make fmt"}]
    }
    write(
        tmp_path / ".claude/settings.json",
        {"hooks": {"SessionStart": [hook]}, "enabledPlugins": {"claude-mem@x": True, "zep@x": False}},
    )
    work = str(tmp_path / "work")
    local = {"mcpServers": {"notes": {"command": "uvx", "args": ["basic-memory", "mcp"]}}}
    write(
        tmp_path / ".claude.json",
        {"mcpServers": {"memory": {"command": "npx"}}, "projects": {work: local, "/else": local}},
    )
    write(
        tmp_path / "work/.mcp.json",
        {"mcpServers": {"m": {"command": "npx", "args": ["@modelcontextprotocol/server-memory"]}}},
    )
    write(tmp_path / ".codex/config.toml", '[mcp_servers.mem0]\nurl = "https://mcp.mem0.ai"\n')
    write(tmp_path / ".gemini/settings.json", {"mcpServers": {"serena": {"command": "uvx"}}})
    assert fixes(make()) == [
        "claude mcp remove memory -s user",
        f"${{EDITOR:-vi}} {tmp_path / '.claude/settings.json'}",
        "claude plugin disable claude-mem@x",
        "claude mcp remove notes -s local",
        "claude mcp remove m -s project",
        "codex mcp remove mem0",
        "gemini mcp remove serena",
    ]


def test_a_neighbours_command_is_not_repeated(make: Make, tmp_path: Path) -> None:
    """The command may hold a credential, and users paste the output of doctor into public places."""
    servers = {"notes": {"command": "uvx", "args": ["mem0-mcp", "--key", "sk-1234"], "env": {"KEY": "sk-1234"}}}
    write(tmp_path / ".claude.json", {"mcpServers": servers})
    result = only(installation.check_memory_tools(make()))
    assert "server notes (mem0)" in result.message and "sk-1234" not in result.message + str(result.fix)


def test_what_is_no_memory_tool(make: Make, tmp_path: Path) -> None:
    """A tool's name inside another word, a memory limit on a command line, and Nudge itself are not reported."""
    servers = {
        "nudge": {"command": "/opt/memory/bin/nudge", "args": ["serve"]},
        "java": {"command": "java", "args": ["--max-memory", "4096"]},
        "zeppelin": {"command": "zeppelin"},
        "memoryless": {"command": "x"},
    }
    write(tmp_path / ".claude.json", {"mcpServers": servers})
    assert fixes(make()) == []


ODD = '{"mcpServers": {"a": 1, "b": {"args": 3}}, "hooks": {"x": [1, {"hooks": [2]}]}}'


@pytest.mark.parametrize("content", ["", "{", "[]", '{"mcpServers": [1]}', ODD])
def test_a_clients_broken_file(make: Make, tmp_path: Path, content: str) -> None:
    """A settings file that cannot be parsed yields no finding and no error: the client reports it."""
    for name in (
        ".claude/settings.json",
        ".claude.json",
        ".gemini/settings.json",
        ".codex/config.toml",
        "work/.mcp.json",
    ):
        write(tmp_path / name, content)
    assert levels(installation.check_memory_tools(make())) == ["ok"]
    assert levels(installation.check_connections(make())) == ["ok"]


def test_nudge_wired_twice(make: Make, tmp_path: Path) -> None:
    """Two names are two servers; one name in two places is one."""
    write(tmp_path / ".claude.json", {"mcpServers": {"nudge": {"command": "nudge", "args": ["serve"]}}})
    write(tmp_path / "work/.mcp.json", {"mcpServers": {"nudge": {"command": "uvx", "args": ["nudge-mcp", "serve"]}}})
    assert levels(installation.check_connections(make())) == ["ok"]
    write(
        tmp_path / "work/.mcp.json", {"mcpServers": {"hints": {"command": "python", "args": ["-m", "nudge", "serve"]}}}
    )
    result = only(installation.check_connections(make()))
    assert (result.level, result.fix) == ("warn", "claude mcp remove hints -s project")
    write(tmp_path / ".claude/settings.json", {"enabledPlugins": {"nudge@market": True}})
    assert "nudge@market" in only(installation.check_connections(make())).message


@pytest.mark.parametrize("script", ["nudge-hook", "'/my data/nudge-hook'", "/usr/bin/nudge"])
def test_hooks_without_the_server(make: Make, tmp_path: Path, script: str) -> None:
    """A client that runs our hooks and does not start our server is named, with the command that adds it; so are events
    for which there is no hook, as an older version connected it."""
    hook = {"hooks": [{"type": "command", "command": f"{script} record"}]}
    settings = {"hooks": {"Stop": [hook]}}
    write(tmp_path / ".claude/settings.json", settings)
    result = only(installation.check_connections(make()))
    assert (result.level, result.fix) == ("warn", "nudge connect claude-code") and "MCP server" in result.message
    write(tmp_path / ".claude.json", {"mcpServers": {"nudge": {"command": "nudge", "args": ["serve"]}}})
    started, missing = installation.check_connections(make())
    assert started.level == "ok" and (missing.level, missing.fix) == ("warn", "nudge connect claude-code")
    assert "PostToolUseFailure" in missing.message and "Stop" not in missing.message
    settings = {"hooks": {event: [hook] for event in claude_code.CLIENT.connected_events}}
    write(tmp_path / ".claude/settings.json", settings)
    assert levels(installation.check_connections(make())) == ["ok"]
    (tmp_path / ".claude.json").unlink()
    write(tmp_path / ".claude/settings.json", {**settings, "enabledPlugins": {"nudge@market": True}})
    assert levels(installation.check_connections(make())) == ["ok"]


@pytest.mark.parametrize(
    ("variable", "file", "content", "fix"),
    [
        ("CODEX_HOME", "config.toml", '[mcp_servers.mem0]\ncommand = "mem0"\n', "codex mcp remove mem0"),
        ("CLAUDE_CONFIG_DIR", ".claude.json", {"mcpServers": {"mem0": {}}}, "claude mcp remove mem0 -s user"),
        ("GEMINI_CLI_HOME", ".gemini/settings.json", {"mcpServers": {"mem0": {}}}, "gemini mcp remove mem0"),
        ("XDG_CONFIG_HOME", "opencode/opencode.json", {"mcp": {"mem0": {"command": ["mem0"]}}}, None),
    ],
)
def test_a_client_that_was_moved_is_checked_where_it_is(
    make: Make, tmp_path: Path, variable: str, file: str, content: Any, fix: str | None
) -> None:
    """A memory tool below CODEX_HOME or another client's variable is found, and none where the client does not look."""
    path = tmp_path / "moved" / file
    write(path, content)
    assert fixes(make()) == []
    assert fixes(make(environ={variable: str(tmp_path / "moved")})) == [fix or f"${{EDITOR:-vi}} {path}"]


def test_every_client_is_checked(make: Make, tmp_path: Path) -> None:
    """Those that are connected by hand too, and files with comments."""
    write(tmp_path / ".cursor/mcp.json", {"mcpServers": {"mem0": {"command": "mem0"}}})
    write(tmp_path / ".codex/hooks.json", {"hooks": {"Stop": [{"hooks": [{"command": "claude-mem save"}]}]}})
    write(tmp_path / ".config/zed/settings.json", '{ // mine\n "context_servers": {"letta": {"command": "letta"}}}')
    assert fixes(make()) == [
        f"${{EDITOR:-vi}} {tmp_path / name}"
        for name in (".codex/hooks.json", ".cursor/mcp.json", ".config/zed/settings.json")
    ]


@pytest.mark.parametrize("state", ["gone", "not executable", "there"])
def test_the_script_that_hooks_run_exists(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """A client's settings name a script in the data directory; where it cannot be run, `--fix` writes it again."""
    data = tmp_path / "my data"
    monkeypatch.setenv("NUDGE_RUNTIME_DIR", str(data))
    data.mkdir(mode=0o700)
    script = data / "nudge-hook"
    if state != "gone":
        script.write_text("#!/bin/sh\n")
        script.chmod(0o700 if state == "there" else 0o600)
    hook = {"hooks": [{"type": "command", "command": f"'{script}' record"}]}
    write(tmp_path / ".claude/settings.json", {"hooks": {"SessionStart": [hook], "Stop": [hook]}})
    snapshot = make(environ={"NUDGE_RUNTIME_DIR": str(data)})
    result = only(installation.check_hook_script(snapshot))
    if state == "there":
        assert result.level == "ok"
        return
    assert result.level == "fail" and result.fix == "nudge connect claude-code" and "Claude Code" in result.message
    assert fix([result]) == [("hooks", f"wrote {script}")]
    assert only(installation.check_hook_script(snapshot)).level == "ok" and "record" in script.read_text()


@pytest.mark.parametrize("command", [None, "~/.claude/line.sh", "bar | nudge statusline"])
def test_the_status_line_of_another_is_no_matter(make: Make, tmp_path: Path, command: str | None) -> None:
    """Nothing is said where there is none, and none where it is another's, also one that runs ours."""
    write(
        tmp_path / ".claude/settings.json", {"statusLine": {"type": "command", "command": command}} if command else {}
    )
    assert list(installation.check_status_line(make())) == []


def test_the_status_line_that_was_connected_can_be_run(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claude Code shows nothing, and says nothing, where its script is gone; `--fix` writes it again."""
    data = tmp_path / "my data"
    monkeypatch.setenv("NUDGE_RUNTIME_DIR", str(data))
    data.mkdir(mode=0o700)
    entry = {"type": "command", "command": f"'{data}/nudge-hook' statusline"}
    write(tmp_path / ".claude/settings.json", {"statusLine": entry})
    snapshot = make(environ={"NUDGE_RUNTIME_DIR": str(data)})
    result = only(installation.check_status_line(snapshot))
    assert (result.level, result.fix) == ("fail", "nudge connect claude-code --statusline")
    assert fix([result]) == [("status line", f"wrote {data}/nudge-hook")]
    assert only(installation.check_status_line(snapshot)).level == "ok"
    write(tmp_path / ".claude/settings.json", {"statusLine": {**entry, "command": "/old/nudge-hook statusline"}})
    assert only(installation.check_status_line(snapshot)).repair is None


def test_the_script_is_checked_for_every_client_that_runs_it(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One script serves them all, also the plugin file of OpenCode; the fix names each of them."""
    monkeypatch.setenv("NUDGE_RUNTIME_DIR", str(tmp_path / "data"))
    script = tmp_path / "data" / "nudge-hook"
    hook = {"hooks": [{"type": "command", "command": f"'{script}' record"}]}
    write(tmp_path / ".claude/settings.json", {"hooks": {"Stop": [hook]}})
    write(tmp_path / ".gemini/settings.json", {"hooks": {"SessionStart": [hook]}})
    home = Home(str(tmp_path), {})
    for file in opencode.CLIENT.config_files(home, Executable("nudge")):
        Path(file.path).parent.mkdir(parents=True, exist_ok=True)
        Path(file.path).write_text(file.connect("", "").text)
    snapshot = make(environ={"NUDGE_RUNTIME_DIR": str(tmp_path / "data")})
    result = only(installation.check_hook_script(snapshot))
    assert "Claude Code and Gemini CLI and OpenCode" in result.message
    assert result.fix == "nudge connect claude-code; nudge connect gemini; nudge connect opencode"
    wired = [finding.message for finding in installation.check_connections(snapshot)]
    assert "OpenCode starts it as nudge" in wired
    assert [message.partition(" has the hooks")[0] for message in wired[:2]] == ["Claude Code", "Gemini CLI"]


def test_beside_the_plugin_the_fix_is_not_connect(make: Make, tmp_path: Path) -> None:
    """`nudge connect` changes nothing where the plugin is enabled, so that it would mend no hook of the settings."""
    hook = {"hooks": [{"type": "command", "command": f"{tmp_path}/old/nudge-hook", "args": ["record"]}]}
    write(tmp_path / ".claude/settings.json", {"hooks": {"Stop": [hook]}, "enabledPlugins": {"nudge@nudge": True}})
    assert only(installation.check_hook_script(make())).fix == "nudge disconnect claude-code"


def test_a_client_without_hooks_is_said_to_record_nothing(make: Make, tmp_path: Path) -> None:
    """Its tools work, so this is no warning; a client that has no hooks at all is not blamed."""
    write(tmp_path / ".gemini/settings.json", {"mcpServers": {"nudge": {"command": "nudge", "args": ["serve"]}}})
    write(tmp_path / ".config/zed/settings.json", {"context_servers": {"nudge": {"command": "nudge"}}})
    result = {finding.message: finding.level for finding in installation.check_connections(make())}
    assert result == {
        "Gemini CLI starts it as nudge, without hooks: its sessions are not recorded": "ok",
        "Zed starts it as nudge": "ok",
    }


def test_a_script_in_another_place_is_for_connect_to_write(make: Make, tmp_path: Path) -> None:
    """`--fix` writes only the script of this installation's data directory. Without hooks nothing is said."""
    assert list(installation.check_hook_script(make())) == []
    hook = {"hooks": [{"type": "command", "command": f"{tmp_path}/old/nudge-hook", "args": ["record"]}]}
    write(tmp_path / ".claude/settings.json", {"hooks": {"Stop": [hook]}})
    result = only(installation.check_hook_script(make()))
    assert result.level == "fail" and result.repair is None
