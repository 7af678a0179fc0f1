"""The verbs that move many notes: `nudge memory` with export, import, sync and mine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import click

from nudge import limits
from nudge.cli import completion, output, params, plain
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK, Pen, Usage
from nudge.cli.params import namespace_option, note_fields, option, resolve_namespace
from nudge.cli.plain import Invocation
from nudge.cli.prompts import progress, waiting
from nudge.cli.transfer import read_document, write_file
from nudge.errors import Invalid
from nudge.text import escape

FORMATS = ("claude", "chatgpt", "slack")
_OUTCOMES = ("created", "updated", "unchanged", "expired", "forgotten", "conflicts", "refused", "links")
_ERRORS_SHOWN = 10

_target_namespace_option = option(
    "--namespace",
    metavar="NAME",
    help="Namespace of notes that name none (global); . is the repo you are in.",
    shell_complete=completion.namespaces,
)
_dry_run_option = option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")


def _caller(invocation: Invocation) -> Callable[[str, Mapping[str, Any]], Any]:
    """The last page stores all of them, which may take long."""
    return partial(invocation.client().call, context=plain.context_params(), timeout=limits.LONG_CALL_TIMEOUT)


class _Meter:
    """Advances a progress bar by how far a running total has grown."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance, self._total = advance, 0

    def __call__(self, total: int) -> None:
        self._advance(total - self._total)
        self._total = total


@verb("memory export", "nudge memory export > notes.json", "nudge memory export -o notes.json --namespace .")
@option("-o", "--output", "target", metavar="FILE", help="Write this file, readable by you alone (- is stdout).")
@namespace_option
def export(invocation: Invocation, target: str | None, namespace: str | None) -> int:
    """All notes with their links and metadata; `nudge memory import` reads them."""
    document: dict[str, Any] = {"memories": [], "links": []}
    fields, after = note_fields(namespace), 0
    console, to_file = invocation.console, target not in (None, "-")
    with progress(console, "exporting notes", None if to_file or not console.is_terminal else 0) as advance:
        while after is not None:
            page = invocation.call("nudge.memory_export", {**fields, "after": after})
            document["exported_at"], after = page["exported_at"], page["next"]
            for name in ("memories", "links"):
                document[name] += page[name]
            advance(len(page["memories"]))
    if target is not None and to_file:
        write_file(target, output.encode_json(document, indent=2) + "\n")
        notes = output.count(len(document["memories"]), "note")
        links = output.count(len(document["links"]), "link")
        console.result(document, [console.pen.done(f"exported {notes} and {links} to {escape(target)}")])
    else:
        console.show([output.encode_json(document, indent=None if console.as_json else 2)])
    return EXIT_OK


@verb(
    "memory import",
    "nudge memory import notes.json",
    "nudge memory import notes.json --dry-run",
    "nudge memory import < notes.json",
)
@click.argument(
    "file", metavar="[FILE]", required=False, type=click.Path(), help="Output of nudge memory export (stdin)."
)
@_target_namespace_option
@_dry_run_option
def import_notes(invocation: Invocation, file: str | None, namespace: str | None, dry_run: bool) -> int:
    """The newer version of a note stays, and a second import changes nothing. All are stored or none; those that are
    not valid, or hold a credential, are named and left out."""
    from nudge.usecases.note_import import send_notes

    if file is None and (sys.stdin is None or sys.stdin.closed or sys.stdin.isatty()):
        raise Usage("missing FILE")
    document = read_document(file or "-", "nudge memory export")
    memories, links = _rows(document, "memories"), _rows(document, "links")
    fields = {"dry_run": dry_run, **params.drop_none(namespace=resolve_namespace(namespace))}
    with progress(invocation.console, "importing notes", len(memories)) as advance:
        result = send_notes(_caller(invocation), memories, links, fields, _Meter(advance))
    invocation.console.result(result, _import_lines(invocation.console.pen, result, dry_run=dry_run))
    return EXIT_OK


def _rows(document: Any, name: str) -> list[dict[str, Any]]:
    rows = document.get(name, []) if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Invalid(f"{name} must be a list of objects; the file must be the output of nudge memory export")
    return rows


def _import_lines(pen: Pen, result: Mapping[str, Any], *, dry_run: bool) -> Iterator[str]:
    counts = _counts(result)
    imported = output.count(result["imported"], "note")
    yield (
        f"nothing was stored (--dry-run); it would be: {counts}"
        if dry_run
        else pen.done(f"imported {imported}: {counts}")
    )
    errors = result["errors"]
    for error in errors[:_ERRORS_SHOWN]:
        where = f"note {error['index'] + 1}" if "index" in error else f"link {error['link'] + 1}"
        yield f"  {where}: {escape(error['error'])}"
    if len(errors) > _ERRORS_SHOWN:
        yield f"  and {len(errors) - _ERRORS_SHOWN} more"


def _counts(result: Mapping[str, Any]) -> str:
    return ", ".join(f"{result[name]:,} {name}" for name in _OUTCOMES if result.get(name)) or "nothing new"


@verb(
    "memory sync",
    "nudge memory sync ~/backup/nudge.db --dry-run",
    "nudge memory sync /media/stick/nudge.db --direction push",
)
@click.argument("file", metavar="FILE", type=click.Path(), help="The other database, a nudge.db.")
@option(
    "--direction",
    type=click.Choice(["pull", "push", "merge"]),
    help="pull: take theirs; push: give ours; merge: both (merge).",
)
@_dry_run_option
def sync(invocation: Invocation, file: str, direction: str | None, dry_run: bool) -> int:
    """Of two versions of a note the newer stays. Deletions do not travel. No server may have the other file open."""
    fields = {"path": plain.absolute_path(file), "dry_run": dry_run, **params.drop_none(direction=direction)}
    console = invocation.console
    with waiting(console, "syncing notes, seconds"):
        result = invocation.call("nudge.memory_sync", fields, timeout=limits.LONG_CALL_TIMEOUT)
    lines = [f"{word}: {_counts(result[word])}" for word in ("pulled", "pushed") if result[word] is not None]
    console.result(result, lines if dry_run else map(console.pen.done, lines))
    if dry_run and not console.as_json:
        console.note("nothing was changed (--dry-run)")
    return EXIT_OK


@verb(
    "memory mine",
    "nudge memory mine --format claude conversations.json",
    "nudge memory mine --format slack ~/Downloads/slack-export --namespace team",
    "nudge memory mine --format chatgpt export/ --dry-run",
)
@click.argument("path", metavar="PATH", type=click.Path(), help="The exported file, or the folder it was unpacked to.")
@option("--format", "form", type=click.Choice(FORMATS), required=True, help="The program that wrote the export.")
@_target_namespace_option
@_dry_run_option
def mine(invocation: Invocation, path: str, form: str, namespace: str | None, dry_run: bool) -> int:
    """A conversation becomes a note, a day of a Slack channel one. The same export makes no note twice."""
    from nudge.usecases.note_import import mine_export

    console = invocation.console
    with progress(console, "mining notes", None) as advance:
        result = mine_export(
            _caller(invocation),
            form,
            plain.absolute_path(path),
            namespace=resolve_namespace(namespace),
            dry_run=dry_run,
            progress=_Meter(advance),
        )
    console.result(result, _mine_lines(console.pen, result, dry_run=dry_run))
    return EXIT_OK


def _mine_lines(pen: Pen, result: Mapping[str, Any], *, dry_run: bool) -> Iterator[str]:
    skipped = [f"{result[name]:,} {name}" for name in ("empty", "bad") if result[name]]
    left_out = f" (left out: {', '.join(skipped)})" if skipped else ""
    yield f"{output.count(result['conversations'], 'conversation')}{left_out}"
    yield from _import_lines(pen, result, dry_run=dry_run)
