"""`nudge ls`: the components, or every variant in one, with what keeps it from being for here."""

from __future__ import annotations

from nudge.cli import context_flags, exits, render
from nudge.cli.connection import connect
from nudge.cli.console import Console

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge ls", "nudge ls http-proxy", "nudge ls http-proxy --branch main")


def configure(parser: Parser) -> None:
    parser.add_argument("component", metavar="COMPONENT", nargs="?", help="list what is in this one")
    context_flags.add(parser)


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    client = connect(arguments)
    if arguments.component is None:
        result = client.call("nudge.list_components", {})
        console.result(result, _components(console.pen, result["components"]))
        advice = "no hints yet; set one with: nudge set COMPONENT KEY VALUE, or try: nudge scan"
    else:
        params = {"component": arguments.component, "context": context_flags.read(arguments)}
        result = client.call("nudge.list_components", params)
        console.result(result, _hints(console.pen, result["hints"]))
        advice = f"nothing in {render.visible(arguments.component)}; nudge ls shows which components there are"
    if not result["components"] and not console.as_json:
        console.remark(advice)
    return exits.DONE


def _components(pen: render.Pen, components: list[dict[str, Any]]) -> Iterator[str]:
    width = render.widest(render.visible(component["name"]) for component in components)
    for component in components:
        name = pen.paint("bold", render.padded(render.visible(component["name"]), width))
        yield f"{name}  {render.counted(component['hint_count'], 'hint')}"


def _hints(pen: render.Pen, entries: list[dict[str, Any]]) -> Iterator[str]:
    width = render.widest(render.visible(entry["key"]) for entry in entries)
    for entry in entries:
        yield _entry(pen, entry, width)
        scope = render.scope_words(render.scope_of(entry["hint"]))
        yield pen.paint("dim", f"  {' ' * width}  {pen.clip(scope + _why(entry), width + 4)}")


def _entry(pen: render.Pen, entry: dict[str, Any], width: int) -> str:
    mark = pen.paint("green", pen.symbol("●")) if entry["eligible"] else pen.paint("dim", pen.symbol("○"))
    key = render.padded(render.visible(entry["key"]), width)
    value = pen.clip(render.shown_value(entry["hint"]), width + 4)
    return (
        f"{mark} {pen.paint('bold', key)}  {value}"
        if entry["eligible"]
        else f"{mark} {pen.paint('dim', f'{key}  {value}')}"
    )


def _why(entry: dict[str, Any]) -> str:
    return "" if entry["eligible"] else f" (not here: {render.visible('; '.join(entry['reasons']))})"
