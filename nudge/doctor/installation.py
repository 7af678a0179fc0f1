"""The program itself: which versions meet, which one a shell finds, and what its Python can do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from shlex import quote

from nudge import __version__
from nudge.doctor.finding import Finding, Patient, ok, warn
from nudge.ipc.endpoint import is_newer

_PROGRAM = "nudge"
_DISTRIBUTION = "nudge-mcp"
_INSTALL = f"uv tool install {_DISTRIBUTION}"


def check_versions(patient: Patient) -> Iterator[Finding]:
    if patient.status is None:
        yield ok("versions", f"this is {__version__}; no server answers")
        return
    running = str(patient.status.get("version"))
    others = sorted({str(member.get("version")) for member in patient.status.get("members") or ()} - {running})
    if is_newer(__version__, running):
        yield warn("versions", f"the server is {running}, this is {__version__}", "nudge stop --force")
    elif is_newer(running, __version__):
        yield warn(
            "versions", f"the server is {running}, this is still {__version__}", f"uv tool upgrade {_DISTRIBUTION}"
        )
    else:
        beside = f"; clients have also started {', '.join(others)}, which works" if others else ""
        yield ok("versions", f"server and command are both {__version__}{beside}")


def check_installations(patient: Patient) -> Iterator[Finding]:
    found = _programs(patient.environ)
    if not found:
        yield warn(
            "installation",
            "no nudge on PATH: a client that is told to start it will not find it",
            _on_path(sys.executable),
        )
    elif len(found) > 1:
        yield warn("installation", f"several on PATH, the first is used: {', '.join(found)}", _uninstall(found[1]))
    else:
        yield ok("installation", found[0])


def _on_path(executable: str) -> str:
    """This very installation has a script beside its Python, if it was installed at all."""
    folder = os.path.dirname(executable)
    return f'export PATH={quote(folder)}:"$PATH"' if os.path.exists(os.path.join(folder, _PROGRAM)) else _INSTALL


def _programs(environ: Mapping[str, str]) -> list[str]:
    """Every `nudge` that a shell could find, each file once, in the order of the search."""
    found: dict[str, str] = {}
    for folder in environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, _PROGRAM)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def _uninstall(program: str) -> str:
    """With the tool that put it there: its place, or the first line of the script, tells."""
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


def check_python(patient: Patient) -> Iterator[Finding]:
    del patient
    yield ok("python", f"{sys.version.split()[0]} ({sys.executable})")


def check_sqlite(patient: Patient) -> Iterator[Finding]:
    """Hints need none; history will."""
    del patient
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


def check_environment(patient: Patient) -> Iterator[Finding]:
    slow = list(_slow(patient.environ))
    yield from slow or [ok("environment", "nothing in it slows a start")]


def _slow(environ: Mapping[str, str]) -> Iterator[Finding]:
    if environ.get("PYTHONDONTWRITEBYTECODE"):
        message = "PYTHONDONTWRITEBYTECODE is set: every start compiles the program again"
        yield warn("environment", message, "unset PYTHONDONTWRITEBYTECODE")
    found = _programs(environ)
    if found and _is_shim(found[0]):
        yield warn("environment", f"{found[0]} is a pyenv shim, which adds about 100 ms to every start", _INSTALL)


def _is_shim(program: str) -> bool:
    """pyenv writes a shell script in place of the program."""
    try:
        with open(program, "rb") as file:
            return b"pyenv" in file.read(1_024) and os.path.basename(os.path.dirname(program)) == "shims"
    except OSError:
        return False
