"""Why notes ranked where they did: one envelope with items, missing ids, errors and metadata.

`score.total` is the score that ranked the note and the sum of the components that are not null. Nothing is ever left
out: what is unknown is null, an empty array is an empty array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nudge.memories.note import Note, rfc3339
from nudge.memories.query import words_of
from nudge.memories.scoring import Score
from nudge.memories.store import Match

INVALID_ARGUMENT, NOT_FOUND, PROJECT_MISMATCH = "INVALID_ARGUMENT", "NOT_FOUND", "PROJECT_MISMATCH"
QUERY, ID_LOOKUP, BOTH = "query", "id_lookup", "query+id_lookup"


def envelope(
    *,
    query: str | None,
    project: str | None,
    ids: Sequence[int],
    include_pack_context: bool,
    items: Sequence[Mapping[str, Any]] = (),
    missing_ids: Sequence[int] = (),
    errors: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    return {
        "items": list(items),
        "missing_ids": list(missing_ids),
        "errors": list(errors),
        "metadata": {
            "query": query,
            "project": project,
            "requested_ids_count": len(ids),
            "returned_items_count": len(items),
            "include_pack_context": include_pack_context,
        },
    }


def explain(
    *,
    query: str | None,
    ids: Sequence[int],
    project: str | None,
    matches: Sequence[Match],
    lookups: Mapping[int, tuple[Note, Score]],
    pack_contexts: Mapping[int, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Build the envelope: the query's results by rank, then the remaining ids in the order of the request.

    `lookups` holds every note that one of `ids` names, whatever its project; those of another project are missing.
    """
    ids = list(dict.fromkeys(ids))
    requested = set(ids)
    ranked = {match.note.id for match in matches}
    items = [
        _item(
            *(match.note, match.score, query, project),
            source=BOTH if match.note.id in requested else QUERY,
            rank=rank,
            pack_contexts=pack_contexts,
        )
        for rank, match in enumerate(matches, 1)
    ]
    missing, errors = [], []
    for note_id in ids:
        if note_id in ranked:
            continue
        note, score = lookups.get(note_id, (None, None))
        if note is None or score is None:
            missing.append(note_id)
            errors.append(error(NOT_FOUND, f"there is no note m{note_id}", "ids"))
        elif project is not None and note.draft.namespace != project:
            missing.append(note_id)
            errors.append(error(PROJECT_MISMATCH, f"note m{note_id} belongs to {note.draft.namespace}", "project"))
        else:
            items.append(_item(note, score, query, project, source=ID_LOOKUP, rank=None, pack_contexts=pack_contexts))
    return envelope(
        query=query,
        project=project,
        ids=ids,
        include_pack_context=pack_contexts is not None,
        items=items,
        missing_ids=missing,
        errors=errors,
    )


def error(code: str, message: str, field: str) -> dict[str, str]:
    return {"code": code, "message": message, "field": field}


def _item(
    note: Note,
    score: Score,
    query: str | None,
    project: str | None,
    *,
    source: str,
    rank: int | None,
    pack_contexts: Mapping[int, Mapping[str, Any]] | None,
) -> dict[str, Any]:
    draft = note.draft
    text = f"{draft.title}\n{draft.content}\n{' '.join(draft.tags)}".lower()
    return {
        "id": note.id,
        "kind": draft.kind,
        "title": draft.title,
        "created_at": rfc3339(note.created_at),
        "project": draft.namespace,
        "retrieval": {"source": source, "rank": rank},
        "score": {"total": score.total, "components": dict(score.components)},
        "matches": {
            "query_terms": [word for word in words_of(query) if word in text] if query else [],
            "project_match": None if project is None else draft.namespace == project,
        },
        "pack_context": None if pack_contexts is None else dict(pack_contexts.get(note.id, _NOT_INCLUDED)),
    }


_NOT_INCLUDED: Mapping[str, Any] = {"included": False, "section": None, "tokens": None, "sessions": []}
