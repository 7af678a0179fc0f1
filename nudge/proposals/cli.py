"""The verbs of the language model: `nudge note` with expand-query, auto-tag, detect-contradiction, and review, which
decides on what it proposes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from nudge.cli import output, params
from nudge.cli.app import verb
from nudge.cli.output import EXIT_OK, Console, Usage
from nudge.cli.params import NOTE_ID, WHOLE, id_argument, note_fields, option, words_argument
from nudge.cli.plain import Invocation
from nudge.cli.prompts import waiting
from nudge.cli.render import age_text, note_name, title_of
from nudge.cli.verbs import NOTES
from nudge.core import limits
from nudge.core.text import escape

Row = Mapping[str, Any]

_DECISIONS = {
    "accept": ("nudge.memory_proposal_accept", "accepted"),
    "reject": ("nudge.memory_proposal_reject", "rejected"),
    "undo": ("nudge.memory_proposal_undo", "undone; it is open again:"),
}
_ASKING = "asking the language model"


@verb(
    "note expand-query",
    "nudge note expand-query flaky login test",
    group=NOTES,
    summary="ask the language model for words that notes may use",
    operations=("nudge.memory_expand_query",),
)
@words_argument
def expand_query(invocation: Invocation, words: tuple[str, ...]) -> int:
    """Prints the words, one a line. In the tier smart, `nudge recall` asks by itself when it finds little."""
    console = invocation.console
    with waiting(console, _ASKING):
        result = invocation.call("nudge.memory_expand_query", note_fields(query=" ".join(words)))
    console.result(result, map(escape, result["expanded_terms"]))
    return EXIT_OK


@verb(
    "note auto-tag",
    "nudge note auto-tag m12",
    group=NOTES,
    summary="ask the language model for tags of a note",
    operations=("nudge.memory_auto_tag",),
)
@id_argument
def auto_tag(invocation: Invocation, note_id: int) -> int:
    """The tags are a proposal: `nudge note review accept` adds them to the note."""
    console = invocation.console
    with waiting(console, _ASKING):
        result = invocation.call("nudge.memory_auto_tag", {"id": note_id})
    console.result(result, [escape(", ".join(result["proposed_tags"]))] if result["proposed_tags"] else [])
    _note_proposal(console, result, "no new tag is proposed")
    return EXIT_OK


@verb(
    "note detect-contradiction",
    "nudge note detect-contradiction m12 m15",
    group=NOTES,
    summary="ask the language model whether two notes agree",
    operations=("nudge.memory_detect_contradiction",),
)
@click.argument("one", metavar="ID", type=NOTE_ID, help="A note, such as m12.")
@click.argument("other", metavar="ID", type=NOTE_ID, help="The other one.")
def detect_contradiction(invocation: Invocation, one: int, other: int) -> int:
    """A yes is a proposal: `nudge note review accept` links the two. Prints yes or no."""
    console = invocation.console
    with waiting(console, _ASKING):
        result = invocation.call("nudge.memory_detect_contradiction", {"id_a": one, "id_b": other})
    console.result(result, ["yes" if result["contradicts"] else "no"])
    if result["contradicts"]:
        _note_proposal(console, result, "nothing is proposed: they are linked, or it was rejected before")
    return EXIT_OK


def _note_proposal(console: Console, result: Row, otherwise: str) -> None:
    if not console.as_json:
        proposal = result.get("proposal")
        console.note(f"accept with: nudge note review accept {proposal}" if proposal else otherwise)


@verb(
    "note review",
    "nudge note review",
    "nudge note review accept 3 4",
    "nudge note review undo 3",
    "nudge note review --state rejected --kind tags",
    group=NOTES,
    summary="decide on what the language model proposes",
    operations=(
        "nudge.memory_proposals",
        "nudge.memory_proposal_accept",
        "nudge.memory_proposal_reject",
        "nudge.memory_proposal_undo",
    ),
    unlisted=("proposals",),
)
@click.argument(
    "decision",
    metavar="[DECISION]",
    type=click.Choice(list(_DECISIONS)),
    required=False,
    help="accept, reject or undo; without it, the proposals are listed.",
)
@click.argument("ids", metavar="[ID]...", nargs=-1, type=WHOLE, help="The proposals, by the numbers of the list.")
@option("--state", type=click.Choice(["open", "accepted", "rejected", "all"]), help="Which to list (default: open).")
@option("--kind", type=click.Choice(["tags", "contradiction", "group"]), help="Only proposals of this kind.")
@params.limit_option(limits.DEFAULT_SEARCH_LIMIT, "proposals", most=limits.MAX_PROPOSALS_LISTED)
@option("--offset", type=WHOLE, metavar="N", help="Skip the first N proposals.")
def review(invocation: Invocation, decision: str | None, ids: tuple[int, ...], **filters: Any) -> int:
    """Lists tags for a note, contradictions of two, and groups that could be one note. Accepting adds the tags, links
    the two notes, or replaces the group by one note with their texts. Nothing changes a note before that, and undo
    takes it back."""
    if decision is None:
        return _list(invocation, filters)
    if not ids:
        raise Usage(f"{decision} what?", f"name proposals by their numbers: nudge note review {decision} 3")
    operation, done = _DECISIONS[decision]
    results: list[Row] = []
    try:
        results.extend(invocation.call(operation, {"id": number}) for number in ids)
    finally:  # those before one that fails are decided
        if results:
            named = ", ".join(str(result["id"]) for result in results)
            lines = [invocation.console.styler.done(f"{done} {named}"), *_changes(results)]
            invocation.console.result({"proposals": results}, lines)
    if decision == "accept" and not invocation.as_json:
        invocation.console.note(f"take it back with: nudge note review undo {' '.join(map(str, ids))}")
    return EXIT_OK


def _list(invocation: Invocation, filters: Mapping[str, Any]) -> int:
    console = invocation.console
    result = invocation.call("nudge.memory_proposals", note_fields(**filters))
    rows = result["proposals"]
    console.result(result, [line for row in rows for line in _proposal_lines(console, row)])
    if not console.as_json:
        if result.get("more"):
            console.note(f"there are more: --offset {(filters['offset'] or 0) + len(rows)}")
        if any(row["state"] == "open" for row in rows):
            console.note("decide with: nudge note review accept ID, or reject ID")
        elif not rows:
            console.note("nothing is proposed" if filters["state"] in (None, "open") else "no proposal matches")
    return EXIT_OK


def _proposal_lines(console: Console, row: Row) -> Iterator[str]:
    """`3  tags: sqlite, router  (gemma3:4b, 2m ago)`, and below it the notes that it is about."""
    state = "" if row["state"] == "open" else f", {row['state']}"
    origin = console.styler.paint("dim", f"({escape(row['model'])}, {age_text(row['proposed_at'])}{state})")
    yield f"{console.styler.paint('bold', str(row['id']))}  {escape(_what(row))}  {origin}"
    for note in row["notes"]:
        yield f"   {note_name(note['id'])}  {title_of(note)}"
    if not row["notes"]:
        yield f"   {', '.join(map(note_name, row['ids']))}"


def _what(row: Row) -> str:
    if row["kind"] == "tags":
        return f"tags: {', '.join(row['tags'])}"
    return "these contradict each other" if row["kind"] == "contradiction" else f"could be one note: {row['tag']}"


def _changes(results: Sequence[Row]) -> Iterator[str]:
    for changed in (result["changed"] for result in results if "changed" in result):
        if "note" in changed:
            yield f"  {note_name(changed['note'])} stands for {output.count(len(changed['ids']), 'note')}"
        elif "relation" in changed:
            yield f"  {note_name(changed['source_id'])} contradicts {note_name(changed['target_id'])}"
        else:
            yield escape(f"  {note_name(changed['id'])} has the tags {', '.join(changed['tags'])}")
