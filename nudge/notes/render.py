"""What notes look like on the terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nudge.cli import output
from nudge.cli.output import Console, Styler
from nudge.cli.render import BAR_WIDTH, age_text, bar, count_lines, note_name, seconds_of, title_of
from nudge.core import limits
from nudge.core.text import escape, format_size, format_span
from nudge.notes.fields import STORED

Note = dict[str, Any]

_LISTED_CHARS = 1_000  # of the text of a note in a list
_PLACED = frozenset(("title", "content", "tier", "kind", "namespace", "priority", "confidence", "tags", "source"))
"""Fields that have their place in the lines of a note; others follow."""
_STRONG, _MIDDLING = 8, 5  # priorities that are green, yellow; the others are red
_TIER_STYLES = {"short": "red", "mid": "yellow", "long": "green"}


def _remaining_time(expires_at: str) -> str:
    """Return the time that is left, such as `7d`, rounded to minutes: a note that was just stored shows its whole
    lifetime."""
    left = seconds_of(expires_at) - time.time()
    return format_span(round(left / 60) * 60) if left > 60 else "less than a minute"


def _priority_bar(console: Console, priority: int) -> str:
    """Return a bar of ten columns on a terminal, and the number in a pipe."""
    if not console.is_terminal:
        return str(priority)
    style = "green" if priority >= _STRONG else "yellow" if priority >= _MIDDLING else "red"
    return console.styler.paint(style, bar(console.styler, priority))


def tier_text(styler: Styler, tier: str) -> str:
    """Return a tier, which may be padded, in its color."""
    style = _TIER_STYLES.get(tier.rstrip())
    return styler.paint(style, tier) if style else escape(tier)


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
    if note.get("proposed_tags"):
        yield "proposed tags", f"{escape(', '.join(note['proposed_tags']))} (nudge note review)"
    yield "source", escape(note["source"])
    yield "created", f"{note['created_at']} ({age_text(note['created_at'])})"
    if note["updated_at"] != note["created_at"]:
        yield "updated", f"{note['updated_at']} ({age_text(note['updated_at'])})"
    if note.get("access_count"):
        yield "recalled", output.count(note["access_count"], "time")
    yield "expires", f"in {_remaining_time(note['expires_at'])}" if note.get("expires_at") else "never"
    for one in reversed(STORED):
        if one.name not in _PLACED and note.get(one.name):
            yield one.name, escape(json.dumps(note[one.name], ensure_ascii=False))


def _link_text(link: Mapping[str, Any], note_id: int) -> str:
    """`supersedes m3`, or `m7 supersedes this` for a link that comes from the other note."""
    relation = escape(link["relation"].replace("_", " "))
    if link["source_id"] == note_id:
        return f"{relation} {note_name(link['target_id'])}"
    return f"{note_name(link['source_id'])} {relation} this"


def note_stats_lines(console: Console, result: Mapping[str, Any]) -> Iterator[str]:
    styler = console.styler
    yield styler.paint("bold", output.count(result["total"], "note"))
    tiers = {row["tier"]: row["count"] for row in result["by_tier"]}
    most = max(tiers.values(), default=0)
    for tier, number in tiers.items():
        drawn = f"{bar(styler, -(-number * BAR_WIDTH // most))}  " if console.is_terminal else ""
        yield f"  {tier_text(styler, tier.ljust(5))}  {drawn}{number:,}"
    if result["by_namespace"]:
        yield styler.paint("bold", "repos")
        yield from count_lines([(escape(row["namespace"]), row["count"]) for row in result["by_namespace"]])
    yield f"expiring within a day: {result['expiring_soon']:,}, links: {result['links_count']:,}"
    yield f"archived: {result['archived']:,}, database: {format_size(result['db_size_bytes'])}"
