"""Shell command lines taken apart: simple commands, their variables and words. Nothing is expanded or run."""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass, replace

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_OPERATORS = frozenset(("&&", "||", ";", "|", "&", "|&", ";;"))
_REDIRECTIONS = frozenset((">", ">>", "<", "2>", "&>", ">|", ">&", "<<<"))
_WRAPPERS = frozenset(("sudo", "time", "nice", "nohup", "env", "command", "exec", "stdbuf", "timeout"))
_INTERPRETERS = frozenset(("bash", "sh", "zsh", "node", "perl", "ruby"))
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?|pypy3?")
# What runs a program of the project's environment: the words before its name.
_LAUNCHERS = frozenset(
    (
        *((name, "run") for name in ("uv", "poetry", "pdm", "hatch", "pipenv", "rye")),
        *((name, "exec") for name in ("pnpm", "yarn", "npm", "bundle")),
        *((name,) for name in ("npx", "pnpx", "bunx", "uvx")),
    )
)
_LAUNCHER_OPTIONS = frozenset(("-y", "--yes", "--no-install", "--frozen", "--locked", "--no-sync", "--dev", "--"))
# A version that is named, as in python2 or python3.12, is meant.
_SAME_TOOL = {"python3": "python", "pip3": "pip", "py.test": "pytest"}
_SUBCOMMAND_TOOLS: dict[tuple[str, ...], str] = {("docker", "compose"): "docker-compose"}


@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command: `A=1 pytest -x tests` has a variable and three words."""

    variables: tuple[str, ...]
    words: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    """Files that it writes by redirection."""
    followed_by: str = ""
    """The operator behind it; empty at the end of a line."""

    @property
    def piped(self) -> bool:
        """Whether its output goes into another command, which then decides the exit code."""
        return self.followed_by in ("|", "|&")

    @property
    def program(self) -> str:
        return self.words[0] if self.words else ""

    @property
    def tool(self) -> str:
        """What is run, whichever way: `pytest` for `pytest`, `.venv/bin/pytest`, `python3 -m pytest` and `uv run
        pytest`, `python` for `python3 x.py`."""
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
        """Whether its program is an interpreter with a script of its own: `python repro.py`, `bash -c ...`."""
        name = posixpath.basename(self.launched_program)
        return (_PYTHON.fullmatch(name) is not None and not self.is_python_module) or name in _INTERPRETERS

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


def join_words(command: Simple) -> str:
    """The command as it can be typed. Only words with blanks are quoted: which others were is not known."""
    words = (word if word and not any(char.isspace() for char in word) else shlex.quote(word) for word in command.words)
    return " ".join((*map(_join_variable, command.variables), *words))


def _join_variable(text: str) -> str:
    name, _, value = text.partition("=")
    return f"{name}={shlex.quote(value)}" if any(char.isspace() for char in value) else text


def succeeded_commands(commands: list[Simple]) -> list[Simple]:
    """Of a line that ended with 0 the simple commands that must have ended with 0 themselves, last first: the last one,
    and those before it that `&&` joins."""
    if not commands or commands[-1].followed_by not in ("", ";"):
        return []
    succeeded = [commands[-1]]
    for command in reversed(commands[:-1]):
        if command.followed_by != "&&":
            break
        succeeded.append(command)
    return succeeded


def relative_commands(commands: list[Simple], cwd: str | None, root: str | None) -> list[Simple]:
    """The same commands with the paths below the clone `root` relative to `cwd`, as they are typed in another clone."""
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
    """A program without a slash is looked for on PATH."""
    return relative if relative == word or "/" in relative else f"./{relative}"


def relative_text(text: str, cwd: str | None, root: str | None) -> str:
    """A text in which the paths below `root` are relative to `cwd`, a directory in it."""
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


def split_commands(line: str) -> list[Simple]:
    """Return the simple commands of a line, first to last; what cannot be read as shell is left out."""
    commands: list[Simple] = []
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


def _split(line: str) -> list[Simple]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        tokens = list(lexer)
    except ValueError:
        return []
    commands: list[Simple] = []
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


def _add(commands: list[Simple], words: list[str], outputs: list[str], *, followed_by: str) -> None:
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
        commands.append(Simple(tuple(variables), tuple(words), tuple(outputs), followed_by))
