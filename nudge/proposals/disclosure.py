"""Which text a language model may see: one decision for every path that leads to a model, on this machine or not.

No text with a credential, with a credential that was redacted, or with a passage that its author marked as private; no
note of a private project, nor one that was written there, whoever asks; no query that is asked in one, or about one."""

from __future__ import annotations

from nudge.core.visibility import Visibility
from nudge.notes.note import Note, find_secret_in
from nudge.security.secrets import REDACTED, find_secret

_MARKED_PRIVATE = ("<private", "[private]")


def why_note_is_withheld(note: Note, visible: Visibility) -> str | None:
    """Return why no model may see a note; None when it may. `visible` names the private projects: those of the server,
    and of the caller."""
    if note.damage is not None:
        return "it is damaged"
    places = (note.draft.namespace, note.draft.origin.get("repo"))
    if any(isinstance(place, str) and visible.is_private(place) for place in places):
        return "it belongs to a private repo"
    if find_secret_in(note.draft) is not None:
        return "it holds a credential"
    return _why_text_is_withheld(f"{note.draft.title}\n{note.draft.content}")


def why_query_is_withheld(query: str, visible: Visibility, namespace: str | None = None) -> str | None:
    """`namespace` is what the query is limited to."""
    if any(place is not None and visible.is_private(place) for place in (visible.here, namespace)):
        return "it is asked in a private repo"
    return _why_text_is_withheld(query)


def _why_text_is_withheld(text: str) -> str | None:
    if find_secret(text, for_redaction=True) is not None:
        return "it holds a credential"
    if REDACTED in text:
        return "something in it was redacted"
    if any(mark in text.lower() for mark in _MARKED_PRIVATE):
        return "a passage of it is marked as private"
    return None
