"""`nudge delete`: remove a hint with all its variants, or one of them."""

from __future__ import annotations

from nudge.cli import exits, render, scope_flags
from nudge.cli.connection import connect
from nudge.cli.console import Console

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = (
    "nudge delete http-proxy build",
    "nudge delete http-proxy directory --scope-os windows",
    "nudge delete http-proxy build --global",
)


def configure(parser: Parser) -> None:
    parser.add_argument("component", metavar="COMPONENT", help="service, module or folder")
    parser.add_argument("key", metavar="KEY", help="what the hint is about")
    scope_flags.add(parser, "the variant that is for everywhere (without a scope, all variants go)")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    params = {"component": arguments.component, "key": arguments.key}
    scope = scope_flags.read(arguments)
    result = connect(arguments).call("nudge.delete_hint", params if scope is None else {**params, "scope": scope})
    console.result(result, [_line(console.pen, arguments, result["previous"])])
    return exits.DONE


def _line(pen: render.Pen, arguments: Namespace, previous: dict[str, Any] | list[dict[str, Any]]) -> str:
    gone = f"{len(previous)} variants" if isinstance(previous, list) else f"v{previous['version']}"
    return pen.done(f"deleted hint {pen.paint('bold', render.name_of(arguments.component, arguments.key))} ({gone})")
