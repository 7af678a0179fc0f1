"""Which package may import which. Data flows one way: interface (cli, hook, ipc, http, mcp) -> operation -> domain ->
storage; the leaves are below all of them. In a room (`learning`, `telling`) the role of a module decides: `ops` sees
storage and the app, `store` is seen by the room and operations only, `cli` has its verbs, everything else is pure."""

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

# Every package may import these; they import nothing but each other.
LEAVES = frozenset(
    (
        "__version__",
        "clock",
        "config",
        "context",
        "core",
        "errors",
        "files",
        "json_reader",
        "limits",
        "locks",
        "note_files",
        "passages",
        "paths",
        "programs",
        "repos",
        "scoring",
        "spelling",
        "security",
        "setting_table",
        "words",
        "streams",
        "strict_json",
        "switches",
        "text",
        "thin_json",
        "transfer_files",
    )
)
DOMAINS = frozenset(("hints", "history", "learning", "manifests", "memories", "telling"))
ROOMS = frozenset(("learning", "telling"))
OPS, STORE, VERBS = "a room's ops", "a room's store", "a room's cli"
# `observer` and `hook_answers` are the parts of the operation `nudge.record` that learn and tell.
ROLES = {"ops": OPS, "observer": OPS, "hook_answers": OPS, "store": STORE, "cli": VERBS}

MAY_IMPORT = {
    **dict.fromkeys(LEAVES, LEAVES),
    **{domain: LEAVES | {domain} for domain in DOMAINS},
    OPS: LEAVES | DOMAINS | {OPS, STORE, "storage", "usecases"},
    STORE: LEAVES | ROOMS,
    VERBS: LEAVES | {"cli", "clients", "statusline", "usecases"},
    "history": LEAVES | {"history", "learning"},  # it reads shell lines as learning does
    # What is told is about what the others know.
    "telling": LEAVES | {"hints", "history", "learning", "memories", "telling"},
    "clients": LEAVES | {"clients"},
    "storage": LEAVES | {"storage"},
    "ipc": LEAVES | {"ipc"},
    "usecases": LEAVES | DOMAINS | {OPS, STORE, "clients", "storage", "usecases"},
    "doctor": LEAVES | DOMAINS | {"clients", "doctor", "ipc", "storage", "usecases"},
    "server": LEAVES | {OPS, "clients", "ipc", "server", "usecases"},
    # The CLI reads the manifests of a repo itself: PRIMARY may be unable to see the caller's files.
    "cli": LEAVES | {"cli", "clients", "doctor", "ipc", "manifests", "server", "usecases"},
    "hook": LEAVES | {"ipc"},
    "statusline": LEAVES | {"ipc"},
    "__main__": LEAVES | {"cli", "hook", "ipc", "server", "statusline"},
}

EXCEPTIONS = {
    # The keys of the setting `retention` are the types of observations.
    ("nudge.setting_table", "nudge.history.observations"),
    # A hook has no time to wait for a server: it parses its event, and writes it to the spool, by itself.
    ("nudge.hook", "nudge.clients.client"),
    ("nudge.hook", "nudge.clients.registry"),
    ("nudge.hook", "nudge.history.extract"),
    ("nudge.hook", "nudge.storage.spool"),
    # Nor has it for the text of a start, which is built from the files on the disk.
    ("nudge.hook", "nudge.telling.offline"),
    *(
        ("nudge.telling.offline", f"nudge.{name}")
        for name in ("storage.sqlite", "usecases.freshness", "usecases.session", "usecases.visibility")
    ),
    # The text of a start is composed from a connection, since a hook has no application.
    ("nudge.telling.start", "nudge.learning.store"),
}

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
    """`from nudge import limits` names a module, `from nudge.limits import KIB` a part of one."""
    inner = f"{package}.{name}"
    return inner if inner in modules() or package == "nudge" else package


def package_of(module: str) -> str:
    """Return the package or leaf directly below `nudge` that a module belongs to, or its role in a room."""
    parts = module.split(".")
    if len(parts) == 3 and parts[1] in ROOMS and parts[2] in ROLES:
        return ROLES[parts[2]]
    return parts[1] if len(parts) > 1 else "__version__"


def forbidden_imports(module: str, source: str) -> list[str]:
    """Return the imports of Nudge's own modules that MAY_IMPORT does not allow."""
    ours = (name for name in imports(source) if name.partition(".")[0] == "nudge")
    foreign = (name for name in ours if package_of(name) not in MAY_IMPORT[package_of(module)])
    return [f"{module} imports {name}" for name in foreign if (module, name) not in EXCEPTIONS]


def libraries(source: str) -> set[str]:
    return {name.partition(".")[0] for name in imports(source)}


def test_every_library_is_a_listed_dependency() -> None:
    """What is imported is listed in pyproject.toml, also where another dependency brings it along, and in README's
    table. `_sha2` is in the standard library of later versions only."""
    imported = set().union(*map(libraries, modules().values())) - set(sys.stdlib_module_names) - {"nudge", "_sha2"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = {re.split("[<>=]", line)[0] for line in project["dependencies"]}
    distributions = packages_distributions()
    assert {distributions[name][0].lower().replace("_", "-") for name in imported} == listed
    table = (ROOT / "README.md").read_text().partition("## Dependencies\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)) == listed


def test_every_package_is_in_the_table() -> None:
    """A new package has to say here what it may import."""
    assert {package_of(module) for module in modules()} <= set(MAY_IMPORT)


def test_data_flows_one_way() -> None:
    """An interface imports use cases, a use case imports domains and storage, a domain imports neither; nothing imports
    in the other direction."""
    forbidden = {module: forbidden_imports(module, source) for module, source in modules().items()}
    assert {module: names for module, names in forbidden.items() if names} == {}


def test_a_domain_does_no_io_of_its_own() -> None:
    """Domains take and return plain values: no event loop, no network, and SQL in a store only."""
    forbidden = set()
    for module in filter(lambda name: package_of(name) in DOMAINS | {STORE}, modules()):
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
        ("nudge.telling.prompt", "from nudge.usecases.app import App"),
        ("nudge.telling.prompt", "from nudge.learning.store import load"),
        ("nudge.learning.cures", "from nudge.learning import ops"),
        ("nudge.learning.store", "from nudge.storage.database import Database"),
        ("nudge.storage.database", "def late():\n    import nudge.usecases.app"),
        ("nudge.ipc.spawn", "from nudge.server import http"),
        ("nudge.errors", "from nudge.hints.model import Hint"),
        ("nudge.server.http", "from nudge.hints.store import HintStore"),
    ],
)
def test_a_forbidden_import_is_detected(module: str, source: str) -> None:
    """Every form of import counts, at the top of a module and inside a function."""
    assert len(forbidden_imports(module, source)) == 1
