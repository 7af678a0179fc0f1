"""`nudge pin`: keep an observation for ever, whatever its type's retention says."""

from __future__ import annotations

from nudge.cli import exits, history_view, render
from nudge.cli.connection import connect
from nudge.cli.console import Console

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge pin 42", "nudge pin 42 43 44")


def configure(parser: Parser) -> None:
    parser.add_argument(
        "ids", metavar="ID", nargs="+", type=history_view.identity, help="observations, by their number"
    )


def run(arguments: Namespace) -> int:
    return change(arguments, pinned=True)


def change(arguments: Namespace, *, pinned: bool) -> int:
    console = Console(as_json=arguments.json)
    result = connect(arguments).call("nudge.pin", {"ids": arguments.ids, "pinned": pinned})
    word = "pinned" if pinned else "unpinned"
    console.result(result, [console.pen.done(f"{word} {_named(result['ids'])}")] if result["ids"] else [])
    if result["missing"]:
        console.remark(f"not there (any more): {_named(result['missing'])}")
    return exits.DONE if result["ids"] else exits.NOTHING_FOUND


def _named(ids: list[int]) -> str:
    few = ", ".join(f"#{number}" for number in ids[:10])
    return few if len(ids) <= 10 else f"{few} and {render.counted(len(ids) - 10, 'other')}"
