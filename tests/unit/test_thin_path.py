"""What a hook, `nudge get` and a PROXY pay for: each of these modules is loaded in an interpreter that has nothing
else."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LEAVES = (
    "errors",
    "limits",
    "config",
    "clock",
    "context",
    "paths",
    "switches",
    "security.absolute_paths",
    "security.secrets",
    "files",
    "strict_json",
    "text",
    "thin_json",
)
IPC = (
    "ipc.endpoint",
    "ipc.lock",
    "ipc.connection",
    "ipc.spawn",
    "ipc.client",
    "server.role",
    "server.mcp",
    "server.stdio",
    "server.proxy",
)
HOOK = (
    "hook",
    "history.extract",
    "storage.spool",
    *(f"clients.{name}" for name in ("registry", "claude_code", "codex", "gemini", "opencode", "cursor")),
)
COMMANDS = (
    "__main__",
    *(f"cli.{name}" for name in ("plain", "output")),
)
THIN = tuple(f"nudge.{name}" for name in (*LEAVES, *IPC, *HOOK, *COMMANDS))

# Of the standard library, but 5 to 15 ms each: a large part of the whole budget of one command.
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

# 8 ms together, which is more than all else that a hook imports.
PATTERNS = frozenset(("collections", "enum", "functools", "json", "re"))
WITHOUT_PATTERNS = (
    *("hook", "history.extract", "ipc.client", "ipc.spawn", "cli.plain", "cli.output", "config", "security.secrets"),
    *("clients.registry", "clients.claude_code", "context", "switches", "storage.spool"),
)


def exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@cache
def loaded_by(statement: str) -> frozenset[str]:
    """The modules that a statement loads. Without `site` there are no installed packages: needing one is an
    ImportError."""
    script = (
        f"import sys; before = set(sys.modules); sys.path.insert(0, {str(ROOT)!r}); "
        f"{statement}; print(*set(sys.modules) - before)"
    )
    run = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return frozenset(run.stdout.split())


def top_levels(modules: frozenset[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_there_is_a_thin_path() -> None:
    """The list below names real modules; one that does not exist (yet) is skipped, but not all can be missing."""
    assert any(exists(module) for module in THIN)


@pytest.mark.parametrize("module", THIN)
def test_a_thin_module_loads_the_standard_library_only(module: str) -> None:
    """Installed packages cost tens of milliseconds each, on every command and for every agent."""
    if not exists(module):
        pytest.skip(f"{module} does not exist")
    foreign = top_levels(loaded_by(f"import {module}")) - sys.stdlib_module_names - {"nudge"}
    assert not foreign


@pytest.mark.parametrize("module", THIN)
def test_a_thin_module_loads_nothing_heavy(module: str) -> None:
    """The slow modules of the standard library are imported where they are needed, not where a command starts."""
    if not exists(module):
        pytest.skip(f"{module} does not exist")
    assert not top_levels(loaded_by(f"import {module}")) & HEAVY


@pytest.mark.parametrize("module", WITHOUT_PATTERNS)
def test_a_hook_and_a_plain_line_import_no_patterns(module: str) -> None:
    """`re` and `json` are imported where a text needs them."""
    assert not loaded_by(f"import nudge.{module}") & PATTERNS


def test_what_is_loaded_is_seen() -> None:
    """A heavy module that is imported by another one is found too."""
    assert {"logging", "asyncio"} <= top_levels(loaded_by("import asyncio")) & HEAVY


def test_a_server_loads_mcp_when_somebody_speaks_it() -> None:
    """A command or a hook that starts a server waits for its start; the SDK alone would make that four times as
    long."""
    statement = "import nudge.server.primary, sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "pydantic" in run.stdout.split()
    assert not {"aiohttp", "mcp", "mcp_types", "starlette", "uvicorn"} & set(run.stdout.split())
