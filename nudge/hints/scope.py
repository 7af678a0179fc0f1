"""The scope of a hint: the conditions under which it applies. In normal form it identifies a variant of a component and
key."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from nudge.core import limits
from nudge.core.context import OS_NAMES, Context
from nudge.core.errors import Invalid, ScopeInvalid
from nudge.core.repos import is_same_repo, normalize_repo
from nudge.hints.fields import either, parse_choice, parse_list, parse_object, parse_text, printable
from nudge.security.absolute_paths import normalize_cwd
from nudge.security.patterns import (
    Glob,
    check_cost,
    compile_branch_glob,
    compile_glob,
    glob_cost,
    is_comparable,
    normalize_cwd_glob,
)

_NAMED_IN_REASON = 4  # names in a reason; the others are counted
_OPEN_DIRECTORIES_AT_WORST = 3  # directories that are compared with the slowest patterns: 5 ms each
_CWD_TOO_DEEP = f"cwd has more than {limits.MAX_GLOB_TEXT_NAMES} names or {limits.MAX_GLOB_TEXT_CHARS} characters"


@dataclass(slots=True)  # not frozen, which takes three times as long to create: every checked hint has one
class Verdict:
    """Whether a hint applies, and why; if not, only the conditions that failed."""

    eligible: bool
    reasons: list[str]


class ScopeCondition(Protocol):
    """One condition: whether it holds, and the phrase that says so."""

    def check(self, context: Context) -> tuple[bool, str]: ...


class Scope:
    """Conditions that must all hold; without any, the hint applies everywhere."""

    __slots__ = ("_conditions", "env_names", "fields", "key", "size", "weight")

    def __init__(self, fields: Mapping[str, Any], key: str) -> None:
        self.fields = fields
        self.key = key
        self.size = len(fields)
        globs = [*fields.get("cwd_glob", ()), *fields.get("branch", ())]
        self.weight = len(key) + sum(limits.CHARS_PER_GLOB + glob_cost(glob) // 4 for glob in globs)
        self.env_names = frozenset((*fields.get("env_required", ()), *fields.get("env_match", {})))
        self._conditions: tuple[ScopeCondition, ...] = tuple(_CONDITIONS[name](fields[name]) for name in fields)

    @property
    def names_place(self) -> bool:
        """Whether it holds in certain repos or directories only; os, branch and variables are the same in many."""
        return "repo" in self.fields or "cwd_glob" in self.fields

    def check(self, context: Context) -> Verdict:
        if not self._conditions:
            return Verdict(True, ["no scope: applies everywhere"])
        met: list[str] = []
        failed: list[str] = []
        for condition in self._conditions:
            passed, reason = condition.check(context)
            (met if passed else failed).append(reason)
        return Verdict(not failed, failed or met)


def scope_of(fields: Mapping[str, Any]) -> Scope:
    """Return the scope of a normal form that `parse_scope` returned before."""
    return _shared(_canonical(fields))


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


@lru_cache(maxsize=limits.SCOPES_CACHED)
def _shared(key: str) -> Scope:
    """Return one shared object for each scope: thousands of hints have the scope of one repo, and sharing saves memory
    and time when a log is replayed."""
    content = json.loads(key)
    return Scope({name: content[name] for name in _CONDITIONS if name in content}, key)


def parse_scope(raw: object, field: str = "meta.scope") -> Scope:
    """Return a scope in normal form: sorted, without duplicates and empty conditions. Raises Invalid or ScopeInvalid
    with the field."""
    fields = parse_object(raw, field, tuple(_CONDITIONS))
    parsed = {name: _PARSERS[name](fields[name], f"{field}.{name}") for name in _CONDITIONS if name in fields}
    scope = {name: content for name, content in parsed.items() if content}
    if len(_canonical(scope)) > limits.MAX_SCOPE_CHARS:
        raise ScopeInvalid(f"must be at most {limits.MAX_SCOPE_CHARS} characters as JSON", field=field)
    check_cost([*scope.get("cwd_glob", ()), *scope.get("branch", ())], f"{field}.cwd_glob")
    return scope_of(scope)


def default_scope(scope: object, repo: str | None) -> object:
    """Return the scope of a hint that is set, as its caller gave it, with the caller's repo where it names none: agents
    in two repos must not overwrite each other's hints. An empty scope means everywhere, and `repo: []` any repo. Every
    interface gets its default here; what is not an object is for `parse_scope` to refuse."""
    if repo is None or not isinstance(scope, dict | None) or scope == {}:
        return scope
    given = scope or {}
    return given if given.get("repo") is not None else {**given, "repo": repo}


# The normal form


def _parse_strings(parse: Callable[[object, str], str]) -> Callable[[object, str], list[str]]:
    return lambda raw, field: sorted(parse_list(raw, field, limits.MAX_SCOPE_ITEMS, parse))


@lru_cache(maxsize=limits.GLOBS_CACHED)
def _normal_cwd_glob(raw: str) -> str:
    return compile_glob(normalize_cwd_glob(raw, ""), "").pattern


@lru_cache(maxsize=limits.GLOBS_CACHED)
def _normal_branch(raw: str) -> str:
    return compile_branch_glob(raw, "").pattern


def _parse_pattern(normalize: Callable[[str], str]) -> Callable[[object, str], str]:
    """Check a pattern when it is first seen. The field is named here, since the result is cached without it."""

    def parse(raw: object, field: str) -> str:
        if not isinstance(raw, str):
            raise Invalid("must be a string", field=field)
        try:
            return normalize(raw)
        except ScopeInvalid as refused:
            raise ScopeInvalid(refused.rule, field=field) from None

    return parse


def _parse_os(raw: object, field: str) -> str:
    return parse_choice(raw, field, OS_NAMES)


def _parse_repo(raw: object, field: str) -> str:
    try:
        return normalize_repo(parse_text(raw, field, limits.MAX_REPO_CHARS, least=1))
    except ValueError as error:
        raise Invalid(str(error), field=field) from None


def _parse_env_name(raw: object, field: str) -> str:
    name = parse_text(raw, field, limits.MAX_NAME_CHARS, least=1)
    if "=" in name or " " in name:
        raise Invalid("must be the name of an environment variable", field=field)
    if len(_canonical(name)) > limits.MAX_NAME_CHARS + len('""'):
        raise Invalid(f"must be at most {limits.MAX_NAME_CHARS} characters as JSON", field=field)
    return name


def _parse_env_value(raw: object, field: str) -> str:
    return parse_text(raw, field, limits.MAX_ENV_VALUE_CHARS, lines=True)


def _one_or_several(parse: Callable[[object, str], str]) -> Callable[[object, str], str | list[str]]:
    """Parse a field that takes a string or a list; the normal form of a single item is the string."""

    def parse_either(raw: object, field: str) -> str | list[str]:
        if not isinstance(raw, list):
            return parse(raw, field)
        items = _parse_strings(parse)(raw, field)
        return items[0] if len(items) == 1 else items

    return parse_either


def _parse_env_match(raw: object, field: str) -> dict[str, str | list[str]]:
    if not isinstance(raw, dict):
        raise Invalid("must be an object of names and allowed values", field=field)
    if len(raw) > limits.MAX_SCOPE_ITEMS:
        raise Invalid(f"must have at most {limits.MAX_SCOPE_ITEMS} names", field=field)
    allowed = {}
    for name, values in raw.items():
        path = f"{field}.{printable(name)}"
        allowed[_parse_env_name(name, path)] = _one_or_several(_parse_env_value)(values, path)
    return {name: allowed[name] for name in sorted(allowed) if allowed[name] != []}


# The conditions

_comparable_cwd = lru_cache(maxsize=limits.IDENTITIES_CACHED)(normalize_cwd)


@dataclass(frozen=True, slots=True)
class _CwdCondition:
    globs: tuple[Glob, ...]

    def check(self, context: Context) -> tuple[bool, str]:
        cwd = None if context.cwd is None else _comparable_cwd(context.cwd)
        for glob in self.globs:
            if cwd is not None and glob.matches(cwd):
                return True, f"cwd matched {glob.pattern}"
        for directory in self._open_directories(context.files_open or ()):
            for glob in self.globs:
                if glob.matches(directory):
                    return True, f"open file below {glob.pattern}"
        if cwd is None:
            return False, _needs("cwd unknown", self._patterns())
        return False, _needs(f"cwd={cwd}" if is_comparable(cwd) else _CWD_TOO_DEEP, self._patterns())

    def _patterns(self) -> list[str]:
        return [glob.pattern for glob in self.globs]

    def _open_directories(self, files: Sequence[str]) -> list[str]:
        """The directories above the open files, for each file the nearest first; fewer if the patterns are slow."""
        cost = max(sum(glob_cost(glob.pattern) for glob in self.globs), 1)
        most = min(max(limits.MAX_GLOB_COST // cost, 1) * _OPEN_DIRECTORIES_AT_WORST, limits.MAX_FILES_OPEN)
        directories: dict[str, None] = {}
        for file in files:
            parent = normalize_cwd(file).rpartition("/")[0]
            while parent and parent not in directories and len(directories) < most:
                if is_comparable(parent):
                    directories[parent] = None
                parent = parent.rpartition("/")[0]
        return list(directories)


@dataclass(frozen=True, slots=True)
class _BranchCondition:
    globs: tuple[Glob, ...]

    def check(self, context: Context) -> tuple[bool, str]:
        if context.branch is not None and any(glob.matches(context.branch) for glob in self.globs):
            return True, f"branch={context.branch} allowed"
        actual = "branch unknown" if context.branch is None else f"branch={context.branch}"
        return False, _needs(actual, [glob.pattern for glob in self.globs])


@dataclass(frozen=True, slots=True)
class _RepoCondition:
    repos: Sequence[str]

    def check(self, context: Context) -> tuple[bool, str]:
        if context.repo is None:
            return False, _needs("repo unknown", self.repos)
        if any(is_same_repo(repo, context.repo) for repo in self.repos):
            return True, f"repo {context.repo} matched"
        return False, _needs(f"repo={context.repo}", self.repos)


@dataclass(frozen=True, slots=True)
class _OsCondition:
    names: Sequence[str]

    def check(self, context: Context) -> tuple[bool, str]:
        if context.os in self.names:
            return True, f"os={context.os} allowed"
        return False, _needs("os unknown" if context.os is None else f"os={context.os}", self.names)


@dataclass(frozen=True, slots=True)
class _EnvRequiredCondition:
    names: Sequence[str]

    def check(self, context: Context) -> tuple[bool, str]:
        if context.env is None:
            return False, f"env unknown, needs {_all_of(self.names)}"
        missing = [name for name in self.names if name not in context.env]
        return (False, f"env {_all_of(missing)} not set") if missing else (True, f"env {_all_of(self.names)} set")


@dataclass(frozen=True, slots=True)
class _EnvMatchCondition:
    """Its reasons name variables, never values: a value may be a password."""

    allowed: Mapping[str, str | list[str]]

    def check(self, context: Context) -> tuple[bool, str]:
        if context.env is None:
            return False, f"env unknown, needs {_all_of(tuple(self.allowed))}"
        failed = [self._complaint(name, context.env.get(name)) for name in self.allowed]
        complaints = [complaint for complaint in failed if complaint]
        return not complaints, ", ".join(complaints) or f"env {_all_of(tuple(self.allowed))} matched"

    def _complaint(self, name: str, actual: str | None) -> str | None:
        if actual is None:
            return f"env {name} not set"
        return None if actual in _several(self.allowed[name]) else f"env {name} has another value"


def _needs(actual: str, allowed: Sequence[str]) -> str:
    return f"{actual}, needs {either(_few(allowed))}"


def _all_of(names: Sequence[str]) -> str:
    return ", ".join(_few(names))


def _few(names: Sequence[str]) -> list[str]:
    """The first names, and how many more there are: a reason is a short phrase."""
    shown = list(names[:_NAMED_IN_REASON])
    return shown if len(names) == len(shown) else [*shown, f"{len(names) - len(shown)} more"]


def _several(content: str | list[str]) -> list[str]:
    return [content] if isinstance(content, str) else content


def _globs(patterns: Sequence[str]) -> tuple[Glob, ...]:
    """Create globs without checks: `parse_scope` has compiled these patterns before."""
    return tuple(map(Glob, patterns))


# One line for each condition, in the order of the normal form and of the reasons.
_PARSERS: dict[str, Callable[[object, str], Any]] = {
    "cwd_glob": _parse_strings(_parse_pattern(_normal_cwd_glob)),
    "repo": _one_or_several(_parse_repo),
    "branch": _parse_strings(_parse_pattern(_normal_branch)),
    "os": _parse_strings(_parse_os),
    "env_required": _parse_strings(_parse_env_name),
    "env_match": _parse_env_match,
}
_CONDITIONS: dict[str, Callable[[Any], ScopeCondition]] = {
    "cwd_glob": lambda patterns: _CwdCondition(_globs(patterns)),
    "repo": lambda repos: _RepoCondition(_several(repos)),
    "branch": lambda patterns: _BranchCondition(_globs(patterns)),
    "os": _OsCondition,
    "env_required": _EnvRequiredCondition,
    "env_match": _EnvMatchCondition,
}
