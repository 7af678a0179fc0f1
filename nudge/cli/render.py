"""What every room's results look like on the terminal: times, names, tables, and the explanation of a score."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from nudge.cli import output
from nudge.cli.output import Console, Styler
from nudge.core.clock import ago
from nudge.core.text import escape
from nudge.notes.fields import KINDS
from nudge.process.client import Client

MINUTES = "%Y-%m-%d %H:%M"
BAR_WIDTH = 10  # one column for each priority

_DATE_TIME = "%Y-%m-%d %H:%M:%S"
_SCORE_BAR = 20  # columns of the longest part of a score
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_PART_LABELS = {"namespace": "repo", "base": "match", "kind_bonus": "kind"}


# Times


def local_time(timestamp: float, form: str = _DATE_TIME) -> str:
    return time.strftime(form, time.localtime(timestamp))


def clock_format(timestamps: Iterable[float]) -> str:
    """Return the format for times: with the date when they are of several days."""
    days = {local_time(timestamp, "%Y-%m-%d") for timestamp in timestamps}
    return "%H:%M:%S" if len(days) < 2 else _DATE_TIME


def time_ago(timestamp: float) -> str:
    return ago(time.time() - timestamp)


def seconds_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def age_text(text: str) -> str:
    """Return the age of what happened at a time that is RFC 3339 text."""
    return time_ago(seconds_of(text))


# Names, bars and tables


def note_name(note_id: int) -> str:
    return f"m{note_id}"


def title_of(note: Mapping[str, Any]) -> str:
    return escape(" ".join(str(note["title"]).split()))


def bar(styler: Styler, filled: int) -> str:
    filled = min(max(filled, 0), BAR_WIDTH)
    return styler.symbol("█") * filled + styler.symbol("░") * (BAR_WIDTH - filled)


def table(
    styler: Styler,
    rows: Iterable[Sequence[str]],
    *,
    heading: Sequence[str] = (),
    paint: Mapping[int, Callable[[str], str]] | None = None,
) -> Iterator[str]:
    """Yield a line for each row, its cells in columns; the last cell is cut to the terminal. `paint` styles the padded
    cells of a column."""
    listed = [*([heading] if heading else []), *rows]
    for number, cells in enumerate(output.align(listed)):
        *first, last = cells
        cut = styler.clip(last, sum(output.columns(cell) + 2 for cell in first))
        if heading and number == 0:
            yield styler.paint("bold", "  ".join([*first, cut]).rstrip())
            continue
        painted = [*first, cut]
        for column, style in (paint or {}).items():
            painted[column] = style(painted[column])
        yield "  ".join(painted).rstrip()


def count_lines(rows: Sequence[tuple[str, int]]) -> Iterator[str]:
    width = output.widest(name for name, _ in rows)
    yield from (f"  {output.pad(name, width)}  {number:,}" for name, number in rows)


def empty_note(client: Client, project: str | None, note: str = "") -> str:
    """Return what to say about an empty result: that no repo has the name that --repo gives, else `note`."""
    if project is None or client.call("nudge.sessions", {"project": project.casefold(), "limit": 1}):
        return note
    return escape(f"no repo is called {project} here; list them with: nudge sessions")


# Explanations of scores


def explanation(console: Console, result: Mapping[str, Any], *, in_history: bool = False) -> Iterator[str]:
    """Yield each item with the parts of its score as bars, all on the same scale. `in_history`: items are
    observations."""
    parts = [part for item in result["items"] for part in item["score"]["components"].values() if part]
    longest = max(map(abs, parts), default=1.0)
    searched = result["metadata"]["query"] is not None
    for typed, meant in (result["metadata"].get("corrections") or {}).items():
        yield f"nothing has {escape(typed)}; searched for {escape(meant)}"
    for item in result["items"]:
        yield from _explained_lines(console, item, longest, searched=searched, in_history=in_history)


def _score_lines(console: Console, score: Mapping[str, Any], longest: float) -> Iterator[str]:
    if score["total"] is None:
        return
    styler = console.styler
    yield f"  {styler.paint('bold', 'score')}  {score['total']:.4f}"
    parts = {_PART_LABELS.get(part, part): value for part, value in score["components"].items() if value is not None}
    width = output.widest(parts)
    for part, value in parts.items():
        bar = _part_bar(styler, abs(value) / longest)
        drawn = f"{styler.paint('green' if value >= 0 else 'red', output.pad(bar, _SCORE_BAR))}  "
        yield f"    {output.pad(part, width)}  {drawn if console.is_terminal else ''}{value:.4f}"


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
    yield from _score_lines(console, item["score"], longest)
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
