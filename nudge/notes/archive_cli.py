"""The verbs that tidy up notes: `nudge note` with forget, consolidate, auto-consolidate, gc and archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from nudge.cli import completion, output, params
from nudge.cli.app import verb, verb_group
from nudge.cli.output import EXIT_OK, EXIT_REFUSED, Console
from nudge.cli.params import (
    DAYS,
    NOTE_ID,
    NOTE_IDS,
    WHOLE,
    dry_run_option,
    filter_options,
    namespace_option,
    note_fields,
    option,
    read_text,
)
from nudge.cli.plain import Invocation
from nudge.cli.prompts import ask, yes_option
from nudge.cli.render import age_text, count_lines, note_name, table, title_of
from nudge.cli.verbs import NOTES
from nudge.core import limits
from nudge.core.text import escape, format_size
from nudge.notes.fields import TIERS
from nudge.notes.render import Note, tier_text
from nudge.settings import config


@verb(
    "note forget",
    "nudge note forget --repo my-app --pattern 'old stuff' --tier short",
    "nudge note forget --tags scratch --until 30d --dry-run",
    group=NOTES,
    summary="move notes to the archive",
    operations=("nudge.memory_forget",),
)
@option("--id", "ids", metavar="ID", type=NOTE_IDS, help="Only these notes, such as m1,m2.")
@option("--pattern", metavar="WORDS", help="Only notes with all of these words.")
@filter_options
@dry_run_option
@yes_option
def forget(invocation: Invocation, dry_run: bool, yes: bool, ids: list[int] | None, **filters: Any) -> int:
    """Moves the notes that match all filters; at least one filter is needed. Prints the notes and asks for confirmation
    first. `nudge note archive restore` brings a note back."""
    console, fields = invocation.console, {**note_fields(**filters), **params.drop_none(ids=ids)}
    preview = invocation.call("nudge.memory_forget", {**fields, "dry_run": True})
    count = output.count(preview["deleted"], "note")
    if dry_run:
        console.result(preview, _forget_lines(console, preview))
        console.note(f"nothing was changed (--dry-run): {count} would go to the archive")
        return EXIT_OK
    if preview["deleted"] and not yes and not console.as_json:
        console.show(_forget_lines(console, preview))
    if preview["deleted"] and not ask(f"Move {count} to the archive?", yes=yes):
        console.note("nothing was changed")
        return EXIT_REFUSED
    result = invocation.call("nudge.memory_forget", fields)
    moved = output.count(result["deleted"], "note")
    console.result(result, [console.styler.done(f"moved {moved} to the archive")] if result["deleted"] else [])
    if not console.as_json:
        undo = "bring one back with: nudge note archive restore ID"
        console.note(undo if result["deleted"] else "no note matches; list all with: nudge note list")
    return EXIT_OK


def _forget_lines(console: Console, result: Mapping[str, Any]) -> Iterator[str]:
    """Yield `m12  long  TITLE` for the first notes that match, and how many more there are."""
    styler, named = console.styler, result["memories"]
    rows = [(note_name(note["id"]), note["tier"], title_of(note)) for note in named]
    yield from table(styler, rows, paint={0: styler.bold, 1: lambda tier: tier_text(styler, tier)})
    if (more := result["deleted"] - len(named)) > 0:
        yield f"and {more:,} more"


@verb(
    "note consolidate",
    'nudge note consolidate m1 m2 m3 -T "Auth" -s "JWT with refresh tokens"',
    'nudge note consolidate m1,m2 -T "Auth" -s - --tier long < summary.txt',
    group=NOTES,
    summary="replace notes with one summary",
    operations=("nudge.memory_consolidate",),
)
@click.argument(
    "ids",
    metavar="ID...",
    nargs=-1,
    required=True,
    type=NOTE_IDS,
    help="2 to 100 notes, such as m1 m2 or m1,m2.",
    shell_complete=completion.note_ids,
)
@option("-T", "--title", required=True, metavar="TITLE", help="Title of the new note.")
@option("-s", "--summary", required=True, metavar="TEXT", help="Text of the new note; - reads it from stdin.")
@params.namespace_option("Repo of the new note (default: that of the first ID).")
@option("--tier", type=click.Choice(TIERS), help="Tier of the new note (default: long).")
def consolidate(
    invocation: Invocation,
    ids: tuple[list[int], ...],
    title: str,
    summary: str,
    namespace: str | None,
    tier: str | None,
) -> int:
    """The new note gets the tags, the links and the highest priority of the others, which go to the archive. Prints the
    id of the new note."""
    numbers = [number for part in ids for number in part]
    fields = {"ids": numbers, "title": title, "summary": read_text(summary), **note_fields(namespace, tier=tier)}
    result = invocation.call("nudge.memory_consolidate", fields)
    console, name = invocation.console, note_name(result["id"])
    console.result(result, [console.styler.done(f"{name} stands for {output.count(result['consolidated'], 'note')}")])
    return EXIT_OK


@verb(
    "note auto-consolidate",
    "nudge note auto-consolidate --dry-run",
    "nudge note auto-consolidate --repo . --short-only --min-count 5",
    group=NOTES,
    summary="replace each group of notes with the same tag by one",
    operations=("nudge.memory_auto_consolidate",),
)
@namespace_option()
@option("--short-only", is_flag=True, help="Only notes of the tier short.")
@option("--min-count", type=WHOLE, metavar="N", help="Smallest number of notes in a group (default: 3).")
@dry_run_option
def auto_consolidate(
    invocation: Invocation, namespace: str | None, short_only: bool, min_count: int | None, dry_run: bool
) -> int:
    """A group is the notes of one repo with the same first tag. A new note of the tier long gets all their texts,
    and they go to the archive. Prints one line for each group."""
    fields = {"short_only": short_only, "dry_run": dry_run, **note_fields(namespace, min_count=min_count)}
    result = invocation.call("nudge.memory_auto_consolidate", fields)
    console = invocation.console
    rows = [
        (
            note_name(group["id"]) if "id" in group else "would be one:",
            output.count(group["count"], "note"),
            escape(f"{group['tag']} in {group['namespace']}"),
        )
        for group in result["groups"]
    ]
    alike = result.get("alike") or ()
    rows += [
        ("say nearly the same:", " ".join(map(note_name, group["ids"])), escape(group["namespace"])) for group in alike
    ]
    console.result(result, table(console.styler, rows))
    if not console.as_json:
        groups = output.count(len(result["groups"]), "group")
        if dry_run:
            console.note(f"nothing was changed (--dry-run): {groups}")
        elif not rows:
            console.note("no group is large enough; a group is at least 3 notes with the same first tag (--min-count)")
    return EXIT_OK


@verb(
    "note gc",
    "nudge note gc",
    group=NOTES,
    summary="move expired notes to the archive now",
    operations=("nudge.memory_gc",),
)
def gc(invocation: Invocation) -> int:
    """The server also does this by itself from time to time. Expired notes are never found, even before they are moved.
    Prints how many were moved."""
    console, result = invocation.console, invocation.call("nudge.memory_gc", {})
    expired = output.count(result["expired_deleted"], "expired note")
    word = "archived" if config.load_or_default()[0].memories.get("archive_on_gc", 1) else "deleted"
    console.result(result, [console.styler.done(f"{word} {expired}")])
    return EXIT_OK


# The archive of notes

_NOTHING_ARCHIVED = "nothing is archived; expired, forgotten and consolidated notes go to the archive"

verb_group(
    "note archive",
    __name__,
    "Expired, forgotten and consolidated notes go to the archive; deleted ones do not.",
    "nudge note archive list",
    "nudge note archive restore m12",
    "nudge note archive purge --older-than 90d",
    group=NOTES,
    summary="list, restore and purge archived notes",
)


@verb(
    "note archive list",
    "nudge note archive list",
    "nudge note archive list deploy staging --kind decision",
    "nudge note archive list --repo . --limit 50",
    group=NOTES,
    summary="list archived notes",
    operations=("nudge.memory_archive_list",),
)
@click.argument("words", metavar="WORDS...", nargs=-1, help="Only notes with any of these words.")
@filter_options
@params.limit_option(limits.DEFAULT_SEARCH_LIMIT, "notes")
@option("--offset", type=WHOLE, metavar="N", help="Skip the first N notes.")
def archive_list(invocation: Invocation, words: tuple[str, ...], **filters: Any) -> int:
    """Prints one line for each note: id, why and when it was archived, and its title."""
    fields = note_fields(**filters, query=" ".join(words) or None)
    console, result = invocation.console, invocation.call("nudge.memory_archive_list", fields)
    rows = result["memories"]
    console.result(result, _archive_lines(console, rows))
    if not console.as_json:
        if result.get("more"):
            console.note(f"there are more: --offset {(filters['offset'] or 0) + len(rows)}")
        if not rows:
            console.note(_NOTHING_ARCHIVED if len(fields) == 0 else "no archived note matches")
    return EXIT_OK


def _archive_lines(console: Console, notes: Sequence[Note]) -> Iterator[str]:
    rows = [
        (note_name(note["id"]), escape(note["archive_reason"]), age_text(note["archived_at"]), title_of(note))
        for note in notes
    ]
    return table(console.styler, rows, paint={0: console.styler.bold})


@verb(
    "note archive restore",
    "nudge note archive restore m12",
    group=NOTES,
    summary="restore an archived note",
    operations=("nudge.memory_archive_restore",),
)
@click.argument(
    "note_id",
    metavar="ID",
    type=NOTE_ID,
    help="The archived note, such as m12.",
    shell_complete=completion.archived_ids,
)
def archive_restore(invocation: Invocation, note_id: int) -> int:
    """The note keeps its tier, and expires as if it were stored now."""
    console, result = invocation.console, invocation.call("nudge.memory_archive_restore", {"id": note_id})
    note = result["memory"]
    console.result(result, [console.styler.done(f"restored {note_name(note['id'])} {title_of(note)}")])
    return EXIT_OK


@verb(
    "note archive purge",
    "nudge note archive purge",
    "nudge note archive purge --older-than 90d --yes",
    group=NOTES,
    summary="delete archived notes permanently",
    operations=("nudge.memory_archive_purge",),
)
@option("--older-than", type=DAYS, metavar="DAYS", help="Only notes archived longer ago than this, such as 90d.")
@yes_option
def archive_purge(invocation: Invocation, older_than: int | None, yes: bool) -> int:
    """Asks for confirmation. The notes cannot be restored. Prints how many were deleted."""
    console = invocation.console
    archived = invocation.call("nudge.memory_archive_stats", {})["count"]
    days = "" if older_than is None else f" that were archived more than {output.count(older_than, 'day')} ago"
    if archived and not ask(f"Delete archived notes{days} permanently? {archived:,} are archived in all.", yes=yes):
        console.note("nothing was deleted")
        return EXIT_REFUSED
    result = invocation.call("nudge.memory_archive_purge", params.drop_none(older_than_days=older_than))
    console.result(result, [console.styler.done(f"purged {output.count(result['purged'], 'archived note')}")])
    return EXIT_OK


@verb(
    "note archive stats",
    "nudge note archive stats",
    group=NOTES,
    summary="count archived notes",
    operations=("nudge.memory_archive_stats",),
)
def archive_stats(invocation: Invocation) -> int:
    """Prints the number and size of archived notes, the time of the first and the last, and counts by reason."""
    console, result = invocation.console, invocation.call("nudge.memory_archive_stats", {})
    lines = [f"{output.count(result['count'], 'archived note')}, {format_size(result['bytes'])}"]
    if result["count"]:
        lines.append(f"archived from {result['oldest']} to {result['newest']}")
    lines += count_lines([(escape(row["reason"]), row["count"]) for row in result["by_reason"]])
    console.result(result, lines)
    return EXIT_OK
