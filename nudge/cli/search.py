"""`nudge search`: full-text search through what happened."""

from __future__ import annotations

from nudge.cli import exits, history_view, render
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.parsing import Usage, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = (
    "nudge search 'auth error'",
    "nudge search 'docker AND compose' --type command_error --after 7d",
    "nudge search stale --ids | xargs nudge show",
    "nudge search deploy --project api --order-by blended",
)


def configure(parser: Parser) -> None:
    parser.add_argument("query", metavar="QUERY", help='words, "phrases", prefix*, AND, OR, NOT')
    parser.add_argument("--project", metavar="NAME", help="only in this project")
    parser.add_argument("--type", metavar="TYPE", help="only this type, such as command_error, file_edit or git_commit")
    parser.add_argument("--limit", type=whole, metavar="N", help="at most so many (20)")
    parser.add_argument("--full", action="store_true", help="all there is about each, not a preview")
    parser.add_argument("--ids", action="store_true", help="ids only, one a line")
    parser.add_argument(
        "--order-by", choices=("relevance", "blended"), help="the best match first, or a blend with the newest"
    )
    history_view.add_window(parser, "what happened")


def run(arguments: Namespace) -> int:
    """Into a pipe goes JSON, as into any program."""
    if arguments.ids and (arguments.full or arguments.json):
        raise Usage("--ids excludes --full and --json", "leave one out")
    console = Console(as_json=arguments.json)
    client = connect(arguments)
    found = client.call("nudge.search", _params(arguments))
    if arguments.full:
        found = history_view.fetch(client, [one["id"] for one in found])
    _print(console, arguments, found)
    console.remark(f'nudge: {len(found)} results for "{render.visible(arguments.query)}"')
    if arguments.project is None and console.is_terminal and (remark := history_view.left_out()):
        console.remark(render.visible(remark))
    return exits.DONE


def _params(arguments: Namespace) -> dict[str, Any]:
    flags = history_view.given(
        arguments, obs_type="type", limit="limit", order_by="order_by", before="before", after="after"
    )
    return {"query": arguments.query, **history_view.asked_of(arguments.project), **flags}


def _print(console: Console, arguments: Namespace, found: list[dict[str, Any]]) -> None:
    if arguments.ids:
        console.show(str(one["id"]) for one in found)
    elif console.as_json or not console.is_terminal:
        console.json(found)
    else:
        console.show(history_view.table(console.pen, found))
