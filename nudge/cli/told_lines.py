"""The verbs about what agents were told: told, stats."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from nudge import limits
from nudge.cli import output, params
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK, Pen
from nudge.cli.params import option, project_options, project_params, resolve_project
from nudge.cli.plain import Invocation
from nudge.clock import ago
from nudge.text import escape

_BAR = 30  # characters


@verb("told", "nudge told", "nudge told --all-projects --limit 100", "nudge told --never m12", "nudge told --allow m12")
@project_options
@params.limit_option(limits.DEFAULT_TOLD_LISTED)
@option("--never", metavar="LINE", help="Never tell this line again in this project; its number or name.")
@option("--allow", metavar="LINE", help="Let it be told again.")
def list_told_lines(
    invocation: Invocation,
    project: str | None,
    all_projects: bool,
    limit: int | None,
    never: str | None,
    allow: str | None,
) -> int:
    """Every line that an agent was told, why, and whether it was used afterwards: its command run, its id fetched, its
    file opened."""
    console = invocation.console
    if (line := never or allow) is not None:
        where = project_params(resolve_project(project, all_projects))
        result = invocation.client().call("nudge.never_tell", {"line": line, "never": never is not None, **where})
        done = "is never told again" if result["never"] else "may be told again"
        console.result(result, [console.pen.done(f"{escape(result['line'])} {done}")])
        return EXIT_OK
    fields = {**project_params(resolve_project(project, all_projects)), **params.drop_none(limit=limit)}
    result = invocation.client().call("nudge.told", fields)
    console.result(result, _told_lines(console.pen, result["lines"]))
    if not result["lines"] and not console.as_json:
        console.note("no agent was told anything here yet")
    if len(result["lines"]) == (limit or limits.DEFAULT_TOLD_LISTED) and not console.as_json:
        console.note("there may be older ones; show more with: nudge told --limit N")
    if result["never"] and not console.as_json:
        console.note(escape(f"never told: {', '.join(result['never'])}"))
    return EXIT_OK


def _told_lines(pen: Pen, lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Two lines for each: when, and what became of it; then what was told."""
    now = time.time()
    for line in lines:
        used = f"used {ago(now - line['used_at'])}" if line["used_at"] else "not used"
        state = "not told (shadow)" if line["is_shadow"] else used
        head = f"{line['id']}  {ago(now - line['timestamp'])}  on {line['moment']}  {state}  {line['name']}"
        yield pen.paint("dim", escape(f"{head}: {line['reason']}"))
        yield f"  {escape(line['text'])}"


@verb("stats", "nudge stats", "nudge stats --all-projects", "nudge stats --json")
@project_options
def stats(invocation: Invocation, project: str | None, all_projects: bool) -> int:
    """By week: lines told and used, known failures that were met again, and failures that a line at the start spared.
    With NUDGE_TELL=shadow:20%, also failures and commands of sessions that were told and of those that were not."""
    console = invocation.console
    result = invocation.client().call("nudge.stats", project_params(resolve_project(project, all_projects)))
    console.result(result, [*_week_lines(result["weeks"]), *_comparison_lines(result["comparison"])])
    if not result["weeks"] and not console.as_json:
        console.note("no agent was told anything here yet")
    return EXIT_OK


def _week_lines(weeks: Sequence[dict[str, Any]]) -> Iterator[str]:
    most = max((week["told"] for week in weeks), default=0) or 1
    for week in weeks:
        day = time.strftime("%Y-%m-%d", time.gmtime(week["week"]))
        bar = "#" * round(_BAR * week["used"] / most)
        bar += "-" * (round(_BAR * week["told"] / most) - len(bar))
        counts = f"told {week['told']}, used {week['used']}, repeated {week['repeated']}, spared {week['spared']}"
        yield f"{day}  {bar:<{_BAR}}  {counts}"


def _comparison_lines(comparison: dict[str, Any] | None) -> Iterator[str]:
    if comparison is None:
        return
    for name in ("told", "shadow"):
        side = comparison[name]
        yield f"{name}: {output.count(side['sessions'], 'session')}, each with {_intervals(side)}"
    yield f"difference: {_intervals(comparison['difference'])}"


def _intervals(side: dict[str, Any]) -> str:
    return ", ".join(f"{what} {_interval(side[what])}" for what in ("failures", "commands"))


def _interval(interval: dict[str, float | None]) -> str:
    if interval["low"] is None:
        return f"{interval['mean']:g} (too few sessions for an interval)"
    return f"{interval['mean']:g} ({interval['low']:g} to {interval['high']:g})"
