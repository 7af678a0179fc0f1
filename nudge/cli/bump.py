"""`nudge bump`: credit the hint that `get` gives here, after it worked."""

from __future__ import annotations

from nudge.cli import context_flags, exits, render
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.parsing import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge bump http-proxy build", "nudge bump http-proxy build --delta -1")


def configure(parser: Parser) -> None:
    parser.add_argument("component", metavar="COMPONENT", help="service, module or folder")
    parser.add_argument("key", metavar="KEY", help="what the hint is about")
    parser.add_argument("--delta", type=whole, default=1, metavar="N", help="uses to add; negative takes back (1)")
    context_flags.add(parser)


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    params = {"component": arguments.component, "key": arguments.key, "delta": arguments.delta}
    result = connect(arguments).call("nudge.bump", {**params, "context": context_flags.read(arguments)})
    console.result(result, [_line(console.pen, arguments, result)])
    return exits.DONE


def _line(pen: render.Pen, arguments: Namespace, result: dict[str, Any]) -> str:
    """To take credit back is no use: when it was used last stays as it was."""
    if "note" in result:
        return f"{pen.paint('bold', render.name_of(arguments.component, arguments.key))} stays as it is: {render.visible(result['note'])}"
    hint = result["hint"]
    symbol, word, used = (
        ("↓", "lowered", hint.get("last_used_at", "never")) if arguments.delta < 0 else ("↑", "bumped", "now")
    )
    return f"{pen.paint('cyan', pen.symbol(symbol))} {word} frecency: use_count={hint.get('use_count', 0)} last_used_at={used}"
