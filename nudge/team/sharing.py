"""What of a hint or a note is shared, and the way back: a row of the log becomes a hint or a note only through the
checks of an import.

What says something about this machine or about a session stays here: where a note came from, how often something was
used, directories, and hints that are marked as secret.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nudge.core import limits
from nudge.core.clock import iso
from nudge.core.context import project_of
from nudge.core.errors import Invalid
from nudge.core.repos import has_host, normalize_repo
from nudge.hints.admission import find_secret_in as find_secret_in_hint
from nudge.hints.model import Hint, Identity, hint_from_json, is_copied_fact
from nudge.history.redact import redact_text
from nudge.notes.fields import ATTEMPT, LONG, Draft, parse_draft, parse_time, rfc3339
from nudge.notes.note import Note, find_secret_in
from nudge.team.entry import HINT, NOTE, Entry, Name

_NOTE_FIELDS = ("content", "kind", "tier", "priority", "confidence")
_SESSION_KINDS = (ATTEMPT, "session_summary")
"""Notes about what happened in a session."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """Why something is not shared, or was not taken in."""

    reason: str


Shared = dict[str, Any] | Withheld


@dataclass(frozen=True, slots=True)
class SharedNote:
    """A note of the log, checked."""

    draft: Draft
    created_at: float
    updated_at: float


# Notes


def note_name(project: str, title: str) -> Name:
    return Name(project, NOTE, title)


def share_note(note: Note) -> Shared:
    """Return what is shared of a note; texts are redacted as history is, and then must have no secret."""
    draft = note.draft
    if note.damage is not None:
        return Withheld("it is damaged")
    if draft.kind in _SESSION_KINDS:
        return Withheld(f"it is about a session ({draft.kind})")
    redacted = replace(
        draft,
        content=redact_text(draft.content),
        tags=tuple(map(redact_text, draft.tags)),
        metadata=_redacted(dict(draft.metadata)),
    )
    if (found := find_secret_in(redacted)) is not None:
        return Withheld(f"{found[0]} looks like a secret ({found[1]})")
    if not redacted.content.strip():
        return Withheld("nothing is left of it without what is private")
    fields: dict[str, Any] = {name: getattr(redacted, name) for name in _NOTE_FIELDS}
    fields["tags"], fields["metadata"] = list(redacted.tags), dict(redacted.metadata)
    if draft.tier == LONG and note.expires_at is not None:  # a date that was given; other tiers count anew everywhere
        fields["expires_at"] = rfc3339(note.expires_at)
    return {**fields, "created_at": note.created_at, "updated_at": note.updated_at}


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {redact_text(name): _redacted(part) for name, part in value.items()}
    return [_redacted(part) for part in value] if isinstance(value, list) else value


def read_note(entry: Entry, fields: Mapping[str, Any], latest: float, *, guard: bool) -> SharedNote | Withheld:
    """Return the note of a row, checked as in an import. No time in it is later than `latest`, that of the row."""
    times = {name: fields.get(name) for name in ("created_at", "updated_at")}
    others = {name: value for name, value in fields.items() if name not in (*times, "expires_at")}
    try:
        given = {**others, "title": entry.key, "namespace": entry.project, "source": "import"}
        draft = parse_draft(given, now=latest, namespace=entry.project, source="import")
        created, updated = (_seconds(value, latest, name) for name, value in times.items())
        if fields.get("expires_at") is not None:
            draft = replace(draft, expires_at=parse_time(fields["expires_at"], "expires_at"))
    except Invalid as error:
        return Withheld(error.message)
    if draft.kind in _SESSION_KINDS:
        return Withheld(f"it is about a session ({draft.kind})")
    if guard and (found := find_secret_in(draft)) is not None:
        return Withheld(f"{found[0]} looks like a secret ({found[1]})")
    return SharedNote(draft, min(created, updated), updated)


def _seconds(value: object, latest: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= limits.MAX_TIMESTAMP:
        raise Invalid("must be a number of seconds", field=name)
    return min(float(value), latest)


# Hints


def hint_name(project: str, identity: Identity) -> Name:
    return Name(project, HINT, json.dumps(identity, ensure_ascii=False, separators=(",", ":")))


def project_of_scope(scope_key: str) -> str | None:
    """Return the project of the one repo that a scope names; None for a scope that names none, or several."""
    try:
        repo = json.loads(scope_key).get("repo")
    except (ValueError, AttributeError):
        return None
    names = [repo] if isinstance(repo, str) else repo
    return project_of(names[0], None) if isinstance(names, list) and len(names) == 1 else None


def parse_project(text: str) -> str:
    """Return the project that a repo's name or URL stands for. It must have a host: others know the repo by it."""
    try:
        repo = normalize_repo(text if ":" in text or text.startswith("/") else f"git:{text}")
    except ValueError as error:
        raise Invalid(str(error), field="repo") from None
    project = project_of(repo, None)
    if repo.startswith("file:") or project is None or not has_host(project):
        raise Invalid("must have a host that others know it by, such as github.com/acme/app", field="repo")
    return project


def share_hint(hint: Hint) -> Shared:
    """Return what is shared of a hint; how often it worked is of this machine."""
    if hint.secret:
        return Withheld("it is marked as secret")
    if is_copied_fact(hint.meta):
        return Withheld("it is a copy of a fact")
    if any(glob.startswith(("/", "~")) or ":" in glob for glob in hint.scope.fields.get("cwd_glob", ())):
        return Withheld("it names a directory of this machine")
    if isinstance(hint.value, dict) and hint.value.get("type") == "path":
        return Withheld("it is a path of this machine")
    wire = hint.to_json()
    value, meta = _redacted(wire["value"]), _redacted(wire["meta"])
    if (found := find_secret_in_hint(hint.component, hint.key, value, meta)) is not None:
        return Withheld(f"{found.field} looks like a secret ({found.kind})")
    if meta.get("scope") != wire["meta"].get("scope"):
        return Withheld("its scope holds a credential")
    times = {"created_at": hint.created_at, "updated_at": hint.updated_at}
    return {"value": value, "meta": meta, "version": hint.version, **times}


def read_hint(entry: Entry, fields: Mapping[str, Any], latest: float, *, guard: bool) -> Hint | Withheld:
    """Return the hint of a row, checked as in an import."""
    try:
        identity = parse_identity(entry.key)
        times = {name: iso(_seconds(fields.get(name), latest, name)) for name in ("created_at", "updated_at")}
        given = {name: fields[name] for name in ("value", "meta", "version") if name in fields}
        hint = hint_from_json(identity[0], identity[1], {**given, **times}, latest)
    except Invalid as error:
        return Withheld(error.message)
    if hint.identity != identity or project_of_scope(hint.identity[2]) != entry.project:
        return Withheld("its scope is not that of its row")
    if hint.secret or (guard and find_secret_in_hint(hint.component, hint.key, hint.value, hint.meta) is not None):
        return Withheld("it looks like a secret")
    return hint


def parse_identity(key: str) -> Identity:
    """Return component, key and scope of a hint's row."""
    try:
        parts = json.loads(key)
    except (ValueError, RecursionError):
        parts = None
    if not isinstance(parts, list) or len(parts) != 3 or not all(isinstance(part, str) for part in parts):
        raise Invalid("must be component, key and scope", field="key")
    return parts[0], parts[1], parts[2]
