"""`nudge query`: search among the hints that are for here."""

from __future__ import annotations

from nudge.cli import context_flags, exits, render
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.parsing import Usage, items, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = (
    "nudge query docker",
    "nudge query --component http-proxy --tags build --limit 5",
    "nudge query --keys build,test --regex 'dock.*build'",
)


def configure(parser: Parser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", help="text to look for, in any case")
    parser.add_argument("--component", metavar="NAME", help="only in this component")
    parser.add_argument("--keys", type=items, action="extend", metavar="KEY,KEY", help="only these keys")
    parser.add_argument("--tags", type=items, action="extend", metavar="TAG,TAG", help="only hints with these tags")
    parser.add_argument("--regex", help="RE2 expression, looked for in names, value, reason and tags")
    parser.add_argument("--limit", type=whole, metavar="N", help="at most so many (10)")
    context_flags.add(parser)


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    result = connect(arguments).call("nudge.query", _params(arguments))
    console.result(result, _lines(console.pen, result["hints"]))
    if not result["hints"] and not console.as_json:
        for line in _nothing(result.get("why_not")):
            console.remark(line)
    return exits.DONE


def _nothing(why_not: list[dict[str, Any]] | None) -> Iterator[str]:
    """What matches but is not for here, with what keeps it away."""
    yield f"{'what matches is not for here' if why_not else 'no hint for here matches'}; nudge ls shows all there are"
    for miss in why_not or ():
        yield f"  {render.name_of(miss['component'], miss['key'])}: {render.visible('; '.join(miss['reasons']))}"


def _params(arguments: Namespace) -> dict[str, Any]:
    asked = {name: getattr(arguments, name) for name in ("component", "keys", "tags", "limit")}
    asked["regex"] = _regex(arguments)
    asked["context"] = context_flags.read(arguments)
    return {name: value for name, value in asked.items() if value is not None}


def _regex(arguments: Namespace) -> str | None:
    regex: str | None = arguments.regex
    if arguments.text is None:
        return regex
    if regex is not None:
        raise Usage("TEXT and --regex exclude each other", "leave one out")
    import re

    return (
        "(?i)" + re.escape(arguments.text) if arguments.text else ""
    )  # nothing is no text to look for: the server refuses it


def _lines(pen: render.Pen, hits: list[dict[str, Any]]) -> Iterator[str]:
    names = [render.name_of(hit["component"], hit["key"]) for hit in hits]
    width = render.widest(names)
    for name, hit in zip(names, hits, strict=True):
        value = pen.clip(render.shown_value(hit["hint"]), width + 8)
        yield f"{hit['score']:.2f}  {pen.paint('bold', render.padded(name, width))}  {value}"
        reasons = hit["match_explain"]["reasons"]
        if reasons:
            yield pen.paint("dim", "      " + pen.clip(render.visible("; ".join(reasons)), 6))
