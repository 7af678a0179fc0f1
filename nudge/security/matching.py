"""Patterns that strangers write and we run: globs for directories and branches, regular expressions for queries.

Both end in RE2, which never backtracks: time is linear in the text whatever the pattern. That needs a glob translation
without
look-around, which no library offers, so it is ours.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import product
from typing import Any, NoReturn

import re2

from nudge import limits
from nudge.errors import Invalid, ScopeInvalid
from nudge.security.secrets import redact

_EXTGLOB = re.compile(r"[@!+*?]\(")
_NUMBERS = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?")
_WILDCARD = re.compile(r"\*+|\?|\[")
_ANY_START = re.compile(r"\A(?:\*\*/+)+(?=[^/])")
_GLOBSTAR = "**"
_TOO_LARGE = r"is too large for a search; write ranges such as [a-z] for classes such as \pL, count lower in {n,m}, or search for less"

# A parsed pattern: text, or a choice between parsed patterns.
_Part = str | list[list["_Part"]]


class Glob:
    """A pattern that matches a whole path or branch name."""

    __slots__ = ("pattern",)

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def matches(self, text: str) -> bool:
        return _matches(self.pattern, text)

    def __repr__(self) -> str:
        return f"Glob({self.pattern!r})"


@lru_cache(maxsize=limits.GLOBS_CACHED)
def _matches(pattern: str, text: str) -> bool:
    """Remembered: callers stay where they are from one question to the next."""
    return _program(pattern).fullmatch(_bytes(text)) is not None


class Regex:
    """A pattern that is searched for anywhere in a text."""

    __slots__ = ("_program", "pattern")

    def __init__(self, pattern: str, program: Any) -> None:
        self.pattern, self._program = pattern, program

    def search(self, text: str) -> bool:
        return self._program.search(_bytes(text)) is not None

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"


def compile_glob(pattern: str, field: str) -> Glob:
    translate(pattern, field)  # names the field in what it refuses, which the cache of programs cannot
    try:
        _program(pattern)
    except re2.error:
        _refuse("is too large; use fewer braces, or fewer characters beyond ASCII", field)
    return Glob(pattern)


def compile_branch_glob(pattern: str, field: str) -> Glob:
    if pattern.startswith("!"):
        _refuse("a branch pattern cannot be negated; name the branches it is for", field)
    return compile_glob(pattern, field)


def compile_regex(pattern: str, field: str) -> Regex:
    if len(pattern) > limits.MAX_PATTERN_CHARS:
        raise Invalid(f"must be at most {limits.MAX_PATTERN_CHARS} characters", field=field)
    try:
        program = re2.compile(pattern, _options(limits.MAX_REGEX_MEMORY_BYTES))
    except re2.error as error:
        raise Invalid(f"not a regular expression RE2 can compile: {_said(error)}", field=field) from None
    except UnicodeEncodeError:
        raise Invalid("must be text that UTF-8 can carry", field=field) from None
    if program.programsize > limits.MAX_REGEX_PROGRAM:
        raise Invalid(_TOO_LARGE, field=field)
    return Regex(pattern, program)


def translate(pattern: str, field: str) -> str:
    """The regular expression, for a full match, that means the same as the glob; both `re` and RE2 read it."""
    _check_text(pattern, field)
    alternatives = expand_braces(pattern, field)
    if sum(map(len, alternatives)) > limits.MAX_GLOB_EXPANDED_CHARS:
        _refuse(f"expands to more than {limits.MAX_GLOB_EXPANDED_CHARS} characters; use fewer braces", field)
    if _wildcards(alternatives) > limits.MAX_GLOB_WILDCARDS:
        _refuse(f"holds more than {limits.MAX_GLOB_WILDCARDS} wildcards when its braces are expanded", field)
    return _translate_alternatives(alternatives, field)


def count_wildcards(pattern: str) -> int:
    """What a match costs, about: each may keep a thread of RE2 alive at every character."""
    return _wildcards(expand_braces(pattern, "pattern"))


def _wildcards(paths: list[str]) -> int:
    return sum(len(_WILDCARD.findall(path)) for path in paths)


def expand_braces(pattern: str, field: str) -> list[str]:
    """Every pattern that `{a,b}` and `{1..9}` stand for. Braces come first, since an alternative may hold slashes."""
    parts, end = _parse_parts(pattern, 0, False, field)
    assert end == len(pattern)
    if _count(parts) > limits.MAX_GLOB_ALTERNATIVES:
        _refuse(f"stands for more than {limits.MAX_GLOB_ALTERNATIVES} alternatives; use fewer braces", field)
    return _expand(parts)


def _check_text(pattern: str, field: str) -> None:
    if not pattern:
        _refuse("must not be empty", field)
    if len(pattern) > limits.MAX_PATTERN_CHARS:
        _refuse(f"must be at most {limits.MAX_PATTERN_CHARS} characters", field)
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in pattern):
        _refuse("must not hold control characters", field)
    if _EXTGLOB.search(pattern):
        _refuse("extended globs such as @(a|b) or !(a) are not supported; write {a,b}", field)
    if "${" in pattern:
        _refuse("variables are not expanded; write the path itself", field)


# Braces


def _parse_parts(text: str, at: int, inside: bool, field: str) -> tuple[list[_Part], int]:
    """Read until the end, or, inside braces, until the comma or brace that ends this alternative."""
    parts: list[_Part] = []
    while at < len(text):
        char = text[at]
        if inside and char in ",}":
            return parts, at
        if char == "{":
            part, at = _parse_choice(text, at, field)
        elif char == "[":
            end = _set_end(text, at, field)
            part, at = text[at:end], end
        elif char in "]}":
            _refuse(f"`{char}` closes nothing; write [{char}] for the character itself", field)
        else:
            part, at = char, at + 1
        parts.append(part)
    return parts, at


def _parse_choice(text: str, start: int, field: str) -> tuple[_Part, int]:
    choices: list[list[_Part]] = []
    at = start
    while at < len(text) and text[at] != "}":
        choice, at = _parse_parts(text, at + 1, True, field)
        choices.append(choice)
    if at >= len(text):
        _refuse("`{` is never closed; write [{] for the character itself", field)
    if len(choices) > 1:
        return choices, at + 1
    return _sole_choice(choices[0], field), at + 1


def _sole_choice(choice: list[_Part], field: str) -> _Part:
    """`{1..9}` is a range; any other pair of braces without a comma is itself, as in every shell."""
    content = "".join(part for part in choice if isinstance(part, str))
    if ".." not in content:
        return [["{", *choice, "}"]]
    found = _NUMBERS.fullmatch(content)
    if not found:
        _refuse("a range in braces is between two numbers, as in {1..9}", field)
    return [[number] for number in _numbers(found[1], found[2], found[3] or "1", field)]


def _numbers(first: str, last: str, step: str, field: str) -> list[str]:
    low, high, stride = int(first), int(last), abs(int(step)) or 1
    span = range(low, high + 1, stride) if low <= high else range(low, high - 1, -stride)
    if len(span) > limits.MAX_GLOB_ALTERNATIVES:
        _refuse(f"stands for more than {limits.MAX_GLOB_ALTERNATIVES} alternatives; use a shorter range", field)
    padded = any(text.lstrip("-").startswith("0") and len(text.lstrip("-")) > 1 for text in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [f"{number:0{width}d}" for number in span]


def _count(parts: list[_Part]) -> int:
    total = 1
    for part in parts:
        if isinstance(part, list):
            total *= sum(map(_count, part))
    return total


def _expand(parts: list[_Part]) -> list[str]:
    options = [
        [part] if isinstance(part, str) else [text for choice in part for text in _expand(choice)] for part in parts
    ]
    return ["".join(chosen) for chosen in product(*options)]


# One path


def _translate_alternatives(paths: list[str], field: str) -> str:
    """A `**/` that all begin with is written once: sixty copies would keep sixty threads of RE2 alive at each
    character."""
    tails = [_ANY_START.sub("", path) for path in paths]
    shared = all(tail != path for tail, path in zip(tails, paths, strict=True))
    translated = "|".join(_translate_path(path, field) for path in dict.fromkeys(tails if shared else paths))
    return f"(?s:(?:.*/)?(?:{translated}))" if shared else f"(?s:{translated})"


def _translate_path(path: str, field: str) -> str:
    """Nothing we match ends in a slash but a root, so a pattern's last slash is a matter of taste."""
    tidy = re.sub("/+", "/", path)
    segments = _merge_globstars((tidy.rstrip("/") or tidy).split("/"))
    if ".." in segments:
        _refuse("must not hold a `..` segment", field)
    if segments == [_GLOBSTAR]:
        return ".*"
    translated = "".join(_translate_segment(segments, index, field) for index in range(len(segments)))
    return translated + "/?" if tidy.endswith("/") and translated != "/" else translated


def _merge_globstars(segments: list[str]) -> list[str]:
    return [
        text
        for index, text in enumerate(segments)
        if text != _GLOBSTAR or index == 0 or segments[index - 1] != _GLOBSTAR
    ]


def _translate_segment(segments: list[str], index: int, field: str) -> str:
    """The segment with the slash before it; a `**` brings the slash after it too, since it may stand for nothing at
    all."""
    slash = "/" if index and segments[index - 1] != _GLOBSTAR else ""
    if segments[index] != _GLOBSTAR:
        return slash + _translate_name(segments[index], field)
    if index < len(segments) - 1:
        return slash + "(?:.*/)?"
    return "/.*" if segments[:index] == [""] else "(?:/.*)?"


def _translate_name(name: str, field: str) -> str:
    """One segment; a wildcard never crosses a slash, and a name of stars is at least one character long."""
    if name and not name.strip("*"):
        return "[^/]+"
    translated, at = [], 0
    while at < len(name):
        end = _set_end(name, at, field) if name[at] == "[" else at + 1
        translated.append(_translate_token(name[at:end], field))
        at = end
    return "".join(translated)


def _translate_token(token: str, field: str) -> str:
    if token[0] == "[":
        return _translate_set(token[1:-1], field)
    return {"*": "[^/]*", "?": "[^/]"}.get(token) or re.escape(token)


# Sets


def _set_end(text: str, start: int, field: str) -> int:
    """Where the set that opens at `start` is over. A `]` in first place is a member."""
    first = start + 1 + (text[start + 1 : start + 2] in ("!", "^"))
    end = text.find("]", first + 1)
    if end < 0:
        _refuse("`[` is never closed; write [[] for the character itself", field)
    if "/" in text[start:end]:
        _refuse("a set in brackets cannot hold a slash", field)
    if "[:" in text[start:end]:
        _refuse("classes such as [[:alpha:]] are not supported; write a range such as [a-z]", field)
    return end + 1


def _translate_set(members: str, field: str) -> str:
    negated = members[0] in "!^"
    ranges = _ranges(members[negated:], field)
    opening = "[^/" if negated else "["
    return (
        opening
        + "".join(f"{_member(low)}-{_member(high)}" for low, high in (ranges if negated else _without_slash(ranges)))
        + "]"
    )


def _without_slash(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """A range may run across the slash, and no set matches one."""
    halves = [half for low, high in ranges for half in ((low, min(high, ord("/") - 1)), (max(low, ord("/") + 1), high))]
    return [(low, high) for low, high in halves if low <= high]


def _ranges(members: str, field: str) -> list[tuple[int, int]]:
    ranges, at = [], 0
    while at < len(members):
        wide = members[at + 1 : at + 2] == "-" and at + 2 < len(members)
        low, high = ord(members[at]), ord(members[at + 2 if wide else at])
        if low > high:
            _refuse(f"the range {members[at : at + 3]} runs backwards", field)
        ranges.append((low, high))
        at += 3 if wide else 1
    return ranges


def _member(code: int) -> str:
    return re.escape(chr(code)) if code < 128 else chr(code)


# RE2


def _options(memory: int) -> Any:
    options = re2.Options()
    options.log_errors = False  # stderr belongs to the client's terminal
    options.max_mem = memory
    options.never_capture = True
    return options


@lru_cache(maxsize=limits.GLOBS_CACHED)
def _program(glob: str) -> Any:
    """Held here and not in each Glob: memory stays bounded however many hints there are."""
    return re2.compile(translate(glob, "pattern"), _options(limits.MAX_GLOB_MEMORY_BYTES))


def _bytes(text: str) -> bytes:
    """A directory's name need not be UTF-8; what is not becomes a question mark, which a wildcard still matches."""
    return text.encode("utf-8", "replace")


def _said(error: Exception) -> str:
    """RE2 repeats the pattern or a part of it, in which there may be anything."""
    reason = error.args[0] if error.args else "unknown"
    return redact(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason))


def _refuse(rule: str, field: str) -> NoReturn:
    raise ScopeInvalid(rule, field=field)
