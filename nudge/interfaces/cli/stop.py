"""`nudge stop`: end the server. Never starts one."""

from __future__ import annotations

import os
import time

from nudge import limits
from nudge.interfaces.cli import exits
from nudge.interfaces.cli.connection import connect
from nudge.interfaces.cli.console import Console
from nudge.runtime import lock, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from nudge.interfaces.cli.parsing import Parser
    from nudge.interfaces.client import Client

_PAUSE = 0.01

EXAMPLES = ("nudge stop", "nudge stop --forget", "nudge stop --force")


def configure(parser: Parser) -> None:
    parser.add_argument("--force", action="store_true", help="also one that lives inside a client")
    parser.add_argument("--forget", action="store_true", help="end the session: its hints go (nudge import --previous has them)")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    client = connect(arguments)
    published = client.endpoint()
    result = client.call("nudge.stop", {"force": arguments.force, "forget": arguments.forget}, start=False)
    gone = published is not None and _is_gone(client, published.generation)
    said = f"{'stopped' if gone else 'stopping'} the server (pid {result['pid']})"
    hints = "the session's hints are forgotten" if arguments.forget else "hints stay for the session"
    console.result(result, [console.pen.done(f"{said}; {hints}")])
    return exits.DONE


def _is_gone(client: Client, generation: str) -> bool:
    """Wait for it, since the next command of a script may count on it; not for ever, since it finishes its calls first."""
    give_up = time.monotonic() + limits.CALL_TIMEOUT
    held = os.path.join(paths.runtime_dir(), paths.LOCK)
    while not lock.is_free(held) and (current := client.endpoint()) is not None and current.generation == generation:
        if time.monotonic() > give_up:
            return False
        time.sleep(_PAUSE)
    return True
