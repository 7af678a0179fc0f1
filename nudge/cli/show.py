"""`nudge show`: everything that is known of some observations."""

from __future__ import annotations

from nudge.cli import exits, history_view, render
from nudge.cli.connection import connect
from nudge.cli.console import Console

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge show 42", "nudge show 42 43 --json", "nudge search stale --ids | xargs nudge show")

_FACTS = ("session_id", "project", "source_event", "tool_name", "file_path")


def configure(parser: Parser) -> None:
    parser.add_argument(
        "ids", metavar="ID", nargs="+", type=history_view.identity, help="observations, by their number"
    )


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    found = history_view.fetch(connect(arguments), arguments.ids)
    console.result(found, (line for one in found for line in _lines(console.pen, one)))
    known = {one["id"] for one in found}
    if gone := [f"#{number}" for number in dict.fromkeys(arguments.ids) if number not in known]:
        console.remark(f"not there (any more): {', '.join(gone)}")
    return exits.DONE if found else exits.NOTHING_FOUND


def _lines(pen: render.Pen, one: dict[str, Any]) -> Iterator[str]:
    pinned = "  (pinned)" if one.get("is_pinned") else ""
    head = f"#{one['id']}  {render.visible(one['obs_type'])}"
    yield f"{pen.paint('bold', head)}  {history_view.local(one['timestamp'])} ({history_view.age(one['timestamp'])}){pinned}"
    yield from (f"  {line}" for line in render.visible(one["content"], lines=True).split("\n"))
    yield from _fields(pen, {name: one[name] for name in _FACTS if one.get(name)})
    yield from _fields(pen, one.get("metadata") or {})


def _fields(pen: render.Pen, fields: dict[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        first, *more = _words(value).split("\n")
        yield f"  {pen.paint('dim', render.visible(name) + ':')} {first}"
        yield from (f"    {line}" for line in more)


def _words(value: Any) -> str:
    if isinstance(value, str):
        return render.visible(value, lines=True)
    import json

    return render.visible(json.dumps(value, ensure_ascii=False))
