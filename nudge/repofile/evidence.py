"""What a hint rests on: a file of the repository, or the section of one. Its digest is kept when the hint is trusted;
another digest later means that the hint may be out of date."""

from __future__ import annotations

import os
import re
from hashlib import sha256

from nudge.core import limits
from nudge.core.files import read_regular

GONE = ""
_HEADING = re.compile(r"(#{1,6})\s+(.*?)(?:\s+#+)?\s*")
_FENCE = re.compile(r"\s*(```|~~~)")
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")


def digest(root: str, evidence: str) -> str:
    """The digest of a file, or of its section: `docs/dev.md#testing`; GONE when it is not there, or leads out of the
    clone."""
    file, mark, section = evidence.partition("#")
    path = os.path.realpath(os.path.join(root, file))
    if os.path.commonpath((path, os.path.realpath(root))) != os.path.realpath(root):
        return GONE
    try:
        content = read_regular(path, limits.MAX_EVIDENCE_BYTES)
    except OSError:
        return GONE
    found = section_of(content.decode("utf-8", "replace"), section) if mark else None
    if mark and found is None:
        return GONE
    return sha256(content if found is None else found.encode()).hexdigest()


def section_of(text: str, name: str) -> str | None:
    """The text below a heading of Markdown, up to the next one of its level: the heading's own words, or its anchor in
    a link. In another file, what TOML and INI call a section."""
    lines, level, found = text.splitlines(), 0, list[str]()
    is_fenced = False
    for line in lines:
        is_fenced ^= bool(_FENCE.match(line))
        heading = None if is_fenced else _heading(line)
        if level and heading and heading[0] <= level:
            break
        if level:
            found.append(line)
        elif heading and name.strip().casefold() in (heading[1].casefold(), slug(heading[1])):
            level = heading[0]
            found.append(line)
    return "\n".join(found) if level else None


def _heading(line: str) -> tuple[int, str] | None:
    if line.startswith("[") and line.rstrip().endswith("]"):
        return 1, line.strip().strip("[]").strip()
    match = _HEADING.fullmatch(line)
    return (len(match[1]), match[2]) if match else None


def slug(heading: str) -> str:
    """The anchor that links use for a heading."""
    return _NOT_IN_SLUG.sub("", heading.casefold()).strip().replace(" ", "-")


def stale_reason(root: str, evidence: str, known: str) -> str | None:
    """Why a hint may be out of date, or None."""
    if not evidence:
        return None
    now = digest(root, evidence)
    if now == known:
        return None
    return f"{evidence} is not here" if now == GONE else f"{evidence} changed since it was trusted"
