"""Who may import whom, by the role of a module. Data flows one way: an interface (cli, hook, wire, http, mcp) parses
and renders, an operation validates and decides, the pure modules of a room compute, a store keeps rows.

In a room, `ops` (and what ends in `_ops`) has its operations and is the only one that sees storage and the application;
`store` is seen by the room and by operations; `cli` (and what ends in `_cli`) has its verbs, `render` what
they print; everything else is pure."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ROOMS = frozenset(
    ("hints", "history", "journal", "learning", "meaning", "notes", "page", "proposals", "repofile", "team", "telling")
)
LEAF, APP, OPS, STORE, VERBS, CLIENT_SIDE = "leaf", "app", "ops", "store", "verbs", "client side"
LEAVES = frozenset((LEAF, "security", "settings"))
"""Every module may import these; they import nothing but each other."""
ROLES = {"ops": OPS, "store": STORE, "cli": VERBS, "render": VERBS}
ENDINGS = {"_ops": OPS, "_cli": VERBS}
NAMED = {
    **dict.fromkeys(("nudge.core.app", "nudge.core.call", "nudge.core.aliases"), APP),
    # The parts of the operation `nudge.record` that learn and tell.
    **dict.fromkeys(("nudge.learning.observer", "nudge.telling.hook_answers"), OPS),
    "nudge.telling.offline": OPS,  # the operation `nudge.inject` without a server
    "nudge.proposals.language_model": OPS,  # it sends requests
    "nudge.hints.lifetime": OPS,  # it writes the change log and replays it
    "nudge.hints.offline": OPS,  # it reads the change log without a server
    **dict.fromkeys(("nudge.history.models", "nudge.journal.models", "nudge.notes.models"), OPS),
    **dict.fromkeys(("nudge.history.transcripts", "nudge.notes.chat_import", "nudge.hints.freshness"), CLIENT_SIDE),
    # They read the work tree, and who is at the terminal.
    **dict.fromkeys(("nudge.repofile.clone", "nudge.repofile.evidence", "nudge.repofile.person"), CLIENT_SIDE),
    "nudge.meaning.download": CLIENT_SIDE,
}
"""Modules whose role their name does not say."""
PURE = ROOMS | {"manifests"}

MAY_IMPORT = {
    **dict.fromkeys(LEAVES, LEAVES),
    **{room: LEAVES | {room} for room in PURE},
    APP: LEAVES | ROOMS | {APP, OPS, STORE, "clients", "storage"},
    OPS: LEAVES | PURE | {APP, OPS, STORE, CLIENT_SIDE, "clients", "storage"},
    STORE: LEAVES,
    CLIENT_SIDE: LEAVES | PURE | {"clients"},
    VERBS: LEAVES | PURE | {VERBS, CLIENT_SIDE, "cli", "clients", "process", "statusline"},
    "history": LEAVES | {"history", "learning"},  # it reads shell lines as learning does
    # What is told is about what the others know.
    "telling": LEAVES | {"hints", "history", "journal", "learning", "meaning", "notes", "repofile", "telling"},
    "repofile": LEAVES | {CLIENT_SIDE, "hints", "repofile"},  # its hints are matched and ranked as all are
    "notes": LEAVES | {"meaning", "notes"},  # a score is made of words and meaning
    "journal": LEAVES | {"journal", "learning", "notes"},  # an attempt is a note; its outcome is that of a command
    "proposals": LEAVES | {"notes", "proposals"},  # what is proposed is about notes
    "team": LEAVES | {"hints", "history", "notes", "team"},  # what of a hint or note is shared
    "clients": LEAVES | {"clients"},
    "storage": LEAVES | {"storage"},
    "doctor": LEAVES | ROOMS | {APP, OPS, STORE, CLIENT_SIDE, "clients", "doctor", "process", "storage"},
    "process": LEAVES | ROOMS | {APP, OPS, STORE, "clients", "interfaces", "process", "storage"},
    "interfaces": LEAVES | {APP, OPS, "clients", "interfaces", "page", "process"},
    # The CLI reads the manifests of a repo itself: PRIMARY may be unable to see the caller's files.
    "cli": LEAVES | PURE | {APP, OPS, CLIENT_SIDE, VERBS, "cli", "clients", "doctor", "process"},
    "hook": LEAVES | {"process"},
    "statusline": LEAVES | {"process"},
    "__main__": LEAVES | {"cli", "hook", "process", "statusline"},
}

EXCEPTIONS = {
    # Its annotations name the caller.
    ("nudge.core.visibility", "nudge.core.app"),
    ("nudge.core.visibility", "nudge.core.call"),
    # The keys of the setting `retention` are the types of observations.
    ("nudge.settings.table", "nudge.history.observations"),
    # A hook has no time to wait for a server: it parses its event, and writes it to the spool, by itself.
    ("nudge.hook", "nudge.clients.client"),
    ("nudge.hook", "nudge.clients.registry"),
    ("nudge.hook", "nudge.history.extract"),
    ("nudge.hook", "nudge.storage.spool"),
    # Nor has it for the text of a start, which is built from the files on the disk.
    ("nudge.hook", "nudge.telling.offline"),
    # An attempt is a note.
    ("nudge.journal.store", "nudge.notes.fields"),
    ("nudge.journal.store", "nudge.notes.note"),
    ("nudge.journal.store", "nudge.notes.store"),
    # What is told is composed from a connection, since a hook has no application.
    ("nudge.telling.start", "nudge.learning.store"),
    ("nudge.telling.prompt_notes", "nudge.notes.store"),
    ("nudge.telling.file_notes", "nudge.notes.store"),
}

OPTIONAL = ("semantic", "semantic-onnx")
"""Extras whose libraries are imported where they are used."""
BANNED_IN_DOMAINS = frozenset(("aiohttp", "asyncio", "sqlite3"))
PATTERN_LIBRARIES = frozenset(("re2", "wcmatch", "bracex"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, str]:
    """Return the source of every module of the package, by module name."""
    return {module_name(path): path.read_text(encoding="utf-8") for path in sorted((ROOT / "nudge").rglob("*.py"))}


@cache
def imports(source: str) -> tuple[str, ...]:
    """Return the modules that a source imports, including imports inside functions and for type checking only."""
    return tuple(_imports(source))


def _imports(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            yield from (_imported(str(node.module), alias.name) for alias in node.names)


def _imported(package: str, name: str) -> str:
    """`from nudge import limits` names a module, `from nudge.core.limits import KIB` a part of one."""
    inner = f"{package}.{name}"
    return inner if inner in modules() or package == "nudge" else package


def package_of(module: str) -> str:
    """Return the role of a module, or the package directly below `nudge` that it belongs to."""
    if module in NAMED:
        return NAMED[module]
    parts = module.split(".")
    if len(parts) == 1 or parts[1] == "core" or parts[1] == "__version__":
        return LEAF
    if len(parts) == 3 and parts[1] in ROOMS:
        return ROLES.get(parts[2]) or ENDINGS.get(parts[2][-4:], parts[1])
    return parts[1]


def forbidden_imports(module: str, source: str) -> list[str]:
    """Return the imports of Nudge's own modules that MAY_IMPORT does not allow."""
    ours = (name for name in imports(source) if name.partition(".")[0] == "nudge")
    allowed = MAY_IMPORT[package_of(module)]
    foreign = (name for name in ours if package_of(name) not in allowed and not _is_of_own_store(module, name))
    return [f"{module} imports {name}" for name in foreign if (module, name) not in EXCEPTIONS]


def _is_of_own_store(module: str, name: str) -> bool:
    """Whether a module and the store of its room are the two."""
    return STORE in (package_of(module), package_of(name)) and module.split(".")[:2] == name.split(".")[:2]


def libraries(source: str) -> set[str]:
    return {name.partition(".")[0] for name in imports(source)}


def test_every_library_is_a_listed_dependency() -> None:
    """What is imported is listed in pyproject.toml, also where another dependency brings it along, and in README's
    table. `_sha2` is in the standard library of later versions only."""
    imported = set().union(*map(libraries, modules().values())) - set(sys.stdlib_module_names) - {"nudge", "_sha2"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    optional = [line for extra in OPTIONAL for line in extras[extra] if not line.startswith(project["name"])]
    listed = {re.split("[<>=]", line)[0] for line in [*project["dependencies"], *optional]}
    distributions = packages_distributions()  # without those of an extra that is not installed
    assert {distributions.get(name, [name])[0].lower().replace("_", "-") for name in imported} == listed
    table = (ROOT / "README.md").read_text().partition("## Dependencies\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)) == listed


def test_every_package_is_in_the_table() -> None:
    """A new package has to say here what it may import."""
    assert {package_of(module) for module in modules()} <= set(MAY_IMPORT)


def test_data_flows_one_way() -> None:
    """An interface imports operations, these import rules and storage, a rule imports neither; nothing imports
    in the other direction."""
    forbidden = {module: forbidden_imports(module, source) for module, source in modules().items()}
    assert {module: names for module, names in forbidden.items() if names} == {}


def test_a_domain_does_no_io_of_its_own() -> None:
    """Domains take and return plain values: no event loop, no network, and SQL in a store only."""
    forbidden = set()
    for module in filter(lambda name: package_of(name) in PURE | {STORE}, modules()):
        allowed = {"sqlite3"} if module.rpartition(".")[2] == "store" else set()
        forbidden |= {(module, name) for name in libraries(modules()[module]) & BANNED_IN_DOMAINS - allowed}
    assert forbidden == set()


def test_patterns_are_compiled_in_one_module() -> None:
    """Users' regular expressions and globs are compiled in one module, which limits their cost."""
    importers = {module for module, source in modules().items() if libraries(source) & PATTERN_LIBRARIES}
    assert importers == {"nudge.security.patterns"}


def test_every_exception_is_in_use() -> None:
    """An exception that no module needs is removed from the table."""
    used = {(module, name) for module, source in modules().items() for name in imports(source)}
    assert used >= EXCEPTIONS


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("nudge.hints.store", "from nudge.storage import changelog"),
        ("nudge.hints.store", "from nudge.history.event import Event"),
        ("nudge.telling.prompt", "from nudge.core.app import App"),
        ("nudge.telling.prompt", "from nudge.learning.store import load"),
        ("nudge.learning.cures", "from nudge.learning import ops"),
        ("nudge.learning.store", "from nudge.storage.database import Database"),
        ("nudge.storage.database", "def late():\n    import nudge.core.app"),
        ("nudge.process.spawn", "from nudge.cli import app"),
        ("nudge.core.errors", "from nudge.hints.model import Hint"),
        ("nudge.interfaces.http", "from nudge.hints.store import HintStore"),
    ],
)
def test_a_forbidden_import_is_detected(module: str, source: str) -> None:
    """Every form of import counts, at the top of a module and inside a function."""
    assert len(forbidden_imports(module, source)) == 1
