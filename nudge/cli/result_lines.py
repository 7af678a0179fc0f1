"""Functions that turn notes, scores, observations and sessions into lines for the terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from nudge.cli import output
from nudge.cli.output import Console, Styler
from nudge.cli.params import KINDS
from nudge.core import limits
from nudge.core.clock import ago
from nudge.core.context import NO_CONTEXT, Context, is_below, is_project, resolve
from nudge.core.text import escape, format_size, format_span
from nudge.process.client import Client

Note = dict[str, Any]
Observation = dict[str, Any]

MINUTES = "%Y-%m-%d %H:%M"

_DATE_TIME = "%Y-%m-%d %H:%M:%S"
_BAR_WIDTH = 10  # one column for each priority
_LISTED_CHARS = 1_000  # of the text of a note in a list
_SCORE_BAR = 20  # columns of the longest part of a score
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_STRONG, _MIDDLING = 8, 5  # priorities that are green, yellow; the others are red
_SHORT_ID = 8  # characters of a session's id in a table; any unique beginning names the session
_TIER_STYLES = {"short": "red", "mid": "yellow", "long": "green"}
_PART_LABELS = {"namespace": "repo", "base": "match", "kind_bonus": "kind"}
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


# Times


def local_time(timestamp: float, form: str = _DATE_TIME) -> str:
    return time.strftime(form, time.localtime(timestamp))


def clock_format(timestamps: Iterable[float]) -> str:
    """Return the format for times: with the date when they are of several days."""
    days = {local_time(timestamp, "%Y-%m-%d") for timestamp in timestamps}
    return "%H:%M:%S" if len(days) < 2 else _DATE_TIME


def time_ago(timestamp: float) -> str:
    return ago(time.time() - timestamp)


def _seconds_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def age_text(text: str) -> str:
    """Return the age of what happened at a time that is RFC 3339 text."""
    return time_ago(_seconds_of(text))


def _remaining_time(expires_at: str) -> str:
    """Return the time that is left, such as `7d`, rounded to minutes: a note that was just stored shows its whole
    lifetime."""
    left = _seconds_of(expires_at) - time.time()
    return format_span(round(left / 60) * 60) if left > 60 else "less than a minute"


# Notes


def note_name(note_id: int) -> str:
    return f"m{note_id}"


def title_of(note: Mapping[str, Any]) -> str:
    return escape(" ".join(str(note["title"]).split()))


def _priority_bar(console: Console, priority: int) -> str:
    """Return a bar of ten columns on a terminal, and the number in a pipe."""
    if not console.is_terminal:
        return str(priority)
    style = "green" if priority >= _STRONG else "yellow" if priority >= _MIDDLING else "red"
    return console.styler.paint(style, _bar(console.styler, priority))


def _bar(styler: Styler, filled: int) -> str:
    filled = min(max(filled, 0), _BAR_WIDTH)
    return styler.symbol("█") * filled + styler.symbol("░") * (_BAR_WIDTH - filled)


def tier_text(styler: Styler, tier: str, width: int = 0) -> str:
    text = output.pad(escape(tier), width)
    return styler.paint(_TIER_STYLES[tier], text) if tier in _TIER_STYLES else text


def note_list(console: Console, notes: Sequence[Note]) -> Iterator[str]:
    """Yield `m12  TITLE  (decision, 2h ago)` for each note and its text below it; a long text is cut, and the command
    that shows it all follows. The repo is named unless all notes are of the same."""
    styler = console.styler
    several = len({note["namespace"] for note in notes}) > 1
    width = output.widest(note_name(note["id"]) for note in notes)
    for note in notes:
        name = note_name(note["id"])
        where = [escape(note["namespace"])] if several else []
        about = ", ".join([escape(note["kind"]), age_text(note["updated_at"]), *where, *_doubt(note)])
        head = f"{styler.paint('bold', output.pad(name, width))}  {title_of(note)}"
        yield f"{head}  {styler.paint('dim', f'({about})')}"
        yield from (f"{' ' * width}  {line}".rstrip() for line in _content_lines(note))


def _doubt(note: Note) -> list[str]:
    """Return the confidence if it is low: another note superseded this one, or its author was not sure."""
    return [f"confidence {note['confidence']:g}"] if note["confidence"] < limits.DOUBTFUL_CONFIDENCE else []


def _content_lines(note: Note) -> list[str]:
    """Return the lines of the content that do not say the same as the title."""
    text = _below_title(note)
    if escape(" ".join(text.split())).rstrip(".") == title_of(note).rstrip("."):
        return []
    shown = text if len(text) <= _LISTED_CHARS else text[:_LISTED_CHARS].rpartition(" ")[0] or text[:_LISTED_CHARS]
    lines = escape(shown, keep_lines=True).split("\n")
    return lines if shown == text else [*lines, f"... all of it: nudge note get {note_name(note['id'])}"]


def _below_title(note: Note) -> str:
    """Return the content without a first line that is the title, as in what `nudge remember` stores."""
    text = str(note["content"]).strip()
    first, _, rest = text.partition("\n")
    return rest.strip("\n") if rest.strip() and escape(" ".join(first.split())) == title_of(note) else text


def stored_note_lines(console: Console, result: Mapping[str, Any]) -> Iterator[str]:
    styler, name = console.styler, note_name(result["id"])
    word = "updated" if "previous" in result else "stored"
    yield styler.done(f"{word} {styler.paint('bold', name)} {title_of(result)} ({result['kind']}, {result['tier']})")
    yield f"  repo: {escape(result['namespace'])}"
    if expires_at := result.get("expires_at"):
        life = _remaining_time(expires_at)
        yield f"  kept: {life}, and longer when it is recalled; for good: nudge note promote {name}"
    else:
        yield "  kept: for good"
    if similar := result["potential_contradictions"]:
        names = ", ".join(map(note_name, similar))
        yield f"  similar: {names}; if one of them is wrong: nudge note resolve RIGHT WRONG"


def full_note_lines(console: Console, note: Note, links: Sequence[Mapping[str, Any]] = ()) -> Iterator[str]:
    styler = console.styler
    yield f"{styler.paint('bold', note_name(note['id']))}  {styler.paint('bold', title_of(note))}"
    yield from (f"  {line}".rstrip() for line in escape(_below_title(note), keep_lines=True).split("\n"))
    for name, value in _note_fields(console, note):
        yield f"  {styler.paint('dim', f'{name}:')} {value}"
    for link in links:
        yield f"  {styler.paint('dim', 'link:')} {_link_text(link, note['id'])}"


def _note_fields(console: Console, note: Note) -> Iterator[tuple[str, str]]:
    bar = f"{_priority_bar(console, note['priority'])} {note['priority']}" if console.is_terminal else note["priority"]
    yield "tier", tier_text(console.styler, note["tier"])
    yield "kind", escape(note["kind"])
    yield "repo", escape(note["namespace"])
    yield "priority", str(bar)
    yield "confidence", f"{note['confidence']:g}"
    if note.get("tags"):
        yield "tags", escape(", ".join(note["tags"]))
    yield "source", escape(note["source"])
    yield "created", f"{note['created_at']} ({age_text(note['created_at'])})"
    if note["updated_at"] != note["created_at"]:
        yield "updated", f"{note['updated_at']} ({age_text(note['updated_at'])})"
    if note.get("access_count"):
        yield "recalled", output.count(note["access_count"], "time")
    yield "expires", f"in {_remaining_time(note['expires_at'])}" if note.get("expires_at") else "never"
    for name in ("origin", "metadata"):
        if note.get(name):
            yield name, escape(json.dumps(note[name], ensure_ascii=False))


def _link_text(link: Mapping[str, Any], note_id: int) -> str:
    """`supersedes m3`, or `m7 supersedes this` for a link that comes from the other note."""
    relation = escape(link["relation"].replace("_", " "))
    if link["source_id"] == note_id:
        return f"{relation} {note_name(link['target_id'])}"
    return f"{note_name(link['source_id'])} {relation} this"


def count_lines(rows: Sequence[tuple[str, int]]) -> Iterator[str]:
    width = output.widest(name for name, _ in rows)
    yield from (f"  {output.pad(name, width)}  {number:,}" for name, number in rows)


def note_stats_lines(console: Console, result: Mapping[str, Any]) -> Iterator[str]:
    styler = console.styler
    yield styler.paint("bold", output.count(result["total"], "note"))
    tiers = {row["tier"]: row["count"] for row in result["by_tier"]}
    most = max(tiers.values(), default=0)
    for tier, number in tiers.items():
        bar = f"{_bar(styler, -(-number * _BAR_WIDTH // most))}  " if console.is_terminal else ""
        yield f"  {tier_text(styler, tier, 5)}  {bar}{number:,}"
    if result["by_namespace"]:
        yield styler.paint("bold", "repos")
        yield from count_lines([(escape(row["namespace"]), row["count"]) for row in result["by_namespace"]])
    yield f"expiring within a day: {result['expiring_soon']:,}, links: {result['links_count']:,}"
    yield f"archived: {result['archived']:,}, database: {format_size(result['db_size_bytes'])}"


# Explanations of scores


def explain_lines(console: Console, result: Mapping[str, Any], *, in_history: bool = False) -> Iterator[str]:
    """Yield each item with the parts of its score as bars, all on the same scale. `in_history`: items are
    observations."""
    parts = [part for item in result["items"] for part in item["score"]["components"].values() if part]
    longest = max(map(abs, parts), default=1.0)
    searched = result["metadata"]["query"] is not None
    for typed, meant in (result["metadata"].get("corrections") or {}).items():
        yield f"nothing has {escape(typed)}; searched for {escape(meant)}"
    for item in result["items"]:
        yield from _explained_lines(console, item, longest, searched=searched, in_history=in_history)


def _explained_lines(
    console: Console, item: Mapping[str, Any], longest: float, *, searched: bool, in_history: bool
) -> Iterator[str]:
    styler = console.styler
    is_hint, rank = item["kind"] == "hint", item["retrieval"]["rank"]
    is_fact = item["kind"] == "fact"
    name = "fact" if is_fact else _explained_name(item, in_history=in_history)
    place = (
        f"(rank {rank})" if rank else "(does not apply here)" if is_hint else "(not among the best)" if searched else ""
    )
    title = "hint" if is_hint else title_of(item) if is_fact else f"{escape(item['kind'])}  {title_of(item)}"
    yield f"{styler.paint('bold', name)}  {title}  {styler.paint('dim', place)}".rstrip()
    if (total := item["score"]["total"]) is not None:
        yield f"  {styler.paint('bold', 'score')}  {total:.4f}"
        parts = {part: value for part, value in item["score"]["components"].items() if value is not None}
        parts = {_PART_LABELS.get(part, part): value for part, value in parts.items()}
        width = output.widest(parts)
        for part, value in parts.items():
            bar = _part_bar(styler, abs(value) / longest)
            drawn = f"{styler.paint('green' if value >= 0 else 'red', output.pad(bar, _SCORE_BAR))}  "
            yield f"    {output.pad(part, width)}  {drawn if console.is_terminal else ''}{value:.4f}"
    matches = item["matches"]
    if matches["query_terms"]:
        yield f"  words: {escape(', '.join(matches['query_terms']))}"
    yield from (f"  - {escape(reason)}" for reason in matches.get("reasons") or ())
    if item["project"] and not is_hint:
        yield f"  repo: {escape(item['project'])}"
    if (pack := item["pack_context"]) is not None:
        yield f"  injected: {_pack_text(pack)}"


def _part_bar(styler: Styler, ratio: float) -> str:
    """Return a bar with a precision of an eighth of a column: the parts of a score differ by a factor of 200."""
    if not styler.unicode:
        return styler.symbol("█") * round(ratio * _SCORE_BAR)
    whole, eighths = divmod(max(round(ratio * _SCORE_BAR * 8), 1 if ratio else 0), 8)
    return "█" * whole + _EIGHTHS[eighths]


def _explained_name(item: Mapping[str, Any], *, in_history: bool) -> str:
    """Return the name of a hint, `m12` for a note, `#12` for an observation."""
    identity = item["id"]
    if isinstance(identity, str):
        return escape(identity)
    is_note = item["kind"] in KINDS and not in_history
    return note_name(identity) if is_note else f"#{identity}"


def _pack_text(pack: Mapping[str, Any]) -> str:
    if not pack["included"]:
        return "never"
    place = f"section {escape(str(pack['section']))}, {output.count(pack['tokens'] or 0, 'token')}"
    return f"in {output.count(len(pack['sessions']), 'session')}, {place}" if pack["sessions"] else place


# Observations


def quote_line(text: str | None) -> str:
    return f'"{escape(" ".join((text or "").split()))}"'


def short_id(session_id: str) -> str:
    return escape(session_id[:_SHORT_ID])


def is_of_project(observation: Observation, project: str | None) -> bool:
    """Return whether an observation is of this project, an identity or a name; None stands for all projects."""
    name = observation.get("project")
    return project is None or (name is not None and (is_project(project, name) or is_project(name, project)))


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
    names = [escape(str(row.get("project") or "-")) for row in observations]
    show_projects = show_projects and (project is None or not all(is_of_project(row, project) for row in observations))
    cells = [
        (
            f"#{row['id'] if 'id' in row else row['observation_id']}",
            local_time(row["timestamp"], clock) if clock else time_ago(row["timestamp"]),
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


def empty_note(client: Client, project: str | None, note: str = "") -> str:
    """Return what to say about an empty result: that no repo has the name that --repo gives, else `note`."""
    if project is None or client.call("nudge.sessions", {"project": project.casefold(), "limit": 1}):
        return note
    return escape(f"no repo is called {project} here; list them with: nudge sessions")
