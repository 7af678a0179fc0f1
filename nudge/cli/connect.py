"""The verbs that connect clients: connect, disconnect, record, which their hooks run, and backfill, which records
earlier sessions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from nudge.cli import app, output, params, plain
from nudge.cli.app import verb
from nudge.cli.output import EXIT_INTERRUPTED, EXIT_OK, EXIT_REFUSED, Console, Styler, Usage
from nudge.cli.params import TIME, option
from nudge.cli.plain import Invocation
from nudge.cli.prompts import ask, progress, yes_option
from nudge.cli.render import table
from nudge.cli.verbs import HISTORY, SERVER
from nudge.clients import claude_code, config_files, executable, plan, registry
from nudge.clients.client import NAME, AgentClient, Home
from nudge.clients.config_files import ConfigEntry, ConfigFile, JsonFile, is_our_plugin
from nudge.clients.executable import Executable, is_our_status_line
from nudge.clients.plan import ConnectedFiles, FileChange
from nudge.core import paths
from nudge.core.clock import ago
from nudge.core.context import Context
from nudge.core.errors import Invalid, NotFound, NudgeError, StorageFailed
from nudge.core.text import escape, format_size
from nudge.settings import config
from nudge.settings import switches as switch

if TYPE_CHECKING:
    from nudge.process import owned_files

_SESSIONS_READ = 50
_STATUSLINE = "nudge connect claude-code --statusline"
_SCAN = ("scan", "set hints from the manifests of the repo you are in")
_BACKFILL = ("backfill", "record past sessions from Claude Code transcripts")
_client_argument = click.argument(
    "name",
    metavar="[CLIENT]",
    required=False,
    type=click.Choice(registry.names()),
    help="One of " + ", ".join(registry.names()) + ".",
)


# connect


@verb(
    "connect",
    "nudge connect",
    "nudge connect claude-code",
    "nudge connect claude-code --statusline",
    "nudge connect codex --yes",
    "nudge connect cursor --print",
    group=SERVER,
    summary="connect an agent to Nudge: MCP server and hooks",
)
@_client_argument
@option(
    "--print", "print_only", is_flag=True, help="Print what to add to which file, and change no file of the client."
)
@option("--statusline", is_flag=True, help="Claude Code: also show what was told and used, if it has no status line.")
@yes_option
def connect(invocation: Invocation, name: str | None, print_only: bool, statusline: bool, yes: bool) -> int:
    """Prints the change to the files of the client, and asks for confirmation. Without CLIENT, lists the clients
    that it can connect and any others it finds, and what is connected."""
    if name is None:
        return _list_clients(invocation)
    client = registry.get(name)
    if statusline and client is not claude_code.CLIENT:
        raise Usage(f"{client.title} has no status line that can be set", f"leave out --statusline, or: {_STATUSLINE}")
    if print_only:
        return _print_configuration(invocation.console, client, with_status_line=statusline)
    if client.by_hand:
        raise Usage(f"{client.title} must be connected by hand", f"see how with: nudge connect {client.name} --print")
    return _connect(invocation.console, client, with_status_line=statusline, yes=yes)


def _connect(console: Console, client: AgentClient, *, with_status_line: bool, yes: bool) -> int:
    program, connected_files = executable.find(), ConnectedFiles()
    plugin = _our_plugin(client)
    files = _files_to_connect(client, program, with_status_line=with_status_line, beside_plugin=plugin is not None)
    changes = plan.connect(client, program, connected_files, files=files)
    result = {"client": client.name, "changed": [change.path for change in changes], "executable": program.path}
    if with_status_line and not console.as_json:
        _note_other_status_line(console)
    if not changes and plugin is not None:
        result["plugin"] = plugin.name
        console.result(result, _plugin_lines(console.styler, client, plugin))
        return EXIT_OK
    if not changes:
        _install_guard(client, program)
        console.result(result, [console.styler.done(f"{client.title} is already connected")])
        return EXIT_OK
    _show_changes(console, changes)
    if not ask(f"Connect {client.title} like this?", yes=yes):
        console.note("nothing was changed")
        return EXIT_REFUSED
    _install_guard(client, program)
    plan.apply(changes, connected_files)
    console.result(result, _connected_lines(console.styler, client, changes))
    return EXIT_OK if yes or console.as_json else _offer_next(client)


def _files_to_connect(
    client: AgentClient, program: Executable, *, with_status_line: bool, beside_plugin: bool
) -> list[ConfigFile]:
    """The files with what is to be added to each. Our plugin brings the server and the hooks, but cannot set a status
    line."""
    files = client.config_files(Home(), program)
    lines = [file for file in files if isinstance(file, JsonFile) and file.status_line and with_status_line]
    if beside_plugin:
        return [replace(file, server={}, handlers={}, adds_status_line=True) for file in lines]
    return [replace(file, adds_status_line=True) if file in lines else file for file in files]


def _note_other_status_line(console: Console) -> None:
    command = claude_code.CLIENT.status_line(Home())
    if command is not None and not is_our_status_line(command):
        console.note("Claude Code has a status line, which stays as it is; add to it what nudge statusline prints")


def _install_guard(client: AgentClient, program: Executable, *, printed: bool = False) -> None:
    """Write the script that hooks run, before any hook can run it; also when the user writes the hooks, or deleted
    it."""
    if client.connected_events:
        executable.install_hook_script(program, printed=printed)


def _our_plugin(client: AgentClient) -> ConfigEntry | None:
    return next(filter(is_our_plugin, client.entries(Home(), os.getcwd())), None)


def _plugin_lines(styler: Styler, client: AgentClient, plugin: ConfigEntry) -> Iterator[str]:
    """Yield why nothing is added beside our plugin: a second set of hooks would record every event twice."""
    name = escape(plugin.name)
    yield styler.done(f"{client.title} is already connected by the plugin {name}; nothing was changed")
    if plan.connected_parts(client.config_files(Home(), Executable(NAME))) - {config_files.STATUS_LINE}:
        yield f"it is also connected by its settings; fix: nudge disconnect {client.name}"
    else:
        yield f"to connect it by its settings instead: {escape(plugin.remove)}; nudge connect {client.name}"


def _show_changes(console: Console, changes: Sequence[FileChange]) -> None:
    """Print the changes as diffs; with --json nothing, since only the result is printed."""
    if not console.as_json:
        console.show(line for change in changes for line in _change_lines(console.styler, change))


def _change_lines(styler: Styler, change: FileChange) -> Iterator[str]:
    for line in plan.shown_diff(change):
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        shown = escape(line, keep_lines=True)
        yield styler.paint(style, shown) if style else shown
    for command in change.commands:
        yield f"by running: {escape(' '.join(command))}"


def _connected_lines(styler: Styler, client: AgentClient, changes: Sequence[FileChange]) -> Iterator[str]:
    for change in changes:
        path = escape(config_files.display_path(change.path))
        yield styler.done(f"{client.title}: {_parts(change, change.after)} in {path}")
    if client.advice:
        yield f"  {client.advice}"
    yield "next:"
    yield from (f"  nudge {name:<9} {meaning}" for name, meaning in _next_commands(client))


def _parts(change: FileChange, text: str | None) -> str:
    """The parts of Nudge in a text of the file."""
    found = change.file.find(text or "")
    return " and ".join(part for part in config_files.PARTS if part in found)


def _next_commands(client: AgentClient) -> tuple[tuple[str, str], ...]:
    """Return the commands that a new user of a client needs next, and what they do. Only Claude Code keeps transcripts
    that can be read."""
    return (_SCAN, _BACKFILL) if client is claude_code.CLIENT else (_SCAN,)


def _offer_next(client: AgentClient) -> int:
    """Ask whether to run the commands that a new user needs next."""
    for name, _ in _next_commands(client):
        if ask(f"Run nudge {name} now?", yes=False):
            app.main([name])
    return EXIT_OK


def _print_configuration(console: Console, client: AgentClient, *, with_status_line: bool) -> int:
    program = executable.find()
    files = _files_to_connect(client, program, with_status_line=with_status_line, beside_plugin=False)
    _install_guard(client, program, printed=True)
    snippets = {config_files.display_path(file.path): config_files.snippet(file) for file in files}
    console.result({"client": client.name, "files": snippets}, _snippet_lines(snippets))
    if len(snippets) == 1 and not console.as_json:
        console.note(f"add it to {escape(next(iter(snippets)))}, beside what is there")
    return EXIT_OK


def _snippet_lines(snippets: Mapping[str, str]) -> Iterator[str]:
    """Yield the snippets, with headings only when there are several: a single one can be redirected into a file."""
    for number, (path, text) in enumerate(snippets.items()):
        if len(snippets) > 1:
            yield f"{'' if number == 0 else chr(10)}{path}:"
        yield escape(text.rstrip("\n"), keep_lines=True)


# The list of clients


def _list_clients(invocation: Invocation) -> int:
    events = _last_events(invocation)
    rows = [
        row
        for client in registry.all_clients()
        if (row := _client_row(client, events))["installed"] or row["mcp"] or row["plugin"] or not client.by_hand
    ]
    console = invocation.console
    result = {"clients": rows, "server": events is not None}
    console.result(result, _client_table(console.styler, rows, has_server=events is not None))
    return EXIT_OK


def _client_row(client: AgentClient, events: Mapping[str, int] | None) -> dict[str, Any]:
    home = Home()
    files = client.config_files(home, Executable(NAME))
    parts = plan.connected_parts(files)
    has_hooks = any(config_files.HOOKS in file.parts for file in files)
    return {
        "client": client.name,
        "title": client.title,
        "installed": client.is_installed(home, files),
        "mcp": config_files.SERVER in parts,
        "hooks": config_files.HOOKS in parts if has_hooks else None,
        "plugin": None if (plugin := _our_plugin(client)) is None else plugin.name,
        "last_event_at": None if events is None else events.get(client.name),
    }


def _last_events(invocation: Invocation) -> dict[str, int] | None:
    """Return the time of the last event of each client; None when no server is running."""
    try:
        sessions = invocation.client().call("nudge.sessions", {"limit": _SESSIONS_READ}, start=False)
    except NudgeError:
        return None
    latest: dict[str, int] = {}
    for session in sessions if isinstance(sessions, list) else sessions.get("sessions", ()):
        when = session.get("last_event_at") or session.get("started_at") or 0
        latest[session.get("client")] = max(when, latest.get(session.get("client"), 0))
    return latest


def _client_table(styler: Styler, rows: Sequence[Mapping[str, Any]], *, has_server: bool) -> Iterator[str]:
    heading = ("client", "found", "MCP", "hooks", "last event")
    yield from table(styler, (_client_cells(row, has_server) for row in rows), heading=heading)
    if not all(row["mcp"] or row["plugin"] for row in rows if row["installed"]):
        yield "connect one with: nudge connect CLIENT"


def _client_cells(row: Mapping[str, Any], has_server: bool) -> tuple[str, ...]:
    when = row["last_event_at"]
    last = ago(time.time() - when) if when else "none" if has_server and row["hooks"] is not None else "-"
    hooks = "-" if row["hooks"] is None else _connected_by(row, "hooks")
    return row["client"], _yes_no(row["installed"]), _connected_by(row, "mcp"), hooks, last


def _connected_by(row: Mapping[str, Any], part: str) -> str:
    """Return whether a part is connected, and by what: the plugin of Claude Code brings the server and the hooks."""
    by = ["yes"] if row[part] else []
    return " + ".join([*by, *(["plugin"] if row["plugin"] else [])]) or "no"


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"


# disconnect


@verb(
    "disconnect",
    "nudge disconnect codex",
    "nudge disconnect --all",
    "nudge disconnect --all --delete-data",
    group=SERVER,
    summary="remove what nudge connect added",
)
@_client_argument
@option("--all", "everything", is_flag=True, help="Disconnect all clients.")
@option("--delete-data", is_flag=True, help="With --all: also delete hints, notes, history, settings and logs.")
@option("--yes", is_flag=True, help="With --delete-data: go ahead without asking for confirmation.")
def disconnect(invocation: Invocation, name: str | None, everything: bool, delete_data: bool, yes: bool) -> int:
    """Removes only what `nudge connect` added; the rest of the files stays as it is. Prints what was removed."""
    if delete_data and not everything:
        raise Usage("--delete-data needs --all", "try: nudge disconnect --all --delete-data")
    if everything == (name is not None):
        raise Usage("CLIENT and --all exclude each other" if everything else "missing CLIENT")
    console = invocation.console
    chosen = registry.all_clients() if name is None else (registry.get(name),)
    if delete_data:
        return _delete_everything(console, chosen, yes=yes)
    changes = _disconnect(console, chosen)
    kept = _remove_script()
    result = {"changed": [change.path for change in changes], **({} if kept is None else {"kept": [kept]})}
    console.result(result, _disconnected_lines(console.styler, changes, kept))
    return EXIT_OK


def _remove_script() -> str | None:
    """Remove the script that hooks run when no client runs it any more; return its path when it is kept, because a
    printed configuration may name it."""
    parts = plan.connected_parts(plan.files_of(registry.all_clients(), ConnectedFiles()))
    if not parts.isdisjoint((config_files.HOOKS, config_files.STATUS_LINE)):
        return None
    return executable.remove_hook_script()


def _disconnect(console: Console, chosen: Sequence[AgentClient]) -> list[FileChange]:
    connected_files = ConnectedFiles()
    files = plan.files_of(chosen, connected_files)
    changes = plan.disconnect(files, connected_files)
    _show_changes(console, changes)
    plan.apply(changes, connected_files)
    plan.drop_stale_records(files, connected_files)
    return changes


def _disconnected_lines(styler: Styler, changes: Sequence[FileChange], kept: str | None = None) -> Iterator[str]:
    for change in changes:
        parts, path = _parts(change, change.before), escape(config_files.display_path(change.path))
        yield styler.done(f"removed {path}" if change.after is None else f"removed {parts} from {path}")
    if not changes:
        yield styler.done("nothing was connected")
    if kept is not None:
        path = escape(config_files.display_path(kept))
        yield f"kept {path}: a configuration that nudge connect --print printed may run it"
        yield f"  if none does, delete it with: rm {escape(quote(kept))}"


def _delete_everything(console: Console, chosen: Sequence[AgentClient], *, yes: bool) -> int:
    from nudge.process import owned_files  # late: SQLite and the checks of rows take 0.1 s

    owned = owned_files.find()
    if not console.as_json:
        console.show(_inventory_lines(owned))
    if not ask("Disconnect every client, stop the server and delete all of this permanently?", yes=yes):
        console.note("nothing was changed")
        return EXIT_REFUSED
    changes = _disconnect(console, chosen)
    _check_nothing_is_connected()
    executable.remove_hook_script(also_printed=True)
    if owned_files.is_server_running():
        from nudge.cli.server import stop_server

        with redirect_stdout(StringIO()):
            stop_server(Console(as_json=False), Invocation().observer(), force=True, forget=True)
    owned = owned_files.find()  # again: the server wrote files when it stopped
    owned_files.delete(owned)
    deleted = [item.path for item in owned]
    summary = console.styler.done(f"deleted {output.count(len(deleted), 'path')}; nothing of Nudge is left")
    result = {"changed": [change.path for change in changes], "deleted": deleted}
    console.result(result, [*_disconnected_lines(console.styler, changes), summary])
    return EXIT_OK


def _check_nothing_is_connected() -> None:
    """Raise StorageFailed when a file may still be connected: the record of connected files is needed to disconnect
    it."""
    connected_files = ConnectedFiles()
    left = next(filter(os.path.lexists, connected_files.paths), None)
    if left is not None:
        raise StorageFailed(
            f"{config_files.display_path(left)} may still be connected; nothing was deleted; check it, then: "
            f"rm {quote(connected_files.path)}"
        )


def _inventory_lines(owned: Sequence[owned_files.OwnedFile]) -> Iterator[str]:
    sizes = [format_size(item.size) for item in owned]
    width = output.widest(sizes)
    for item, text in zip(owned, sizes, strict=True):
        yield f"{text.rjust(width)}  {escape(config_files.display_path(item.path))}"
    yield f"{format_size(sum(item.size for item in owned))} in total"


# record


@verb(
    "record",
    "nudge record < event.json",
    group=SERVER,
    summary="record one hook event from stdin",
    operations=("nudge.record",),
)
def record(invocation: Invocation) -> int:
    """The hooks of connected clients run this. Reads one JSON object from stdin; prints what the client expects."""
    if invocation.run_hook is None:
        raise Usage("record needs an event on stdin")
    return invocation.run_hook()


# backfill


@verb(
    "backfill",
    "nudge backfill",
    "nudge backfill --dry-run",
    "nudge backfill --since 2026-10-01 --repo api",
    group=HISTORY,
    summary="record past sessions from Claude Code transcripts",
    operations=("nudge.record_many",),
)
@click.argument(
    "directory",
    metavar="[DIR]",
    required=False,
    type=click.Path(file_okay=False),
    help="Directory of the transcripts (default: ~/.claude/projects, or projects in CLAUDE_CONFIG_DIR).",
)
@option("--dry-run", is_flag=True, help="Count the events by type, and record nothing.")
@option("--since", type=TIME, metavar="DATE", help="Only events since this date or time.")
@params.project_option("Only events of this repo.")
def backfill(
    invocation: Invocation, directory: str | None, dry_run: bool, since: int | None, project: str | None
) -> int:
    """Each event is recorded once, however often this runs. Prints how many events are new."""
    from nudge.history import transcripts

    console = invocation.console
    if directory is not None:
        root = plain.existing_path(directory, "name a directory of transcripts")
    else:
        root = plain.absolute_path(claude_code.CLIENT.transcripts(Home()))
    if not os.path.isdir(root):
        raise NotFound(f"there are no transcripts in {root}; name the directory with: nudge backfill DIR")
    only = transcripts.EventFilter(since=since, project=project, wanted=_recording_filter())
    state = transcripts.BackfillState(paths.runtime_dir(os.environ), config.database_file(os.environ))
    files = transcripts.find_new(root, state, only.since)
    work = transcripts.Backfill(files, only, state, None if dry_run else invocation.client().call)
    try:
        with progress(console, "reading transcripts", sum(file.size - file.offset for file in files)) as advance:
            result = work.run(advance)
    except KeyboardInterrupt:
        console.note("stopped; what was recorded stays, and the next run continues from here")
        return EXIT_INTERRUPTED
    except NudgeError:
        console.note("what was recorded stays, and the next run continues from here")
        raise
    console.result(result, _backfill_lines(console.styler, result, dry_run=dry_run))
    for path, reason in work.unreadable.items():
        console.note(f"skipped: {escape(f'{path}: {reason}')}")
    for reason, count in work.refusals.items():
        console.note(f"refused: {count:,} events: {escape(reason)}")
    return EXIT_OK


def _recording_filter() -> Callable[[Iterable[str], Context], bool]:
    """Return the filter of backfill: events of a project that is switched off, or about an ignored path, are not
    recorded. Raise Invalid when recording is off altogether."""
    from nudge.security.patterns import is_ignored  # late: it loads wcmatch

    directory = paths.runtime_dir(os.environ)
    if off := switch.why_off(os.environ, directory, Context()):
        raise Invalid(f"recording is off {off.where}; turn it on with: {off.fix}")
    switches, settings = switch.load(directory), config.load(os.environ)

    def is_wanted(touched: Iterable[str], context: Context) -> bool:
        ignored = bool(settings.ignore) and any(is_ignored(path, settings.ignore) for path in touched if path)
        return not ignored and not switches.covers(context)

    return is_wanted


def _backfill_lines(styler: Styler, result: dict[str, Any], *, dry_run: bool) -> Iterator[str]:
    if not result["files"]:
        yield "nothing new to read"
        return
    transcripts = output.count(result["files"], "transcript")
    if not dry_run:
        events = f"{result['new']:,} new of {result['events']:,} events"
        yield styler.done(f"{events} in {transcripts}, {result['seconds']:.1f} s")
        return
    width = output.widest(result["types"])
    yield from (f"{output.pad(name, width)}  {count:>9,}" for name, count in result["types"].items())
    yield f"nothing was recorded (--dry-run): {result['events']:,} events in {transcripts}"
