"""The verbs that decide what of the history is kept: pin, unpin and purge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from nudge.cli import completion, output, params
from nudge.cli.app import verb
from nudge.cli.output import EXIT_NOT_FOUND, EXIT_OK, Styler, Usage
from nudge.cli.params import (
    DAYS,
    ID,
    TIME,
    option,
)
from nudge.cli.plain import Invocation
from nudge.cli.verbs import HISTORY
from nudge.core.text import escape
from nudge.history.cli import find_session

_ids_argument = click.argument(
    "ids", metavar="ID...", nargs=-1, required=True, type=ID, help="Ids of observations, such as 42 or #42."
)
_FILTERS = {"section": "What to delete (an observation must match all that are given)"}


@verb(
    "pin",
    "nudge pin 42",
    "nudge pin 42 43 44",
    group=HISTORY,
    summary="keep observations forever",
    operations=("nudge.pin",),
)
@_ids_argument
def pin(invocation: Invocation, ids: tuple[int, ...]) -> int:
    """A pinned observation never expires; the others are deleted after the retention time of their type. Prints the ids
    that were pinned, and those that were not found."""
    return _pin(invocation, ids, pinned=True)


@verb(
    "unpin",
    "nudge unpin 42",
    "nudge unpin 42 43 44",
    group=HISTORY,
    summary="let observations expire again",
    operations=("nudge.pin",),
)
@_ids_argument
def unpin(invocation: Invocation, ids: tuple[int, ...]) -> int:
    """Prints the ids that were unpinned, and those that were not found."""
    return _pin(invocation, ids, pinned=False)


def _pin(invocation: Invocation, ids: Sequence[int], *, pinned: bool) -> int:
    console = invocation.console
    result = invocation.call("nudge.pin", {"ids": list(ids), "pinned": pinned})
    word = "pinned" if pinned else "unpinned"
    console.result(result, [console.styler.done(f"{word} {_id_list(result['ids'])}")] if result["ids"] else [])
    if result["missing"]:
        console.note(f"not found: {_id_list(result['missing'])}")
    return EXIT_OK if result["ids"] else EXIT_NOT_FOUND


def _id_list(ids: Sequence[int]) -> str:
    few = ", ".join(f"#{number}" for number in ids[:10])
    return few if len(ids) <= 10 else f"{few} and {output.count(len(ids) - 10, 'other')}"


@verb(
    "purge",
    "nudge purge --search 'customer name' --confirm",
    "nudge purge --repo old-thing",
    "nudge purge --type file_read --older-than 30d --confirm",
    "nudge purge --id 42 --id 43 --confirm",
    group=HISTORY,
    summary="delete observations permanently",
    operations=("nudge.purge",),
)
@option(
    "--before",
    type=TIME,
    metavar="WHEN",
    help="Recorded before WHEN: a date, an ISO time, or 7d (seven days ago).",
    **_FILTERS,
)
@params.project_option("Of this repo.", **_FILTERS)
@option(
    "--session",
    metavar="SESSION",
    help="Of this session: last, an id, or the beginning of an id.",
    shell_complete=completion.sessions,
    **_FILTERS,
)
@option("--id", "ids", type=ID, multiple=True, metavar="ID", help="This observation (repeatable).", **_FILTERS)
@option(
    "--type",
    metavar="TYPE",
    help="Of this type, such as file_read.",
    shell_complete=completion.observation_types,
    **_FILTERS,
)
@option("--older-than", type=DAYS, metavar="SPAN", help="Older than this many days or weeks: 90d, 12w.", **_FILTERS)
@option(
    "--search", metavar="QUERY", help="Found by this search, which also looks into errors and descriptions.", **_FILTERS
)
@option("--confirm", is_flag=True, help="Delete them. Without it, they are only counted.")
def purge(invocation: Invocation, session: str | None, ids: tuple[int, ...], confirm: bool, **filters: Any) -> int:
    """Prints how many observations of each type match; deletes them only with --confirm. Pinned observations, prompts
    and texts that agents were told are deleted too if they match, also from the files on the disk. Exit code 1 when
    --id finds nothing."""
    selection = params.drop_none(**filters, ids=list(ids) or None)
    if not selection and session is None:
        raise Usage(
            "say what to delete: --before, --repo, --session, --id, --type, --older-than or --search",
            "try: nudge purge --repo old-thing",
        )
    console, client = invocation.console, invocation.client()
    if session is not None:
        selection["session"] = find_session(client, session, filters["project"])
    result = client.call("nudge.purge", {**selection, "confirm": confirm})
    is_missing = bool(ids) and not (result["total"] or result["prompts"] or result["injections"])
    console.result(result, [] if is_missing else _purge_lines(console.styler, result))
    if not console.as_json:
        for note in _purge_notes(result):
            console.note(note)
    if is_missing:
        console.note(f"not found: {_id_list(ids)}")
        return EXIT_NOT_FOUND
    return EXIT_OK


def _purge_lines(styler: Styler, result: dict[str, Any]) -> Iterator[str]:
    by_type = sorted(result["counts"].items(), key=lambda entry: (-entry[1], entry[0]))
    width = max((len(str(number)) for _, number in by_type), default=0)
    yield from (f"{str(number).rjust(width)}  {escape(type_)}" for type_, number in by_type)
    total = output.count(result["total"], "observation")
    pinned = f", {result['pinned']} of them pinned" if result["pinned"] else ""
    copies = [output.count(result["prompts"], "prompt")] if result["prompts"] else []
    copies += [output.count(result["injections"], "injected text")] if result["injections"] else []
    suffix = pinned + (f", with {' and '.join(copies)}" if copies else "")
    yield styler.done(f"deleted {total}{suffix}") if result["deleted"] else f"{total} would be deleted{suffix}"


def _purge_notes(result: dict[str, Any]) -> Iterator[str]:
    if not result["deleted"] and (result["total"] or result["prompts"] or result["injections"]):
        yield "nothing was deleted; to delete, add --confirm"
    if result["deleted"] and result.get("scrubbed") is False:
        yield "the database's log may hold copies until its readers finish; the next purge or restart removes them"
    if result.get("waiting"):
        events = output.count(result["waiting"], "hook event")
        yield f"{events} in the spool were not searched; see: nudge doctor"
    for path in result.get("backups") or ():
        yield f"a backup may still contain them: {escape(path)}"
