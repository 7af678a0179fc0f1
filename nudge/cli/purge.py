"""`nudge purge`: delete observations for good. Without --confirm it only counts them."""

from __future__ import annotations

import argparse

from nudge import limits
from nudge.cli import exits, history_view, render
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.parsing import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser
    from nudge.ipc.client import Client

EXAMPLES = (
    "nudge purge --search 'customer name' --confirm",
    "nudge purge --project old-thing",
    "nudge purge --type file_read --older-than 30d --confirm",
    "nudge purge --id 42 --id 43 --confirm",
)

_DAY = 86_400
_FILTERS = {
    "before": "before",
    "project": "project",
    "ids": "id",
    "type": "type",
    "older_than": "older_than",
    "search": "search",
}


def configure(parser: Parser) -> None:
    group = parser.add_argument_group("what is meant (all that are given must hold)")
    group.add_argument(
        "--before", type=history_view.moment, metavar="WHEN", help="before a date, an ISO time, or 7d for so long ago"
    )
    group.add_argument("--project", metavar="NAME", help="of this project")
    group.add_argument("--session", metavar="SESSION", help="of this session: last, an id, or the beginning of one")
    group.add_argument(
        "--id", type=history_view.identity, action="append", metavar="ID", help="this observation (repeatable)"
    )
    group.add_argument("--type", metavar="TYPE", help="of this type")
    group.add_argument("--older-than", type=_days, metavar="SPAN", help="older than so many days: 90d, 12w")
    group.add_argument("--search", metavar="QUERY", help="that this search finds, also in errors and descriptions")
    parser.add_argument("--confirm", action="store_true", help="delete them; without it they are only counted")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    client = connect(arguments)
    result = client.call("nudge.purge", _params(arguments, client), patience=limits.LONG_CALL_TIMEOUT)
    console.result(result, _lines(console.pen, result))
    if not console.as_json:
        for remark in _remarks(result):
            console.remark(remark)
    return exits.DONE


def _days(text: str) -> int:
    days, rest = divmod(history_view.span(f"{text}d" if text.isdecimal() else text), _DAY)
    if rest:
        raise argparse.ArgumentTypeError(f"{text!a} is not a number of whole days such as 90d or 12w")
    return days


def _params(arguments: Namespace, client: Client) -> dict[str, Any]:
    meant = history_view.given(arguments, **_FILTERS)
    if arguments.session is not None:
        meant["session"] = history_view.find_session(client, arguments.session)
    if not meant:
        raise Usage(
            "say what is meant: --before, --project, --session, --id, --type, --older-than or --search",
            f"try: {EXAMPLES[1]}",
        )
    return {**meant, "confirm": arguments.confirm}


def _lines(pen: render.Pen, result: dict[str, Any]) -> Iterator[str]:
    by_type = sorted(result["counts"].items(), key=lambda entry: (-entry[1], entry[0]))
    width = max((len(str(number)) for _, number in by_type), default=0)
    yield from (f"{str(number).rjust(width)}  {render.visible(type_)}" for type_, number in by_type)
    total = render.counted(result["total"], "observation")
    pinned = f", {result['pinned']} of them pinned" if result["pinned"] else ""
    copies = _copies(result)
    if result["deleted"]:
        yield pen.done(f"deleted {total}{pinned}{copies}")
    else:
        yield f"{total} would be deleted{pinned}{copies}"


def _copies(result: dict[str, Any]) -> str:
    prompts, told = result["prompts"], result["injections"]
    counted = [render.counted(prompts, "prompt")] * bool(prompts) + [
        render.counted(told, "text") + " told at a start"
    ] * bool(told)
    return f", with {' and '.join(counted)}" if counted else ""


def _remarks(result: dict[str, Any]) -> Iterator[str]:
    if not result["deleted"] and (result["total"] or result["prompts"] or result["injections"]):
        yield "nothing was deleted; the same with --confirm deletes them"
    if result["deleted"] and result.get("scrubbed") is False:
        yield "traces may stay in the database's log until its readers are done; they go with the next purge or restart"
    if result.get("waiting"):
        yield f"{render.counted(result['waiting'], 'event')} of hooks still wait in the spool and were not looked at; see: nudge doctor"
    for path in result.get("backups") or ():
        yield f"a backup may still hold them: {render.visible(path)}"
