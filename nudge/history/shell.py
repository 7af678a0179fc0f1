"""Shell command lines taken apart: simple commands, their variables and words. Nothing is expanded or run."""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_OPERATORS = frozenset(("&&", "||", ";", "|", "&", "|&", ";;"))
_REDIRECTIONS = frozenset((">", ">>", "<", "2>", "&>", ">|", ">&", "<<<"))
_WRAPPERS = frozenset(("sudo", "time", "nice", "nohup", "env", "command", "exec", "stdbuf", "timeout"))
_INTERPRETERS = frozenset(("bash", "sh", "zsh", "node", "perl", "ruby"))
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?|pypy3?")


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
        """What is run, whichever way: `pytest` for `pytest`, `.venv/bin/pytest` and `python3 -m pytest`."""
        if self.is_python_module:
            return self.words[2]
        return posixpath.basename(self.program)

    @property
    def is_python_module(self) -> bool:
        name = posixpath.basename(self.program)
        return len(self.words) > 2 and self.words[1] == "-m" and _PYTHON.fullmatch(name) is not None

    @property
    def is_anonymous(self) -> bool:
        """Whether its program is an interpreter with a script of its own: `python repro.py`, `bash -c ...`."""
        name = posixpath.basename(self.program)
        return (_PYTHON.fullmatch(name) is not None and not self.is_python_module) or name in _INTERPRETERS

    @property
    def head(self) -> str:
        """The invocation without its arguments: `A=1 python3 -m pytest`."""
        return " ".join((*self.variables, *self.words[: 3 if self.is_python_module else 1]))

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.words[3 if self.is_python_module else 1 :]


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
