"""`nudge off`: record nothing in this project, or nowhere."""

from __future__ import annotations

from nudge import paths
from nudge import switches as switch
from nudge.cli import exits
from nudge.cli.console import Console
from nudge.cli.render import visible
from nudge.context import resolve
from nudge.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge off", "nudge off --all", "NUDGE_OFF=1 claude")


def configure(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="in every project")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    context = resolve()
    if not arguments.all and switch.place_of(context) is None:
        raise Invalid("this directory is gone; go to the project, or use: nudge off --all")
    switches = switch.turn_off(paths.runtime_dir(), None if arguments.all else context)
    where = "everywhere" if arguments.all else f"for {visible(context.project or 'this project')}"
    undo = f"; turn it on with: {visible(off.cure)}" if (off := switches.why(context)) else ""
    console.result({"recording": False, **switches.to_wire()}, [console.pen.done(f"recording is off {where}{undo}")])
    return exits.DONE
