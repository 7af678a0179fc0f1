"""`nudge restore`: a backup in the place of the history. The server is stopped for it, and what was there is kept."""

from __future__ import annotations

import os

from nudge import paths
from nudge.cli import exits, question, render
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.context_flags import absolute
from nudge.ipc import lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge restore ~/backups/nudge.db", "nudge restore nudge.db --yes")


def configure(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="what nudge backup wrote")
    parser.add_argument("--yes", action="store_true", help="do not ask first")


def run(arguments: Namespace) -> int:
    from nudge.usecases import restoring

    console = Console(as_json=arguments.json)
    path = absolute(arguments.file)
    found = restoring.examine(path)
    if not question.agreed(
        f"Put {_counted(found)} in the place of the present history, which is kept?", yes=arguments.yes
    ):
        console.remark("nothing was changed")
        return exits.REFUSED
    stopped = _stop(arguments)
    result = {"path": path, **found, "kept": restoring.restore(path), "stopped": stopped}
    console.result(result, _lines(console.pen, result))
    return exits.DONE


def _stop(arguments: Namespace) -> bool:
    """One that lives inside a client refuses, and says how it is ended."""
    if lock.is_free(os.path.join(paths.runtime_dir(), paths.LOCK)):
        return False
    connect(arguments).call("nudge.stop", {"force": False, "forget": False}, start=False)
    return True


def _counted(found: dict[str, Any]) -> str:
    return f"{render.counted(found['observations'], 'observation')} of {render.counted(found['sessions'], 'session')}"


def _lines(pen: render.Pen, result: dict[str, Any]) -> Iterator[str]:
    yield pen.done(f"restored {_counted(result)} from {render.visible(result['path'])}")
    if result["kept"]:
        yield f"  the history before it: {render.visible(result['kept'])}"
    if result["stopped"]:
        yield "  the server was stopped; the next call starts one"
