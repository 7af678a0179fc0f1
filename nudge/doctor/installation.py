"""Checks of the installation: the program itself (its version and the server's, the one on PATH, its Python and SQLite)
and the agent clients' settings (how they start it, and which other memory tools they have)."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from nudge import __version__
from nudge.clients import claude_code, config_files, executable, plan, registry
from nudge.clients.client import AgentClient, Home
from nudge.clients.config_files import HOOK_ENTRY, OUR_NAMES, ConfigEntry, is_our_plugin
from nudge.clients.executable import HOOK_SCRIPT, Executable
from nudge.doctor.model import Finding, Snapshot, edit_command, fail, ok, warn
from nudge.process.endpoint import is_newer

_PROGRAM = "nudge"
_DISTRIBUTION = "nudge-mcp"
_INSTALL = f"uv tool install {_DISTRIBUTION}"

_MEMORY_TOOLS = r"claude-mem|mem0|basic-memory|memento|openmemory|letta|zep|serena|byterover|server-memory"
_TOOL_IN_COMMAND = re.compile(rf"(?<![a-z0-9])(?:{_MEMORY_TOOLS})(?![a-z0-9])", re.IGNORECASE)
# `memory` counts in a name only: in a command it may be a limit.
_TOOL_IN_NAME = re.compile(rf"(?<![a-z0-9])(?:{_MEMORY_TOOLS}|memory)(?![a-z0-9])", re.IGNORECASE)
_HOOK_SCRIPT = re.compile(rf"""['"]?(.*[/\\]{HOOK_SCRIPT})(?=['"\s]|$)""")  # in the command line of a hook

# The program


def check_versions(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.status is None:
        yield ok("versions", f"this is {__version__}; no server answers")
        return
    running = str(snapshot.status.get("version"))
    others = sorted({str(member.get("version")) for member in snapshot.status.get("members") or ()} - {running})
    if is_newer(__version__, running):
        yield warn("versions", f"the server is {running}, this is {__version__}", "nudge stop --force")
    elif is_newer(running, __version__):
        yield warn(
            "versions", f"the server is {running}, this is still {__version__}", f"uv tool upgrade {_DISTRIBUTION}"
        )
    else:
        beside = f"; clients have also started {', '.join(others)}, which works" if others else ""
        yield ok("versions", f"server and command are both {__version__}{beside}")


def check_programs(snapshot: Snapshot) -> Iterator[Finding]:
    programs = _programs(snapshot.environ)
    if not programs:
        message = "no nudge on PATH: clients that are configured to start it cannot find it"
        yield warn("installation", message, _add_to_path(sys.executable))
    elif len(programs) > 1:
        message = f"several on PATH, the first is used: {', '.join(programs)}"
        yield warn("installation", message, _uninstall(programs[1]))
    else:
        yield ok("installation", programs[0])


def _add_to_path(python: str) -> str:
    """The command that adds this installation to PATH; the one that installs it, when there is no script beside
    Python."""
    folder = os.path.dirname(python)
    return f'export PATH={quote(folder)}:"$PATH"' if os.path.exists(os.path.join(folder, _PROGRAM)) else _INSTALL


def _programs(environ: Mapping[str, str]) -> list[str]:
    """Every `nudge` on PATH in search order, each file once."""
    programs: dict[str, str] = {}
    for folder in environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, _PROGRAM)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            programs.setdefault(os.path.realpath(path), path)
    return list(programs.values())


def _uninstall(program: str) -> str:
    """The command that uninstalls a program, by the tool that its path or the first line of its script names."""
    real = os.path.realpath(program)
    if f"{os.sep}uv{os.sep}tools{os.sep}" in real:
        return f"uv tool uninstall {_DISTRIBUTION}"
    if f"{os.sep}pipx{os.sep}" in real:
        return f"pipx uninstall {_DISTRIBUTION}"
    interpreter = _first_line(real).removeprefix("#!").strip()
    if os.path.isabs(interpreter) and "python" in os.path.basename(interpreter):
        return f"{quote(interpreter)} -m pip uninstall {_DISTRIBUTION}"
    return f"rm {quote(program)}"


def _first_line(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.readline(1_024).decode("utf-8", "replace")
    except OSError:
        return ""


def check_python(snapshot: Snapshot) -> Iterator[Finding]:
    del snapshot
    yield ok("python", f"{sys.version.split()[0]} ({sys.executable})")


def check_sqlite(snapshot: Snapshot) -> Iterator[Finding]:
    """Hints do not need it; history does."""
    del snapshot
    try:
        import sqlite3
    except ImportError:
        yield warn("sqlite", "this Python has no SQLite; hints do not need it, history does", "uv python install 3.12")
        return
    if _has_full_text_search():
        yield ok("sqlite", f"{sqlite3.sqlite_version} with FTS5")
    else:
        yield warn(
            "sqlite",
            f"{sqlite3.sqlite_version} lacks FTS5; hints do not need it, history does",
            "uv python install 3.12",
        )


def _has_full_text_search() -> bool:
    import sqlite3

    database = sqlite3.connect(":memory:")
    try:
        database.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
    except sqlite3.Error:
        return False
    finally:
        database.close()
    return True


def check_environment(snapshot: Snapshot) -> Iterator[Finding]:
    warnings = list(_slow_starts(snapshot.environ))
    yield from warnings or [ok("environment", "nothing in it slows a start")]


def _slow_starts(environ: Mapping[str, str]) -> Iterator[Finding]:
    if environ.get("PYTHONDONTWRITEBYTECODE"):
        message = "PYTHONDONTWRITEBYTECODE is set: every start compiles the program again"
        yield warn("environment", message, "unset PYTHONDONTWRITEBYTECODE")
    programs = _programs(environ)
    if programs and executable.is_shim(programs[0]) and _is_of_pyenv(programs[0]):
        yield warn("environment", f"{programs[0]} is a pyenv shim, which adds about 100 ms to every start", _INSTALL)


def _is_of_pyenv(program: str) -> bool:
    """pyenv writes a shell script in place of the program."""
    try:
        with open(program, "rb") as file:
            return b"pyenv" in file.read(1_024)
    except OSError:
        return False


# The agent clients' settings


def check_memory_tools(snapshot: Snapshot) -> Iterator[Finding]:
    others = [
        (client, entry, tool) for client, entry in _entries(snapshot) if (tool := _memory_tool(entry)) is not None
    ]
    for client, entry, tool in others:
        name = f"{entry.kind} {entry.name} ({tool})" if tool != entry.name else f"{entry.kind} {tool}"
        message = (
            f"{client.title} also has the {name}, which looks like a memory tool; with two, text is injected twice"
        )
        yield warn("memory tools", f"{message} ({entry.file})", _remove_command(entry))
    if not others:
        yield ok("memory tools", "no other memory tool in the clients' settings")


def check_connections(snapshot: Snapshot) -> Iterator[Finding]:
    """A client starts one server for each name: the same name in two places is one server, two names are two."""
    is_connected = False
    for client in registry.all_clients():
        entries = list(_client_entries(snapshot, client))
        servers = {entry.name: entry for entry in entries if entry.kind != HOOK_ENTRY and _is_nudge(entry)}
        has_hooks = bool(_hook_scripts(snapshot, client, entries)) or any(map(_is_our_hook, entries))
        if servers or has_hooks:
            is_connected = True
            yield _connection(client, servers, has_hooks)
            yield from _missing_hooks(client, entries) if servers else ()
    if not is_connected:
        yield ok("wiring", "no client here starts it yet; for Claude Code: nudge connect claude-code")


def _connection(client: AgentClient, servers: Mapping[str, ConfigEntry], has_hooks: bool) -> Finding:
    if not servers:
        message = f"{client.title} has the hooks of Nudge, but not its MCP server: its agents have no tools of Nudge"
        return warn("wiring", message, f"nudge connect {client.name}")
    if len(servers) > 1:
        *_, last = servers.values()
        message = f"{client.title} starts Nudge more than once: {', '.join(servers)} ({last.file})"
        return warn("wiring", message, _remove_command(last))
    is_without = bool(client.connected_events) and not has_hooks and not any(map(is_our_plugin, servers.values()))
    without = ", without hooks: its sessions are not recorded" if is_without else ""
    return ok("wiring", f"{client.title} starts it as {next(iter(servers))}{without}")


def _missing_hooks(client: AgentClient, entries: Sequence[ConfigEntry]) -> Iterator[Finding]:
    """The events for which a client with our hooks has none: an older version connected it, or somebody removed it."""
    present = {entry.name for entry in entries if _is_our_hook(entry)}
    missing = [event for event in client.connected_events if event not in present]
    if present and missing and not any(map(is_our_plugin, entries)):
        message = (
            f"{client.title} runs no hook of Nudge for {', '.join(missing)}: nothing of that is recorded or answered"
        )
        yield warn("hooks", message, f"nudge connect {client.name}")


def check_hook_script(snapshot: Snapshot) -> Iterator[Finding]:
    """Hooks run a script of ours. Without it nothing is recorded, and some clients report no error."""
    scripts: dict[str, list[AgentClient]] = {}
    for client in registry.all_clients():
        for path in _hook_scripts(snapshot, client, list(_client_entries(snapshot, client))):
            scripts.setdefault(path, []).append(client)
    for path, clients in scripts.items():
        titles = " and ".join(client.title for client in clients)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            yield ok("hooks", f"{titles}: run {path}")
            continue
        problem = "cannot be run" if os.path.lexists(path) else "does not exist"
        message = f"{path}, which hooks of {titles} run, {problem}: nothing is recorded"
        is_current = path == executable.hook_script_path(snapshot.environ)
        yield fail("hooks", message, _hook_fix(snapshot, clients), _install_script if is_current else None)


def check_status_line(snapshot: Snapshot) -> Iterator[Finding]:
    """Says nothing where none is set, or another program's."""
    command = claude_code.CLIENT.status_line(Home(snapshot.home, snapshot.environ))
    if command is None or not executable.is_our_status_line(command):
        return
    script = shlex.split(command)[0]
    is_there = shutil.which(script, path=snapshot.environ.get("PATH")) is not None
    if is_there:
        yield ok("status line", f"Claude Code shows that of Nudge ({script})")
    else:
        message = f"Claude Code's status line runs {script}, which cannot be run: it stays empty"
        is_current = script == executable.hook_script_path(snapshot.environ)
        fix = "nudge connect claude-code --statusline"
        yield fail("status line", message, fix, _install_script if is_current else None)


def _hook_fix(snapshot: Snapshot, clients: Sequence[AgentClient]) -> str:
    """Return the commands that repair the hooks of all these clients. Beside our plugin, which has hooks of its own,
    `nudge connect` changes nothing: there the hooks in the settings are removed."""
    commands = []
    for client in clients:
        has_plugin = any(map(is_our_plugin, _client_entries(snapshot, client)))
        commands.append(f"nudge {'disconnect' if has_plugin else 'connect'} {client.name}")
    return "; ".join(commands)


def _hook_scripts(snapshot: Snapshot, client: AgentClient, entries: Sequence[ConfigEntry]) -> set[str]:
    """Return the scripts that the hooks of a client run. The plugin file of OpenCode has no entries, and runs that of
    this installation."""
    hooks = [entry for entry in entries if entry.kind == HOOK_ENTRY]
    named = {match.group(1) for entry in hooks if (match := _HOOK_SCRIPT.match(entry.command)) is not None}
    if named or hooks:
        return named
    files = client.config_files(Home(snapshot.home, snapshot.environ), Executable(_PROGRAM))
    is_connected = config_files.HOOKS in plan.connected_parts(files)
    return {executable.hook_script_path(snapshot.environ)} if is_connected else set()


def _is_our_hook(entry: ConfigEntry) -> bool:
    return entry.kind == HOOK_ENTRY and executable.is_our_hook(entry.command)


def _install_script() -> str:
    executable.install_hook_script(executable.find())
    return f"wrote {executable.hook_script_path()}"


def _entries(snapshot: Snapshot) -> Iterator[tuple[AgentClient, ConfigEntry]]:
    for client in registry.all_clients():
        yield from ((client, entry) for entry in _client_entries(snapshot, client))


def _client_entries(snapshot: Snapshot, client: AgentClient) -> Iterator[ConfigEntry]:
    return client.entries(Home(snapshot.home, snapshot.environ), snapshot.cwd)


def _remove_command(entry: ConfigEntry) -> str:
    return entry.remove or edit_command(entry.file)


def _memory_tool(entry: ConfigEntry) -> str | None:
    """The name of the memory tool that an entry starts, or None. Only the name is shown: the command may hold a
    credential."""
    if _is_nudge(entry):
        return None
    in_name = None if entry.kind == HOOK_ENTRY else _TOOL_IN_NAME.search(entry.name)
    match = in_name or _TOOL_IN_COMMAND.search(entry.command)
    return match.group() if match else None


def _is_nudge(entry: ConfigEntry) -> bool:
    words = [os.path.basename(word) for word in entry.command.split()]
    return is_our_plugin(entry) or any(word in (*OUR_NAMES, HOOK_SCRIPT) for word in words)
