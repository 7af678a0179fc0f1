"""Patterns that users write: regular expressions of a search, globs of a scope, globs of paths to ignore. Their cost is
bounded.

RE2 runs regular expressions: it never backtracks, so the time is linear in the text. wcmatch compiles globs. It makes a
`*` atomic, so a name is matched in linear time; each further `**` multiplies the time by the number of names in the
path. Measured for `**/a/**/b` on 64 names: 2 ms; with a third `**` 56 ms. So `**`, names and alternatives are limited,
for one pattern and for all of a scope.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, NoReturn

from nudge.core import limits, paths
from nudge.core.errors import Invalid, ScopeInvalid
from nudge.core.text import has_control
from nudge.security.absolute_paths import normalize_cwd

_TOO_LONG = f"must be at most {limits.MAX_PATTERN_CHARS} characters"
_HAS_CONTROL = "must not contain control characters"
_REGEX_TOO_LARGE = (
    "is too large for a search; write ranges such as [a-z] for classes such as \\pL, count lower in {n,m}, "
    "or search for less"
)

# `\A` and `\z` mean the whole text whatever the flags; a flag group may take the multi-line flag away.
_BEYOND_LINES = re.compile(r"\\[AzQC]|\(\?[a-zA-Z]*-")

_EXTGLOB = re.compile(r"[@!+*?]\(")
_WILDCARD = re.compile(r"[*?\[]")
_SET = re.compile(r"\[[!^]?+(\](?:\[:[a-z]+:\]|[^\]/])*|(?:\[:[a-z]+:\]|[^\]/])+)\]")
_RANGE = re.compile(r"(.)-(.)", re.DOTALL)
# What a pattern for an absolute directory can start with: a slash, a whole `**`, or some drive.
_ABSOLUTE = re.compile(r"/|\*\*(?:/|\Z)|(?:[A-Za-z*?]|\[[^\]/]+\]):(?:/|\Z)")
_GLOBSTAR = "**"


# Regular expressions


class Regex:
    """A regular expression that is searched for anywhere in a text."""

    __slots__ = ("_lines", "_program", "pattern")

    def __init__(self, pattern: str, program: Any, lines: Any) -> None:
        self.pattern, self._program, self._lines = pattern, program, lines

    def search(self, text: str) -> bool:
        """Whether the pattern occurs in the text. A lone surrogate counts as a question mark."""
        return self._program.search(_encoded(text)) is not None

    def candidates(self, blobs: Sequence[bytes]) -> Iterator[int]:
        """Yield the indexes of the blobs that may contain a match; the others contain none. A blob is UTF-8, one text
        per line. All are searched in one call: a call of RE2 takes 4 us before it reads a byte."""
        if self._lines is None:
            yield from range(len(blobs))
            return
        text = b"\n".join(blobs)
        match = self._lines.search(text)
        if match is None:
            return
        starts = list(accumulate((len(blob) + 1 for blob in blobs), initial=0))
        while match is not None:
            number = min(bisect_right(starts, match.start()), len(blobs)) - 1
            yield number
            start = starts[number + 1]
            match = self._lines.search(text, start) if start <= len(text) else None

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"


def compile_regex(pattern: str, field: str) -> Regex:
    """Compile a user's pattern. Raises Invalid, which names the field, for one that is malformed or too expensive."""
    import re2  # late: 14 ms to import, and few callers search by regex

    if len(pattern) > limits.MAX_PATTERN_CHARS:
        raise Invalid(_TOO_LONG, field=field)
    options = re2.Options()
    options.log_errors = False  # stderr belongs to the client's terminal
    options.max_mem = limits.MAX_REGEX_MEMORY_BYTES
    options.never_capture = True
    try:
        program = re2.compile(pattern, options)
        lines = None if _BEYOND_LINES.search(pattern) else re2.compile(f"(?m){pattern}", options)
    except re2.error as error:
        raise Invalid(f"not a regular expression that RE2 can compile: {_describe(error)}", field=field) from None
    except UnicodeEncodeError:
        raise Invalid("must be valid Unicode text", field=field) from None
    if program.programsize > limits.MAX_REGEX_PROGRAM:
        raise Invalid(_REGEX_TOO_LARGE, field=field)
    return Regex(pattern, program, lines)


class PatternSet:
    """Many patterns of ours: finds in one pass, in linear time, which of them a text has. Compiled on first use."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns
        self._set: Any = None

    def find(self, text: str) -> list[int]:
        """The places of the patterns that match anywhere in the text, in their order."""
        if self._set is None:
            self._set = self._compiled()
        return sorted(self._set.Match(_encoded(text)) or ())

    def _compiled(self) -> Any:
        import re2  # late: 14 ms to import

        patterns = re2.Set.SearchSet(_own_options())
        for pattern in self._patterns:
            patterns.Add(f"(?m){pattern}")
        patterns.Compile()
        return patterns


class AnyOf:
    """Many patterns of ours: whether a text has one of them, in linear time. `re` tries each of them at each place of
    the text, which takes a hundred times as long. Compiled on first use."""

    def __init__(self, *patterns: str) -> None:
        self._patterns = patterns
        self._program: Any = None

    def search(self, text: str) -> bool:
        if self._program is None:
            import re2

            self._program = re2.compile("(?m)" + "|".join(self._patterns), _own_options())
        return self._program.search(_encoded(text)) is not None


def _own_options() -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False  # stderr belongs to the client's terminal
    options.max_mem = limits.MAX_OWN_PATTERNS_BYTES
    options.never_capture = True
    return options


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # RE2 takes no lone surrogates


def _describe(error: Exception) -> str:
    """Return RE2's message, redacted: it quotes a part of the pattern, which may contain a credential."""
    from nudge.security.secrets import redact  # late: only an error needs its tables

    reason = error.args[0] if error.args else "unknown"
    return redact(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason))


# Globs


class Glob:
    """A glob, already checked, that matches a whole path or branch name. It is compiled when it is first used."""

    __slots__ = ("pattern",)

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def matches(self, text: str) -> bool:
        """Whether the whole text matches. A text that is not comparable matches literal patterns only."""
        return _matches(self.pattern, text)

    def __repr__(self) -> str:
        return f"Glob({self.pattern!r})"


def load_wcmatch() -> None:
    """Import wcmatch, which takes 35 ms; a server calls this on a thread, before the first match."""
    import wcmatch.glob  # noqa: F401


def is_comparable(text: str) -> bool:
    """Whether a path or branch is short enough to be compared with wildcards."""
    return len(text) <= limits.MAX_GLOB_TEXT_CHARS and text.count("/") <= limits.MAX_GLOB_TEXT_NAMES


def compile_glob(pattern: str, field: str) -> Glob:
    """Check a pattern against syntax and limits; raise ScopeInvalid, which names the field, when it cannot be used."""
    _check_text(pattern, field)
    alternatives = expand_braces(pattern, field)
    if sum(map(len, alternatives)) > limits.MAX_GLOB_EXPANDED_CHARS:
        _refuse(f"expands to more than {limits.MAX_GLOB_EXPANDED_CHARS} characters; use fewer braces", field)
    for alternative in alternatives:
        _check_alternative(alternative, field)
    check_cost([pattern], field)
    return Glob(pattern)


def compile_branch_glob(pattern: str, field: str) -> Glob:
    if pattern.startswith("!"):
        _refuse("a branch pattern cannot be negated; name the branches it is for", field)
    return compile_glob(pattern, field)


def normalize_cwd_glob(raw: str, field: str) -> str:
    """Return the pattern in the form in which directories are compared. Raises ScopeInvalid for one that matches no
    absolute directory."""
    if len(raw) > limits.MAX_PATTERN_CHARS:
        _refuse(_TOO_LONG, field)
    if has_control(raw):
        _refuse(_HAS_CONTROL, field)
    pattern = normalize_cwd(raw.replace("\\", "/"))
    if ".." in pattern.split("/"):
        _refuse("must not contain a `..` segment", field)
    if pattern.startswith("~"):
        _refuse("`~` is not expanded; write the full path, such as /home/me/api", field)
    if not all(map(_ABSOLUTE.match, expand_braces(pattern, field) if pattern.startswith("{") else [pattern])):
        _refuse("is compared with an absolute directory; start it with `/` or `**/`", field)
    return pattern


def check_cost(patterns: Sequence[str], field: str) -> None:
    """Refuse patterns of one scope that would take too long to compile or to match together."""
    wild = [path for pattern in patterns for path in expand_braces(pattern, field) if _WILDCARD.search(path)]
    if len(wild) > limits.MAX_WILD_ALTERNATIVES:
        _refuse(f"contains more than {limits.MAX_WILD_ALTERNATIVES} patterns with wildcards, braces expanded", field)
    if sum(map(_cost, wild)) > limits.MAX_GLOB_COST:
        _refuse("takes too long to match; use fewer `**`, fewer names between them, or fewer braces", field)


def glob_cost(pattern: str) -> int:
    """Return how many names a match of a checked pattern compares in the worst case."""
    return sum(_cost(path) for path in expand_braces(pattern, "pattern") if _WILDCARD.search(path))


def expand_braces(pattern: str, field: str) -> list[str]:
    """Return every pattern that `{a,b}` and `{1..9}` stand for, without duplicates. Raises ScopeInvalid."""
    if "{" not in pattern and "}" not in pattern:
        return [pattern]
    import bracex  # late: few patterns have braces

    _check_braces(_SET.sub("", pattern), field)
    try:
        return list(dict.fromkeys(bracex.expand(pattern, limit=limits.MAX_GLOB_ALTERNATIVES)))
    except bracex.ExpansionLimitException:
        _refuse(f"stands for more than {limits.MAX_GLOB_ALTERNATIVES} alternatives; use fewer braces", field)


# Checks of a glob


def _check_text(pattern: str, field: str) -> None:
    if not pattern:
        _refuse("must not be empty", field)
    if len(pattern) > limits.MAX_PATTERN_CHARS:
        _refuse(_TOO_LONG, field)
    if has_control(pattern):
        _refuse(_HAS_CONTROL, field)
    if _EXTGLOB.search(pattern):
        _refuse("extended globs such as @(a|b) or !(a) are not supported; write {a,b}", field)
    if "${" in pattern:
        _refuse("variables are not expanded; write the path itself", field)
    if "\\" in pattern:
        _refuse("must not contain a backslash; write [*] for the character itself", field)


def _check_braces(pattern: str, field: str) -> None:
    depth = 0
    for char in pattern:
        depth += (char == "{") - (char == "}")
        if depth < 0:
            _refuse("`}` closes nothing; write [}] for the character itself", field)
    if depth:
        _refuse("`{` is never closed; write [{] for the character itself", field)


def _check_alternative(path: str, field: str) -> None:
    """Raise ScopeInvalid for a pattern that is malformed or too expensive. wcmatch would match a malformed set as
    literal text, which its author did not mean."""
    names = _names(path)
    if ".." in names:
        _refuse("must not contain a `..` segment", field)
    if _inner_globstars(names) > limits.MAX_GLOBSTARS:
        _refuse(f"contains more than {limits.MAX_GLOBSTARS} `**` before its end", field)
    for members in _SET.findall(path):
        if any(low > high for low, high in _RANGE.findall(members)):
            _refuse("a range in brackets runs backwards", field)
    rest = _SET.sub("", path)
    if "[" in rest:
        _refuse("`[` is never closed, or its set contains a slash; write [[] for the character itself", field)
    if "]" in rest:
        _refuse("`]` closes nothing; write []] for the character itself", field)


def _cost(path: str) -> int:
    """Return how many names are compared in the worst case: each `**` is tried at every name of the path."""
    names = _names(path)
    tries: int = limits.MAX_GLOB_TEXT_NAMES ** _inner_globstars(names)
    return (len(names) - names.count(_GLOBSTAR)) * tries


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _inner_globstars(names: list[str]) -> int:
    """Return the number of `**` that are followed by something else: the last one matches the rest without trying.
    wcmatch merges adjacent ones."""
    return sum(name == _GLOBSTAR != following for name, following in pairwise(names))


def _refuse(rule: str, field: str) -> NoReturn:
    raise ScopeInvalid(rule, field=field)


# Matching a glob


@lru_cache(maxsize=limits.MATCHES_CACHED)
def _matches(pattern: str, text: str) -> bool:
    """Whether the whole text matches; cached, since callers stay in one directory from call to call."""
    path = text.rstrip("/")
    literals, matcher = _compiled(pattern)
    if path in literals:
        return True
    return matcher is not None and is_comparable(path) and bool(matcher.match(path + "/"))  # `X/**` matches `X/`


@lru_cache(maxsize=limits.GLOBS_CACHED)
def _compiled(pattern: str) -> tuple[frozenset[str], Any]:
    """Return the alternatives without a wildcard, and a wcmatch matcher for the others, or None."""
    expanded = [re.sub("/+", "/", path).rstrip("/") for path in expand_braces(pattern, "pattern")]
    wild = [path for path in expanded if _WILDCARD.search(path)]
    literals = frozenset(path for path in expanded if not _WILDCARD.search(path))
    if not wild:
        return literals, None
    from wcmatch import glob  # late: 35 ms to import, and most scopes name a repo only

    flags = glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB | glob.CASE | glob.FORCEUNIX
    return literals, glob.compile(wild, flags=flags, limit=limits.MAX_GLOB_ALTERNATIVES)


# Globs of paths that are not recorded

_BRACE_RANGE = re.compile(r"\{([^{},]*\.\.[^{},]*)\}")


def is_ignored(path: str, globs: Iterable[str]) -> bool:
    """Whether one of the globs of the setting `ignore` matches the path or a directory above it; a hook gets the same
    answer from `ignore_globs`. A path of any length is compared: what is too long must not be recorded for that."""
    path = path.replace("\\", "/").rstrip("/") + "/"
    return any(_ignoring(glob, paths.home()).match(path) for glob in globs if glob.strip("/ "))


@lru_cache(maxsize=limits.GLOBS_CACHED)
def _ignoring(pattern: str, home: str) -> Any:
    """Return a wcmatch matcher for what a glob matches, and all below that."""
    import bracex
    from wcmatch import glob

    # `{1..9}` is text, as in a hook: a long range would fill the memory.
    braces = _BRACE_RANGE.sub(r"\\{\1\\}", pattern.strip().replace("\\", "/"))
    expanded = (re.sub("/+", "/", path).rstrip("/") for path in bracex.expand(braces, limit=0))
    tops = [_anchored(path, home) for path in expanded if path]  # `{a,}` does not match everything
    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.CASE | glob.FORCEUNIX
    return glob.compile([*tops, *(f"{top}/**" for top in tops)], flags=flags, limit=0)


def _anchored(path: str, home: str) -> str:
    if path == "~" or path.startswith("~/"):
        return home.replace("\\", "/") + path[1:]
    return path if path.startswith("/") or path[1:2] == ":" else f"**/{path}"
