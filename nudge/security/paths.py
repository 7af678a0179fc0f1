"""Paths as values and as scopes. A value keeps the style of its system; what is compared is brought to one form."""

from __future__ import annotations

import re

from nudge import limits
from nudge.errors import Invalid, ScopeInvalid

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
# What a pattern for an absolute directory can start with: a slash, a whole `**`, or some drive.
_CAN_MATCH = re.compile(r"/|\*\*(?:/|\Z)|(?:[A-Za-z*?]|\[[^\]/]+\]):(?:/|\Z)")


def normalise_path(raw: str, field: str) -> str:
    """An absolute path without `.`, `..` or doubled slashes, in the style it came in."""
    _check_text(raw, field)
    if raw.startswith("/"):
        return "/" + "/".join(_segments(raw, "/", field))
    if _DRIVE.match(raw):
        separator = raw[2]
        return raw[:2] + separator + separator.join(_segments(raw[2:].replace("/", "\\"), "\\", field))
    if raw.startswith("\\\\"):
        return "\\\\" + "\\".join(_share(raw, field))
    raise Invalid("must be an absolute path, such as /home/me/project or C:\\project", field=field)


def normalise_cwd(raw: str) -> str:
    """The form a directory is compared in: forward slashes, none at the end but a root's, drive letter in lower
    case."""
    path = raw.replace("\\", "/") if _DRIVE.match(raw) or raw.startswith("\\\\") else raw
    return _one_form(path)


def normalise_cwd_glob(raw: str, field: str) -> str:
    """The same form for a pattern; one that no absolute directory can match is refused, since its hint would never be
    seen."""
    if len(raw) > limits.MAX_PATTERN_CHARS:
        raise ScopeInvalid(f"must be at most {limits.MAX_PATTERN_CHARS} characters", field=field)
    if _CONTROL.search(raw):
        raise ScopeInvalid("must not hold control characters", field=field)
    pattern = _one_form(raw.replace("\\", "/"))
    if ".." in pattern.split("/"):
        raise ScopeInvalid("must not hold a `..` segment", field=field)
    if pattern.startswith("~"):
        raise ScopeInvalid("`~` is not expanded; write the full path, such as /home/me/project", field=field)
    if not all(map(_CAN_MATCH.match, _starts(pattern, field))):
        raise ScopeInvalid("is compared with an absolute directory; start it with `/` or `**/`", field=field)
    return pattern


def _starts(pattern: str, field: str) -> list[str]:
    """What the pattern can begin with, braces expanded."""
    if not pattern.startswith("{"):
        return [pattern]
    from nudge.security.matching import expand_braces  # late: it loads RE2, and only the server reads scopes

    return expand_braces(pattern, field)


def _check_text(raw: str, field: str) -> None:
    if len(raw) > limits.MAX_PATH_CHARS:
        raise Invalid(f"must be at most {limits.MAX_PATH_CHARS} characters", field=field)
    if _CONTROL.search(raw):
        raise Invalid("must not hold control characters", field=field)


def _segments(path: str, separator: str, field: str) -> list[str]:
    kept = [part for part in path.split(separator) if part not in ("", ".")]
    if ".." in kept:
        raise Invalid("must not hold a `..` segment", field=field)
    return kept


def _share(raw: str, field: str) -> list[str]:
    parts = _segments(raw.replace("/", "\\"), "\\", field)
    if len(parts) < 2:
        raise Invalid("must name a server and a share, as in \\\\server\\share", field=field)
    return parts


def _one_form(path: str) -> str:
    path = re.sub(r"/(?:\.?/)+", "/", path)
    path = path[:-1] if path.endswith("/.") else path
    if path[1:2] == ":" and path[0].isascii() and path[0].isalpha():
        path = path[0].lower() + path[1:]
    root = path == "/" or path[1:] == ":/"
    return path if root else path.rstrip("/")
