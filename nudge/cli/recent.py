"""`nudge recent`: what mattered lately, the most telling first."""

from __future__ import annotations

from nudge.cli import exits, history_view
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.parsing import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge recent", "nudge recent --limit 50", "nudge recent --all-projects --json")


def configure(parser: Parser) -> None:
    history_view.add_project(parser)
    parser.add_argument("--limit", type=whole, metavar="N", help="at most so many (30)")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    project = history_view.project_of(arguments)
    params = {**history_view.asked_of(project), **history_view.given(arguments, limit="limit")}
    found = connect(arguments).call("nudge.recent_context", params)
    console.result(found, history_view.table_of_projects(console.pen, found, project))
    if not found and not console.as_json:
        console.remark(
            "nothing is recorded here yet; wire a client with: nudge connect, or look at all with --all-projects"
        )
    return exits.DONE
