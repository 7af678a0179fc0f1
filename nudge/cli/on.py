"""`nudge on`: record again."""

from __future__ import annotations

import os

from nudge import paths
from nudge import switches as switch
from nudge.cli import exits
from nudge.cli.console import Console
from nudge.cli.render import visible
from nudge.context import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge on", "nudge on --all")


def configure(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="in every project, also where it was turned off alone")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    context = resolve()
    if off := switch.why_off_for_this_run(os.environ) or switch.why_off_by_settings(os.environ, context):
        raise switch.stays(off)
    switches = switch.turn_on(paths.runtime_dir(), None if arguments.all else context)
    where = "every project" if arguments.all else visible(context.project or "this project")
    console.result({"recording": True, **switches.to_wire()}, [console.pen.done(f"recording is on for {where}")])
    return exits.DONE
