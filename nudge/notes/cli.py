"""The verbs for notes: remember, recall, explain, and `nudge note` with store, recall, search, get, list, update,
delete, promote, link, unlink, resolve, stats, repos and shell."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import click

from nudge.cli import completion, output, params, plain
from nudge.cli.app import verb, verb_group
from nudge.cli.output import EXIT_NOT_FOUND, EXIT_OK, EXIT_REFUSED, Console
from nudge.cli.params import (
    WHOLE,
    field_options,
    filter_options,
    id_argument,
    note_fields,
    option,
    read_text,
    words_argument,
)
from nudge.cli.plain import Invocation
from nudge.cli.prompts import ask, yes_option
from nudge.cli.render import explanation, note_name, table, title_of
from nudge.cli.verbs import NOTES
from nudge.core import limits
from nudge.core.text import escape
from nudge.core.words import content_words
from nudge.hints.render import hit_lines
from nudge.notes import render
from nudge.notes.fields import TIERS

_TITLE_CHARS = 100  # in a title that is made from the first sentence
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'(]?[A-Z0-9])|\n")
_NO_MATCH = "no note matches; list all with: nudge note list, store one with: nudge remember TEXT"
_HINTS_RECALLED = 5
_PINNED = "pinned"  # the tag of notes that a session is told at its start
_HINT_WORDS = 8  # words searched for in hints: each takes a query of its own


# The short forms


@verb(
    "remember",
    'nudge remember "We use SQLite because one writer is enough" --kind decision',
    'nudge remember "Deploys need VPN this week" --tags deploy --tier mid',
    'git log -1 --format=%B | nudge remember - --title "Why the cache went" --kind change',
    group=NOTES,
    summary="store a note: a decision, a lesson, a finding",
    operations=("nudge.memory_store",),
)
@click.argument("text", metavar="TEXT...", nargs=-1, required=True, help="The text of the note; - reads it from stdin.")
@option(
    "--title",
    metavar="TITLE",
    help="Title (default: the first sentence). A note of this title is updated, and keeps what is not given.",
)
@field_options()
def remember(invocation: Invocation, text: tuple[str, ...], title: str | None, **fields: Any) -> int:
    """The note belongs to the repo you are in, and is kept for good unless --tier is given. A text with a credential is
    refused. Prints the id of the note, such as m12, and how long it is kept."""
    content = read_text(" ".join(text))
    fields["tier"] = fields["tier"] or TIERS[-1]
    return _store(invocation, title=title or first_sentence(content), content=content, **fields)


def first_sentence(text: str) -> str:
    """Return the first sentence as a title, cut at a word when it is long."""
    sentence = " ".join(_SENTENCE_END.split(text.strip(), maxsplit=1)[0].split())
    if len(sentence) > _TITLE_CHARS:
        return f"{sentence[:_TITLE_CHARS].rpartition(' ')[0] or sentence[:_TITLE_CHARS]}..."
    return sentence if sentence.endswith("..") else sentence.removesuffix(".")


@verb(
    "recall",
    "nudge recall why sqlite",
    "nudge recall deploy staging --repo . --limit 3",
    "nudge recall router --kind decision --json",
    group=NOTES,
    summary="search notes and hints for any of the words",
    operations=(
        "nudge.memory_recall",
        "nudge.query",
    ),
)
@words_argument
@filter_options
@params.limit_option(limits.DEFAULT_RECALL_LIMIT, "notes")
@option("--no-touch", is_flag=True, help="Do not count the notes as used.")
def recall(invocation: Invocation, words: tuple[str, ...], no_touch: bool, limit: int | None, **filters: Any) -> int:
    """Prints the hints and the notes that have any of the words, the best match first. Options filter notes only. A
    note that is found counts as used: it is kept longer."""
    console, text = invocation.console, " ".join(words)
    fields = {"context": text, **note_fields(**filters, limit=limit, touch=False if no_touch else None)}
    result = invocation.call("nudge.memory_recall", fields)
    hits = recall_hints(invocation.client().call, text, plain.context_params(), _HINTS_RECALLED)
    console.result({**result, "hints": hits}, ())
    if console.as_json:
        return EXIT_OK
    if hits:
        console.show([console.styler.paint("bold", "hints"), *hit_lines(console.styler, hits)])
    if result["memories"]:
        heading = [console.styler.paint("bold", "notes")] if hits else []
        console.show([*heading, *render.note_list(console, result["memories"])])
    _note_search(console, result)
    if not hits and not result["memories"]:
        console.note(
            "no note has one of these words, and no hint that applies here; store a note with: nudge remember TEXT"
        )
    return EXIT_OK


def _note_search(console: Console, result: Mapping[str, Any]) -> None:
    """Say which words of a language model were looked for, too, and which archived notes would have matched."""
    if words := result.get("expanded_terms"):
        console.note(f"also looked for: {escape(', '.join(words))} (from the language model)")
    if count := result.get("archived"):
        matching = "1 archived note matches" if count == 1 else f"{count:,} archived notes match"
        console.note(f"{matching}; list with: {escape(result['show_archived'])}")


def recall_hints(
    query: Callable[[str, Mapping[str, Any]], Any], text: str, context: Mapping[str, Any], limit: int
) -> list[dict[str, Any]]:
    """Return hits of `nudge.query` that have any of the words, those with the most of them first. A call with the
    whole text would need all of them, unless it is a question."""
    hits: dict[tuple[str, str], dict[str, Any]] = {}
    counts: dict[tuple[str, str], int] = {}
    for word in content_words(text)[:_HINT_WORDS]:
        for hit in query("nudge.query", {"text": word, "limit": limit, "context": context})["hints"]:
            name = hit["component"], hit["key"]
            hits.setdefault(name, hit)
            counts[name] = counts.get(name, 0) + 1
    return sorted(hits.values(), key=lambda hit: (-counts[hit["component"], hit["key"]], -hit["score"]))[:limit]


@verb(
    "explain",
    "nudge explain why sqlite",
    "nudge explain m12 m14",
    "nudge explain http-proxy/test",
    "nudge explain deploy staging m12 --pack",
    group=NOTES,
    summary="show the scores of notes and hints, part by part",
    operations=("nudge.memory_explain",),
)
@click.argument(
    "what",
    metavar="WHAT...",
    nargs=-1,
    required=True,
    help="Words to search notes for, ids of notes (m12), names of hints (api/test), or a command or path that failed.",
    shell_complete=completion.explained,
)
@params.namespace_option(name="project")
@params.limit_option(limits.DEFAULT_RECALL_LIMIT, "notes that the words find")
@option("--pack", is_flag=True, help="Also show in how many sessions agents were told it.")
def explain(invocation: Invocation, what: tuple[str, ...], project: str | None, limit: int | None, pack: bool) -> int:
    """Prints each note or hint with its score and the parts that add up to it. A hint that does not apply here is shown
    with the condition that excludes it."""
    fields = {**_explain_fields(what), **params.drop_none(project=project, limit=limit)}
    result = invocation.call("nudge.memory_explain", {**fields, "include_pack_context": pack})
    console = invocation.console
    console.result(result, explanation(console, result))
    if not console.as_json:
        for error in result["errors"]:
            console.note(f"nudge explain: {escape(error['message'])}")
        if not result["items"] and not result["errors"]:
            console.note("no note has one of these words; list the notes with: nudge note list")
    is_named = "ids" in fields or "names" in fields  # else words, for which an empty list is an answer too
    return EXIT_NOT_FOUND if is_named and not result["items"] else EXIT_OK


def _explain_fields(what: tuple[str, ...]) -> dict[str, Any]:
    """Sort the words into ids, names of hints and words to search for. A number among words is a word: `nudge explain
    python 3`."""
    names = [word for word in what if re.fullmatch(r"[^\s/]+(/[^\s/]+)+", word)]
    ids = [word for word in what if re.fullmatch(r"m[1-9]\d*", word)]
    rest = [word for word in what if word not in names and word not in ids]
    if rest and all(re.fullmatch(r"[1-9]\d*", word) for word in rest):
        ids, rest = [word for word in what if word in ids or word in rest], []
    query = " ".join(rest) or None
    return params.drop_none(query=query, ids=[params.parse_note_id(word) for word in ids] or None, names=names or None)


# nudge note

verb_group(
    "note",
    __name__,
    "A note is a text with a title, a kind, tags and links; its tier says how long it is kept. `nudge remember` and "
    "`nudge recall` are the short forms of store and recall.",
    'nudge note store -T "Database" -c "SQLite: one writer is enough" --kind decision',
    "nudge note recall which database",
    "nudge note list --tier long --limit 20",
    group=NOTES,
    summary="store, find, change, link and tidy up notes",
    unlisted=("memory",),
)


@verb(
    "note store",
    'nudge note store -T "Database" -c "SQLite: one writer is enough" --kind decision --tier long',
    'nudge note store -T "Release" -c - --tags release,howto < RELEASING.md',
    'nudge note store -T "Freeze" -c "No merges to main" --ttl-secs 86400 --priority 9',
    group=NOTES,
    summary="store a note, or update the one with its title",
    operations=("nudge.memory_store",),
)
@option(
    "-T",
    "--title",
    required=True,
    metavar="TITLE",
    help="Title. The note of this title in its repo is updated, and keeps what is not given.",
)
@option("-c", "--content", required=True, metavar="TEXT", help="The text; - reads it from stdin.")
@field_options()
@option("--ttl-secs", type=WHOLE, metavar="N", help="Seconds until it expires, instead of the time of its tier.")
def store(invocation: Invocation, content: str, **fields: Any) -> int:
    """An update never lowers the tier or the priority. A text with a credential is refused. Prints the id of the note,
    its repo and how long it is kept."""
    return _store(invocation, content=read_text(content), **fields)


def _store(invocation: Invocation, **fields: Any) -> int:
    result = invocation.call("nudge.memory_store", note_fields(**fields))
    invocation.console.result(result, render.stored_note_lines(invocation.console, result))
    return EXIT_OK


@verb(
    "note recall",
    "nudge note recall which database",
    "nudge note recall deploy --budget-tokens 500",
    group=NOTES,
    summary="find notes with any of the words; counts as a use",
    operations=("nudge.memory_recall",),
)
@words_argument
@filter_options
@params.limit_option(limits.DEFAULT_RECALL_LIMIT, "notes")
@option("--budget-tokens", type=WHOLE, metavar="N", help="Return only as many notes as fit into N tokens.")
@option("--no-touch", is_flag=True, help="Do not count the notes as used.")
def memory_recall(invocation: Invocation, words: tuple[str, ...], no_touch: bool, **filters: Any) -> int:
    """Prints the notes, the best match first, each with its text. A note that is found counts as used and is
    kept longer: after 5 times it is kept for good."""
    fields = {"context": " ".join(words), **note_fields(**filters, touch=False if no_touch else None)}
    result = invocation.call("nudge.memory_recall", fields)
    _show_list(invocation.console, result, result["memories"])
    return EXIT_OK


@verb(
    "note search",
    "nudge note search database migration",
    "nudge note search router --tags http --since 30d",
    group=NOTES,
    summary="find notes with all of the words",
    operations=("nudge.memory_search",),
)
@words_argument
@filter_options
@params.limit_option(limits.DEFAULT_SEARCH_LIMIT, "notes")
def search(invocation: Invocation, words: tuple[str, ...], **filters: Any) -> int:
    """Prints the notes, the best match first, each with its text. Does not count as a use."""
    result = invocation.call("nudge.memory_search", {"query": " ".join(words), **note_fields(**filters)})
    _show_list(invocation.console, result, result["results"])
    return EXIT_OK


@verb(
    "note list",
    "nudge note list",
    "nudge note list --repo . --tier long --offset 50",
    group=NOTES,
    summary="list notes, the most important first",
    operations=("nudge.memory_list",),
)
@filter_options
@params.limit_option(limits.DEFAULT_SEARCH_LIMIT, "notes")
@option("--offset", type=WHOLE, metavar="N", help="Skip the first N notes.")
def list_notes(invocation: Invocation, **filters: Any) -> int:
    """Prints each note: id, title, kind and age, and its text below."""
    result = invocation.call("nudge.memory_list", note_fields(**filters))
    offset, rows = filters.get("offset") or 0, result["memories"]
    is_filtered = any(value not in (None, (), []) for name, value in filters.items() if name != "limit")
    none = _NO_MATCH if is_filtered else "there are no notes yet; store one with: nudge remember TEXT"
    _show_list(invocation.console, result, rows, more=f"there are more: --offset {offset + len(rows)}", none=none)
    return EXIT_OK


def _show_list(
    console: Console,
    result: dict[str, Any],
    rows: list[render.Note],
    *,
    more: str = "not all of them fit into one answer: narrow it down",
    none: str = _NO_MATCH,
) -> None:
    console.result(result, render.note_list(console, rows))
    if console.as_json:
        return
    if result.get("more"):
        console.note(more)
    _note_search(console, result)
    if not rows:
        console.note(none)


@verb(
    "note get",
    "nudge note get m12",
    "nudge note get 12 --json",
    group=NOTES,
    summary="show a note in full, with its links",
    operations=("nudge.memory_get",),
)
@id_argument
@params.namespace_option("Repo of the note; needed if it is a private one, and not the one you are in.")
@option("--archived", is_flag=True, help="A note that is in the archive.")
def get(invocation: Invocation, note_id: int, namespace: str | None, archived: bool) -> int:
    """Prints the text, all fields and the links to other notes."""
    fields = {**note_fields(namespace), **({"archived": True} if archived else {})}
    result = invocation.call("nudge.memory_get", {"id": note_id, **fields})
    invocation.console.result(result, render.full_note_lines(invocation.console, result["memory"], result["links"]))
    return EXIT_OK


@verb(
    "note update",
    'nudge note update m12 -c "SQLite in WAL mode"',
    "nudge note update m12 --priority 8 --tags database,sqlite --expires-at 30d",
    group=NOTES,
    summary="change fields of a note",
    operations=("nudge.memory_update",),
)
@id_argument
@option("-T", "--title", metavar="TITLE", help="New title.")
@option("-c", "--content", metavar="TEXT", help="New text; - reads it from stdin.")
@field_options(is_new=False)
def update(invocation: Invocation, note_id: int, content: str | None, **fields: Any) -> int:
    """Only the fields that are given change. Prints the whole note."""
    text = None if content is None else read_text(content)
    changes = note_fields(content=text, **fields)
    result = invocation.call("nudge.memory_update", {"id": note_id, **changes})
    console, name = invocation.console, note_name(note_id)
    done = f"updated {', '.join(sorted(changes))} of {name}" if changes else f"{name} is unchanged: no field was given"
    lines = [console.styler.done(done)]
    console.result(result, [*lines, *render.full_note_lines(console, result["memory"])])
    return EXIT_OK


@verb(
    "note delete",
    "nudge note delete m12",
    "nudge note delete m12 --yes",
    group=NOTES,
    summary="delete a note permanently",
    operations=("nudge.memory_delete",),
)
@id_argument
@yes_option
def delete(invocation: Invocation, note_id: int, yes: bool) -> int:
    """Asks for confirmation. The note cannot be restored: `nudge note forget` moves notes to the archive instead."""
    console = invocation.console
    note = invocation.call("nudge.memory_get", {"id": note_id})["memory"]
    name = f"{note_name(note_id)} {title_of(note)}"
    if not ask(f"Delete {name} permanently?", yes=yes):
        console.note("nothing was deleted")
        return EXIT_REFUSED
    result = invocation.call("nudge.memory_delete", {"id": note_id})
    console.result(result, [console.styler.done(f"deleted {name}")])
    return EXIT_OK


@verb(
    "note promote",
    "nudge note promote m12",
    group=NOTES,
    summary="keep a note for good",
    operations=("nudge.memory_promote",),
)
@id_argument
def promote(invocation: Invocation, note_id: int) -> int:
    """The tier of the note becomes long, and it no longer expires."""
    console, result = invocation.console, invocation.call("nudge.memory_promote", {"id": note_id})
    console.result(result, [console.styler.done(f"{note_name(note_id)} is kept for good")])
    return EXIT_OK


@verb(
    "note pin",
    "nudge note pin m12",
    group=NOTES,
    summary="tell a note at every start",
    operations=("nudge.memory_update",),
)
@id_argument
def pin(invocation: Invocation, note_id: int) -> int:
    """Sessions in the repo of the note are told it at their start, two pinned notes at most. Pinning adds the tag
    `pinned`; a note that is stored with this tag is pinned too."""
    return _set_pinned(invocation, note_id, True)


@verb(
    "note unpin",
    "nudge note unpin m12",
    group=NOTES,
    summary="no longer tell a note at every start",
    operations=("nudge.memory_update",),
)
@id_argument
def unpin(invocation: Invocation, note_id: int) -> int:
    """Removes the tag `pinned`."""
    return _set_pinned(invocation, note_id, False)


def _set_pinned(invocation: Invocation, note_id: int, is_pinned: bool) -> int:
    note = invocation.call("nudge.memory_get", {"id": note_id})["memory"]
    others = [tag for tag in note["tags"] if tag != _PINNED]
    result = invocation.call("nudge.memory_update", {"id": note_id, "tags": [*others, *[_PINNED][:is_pinned]]})
    done = "is told at every start" if is_pinned else "is no longer told at every start"
    invocation.console.result(result, [invocation.console.styler.done(f"{note_name(note_id)} {done}")])
    return EXIT_OK


@verb(
    "note stats",
    "nudge note stats",
    "nudge note stats --json",
    group=NOTES,
    summary="count notes by tier and repo",
    operations=("nudge.memory_stats",),
)
def stats(invocation: Invocation) -> int:
    """Also prints how many notes expire within a day, the number of links and archived notes, and the size of the
    database."""
    result = invocation.call("nudge.memory_stats", {})
    invocation.console.result(result, render.note_stats_lines(invocation.console, result))
    return EXIT_OK


@verb(
    "note repos",
    "nudge note repos",
    group=NOTES,
    summary="list the repos that have notes, and how many",
    operations=("nudge.memory_namespaces",),
    unlisted=("namespaces",),
)
def repos(invocation: Invocation) -> int:
    """Prints the full name of each repo, or the other name that its notes were stored with."""
    console, result = invocation.console, invocation.call("nudge.memory_namespaces", {})
    rows = [(escape(row["namespace"]), output.count(row["count"], "note")) for row in result["namespaces"]]
    console.result(result, table(console.styler, rows))
    if not rows and not console.as_json:
        console.note("there are no notes yet; store one with: nudge remember TEXT")
    return EXIT_OK
