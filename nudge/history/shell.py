"""Parse shell command lines. Nothing is expanded or run.

`split_commands` splits a line into simple commands; `parse_call` reads a whole line as one call: the directory and the
variables in which its last command runs.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

from nudge.programs import ENVIRONMENT_RUNNERS, FORMATTERS, INSTALL_VERBS, INTERPRETERS, NODE_LAUNCHERS

SOURCE = frozenset(("source", "."))
"""Commands that run a file in the shell itself."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_OPERATORS = frozenset(("&&", "||", ";", "|", "&", "|&", ";;"))
_REDIRECTIONS = frozenset((">", ">>", "<", "2>", "&>", ">|", ">&", "<<<"))
_WRAPPERS = frozenset(("sudo", "time", "nice", "nohup", "env", "command", "exec", "stdbuf", "timeout"))
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?|pypy3?")
# The words before the name of a program that is run in the project's environment.
_LAUNCHERS = frozenset(
    (
        *((name, "run") for name in ENVIRONMENT_RUNNERS),
        *((name, "exec") for name in ("pnpm", "yarn", "npm", "bundle")),  # `bun exec` runs a shell script
        *((name,) for name in (*NODE_LAUNCHERS, "uvx")),
    )
)
_LAUNCHER_OPTIONS = frozenset(("-y", "--yes", "--no-install", "--frozen", "--locked", "--no-sync", "--dev", "--"))
# Not python2 or python3.12: a version that is named matters.
_SAME_TOOL = {"python3": "python", "pip3": "pip", "py.test": "pytest"}
_SUBCOMMAND_TOOLS: dict[tuple[str, ...], str] = {("docker", "compose"): "docker-compose"}
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
_EDITORS = FORMATTERS | {"patch", "ed", "ex", "cp", "mv", "rm", "ln", "touch"}
_EDITING_WORDS = frozenset(("--fix", "--write", "fmt", "format"))


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command: `A=1 pytest -x tests` has a variable and three words."""

    variables: tuple[str, ...]
    words: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    """Files that it writes by redirection."""
    followed_by: str = ""
    """The operator behind it; empty at the end of a line."""

    @property
    def piped(self) -> bool:
        """Whether its output is piped into another command, whose exit code is then that of the line."""
        return self.followed_by in ("|", "|&")

    @property
    def program(self) -> str:
        return self.words[0] if self.words else ""

    @property
    def tool(self) -> str:
        """The tool that is run, however it is invoked: `pytest` for `pytest`, `.venv/bin/pytest`, `python3 -m pytest`
        and `uv run pytest`; `python` for `python3 x.py`."""
        words = self._launched
        if self.is_python_module:
            return words[2]
        if words[:2] in _SUBCOMMAND_TOOLS:
            return _SUBCOMMAND_TOOLS[words[:2]]
        name = posixpath.basename(words[0]) if words else ""
        return _SAME_TOOL.get(name, name)

    @property
    def is_python_module(self) -> bool:
        words = self._launched
        return len(words) > 2 and words[1] == "-m" and _PYTHON.fullmatch(posixpath.basename(words[0])) is not None

    @property
    def is_anonymous(self) -> bool:
        """Whether it runs a script by its interpreter, so that the tool does not say what runs: `python x.py`, `bash -c
        ...`."""
        name = posixpath.basename(self.launched_program)
        return (_PYTHON.fullmatch(name) is not None and not self.is_python_module) or name in INTERPRETERS

    @property
    def head(self) -> str:
        """The invocation without its arguments: `A=1 python3 -m pytest`."""
        return " ".join((*self.variables, *self.words[: self._head_length]))

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.words[self._head_length :]

    @property
    def launched_program(self) -> str:
        """The program itself: `pytest` for `uv run pytest`."""
        return self._launched[0] if self._launched else ""

    @property
    def _launched(self) -> tuple[str, ...]:
        """The words without those of a launcher."""
        return self.words[self._launcher_length :]

    @property
    def _launcher_length(self) -> int:
        for length in (1, 2):
            if self.words[:length] in _LAUNCHERS:
                while length < len(self.words) and self.words[length] in _LAUNCHER_OPTIONS:
                    length += 1
                is_program = length < len(self.words) and not self.words[length].startswith("-")
                return length if is_program else 0
        return 0

    @property
    def _head_length(self) -> int:
        words = self._launched
        own = 3 if self.is_python_module else 2 if words[:2] in _SUBCOMMAND_TOOLS else 1
        return self._launcher_length + own


# Splitting a line


def split_commands(line: str) -> list[SimpleCommand]:
    """Return the simple commands of a line, first to last, without the parts that cannot be parsed as shell."""
    commands: list[SimpleCommand] = []
    for part in _logical_lines(line):
        commands += _split(part)
    return commands


def _logical_lines(text: str) -> list[str]:
    """Join continued lines and drop the bodies of here-documents."""
    lines, end = [], None
    for line in text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
        if end is not None:
            end = None if line.strip() == end else end
            continue
        marker = re.search(r"<<-?\s*(['\"]?)(\w+)\1", line)
        if marker:
            end = marker[2]
            line = line[: marker.start()] + line[marker.end() :]
        lines.append(line)
    return lines


def _split(line: str) -> list[SimpleCommand]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        tokens = list(lexer)
    except ValueError:
        return []
    commands: list[SimpleCommand] = []
    words: list[str] = []
    outputs: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token in _OPERATORS or token in ("(", ")"):
            _add(commands, words, outputs, followed_by=token)
            words, outputs = [], []
        elif token in _REDIRECTIONS or (token[:1] in "<>" and set(token) <= set("<>&|")):
            if words and words[-1].isdigit():
                words.pop()
            at += 1
            if ">" in token and at < len(tokens):
                outputs.append(tokens[at])
        else:
            words.append(token)
        at += 1
    _add(commands, words, outputs, followed_by="")
    return commands


def _add(commands: list[SimpleCommand], words: list[str], outputs: list[str], *, followed_by: str) -> None:
    variables: list[str] = []
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _WRAPPERS):
        if _ASSIGNMENT.match(words[0]):
            variables.append(words[0])
            words = words[1:]
        else:
            wrapper, words = words[0], words[1:]
            while words and (words[0].startswith("-") or (wrapper == "timeout" and words[0][:1].isdigit())):
                words = words[1:]
    if words or outputs:
        commands.append(SimpleCommand(tuple(variables), tuple(words), tuple(outputs), followed_by))


def join_words(command: SimpleCommand) -> str:
    """The command as it can be typed. Only words with whitespace are quoted; which others were quoted is not known."""
    words = (word if word and not any(char.isspace() for char in word) else shlex.quote(word) for word in command.words)
    return " ".join((*map(_join_variable, command.variables), *words))


def _join_variable(text: str) -> str:
    name, _, value = text.partition("=")
    return f"{name}={shlex.quote(value)}" if any(char.isspace() for char in value) else text


# The line as one call


@dataclass(frozen=True, slots=True)
class ShellCall:
    """A line like `cd web && source env && A=1 make test`. `command` is the last one, with its own variables and those
    that the line exported. `directory` is empty for the directory in which the line begins."""

    command: SimpleCommand
    directory: str = ""
    setup: tuple[str, ...] = ()

    def text(self) -> str:
        cd = (f"cd {self.directory}",) if self.directory else ()
        return " && ".join((*cd, *self.setup, join_words(self.command)))

    def moved_words(self) -> tuple[str, ...] | None:
        """The words without the option that names a directory (`make -C web test`); None without such an option."""
        words = self.command.words
        for at, word in enumerate(words[1:], 1):
            name, has_value, _ = word.partition("=")
            if name in _DIRECTORY_OPTIONS:
                return words[:at] + words[at + (1 if has_value else 2) :]
        return None


def parse_call(commands: list[SimpleCommand], cwd: str | None = None) -> ShellCall | None:
    """Return the call of a line, or None when it runs more than one command. A `cd` to `cwd` itself is dropped."""
    *before, last = commands or [SimpleCommand((), ())]
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
        elif command.tool in SOURCE and len(command.arguments) == 1:
            setup.append(join_words(command))
        else:
            return None
    if directory.startswith(("~", "-", "$")):
        return None
    names = {text.partition("=")[0] for text in last.variables}
    variables = (*(text for text in exported if text.partition("=")[0] not in names), *last.variables)
    return ShellCall(replace(last, variables=variables), _directory(directory, cwd), tuple(setup))


def _directory(path: str, cwd: str | None) -> str:
    if not path:
        return ""
    plain = posixpath.normpath(path)
    is_here = plain == "." or (cwd is not None and posixpath.normpath(posixpath.join(cwd, plain)) == cwd.rstrip("/"))
    return "" if is_here else plain


def without_filters(commands: list[SimpleCommand]) -> list[SimpleCommand]:
    """Drop the commands that only shorten the output: `make test 2>&1 | tail -5` becomes `make test`."""
    kept = list(commands)
    while len(kept) > 1 and kept[-1].tool in ("tail", "head", "cat", "tee", "less") and kept[-2].piped:
        kept.pop()
        kept[-1] = replace(kept[-1], followed_by="")
    return kept


def succeeded_commands(commands: list[SimpleCommand]) -> list[SimpleCommand]:
    """Return those commands of a line with exit code 0 that must have had exit code 0 themselves, last first: the last
    one, and the ones before it that are joined by `&&`."""
    if not commands or commands[-1].followed_by not in ("", ";"):
        return []
    succeeded = [commands[-1]]
    for command in reversed(commands[:-1]):
        if command.followed_by != "&&":
            break
        succeeded.append(command)
    return succeeded


# What a command does


def is_install(command: SimpleCommand) -> bool:
    """Whether the command installs packages; `yarn` without arguments does."""
    verbs = INSTALL_VERBS.get(command.tool, frozenset())
    return not verbs.isdisjoint(command.arguments) or command.words == ("yarn",)


def may_edit(command: SimpleCommand) -> bool:
    """Whether the command may have changed files of the project, so that a later success may be due to it."""
    if any(not path.isdigit() and not path.startswith(("/dev/", "/tmp/")) for path in command.outputs):
        return True
    if command.tool in ("sed", "perl"):
        return any(word.startswith("-") and "i" in word for word in command.arguments)
    if command.tool == "git":
        return command.arguments[:1] != () and command.arguments[0] in _EDITING_GIT
    if command.is_anonymous:  # a script from standard input or from an argument
        return not command.arguments or command.arguments[0] in ("-", "-c", "-e")
    return command.tool in _EDITORS or not _EDITING_WORDS.isdisjoint(command.arguments)


def edited_files(commands: list[SimpleCommand]) -> Iterator[str]:
    """Yield the files that commands write or edit in place."""
    for command in commands:
        yield from command.outputs
        if command.tool == "sed" and any(argument.startswith("-i") for argument in command.arguments):
            yield from command.arguments


# Paths relative to the clone


def relative_commands(commands: list[SimpleCommand], cwd: str | None, root: str | None) -> list[SimpleCommand]:
    """Return the commands with paths below the clone `root` made relative to `cwd`, as they would be typed in another
    clone."""
    return [
        replace(
            command,
            variables=tuple(relative_text(text, cwd, root) for text in command.variables),
            words=tuple(
                _as_program(word, relative_text(word, cwd, root)) if at == 0 else relative_text(word, cwd, root)
                for at, word in enumerate(command.words)
            ),
            outputs=tuple(relative_text(path, cwd, root) for path in command.outputs),
        )
        for command in commands
    ]


def _as_program(word: str, relative: str) -> str:
    """Prefix `./` where the relative path has no slash: the shell would look it up on PATH."""
    return relative if relative == word or "/" in relative else f"./{relative}"


def relative_text(text: str, cwd: str | None, root: str | None) -> str:
    """Return the text with paths below `root` made relative to `cwd`, a directory in it."""
    base = (root or cwd or "").rstrip("/")
    if not base or base not in text:
        return text
    up = posixpath.relpath(base, cwd) if cwd and f"{cwd}/".startswith(f"{base}/") else "."

    def replacement(match: re.Match[str]) -> str:
        below = match[1]
        if not below:
            return up
        path = posixpath.normpath(posixpath.join(up, below))
        if cwd and up != ".":
            path = posixpath.relpath(f"{base}/{below}", cwd)
        return path + "/" * below.endswith("/")

    return re.sub(rf"(?<![\w./~-]){re.escape(base)}(?:/+([^\s:'\"`,;()]*)|(?![\w./~-]))", replacement, text)
