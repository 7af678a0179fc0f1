"""The content of `.nudge.toml`: data only, in a narrow form. What breaks a rule is refused with line and column, and
then nothing of the file counts."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple, NoReturn

from nudge.core import limits
from nudge.core.context import OS_NAMES
from nudge.core.errors import Invalid
from nudge.hints.fields import either, parse_name
from nudge.repofile.rules import find_fault, find_invisible
from nudge.repofile.toml_positions import Path, Positions
from nudge.security.patterns import check_cost, compile_branch_glob, compile_glob
from nudge.security.secrets import find_secret

VERSION = 1
COMMAND, PATH, FACT = "command", "path", "fact"
KINDS = (COMMAND, PATH, FACT)
CONDITIONS = ("branch", "os", "cwd_glob")
_TOP = ("version", "hint")
_FIELDS = ("key", "value", "kind", "scope", "reason", "evidence")
_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)\Z", re.DOTALL)

_MOST_DOTS = 100  # in a line
_TOO_DEEP = "is nested too deeply"
_QUOTED = re.compile(r" ?\(.*\)| ?'[^']{2,}'", re.DOTALL)
"""What a message of tomllib repeats of the file. A problem is shown where nobody trusts the file: it has no word of
it."""


class Problem(NamedTuple):
    """What is wrong with the file, and where; line and column are from 1, or 0 for the file as a whole."""

    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.text}" if self.line else self.text


@dataclass(frozen=True, slots=True)
class RepoHint:
    """One hint of the file. `scope` has lists of `branch`, `os` and `cwd_glob`, the last relative to the clone."""

    component: str
    key: str
    kind: str
    value: str
    scope: Mapping[str, list[str]]
    reason: str = ""
    evidence: str = ""
    line: int = field(default=0, compare=False)

    @property
    def name(self) -> str:
        return f"{self.component}/{self.key}"

    @property
    def variant(self) -> str:
        """What tells it from the other hints of its file."""
        return json.dumps([self.component, self.key, self.scope], sort_keys=True)

    def to_json(self) -> dict[str, Any]:
        """Everything that it says; `from_json` is the inverse."""
        return {
            "component": self.component,
            "key": self.key,
            "kind": self.kind,
            "value": self.value,
            "scope": {name: list(self.scope[name]) for name in CONDITIONS if name in self.scope},
            "reason": self.reason,
            "evidence": self.evidence,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> RepoHint:
        return cls(**content)

    @property
    def digest(self) -> str:
        """Of all that it says: another word is another hint, for which nobody was asked."""
        return sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def toml_lines(self) -> list[str]:
        """The hint as the file has it, in one form."""
        lines = ["[[hint]]", *(f"{name} = {quoted(text)}" for name, text in self._texts() if text)]
        if self.scope:
            conditions = (f"{name} = [{', '.join(map(quoted, self.scope[name]))}]" for name in self.scope)
            lines.insert(4, f"scope = {{ {', '.join(conditions)} }}")
        return lines

    def _texts(self) -> list[tuple[str, str]]:
        texts = {"key": self.name, "value": self.value, "kind": self.kind}
        return list({**texts, "reason": self.reason, "evidence": self.evidence}.items())


def quoted(text: str) -> str:
    """A TOML string on one line; JSON writes all that such a text may have in the same way."""
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Document:
    """The hints of a file in its order; none when there are problems."""

    hints: tuple[RepoHint, ...] = ()
    problems: tuple[Problem, ...] = ()


def parse(content: bytes) -> Document:
    """Parse the bytes of the file."""
    try:
        positions, data = _read(content)
    except _Refused as refused:
        return Document(problems=(refused.problem,))
    check = _Check(positions)
    hints = check.document(data)
    if check.problems:
        return Document(problems=tuple(sorted(check.problems)[: limits.MAX_REPO_PROBLEMS]))
    return Document(tuple(hints))


# The text


class _Refused(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def _read(content: bytes) -> tuple[Positions, dict[str, Any]]:
    if len(content) > limits.MAX_REPO_FILE_BYTES:
        raise _Refused(Problem(0, 0, f"is larger than {limits.MAX_REPO_FILE_BYTES // limits.KIB} KiB"))
    text = _decode(content)
    if fault := find_invisible(text, "\n\t"):
        raise _Refused(Problem(*_line_and_column(text, fault.place), fault.rule))
    _check_depth(text)
    try:
        data = tomllib.loads(text)
        return Positions(text), data
    except ValueError as error:  # also for a number with thousands of digits, which is no TOMLDecodeError
        raise _Refused(_syntax_problem(str(error), text)) from None
    except RecursionError:
        raise _Refused(Problem(0, 0, _TOO_DEEP)) from None


def _check_depth(text: str) -> None:
    """Refuse a key with very many parts: the time that tomllib takes grows with their square, 20 s for 32,000."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _MOST_DOTS and not line.lstrip().startswith("#"):
            raise _Refused(Problem(number, line.index(".") + 1, _TOO_DEEP))


def _decode(content: bytes) -> str:
    try:
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        raise _Refused(Problem(*_line_and_column(before, len(before)), "is not UTF-8")) from None


def _line_and_column(text: str, place: int) -> tuple[int, int]:
    return text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)


def _syntax_problem(message: str, text: str) -> Problem:
    """tomllib names the place at the end of its message."""
    found = _PLACE.fullmatch(message)
    what = found[1] if found else message
    place = (int(found[2]), int(found[3])) if found and found[2] else _line_and_column(text, len(text))
    return Problem(*place, f"is not TOML: {_QUOTED.sub('', what[:1].lower() + what[1:])}")


# The content


class _Check:
    """Checks a document and notes each problem at its place."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self.problems: list[Problem] = []

    def document(self, data: dict[str, Any]) -> list[RepoHint]:
        self._known(data, _TOP, ())
        if "version" not in data:
            self._note(0, f"`version = {VERSION}` is missing")
        elif type(data["version"]) is not int or data["version"] != VERSION:
            self._note_value(("version",), f"must be {VERSION}: this release of nudge reads no other")
        rows = data.get("hint", [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            self._note_value(("hint",), "must be tables: [[hint]]")
            return []
        if len(rows) > limits.MAX_REPO_HINTS:
            self._note(
                self._place(("hint", limits.MAX_REPO_HINTS)), f"a file has at most {limits.MAX_REPO_HINTS} hints"
            )
            return []
        hints = [hint for number, row in enumerate(rows) if (hint := self._hint(row, ("hint", number))) is not None]
        self._refuse_twins(hints)
        return hints

    def _hint(self, row: dict[str, Any], path: Path) -> RepoHint | None:
        before = len(self.problems)
        self._known(row, _FIELDS, path)
        for name in ("key", "value", "kind"):
            if name not in row:
                self._note(self._place(path), f"`{name}` is missing")
        texts = {name: self._text(row[name], (*path, name)) for name in _FIELDS if name != "scope" and name in row}
        scope = self._scope(row.get("scope", {}), (*path, "scope"))
        if len(self.problems) == before:
            component, key = self._name(texts["key"], (*path, "key"))
            self._value(texts["kind"], texts["value"], path)
            self._assignment(key, texts["value"], (*path, "value"))
            self._about(texts, path)
        if len(self.problems) > before:
            return None
        line, _ = self._positions.line_and_column(self._place(path))
        return RepoHint(
            component,
            key,
            texts["kind"],
            texts["value"],
            scope,
            reason=texts.get("reason", ""),
            evidence=texts.get("evidence", ""),
            line=line,
        )

    def _known(self, table: Mapping[str, Any], names: tuple[str, ...], path: Path) -> None:
        for name in table:
            if name not in names:
                self._note(self._place((*path, name)), f"is not a known key; known: {', '.join(names)}")

    def _text(self, raw: object, path: Path) -> str:
        if not isinstance(raw, str):
            self._note_value(path, "must be a string")
            return ""
        if len(raw) > limits.MAX_REPO_TEXT_CHARS:
            self._note(self._positions.character(path, limits.MAX_REPO_TEXT_CHARS), "is much too long")
        elif not raw.strip() or raw != raw.strip():
            self._note_value(path, "must not be empty" if not raw.strip() else "must not start or end with a blank")
        elif fault := find_fault(raw):
            self._note(self._positions.character(path, fault.place), fault.rule)
        return raw

    def _name(self, name: str, path: Path) -> tuple[str, str]:
        component, _, key = name.rpartition("/")
        try:
            return parse_name(component, "component"), parse_name(key, "key")
        except Invalid as refused:
            self._note_value(path, f"must be component/key, such as api/test; {refused.message}")
            return "", ""

    def _value(self, kind: str, value: str, path: Path) -> None:
        if kind not in KINDS:
            self._note_value((*path, "kind"), f"must be {either(KINDS)}")
        most = limits.MAX_REPO_FACT_CHARS if kind == FACT else limits.MAX_REPO_VALUE_CHARS
        self._short((*path, "value"), value, most)
        if kind == PATH:
            self._below((*path, "value"), value)

    def _assignment(self, key: str, value: str, path: Path) -> None:
        """Only a name such as `env.DB_PASSWORD` shows what some values are."""
        if secret := find_secret(f"{key}={value}"):
            self._note_value(path, f"looks like a credential ({secret}); it must not be in a repository")

    def _about(self, texts: Mapping[str, str], path: Path) -> None:
        self._short((*path, "reason"), texts.get("reason", ""), limits.MAX_REASON_CHARS)
        if "evidence" in texts:
            file, mark, section = texts["evidence"].partition("#")
            self._short((*path, "evidence"), texts["evidence"], limits.MAX_REPO_VALUE_CHARS)
            self._below((*path, "evidence"), file)
            if mark and not section.strip():
                self._note_value((*path, "evidence"), "names no section behind the `#`")

    def _short(self, path: Path, text: str, most: int) -> None:
        if len(text) > most:
            self._note(self._positions.character(path, most), f"must be at most {most} characters")

    def _below(self, path: Path, text: str) -> None:
        """A path in the clone, whatever the system: no root, no drive, no way out."""
        parts = text.replace("\\", "/").split("/")
        if not text or text[0] in "/\\~" or ":" in parts[0] or ".." in parts or "\\" in text:
            self._note_value(path, "must be a path below the top of the repository, with forward slashes, without `..`")
        elif parts[0].casefold() == ".git":
            self._note_value(path, "must not be below .git")

    # The scope

    def _scope(self, raw: object, path: Path) -> dict[str, list[str]]:
        if not isinstance(raw, dict):
            self._note_value(path, "must be a table: { branch = ..., os = ..., cwd_glob = ... }")
            return {}
        self._known(raw, CONDITIONS, path)
        scope = {}
        for name in CONDITIONS:
            if name in raw:
                scope[name] = self._items(raw[name], (*path, name), _CONDITION_CHECKS[name])
        try:
            check_cost([*scope.get("cwd_glob", ()), *scope.get("branch", ())], "scope")
        except Invalid as refused:
            self._note(self._place(path), refused.rule)
        return scope

    def _items(self, raw: object, path: Path, check: Callable[[str], None]) -> list[str]:
        items = raw if isinstance(raw, list) else [raw]
        if not items or len(items) > limits.MAX_SCOPE_ITEMS:
            self._note_value(path, f"must have 1 to {limits.MAX_SCOPE_ITEMS} items")
            return []
        found = []
        for number, item in enumerate(items):
            at = (*path, number) if isinstance(raw, list) else path
            before = len(self.problems)
            text = self._text(item, at)
            if len(self.problems) == before:
                try:
                    check(text)
                except Invalid as refused:
                    self._note_value(at, refused.rule)
            found.append(text)
        return sorted(set(found)) if len(self.problems) == 0 else []

    def _refuse_twins(self, hints: list[RepoHint]) -> None:
        first: dict[str, RepoHint] = {}
        for hint in hints:
            if (twin := first.setdefault(hint.variant, hint)) is not hint:
                rule = f"a hint with this key and scope is there already, in line {twin.line}"
                self.problems.append(Problem(hint.line, 1, rule))

    # Places

    def _place(self, path: Path) -> int:
        return self._positions.start_of(path)

    def _note_value(self, path: Path, rule: str) -> None:
        self._note(self._positions.value_start(path), rule)

    def _note(self, place: int, rule: str) -> None:
        self.problems.append(Problem(*self._positions.line_and_column(place), rule))


def _check_os(name: str) -> None:
    if name not in OS_NAMES:
        raise Invalid(f"must be {either(OS_NAMES)}")


def _check_branch(pattern: str) -> None:
    compile_branch_glob(pattern, "")


def _check_cwd_glob(pattern: str) -> None:
    if pattern.startswith(("/", "~", "!")) or ":" in pattern.partition("/")[0]:
        _refuse("must be below the top of the repository: services/api/**")
    compile_glob(pattern, "")


def _refuse(rule: str) -> NoReturn:
    raise Invalid(rule)


_CONDITION_CHECKS: dict[str, Callable[[str], None]] = {
    "branch": _check_branch,
    "os": _check_os,
    "cwd_glob": _check_cwd_glob,
}
