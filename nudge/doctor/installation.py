"""Checks of the program itself: its version and the server's, the one on PATH, its Python and SQLite."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from shlex import quote

from nudge import __version__
from nudge.doctor.model import Finding, Snapshot, ok, warn
from nudge.ipc.endpoint import is_newer

_PROGRAM = "nudge"
_DISTRIBUTION = "nudge-mcp"
_INSTALL = f"uv tool install {_DISTRIBUTION}"


def check_versions(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.status is None:
        yield ok("versions", f"this is {__version__}; no server answers")
        return
    running = str(snapshot.status.get("version"))
    others = sorted({str(member.get("version")) for member in snapshot.status.get("members") or ()} - {running})
    if is_newer(__version__, running):
        yield warn("versions", f"the server is {running}, this is {__version__}", "nudge stop --force")
    elif is_newer(running, __version__):
        yield warn(
            "versions", f"the server is {running}, this is still {__version__}", f"uv tool upgrade {_DISTRIBUTION}"
        )
    else:
        beside = f"; clients have also started {', '.join(others)}, which works" if others else ""
        yield ok("versions", f"server and command are both {__version__}{beside}")


def check_programs(snapshot: Snapshot) -> Iterator[Finding]:
    programs = _programs(snapshot.environ)
    if not programs:
        message = "no nudge on PATH: clients that are configured to start it cannot find it"
        yield warn("installation", message, _add_to_path(sys.executable))
    elif len(programs) > 1:
        message = f"several on PATH, the first is used: {', '.join(programs)}"
        yield warn("installation", message, _uninstall(programs[1]))
    else:
        yield ok("installation", programs[0])


def _add_to_path(executable: str) -> str:
    """The command that adds this installation to PATH; the one that installs it, when there is no script beside
    Python."""
    folder = os.path.dirname(executable)
    return f'export PATH={quote(folder)}:"$PATH"' if os.path.exists(os.path.join(folder, _PROGRAM)) else _INSTALL


def _programs(environ: Mapping[str, str]) -> list[str]:
    """Every `nudge` on PATH in search order, each file once."""
    programs: dict[str, str] = {}
    for folder in environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, _PROGRAM)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            programs.setdefault(os.path.realpath(path), path)
    return list(programs.values())


def _uninstall(program: str) -> str:
    """The command that uninstalls a program, by the tool that its path or the first line of its script names."""
    real = os.path.realpath(program)
    if f"{os.sep}uv{os.sep}tools{os.sep}" in real:
        return f"uv tool uninstall {_DISTRIBUTION}"
    if f"{os.sep}pipx{os.sep}" in real:
        return f"pipx uninstall {_DISTRIBUTION}"
    interpreter = _first_line(real).removeprefix("#!").strip()
    if os.path.isabs(interpreter) and "python" in os.path.basename(interpreter):
        return f"{quote(interpreter)} -m pip uninstall {_DISTRIBUTION}"
    return f"rm {quote(program)}"


def _first_line(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.readline(1_024).decode("utf-8", "replace")
    except OSError:
        return ""


def check_python(snapshot: Snapshot) -> Iterator[Finding]:
    del snapshot
    yield ok("python", f"{sys.version.split()[0]} ({sys.executable})")


def check_sqlite(snapshot: Snapshot) -> Iterator[Finding]:
    """Hints do not need it; history does."""
    del snapshot
    try:
        import sqlite3
    except ImportError:
        yield warn("sqlite", "this Python has no SQLite; hints do not need it, history does", "uv python install 3.12")
        return
    if _has_full_text_search():
        yield ok("sqlite", f"{sqlite3.sqlite_version} with FTS5")
    else:
        yield warn(
            "sqlite",
            f"{sqlite3.sqlite_version} lacks FTS5; hints do not need it, history does",
            "uv python install 3.12",
        )


def _has_full_text_search() -> bool:
    import sqlite3

    database = sqlite3.connect(":memory:")
    try:
        database.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
    except sqlite3.Error:
        return False
    finally:
        database.close()
    return True


def check_environment(snapshot: Snapshot) -> Iterator[Finding]:
    warnings = list(_slow_starts(snapshot.environ))
    yield from warnings or [ok("environment", "nothing in it slows a start")]


def _slow_starts(environ: Mapping[str, str]) -> Iterator[Finding]:
    if environ.get("PYTHONDONTWRITEBYTECODE"):
        message = "PYTHONDONTWRITEBYTECODE is set: every start compiles the program again"
        yield warn("environment", message, "unset PYTHONDONTWRITEBYTECODE")
    programs = _programs(environ)
    if programs and _is_shim(programs[0]):
        yield warn("environment", f"{programs[0]} is a pyenv shim, which adds about 100 ms to every start", _INSTALL)


def _is_shim(program: str) -> bool:
    """pyenv writes a shell script in place of the program."""
    try:
        with open(program, "rb") as file:
            return b"pyenv" in file.read(1_024) and os.path.basename(os.path.dirname(program)) == "shims"
    except OSError:
        return False
