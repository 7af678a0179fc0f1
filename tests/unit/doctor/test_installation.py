from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from nudge import __version__
from nudge.doctor import installation

from .conftest import Make, levels, only


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
    found = only(installation.check_versions(make(status={"version": version, "members": []})))
    assert (found.level, found.fix) == (level, fix)


def test_members_of_another_version(make: Make) -> None:
    """Clients with another version are mentioned, without a warning."""
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
    found = list(installation.check_environment(make(environ={**on_path(shim), "PYTHONDONTWRITEBYTECODE": "1"})))
    assert [finding.fix for finding in found] == ["unset PYTHONDONTWRITEBYTECODE", "uv tool install nudge-mcp"]
    assert levels(installation.check_environment(make(environ=on_path(program(tmp_path / "bin"))))) == ["ok"]
