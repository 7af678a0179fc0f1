"""From the claims of all manifests to one command for each component and job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from nudge.core import limits
from nudge.core.text import is_all_visible
from nudge.manifests.commands import (
    JOBS,
    SCRIPT_DIRECTORIES,
    Claim,
    Command,
    Rank,
    fold_name,
    uses_same_tool,
)
from nudge.manifests.javascript import npm_package_name, package_scripts, read_package_json
from nudge.manifests.jvm import gradle_project_name, maven_project_name, read_gradle, read_maven
from nudge.manifests.python import python_package_name, read_python_project
from nudge.manifests.rust_go import cargo_package_name, go_module_name, read_cargo, read_go_mod
from nudge.manifests.task_runners import (
    just_recipes,
    make_targets,
    read_compose,
    read_justfile,
    read_makefile,
    read_scripts,
    read_taskfile,
    read_workflows,
)
from nudge.manifests.tree import Clock, Directory, Tree
from nudge.security.secrets import find_secret

# The order decides between manifests of one rank in one directory.
_PACKAGE_NAMES: tuple[Callable[[Directory], str | None], ...] = (
    python_package_name,
    cargo_package_name,
    go_module_name,
    maven_project_name,
    gradle_project_name,
    npm_package_name,
)
_READERS: tuple[Callable[[Directory], Iterator[Claim]], ...] = (
    read_makefile,
    read_justfile,
    read_taskfile,
    read_scripts,
    read_python_project,
    read_cargo,
    read_go_mod,
    read_maven,
    read_gradle,
    read_package_json,
    read_compose,
    read_workflows,
)


@dataclass(frozen=True, slots=True)
class RepoScan:
    """What the manifests of a repo say."""

    commands: list[Command]
    problems: list[str]  # a line for each file that could not be read and for each limit that was reached
    unread: list[str]  # those files and directories, from the root; `.` stands for all of them


def scan_repo(root: Path, name: str | None = None, clock: Clock = time.monotonic) -> RepoScan:
    """Read every manifest below `root`, within the limits of files and seconds.

    `name` is the component of the root when no manifest names it: the directory of a worktree has another name.
    """
    tree = Tree(root, clock)
    components: dict[str, str] = {}
    claims: list[Claim] = []
    for directory in tree.directories.values():
        components[directory.rel] = _component_of(directory, name or tree.root.name)
        claims += [claim for reader in _READERS for claim in reader(directory)]
    commands = list(_select(claims, components))
    packages = list(dict.fromkeys(command.component for command in commands))
    if beyond := packages[limits.MAX_SCANNED_PACKAGES :]:
        tree.problems.append(f"{len(beyond)} packages beyond the first {limits.MAX_SCANNED_PACKAGES}")
        commands = [command for command in commands if command.component not in beyond]
    unread = tree.unread if len(tree.unread) <= limits.MAX_UNREAD_MANIFESTS else ["."]
    return RepoScan(commands, tree.problems, unread)


def commands_of_directory(directory: Path) -> list[Command]:
    """Return the commands that the manifests and scripts of one directory name, without guesses."""
    top = Tree(directory, depth=1).directories[""]
    claims = [claim for reader in _READERS for claim in reader(top)]
    return [command for command in _select(claims, {"": top.tree.root.name or "."}) if not command.is_guess]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a target or a script runs, as text; `is_plain` where its programs are looked up as in any shell, not in an
    environment of the manifest's tool."""

    text: str
    is_plain: bool


def recipe_of(directory: Path, command: Command) -> Recipe:
    """Return what a command of a directory's manifest runs: the line that it comes from, and those indented below."""
    file, _, line = command.reason.rpartition(":")
    folder, _, name = file.lower().rpartition("/")
    text = Tree(directory, depth=1).read(file) or ""
    if folder in SCRIPT_DIRECTORIES:
        return Recipe(text, is_plain=name.endswith((".sh", ".bash")) or "." not in name)
    is_plain = "makefile" in name or name.endswith((".mk", "justfile")) or name.startswith("taskfile")
    head, *below = text.splitlines()[max(int(line) - 1, 0) :] or [""]
    body = takewhile(lambda one: not one.strip() or one[0].isspace(), below) if is_plain else ()
    return Recipe("\n".join((head, *body)), is_plain)


def defined_targets(file: str, text: str) -> frozenset[str]:
    """Return what can be run by name: the targets of a Makefile, recipes of a justfile, scripts of a package.json."""
    name = file.lower()
    if name == "package.json":
        return frozenset(package_scripts(text))
    return frozenset(just_recipes(text) if name.endswith("justfile") else make_targets(text))


def root_component(root: Path, name: str) -> str:
    """Return the component of the root, as `scan_repo` names it. Reads no directory but the root."""
    return _component_of(Tree(root, depth=0).directories[""], name)


def _component_of(directory: Directory, root_name: str) -> str:
    """Return the name of the one package in a directory, or the directory's own when it has none or several."""
    names = (package_name(directory) for package_name in reversed(_PACKAGE_NAMES))
    packages = {fold_name(name): name for name in names if name and _is_component_name(name)}
    return next(iter(packages.values())) if len(packages) == 1 else directory.rel.rpartition("/")[2] or root_name


def _select(claims: list[Claim], components: dict[str, str]) -> Iterator[Command]:
    """Yield the claim of the best rank for each component and job, those of the root first."""
    rivals: dict[tuple[str, str], list[Claim]] = {}
    labels = _ComponentLabels(components)
    labeled = [(labels.label(claim), claim) for claim in claims if _is_safe(claim)]
    for component, claim in sorted(labeled, key=lambda pair: pair[1].rank):
        if _is_component_name(component):
            rivals.setdefault((component, claim.job), []).append(claim)
    best = {name: _best(ranked) for name, ranked in rivals.items()}
    for (component, job), (claim, is_guess) in sorted(best.items(), key=_shallow_first):
        yield Command(component, job, claim.cmd, claim.reason, claim.directory or ".", claim.file, is_guess)


def _best(ranked: list[Claim]) -> tuple[Claim, bool]:
    """Return the best of several claims, and whether it is a guess. CI that runs a language's usual tool confirms the
    usual command, which people type without the options of the CI machine; any other step of CI replaces it."""
    first = ranked[0]
    usual = next((claim for claim in ranked if claim.rank is Rank.LANGUAGE), None)
    if first.rank is Rank.WORKFLOW and usual is not None and uses_same_tool(usual.cmd, first.cmd):
        return usual, False
    return first, first.rank is Rank.LANGUAGE


def _shallow_first(item: tuple[tuple[str, str], tuple[Claim, bool]]) -> tuple[int, str, str, int]:
    (component, job), (claim, _) = item
    return claim.directory.count("/") + bool(claim.directory), claim.directory, component, JOBS.index(job)


class _ComponentLabels:
    """Gives each directory a component name of its own: a second package of the same name is called by its path."""

    def __init__(self, components: dict[str, str]) -> None:
        self._components = components
        self._owners: dict[str, str] = {}

    def label(self, claim: Claim) -> str:
        component = self._components[claim.directory]
        name = claim.package if claim.package and _is_component_name(claim.package) else component
        if fold_name(name) == fold_name(component):
            name = component
        if claim.is_service or self._owners.setdefault(fold_name(name), claim.directory) == claim.directory:
            return name
        return claim.directory or name


def _is_component_name(text: str) -> bool:
    return 0 < len(text) <= limits.MAX_NAME_CHARS and is_all_visible(text) and text == text.strip()


def _is_safe(claim: Claim) -> bool:
    """Whether a claim may become a hint, which people see and agents run: visible, short, without a credential."""
    is_short = len(claim.cmd) <= limits.MAX_FOUND_COMMAND_CHARS and len(claim.reason) <= limits.MAX_FOUND_REASON_CHARS
    return is_short and is_all_visible(f"{claim.cmd}{claim.reason}") and find_secret(claim.cmd) is None
