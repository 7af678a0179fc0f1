"""`nudge inject`: exactly what an agent that starts here would be told, and why."""

from __future__ import annotations

import os

from nudge import context, paths
from nudge import switches as switch
from nudge.cli import context_flags, exits, render
from nudge.cli.connection import connect
from nudge.cli.console import Console

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge inject", "nudge inject --explain", "nudge inject --source compact --cwd ~/code/api")

_SOURCES = ("startup", "resume", "clear", "compact")


def configure(parser: Parser) -> None:
    parser.add_argument("--source", choices=_SOURCES, default="startup", help="how the session starts (startup)")
    parser.add_argument("--explain", action="store_true", help="with the score of each line, and why it is there")
    context_flags.add(parser)


def run(arguments: Namespace) -> int:
    """No session is named, so nothing is stored: nobody was told."""
    console = Console(as_json=arguments.json)
    off = switch.why_off(os.environ, paths.runtime_dir(), context.resolve(arguments.cwd))
    if off is not None:
        console.result({"text": "", "items": []}, [])
        console.remark(
            render.visible(f"recording and telling are off here, since {off.reason}; turn them on with: {off.cure}")
        )
        return exits.DONE
    params = {"source": arguments.source, "explain": arguments.explain, "context": context_flags.read(arguments)}
    result = connect(arguments).call("nudge.inject", params)
    console.result(result, _lines(console.pen, result))
    if not result["text"] and not console.as_json:
        console.remark("nothing is known here yet, so nothing would be told")
    return exits.DONE


def _lines(pen: render.Pen, result: dict[str, Any]) -> Iterator[str]:
    """The items follow the order of the lines that begin with a dash."""
    items = iter(result["items"])
    for line in result["text"].splitlines():
        yield render.visible(line)
        if line.startswith("- ") and (item := next(items, None)) is not None:
            yield pen.paint("dim", f"    {item['score']:.4f}  {render.visible(item['reason'])}")
