from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nudge import __version__, paths
from nudge.clock import boot_id, boot_seconds
from nudge.doctor import changes, installation, machine, neighbours
from nudge.doctor.finding import Patient
from nudge.storage.changelog import ChangeLog

from .conftest import Make, levels, only

# The change log and the clock


def write_log(run: Path, **header: Any) -> Path:
    path = run / paths.CHANGE_LOG
    here = {"format": 1, "session": "s", "created": 0.0, "boot_id": boot_id(), "offset": time.time() - boot_seconds()}
    ChangeLog.create(str(path), {**here, **header}, [{"t": 1.0}]).close()
    return path


def test_the_change_log(make: Make, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, whole, torn, damaged, newer, large, unreadable: each is told from the others."""
    seen = [only(changes.check_log(make())).level]
    path = write_log(run)
    seen.append(only(changes.check_log(make())).level)
    monkeypatch.setattr("nudge.limits.LARGE_LOG_BYTES", 10)
    seen.append(only(changes.check_log(make())).mend or "")
    with path.open("ab") as file:
        file.write(b"\0\0\0")
    seen.append(only(changes.check_log(make())).message)
    path.write_bytes(b"rubbish")
    seen.append(only(changes.check_log(make())).mend or "")
    write_log(run, format=99)
    seen.append(only(changes.check_log(make())).message)
    path.unlink()
    path.mkdir()
    seen.append(only(changes.check_log(make())).level)
    assert seen[:3] == ["ok", "ok", "nudge export > hints.json; nudge stop --forget"]
    assert seen[3].startswith("it ends in an incomplete record") and seen[4] == "nudge ls"
    assert "newer Nudge" in seen[5] and seen[6] == "fail"


@pytest.mark.usefixtures("held")
def test_a_living_server_may_be_writing(make: Make, run: Path) -> None:
    """Half a record at the end is then no sign of anything."""
    with write_log(run).open("ab") as file:
        file.write(b"\0\0\0")
    assert only(changes.check_log(make())).level == "ok"


@pytest.mark.parametrize(
    ("stepped", "level", "words"),
    [(0.0, "ok", "steady"), (-86_400.0, "warn", "forward by 1d"), (86_400.0, "warn", "back by")],
)
def test_a_clock_that_was_moved(make: Make, run: Path, stepped: float, level: str, words: str) -> None:
    """A step since the session began is said, with its size; another boot's session says nothing about this clock."""
    write_log(run, offset=time.time() - boot_seconds() + stepped)
    found = only(changes.check_clock(make()))
    assert found.level == level and words in found.message
    write_log(run, offset=0.0, boot_id="another")
    assert only(changes.check_clock(make())).level == "ok"


def test_a_clock_that_was_never_set(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """1970 is a failure: every time that is shown would be wrong."""
    monkeypatch.setattr("nudge.limits.EARLIEST_CLOCK", time.time() + 1_000)
    assert only(changes.check_clock(make())).level == "fail"


# The installation


@pytest.mark.parametrize(
    ("version", "level", "mend"),
    [
        (__version__, "ok", None),
        ("999.0", "warn", "uv tool upgrade nudge-mcp"),
        ("0.0.1", "warn", "nudge stop --force"),
    ],
)
def test_versions(make: Make, version: str, level: str, mend: str | None) -> None:
    """The older of the two is the one to change."""
    found = only(installation.check_versions(make(status={"version": version, "members": []})))
    assert (found.level, found.mend) == (level, mend)


def test_members_of_another_version(make: Make) -> None:
    """They work; they are mentioned."""
    status = {"version": __version__, "members": [{"version": "0.0.9"}, {"version": __version__}]}
    found = only(installation.check_versions(make(status=status)))
    assert found.level == "ok" and "0.0.9" in found.message
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
    assert only(installation.check_installations(make(environ=environ))).message == str(first)
    assert only(installation.check_installations(make(environ={"PATH": str(tmp_path)}))).level == "warn"


@pytest.mark.parametrize(
    ("place", "content", "mend"),
    [
        ("share/uv/tools/nudge-mcp/bin", "", "uv tool uninstall nudge-mcp"),
        ("share/pipx/venvs/nudge-mcp/bin", "", "pipx uninstall nudge-mcp"),
        ("venv/bin", "#!/opt/venv/bin/python3\n", "/opt/venv/bin/python3 -m pip uninstall nudge-mcp"),
    ],
)
def test_two_installations(make: Make, tmp_path: Path, place: str, content: str, mend: str) -> None:
    """The one that is not used is removed with the tool that put it there."""
    environ = on_path(program(tmp_path / "first"), program(tmp_path / place, content))
    assert only(installation.check_installations(make(environ=environ))).mend == mend


def test_two_installations_of_unknown_origin(make: Make, tmp_path: Path) -> None:
    """A script that says nothing about itself is a file to remove."""
    second = program(tmp_path / "second")
    assert (
        only(installation.check_installations(make(environ=on_path(program(tmp_path / "first"), second)))).mend
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
    found = list(installation.check_environment(make(environ={**on_path(shim), "PYTHONDONTWRITEBYTECODE": "1"})))
    assert [finding.mend for finding in found] == ["unset PYTHONDONTWRITEBYTECODE", "uv tool install nudge-mcp"]
    assert levels(installation.check_environment(make(environ=on_path(program(tmp_path / "bin"))))) == ["ok"]


@pytest.mark.parametrize(("free", "level"), [(1_000, "fail"), (100 * 1024**2, "warn"), (10 * 1024**3, "ok")])
def test_the_disk(make: Make, monkeypatch: pytest.MonkeyPatch, free: int, level: str) -> None:
    """Before the disk is full, it is low."""

    class Usage:
        pass

    usage = Usage()
    usage.free = free  # type: ignore[attr-defined]
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    assert only(machine.check_disk(make())).level == level


# Neighbours


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def mends(patient: Patient) -> list[str | None]:
    return [finding.mend for finding in neighbours.check_neighbours(patient) if finding.level == "warn"]


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
    assert mends(make()) == [
        f"${{EDITOR:-vi}} {tmp_path / '.claude/settings.json'}",
        "claude plugin disable claude-mem@x",
        "claude mcp remove memory -s user",
        "claude mcp remove notes -s local",
        "claude mcp remove m -s project",
        "codex mcp remove mem0",
        "gemini mcp remove serena",
    ]


def test_a_neighbours_command_is_not_repeated(make: Make, tmp_path: Path) -> None:
    """It may hold a credential, and what doctor prints is pasted into public places."""
    servers = {"notes": {"command": "uvx", "args": ["mem0-mcp", "--key", "sk-1234"], "env": {"KEY": "sk-1234"}}}
    write(tmp_path / ".claude.json", {"mcpServers": servers})
    found = only(neighbours.check_neighbours(make()))
    assert "server notes (mem0)" in found.message and "sk-1234" not in found.message + str(found.mend)


def test_what_is_no_memory_tool(make: Make, tmp_path: Path) -> None:
    """A word inside another, a limit of memory on a command line, and Nudge itself are none."""
    servers = {
        "nudge": {"command": "/opt/memory/bin/nudge", "args": ["serve"]},
        "java": {"command": "java", "args": ["--max-memory", "4096"]},
        "zeppelin": {"command": "zeppelin"},
        "memoryless": {"command": "x"},
    }
    write(tmp_path / ".claude.json", {"mcpServers": servers})
    assert mends(make()) == []


ODD = '{"mcpServers": {"a": 1, "b": {"args": 3}}, "hooks": {"x": [1, {"hooks": [2]}]}}'


@pytest.mark.parametrize("content", ["", "{", "[]", '{"mcpServers": [1]}', ODD])
def test_a_clients_broken_file(make: Make, tmp_path: Path, content: str) -> None:
    """It is the client's to report: here it says nothing and breaks nothing."""
    for name in (
        ".claude/settings.json",
        ".claude.json",
        ".gemini/settings.json",
        ".codex/config.toml",
        "work/.mcp.json",
    ):
        write(tmp_path / name, content)
    assert levels(neighbours.check_neighbours(make())) == ["ok"]
    assert levels(neighbours.check_wiring(make())) == ["ok"]


def test_nudge_wired_twice(make: Make, tmp_path: Path) -> None:
    """Two names are two servers; one name in two places is one."""
    write(tmp_path / ".claude.json", {"mcpServers": {"nudge": {"command": "nudge", "args": ["serve"]}}})
    write(tmp_path / "work/.mcp.json", {"mcpServers": {"nudge": {"command": "uvx", "args": ["nudge-mcp", "serve"]}}})
    assert levels(neighbours.check_wiring(make())) == ["ok"]
    write(
        tmp_path / "work/.mcp.json", {"mcpServers": {"hints": {"command": "python", "args": ["-m", "nudge", "serve"]}}}
    )
    found = only(neighbours.check_wiring(make()))
    assert (found.level, found.mend) == ("warn", "claude mcp remove hints -s project")
    write(tmp_path / ".claude/settings.json", {"enabledPlugins": {"nudge@market": True}})
    assert "nudge@market" in only(neighbours.check_wiring(make())).message
