"""Whether a command can be run in a directory on this machine, by its files alone: nothing is run.

PATH is that of this process. A hook has the PATH of its client; PRIMARY has that of the client that started it.
"""

from __future__ import annotations

import os
import shutil
import sys

from nudge.history.shell import Simple, split_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Which = Callable[[str], str | None]

_ENVIRONMENTS = (".venv/bin", "venv/bin", "node_modules/.bin")


def is_known(directory: str | None) -> bool:
    """Whether it is on this machine; of another nothing is known."""
    return directory is not None and os.path.isdir(directory)


def locate_program(program: str, directory: str, which: Which = shutil.which) -> str | None:
    """How a program is typed in a directory: as it is, or with the path of the project's environment; None when it is
    in neither."""
    if "/" in program:
        return program if os.path.exists(os.path.join(directory, program)) else None
    if which(program) is not None:
        return program
    paths = (f"{folder}/{program}" for folder in _ENVIRONMENTS)
    return next((path for path in paths if os.path.exists(os.path.join(directory, path))), None)


def can_run(line: str, directory: str, which: Which = shutil.which) -> bool:
    """Whether the program of a command line is there. `cd web && npm test` is looked at below `web`."""
    for command in split_commands(line):
        if command.tool == "cd" and len(command.arguments) == 1:
            directory = os.path.join(directory, command.arguments[0])
        else:
            return locate_program(command.program, directory, which) is not None
    return False


def has_module(interpreter: str, module: str, directory: str) -> bool:
    """Whether the environment of an interpreter that is named by its path has a module. A program of that name beside
    it shows nothing: it may belong to another interpreter."""
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
    """A command of the repo as it can be typed there: `.venv/bin/ruff check .` where `ruff` is not on PATH; None when
    its program or module is missing."""
    commands = split_commands(line)
    if len(commands) != 1 or commands[0].variables:
        return line if can_run(line, directory, which) else None
    command = commands[0]
    program = locate_program(command.program, directory, which)
    if program is None or not line.startswith(command.program):
        return None
    if command.is_python_module and not _has_tool(command, program, directory):
        return None
    return program + line[len(command.program) :]


def _has_tool(command: Simple, interpreter: str, directory: str) -> bool:
    is_standard = command.tool.partition(".")[0] in sys.stdlib_module_names
    return is_standard or has_module(interpreter, command.tool, directory)
