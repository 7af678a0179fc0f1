"""The operation `nudge.known`: hints, notes and facts in one list, newest first, with the total and counts by kind,
repo, tag and author."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, InContext, Result, Text
from nudge.core.context import is_project, project_of
from nudge.core.errors import Invalid
from nudge.core.operation import operation
from nudge.core.text import mask
from nudge.core.visibility import Visibility, visible_hints, visible_to
from nudge.hints import ranking
from nudge.hints.model import Hint
from nudge.history import projects
from nudge.notes import archive_pages, browse, namespaces
from nudge.notes.fields import GLOBAL, parse_time
from nudge.notes.store import NoteFilter

HINT, NOTE, FACT, ARCHIVED = "hint", "note", "fact", "archived"
_RANK = {HINT: 2, FACT: 1, NOTE: 0, ARCHIVED: 0}
_EVERYWHERE = "everywhere"
_LEARNED = "learned"  # who added a fact
Row = dict[str, Any]


class Known(InContext):
    """With a context, hints and facts also say whether they apply there, and why not."""

    query: Text = ""
    type: Annotated[
        Literal["hint", "note", "fact", "archived"] | None, Field(description="archived: notes in the archive")
    ] = None
    repo: Annotated[Text | None, Field(description="everywhere: what belongs to no repo")] = None
    kind: Text | None = None
    tag: Text | None = None
    by: Text | None = None
    since: Annotated[str | None, Field(description="RFC 3339")] = None
    after: Annotated[Text | None, Field(description="`next` of the previous page")] = None
    limit: Annotated[int, Field(ge=1, le=limits.MAX_NOTES_LISTED)] = 50
    facets: bool = False
    applies: Annotated[
        bool | None, Field(description="with a context: only hints and facts that apply there, or that do not")
    ] = None


class KnownResult(Result):
    """`total` and `counts` are of all pages; `partial`: there was no time to count every note by facet."""

    items: list[dict[str, Any]]
    total: int
    next: str | None
    counts: dict[str, list[list[Any]]] | None = None
    partial: bool | None = None


@operation(
    "nudge.known",
    tool="known",
    group="history",
    effect="read",
    route="GET /api/v1/known",
    result=KnownResult,
    listed=False,
    summary="Notes: hints, notes and facts in one list.",
)
async def known(app: App, params: Known, call: Call) -> Any:
    """List what is known, newest first."""
    visible, after = visible_to(app, call), _parse_cursor(params.after)
    since = None if params.since is None else parse_time(params.since, "since")
    facts = []
    if params.type in (None, FACT) and params.kind in (None, FACT) and not params.tag and params.by in (None, _LEARNED):
        facts = (await app.execute("nudge.learned", {"project": None}, call))["facts"]

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        names = projects.Names(connection)
        if params.type == ARCHIVED:
            return _archived(connection, params, visible, names, after, since)
        others = _Others(names, params, since, call)
        if params.type in (None, HINT) and params.kind in (None, HINT):
            hints = app.lifetime.store.live_hints(app.now(), visible=visible_hints(app, call))
            others.add_hints(hints, app.now())
        others.add_facts(facts)
        return _answer(connection, params, visible, others, after, since, app.now())

    return await app.read(read)


def _answer(
    connection: sqlite3.Connection,
    params: Known,
    visible: Visibility,
    others: _Others,
    after: tuple[float, int, str] | None,
    since: float | None,
    now: float,
) -> dict[str, Any]:
    rows = [row for row in others.rows if after is None or _key(row) < after]
    counted = browse.Facets()
    text = browse.typed_words(params.query)
    if params.type in (None, NOTE) and params.kind not in (HINT, FACT) and params.applies is None:
        where = _note_filter(connection, params, visible, since)
        before = None if after is None else (after[0], _note_id(after[2]) if after[1] == _RANK[NOTE] else 2**62)
        notes = browse.page(connection, where, text, params.by, now, before, params.limit + 1)
        counted = browse.count(connection, where, text, params.by, now, limits.FACET_SECONDS if params.facets else 0)
        rows += [_note_row(note, others.names) for note in notes]
    rows.sort(key=_key, reverse=True)
    shown = rows[: params.limit]
    result: dict[str, Any] = {
        "items": shown,
        "total": len(others.rows) + counted.total,
        "next": _cursor(shown[-1]) if len(rows) > params.limit else None,
    }
    if params.facets:
        result["counts"] = _counts(others.rows, others.names, counted)
        result["partial"] = counted.is_partial
    return result


def _archived(
    connection: sqlite3.Connection,
    params: Known,
    visible: Visibility,
    names: projects.Names,
    after: tuple[float, int, str] | None,
    since: float | None,
) -> dict[str, Any]:
    """The notes in the archive, by when they got there."""
    asked = archive_pages.Asked(_note_filter(connection, params, visible, None), params.query, params.by, since)
    before = None if after is None else (after[0], _note_id(after[2]))
    found = archive_pages.page(connection, asked, before, params.limit + 1)
    counted = archive_pages.count(connection, asked, by_facet=params.facets)
    rows = [{**_note_row(note, names), "type": ARCHIVED, "reason": note["reason"]} for note in found]
    shown = rows[: params.limit]
    result = {"items": shown, "total": counted.total, "next": _cursor(shown[-1]) if len(rows) > params.limit else None}
    if params.facets:
        counts = {**_counts([], names, counted), "type": [[ARCHIVED, counted.total]]}
        result |= {"counts": counts, "partial": counted.is_partial}
    return result


def _note_filter(connection: sqlite3.Connection, params: Known, visible: Visibility, since: float | None) -> NoteFilter:
    named = GLOBAL if params.repo == _EVERYWHERE else namespaces.find_named(connection, params.repo, visible)
    return NoteFilter(
        namespaces=(named,) if named else None,
        kind=params.kind,
        tags=(params.tag,) if params.tag else (),
        since=since,
        hidden=() if named else namespaces.find_hidden(connection, visible),
    )


class _Others:
    """The hints and facts that are meant, and their counts. There are thousands at most: they are looked at one by
    one."""

    def __init__(self, names: projects.Names, params: Known, since: float | None, call: Call) -> None:
        self.names = names
        self._params, self._since = params, since
        self._place = call.context if params.context else None
        self._words = params.query.casefold().split()
        self.rows: list[Row] = []

    def add_hints(self, hints: Iterable[Hint], now: float) -> None:
        for hint in hints:
            if not self._is_meant(f"{hint.component}/{hint.key}\n", hint.updated_at, hint.blob):
                continue
            row = _hint_row(hint, self.names, now)
            if self._place is not None:
                verdict = hint.scope.check(self._place)
                row |= {"applies": verdict.eligible, "reasons": verdict.reasons}
            self._add(row)

    def add_facts(self, facts: Iterable[Mapping[str, Any]]) -> None:
        for fact in facts:
            text = f"{fact['subject']}\n{fact['error']}\n{fact['answer'] or ''}"
            if not self._is_meant(text, fact["last"]):
                continue
            row = _fact_row(fact)
            if self._place is not None:
                is_here = is_project(self._place.project or "", fact["project"])
                row |= {"applies": is_here, "reasons": [f"a fact of {fact['project']}"]}
            self._add(row)

    def _is_meant(self, text: str, updated_at: float, blob: bytes = b"") -> bool:
        """`blob` is more text, which is only looked at when there are words to be found."""
        if self._since is not None and updated_at < self._since:
            return False
        whole = f"{text}{blob.decode('utf-8', 'replace')}".casefold() if self._words else ""
        return all(word in whole for word in self._words)

    def _add(self, row: Row) -> None:
        params = self._params
        is_there = params.repo is None or any(is_project(repo, params.repo) for repo in row["repos"])
        has_tag = params.tag is None or params.tag in row["tags"]
        has_verdict = params.applies is None or row.get("applies") is params.applies
        if is_there and has_tag and has_verdict and params.by in (None, row["by"]):
            self.rows.append(row)


def _hint_row(hint: Hint, names: projects.Names, now: float) -> Row:
    repos = hint.scope.fields.get("repo") or ()
    listed = [repos] if isinstance(repos, str) else list(repos)
    meta = hint.meta
    return {
        "type": HINT,
        "kind": HINT,
        "id": f"{hint.component}/{hint.key}",
        "component": hint.component,
        "key": hint.key,
        "variant": hint.scope.key,
        "title": f"{hint.component}/{hint.key}",
        "text": mask("secret") if hint.secret else _text_of(hint.value)[: limits.STREAM_PREVIEW_CHARS],
        "reason": meta.get("reason"),
        "repos": [names.name(project_of(repo, None) or repo) for repo in listed] or [_EVERYWHERE],
        "scope": hint.scope.fields,
        "tags": list(meta.get("tags", ())),
        "by": meta.get("added_by") or meta.get("source") or "-",
        "updated_at": hint.updated_at,
        "worked": hint.use_count,
        "failed": hint.failure_count,
        "score": round(ranking.score(hint, now), 3),
        "version": hint.version,
    }


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        text = value.get("cmd") or value.get("abs") or value.get("body")
        if isinstance(text, str):
            return text
    return json.dumps(value, ensure_ascii=False)


def _note_row(note: Row, names: projects.Names) -> Row:
    place = str(note["namespace"])
    return {
        "type": NOTE,
        "kind": note["kind"],
        "id": f"m{note['id']}",
        "title": note["title"],
        "text": note["preview"],
        "repos": [_EVERYWHERE if place == GLOBAL else names.name(place)],
        "tags": note["tags"],
        "by": note["source"],
        "updated_at": note["updated_at"],
        "tier": note["tier"],
        "priority": note["priority"],
        "pinned": "pinned" in note["tags"],
    }


def _fact_row(fact: Mapping[str, Any]) -> Row:
    return {
        "type": FACT,
        "kind": FACT,
        "id": f"fact {fact['subject']}",
        "title": fact["subject"],
        "text": fact["answer"] or fact["error"],
        "error": fact["error"],
        "repos": [fact["project"]],
        "tags": [],
        "by": _LEARNED,
        "updated_at": float(fact["last"]),
        "sessions": fact["sessions"],
        "observation": fact["id"],
    }


# Order and counts


def _key(row: Row) -> tuple[float, int, str]:
    identity = row["id"][1:].zfill(20) if row["type"] in (NOTE, ARCHIVED) else f"{row['id']} {row.get('variant', '')}"
    return float(row["updated_at"]), _RANK[row["type"]], identity


def _cursor(row: Row) -> str:
    return json.dumps(_key(row))


def _parse_cursor(text: str | None) -> tuple[float, int, str] | None:
    if text is None:
        return None
    try:
        at, rank, identity = json.loads(text)
        return float(at), int(rank), str(int(identity)).zfill(20) if rank == _RANK[NOTE] else str(identity)
    except (ValueError, TypeError, RecursionError):
        raise Invalid("must be `next` of an earlier answer", field="after") from None


def _note_id(identity: str) -> int:
    """The number of a note in a cursor."""
    if not identity.isdecimal() or int(identity) > limits.MAX_NOTE_ID:
        raise Invalid("must be `next` of an earlier answer", field="after")
    return int(identity)


def _counts(others: Sequence[Row], names: projects.Names, notes: browse.Facets) -> dict[str, list[list[Any]]]:
    types = Counter(row["type"] for row in others)
    types[NOTE] += notes.total
    kinds = Counter(notes.kinds) + Counter(row["kind"] for row in others)
    repos = Counter(repo for row in others for repo in row["repos"])
    for namespace, number in notes.namespaces.items():
        repos[_EVERYWHERE if namespace == GLOBAL else names.name(namespace)] += number
    tags = Counter(notes.tags) + Counter(tag for row in others for tag in row["tags"])
    authors = Counter(notes.sources) + Counter(row["by"] for row in others)
    named = {"type": types, "kind": kinds, "repo": repos, "tag": tags, "by": authors}
    return {name: [list(pair) for pair in (+counter).most_common(_MOST)] for name, counter in named.items()}


_MOST = 50  # values of a facet
