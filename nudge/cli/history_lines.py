"""Functions that turn observations, sessions and what agents were told into lines for the terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nudge.cli import note_lines, output
from nudge.cli.output import Console, Pen
from nudge.clock import ago, last_time
from nudge.context import NO_CONTEXT, Context, is_below, is_project, resolve
from nudge.text import escape, format_span

Observation = dict[str, Any]

SHORT_ID = 8  # characters of a session's id in a table; any unique beginning names the session

_BAR = 30  # columns of the week with the most lines
_DATE_TIME, _MINUTES = "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"
_TYPE_STYLES = {
    "command_error": "red",
    "git_commit": "green",
    "file_edit": "yellow",
    "file_write": "yellow",
    "user_prompt": "cyan",
}


def _local(timestamp: float, form: str = _DATE_TIME) -> str:
    return time.strftime(form, time.localtime(timestamp))


def _clock_format(timestamps: Iterable[float]) -> str:
    """Return the format for times: with the date when they are of several days."""
    days = {_local(timestamp, "%Y-%m-%d") for timestamp in timestamps}
    return "%H:%M:%S" if len(days) < 2 else _DATE_TIME


def _age(timestamp: float) -> str:
    return ago(time.time() - timestamp)


def _one_line(observation: Observation) -> str:
    """Return the path for an observation about a file, else its text, in one line."""
    text = observation.get("content", observation.get("content_preview")) or ""
    path = observation.get("file_path")
    if str(observation["obs_type"]).startswith("file_") and path and not text.startswith(f"{path}\n"):
        text = path
    return escape(" ".join(str(text).split()))


def _quote(text: str | None) -> str:
    return f'"{escape(" ".join((text or "").split()))}"'


def _short_id(session_id: str) -> str:
    return escape(session_id[:SHORT_ID])


def is_of(observation: Observation, project: str | None) -> bool:
    """Return whether an observation is of this project, an identity or a name; None stands for all projects."""
    name = observation.get("project")
    return project is None or (name is not None and (is_project(project, name) or is_project(name, project)))


def table(
    pen: Pen,
    observations: Sequence[Observation],
    *,
    clock: str | None = None,
    indent: str = "",
    project: str | None = None,
    show_projects: bool = False,
) -> Iterator[str]:
    """`#42  2h ago  command_error  cargo test`; with `clock`, the time of day instead of the age.

    `show_projects` names the project of each row, unless all rows are of `project`."""
    names = [escape(str(row.get("project") or "-")) for row in observations]
    show_projects = show_projects and (project is None or not all(is_of(row, project) for row in observations))
    cells = [
        (
            f"#{row['id'] if 'id' in row else row['observation_id']}",
            _local(row["timestamp"], clock) if clock else _age(row["timestamp"]),
            escape(str(row["obs_type"])),
            f"{name}  " if show_projects else "",
        )
        for row, name in zip(observations, names, strict=True)
    ]
    widths = [output.widest(column) for column in zip(*cells, strict=True)]
    here = resolve() if any(row.get("branch") or row.get("clone") for row in observations) else NO_CONTEXT
    for row, (number, when, obs_type, name) in zip(observations, cells, strict=True):
        head = f"{indent}{number.rjust(widths[0])}  {when.rjust(widths[1])}  "
        kind, owner = output.pad(obs_type, widths[2]), output.pad(name, widths[3])
        text = pen.clip(_one_line(row), len(head) + widths[2] + 2 + widths[3])
        pinned = pen.paint("dim", "  (pinned)") if row.get("is_pinned") else ""
        pinned += pen.paint("dim", _elsewhere(row, here))
        kind = pen.paint(_TYPE_STYLES[obs_type], kind) if obs_type in _TYPE_STYLES else kind
        yield f"{head}{kind}  {owner}{text}{pinned}".rstrip()


def _elsewhere(row: Observation, here: Context) -> str:
    """Return branch and clone if they differ from the current ones."""
    branch, clone = row.get("branch"), row.get("clone")
    parts = [f"on {escape(str(branch))}"] if branch and branch != here.branch else []
    parts += [f"in {escape(str(clone))}"] if clone and not is_below(here.cwd, str(clone)) else []
    return f"  ({', '.join(parts)})" if parts else ""


def full_lines(pen: Pen, row: Observation) -> Iterator[str]:
    pinned = "  (pinned)" if row.get("is_pinned") else ""
    head = f"#{row['id']}  {escape(row['obs_type'])}"
    yield f"{pen.paint('bold', head)}  {_local(row['timestamp'])} ({_age(row['timestamp'])}){pinned}"
    yield from (f"  {line}" for line in escape(row["content"], keep_lines=True).split("\n"))
    facts = ("session_id", "project", "branch", "clone", "source_event", "tool_name", "file_path")
    fields = {name: row[name] for name in facts if row.get(name)} | (row.get("metadata") or {})
    for name, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *more = escape(text, keep_lines=isinstance(value, str)).split("\n")
        yield f"  {pen.paint('dim', escape(name) + ':')} {first}"
        yield from (f"    {line}" for line in more)


def timeline_lines(pen: Pen, result: dict[str, Any]) -> Iterator[str]:
    anchor = result["anchor"]
    project, day = escape(str(anchor.get("project") or "-")), _local(anchor["timestamp"], "%Y-%m-%d")
    yield pen.paint("dim", f"session {escape(anchor['session_id'])}, {project}, {day}")
    rows = [*result["before"], anchor, *result["after"]]
    clock = _clock_format(row["timestamp"] for row in rows)
    for position, line in enumerate(table(pen, rows, clock=clock)):
        yield f"{pen.paint('bold', '>') if position == len(result['before']) else ' '} {line}"


# Sessions


def session_lines(pen: Pen, rows: list[dict[str, Any]]) -> Iterator[str]:
    for session_id, *cells, intent in output.align(_session_cells(session) for session in rows):
        taken = len(session_id) + sum(len(cell) + 2 for cell in cells) + 2
        yield "  ".join([pen.paint("bold", session_id), *cells, pen.clip(intent, taken)]).rstrip()


def _session_cells(session: dict[str, Any]) -> list[str]:
    """Return the cells of a row; the intent comes last, since it may be long."""
    intent = (session.get("summary") or {}).get("intent")
    ended = session.get("ended_at")
    return [
        _short_id(session["session_id"]),
        _local(session["started_at"], _MINUTES),
        "open" if ended is None else format_span(ended - session["started_at"]),
        escape(str(session.get("project") or "-")),
        escape(str(session.get("client") or "-")),
        f"{session['observation_count']} obs",
        _quote(intent) if intent else "",
    ]


def trace_lines(pen: Pen, trace: dict[str, Any], *, full: bool) -> Iterator[str]:
    yield from _trace_head(pen, trace)
    injections, prompts = trace.get("injections") or (), trace["prompts"]
    observations = (row for prompt in prompts for row in prompt["observations"])
    times = (entry["timestamp"] for entry in (*injections, *prompts, *observations))
    clock = _clock_format([trace["started_at"], *times])
    parts = [(entry["timestamp"], 0, _injection_lines(pen, entry, clock, full=full)) for entry in injections]
    parts += [(entry["timestamp"], 1, _prompt_lines(pen, entry, clock)) for entry in prompts]
    for _, _, lines in sorted(parts, key=lambda part: part[:2]):
        yield from lines


def latest_in_trace(trace: dict[str, Any]) -> int:
    """Return the time of the latest prompt or observation in a trace."""
    rows = (row for prompt in trace["prompts"] for row in (prompt, *prompt["observations"]))
    return max((int(row["timestamp"]) for row in rows), default=int(trace["started_at"]))


def _trace_head(pen: Pen, trace: dict[str, Any]) -> Iterator[str]:
    began, ended = trace["started_at"], trace.get("ended_at")
    yield f"{pen.paint('bold', escape(trace['session_id']))}  {escape(str(trace.get('project') or '-'))}"
    if ended:
        yield f"{_local(began)} to {_local(ended, _clock_format([began, ended]))}"
    else:
        yield f"since {_local(began)}, still open"
    summary = trace.get("summary") or {}
    if summary.get("intent"):
        yield f"intent: {_quote(summary['intent'])}"
    for failed in summary.get("failed") or ():
        outcome = f"passed in #{failed['passed']}" if failed.get("passed") else "has not passed since"
        yield f"failed: {_quote(failed['command'])} #{failed['id']}, {outcome}"
    if summary.get("counts"):
        by_count = sorted(summary["counts"].items(), key=lambda entry: (-entry[1], entry[0]))
        yield pen.paint("dim", ", ".join(f"{number} {escape(obs_type)}" for obs_type, number in by_count))


def _prompt_lines(pen: Pen, prompt: dict[str, Any], clock: str) -> Iterator[str]:
    when = _local(prompt["timestamp"], clock)
    if prompt["prompt_id"] is None:
        text = "(no prompt)"
    else:
        text = pen.clip(_quote(prompt["content"]) if prompt["content"] else "(a deleted prompt)", len(when) + 16)
    led_to = "-> " + output.count(prompt["observation_count"], "observation")
    yield f"{pen.paint('cyan', when)} {text} {pen.paint('dim', led_to)}"
    yield from table(pen, prompt["observations"], clock=clock, indent="  ")


def _injection_lines(pen: Pen, injection: dict[str, Any], clock: str, *, full: bool) -> Iterator[str]:
    when = _local(injection["timestamp"], clock)
    names = "" if full else ", ".join(_item_name(item) for item in injection["items"])
    yield f"{pen.paint('cyan', when)} (told at the start) {pen.clip(names, len(when) + 20)}".rstrip()
    if full:
        yield from (pen.paint("dim", f"  {escape(line)}") for line in str(injection["text"]).splitlines())


def _item_name(item: Any) -> str:
    identity = item.get("id") if isinstance(item, dict) else item
    return f"#{identity}" if isinstance(identity, int) else escape(str(identity))


def file_history_lines(pen: Pen, result: dict[str, Any]) -> Iterator[str]:
    for session in result["sessions"]:
        name = pen.paint("bold", _short_id(session["session_id"]))
        intent = _quote(session["summary_intent"]) if session.get("summary_intent") else ""
        project = escape(str(session.get("project") or "-"))
        yield f"{name}  {_local(session['started_at'], _MINUTES)}  {project}  {pen.clip(intent, 40)}".rstrip()
        # The path is the same in every line; what else a touch has is not.
        rows = [
            {**touch, "content": "" if touch["content_preview"] == result["file_path"] else touch["content_preview"]}
            for touch in session["touches"]
        ]
        for row, line in zip(rows, table(pen, rows, clock=_MINUTES, indent="  "), strict=True):
            yield line
            if row.get("prompt_content"):
                yield pen.paint("dim", f"      {pen.clip(_quote(row['prompt_content']), 6)}")


# Injection


def inject_lines(console: Console, result: dict[str, Any]) -> Iterator[str]:
    """Yield the text, and below it the explanation of each of its lines, in their order."""
    yield from map(escape, result["text"].splitlines())
    if result["items"]:
        yield ""
        yield from note_lines.explain_lines(console, {"items": result["items"], "metadata": {"query": None}})


# Learned facts


def learned_lines(pen: Pen, facts: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield two lines for each fact: what fails and why; what works, and why a session is not told at its start."""
    several = len({fact["project"] for fact in facts}) > 1
    for fact in facts:
        project = f"  [{escape(fact['project'])}]" if several else ""
        yield f"{escape(fact['subject'])}  {pen.paint('dim', escape(fact['error'].splitlines()[0]) + project)}"
        support = f"{output.count(fact['sessions'], 'session')}, {last_time(time.time() - fact['last'])}, #{fact['id']}"
        if reason := fact.get("not_at_start"):
            support += f"; not told at a start: {escape(reason)}"
        answer = "no answer is known" if fact["answer"] is None else f"-> {escape(fact['answer'])}"
        yield f"  {answer}  {pen.paint('dim', support)}"


# Told lines and their use

_STATS_LEGEND = (
    "told: lines that agents read; used: followed up by the agent; repeated: known failures met again; "
    "spared: failures told at the start and not met"
)


def told_lines(pen: Pen, lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield two lines for each line that was told: when, why and whether it was used; then its text."""
    for line in lines:
        used = f"used {_age(line['used_at'])}" if line["used_at"] else "not used"
        state = "not told (shadow)" if line["is_shadow"] else used
        head = f"{line['id']}  {_age(line['timestamp'])}  on {line['moment']}  {state}  {line['name']}"
        yield pen.paint("dim", escape(f"{head}: {line['reason']}"))
        yield f"  {escape(line['text'])}"


def stats_lines(pen: Pen, result: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each week and what its counts mean; then, if some sessions were told nothing, a comparison with
    those that were told."""
    yield from _week_lines(result["weeks"])
    if result["weeks"]:
        yield pen.paint("dim", _STATS_LEGEND)
    yield from _comparison_lines(result["comparison"])


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
