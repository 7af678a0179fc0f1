"""Functions that turn notes, their scores and counts into lines for the terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from nudge import limits
from nudge.cli import output
from nudge.cli.output import Console, Pen
from nudge.cli.params import KINDS
from nudge.clock import ago
from nudge.text import escape, format_size, format_span

Note = dict[str, Any]

_PRIORITIES = 10
_BAR = 20  # columns of the longest part of a score
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_TIER_STYLES = {"short": "red", "mid": "yellow", "long": "green"}
_STRONG, _MIDDLING = 8, 5  # priorities that are green, yellow; the others are red


def note_name(note_id: int) -> str:
    return f"m{note_id}"


def title_of(note: Mapping[str, Any]) -> str:
    return escape(" ".join(str(note["title"]).split()))


def priority_bar(console: Console, priority: int) -> str:
    """Return a bar of ten columns on a terminal, and the number in a pipe."""
    if not console.is_terminal:
        return str(priority)
    style = "green" if priority >= _STRONG else "yellow" if priority >= _MIDDLING else "red"
    return console.pen.paint(style, _bar(console.pen, priority, _PRIORITIES))


def _bar(pen: Pen, filled: int, width: int) -> str:
    filled = min(max(filled, 0), width)
    return pen.symbol("█") * filled + pen.symbol("░") * (width - filled)


def _part_bar(pen: Pen, ratio: float) -> str:
    """Return a bar with a precision of an eighth of a column: the parts of a score differ by a factor of 200."""
    if not pen.unicode:
        return pen.symbol("█") * round(ratio * _BAR)
    whole, eighths = divmod(max(round(ratio * _BAR * 8), 1 if ratio else 0), 8)
    return "█" * whole + _EIGHTHS[eighths]


def tier_text(pen: Pen, tier: str, width: int = 0) -> str:
    text = output.pad(escape(tier), width)
    return pen.paint(_TIER_STYLES[tier], text) if tier in _TIER_STYLES else text


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def age_text(text: str) -> str:
    return ago(time.time() - _seconds(text))


def _remaining_time(expires_at: str) -> str:
    """Return the time that is left, such as `7d`, rounded to minutes: a note that was just stored shows its whole
    lifetime."""
    left = _seconds(expires_at) - time.time()
    return format_span(round(left / 60) * 60) if left > 60 else "less than a minute"


# Lists


def table(console: Console, notes: Sequence[Note], *, contents: bool = False) -> Iterator[str]:
    """`m12  ████████░░  long  decision  2h ago  TITLE`; with `contents` the text of each in a line below.

    The score comes behind the id where there is one, and the namespace behind the age unless all have the same."""
    pen = console.pen
    several = len({note["namespace"] for note in notes}) > 1
    cells = [
        (
            note_name(note["id"]),
            f"{note['score']:.2f}  " if "score" in note else "",
            str(note["priority"]),
            note["tier"],
            note["kind"],
            age_text(note["updated_at"]),
            f"{escape(note['namespace'])}  " if several else "",
        )
        for note in notes
    ]
    widths = [output.widest(column) for column in zip(*cells, strict=True)]
    for note, (name, score, priority, tier, kind, age, namespace) in zip(notes, cells, strict=True):
        bar_width = _PRIORITIES if console.is_terminal else widths[2]
        bar = priority_bar(console, note["priority"]) if console.is_terminal else output.pad(priority, bar_width)
        taken = sum(widths) - widths[2] + bar_width + 10
        yield (
            f"{pen.paint('bold', output.pad(name, widths[0]))}  {score.rjust(widths[1])}{bar}  "
            f"{tier_text(pen, tier, widths[3])}  {output.pad(kind, widths[4])}  {age.rjust(widths[5])}  "
            f"{pen.paint('dim', output.pad(namespace, widths[6]))}"
            f"{pen.clip(title_of(note), taken + len(_doubt(note)))}{pen.paint('dim', _doubt(note))}"
        ).rstrip()
        if contents and (text := _content_line(note)):
            yield pen.paint("dim", f"{' ' * widths[0]}  {pen.clip(text, widths[0] + 2)}")


def _doubt(note: Note) -> str:
    """Return the confidence if it is low: another note superseded this one, or its author was not sure."""
    return f"  (confidence {note['confidence']:g})" if note["confidence"] < limits.DOUBTFUL_CONFIDENCE else ""


def _content_line(note: Note) -> str:
    """Return the content in one line; empty when it is the same as the title."""
    text = escape(" ".join(str(note["content"]).split()))
    return "" if text.rstrip(".") == title_of(note).rstrip(".") else text


# One note


def stored_lines(console: Console, result: Mapping[str, Any]) -> Iterator[str]:
    pen, name = console.pen, note_name(result["id"])
    word = "updated" if "previous" in result else "stored"
    yield pen.done(f"{word} {pen.paint('bold', name)} {title_of(result)} ({result['kind']}, {result['tier']})")
    yield f"  namespace: {escape(result['namespace'])}"
    if expires_at := result.get("expires_at"):
        life = _remaining_time(expires_at)
        yield f"  kept: {life}, and longer when it is recalled; for good: nudge memory promote {name}"
    else:
        yield "  kept: for good"
    if similar := result["potential_contradictions"]:
        names = ", ".join(map(note_name, similar))
        yield f"  similar: {names}; if one of them is wrong: nudge memory resolve RIGHT WRONG"


def full_lines(console: Console, note: Note, links: Sequence[Mapping[str, Any]] = ()) -> Iterator[str]:
    pen = console.pen
    yield f"{pen.paint('bold', note_name(note['id']))}  {pen.paint('bold', title_of(note))}"
    yield from (f"  {line}" for line in escape(note["content"], keep_lines=True).split("\n"))
    for name, value in _facts(console, note):
        yield f"  {pen.paint('dim', f'{name}:')} {value}"
    for link in links:
        yield f"  {pen.paint('dim', 'link:')} {_link_text(link, note['id'])}"


def _facts(console: Console, note: Note) -> Iterator[tuple[str, str]]:
    bar = f"{priority_bar(console, note['priority'])} {note['priority']}" if console.is_terminal else note["priority"]
    yield "tier", tier_text(console.pen, note["tier"])
    yield "kind", escape(note["kind"])
    yield "namespace", escape(note["namespace"])
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


# Counts


def count_lines(rows: Sequence[tuple[str, int]]) -> Iterator[str]:
    width = output.widest(name for name, _ in rows)
    yield from (f"  {output.pad(name, width)}  {number:,}" for name, number in rows)


def stats_lines(console: Console, result: Mapping[str, Any]) -> Iterator[str]:
    pen = console.pen
    yield pen.paint("bold", output.count(result["total"], "note"))
    tiers = {row["tier"]: row["count"] for row in result["by_tier"]}
    most = max(tiers.values(), default=0)
    for tier, number in tiers.items():
        bar = f"{_bar(pen, -(-number * _PRIORITIES // most), _PRIORITIES)}  " if console.is_terminal else ""
        yield f"  {tier_text(pen, tier, 5)}  {bar}{number:,}"
    if result["by_namespace"]:
        yield pen.paint("bold", "namespaces")
        yield from count_lines([(escape(row["namespace"]), row["count"]) for row in result["by_namespace"]])
    yield f"expiring within a day: {result['expiring_soon']:,}, links: {result['links_count']:,}"
    yield f"archived: {result['archived']:,}, database: {format_size(result['db_size_bytes'])}"


# Explanations


def explain_lines(console: Console, result: Mapping[str, Any], *, in_history: bool = False) -> Iterator[str]:
    """Yield each item with the parts of its score as bars, all on the same scale. `in_history`: items are
    observations."""
    parts = [part for item in result["items"] for part in item["score"]["components"].values() if part]
    longest = max(map(abs, parts), default=1.0)
    searched = result["metadata"]["query"] is not None
    for item in result["items"]:
        yield from _item_lines(console, item, longest, searched=searched, in_history=in_history)


def _item_lines(
    console: Console, item: Mapping[str, Any], longest: float, *, searched: bool, in_history: bool
) -> Iterator[str]:
    pen = console.pen
    is_hint, rank = item["kind"] == "hint", item["retrieval"]["rank"]
    is_fact = item["kind"] == "fact"
    name = "learned" if is_fact else _item_name(item, in_history=in_history)
    place = (
        f"(rank {rank})" if rank else "(does not apply here)" if is_hint else "(not among the best)" if searched else ""
    )
    title = "hint" if is_hint else title_of(item) if is_fact else f"{escape(item['kind'])}  {title_of(item)}"
    yield f"{pen.paint('bold', name)}  {title}  {pen.paint('dim', place)}".rstrip()
    if (total := item["score"]["total"]) is not None:
        yield f"  {pen.paint('bold', 'score')}  {total:.4f}"
        parts = {part: value for part, value in item["score"]["components"].items() if value is not None}
        width = output.widest(parts)
        for part, value in parts.items():
            bar = _part_bar(pen, abs(value) / longest)
            drawn = f"{pen.paint('green' if value >= 0 else 'red', output.pad(bar, _BAR))}  "
            yield f"    {output.pad(part, width)}  {drawn if console.is_terminal else ''}{value:.4f}"
    matches = item["matches"]
    if matches["query_terms"]:
        yield f"  words: {escape(', '.join(matches['query_terms']))}"
    yield from (f"  - {escape(reason)}" for reason in matches.get("reasons") or ())
    if item["project"] and not is_hint:
        yield f"  {'project' if in_history else 'namespace'}: {escape(item['project'])}"
    if (pack := item["pack_context"]) is not None:
        yield f"  injected: {_pack_text(pack)}"


def _item_name(item: Mapping[str, Any], *, in_history: bool) -> str:
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
