"""justfile recipes -> `just test`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nudge.manifests.model import Claim, Rank, best_names
from nudge.manifests.shell import argument
from nudge.manifests.tree import Place

_FILES = ("justfile", "Justfile", ".justfile")
_HEADER = re.compile(r"@?(?P<name>[A-Za-z][\w-]*)(?P<parameters>[^:\n]*):(?!=)")
_ALIAS = re.compile(r"alias\s+(?P<name>[A-Za-z][\w-]*)\s*:=")
# `+args` needs at least one, `*args` and `name="x"` need none.
_REQUIRED_PARAMETER = re.compile(r"(?:^|\s)[+$]*[A-Za-z_][\w-]*(?=\s|$)")


def read(place: Place) -> Iterator[Claim]:
    file = place.first(*_FILES)
    text = place.text(file) if file else None
    if file is None or text is None:
        return
    defined = recipes(text)
    # A slash before the recipe is just's own way to name a justfile elsewhere.
    where = f"{argument(place.rel)}/" if place.rel else ""
    for key, name in best_names(defined):
        yield Claim(key, f"just {where}{name}", Rank.RUNNER, place.rel, place.path(file), defined[name])


def recipes(text: str) -> dict[str, int]:
    """Each recipe that can be called with no argument, with its line."""
    found: dict[str, int] = {}
    is_private = False
    for number, line in enumerate(text.split("\n"), 1):
        match = _HEADER.match(line) or _ALIAS.match(line)
        if match and not is_private and not _needs_argument(match):
            found.setdefault(match["name"], number)
        is_private = line.startswith("[") and "private" in line
    return found


def _needs_argument(match: re.Match[str]) -> bool:
    return _REQUIRED_PARAMETER.search(match.groupdict().get("parameters") or "") is not None
