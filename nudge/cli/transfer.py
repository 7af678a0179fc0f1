"""The verbs that move many hints: export, import, scan."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any

import click

from nudge import context, files, limits, manifests, paths
from nudge.cli import completion, output, plain
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK, Pen, Usage
from nudge.cli.params import option
from nudge.cli.plain import Invocation
from nudge.cli.prompts import progress
from nudge.errors import Invalid, NotFound, StorageFailed
from nudge.ipc import pages
from nudge.text import escape
from nudge.usecases import freshness

# export


@verb(
    "export",
    "nudge export > nudge-session.json",
    "nudge export -o hints.json --component http-proxy",
    "nudge export --reveal",
    "nudge export --all > history.jsonl",
)
@option("--format", type=click.Choice(["json"]), default="json", help="The format (json).")
@option("-o", "--output", "target", metavar="FILE", help="Write this file, readable by you alone (- is stdout).")
@option("--component", metavar="NAME", help="Only this component.", shell_complete=completion.components)
@option("--reveal", is_flag=True, help="Include the values of secret hints.")
@option("--all", "all_history", is_flag=True, help="Export the history instead, one JSON object per line.")
def export(
    invocation: Invocation, format: str, target: str | None, component: str | None, reveal: bool, all_history: bool
) -> int:
    """`nudge import` reads the output. Secret values are left out, unless --reveal is given."""
    if all_history:
        return _export_history(invocation, target)
    console = invocation.console
    del format  # there is one
    fields: dict[str, Any] = {} if component is None else {"component": component}
    fields |= {"reveal": True} if reveal else {}
    result = {"payload": pages.export_payload(_caller(invocation), fields)}
    hints = list(_hints_of(result["payload"]))
    text = output.encode_json(result["payload"], indent=2)
    if target not in (None, "-"):
        write_file(str(target), text + "\n")
        line = f"exported {output.count(len(hints), 'hint')} to {escape(str(target))}"
        console.result(result, [console.pen.done(line)])
    else:
        console.result(result, [text])
    if hidden := sum(1 for hint in hints if hint.get("redacted")):
        console.note(f"{output.count(hidden, 'secret value')} left out; include them with --reveal")
    return EXIT_OK


def _caller(invocation: Invocation) -> Callable[[str, dict[str, Any]], Any]:
    """Pages take long on a busy machine: they are large, and thousands of hints are checked."""
    return partial(invocation.client().call, timeout=limits.LONG_CALL_TIMEOUT)


def _hints_of(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for component in payload["components"].values():
        for variants in component["hints"].values():
            yield from variants if isinstance(variants, list) else [variants]


def _export_history(invocation: Invocation, target: str | None) -> int:
    """Page by page, so that neither side ever holds all of it."""
    client = invocation.client()
    total = 0 if target in (None, "-") and invocation.console.is_terminal else None  # no bar between the rows
    with _open(target) as file, progress(invocation.console, "exporting the history", total) as advance:
        page: dict[str, Any] = {"next": ""}
        while page["next"] is not None:
            page = client.call("nudge.export_all", {"after": page["next"]} if page["next"] else {})
            for row in page["rows"]:
                file.write(output.encode_json(row, indent=None) + "\n")
            advance(len(page["rows"]))
    return EXIT_OK


def _open(path: str | None) -> AbstractContextManager[IO[str]]:
    if path in (None, "-"):
        return nullcontext(sys.stdout)
    try:
        descriptor = os.open(os.path.realpath(path or ""), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise _cannot_write(path, error.strerror) from None
    return open(descriptor, "w", encoding="utf-8")


def write_file(path: str, text: str) -> None:
    """Replace a regular file atomically; write to a device or a pipe as it is."""
    target = os.path.realpath(path)
    try:
        if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
            with open(target, "w", encoding="utf-8") as device:
                device.write(text)
        else:
            files.replace(target, text.encode())
    except OSError as error:
        raise _cannot_write(path, error.strerror) from None
    except StorageFailed as error:
        raise _cannot_write(path, error.message.rpartition(": ")[2]) from None


def _cannot_write(path: str | None, reason: str | None) -> StorageFailed:
    return StorageFailed(f"cannot write {path}: {reason}; choose another file with -o")


# import


@verb(
    "import",
    "nudge import ./hints.json",
    "nudge import ./hints.json --mode skip",
    "cat hints.json | nudge import -",
    "nudge import --previous",
)
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(), help="Output of nudge export; - is stdin.")
@option("--previous", is_flag=True, help="Import the hints of the previous session.")
@option(
    "--mode",
    type=click.Choice(["merge", "replace", "skip"]),
    default="merge",
    help="merge: the newer one wins; skip: existing hints stay; replace: only the file's hints remain (merge).",
)
def import_hints(invocation: Invocation, file: str | None, previous: bool, mode: str) -> int:
    if previous == (file is not None):
        raise Usage("FILE and --previous exclude each other" if previous else "missing FILE")
    payload = _read_payload(file)
    sent = 0
    with progress(invocation.console, "importing hints", _count_hints(payload)) as advance:

        def report(hints: int) -> None:
            nonlocal sent
            advance(hints - sent)
            sent = hints

        result = pages.import_payload(_caller(invocation), payload, mode, report)
    invocation.console.result(result, _import_lines(invocation.console.pen, result))
    return EXIT_OK


def _read_payload(file: str | None) -> Any:
    """Read the document of a file, of stdin (-) or of the previous session (None); also as --json wraps it."""
    path = os.path.join(paths.runtime_dir(), paths.PREVIOUS) if file is None else file
    if file is None and not os.path.exists(path):
        raise NotFound("there is no previous session; the first one ends when no nudge process has run for a while")
    document = read_document(path, "nudge export", name="the previous session" if file is None else None)
    is_wrapped = isinstance(document, dict) and "payload" in document and "components" not in document
    return document["payload"] if is_wrapped else document


def read_document(path: str, writer: str, *, name: str | None = None) -> Any:
    """Read the JSON of a file, or of stdin (-). `writer` is the command that writes such files; `name` is what errors
    call this one."""
    name = name or ("stdin" if path == "-" else path)
    try:
        with sys.stdin.buffer if path == "-" else open(path, "rb") as source:
            content = source.read(limits.MAX_IMPORT_FILE_BYTES + 1)
    except OSError as error:
        raise Usage(f"cannot read {name}: {error.strerror}", f"name a file that {writer} wrote") from None
    if len(content) > limits.MAX_IMPORT_FILE_BYTES:
        raise Invalid(f"{name} is larger than {limits.MAX_IMPORT_FILE_BYTES // limits.MIB} MiB, the limit for imports")
    try:
        return plain.parse_json(content)
    except ValueError as error:
        raise Invalid(f"{name} is not JSON: {error}; it must be the output of {writer}") from None


def _count_hints(payload: Any) -> int:
    """How many hints a payload has; 0 for one that the server will refuse."""
    try:
        return sum(1 for _ in _hints_of(payload))
    except (AttributeError, KeyError, TypeError):
        return 0


_HELD = ("already here", "not newer")  # what the server has already needs no line of its own


def _import_lines(pen: Pen, result: dict[str, Any]) -> Iterator[str]:
    removed = f", removed {result['removed']}" if result.get("removed") else ""
    reasons = result.get("reasons", ())
    refused = [skipped for skipped in reasons if not skipped["reason"].startswith(_HELD)]
    held = " (already here)" if reasons and not refused and len(reasons) == result["skipped"] else ""
    yield pen.done(f"imported {output.count(result['imported'], 'hint')}, skipped {result['skipped']}{held}{removed}")
    for skipped in refused:
        yield f"  {output.hint_name(skipped['component'], skipped['key'])}: {escape(skipped['reason'])}"
    if refused and (more := result["skipped"] - len(reasons)) > 0:
        yield f"  and {more} more"


# scan

_OUTCOMES = (("added", "+", "green"), ("updated", "~", "yellow"), ("removed", "-", "red"), ("kept", "=", "dim"))


@verb("scan", "nudge scan", "nudge scan --dry-run", "nudge scan ~/code/api")
@click.argument(
    "directory",
    metavar="[DIR]",
    default=".",
    type=click.Path(file_okay=False),
    help="Any directory of the repo (the current one).",
)
@option("--dry-run", is_flag=True, help="Show what would be set, and set nothing.")
def scan(invocation: Invocation, directory: str, dry_run: bool) -> int:
    """Manifests are read, nothing in them is run. Hints that a person or an agent set are kept."""
    folder = plain.absolute_path(directory)
    if not os.path.isdir(folder):
        raise Usage(f"{folder} is not a directory", "name one, or leave it out for the current one")
    here = context.resolve(folder)
    if here.repo is None:
        raise Invalid(f"{folder} is not in a git repository; cd into one, or name one: nudge scan DIR")
    root = _work_tree(folder)
    scanned = manifests.scan_repo(Path(root), here.project and context.project_name(here.project))
    fields: dict[str, Any] = {
        "repo": here.repo,
        "found": [_scan_entry(command, root) for command in scanned.commands],
        "dry_run": dry_run,
    }
    if scanned.unread:  # an older server does not know the field
        fields["unread"] = scanned.unread
    result = invocation.client().call("nudge.scan", fields)
    console = invocation.console
    console.result(result, _scan_lines(console.pen, result, dry_run=dry_run))
    refused = [f"{entry['component']}/{entry['key']}: {entry['reason']}" for entry in result.get("skipped", ())]
    for problem in [*scanned.problems, *refused]:
        console.note(f"skipped: {escape(problem)}")
    return EXIT_OK


def _work_tree(folder: str) -> str:
    """The nearest directory at or above that git calls a work tree."""
    for parent in (Path(folder), *Path(folder).parents):
        if (parent / ".git").is_file() or (parent / ".git" / "HEAD").is_file():
            return os.fspath(parent)
    return folder


def _scan_entry(command: manifests.Command, root: str) -> dict[str, Any]:
    """A command of a nested package runs in the root, and its hint applies anywhere in the repo."""
    reason = command.reason if command.cwd == "." else f"{command.reason}, run it in the root of the repo"
    value = {"type": "command", "cmd": command.cmd}
    files = freshness.digest_files(root, [command.file])
    entry = {"component": command.component, "key": command.key, "value": value, "reason": reason, "files": files}
    return {**entry, "reason": f"{reason}, a guess", "guess": True} if command.is_guess else entry


def _scan_lines(pen: Pen, result: dict[str, Any], *, dry_run: bool) -> Iterator[str]:
    rows = [(mark, style, entry) for outcome, mark, style in _OUTCOMES for entry in result[outcome]]
    names = [output.hint_name(entry["component"], entry["key"]) for _, _, entry in rows]
    width = output.widest(names)
    for name, (mark, style, entry) in zip(names, rows, strict=True):
        reason = escape(entry.get("reason") or "")
        value = pen.clip(escape(output.bare_value(entry["value"])), width + len(reason) + 6)
        yield f"{pen.paint(style, mark)} {output.pad(name, width)}  {value}  {pen.paint('dim', reason)}".rstrip()
    counts = {outcome: len(result[outcome]) for outcome, _, _ in _OUTCOMES} | {"unchanged": result["unchanged"]}
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) or "nothing found"
    if dry_run:
        yield f"nothing was set (--dry-run); it would be: {summary}"
    else:
        yield pen.done(summary + (" (kept: set by a person or an agent, or learned)" if result["kept"] else ""))
