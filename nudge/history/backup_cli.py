"""The verbs that copy the database of history and notes, and put a copy in its place: backup and restore."""

from __future__ import annotations

from collections.abc import Mapping

import click

from nudge.cli import output, plain
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK, EXIT_REFUSED
from nudge.cli.plain import Invocation
from nudge.cli.prompts import ask, yes_option
from nudge.cli.verbs import HISTORY
from nudge.core import locks, paths
from nudge.core.text import escape, format_size


@verb(
    "backup",
    "nudge backup",
    "nudge backup ~/backups/nudge.db",
    group=HISTORY,
    summary="copy the history to a file",
    operations=("nudge.backup",),
)
@click.argument(
    "file",
    metavar="[FILE]",
    required=False,
    type=click.Path(),
    help="A new file (default: in the directory backups, beside the database).",
)
def backup(invocation: Invocation, file: str | None) -> int:
    """Works while the server is running. Prints the path and the size of the copy."""
    fields = {} if file is None else {"path": plain.absolute_path(file)}
    result = invocation.client().call("nudge.backup", fields)
    line = f"backed up to {escape(result['path'])} ({format_size(result['bytes'])})"
    invocation.console.result(result, [invocation.console.styler.done(line)])
    return EXIT_OK


@verb(
    "restore",
    "nudge restore ~/backups/nudge.db",
    "nudge restore nudge.db --yes",
    group=HISTORY,
    summary="replace the history with a backup",
)
@click.argument("file", metavar="FILE", type=click.Path(), help="A file that nudge backup wrote.")
@yes_option
def restore(invocation: Invocation, file: str, yes: bool) -> int:
    """Checks the backup and asks for confirmation. Then stops the server, keeps the present history in the directory
    backups, and prints where it is."""
    from nudge.process import owned_files

    console = invocation.console
    path = plain.existing_path(file, "name a file that nudge backup wrote")
    summary = _contents_text(owned_files.check_backup(path))
    if not ask(f"Replace the present history and notes with {summary}? The present one is kept.", yes=yes):
        console.note("nothing was changed")
        return EXIT_REFUSED
    stopped = _stop_server(invocation)
    restored = owned_files.restore_backup(path)
    about = {"kept": restored.kept, "stopped": stopped, "left_out": restored.left_out.rows}
    result = {"path": path, **restored.contents, **about}
    lines = [console.styler.done(f"restored {_contents_text(restored.contents)} from {escape(path)}")]
    lines += [f"  the previous history: {escape(str(result['kept']))}"] if result["kept"] else []
    lines += ["  the server was stopped; the next command starts one"] if stopped else []
    console.result(result, lines)
    for line in restored.left_out.lines():
        console.note(escape(line))
    return EXIT_OK


def _contents_text(contents: Mapping[str, int]) -> str:
    counts = {noun: output.count(contents[f"{noun}s"], noun) for noun in ("observation", "session", "note")}
    return f"{counts['observation']} of {counts['session']}, and {counts['note']}"


def _stop_server(invocation: Invocation) -> bool:
    """Stop the server if one is running, and return whether one was. A server inside a client refuses to stop, and the
    error says how to stop it."""
    if locks.is_free(paths.lock_file()):
        return False
    invocation.client().call("nudge.stop", {"force": False, "forget": False}, start=False)
    return True
