"""Who may know whom: interface -> service -> domain, with storage and runtime beside, and the leaves below all of
them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What everybody may import, and what imports nothing else itself.
COMMON = frozenset(
    (
        "__version__",
        "clock",
        "config",
        "context",
        "errors",
        "files",
        "limits",
        "paths",
        "scoring",
        "security",
        "words",
        "strict_json",
        "switches",
        "text",
        "thin_json",
    )
)
DOMAINS = frozenset(("hints", "history", "manifests", "memories"))

MAY_IMPORT = {
    **dict.fromkeys(COMMON, COMMON),
    **{domain: COMMON | {domain} for domain in DOMAINS},
    "clients": COMMON | {"clients"},
    "storage": COMMON | {"storage"},
    "ipc": COMMON | {"ipc"},
    "usecases": COMMON | DOMAINS | {"clients", "ipc", "storage", "usecases"},
    "doctor": COMMON | DOMAINS | {"clients", "doctor", "ipc", "storage", "usecases"},
    "server": COMMON | {"ipc", "server", "usecases"},
    # Reading the manifests of a repo happens on the client's side: PRIMARY may be unable to see the caller's files.
    "cli": COMMON | {"cli", "clients", "doctor", "ipc", "manifests", "server", "usecases"},
    "hook": COMMON | {"ipc", "usecases"},
    "__main__": COMMON | {"cli", "hook", "ipc", "server"},
}

EXCEPTIONS = {
    # A hook is over before a server could be asked: it understands its event, and keeps it, by itself.
    ("nudge.hook", "nudge.clients.client"),
    ("nudge.hook", "nudge.clients.registry"),
    ("nudge.hook", "nudge.history.extract"),
    ("nudge.hook", "nudge.history.event_paths"),
    ("nudge.hook", "nudge.storage.spool"),
    # Two processes with one database are held apart by the same lock that tells who is PRIMARY.
    ("nudge.storage.database", "nudge.ipc.lock"),
}

NOT_IN_A_DOMAIN = frozenset(("aiohttp", "asyncio", "sqlite3"))
PATTERN_LIBRARIES = {"re2": "nudge.security.regex", "wcmatch": "nudge.security.globs", "bracex": "nudge.security.globs"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, str]:
    """Every module's source by its name."""
    return {module_name(path): path.read_text(encoding="utf-8") for path in sorted((ROOT / "nudge").rglob("*.py"))}


@cache
def imports(source: str) -> tuple[str, ...]:
    """Every module that is named, late and type-only imports too: knowing a name is knowing it."""
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


def place(module: str) -> str:
    """The room below `nudge` that a module lives in."""
    return module.split(".")[1] if "." in module else "__version__"


def trespasses(module: str, source: str) -> list[str]:
    """Imports of our own modules that the table does not allow."""
    ours = (name for name in imports(source) if name.partition(".")[0] == "nudge")
    foreign = (name for name in ours if place(name) not in MAY_IMPORT[place(module)])
    return [f"{module} imports {name}" for name in foreign if (module, name) not in EXCEPTIONS]


def packages(source: str) -> set[str]:
    return {name.partition(".")[0] for name in imports(source)}


def test_every_module_lives_in_a_known_room() -> None:
    """A new package has to say here whom it may know."""
    assert {place(module) for module in modules()} <= set(MAY_IMPORT)


def test_data_flows_one_way() -> None:
    """An interface knows services, a service knows domains and storage, a domain knows nobody; nothing points back."""
    found = {module: trespasses(module, source) for module, source in modules().items()}
    assert {module: names for module, names in found.items() if names} == {}


def test_a_domain_does_no_io_of_its_own() -> None:
    """Domains take and return plain values: no event loop, no network, and SQL in a store only."""
    found = set()
    for module in filter(lambda name: place(name) in DOMAINS, modules()):
        allowed = {"sqlite3"} if module.rpartition(".")[2] == "store" else set()
        found |= {(module, name) for name in packages(modules()[module]) & NOT_IN_A_DOMAIN - allowed}
    assert found == set()


def test_patterns_have_one_door() -> None:
    """Users' regular expressions and globs are compiled in one module each, where their cost is bounded."""
    importers = {(name, module) for module, source in modules().items() for name in packages(source)}
    assert {(name, module) for name, module in importers if name in PATTERN_LIBRARIES} <= set(PATTERN_LIBRARIES.items())


def test_every_exception_is_in_use() -> None:
    """An exception that nobody needs any more is an open door."""
    used = {(module, name) for module, source in modules().items() for name in imports(source)}
    assert used >= EXCEPTIONS


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("nudge.hints.store", "from nudge.storage import changelog"),
        ("nudge.hints.store", "from nudge.history.event import Event"),
        ("nudge.storage.database", "def late():\n    import nudge.usecases.app"),
        ("nudge.ipc.spawn", "from nudge.server import http"),
        ("nudge.errors", "from nudge.hints.model import Hint"),
        ("nudge.server.http", "from nudge.hints.store import HintStore"),
    ],
)
def test_a_trespass_is_seen(module: str, source: str) -> None:
    """Whatever form the import has, and wherever in the file it stands."""
    assert len(trespasses(module, source)) == 1
