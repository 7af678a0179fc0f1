"""Makefile targets -> `make test`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nudge.manifests.model import Claim, Rank, best_names
from nudge.manifests.shell import argument
from nudge.manifests.tree import Place

_FILES = ("GNUmakefile", "makefile", "Makefile")  # make's own order
_ASSIGNMENT = re.compile(r"\s*(?:(?:export|override|private)\s+)*[\w.-]+\s*(?::{0,3}|[?+!])=")
_TARGET = re.compile(r"[A-Za-z0-9_][\w.-]*")


def read(place: Place) -> Iterator[Claim]:
    file = place.first(*_FILES)
    text = place.text(file) if file else None
    if file is None or text is None:
        return
    defined = targets(text)
    make = f"make -C {argument(place.rel)}" if place.rel else "make"
    for key, name in best_names(defined):
        yield Claim(key, f"{make} {name}", Rank.RUNNER, place.rel, place.path(file), defined[name])


def targets(text: str) -> dict[str, int]:
    """Each explicit target with the line of its first rule."""
    found: dict[str, int] = {}
    for number, line in _top_level_lines(text):
        for name in _rule_targets(line):
            found.setdefault(name, number)
    return found


def _rule_targets(line: str) -> list[str]:
    head, colon, rest = line.partition(":")
    # `test: CFLAGS += -g` sets a variable for a target that has its rule elsewhere.
    if not colon or "=" in head or rest.lstrip(":").startswith("=") or _ASSIGNMENT.match(rest.lstrip(":")):
        return []
    return [name for name in head.split() if _TARGET.fullmatch(name)]


def _top_level_lines(text: str) -> Iterator[tuple[int, str]]:
    """What is neither a recipe, nor a comment, nor inside `define`; a continued line is one line."""
    in_define = False
    for number, line in _joined(text):
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        if in_define or word == "define":
            in_define = word != "endef"
        elif word and not line.startswith("\t"):
            yield number, line.partition("#")[0]


def _joined(text: str) -> Iterator[tuple[int, str]]:
    pending: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        pending.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            yield number - len(pending) + 1, " ".join(pending)
            pending = []
