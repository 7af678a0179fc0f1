"""From claims to commands: whose they are, which one is believed, and which must not pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nudge import limits
from nudge.manifests import (
    cargo,
    compose,
    go_mod,
    justfile,
    jvm,
    makefile,
    package_json,
    python_project,
    taskfile,
    workflows,
)
from nudge.manifests.model import KEYS, Claim, Found, folded
from nudge.manifests.tree import Place, Tree
from nudge.security.secrets import find_secret

# The order decides between manifests of one rank in one directory.
_NAMERS: tuple[Callable[[Place], str | None], ...] = (
    python_project.package_name,
    cargo.package_name,
    go_mod.package_name,
    jvm.maven_name,
    jvm.gradle_name,
    package_json.package_name,
)
_READERS: tuple[Callable[[Place], Iterator[Claim]], ...] = (
    makefile.read,
    justfile.read,
    taskfile.read,
    python_project.read,
    cargo.read,
    go_mod.read,
    jvm.read_maven,
    jvm.read_gradle,
    package_json.read,
    compose.read,
    workflows.read,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """All that the manifests of a repo tell."""

    found: list[Found]
    problems: list[str]  # one line for each file that could not be read, and for each limit that was met
    unread: list[str]  # those files, and directories, from the root


def find_commands(root: Path, name: str | None = None) -> list[Found]:
    return read_manifests(root, name).found


def read_manifests(root: Path, name: str | None = None) -> Reading:
    """`name` is what the root is called where no manifest names it: a worktree's directory has a name of its own."""
    tree = Tree(root)
    homes: dict[str, str] = {}
    claims: list[Claim] = []
    for place in tree.places.values():
        homes[place.rel] = _home(place, name or tree.root.name)
        claims += [claim for reader in _READERS for claim in reader(place)]
    found = list(_believed(claims, homes))
    if len(found) > limits.MAX_FOUND_COMMANDS:
        tree.problems.append(f"more than {limits.MAX_FOUND_COMMANDS} commands: the deeper ones were left out")
    return Reading(found[: limits.MAX_FOUND_COMMANDS], tree.problems, tree.unread)


def _home(place: Place, root_name: str) -> str:
    """The component that a directory is: the package in it; the directory itself when it holds none, or several."""
    packages = {folded(name): name for namer in reversed(_NAMERS) if (name := namer(place)) and _is_name(name)}
    return next(iter(packages.values())) if len(packages) == 1 else place.rel.rpartition("/")[2] or root_name


def _believed(claims: list[Claim], homes: dict[str, str]) -> Iterator[Found]:
    """The best claim for each component and key, the root's first."""
    best: dict[tuple[str, str], Claim] = {}
    labels = _Labels(homes)
    labelled = [(labels.of(claim), claim) for claim in claims if _may_pass(claim)]
    for component, claim in sorted(labelled, key=lambda pair: pair[1].rank):
        if _is_name(component):
            best.setdefault((component, claim.key), claim)
    for (component, key), claim in sorted(best.items(), key=_reading_order):
        yield Found(component, key, claim.cmd, claim.reason, claim.directory or ".")


def _reading_order(item: tuple[tuple[str, str], Claim]) -> tuple[int, str, str, int]:
    (component, key), claim = item
    return claim.directory.count("/") + bool(claim.directory), claim.directory, component, KEYS.index(key)


class _Labels:
    """One component name for one directory: a second package of the same name is called by its path."""

    def __init__(self, homes: dict[str, str]) -> None:
        self._homes = homes
        self._owners: dict[str, str] = {}

    def of(self, claim: Claim) -> str:
        home = self._homes[claim.directory]
        name = claim.package if claim.package and _is_name(claim.package) else home
        if folded(name) == folded(home):
            name = home
        if claim.is_service or self._owners.setdefault(folded(name), claim.directory) == claim.directory:
            return name
        return claim.directory or name


def _is_name(text: str) -> bool:
    return 0 < len(text) <= limits.MAX_NAME_CHARS and text.isprintable() and text == text.strip()


def _may_pass(claim: Claim) -> bool:
    """A hint is shown to people and run by agents: no control characters, nothing that looks like a credential."""
    is_short = len(claim.cmd) <= limits.MAX_FOUND_COMMAND_CHARS and len(claim.reason) <= limits.MAX_FOUND_REASON_CHARS
    return is_short and f"{claim.cmd}{claim.reason}".isprintable() and find_secret(claim.cmd) is None
