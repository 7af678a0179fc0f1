"""The verbs that move hints and the history in bulk: export and import."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click

from nudge.cli import completion, output
from nudge.cli.app import verb
from nudge.cli.documents import Source, export_document, import_document, note_left_out, open_output, output_option
from nudge.cli.output import EXIT_OK, EXIT_REFUSED, Styler, Usage
from nudge.cli.params import option
from nudge.cli.plain import Invocation
from nudge.cli.prompts import ask, can_ask, progress, yes_option
from nudge.cli.verbs import HINTS
from nudge.core import paths
from nudge.core.errors import Invalid, NotFound
from nudge.core.text import escape


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
@output_option
@option("--component", metavar="NAME", help="Only hints of this component.", shell_complete=completion.components)
@option("--reveal", is_flag=True, help="Include the values of secret hints.")
@option("--versions", is_flag=True, help="Include what the hints said before, and in which session each was set.")
@option("--all", "all_history", is_flag=True, help="Export the history instead, as one JSON object per line.")
def export_hints(
    invocation: Invocation,
    format: str,
    target: str | None,
    component: str | None,
    reveal: bool,
    versions: bool,
    all_history: bool,
) -> int:
    """Prints one JSON document that `nudge import` reads. Secret values are left out, unless --reveal is given; what
    the hints said before, unless --versions is."""
    if all_history:
        if component is not None:
            raise Usage("--component cannot be combined with --all", "leave one of them out")
        return _export_history(invocation, target)
    console = invocation.console
    del format  # JSON is the only one
    fields: dict[str, Any] = {} if component is None else {"component": component}
    fields |= {name: True for name, is_asked in (("reveal", reveal), ("versions", versions)) if is_asked}
    result = {"payload": export_document(invocation, "nudge.export", fields)["payload"]}
    hints = list(_payload_hints(result["payload"]))
    text = output.encode_json(result["payload"], indent=2)
    if target not in (None, "-"):
        with open_output(target) as write:
            write(text + "\n")
        line = f"exported {output.count(len(hints), 'hint')} to {escape(str(target))}"
        console.result(result, [console.styler.done(line)])
    else:
        console.result(result, [text])
    if hidden := sum(1 for hint in hints if hint.get("redacted")):
        console.note(
            f"{output.count(hidden, 'secret value')} left out; include {'it' if hidden == 1 else 'them'} with --reveal"
        )
    note_left_out(invocation)
    return EXIT_OK


def _payload_hints(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for component in payload["components"].values():
        for variants in component["hints"].values():
            yield from variants if isinstance(variants, list) else [variants]


def _export_history(invocation: Invocation, target: str | None) -> int:
    """Write the history page by page: neither the server nor this process holds all of it."""
    total = 0 if target in (None, "-") and invocation.console.is_terminal else None  # no bar between the rows
    with open_output(target) as write, progress(invocation.console, "exporting the history", total) as advance:
        page: dict[str, Any] = {"next": ""}
        while page["next"] is not None:
            page = invocation.call("nudge.export_all", {"after": page["next"]} if page["next"] else {})
            for row in page["rows"]:
                write(output.encode_json(row, indent=None) + "\n")
            advance(len(page["rows"]))
    note_left_out(invocation)
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
    source = _previous_session() if file is None else Source(file, "nudge export")
    if mode == "replace" and not yes and can_ask() and not _confirm_replace(invocation):
        invocation.console.note("nothing was changed")
        return EXIT_REFUSED
    result = import_document(invocation, "nudge.import", source, {"mode": mode}, _parse_payload)
    invocation.console.result(result, _hint_import_lines(invocation.console.styler, result))
    return EXIT_OK


def _confirm_replace(invocation: Invocation) -> bool:
    """Ask whether all hints may be replaced; True without asking when there are none."""
    components = invocation.call("nudge.list_components", {})["components"]
    hints = sum(component["hint_count"] for component in components)
    return not hints or ask("Replace the only hint?" if hints == 1 else f"Replace all {hints:,} hints?", yes=False)


def _previous_session() -> Source:
    path = os.path.join(paths.runtime_dir(), paths.PREVIOUS)
    if not os.path.exists(path):
        raise NotFound(
            "there are no hints of a previous session; a session ends with: nudge stop --forget, or when no nudge "
            "process has run for a while"
        )
    return Source(path, "nudge export", name="the previous session")


def _parse_payload(document: Any) -> dict[str, Any]:
    """Return the payload in a document, also when `export --json` wrapped it. Raises Invalid for notes."""
    if isinstance(document, dict) and "memories" in document and "components" not in document:
        raise Invalid("the file has notes; read it with: nudge note import")
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
