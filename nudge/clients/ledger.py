"""What we did to which file, so that it can be undone to the byte: never a copy of it, only what we put in and what
that replaced."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from nudge import paths
from nudge.clients import files
from nudge.clients.draft import Undo, undone
from nudge.clients.place import Place

FILE = "connections.json"


@dataclass(frozen=True, slots=True)
class Mark:
    """One file as we left it."""

    digest: str
    undo: list[Undo]
    created: bool = False
    directories: list[str] = field(default_factory=list)
    place: dict[str, str] = field(default_factory=dict)  # where its client looked for it

    def fits(self, text: str) -> bool:
        """Nobody has changed the file since."""
        return self.digest == digest(text)

    def restored(self, text: str) -> str | None:
        """The file as it was before us; None when it was not there."""
        return None if self.created else undone(text, self.undo)


class Ledger:
    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self.path = os.path.join(paths.runtime_dir(environ), FILE)
        self._marks = _read(self.path)

    @property
    def paths(self) -> list[str]:
        """Of all files with something of ours."""
        return list(self._marks)

    def places(self) -> list[Place]:
        """A client may have been told to keep its files elsewhere when it was wired."""
        return [
            Place.from_wire(dict(place))
            for place in dict.fromkeys(tuple(mark.place.items()) for mark in self._marks.values())
        ]

    def mark(self, path: str) -> Mark | None:
        return self._marks.get(path)

    def note(self, path: str, mark: Mark | None) -> None:
        """None: we have nothing there any more."""
        self._marks.pop(path, None)
        if mark is not None:
            self._marks[path] = mark
        self._save()

    def _save(self) -> None:
        if not self._marks:
            files.remove(self.path, [])
            return
        paths.ensure_private_dir(os.path.dirname(self.path))
        files.write(self.path, json.dumps({path: asdict(mark) for path, mark in self._marks.items()}))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: str) -> dict[str, Mark]:
    """One that cannot be read is as good as none: entries are then found by what they say."""
    try:
        with open(path, encoding="utf-8") as file:
            return {name: _mark(raw) for name, raw in json.load(file).items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _mark(raw: Any) -> Mark:
    undo = [(int(at), int(length), str(text)) for at, length, text in raw["undo"]]
    place = {str(name): str(value) for name, value in raw.get("place", {}).items()}
    return Mark(
        str(raw["digest"]), undo, bool(raw["created"]), [str(directory) for directory in raw["directories"]], place
    )
