"""What observations and sessions look like on the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from nudge.cli import output
from nudge.cli.output import Styler
from nudge.cli.render import clock_format, local_time, time_ago
from nudge.core.context import NO_CONTEXT, Context, is_below, is_project, resolve
from nudge.core.text import escape

Observation = dict[str, Any]

_SHORT_ID = 8  # characters of a session's id in a table; any unique beginning names the session
_SHOWN_FIELDS = (
    ("session_id", "session"),
    ("project", "repo"),
    ("branch", "branch"),
    ("clone", "clone"),
    ("source_event", "event"),
    ("tool_name", "tool"),
    ("file_path", "file"),
)
_TYPE_STYLES = {
    "command_error": "red",
    "git_commit": "green",
    "file_edit": "yellow",
    "file_write": "yellow",
    "user_prompt": "cyan",
}


def quote_line(text: str | None) -> str:
    return f'"{escape(" ".join((text or "").split()))}"'


def short_id(session_id: str) -> str:
    return escape(session_id[:_SHORT_ID])


def is_of_project(observation: Observation, project: str | None) -> bool:
    """Return whether an observation is of this project, an identity or a name; None stands for all projects."""
    name = observation.get("project")
    return project is None or (name is not None and (is_project(project, name) or is_project(name, project)))


def _first_cells(row: Observation, clock: str | None, *, show_project: bool) -> tuple[str, str, str, str]:
    return (
        f"#{row['id'] if 'id' in row else row['observation_id']}",
        local_time(row["timestamp"], clock) if clock else time_ago(row["timestamp"]),
        escape(str(row["obs_type"])),
        f"{escape(str(row.get('project') or '-'))}  " if show_project else "",
    )


def observation_table(
    styler: Styler,
    observations: Sequence[Observation],
    *,
    clock: str | None = None,
    indent: str = "",
    project: str | None = None,
    show_projects: bool = False,
) -> Iterator[str]:
    """`#42  2h ago  command_error  cargo test`; with `clock`, the time of day instead of the age.

    `show_projects` names the project of each row, unless all rows are of `project`."""
    show_projects = show_projects and (project is None or not all(is_of_project(row, project) for row in observations))
    cells = [_first_cells(row, clock, show_project=show_projects) for row in observations]
    widths = [output.widest(column) for column in zip(*cells, strict=True)]
    here = resolve() if any(row.get("branch") or row.get("clone") for row in observations) else NO_CONTEXT
    for row, (number, when, obs_type, name) in zip(observations, cells, strict=True):
        head = f"{indent}{number.rjust(widths[0])}  {when.rjust(widths[1])}  "
        kind, owner = output.pad(obs_type, widths[2]), output.pad(name, widths[3])
        text = styler.clip(_one_line(row), len(head) + widths[2] + 2 + widths[3])
        pinned = styler.paint("dim", "  (pinned)") if row.get("is_pinned") else ""
        pinned += styler.paint("dim", _elsewhere(row, here))
        kind = styler.paint(_TYPE_STYLES[obs_type], kind) if obs_type in _TYPE_STYLES else kind
        yield f"{head}{kind}  {owner}{text}{pinned}".rstrip()


def _one_line(observation: Observation) -> str:
    """Return the path for an observation about a file, else its text, in one line."""
    text = observation.get("content", observation.get("content_preview")) or ""
    path = observation.get("file_path")
    if str(observation["obs_type"]).startswith("file_") and path and not text.startswith(f"{path}\n"):
        text = path
    return escape(" ".join(str(text).split()))


def _elsewhere(row: Observation, here: Context) -> str:
    """Return branch and clone if they differ from the current ones."""
    branch, clone = row.get("branch"), row.get("clone")
    parts = [f"on {escape(str(branch))}"] if branch and branch != here.branch else []
    parts += [f"in {escape(str(clone))}"] if clone and not is_below(here.cwd, str(clone)) else []
    return f"  ({', '.join(parts)})" if parts else ""


def full_observation_lines(styler: Styler, row: Observation) -> Iterator[str]:
    pinned = "  (pinned)" if row.get("is_pinned") else ""
    head = f"#{row['id']}  {escape(row['obs_type'])}"
    yield f"{styler.paint('bold', head)}  {local_time(row['timestamp'])} ({time_ago(row['timestamp'])}){pinned}"
    yield from (f"  {line}" for line in escape(row["content"], keep_lines=True).split("\n"))
    fields = {label: row[name] for name, label in _SHOWN_FIELDS if row.get(name)} | (row.get("metadata") or {})
    for name, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *more = escape(text, keep_lines=isinstance(value, str)).split("\n")
        yield f"  {styler.paint('dim', escape(name) + ':')} {first}"
        yield from (f"    {line}" for line in more)


# The trace of a session


def trace_lines(styler: Styler, trace: dict[str, Any], *, full: bool) -> Iterator[str]:
    yield from _trace_head(styler, trace)
    injections, prompts = trace.get("injections") or (), trace["prompts"]
    observations = (row for prompt in prompts for row in prompt["observations"])
    times = (entry["timestamp"] for entry in (*injections, *prompts, *observations))
    clock = clock_format([trace["started_at"], *times])
    parts = [(entry["timestamp"], 0, _injection_lines(styler, entry, clock, full=full)) for entry in injections]
    parts += [(entry["timestamp"], 1, _prompt_lines(styler, entry, clock)) for entry in prompts]
    for _, _, lines in sorted(parts, key=lambda part: part[:2]):
        yield from lines


def latest_in_trace(trace: dict[str, Any]) -> int:
    """Return the time of the latest prompt or observation in a trace."""
    rows = (row for prompt in trace["prompts"] for row in (prompt, *prompt["observations"]))
    return max((int(row["timestamp"]) for row in rows), default=int(trace["started_at"]))


def _trace_head(styler: Styler, trace: dict[str, Any]) -> Iterator[str]:
    began, ended = trace["started_at"], trace.get("ended_at")
    yield f"{styler.paint('bold', escape(trace['session_id']))}  {escape(str(trace.get('project') or '-'))}"
    if ended:
        yield f"{local_time(began)} to {local_time(ended, clock_format([began, ended]))}"
    else:
        yield f"since {local_time(began)}, still open"
    summary = trace.get("summary") or {}
    if summary.get("intent"):
        yield f"intent: {quote_line(summary['intent'])}"
    for failed in summary.get("failed") or ():
        outcome = f"passed in #{failed['passed']}" if failed.get("passed") else "did not pass in this session"
        yield f"failed: {quote_line(failed['command'])} #{failed['id']}, {outcome}"
    if summary.get("counts"):
        by_count = sorted(summary["counts"].items(), key=lambda entry: (-entry[1], entry[0]))
        yield styler.paint("dim", ", ".join(f"{number} {escape(obs_type)}" for obs_type, number in by_count))


def _prompt_lines(styler: Styler, prompt: dict[str, Any], clock: str) -> Iterator[str]:
    when = local_time(prompt["timestamp"], clock)
    if prompt["prompt_id"] is None:
        text = "(no prompt)"
    else:
        text = styler.clip(quote_line(prompt["content"]) if prompt["content"] else "(a deleted prompt)", len(when) + 16)
    led_to = "-> " + output.count(prompt["observation_count"], "observation")
    yield f"{styler.paint('cyan', when)} {text} {styler.paint('dim', led_to)}"
    yield from observation_table(styler, prompt["observations"], clock=clock, indent="  ")


def _injection_lines(styler: Styler, injection: dict[str, Any], clock: str, *, full: bool) -> Iterator[str]:
    when = local_time(injection["timestamp"], clock)
    names = "" if full else ", ".join(_injected_name(item) for item in injection["items"])
    yield f"{styler.paint('cyan', when)} (told at the start) {styler.clip(names, len(when) + 20)}".rstrip()
    if full:
        yield from (styler.paint("dim", f"  {escape(line)}") for line in str(injection["text"]).splitlines())


def _injected_name(item: Any) -> str:
    identity = item.get("id") if isinstance(item, dict) else item
    return f"#{identity}" if isinstance(identity, int) else escape(str(identity))
