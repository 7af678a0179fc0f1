"""Absolute paths, of any system. A path that is stored keeps its style; directories are compared in one form."""

from __future__ import annotations

import re

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.core.text import has_control

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def normalize_path(raw: str, field: str) -> str:
    """Return an absolute path without `.` and doubled slashes, in the style that it is written in. Raises Invalid for a
    relative path, a `..` or a control character."""
    _check_text(raw, field)
    if raw.startswith("/"):
        return "/" + "/".join(_segments(raw, "/", field))
    if _DRIVE.match(raw):
        separator = raw[2]
        return raw[:2] + separator + separator.join(_segments(raw[2:].replace("/", "\\"), "\\", field))
    if raw.startswith("\\\\"):
        return "\\\\" + "\\".join(_share(raw, field))
    raise Invalid("must be an absolute path, such as /home/me/api or C:\\api", field=field)


def normalize_cwd(raw: str) -> str:
    """Return a directory in the form in which directories are compared: forward slashes, none at the end except a
    root's, drive letter in lower case."""
    path = raw.replace("\\", "/") if _DRIVE.match(raw) or raw.startswith("\\\\") else raw
    path = re.sub(r"/(?:\.?/)+", "/", path)
    path = path[:-1] if path.endswith("/.") else path
    if path[1:2] == ":" and path[0].isascii() and path[0].isalpha():
        path = path[0].lower() + path[1:]
    is_root = path == "/" or path[1:] == ":/"
    return path if is_root else path.rstrip("/")


def _check_text(raw: str, field: str) -> None:
    if len(raw) > limits.MAX_PATH_CHARS:
        raise Invalid(f"must be at most {limits.MAX_PATH_CHARS} characters", field=field)
    if has_control(raw):
        raise Invalid("must not contain control characters", field=field)


def _segments(path: str, separator: str, field: str) -> list[str]:
    parts = [part for part in path.split(separator) if part not in ("", ".")]
    if ".." in parts:
        raise Invalid("must not contain a `..` segment", field=field)
    return parts


def _share(raw: str, field: str) -> list[str]:
    parts = _segments(raw.replace("/", "\\"), "\\", field)
    if len(parts) < 2:
        raise Invalid("must name a server and a share, as in \\\\server\\share", field=field)
    return parts
