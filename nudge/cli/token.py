"""`nudge token`: what a script sends as `Authorization: Bearer`. Never starts a server."""

from __future__ import annotations

from nudge import paths
from nudge.cli import exits
from nudge.cli.connection import look
from nudge.cli.console import Console
from nudge.errors import Unavailable
from nudge.ipc import endpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge token", 'curl -H "Authorization: Bearer $(nudge token)" ...')


def configure(parser: Parser) -> None:
    del parser


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    running = look(arguments).status() is not None
    token = endpoint.read_token(paths.runtime_dir()) if running else None
    if token is None:
        raise Unavailable("no server runs; start one with: nudge serve")
    console.result({"token": token}, [token])
    return exits.DONE
