"""`nudge status`: which server runs, and how it is. Never starts one."""

from __future__ import annotations

from nudge.interfaces.cli import exits, render
from nudge.interfaces.cli.connection import connect
from nudge.interfaces.cli.console import Console

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.interfaces.cli.parsing import Parser

EXAMPLES = ("nudge status", "nudge status --json")

FIELDS = (
    "role", "pid", "port", "socket", "version", "started", "generation",
    "session", "members", "hints", "durability", "spool", "owner",
)  # fmt: skip


def configure(parser: Parser) -> None:
    del parser


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    status = connect(arguments).status()
    if status is not None:
        console.result(status, _lines(console.pen, status))
        return exits.DONE
    if console.as_json:
        console.json(dict.fromkeys(FIELDS))
    else:
        console.remark("no server runs; one starts with the next command that needs it")
    return exits.NO_SERVER


def _lines(pen: render.Pen, status: dict[str, Any]) -> Iterator[str]:
    """What every server says first, then whatever else this one says."""
    shown = {name: status[name] for name in (*FIELDS, *status) if name in status}
    for name, value in shown.items():
        yield f"{pen.paint('bold', name.ljust(render.widest(shown)))}  {_words(value)}"


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{render.visible(name)} {_words(part)}" for name, part in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(_words, value)) or "-"
    if value is None or isinstance(value, bool):
        return {None: "-", True: "yes", False: "no"}[value]
    return render.visible(str(value))
