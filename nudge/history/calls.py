"""A whole command line as one call: the directory, the environment and the variables in which a single command runs."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace

from nudge.history.shell import Simple, join_words

_INSTALLS = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), frozenset(("install", "ci", "i", "add"))),
    **dict.fromkeys(("pip", "apt", "apt-get", "conda", "brew", "cargo", "gem", "composer"), frozenset(("install",))),
    "poetry": frozenset(("install", "add")),
    "pdm": frozenset(("install", "sync", "add")),
    "bundle": frozenset(("install",)),
    "uv": frozenset(("sync", "install", "add")),  # `uv pip install`
    "mix": frozenset(("deps.get",)),
}
# Options of make, npm, pnpm, yarn, just, cargo and git that say where a command runs.
_DIRECTORY_OPTIONS = frozenset(
    ("-C", "--directory", "--prefix", "--dir", "--cwd", "--manifest-path", "-f", "--justfile")
)
_EDITING_GIT = frozenset(
    (
        *("apply", "am", "checkout", "switch", "restore", "reset", "stash"),
        *("pull", "merge", "rebase", "cherry-pick", "revert"),
    )
)
_EDITORS = frozenset(("patch", "ed", "ex", "cp", "mv", "rm", "ln", "touch", "black", "isort", "gofmt", "prettier"))
_EDITING_WORDS = frozenset(("--fix", "--write", "fmt", "format"))


@dataclass(frozen=True, slots=True)
class ShellCall:
    """`cd web && source env && A=1 make test`: the command is the last one, with its variables and those that the line
    exported. `directory` is empty when it is the one the line begins in."""

    command: Simple
    directory: str = ""
    setup: tuple[str, ...] = ()

    def text(self) -> str:
        cd = (f"cd {self.directory}",) if self.directory else ()
        return " && ".join((*cd, *self.setup, join_words(self.command)))

    def moved_words(self) -> tuple[str, ...] | None:
        """The words without the option that names a directory; None when there is none: `make -C web test`."""
        words = self.command.words
        for at, word in enumerate(words[1:], 1):
            name, has_value, _ = word.partition("=")
            if name in _DIRECTORY_OPTIONS:
                return words[:at] + words[at + (1 if has_value else 2) :]
        return None


def parse_call(commands: list[Simple], cwd: str | None = None) -> ShellCall | None:
    """The call of a line; None when it runs more than one command. `cd` to `cwd` itself is left out."""
    *before, last = commands or [Simple((), ())]
    if not last.words or last.followed_by not in ("", ";"):
        return None
    directory = ""
    setup: list[str] = []
    exported: list[str] = []
    for command in before:
        if command.followed_by not in ("&&", ";", "") or command.variables:
            return None
        if command.tool == "cd" and len(command.arguments) == 1 and not setup:
            directory = posixpath.join(directory, command.arguments[0])
        elif command.tool == "export" and all("=" in word for word in command.arguments):
            exported += command.arguments
        elif command.tool in ("source", ".") and len(command.arguments) == 1:
            setup.append(join_words(command))
        else:
            return None
    if directory.startswith(("~", "-", "$")):
        return None
    names = {text.partition("=")[0] for text in last.variables}
    variables = (*(text for text in exported if text.partition("=")[0] not in names), *last.variables)
    return ShellCall(replace(last, variables=variables), _directory(directory, cwd), tuple(setup))


def without_filters(commands: list[Simple]) -> list[Simple]:
    """A line without what only shortens its output: `make test 2>&1 | tail -5` is `make test`."""
    kept = list(commands)
    while len(kept) > 1 and kept[-1].tool in ("tail", "head", "cat", "tee", "less") and kept[-2].piped:
        kept.pop()
        kept[-1] = replace(kept[-1], followed_by="")
    return kept


def is_install(command: Simple) -> bool:
    """Whether it installs something; `yarn` alone does."""
    verbs = _INSTALLS.get(command.tool, frozenset())
    return not verbs.isdisjoint(command.arguments) or command.words == ("yarn",)


def may_edit(command: Simple) -> bool:
    """Whether it may have changed files of the project: what works after it may work because of that."""
    if any(not path.isdigit() and not path.startswith(("/dev/", "/tmp/")) for path in command.outputs):
        return True
    if command.tool in ("sed", "perl"):
        return any(word.startswith("-") and "i" in word for word in command.arguments)
    if command.tool == "git":
        return command.arguments[:1] != () and command.arguments[0] in _EDITING_GIT
    if command.is_anonymous:  # a script that it reads from its input, or gets as an argument
        return not command.arguments or command.arguments[0] in ("-", "-c", "-e")
    return command.tool in _EDITORS or not _EDITING_WORDS.isdisjoint(command.arguments)


def _directory(path: str, cwd: str | None) -> str:
    if not path:
        return ""
    plain = posixpath.normpath(path)
    is_here = plain == "." or (cwd is not None and posixpath.normpath(posixpath.join(cwd, plain)) == cwd.rstrip("/"))
    return "" if is_here else plain
