"""Explanations of a ranking: one envelope with items, missing ids, errors and metadata.

No field is left out: an unknown value is null, an empty array is an empty array. `score.total` is the score that ranked
the note: the sum of the components that are not null. Both are rounded, to save tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nudge.notes.fields import rfc3339
from nudge.notes.note import Note
from nudge.notes.ranking import COMPONENTS, Score

INVALID_ARGUMENT, NOT_FOUND, PROJECT_MISMATCH = "INVALID_ARGUMENT", "NOT_FOUND", "PROJECT_MISMATCH"
QUERY, ID_LOOKUP, BOTH = "query", "id_lookup", "query+id_lookup"
NAME_LOOKUP, INJECTION = "name_lookup", "injection"


@dataclass(frozen=True, slots=True)
class NoteExplanation:
    """A note with its score and the words of the query that it has; `rank` is None when the query did not find it."""

    note: Note
    score: Score
    words: Sequence[str]
    rank: int | None = None


def envelope(
    *,
    query: str | None,
    project: str | None,
    requested: int,
    corrections: Mapping[str, str],
    include_pack_context: bool,
    items: Sequence[Mapping[str, Any]],
    missing_ids: Sequence[int] = (),
    errors: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """`corrections`: misspelled words of the query, each with the one that was looked for in its place."""
    return {
        "items": list(items),
        "missing_ids": list(missing_ids),
        "errors": list(errors),
        "metadata": {
            "query": query,
            **({"corrections": dict(corrections)} if corrections else {}),
            "project": project,
            "requested_ids_count": requested,
            "returned_items_count": len(items),
            "include_pack_context": include_pack_context,
        },
    }


def error(code: str, message: str, field: str) -> dict[str, str]:
    return {"code": code, "message": message, "field": field}


def not_found(note_id: int) -> dict[str, str]:
    return error(NOT_FOUND, f"there is no note m{note_id}", "ids")


def other_project(note: Note) -> dict[str, str]:
    return error(PROJECT_MISMATCH, f"note m{note.id} belongs to {note.draft.namespace}", "project")


def item(
    explained: NoteExplanation,
    *,
    requested: bool = False,
    project: str | None,
    pack_context: Mapping[str, Any] | None,
    source: str | None = None,
    reasons: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the explanation of one note. `requested`: whether its id was named; `project`: the requested one; `source`
    and `reasons`: how else it was chosen."""
    note, rank = explained.note, explained.rank
    source = source or (ID_LOOKUP if rank is None else BOTH if requested else QUERY)
    return {
        "id": note.id,
        "kind": note.draft.kind,
        "title": note.draft.title,
        "created_at": rfc3339(note.created_at),
        "project": note.draft.namespace,
        "retrieval": {"source": source, "rank": rank},
        "score": _score(explained.score.total, explained.score.components),
        "matches": {
            "query_terms": list(explained.words),
            "project_match": None if project is None else note.draft.namespace == project,
            **({} if reasons is None else {"reasons": list(reasons)}),
        },
        "pack_context": None if pack_context is None else dict(pack_context),
    }


def item_of(
    *,
    identity: int | str,
    kind: str,
    title: str,
    created_at: float | None,
    project: str | None,
    source: str,
    rank: int | None,
    score: Mapping[str, float] | None,
    matches: Mapping[str, Any],
    pack_context: Mapping[str, Any] | None,
    own_components: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the explanation of anything but a note: a hint, an observation, an injected line. `score` has its
    components, or is None without a score; `own_components` are those that notes do not have."""
    components: dict[str, float | None] = {**dict.fromkeys((*COMPONENTS, *own_components)), **(score or {})}
    return {
        "id": identity,
        "kind": kind,
        "title": title,
        "created_at": rfc3339(created_at),
        "project": project,
        "retrieval": {"source": source, "rank": rank},
        "score": _score(None if score is None else sum(score.values()), components),
        "matches": {"query_terms": [], **matches},
        "pack_context": None if pack_context is None else dict(pack_context),
    }


def _score(total: float | None, components: Mapping[str, float | None]) -> dict[str, Any]:
    """Round the total and its components. What the components lose or gain is added to the largest one, so that they
    still sum to the total."""
    rounded = {name: None if part is None else round(part, 4) for name, part in components.items()}
    parts = {name: part for name, part in rounded.items() if part is not None}
    if total is not None and parts:
        largest = max(parts, key=lambda name: abs(parts[name]))
        rounded[largest] = round(parts[largest] + round(total, 4) - sum(parts.values()), 4)
    return {"total": None if total is None else round(total, 4), "components": rounded}
