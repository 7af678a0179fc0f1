"""`nudge timeline`: what happened around an observation, in its session."""

from __future__ import annotations

from nudge.cli import exits, history_view, render
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.parsing import whole
from nudge.errors import NotFound, RemoteError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge timeline 42", "nudge timeline 42 --before 20 --after 0")


def configure(parser: Parser) -> None:
    parser.add_argument("anchor", metavar="ID", type=history_view.identity, help="the observation in the middle")
    parser.add_argument("--before", type=whole, metavar="N", help="so many before it (5)")
    parser.add_argument("--after", type=whole, metavar="N", help="so many after it (5)")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    params = {"anchor": arguments.anchor, **history_view.given(arguments, before="before", after="after")}
    try:
        result = connect(arguments).call("nudge.timeline", params)
    except RemoteError as error:
        raise (
            NotFound(f"{error.message}; find one with: nudge search") if error.reason == NotFound.reason else error
        ) from None
    console.result(result, _lines(console.pen, result))
    return exits.DONE


def _lines(pen: render.Pen, result: dict[str, Any]) -> Iterator[str]:
    anchor = result["anchor"]
    project = render.visible(str(anchor.get("project") or "-"))
    day = history_view.local(anchor["timestamp"], "%Y-%m-%d")
    yield pen.paint("dim", f"session {render.visible(anchor['session_id'])}, {project}, {day}")
    rows = [*result["before"], anchor, *result["after"]]
    middle = len(result["before"])
    clock = history_view.clock_of(row["timestamp"] for row in rows)
    for place, line in enumerate(history_view.table(pen, rows, clock=clock)):
        yield f"{pen.paint('bold', '>') if place == middle else ' '} {line}"
