"""Whether a command can be run in a directory on this machine. Only files are checked; nothing is run.

PATH is that of this process: a hook has the PATH of its client, the PRIMARY that of the client that started it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys

from nudge.core.context import resolve
from nudge.learning.command import SimpleCommand
from nudge.learning.shell import parse_commands, parse_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Which = Callable[[str], str | None]

_ENVIRONMENTS = (".venv/bin", "venv/bin", "node_modules/.bin")


def is_known(directory: str | None) -> bool:
    """Whether the directory is on this machine; about those of another machine nothing is known."""
    return directory is not None and os.path.isdir(directory)


def locate_program(program: str, directory: str, which: Which = shutil.which) -> str | None:
    """Return how to type a program in a directory: as it is, or with the path of the project's environment; None when
    it is in neither."""
    if "/" in program:
        path = os.path.join(directory, os.path.expanduser(program))
        return program if os.path.exists(path) else None
    if which(program) is not None:
        return program
    paths = (f"{folder}/{program}" for folder in _ENVIRONMENTS)
    return next((path for path in paths if os.path.exists(os.path.join(directory, path))), None)


def trust(program: str) -> str | None:
    """A `which` for a program that ran recently: it is on the PATH of the sessions that ran it."""
    return program


def can_run(line: str, directory: str, which: Which = shutil.which) -> bool:
    """Whether the program of a command line exists. For `cd web && npm test` it is looked up in `web`; files that the
    line sources must exist."""
    for command in parse_commands(line):
        path = os.path.join(directory, command.arguments[0]) if len(command.arguments) == 1 else directory
        if command.tool == "cd" and path != directory:
            directory = path
            if not os.path.isdir(directory):
                return False
        elif command.tool in ("source", "."):
            if not os.path.exists(path):
                return False
        else:
            return locate_program(command.program, directory, which) is not None
    return False


def names_other_clone(line: str, directory: str) -> bool:
    """Whether a command line or path has an absolute path in another clone of the directory's project."""
    paths = _absolute_paths(line)
    if not paths:
        return False
    here = resolve(directory)
    others = (resolve(path) for path in dict.fromkeys(map(_existing_folder, paths)))
    return any(other.root != here.root and other.root and other.project == here.project for other in others)


def names_clone(line: str) -> bool:
    """Whether a command line has an absolute path in any clone, and so works in that clone only."""
    return any(resolve(path).root for path in dict.fromkeys(map(_existing_folder, _absolute_paths(line))))


def _absolute_paths(line: str) -> list[str]:
    if "/" not in line:
        return []
    words = [word for command in parse_known(line) for word in (*command.variables, *command.words)]
    parts = [part for word in words for part in re.split(r"[=:,]", word)]
    # `//localhost/x` is what is left of an address.
    return [part for part in parts if part.startswith("/") and not part.startswith("//") and part.count("/") > 1]


def _existing_folder(path: str) -> str:
    while path not in ("/", "") and not os.path.isdir(path):
        path = os.path.dirname(path)
    return path or "/"


def has_module(interpreter: str, module: str, directory: str) -> bool:
    """Whether the environment of an interpreter, given by its path, has a module. A program of that name next to the
    interpreter proves nothing: it may belong to another interpreter."""
    folder, name = os.path.dirname(interpreter), module.partition(".")[0]
    if not folder:
        return False
    library = os.path.join(os.path.dirname(os.path.join(directory, folder)), "lib")
    paths = (os.path.join(packages, name) for packages in _site_packages(library))
    return any(os.path.exists(path) or os.path.exists(f"{path}.py") for path in paths)


def _site_packages(library: str) -> list[str]:
    try:
        names = [name for name in os.listdir(library) if name.startswith("python")]
    except OSError:
        return []
    return [os.path.join(library, name, "site-packages") for name in names]


def as_typed(line: str, directory: str, which: Which = shutil.which) -> str | None:
    """Return a command of the repo as it can be typed in the directory: `.venv/bin/ruff check .` where `ruff` is not on
    PATH; None when its program or module is missing."""
    commands = parse_commands(line)
    if len(commands) != 1 or commands[0].variables or commands[0].launched_program != commands[0].program:
        return line if can_run(line, directory, which) else None
    command = commands[0]
    program = locate_program(command.program, directory, which)
    if program is None or not line.startswith(command.program):
        return None
    if command.is_python_module and not _has_tool(command, program, directory):
        return None
    return program + line[len(command.program) :]


def _has_tool(command: SimpleCommand, interpreter: str, directory: str) -> bool:
    is_standard = command.tool.partition(".")[0] in sys.stdlib_module_names
    return is_standard or has_module(interpreter, command.tool, directory)
