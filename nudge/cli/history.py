"""`nudge history`: which sessions touched a file, and why; without a file, which files were touched lately."""

from __future__ import annotations

from nudge.cli import exits, history_view, render
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.context_flags import absolute
from nudge.cli.parsing import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge history", "nudge history src/auth.py", "nudge history src/auth.py --after 30d --limit 50")

_LOOKED_AT = 100  # recent observations, among which files are looked for
_SHOWN = 20
_TOLD = ("timestamp", "obs_type", "id", "session_id", "project")


def configure(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="the file; left out, the files touched lately")
    parser.add_argument("--limit", type=whole, metavar="N", help="at most so many touches (10), or files (20)")
    history_view.add_project(parser)
    history_view.add_window(parser, "touches")


def run(arguments: Namespace) -> int:
    return _recent_files(arguments) if arguments.file is None else _one_file(arguments)


def _one_file(arguments: Namespace) -> int:
    """A path has one history whatever project it is called from."""
    console = Console(as_json=arguments.json)
    params = history_view.given(arguments, before="before", after="after", limit="limit")
    result = connect(arguments).call("nudge.file_history", {"file_path": absolute(arguments.file), **params})
    console.result(result, _sessions(console.pen, result))
    if not result["sessions"] and not console.as_json:
        console.remark(
            f"nothing is known of {render.visible(result['file_path'])}; nudge history lists files that were touched"
        )
    return exits.DONE


def _sessions(pen: render.Pen, result: dict[str, Any]) -> Iterator[str]:
    for session in result["sessions"]:
        began = history_view.local(session["started_at"], "%Y-%m-%d %H:%M")
        name = pen.paint("bold", history_view.short(session["session_id"]))
        intent = history_view.quoted(session["summary_intent"]) if session.get("summary_intent") else ""
        yield f"{name}  {began}  {render.visible(str(session.get('project') or '-'))}  {pen.clip(intent, 40)}".rstrip()
        for touch, line in zip(session["touches"], _touches(pen, session["touches"], result["file_path"]), strict=True):
            yield line
            if touch.get("prompt_content"):
                yield pen.paint("dim", f"      {pen.clip(history_view.quoted(touch['prompt_content']), 6)}")


def _touches(pen: render.Pen, touches: list[dict[str, Any]], path: str) -> Iterator[str]:
    """The path is the same in every line; what else is told of a touch is not."""
    rows = [
        {**touch, "content": "" if touch["content_preview"] == path else touch["content_preview"]} for touch in touches
    ]
    return history_view.table(pen, rows, clock="%Y-%m-%d %H:%M", indent="  ")


def _recent_files(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    project = history_view.project_of(arguments)
    params = {**history_view.asked_of(project), "limit": _LOOKED_AT}
    files = _files(connect(arguments).call("nudge.recent_context", params), arguments, project)
    console.result(files, history_view.table_of_projects(console.pen, files, project))
    if not files and not console.as_json:
        console.remark("no file was touched here yet, as far as is known; --all-projects looks everywhere")
    return exits.DONE


def _files(found: list[dict[str, Any]], arguments: Namespace, project: str | None) -> list[dict[str, Any]]:
    """Each once, the latest touched first. Recent context ranks other projects lower, but does not leave them out."""
    before, after = arguments.before or float("inf"), arguments.after or 0
    meant = [one for one in found if project in (None, one.get("project")) and after < one["timestamp"] < before]
    latest: dict[str, dict[str, Any]] = {}
    for one in sorted(meant, key=lambda one: (-one["timestamp"], -one["id"])):
        for path in _touched(one):
            latest.setdefault(path, {"file_path": path, **{name: one.get(name) for name in _TOLD}})
    return list(latest.values())[: max(arguments.limit or _SHOWN, 1)]


def _touched(one: dict[str, Any]) -> list[str]:
    """One change may be of several files."""
    named = (one.get("metadata") or {}).get("files") if str(one["obs_type"]).startswith("file_") else None
    return [path for path in (one.get("file_path"), *(named if isinstance(named, list) else ())) if path]
