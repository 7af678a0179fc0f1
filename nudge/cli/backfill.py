"""`nudge backfill`: what happened before Nudge was there, from the transcripts that Claude Code keeps."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager

from nudge import config, paths
from nudge import switches as switch
from nudge.cli import exits, render
from nudge.cli.connection import connect
from nudge.cli.console import Console
from nudge.cli.context_flags import absolute
from nudge.cli.history_view import moment
from nudge.clients import claude_code
from nudge.clients.client import Home
from nudge.context import Context
from nudge.errors import Invalid, NotFound
from nudge.usecases import backfill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge backfill", "nudge backfill --dry-run", "nudge backfill --since 2026-10-01 --project api")


def configure(parser: Parser) -> None:
    parser.add_argument("directory", metavar="DIR", nargs="?", help="where the transcripts are (~/.claude/projects)")
    parser.add_argument("--dry-run", action="store_true", help="count what there is, and record nothing")
    parser.add_argument("--since", type=moment, metavar="DATE", help="only what happened since then")
    parser.add_argument("--project", metavar="NAME", help="only what happened in this project")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    root = absolute(arguments.directory or claude_code.CLIENT.transcripts(Home()))
    if not os.path.isdir(root):
        raise NotFound(f"there are no transcripts in {root}; say where they are with: nudge backfill DIR")
    only = backfill.Only(since=arguments.since, project=arguments.project, wanted=_wanted())
    state = backfill.State(paths.runtime_dir(os.environ), paths.database_file(os.environ))
    files = backfill.find(root, state, only.since)
    work = backfill.Backfill(files, only, state, None if arguments.dry_run else connect(arguments).call)
    try:
        with _progress(console, sum(file.size - file.offset for file in files)) as advance:
            result = work.run(advance)
    except KeyboardInterrupt:
        console.remark("stopped; what was recorded stays, and the next run goes on from here")
        return exits.INTERRUPTED
    console.result(result, _lines(console.pen, result, dry_run=arguments.dry_run))
    _complain(console, work)
    return exits.DONE


def _wanted() -> Callable[[Iterable[str], Context], bool]:
    """What is switched off, or ignored, now is not recorded of the past either."""
    directory = paths.runtime_dir(os.environ)
    if off := switch.why_off(os.environ, directory, Context()):
        raise Invalid(f"recording is off, since {off.reason}; turn it on with: {off.cure}")
    switches, settings = switch.load(directory), config.load(os.environ)

    def wanted(touched: Iterable[str], context: Context) -> bool:
        ignored = bool(settings.ignore) and any(switch.is_ignored(path, settings.ignore) for path in touched if path)
        return not ignored and not switches.covers(context)

    return wanted


@contextmanager
def _progress(console: Console, total: int) -> Iterator[Callable[[int], None]]:
    """A bar for whoever watches; the answer itself is on the other stream."""
    if console.as_json or not total or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _bytes: None
        return
    from rich.console import Console as Screen
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading transcripts"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Screen(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)


def _lines(pen: render.Pen, result: dict[str, Any], *, dry_run: bool) -> Iterator[str]:
    if not result["files"]:
        yield "nothing new to read"
        return
    transcripts = f"{result['files']:,} transcript{'s' if result['files'] != 1 else ''}"
    if not dry_run:
        yield pen.done(
            f"{result['new']:,} new of {result['events']:,} events in {transcripts}, {result['seconds']:.1f} s"
        )
        return
    width = render.widest(result["types"])
    yield from (f"{render.padded(name, width)}  {count:>9,}" for name, count in result["types"].items())
    yield f"nothing was recorded (--dry-run): {result['events']:,} events in {transcripts}"


def _complain(console: Console, work: backfill.Backfill) -> None:
    for path, reason in work.unreadable.items():
        console.remark(f"passed over: {render.visible(f'{path}: {reason}')}")
    for reason, count in work.refusals.items():
        console.remark(f"refused: {count:,} events: {render.visible(reason)}")
