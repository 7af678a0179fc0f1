"""The verbs that move notes in bulk: `nudge note` with export, import, sync and mine."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import click

from nudge.cli import output, params, plain
from nudge.cli.app import verb
from nudge.cli.documents import (
    Source,
    call_from_here,
    export_document,
    import_document,
    note_left_out,
    open_output,
    output_option,
)
from nudge.cli.output import EXIT_OK, Styler, Usage
from nudge.cli.params import dry_run_option, namespace_option, note_fields, option
from nudge.cli.plain import Invocation
from nudge.cli.prompts import progress, waiting
from nudge.cli.verbs import NOTES
from nudge.core import limits, paths
from nudge.core.errors import Invalid
from nudge.core.text import escape

FORMATS = ("claude", "chatgpt", "slack")
_OUTCOMES = ("created", "updated", "unchanged", "expired", "forgotten", "conflicts", "refused", "links", "invalid")
_ERRORS_SHOWN = 10

_target_namespace_option = params.namespace_option(
    "Repo of notes that name none (default: global); . is the one you are in."
)


@verb(
    "note export",
    "nudge note export > notes.json",
    "nudge note export -o notes.json --repo .",
    group=NOTES,
    summary="write notes and links as JSON",
    operations=("nudge.memory_export",),
)
@output_option
@namespace_option()
def export_notes(invocation: Invocation, target: str | None, namespace: str | None) -> int:
    """Prints one JSON document with all notes, their links and metadata, that `nudge note import` reads."""
    console, to_file = invocation.console, target not in (None, "-")
    with waiting(console, "exporting notes, seconds"):
        document = export_document(invocation, "nudge.memory_export", note_fields(namespace))
    if target is not None and to_file:
        with open_output(target) as write:
            write(output.encode_json(document, indent=2) + "\n")
        notes = output.count(len(document["memories"]), "note")
        links = output.count(len(document["links"]), "link")
        console.result(document, [console.styler.done(f"exported {notes} and {links} to {escape(target)}")])
    else:
        console.show([output.encode_json(document, indent=None if console.as_json else 2)])
    note_left_out(invocation, namespace)
    return EXIT_OK


@verb(
    "note import",
    "nudge note import notes.json",
    "nudge note import notes.json --dry-run",
    "nudge note import < notes.json",
    group=NOTES,
    summary="read notes and links from JSON",
    operations=("nudge.memory_import",),
)
@click.argument(
    "file",
    metavar="[FILE]",
    required=False,
    type=click.Path(),
    help="A file that nudge note export wrote (default: stdin).",
)
@_target_namespace_option
@dry_run_option
def import_notes(invocation: Invocation, file: str | None, namespace: str | None, dry_run: bool) -> int:
    """The newer of two versions of a note is kept, so a second import changes nothing. Valid notes are stored all or
    none; a note that is not valid or holds a credential is left out. Prints the counts, and each note that was left out
    with the reason."""
    if file is None and (sys.stdin is None or sys.stdin.closed or sys.stdin.isatty()):
        raise Usage("missing FILE")
    source = Source(file or "-", "nudge note export")
    fields = {"dry_run": dry_run, **note_fields(namespace)}
    parse = partial(_parse_notes, source.name)
    result = import_document(invocation, "nudge.memory_import", source, fields, parse)
    invocation.console.result(result, _note_import_lines(invocation.console.styler, result, dry_run=dry_run))
    return EXIT_OK


def _parse_notes(name: str, document: Any) -> dict[str, Any] | None:
    """Return a document as parameters; None for more notes than a call takes. Raises Invalid for JSON that is no export
    of notes."""
    if not isinstance(document, dict) or "memories" not in document:
        has_hints = isinstance(document, dict) and ("components" in document or "payload" in document)
        advice = (
            "it has hints, read it with: nudge import" if has_hints else "it must be the output of nudge note export"
        )
        raise Invalid(f"{name} has no list `memories`; {advice}")
    for rows in ("memories", "links"):
        listed = document.get(rows, [])
        if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
            raise Invalid(f"{rows} must be a list of objects; the file must be the output of nudge note export")
    return document if len(document["memories"]) <= limits.MAX_BULK_NOTES else None


def _note_import_lines(styler: Styler, result: Mapping[str, Any], *, dry_run: bool) -> Iterator[str]:
    counts = _note_counts(result)
    imported = output.count(result["imported"], "note")
    yield (
        f"nothing was stored (--dry-run); it would be: {counts}"
        if dry_run
        else styler.done(f"imported {imported}: {counts}")
    )
    errors = result["errors"]
    for error in errors[:_ERRORS_SHOWN]:
        where = f"note {error['index'] + 1}" if "index" in error else f"link {error['link'] + 1}"
        yield f"  {where}: {escape(error['error'])}"
    if len(errors) > _ERRORS_SHOWN:
        yield f"  and {len(errors) - _ERRORS_SHOWN} more"


def _note_counts(result: Mapping[str, Any]) -> str:
    return ", ".join(f"{result[name]:,} {name}" for name in _OUTCOMES if result.get(name)) or "nothing new"


@verb(
    "note sync",
    "nudge note sync ~/backup/nudge.db --dry-run",
    "nudge note sync /media/stick/nudge.db --direction push",
    group=NOTES,
    summary="exchange notes with another database",
    operations=("nudge.memory_sync",),
)
@click.argument("file", metavar="FILE", type=click.Path(), help="The other database: a nudge.db file.")
@option(
    "--direction",
    type=click.Choice(["pull", "push", "merge"]),
    help="pull: copy notes from FILE; push: copy notes to FILE; merge: both (default: merge).",
)
@dry_run_option
def sync_notes(invocation: Invocation, file: str, direction: str | None, dry_run: bool) -> int:
    """The newer of two versions of a note is kept. Deletions are not copied. No server may have FILE open. Prints what
    was pulled and pushed."""
    is_push = direction == "push"  # it creates the file
    path = plain.absolute_path(file) if is_push else plain.existing_path(file, "name a nudge.db file")
    fields = {"path": path, "dry_run": dry_run, **params.drop_none(direction=direction)}
    console = invocation.console
    with waiting(console, "syncing notes, seconds"):
        result = invocation.call("nudge.memory_sync", fields)
    lines = [f"{word}: {_note_counts(result[word])}" for word in ("pulled", "pushed") if result[word] is not None]
    console.result(result, lines if dry_run else map(console.styler.done, lines))
    if not console.as_json:
        for error in result.get("errors", ()):  # an older server names none
            console.note(escape(f"left out of {error['from']}: {_row_name(error)}: {error['error']}"))
        if dry_run:
            console.note("nothing was changed (--dry-run)")
    return EXIT_OK


def _row_name(error: Mapping[str, Any]) -> str:
    return f"m{error['id']}" if "id" in error else f"a link of m{error['link']}"


@verb(
    "note mine",
    "nudge note mine --format claude conversations.json",
    "nudge note mine --format slack ~/Downloads/slack-export --repo team",
    "nudge note mine --format chatgpt export/ --dry-run",
    group=NOTES,
    summary="make notes from exported chats",
    operations=("nudge.memory_import",),
)
@click.argument(
    "path", metavar="PATH", type=click.Path(), help="The exported file, or the directory it was unpacked to."
)
@option("--format", "form", type=click.Choice(FORMATS), required=True, help="The program that wrote the export.")
@_target_namespace_option
@dry_run_option
def mine_notes(invocation: Invocation, path: str, form: str, namespace: str | None, dry_run: bool) -> int:
    """Each conversation becomes a note; in Slack, each day of a channel. The same export can be mined again: no note is
    made twice. Prints the number of conversations and notes."""
    from nudge.notes.chat_import import mine_export

    console, source = invocation.console, plain.existing_path(path, f"name an export of {form}")
    with progress(console, "mining notes", None) as advance:
        result = mine_export(
            call_from_here(invocation),
            paths.runtime_dir(),
            form,
            source,
            namespace=namespace,
            dry_run=dry_run,
            progress=advance,
        )
    console.result(result, _mine_lines(console.styler, result, dry_run=dry_run))
    return EXIT_OK


def _mine_lines(styler: Styler, result: Mapping[str, Any], *, dry_run: bool) -> Iterator[str]:
    skipped = [f"{result[name]:,} {name}" for name in ("empty", "bad") if result[name]]
    left_out = f" (left out: {', '.join(skipped)})" if skipped else ""
    yield f"{output.count(result['conversations'], 'conversation')}{left_out}"
    yield from _note_import_lines(styler, result, dry_run=dry_run)
