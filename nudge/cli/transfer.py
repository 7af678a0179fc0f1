"""The verbs that move data in bulk: export and import for hints and the history; `nudge note` with export, import,
sync and mine for notes."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, BinaryIO

import click

from nudge.cli import completion, output, params, plain
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK, EXIT_REFUSED, Styler, Usage
from nudge.cli.params import dry_run_option, namespace_option, note_fields, option
from nudge.cli.plain import Invocation
from nudge.cli.prompts import ask, can_ask, progress, waiting, yes_option
from nudge.cli.verbs import HINTS, NOTES
from nudge.core import context, files, limits, paths, transfer_files
from nudge.core.errors import INVALID_REQUEST, PARSE_ERROR, Invalid, NotFound, NudgeError, StorageFailed
from nudge.core.text import escape
from nudge.core.visibility import visible_here

FORMATS = ("claude", "chatgpt", "slack")
_OUTCOMES = ("created", "updated", "unchanged", "expired", "forgotten", "conflicts", "refused", "links", "invalid")
_ERRORS_SHOWN = 10

_target_namespace_option = params.namespace_option(
    "Repo of notes that name none (default: global); . is the one you are in."
)
_output_option = option(
    "-o",
    "--output",
    "target",
    metavar="FILE",
    help="Write to this file, readable by you alone (default: -, which is stdout).",
)


# Files


def _import_document(
    invocation: Invocation,
    operation: str,
    source: _Source,
    fields: dict[str, Any],
    parse: Callable[[Any], dict[str, Any] | None],
) -> Any:
    """Import a document of any size and return the result. `parse` makes parameters of a small one, or returns None for
    one that does not fit into a call; a large one goes through a file, which the server parses."""
    call, directory = _call_from_here(invocation), paths.runtime_dir()
    with source.open() as opened:
        beginning = opened.read(limits.PAGE_BYTES + 1)
        is_small = len(beginning) <= limits.PAGE_BYTES
        if is_small and (parsed := parse(source.parse(beginning))) is not None:
            return call(operation, {**parsed, **fields})
        with transfer_files.reserved(directory) as name:
            with transfer_files.created(directory, name) as copy:
                source.copy(beginning, opened, copy)
            with waiting(invocation.console, "importing, seconds"), source.naming_errors():
                return call(operation, {"file": name, **fields})


class _Source:
    """The document of an import: in a file, or stdin (`-`). `writer` is the command that writes such documents; `name`
    is what errors call this one."""

    def __init__(self, path: str, writer: str, *, name: str | None = None) -> None:
        self.name = name or ("stdin" if path == "-" else path)
        self._path, self._writer = path, writer

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        try:
            with nullcontext(plain.stdin_bytes()) if self._path == "-" else open(self._path, "rb") as file:
                yield file
        except OSError as error:
            raise Usage(
                f"cannot read {self.name}: {error.strerror}", f"name a file that {self._writer} wrote"
            ) from None

    def parse(self, content: bytes) -> Any:
        try:
            return plain.parse_json(content)
        except ValueError as error:
            raise self._is_not_json(str(error)) from None

    def copy(self, beginning: bytes, source: BinaryIO, target: BinaryIO) -> None:
        """Copy the document. What is no text cannot be JSON, and may never end."""
        if not beginning.lstrip().startswith(b"{"):
            raise self._is_not_json("it must be an object")
        decoder, piece = codecs.getincrementaldecoder("utf-8")(), beginning
        while piece:
            try:
                decoder.decode(piece)
            except UnicodeDecodeError:
                raise self._is_not_json("invalid UTF-8") from None
            target.write(piece)
            piece = source.read(limits.TRANSFER_PIECE)

    @contextmanager
    def naming_errors(self) -> Iterator[None]:
        """Say which document is not JSON, when the server says that it is not."""
        try:
            yield
        except NudgeError as error:
            if error.code in (PARSE_ERROR, INVALID_REQUEST):
                raise self._is_not_json(error.message.removeprefix("Invalid request: ")) from None
            raise

    def _is_not_json(self, why: str) -> Invalid:
        return Invalid(f"{self.name} is not JSON: {why}; it must be the output of {self._writer}")


def _export_document(invocation: Invocation, operation: str, fields: dict[str, Any]) -> Any:
    """Return the result of an export of any size."""
    directory = paths.runtime_dir()
    with transfer_files.reserved(directory) as name:
        result = invocation.call(operation, {**fields, "file": name})
        if result.get("file") is None:
            return result
        with transfer_files.open_written(directory, name) as file:
            return json.load(file)


@contextmanager
def _open_output(path: str | None) -> Iterator[Callable[[str], object]]:
    """Give the function that writes text to `path`, or to stdout. A regular file is replaced when all is written, and
    stays as it was after an error or Ctrl-C; a device or a pipe is written to as it is."""
    if path in (None, "-"):
        yield sys.stdout.write
        return
    target = os.path.realpath(str(path))
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "w", encoding="utf-8") as device:
                yield device.write
        else:
            with files.Replacement(target) as file:
                yield lambda text: file.write(text.encode())
    except OSError as error:
        raise _cannot_write(path, error.strerror) from None


def _cannot_write(path: str | None, reason: str | None) -> StorageFailed:
    return StorageFailed(f"cannot write {path}: {reason}; choose another file with -o")


def _call_from_here(invocation: Invocation) -> Callable[[str, Mapping[str, Any]], Any]:
    """Return the call of an operation whose parameters have no context of their own."""
    return partial(invocation.client().call, context=plain.context_params())


# Hints


@verb(
    "export",
    "nudge export > nudge-session.json",
    "nudge export -o hints.json --component http-proxy",
    "nudge export --reveal",
    "nudge export --all > history.jsonl",
    group=HINTS,
    summary="write hints as JSON (--all: the history)",
    operations=(
        "nudge.export",
        "nudge.export_all",
    ),
)
@option("--format", type=click.Choice(["json"]), default="json", help="The only format (default: json).")
@_output_option
@option("--component", metavar="NAME", help="Only hints of this component.", shell_complete=completion.components)
@option("--reveal", is_flag=True, help="Include the values of secret hints.")
@option("--all", "all_history", is_flag=True, help="Export the history instead, as one JSON object per line.")
def export_hints(
    invocation: Invocation, format: str, target: str | None, component: str | None, reveal: bool, all_history: bool
) -> int:
    """Prints one JSON document that `nudge import` reads. Secret values are left out, unless --reveal is given."""
    if all_history:
        if component is not None:
            raise Usage("--component cannot be combined with --all", "leave one of them out")
        return _export_history(invocation, target)
    console = invocation.console
    del format  # JSON is the only one
    fields: dict[str, Any] = {} if component is None else {"component": component}
    fields |= {"reveal": True} if reveal else {}
    result = {"payload": _export_document(invocation, "nudge.export", fields)["payload"]}
    hints = list(_payload_hints(result["payload"]))
    text = output.encode_json(result["payload"], indent=2)
    if target not in (None, "-"):
        with _open_output(target) as write:
            write(text + "\n")
        line = f"exported {output.count(len(hints), 'hint')} to {escape(str(target))}"
        console.result(result, [console.styler.done(line)])
    else:
        console.result(result, [text])
    if hidden := sum(1 for hint in hints if hint.get("redacted")):
        console.note(
            f"{output.count(hidden, 'secret value')} left out; include {'it' if hidden == 1 else 'them'} with --reveal"
        )
    _note_left_out(invocation)
    return EXIT_OK


def _note_left_out(invocation: Invocation, named: str | None = None) -> None:
    """Name the private repos that an export from here leaves out: a backup without them must not look whole."""
    left_out = [] if named else visible_here(context.resolve()).hidden_names
    if left_out:
        invocation.console.note(f"private repos are left out: {', '.join(left_out)}; export in them, too")


def _payload_hints(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for component in payload["components"].values():
        for variants in component["hints"].values():
            yield from variants if isinstance(variants, list) else [variants]


def _export_history(invocation: Invocation, target: str | None) -> int:
    """Write the history page by page: neither the server nor this process holds all of it."""
    total = 0 if target in (None, "-") and invocation.console.is_terminal else None  # no bar between the rows
    with _open_output(target) as write, progress(invocation.console, "exporting the history", total) as advance:
        page: dict[str, Any] = {"next": ""}
        while page["next"] is not None:
            page = invocation.call("nudge.export_all", {"after": page["next"]} if page["next"] else {})
            for row in page["rows"]:
                write(output.encode_json(row, indent=None) + "\n")
            advance(len(page["rows"]))
    _note_left_out(invocation)
    return EXIT_OK


@verb(
    "import",
    "nudge import ./hints.json",
    "nudge import ./hints.json --mode skip",
    "cat hints.json | nudge import -",
    "nudge import --previous",
    group=HINTS,
    summary="read hints from JSON",
    operations=("nudge.import",),
)
@click.argument(
    "file", metavar="[FILE]", required=False, type=click.Path(), help="A file that nudge export wrote; - is stdin."
)
@option("--previous", is_flag=True, help="Import the hints that the previous session left, instead of a file.")
@option(
    "--mode",
    type=click.Choice(["merge", "replace", "skip"]),
    default="merge",
    help="merge: the newer of two hints wins; skip: existing hints stay; replace: only the hints of the file remain "
    "(default: merge).",
)
@yes_option
def import_hints(invocation: Invocation, file: str | None, previous: bool, mode: str, yes: bool) -> int:
    """Prints how many hints were imported and skipped, and each one that was refused with the reason. At a terminal,
    --mode replace asks for confirmation."""
    if previous == (file is not None):
        raise Usage("FILE and --previous exclude each other" if previous else "missing FILE")
    source = _previous_session() if file is None else _Source(file, "nudge export")
    if mode == "replace" and not yes and can_ask() and not _confirm_replace(invocation):
        invocation.console.note("nothing was changed")
        return EXIT_REFUSED
    result = _import_document(invocation, "nudge.import", source, {"mode": mode}, _parse_payload)
    invocation.console.result(result, _hint_import_lines(invocation.console.styler, result))
    return EXIT_OK


def _confirm_replace(invocation: Invocation) -> bool:
    """Ask whether all hints may be replaced; True without asking when there are none."""
    components = invocation.call("nudge.list_components", {})["components"]
    hints = sum(component["hint_count"] for component in components)
    return not hints or ask("Replace the only hint?" if hints == 1 else f"Replace all {hints:,} hints?", yes=False)


def _previous_session() -> _Source:
    path = os.path.join(paths.runtime_dir(), paths.PREVIOUS)
    if not os.path.exists(path):
        raise NotFound(
            "there are no hints of a previous session; a session ends with: nudge stop --forget, or when no nudge "
            "process has run for a while"
        )
    return _Source(path, "nudge export", name="the previous session")


def _parse_payload(document: Any) -> dict[str, Any]:
    """Return the payload in a document, also when `export --json` wrapped it."""
    is_wrapped = isinstance(document, dict) and "payload" in document and "components" not in document
    return {"payload": document["payload"] if is_wrapped else document}


_KNOWN = ("already here", "not newer")  # beginnings of reasons: the server has the hint, which needs no line


def _hint_import_lines(styler: Styler, result: dict[str, Any]) -> Iterator[str]:
    removed = f", removed {result['removed']}" if result.get("removed") else ""
    reasons = result.get("reasons", ())
    refused = [skipped for skipped in reasons if not skipped["reason"].startswith(_KNOWN)]
    held = " (already here)" if reasons and not refused and len(reasons) == result["skipped"] else ""
    yield styler.done(
        f"imported {output.count(result['imported'], 'hint')}, skipped {result['skipped']}{held}{removed}"
    )
    for skipped in refused:
        yield f"  {output.hint_name(skipped['component'], skipped['key'])}: {escape(skipped['reason'])}"
    if refused and (more := result["skipped"] - len(reasons)) > 0:
        yield f"  and {more} more"


# Notes


@verb(
    "note export",
    "nudge note export > notes.json",
    "nudge note export -o notes.json --repo .",
    group=NOTES,
    summary="write notes and links as JSON",
    operations=("nudge.memory_export",),
)
@_output_option
@namespace_option()
def export_notes(invocation: Invocation, target: str | None, namespace: str | None) -> int:
    """Prints one JSON document with all notes, their links and metadata, that `nudge note import` reads."""
    console, to_file = invocation.console, target not in (None, "-")
    with waiting(console, "exporting notes, seconds"):
        document = _export_document(invocation, "nudge.memory_export", note_fields(namespace))
    if target is not None and to_file:
        with _open_output(target) as write:
            write(output.encode_json(document, indent=2) + "\n")
        notes = output.count(len(document["memories"]), "note")
        links = output.count(len(document["links"]), "link")
        console.result(document, [console.styler.done(f"exported {notes} and {links} to {escape(target)}")])
    else:
        console.show([output.encode_json(document, indent=None if console.as_json else 2)])
    _note_left_out(invocation, namespace)
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
    source = _Source(file or "-", "nudge note export")
    fields = {"dry_run": dry_run, **note_fields(namespace)}
    parse = partial(_parse_notes, source.name)
    result = _import_document(invocation, "nudge.memory_import", source, fields, parse)
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
            _call_from_here(invocation),
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
