"""Where the caller stands: found out by itself, unless a flag says otherwise."""

from __future__ import annotations

import os

from nudge import context
from nudge.cli.parsing import Usage, pair
from nudge.errors import Invalid
from nudge.paths import expanded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from nudge.cli.parsing import Parser


def add(parser: Parser) -> None:
    group = parser.add_argument_group("context (taken from where you are, unless given)")
    group.add_argument("--cwd", metavar="DIR", help="directory; its repo and branch are used too")
    group.add_argument("--repo", help="git:org/repo, a clone URL or file:///path")
    group.add_argument("--branch", help="branch")
    group.add_argument("--os", choices=context.OS_NAMES, help="operating system")
    group.add_argument(
        "--env", type=pair, action="append", metavar="NAME=VALUE", help="environment variable (repeatable)"
    )


def read(arguments: Namespace) -> dict[str, Any]:
    """The context to send. The environment is not in it: the server asks for the names that a scope needs."""
    found = context.resolve(None if arguments.cwd is None else _directory(arguments.cwd)).to_wire()
    known = (
        found if arguments.cwd is not None else {name: text for name, text in found.items() if _is_sendable(name, text)}
    )
    given = {name: getattr(arguments, name) for name in ("repo", "branch", "os")}
    return known | {name: value for name, value in given.items() if value is not None}


def _directory(path: str) -> str:
    """As `cd` would go there: a relative one starts where the shell says that we are."""
    path = expanded(path)
    here = "" if os.path.isabs(path) else context.working_directory()
    if here is None:
        raise _nowhere(path)
    return os.path.join(here, path)


def absolute(path: str) -> str:
    """A file by its full path, `~/` expanded also where that was out of the shell's sight."""
    try:
        return os.path.abspath(expanded(path))
    except FileNotFoundError:
        raise _nowhere(path) from None


def _nowhere(path: str) -> Usage:
    return Usage(f"{path} is relative, and the directory you are in is gone", "give an absolute path")


def _is_sendable(name: str, found: Any) -> bool:
    """A directory whose name is no text (a stray byte, a newline) is as good as unknown; it must not fail every
    command."""
    try:
        context.Context.parse({name: found})
    except Invalid:
        return False
    return True
