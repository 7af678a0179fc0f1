"""The thin path: what a hook, a plain `nudge get` line and a PROXY import. Each module is imported in an interpreter of
its own, without installed packages; a module that does not exist fails the test."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from nudge.clients import MODULES_OF

ROOT = Path(__file__).parents[2]

LEAVES = (
    "core.errors",
    "core.limits",
    "core.locks",
    "settings.config",
    "core.clock",
    "core.context",
    "core.paths",
    "core.programs",
    "core.repos",
    "settings.table",
    "settings.switches",
    "security.absolute_paths",
    "security.secrets",
    "core.files",
    "core.streams",
    "core.strict_json",
    "core.text",
    "core.thin_json",
)
IPC = (
    "process.endpoint",
    "process.connection",
    "process.spawn",
    "process.client",
    "process.role",
    "interfaces.mcp",
    "interfaces.stdio",
    "process.proxy",
)
CLIENTS = tuple(MODULES_OF.values())
HOOK = (
    "hook",
    "history.extract",
    "storage.spool",
    "statusline",
    *(f"clients.{name}" for name in ("registry", *CLIENTS)),
)
COMMANDS = (
    "__main__",
    *(f"cli.{name}" for name in ("plain", "output")),
)
THIN = tuple(f"nudge.{name}" for name in (*LEAVES, *IPC, *HOOK, *COMMANDS))

# Modules of the standard library that take 5 to 15 ms each to import: a large part of the budget of one command.
HEAVY = frozenset(
    (
        "asyncio",
        "dataclasses",
        "http",
        "inspect",
        "logging",
        "pathlib",
        "shutil",
        "subprocess",
        "tempfile",
        "typing",
        "urllib",
    )
)

# Modules that take 8 ms together, more than everything else that a hook imports.
JSON_AND_RE = frozenset(("collections", "enum", "functools", "json", "re"))
WITHOUT_JSON_AND_RE = (
    *(
        "hook",
        "history.extract",
        "process.client",
        "process.spawn",
        "cli.plain",
        "cli.output",
        "settings.config",
        "security.secrets",
    ),
    *("clients.registry", "clients.claude_code", "core.context", "settings.switches", "storage.spool", "statusline"),
)


@cache
def loaded_by(statement: str) -> frozenset[str]:
    """Return the names of the modules that a statement loads. `-S` leaves out installed packages: importing one, or a
    module that does not exist, fails the test."""
    script = (
        f"import sys; before = set(sys.modules); sys.path.insert(0, {str(ROOT)!r}); "
        f"{statement}; print(*set(sys.modules) - before)"
    )
    run = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return frozenset(run.stdout.split())


def top_levels(modules: frozenset[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("module", THIN)
def test_a_thin_module_loads_the_standard_library_only(module: str) -> None:
    """Installed packages cost tens of milliseconds each, on every command and for every agent."""
    foreign = top_levels(loaded_by(f"import {module}")) - sys.stdlib_module_names - {"nudge"}
    assert not foreign


@pytest.mark.parametrize("module", THIN)
def test_a_thin_module_loads_nothing_heavy(module: str) -> None:
    """The slow modules of the standard library are imported inside the functions that need them."""
    assert not top_levels(loaded_by(f"import {module}")) & HEAVY


@pytest.mark.parametrize("module", WITHOUT_JSON_AND_RE)
def test_a_hook_and_a_plain_line_import_neither_json_nor_re(module: str) -> None:
    """`json` and `re` are imported inside the functions that need them."""
    assert not loaded_by(f"import nudge.{module}") & JSON_AND_RE


def test_a_proxy_imports_all_clients_at_its_start() -> None:
    """The package may be upgraded while a PROXY serves: what it imports later could be of another version."""
    assert {f"nudge.clients.{name}" for name in CLIENTS} <= loaded_by("import nudge.process.proxy")


def test_a_hook_of_claude_code_imports_no_other_client() -> None:
    """Each client's module costs every hook the time to load it."""
    statement = "from nudge.clients import registry; registry.detect({'client': 'claude-code'}, {})"
    loaded = loaded_by(f"import nudge.hook; {statement}")
    assert {name for name in CLIENTS if f"nudge.clients.{name}" in loaded} == {"claude_code"}


def test_an_indirect_import_is_detected() -> None:
    """A heavy module that another module imports counts as well."""
    assert {"logging", "asyncio"} <= top_levels(loaded_by("import asyncio")) & HEAVY


def test_primary_starts_without_aiohttp_and_the_mcp_sdk() -> None:
    """A command or hook that starts a server waits for its start; the MCP SDK alone would make that four times as
    long."""
    statement = "import nudge.process.primary, sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "pydantic" in run.stdout.split()
    assert not {"aiohttp", "mcp", "mcp_types", "starlette", "uvicorn"} & set(run.stdout.split())
