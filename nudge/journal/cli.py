"""The verbs of the journal: `nudge journal` with list, show, start, update, resolve, adopt and calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click

from nudge.cli import completion, output, params
from nudge.cli.app import verb, verb_group
from nudge.cli.output import EXIT_OK, Console, Styler
from nudge.cli.params import (
    NOTE_ID,
    UTC_TIME,
    option,
    project_options,
    project_params,
    read_text,
    resolve_project,
)
from nudge.cli.plain import Invocation
from nudge.cli.render import age_text, note_name, table
from nudge.cli.verbs import NOTES
from nudge.core import limits
from nudge.core.errors import NotFound
from nudge.core.text import escape
from nudge.journal.fields import DOMAINS, FIELDS, OUTCOMES, RESOLUTION

_STYLES = {"open": "yellow", "orphan": "cyan", "confirmed": "green", "falsified": "red", "abandoned": "dim"}
_COUNTS = (*OUTCOMES, "open")
_NO_ATTEMPT = "there is no attempt in this repo yet; an agent starts one with start_ghap, you with: nudge journal start"
_NO_CATEGORY = "other"  # the category of a root cause that was given without one
_GREEN_DIFFERENCE = 0.1  # largest difference of predicted and observed shares that is shown in green


def _id_argument(complete: completion.Complete) -> Callable[[params.F], params.F]:
    """Return the argument ID; `complete` offers the attempts that the verb takes."""
    return click.argument(
        "attempt_id", metavar="ID", type=NOTE_ID, help="The attempt, such as m12 or 12.", shell_complete=complete
    )


_since_option = option(
    "--since",
    type=UTC_TIME,
    metavar="WHEN",
    help="Only attempts started since WHEN: a date, an ISO time, or 7d (seven days ago).",
)
_session_option = option(
    "--session", metavar="ID", help="The session of the agent (default: the one that runs the command)."
)
_parallel_option = option("--parallel", is_flag=True, help="Allow it beside another open attempt of this session.")

verb_group(
    "journal",
    __name__,
    "An attempt records what an agent believed, did and expected, and the outcome. Without a command, lists the "
    "attempts in this repo.",
    "nudge journal",
    "nudge journal show m12",
    'nudge journal resolve m12 --outcome falsified --lesson "the cache was never the problem"',
    "nudge journal calibration",
    alone="list",
    group=NOTES,
    summary="list and resolve attempts: what agents tried, expected and got",
)


@verb(
    "journal list",
    "nudge journal list",
    "nudge journal list --outcome open --all-repos",
    "nudge journal list --domain debugging --since 30d --json",
    group=NOTES,
    summary="list attempts",
    operations=("nudge.list_ghap_entries",),
)
@project_options
@option("--outcome", type=click.Choice(("open", *OUTCOMES)), help="Only attempts with this outcome.")
@option("--domain", type=click.Choice(DOMAINS), help="Only attempts of this domain.")
@option("--session", "session_id", metavar="ID", help="Only attempts of this session.")
@_since_option
@params.limit_option(limits.DEFAULT_ATTEMPTS_LISTED, "attempts")
def list_attempts(
    invocation: Invocation, project: str | None, all_projects: bool, limit: int | None, **filters: Any
) -> int:
    """Prints open attempts first, then the latest: id, status, age, domain and goal. An orphan is an open attempt whose
    session has ended: `nudge journal adopt` takes it over."""
    console = invocation.console
    fields = {**project_params(resolve_project(project, all_projects)), **params.drop_none(limit=limit, **filters)}
    result = invocation.client().call("nudge.list_ghap_entries", fields)
    console.result(result, _table(console, result["entries"]))
    if not console.as_json:
        if result.get("more"):
            console.note(
                output.more_note(limit or limits.DEFAULT_ATTEMPTS_LISTED, limits.MAX_ATTEMPTS_LISTED, "attempts")
            )
        if not result["entries"]:
            console.note(_NO_ATTEMPT)
    return EXIT_OK


@verb(
    "journal show",
    "nudge journal show m12",
    "nudge journal show m12 --json",
    group=NOTES,
    summary="show an attempt in full",
    operations=("nudge.memory_get",),
)
@_id_argument(completion.attempts)
def show(invocation: Invocation, attempt_id: int) -> int:
    """Prints what was believed, done and expected, each update, the outcome and the lesson."""
    result = invocation.call("nudge.memory_get", {"id": attempt_id})
    if result["memory"]["kind"] != "attempt":
        raise NotFound(f"there is no attempt m{attempt_id}")
    console = invocation.console
    command = None if console.as_json else _observed_command(invocation, result["memory"]["metadata"])
    console.result(result, _full_lines(console, result["memory"], result["links"], command))
    return EXIT_OK


def _observed_command(invocation: Invocation, metadata: Mapping[str, Any]) -> str | None:
    """Return the command whose exit code was observed; None when its observation has expired."""
    number = (metadata.get("observed") or {}).get("observation")
    rows = invocation.call("nudge.get_observations", {"ids": [number]}) if number is not None else ()
    return next((str(row["content"]) for row in rows), None)


@verb(
    "journal start",
    'nudge journal start "make the tests pass" --predict "make test passes"',
    'nudge journal start "make login fast" --hypothesis "the lookup has no index" --action "add one"'
    ' --predict "make bench passes" --domain optimization --confidence 0.8',
    group=NOTES,
    summary="start an attempt: what you believe, do and expect",
    operations=("nudge.start_ghap",),
)
@click.argument("goal", metavar="GOAL", help="What you want to achieve.")
@params.field_options(FIELDS)
@_session_option
@_parallel_option
def start(invocation: Invocation, goal: str, parallel: bool, session: str | None, **fields: Any) -> int:
    """Run this before you act on a guess. A session has one open attempt at a time, unless --parallel is given. Prints
    the id of the attempt."""
    fields = params.drop_none(goal=goal, session_id=session, parallel=parallel or None, **fields)
    result = invocation.call("nudge.start_ghap", fields)
    console, name = invocation.console, note_name(result["id"])
    done = console.styler.done(f"{console.styler.paint('bold', name)} is open")
    console.result(result, [done, f"  when you know: nudge journal resolve {name} --outcome {'|'.join(OUTCOMES)}"])
    return EXIT_OK


@verb(
    "journal update",
    'nudge journal update m12 --note "the index is there already"',
    'nudge journal update m12 --hypothesis "the pool is too small" --confidence 0.5',
    group=NOTES,
    summary="record what changed in an open attempt",
    operations=("nudge.update_ghap",),
)
@_id_argument(completion.open_attempts)
@option("--note", metavar="TEXT", help="What you found out.")
@params.field_options(FIELDS, is_new=False)
def update(invocation: Invocation, attempt_id: int, **fields: Any) -> int:
    """Earlier values are kept as iterations, which `nudge journal show` prints."""
    result = invocation.call("nudge.update_ghap", {"id": attempt_id, **params.drop_none(**fields)})
    console = invocation.console
    name = console.styler.paint("bold", note_name(result["id"]))
    console.result(result, [console.styler.done(f"{name} is in iteration {result['iteration_count']}")])
    return EXIT_OK


@verb(
    "journal resolve",
    'nudge journal resolve m12 --outcome confirmed --lesson "read the plan before adding an index"',
    'nudge journal resolve m12 --outcome abandoned --result "no longer needed"',
    group=NOTES,
    summary="record the outcome of an attempt, and its lesson",
    operations=("nudge.resolve_ghap",),
)
@_id_argument(completion.open_attempts)
@params.field_options(RESOLUTION)
def resolve(invocation: Invocation, attempt_id: int, lesson: str | None, **fields: Any) -> int:
    """Takes any open attempt, whatever session it belongs to. An attempt is resolved only once. The lesson is stored as
    a note, which agents in this repo are told when a prompt or a file is about it."""
    console = invocation.console
    fields = params.drop_none(lesson=None if lesson is None else read_text(lesson), **fields)
    result = invocation.call("nudge.resolve_ghap", {"id": attempt_id, **fields})
    name = console.styler.paint("bold", note_name(result["id"]))
    lines = [console.styler.done(f"{name} is {result['status']} ({result['confidence_tier']})")]
    if "lesson_id" in result:
        lines.append(f"  lesson: {note_name(result['lesson_id'])}, told when a prompt or a file is about it")
    console.result(result, lines)
    return EXIT_OK


@verb(
    "journal adopt",
    "nudge journal adopt m12 --session 4f1c2a9e",
    group=NOTES,
    summary="take over an attempt whose session has ended",
    operations=("nudge.get_orphaned_ghap",),
)
@_id_argument(completion.orphans)
@_session_option
@_parallel_option
def adopt(invocation: Invocation, attempt_id: int, session: str | None, parallel: bool) -> int:
    """Works only when the session that owns the attempt has ended, or was not seen for 30 minutes. Prints the session
    that owns it now."""
    console = invocation.console
    fields = params.drop_none(adopt=attempt_id, session_id=session, parallel=parallel or None)
    result = invocation.call("nudge.get_orphaned_ghap", fields)
    name = console.styler.paint("bold", note_name(result["id"]))
    console.result(result, [console.styler.done(f"{name} belongs to session {escape(result['session_id'])}")])
    return EXIT_OK


@verb(
    "journal calibration",
    "nudge journal calibration",
    "nudge journal calibration --all-repos --since 90d",
    group=NOTES,
    summary="compare predicted confidence with actual outcomes",
    operations=("nudge.journal_calibration",),
)
@project_options
@_since_option
def calibration(invocation: Invocation, project: str | None, all_projects: bool, since: str | None) -> int:
    """Prints for each domain the average confidence that agents stated, the share of predictions that came true, and
    the number of attempts by outcome. Abandoned and open attempts count in neither average."""
    console = invocation.console
    fields = {**project_params(resolve_project(project, all_projects)), **params.drop_none(since=since)}
    result = invocation.client().call("nudge.journal_calibration", fields)
    console.result(result, _calibration_lines(console.styler, result))
    if not result["domains"] and not console.as_json:
        console.note(_NO_ATTEMPT)
    return EXIT_OK


# Lines


def _table(console: Console, entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield `m12  open  2m ago  debugging  GOAL` for each attempt, with the repo unless all have the same."""
    styler, several = console.styler, len({entry["namespace"] for entry in entries}) > 1
    rows = [
        (
            note_name(entry["id"]),
            "orphan" if entry.get("is_orphan") else entry["status"],
            age_text(entry["updated_at"]),
            entry.get("domain", "other"),
            *([escape(entry["namespace"])] if several else []),
            escape(" ".join(entry["goal"].split())),
        )
        for entry in entries
    ]
    return table(styler, rows, paint={0: styler.bold, 1: lambda status: _status(styler, status)})


def _status(styler: Styler, text: str) -> str:
    style = _STYLES.get(text.rstrip())
    return styler.paint(style, text) if style else text


def _full_lines(
    console: Console, note: Mapping[str, Any], links: Sequence[Mapping[str, Any]], command: str | None
) -> Iterator[str]:
    styler, metadata = console.styler, note["metadata"]
    title = escape(" ".join(note["title"].split()))
    yield f"{styler.paint('bold', note_name(note['id']))}  {styler.paint('bold', title)}"
    facts = [(name, text) for name, text in _facts(styler, note, metadata, command) if text]
    lessons = [link["source_id"] for link in links if link["relation"] == "derived_from"]
    facts += [("lesson note", note_name(lesson)) for lesson in lessons]
    yield from (f"  {styler.paint('dim', f'{name}:')} {text}" for name, text in facts)
    for iteration in metadata.get("iterations", ()):
        yield f"  {styler.paint('dim', age_text(iteration['at']) + ':')} {escape(_iteration_text(iteration))}"


def _outcome_facts(metadata: Mapping[str, Any], command: str | None) -> Iterator[tuple[str, str]]:
    if (observed := metadata.get("observed")) is not None:
        number = f"#{observed.get('observation')}"
        subject = f"{number} {' '.join(command.split())}" if command else number
        yield "observed", escape(f"{subject} exited with {observed.get('exit_code')}: {observed.get('outcome')}")
    for name in ("result", "surprise"):
        yield name, escape(str(metadata.get(name) or ""))
    cause = metadata.get("root_cause") or {}
    parts = [cause.get("category"), cause.get("description")]
    yield "root cause", escape(": ".join(str(part) for part in parts if part and part != _NO_CATEGORY))
    yield "lesson", escape("; ".join(str(text) for text in (metadata.get("lesson") or {}).values()))


def _facts(
    styler: Styler, note: Mapping[str, Any], metadata: Mapping[str, Any], command: str | None
) -> Iterator[tuple[str, str]]:
    status = metadata.get("outcome", "open")
    tier = metadata.get("confidence_tier")
    yield "status", _status(styler, escape(status)) + (f" ({escape(tier)})" if tier else "")
    for name in ("hypothesis", "action", "prediction"):
        yield name, escape(str(metadata.get(name) or "")) or styler.paint("dim", "not given")
    if (confidence := metadata.get("confidence")) is not None:
        yield "confidence", _percent(confidence)
    yield from _outcome_facts(metadata, command)
    yield "domain", escape(", ".join(str(metadata[part]) for part in ("domain", "strategy") if part in metadata))
    yield "repo", escape(note["namespace"])
    yield "session", escape(str(metadata.get("session_id") or ""))
    yield "started", f"{note['created_at']} ({age_text(note['created_at'])})"
    if ended := metadata.get("resolved_at"):
        yield "resolved", f"{ended} ({age_text(ended)})"


def _iteration_text(iteration: Mapping[str, Any]) -> str:
    if "adopted_by" in iteration:
        return f"adopted by session {iteration['adopted_by']} from {iteration['from']}"
    was = "; ".join(f"{name} was: {text}" for name, text in (iteration.get("was") or {}).items())
    return "; ".join(part for part in (str(iteration.get("note") or ""), was) if part)


def _calibration_lines(styler: Styler, result: Mapping[str, Any]) -> Iterator[str]:
    """Yield a row for each domain, and one for all."""
    if not result["domains"]:
        return
    rows = [*result["domains"], {"domain": "all", **result["total"]}]
    cells = [("domain", "predicted", "observed", *_COUNTS)]
    cells += [
        (
            row["domain"],
            _percent(row.get("predicted")),
            _percent(row.get("observed")),
            *(str(row[name]) for name in _COUNTS),
        )
        for row in rows
    ]
    widths = [output.widest(column) for column in zip(*cells, strict=True)]
    for row, (domain, *numbers) in zip([None, *rows], cells, strict=True):
        texts = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
        if row is not None and "observed" in row and "predicted" in row:
            is_close = abs(row["observed"] - row["predicted"]) <= _GREEN_DIFFERENCE
            texts[1] = styler.paint("green" if is_close else "yellow", texts[1])
        line = "  ".join([output.pad(escape(domain), widths[0]), *texts])
        yield line if row is not None else styler.paint("dim", line)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{round(100 * share)} %"
