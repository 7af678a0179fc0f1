"""`nudge sessions`: the latest sessions, of every project unless one is named."""

from __future__ import annotations

from nudge.cli import exits, history_view, render
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.parsing import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge sessions", "nudge sessions --project api --limit 50")


def configure(parser: Parser) -> None:
    parser.add_argument("--project", metavar="NAME", help="only of this project")
    parser.add_argument("--limit", type=whole, metavar="N", help="at most so many (20)")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    params = {**history_view.asked_of(arguments.project), **history_view.given(arguments, limit="limit")}
    found = connect(arguments).call("nudge.sessions", params)
    console.result(found, _lines(console.pen, found))
    if not console.as_json:
        for remark in _remarks(arguments, found):
            console.remark(render.visible(remark))
    return exits.DONE


def _remarks(arguments: Namespace, found: list[dict[str, Any]]) -> Iterator[str]:
    if not found and arguments.project is not None:
        yield f"no session of {arguments.project} is recorded; nudge sessions lists those of every project"
    elif not found:
        yield "no session is recorded yet; wire a client with: nudge connect"
    if arguments.project is None and (left_out := history_view.left_out()):
        yield left_out


def _lines(pen: render.Pen, sessions: list[dict[str, Any]]) -> Iterator[str]:
    for session_id, *cells, intent in history_view.columns(_cells(session) for session in sessions):
        taken = len(session_id) + sum(len(cell) + 2 for cell in cells) + 2
        yield "  ".join([pen.paint("bold", session_id), *cells, pen.clip(intent, taken)]).rstrip()


def _cells(session: dict[str, Any]) -> list[str]:
    """What it was about comes last: it is as long as it likes."""
    intent = (session.get("summary") or {}).get("intent")
    return [
        history_view.short(session["session_id"]),
        history_view.local(session["started_at"], "%Y-%m-%d %H:%M"),
        _lasted(session),
        render.visible(str(session.get("project") or "-")),
        render.visible(str(session.get("client") or "-")),
        f"{session['observation_count']} obs",
        history_view.quoted(intent) if intent else "",
    ]


def _lasted(session: dict[str, Any]) -> str:
    if session.get("ended_at") is None:
        return "open"
    from nudge.usecases.measures import span

    return span(session["ended_at"] - session["started_at"])
