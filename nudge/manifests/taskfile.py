"""Taskfile tasks -> `task test`."""

from __future__ import annotations

from collections.abc import Iterator

from nudge.manifests.model import Claim, Rank, best_names
from nudge.manifests.shell import argument
from nudge.manifests.tree import Place
from nudge.manifests.yaml_entries import Entry, entries

_FILES = ("Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml", "Taskfile.dist.yml", "Taskfile.dist.yaml")


def read(place: Place) -> Iterator[Claim]:
    file = place.first(*_FILES)
    listed = place.parsed(file, entries) if file else None
    if file is None or listed is None:
        return
    defined = tasks(listed)
    task = f"task -d {argument(place.rel)}" if place.rel else "task"
    for key, name in best_names(defined):
        yield Claim(key, f"{task} {name}", Rank.RUNNER, place.rel, place.path(file), defined[name])


def tasks(listed: list[Entry]) -> dict[str, int]:
    """Each task that may be called from a command line, with its line."""
    below = [entry for entry in listed if entry.path[0] == "tasks"]
    internal = {entry.path[1] for entry in below if entry.path[2:] == ("internal",) and entry.value == "true"}
    return {entry.path[1]: entry.line for entry in below if len(entry.path) == 2 and entry.path[1] not in internal}
