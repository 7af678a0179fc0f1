"""GitHub Actions steps: what CI types, for the keys that nothing else answers."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nudge import limits
from nudge.manifests.meaning import meaning
from nudge.manifests.model import Claim, Rank
from nudge.manifests.shell import within
from nudge.manifests.tree import Place
from nudge.manifests.yaml_entries import Entry, entries

_DIRECTORY = ".github/workflows"
_FILE = re.compile(r"[^/]+\.ya?ml")
# Workflows that say how the project is checked come before the others; those that ship it are not read.
_FIRST = re.compile(r"ci|tests?|build|main|lint|check", re.IGNORECASE)
_NEVER = re.compile(r"release|publish|deploy|codeql|stale|label|cron|nightly|docs?\b|pages", re.IGNORECASE)
# More than a command and its arguments: pipes, redirections, substitutions, variables of the CI machine.
_SCRIPTED = re.compile(r"[;|<>`$\\]|(?<!&)&(?!&)")
_PREPARES = re.compile(r"(?:cd|export|source|\.) ")
_DEFAULT_DIRECTORY = ("defaults", "run", "working-directory")
_SHELLS = ("", "bash", "sh")


@dataclass(slots=True)
class _Step:
    """One `run:` with what surrounds it."""

    run: str = ""
    line: int = 0
    shell: str = ""
    directory: str | None = None
    texts: list[str] = field(default_factory=list)


def read(place: Place) -> Iterator[Claim]:
    """Only for the root: that is where the workflows' paths start."""
    folder = place.tree.places.get(_DIRECTORY)
    if place.rel or folder is None:
        return
    names = [name for name in folder.files if _FILE.fullmatch(name) and not _NEVER.search(name)]
    for name in sorted(names, key=lambda name: (_FIRST.match(name) is None, name)):
        for step in _steps(folder.parsed(name, entries) or []):
            yield from _claims(place, step, f"{_DIRECTORY}/{name}")


def _claims(root: Place, step: _Step, file: str) -> Iterator[Claim]:
    rel = _inside_root(root, step.directory)
    if rel is None or not _is_typed(step):
        return
    for cmd in _commands(step.run):
        key = meaning(cmd.rpartition(" && ")[2])
        if key:
            yield Claim(key, within(rel, cmd), Rank.WORKFLOW, rel, file, step.line)


def _is_typed(step: _Step) -> bool:
    is_short = step.run.count("\n") < limits.MAX_WORKFLOW_LINES
    return is_short and step.shell in _SHELLS and not any("secrets." in text for text in step.texts)


def _commands(script: str) -> Iterator[str]:
    """The lines that a person could type; `cd web` belongs to what comes after it."""
    before = ""
    for line in (line.strip() for line in script.split("\n")):
        if _SCRIPTED.search(line):
            return
        if _PREPARES.match(line) and " && " not in line:
            before += f"{line} && "
        elif line and not line.startswith("#") and all(map(_PREPARES.match, line.split(" && ")[:-1])):
            yield before + line


def _inside_root(root: Place, directory: str | None) -> str | None:
    """The step's directory below the root; None when it is not one that was seen."""
    rel = posixpath.normpath(directory or ".")
    rel = "" if rel == "." else rel
    return rel if rel in root.tree.places else None


def _steps(listed: list[Entry]) -> list[_Step]:
    steps: dict[tuple[str, ...], _Step] = {}
    defaults = {entry.path[:-3]: entry.value for entry in listed if entry.path[-3:] == _DEFAULT_DIRECTORY}
    for entry in listed:
        if len(entry.path) > 4 and entry.path[0] == "jobs" and entry.path[2] == "steps":
            directory = defaults.get(entry.path[:2], defaults.get(()))
            _add(steps.setdefault(entry.path[:4], _Step(directory=directory)), entry)
    return [step for step in steps.values() if step.run]


def _add(step: _Step, entry: Entry) -> None:
    step.texts.append(entry.value)
    attribute = entry.path[4:]
    if attribute == ("run",):
        step.run, step.line = entry.value, entry.line
    elif attribute == ("shell",):
        step.shell = entry.value
    elif attribute == ("working-directory",):
        step.directory = entry.value
