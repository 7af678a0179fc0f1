"""The verbs about what agents are told: inject, told, stats, statusline, replay."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import click

from nudge.cli import completion, output, params, plain
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK, Console, Styler
from nudge.cli.params import option, project_options, project_params, resolve_project
from nudge.cli.plain import Invocation
from nudge.cli.prompts import progress
from nudge.cli.render import empty_note, explanation, table, time_ago
from nudge.cli.verbs import TELLING
from nudge.clients import registry
from nudge.core import limits, paths
from nudge.core.context import project_name, resolve
from nudge.core.errors import NotFound
from nudge.core.text import escape
from nudge.settings import switches as switch

_NOTHING_TOLD = "no agent was told anything here yet"


# inject


@verb(
    "inject",
    "nudge inject",
    "nudge inject --explain",
    "nudge inject --prompt 'move the sessions into postgres'",
    "nudge inject --source compact --cwd ~/code/api",
    group=TELLING,
    summary="print what an agent that starts here is told",
    operations=("nudge.inject",),
)
@option(
    "--source",
    type=click.Choice(["startup", "resume", "clear", "compact"]),
    default="startup",
    help="How the session starts (default: startup).",
)
@option(
    "--client",
    type=click.Choice(registry.names()),
    help="Leave out what stands in the files that this client reads by itself.",
)
@option("--explain", is_flag=True, help="Also print the parts of the score of each line, and why it is there.")
@option("--prompt", metavar="TEXT", help="Print what an agent is told about this prompt instead.")
@params.context_options
def inject(
    invocation: Invocation,
    source: str,
    client: str | None,
    explain: bool,
    prompt: str | None,
    env: tuple[tuple[str, str], ...],
    **where: str | None,
) -> int:
    """Prints the text as the agent gets it. Nothing is recorded as told."""
    console = invocation.console
    off = switch.why_off(os.environ, paths.runtime_dir(), resolve(where["cwd"]))
    if off is not None:
        console.result({"text": "", "items": []}, [])
        console.note(escape(f"recording and telling are off {off.where}; turn them on with: {off.fix}"))
        return EXIT_OK
    if prompt is not None:
        about = {"prompt": prompt, "context": plain.context_params(**where)}
        result = invocation.client(env).call("nudge.inject", about)
        console.result(result, map(escape, result["text"].splitlines()))
        if not result["text"] and not console.as_json:
            console.note("nothing is known here about this prompt, so an agent is told nothing")
        return EXIT_OK
    fields = {"source": source, "client": client, "explain": explain, "context": plain.context_params(**where)}
    result = invocation.client(env).call("nudge.inject", fields)
    console.result(result, _inject_lines(console, result))
    if not result["text"] and not console.as_json:
        console.note("there are no hints or observations for this directory yet, so an agent is told nothing")
    return EXIT_OK


def _inject_lines(console: Console, result: dict[str, Any]) -> Iterator[str]:
    """Yield the text, and below it the explanation of each of its lines, in their order."""
    yield from map(escape, result["text"].splitlines())
    if result["items"]:
        yield ""
        yield from explanation(console, {"items": result["items"], "metadata": {"query": None}})


# told


@verb(
    "told",
    "nudge told",
    "nudge told --all-repos --limit 100",
    "nudge told --never m12",
    "nudge told --allow m12",
    group=TELLING,
    summary="list what agents were told, and whether they used it",
    operations=(
        "nudge.told",
        "nudge.never_tell",
    ),
)
@project_options
@params.limit_option(limits.DEFAULT_TOLD_LISTED)
@option("--session", metavar="ID", help="Only what this session was told.")
@option("--line", metavar="NAME", help="Only this line, such as m12 or api/test.", shell_complete=completion.told)
@option("--before", type=int, metavar="N", help="Only lines before the one with this number.")
@option(
    "--never",
    metavar="LINE",
    help="Never tell this line again in this repo; LINE is its number or name.",
    shell_complete=completion.told,
)
@option("--allow", metavar="LINE", help="Allow this line to be told again.", shell_complete=completion.banned)
def list_told_lines(
    invocation: Invocation,
    project: str | None,
    all_projects: bool,
    limit: int | None,
    session: str | None,
    line: str | None,
    before: int | None,
    never: str | None,
    allow: str | None,
) -> int:
    """Prints each line that an agent was told, why, and whether the agent used it: ran its command, fetched its id or
    opened its file after it was told, and not before."""
    console = invocation.console
    if (changed := never or allow) is not None:
        where = project_params(resolve_project(project, all_projects))
        result = invocation.client().call("nudge.never_tell", {"line": changed, "never": never is not None, **where})
        done = "is never told again" if result["never"] else "may be told again"
        console.result(result, [console.styler.done(f"{escape(result['line'])} {done}")])
        return EXIT_OK
    chosen = params.drop_none(limit=limit, session_id=session, line=line, before=before)
    result = invocation.client().call(
        "nudge.told", {**project_params(resolve_project(project, all_projects)), **chosen}
    )
    console.result(result, _told_lines(console.styler, result["lines"]))
    if not result["lines"] and not console.as_json:
        console.note(empty_note(invocation.client(), project, _NOTHING_TOLD))
    if result["next"] and not console.as_json:
        shown = f"{len(result['lines']):,} of {result['total']:,}"
        console.note(f"{shown}; show older ones with: nudge told --before {result['next']}, or more with --limit N")
    if result["never"] and not console.as_json:
        console.note(escape(f"never told: {', '.join(result['never'])}"))
    return EXIT_OK


_UNUSED = {"before": "not used: done before it was told", "repeated": "not used: another line that says the same was"}


def _told_lines(styler: Styler, lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield two lines for each line that was told: when, why and whether it was used; then its text."""
    for line in lines:
        used = f"used {time_ago(line['used_at'])}" if line["used_at"] else "not used"
        state = "not told (shadow)" if line["is_shadow"] else _UNUSED.get(line["unused"], used)
        head = f"{line['id']}  {time_ago(line['timestamp'])}  on {line['moment']}  {state}  {line['name']}"
        yield styler.paint("dim", escape(f"{head}: {line['reason']}"))
        yield f"  {escape(line['text'])}"


# stats

_STATS_HEADING = ("week", "moment", "told", "used", "in vain", "met again", "answered", "spared")
_SHADOW_HEADING = ("withheld", "done anyway", "met again", "spared")
_STATS_LEGEND = (
    "told = used + in vain; used: done after it was told, and not before; met again: failures known by then; "
    "answered: of them, those told what works; spared: told at the start and not met"
)
_SHADOW_LEGEND = "shadow, the right half: sessions that were told nothing, and what they did without it"


@verb(
    "stats",
    "nudge stats",
    "nudge stats --all-repos",
    "nudge stats --json",
    group=TELLING,
    summary="show by week what was told, used and told in vain",
    operations=("nudge.stats",),
)
@project_options
def stats(invocation: Invocation, project: str | None, all_projects: bool) -> int:
    """Prints for each week, and each kind of moment in it: the lines that were told, used and told in vain, and the
    known failures that were met again, answered and spared. With NUDGE_TELL=shadow:20%, the same counts of the sessions
    that were told nothing stand beside them, and both are compared."""
    console = invocation.console
    result = invocation.client().call("nudge.stats", project_params(resolve_project(project, all_projects)))
    console.result(result, _stats_lines(console.styler, result))
    if not result["weeks"] and not console.as_json:
        console.note(empty_note(invocation.client(), project, _NOTHING_TOLD))
    return EXIT_OK


def _stats_lines(styler: Styler, result: dict[str, Any]) -> Iterator[str]:
    """Yield a table of the weeks and what its counts mean; then, if some sessions were told nothing, a comparison with
    those that were told."""
    weeks = result["weeks"]
    if weeks:
        has_shadow = any(week["shadow"] for week in weeks)
        heading = (*_STATS_HEADING, *(("|", *_SHADOW_HEADING) if has_shadow else ()))
        rows = [heading, *(row for week in weeks for row in _week_rows(week, has_shadow=has_shadow))]
        for number, cells in enumerate(_align_numbers(rows)):
            line = "  ".join(cells).rstrip()
            yield styler.paint("bold", line) if number == 0 else line
        yield styler.paint("dim", _STATS_LEGEND)
        if has_shadow:
            yield styler.paint("dim", _SHADOW_LEGEND)
    yield from _comparison_lines(result["comparison"])


def _week_rows(week: dict[str, Any], *, has_shadow: bool) -> Iterator[tuple[str, ...]]:
    """Yield the row of a week, and one for each kind of moment in it."""
    day = time.strftime("%Y-%m-%d", time.gmtime(week["week"]))
    shadow = week["shadow"] or {"moments": []}
    moments = {row["moment"]: row for row in week["moments"]}
    withheld = {row["moment"]: row for row in shadow["moments"]}
    sides = [("all", week, shadow), *((name, moments.get(name, {}), withheld.get(name, {})) for name in _MOMENTS)]
    for name, told, other in sides:
        if name == "all" or told or other:
            counts = [
                str(told.get(count, 0)) for count in ("told", "used", "in_vain", "met_again", "answered", "spared")
            ]
            of_shadow = [str(other.get(count, 0)) for count in ("told", "used", "met_again", "spared")]
            yield (day if name == "all" else "", name, *counts, *(("|", *of_shadow) if has_shadow else ()))


_MOMENTS = ("start", "failure", "prompt", "file", "attempt")


def _align_numbers(rows: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield the rows with their columns padded; numbers, behind the first two columns, to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield [
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]


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


# statusline


@verb(
    "statusline",
    "nudge statusline",
    group=TELLING,
    summary="print one line for the status line of Claude Code",
    operations=("nudge.statusline",),
)
def statusline(invocation: Invocation) -> int:
    """Claude Code runs this if it was connected with --statusline. Reads one JSON object from stdin. Prints how many
    lines the session was told and used, and how many others are at work here; nothing if there is nothing to say."""
    from nudge import statusline as status_line

    del invocation
    return status_line.main(None if sys.stdin is None else sys.stdin.buffer, os.environ)


# replay


@verb(
    "replay",
    "nudge replay",
    "nudge replay ~/.claude/projects/-home-me-api",
    "nudge replay --json",
    group=TELLING,
    summary="show which failures of past sessions Nudge would have answered",
)
@click.argument(
    "paths_given",
    metavar="[TRANSCRIPT]...",
    nargs=-1,
    type=click.Path(),
    help="Transcripts, or directories of them (default: ~/.claude/projects, or projects in CLAUDE_CONFIG_DIR).",
)
def replay(invocation: Invocation, paths_given: tuple[str, ...]) -> int:
    """Reads the transcripts in order of time, and learns from them as a server does. Prints the failures that were
    known when they were met again, what Nudge would have told, and whether that is what worked then. Stores nothing,
    and needs no server."""
    from nudge.clients import claude_code
    from nudge.clients.client import Home
    from nudge.history import transcripts

    console = invocation.console
    roots = [plain.existing_path(path, "name transcripts, or directories of them") for path in paths_given]
    roots = roots or [plain.absolute_path(claude_code.CLIENT.transcripts(Home()))]
    files = transcripts.find_all(roots)
    if not files:
        raise NotFound(f"there are no transcripts in {', '.join(roots)}; name others with: nudge replay PATH")
    with progress(console, "reading transcripts", sum(file.size for file in files)) as advance:
        commands = transcripts.read_commands(files, advance)
    with progress(console, "replaying commands", len(commands.events)) as advance:
        result = transcripts.replay(commands, advance)
    console.result(result, _replay_lines(console, result))
    for line in () if console.as_json else _skipped_lines(result):
        console.note(line)
    return EXIT_OK


_REPLAY_HEADING = ("date", "repo", "Nudge", "right", "failed", "what Nudge knew")
_RIGHT = {True: "yes", False: "no", None: "?"}


def _replay_lines(console: Console, result: dict[str, Any]) -> Iterator[str]:
    """Yield the counts, and a row for each known failure: a table on a terminal, whole lines in a pipe."""
    styler = console.styler
    yield (
        f"read {result['files']:,} transcripts: {result['sessions']:,} sessions, {result['commands']:,} commands, "
        f"{result['failures']:,} failures, {result['failures_met_again']:,} of them known by then"
    )
    yield styler.done(
        f"had Nudge been there: {result['failures_spared']:,} spared at the start, {result['failures_answered']:,} "
        f"answered at once, {result['commands_saved']:,} commands saved"
    )
    told = result["failures_spared"] + result["failures_answered"]
    open_answers = told - result["answers_right"] - result["answers_wrong"]
    yield (
        f"of {told:,} answers, {result['answers_right']:,} are what worked then, {result['answers_wrong']:,} are not, "
        f"after {open_answers:,} nothing worked"
    )
    rows = [_replay_row(line) for line in result["told"]]
    if not console.is_terminal:
        yield from ("  ".join((*row[:-2], f"{row[-2]} -> {row[-1]}")) for row in rows)
        return
    yield from table(styler, rows, heading=_REPLAY_HEADING if rows else ())


def _replay_row(line: dict[str, Any]) -> tuple[str, ...]:
    day = time.strftime("%Y-%m-%d", time.localtime(line["timestamp"]))
    instead = f" (what worked: {line['instead']})" if line["instead"] else ""
    right = "" if line["kind"] == "missed" else _RIGHT[line["worked"]]
    return (
        day,
        escape(project_name(line["project"])),
        line["kind"],
        right or "-",
        escape(line["subject"]),
        escape(line["answer"] + instead),
    )


def _skipped_lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield what was skipped, if anything was."""
    counts = {
        "without a session of Claude Code": output.count(result["foreign"], "file") if result["foreign"] else "",
        "that cannot be read": output.count(result["unreadable"], "file") if result["unreadable"] else "",
        "that are damaged": output.count(result["damaged"], "line") if result["damaged"] else "",
    }
    skipped = [f"{count} {which}" for which, count in counts.items() if count]
    if skipped:
        yield f"skipped: {', '.join(skipped)}"
