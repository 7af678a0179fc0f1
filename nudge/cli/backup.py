"""`nudge backup`: a whole copy of the history, taken while it is in use."""

from __future__ import annotations

from nudge import limits
from nudge.cli import exits, render
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.context_flags import absolute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge backup", "nudge backup ~/backups/nudge.db")


def configure(parser: Parser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="a new file (in the folder backups beside the database)"
    )


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    params = {} if arguments.file is None else {"path": absolute(arguments.file)}
    result = connect(arguments).call("nudge.backup", params, patience=limits.LONG_CALL_TIMEOUT)
    console.result(result, [_line(console.pen, result)])
    return exits.DONE


def _line(pen: render.Pen, result: dict[str, Any]) -> str:
    from nudge.usecases.measures import size

    return pen.done(f"backed up to {render.visible(result['path'])} ({size(result['bytes'])})")
