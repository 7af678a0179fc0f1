"""Writing a hint into the file: what else is in it, comments and order among it, stays as it is."""

from __future__ import annotations

import tomllib

from nudge.repofile.document import VERSION, RepoHint, quoted
from nudge.repofile.toml_positions import Path, Positions

_FIELDS = ("value", "kind", "reason", "evidence")


class CannotEdit(ValueError):
    """The file has its hints in a form to which nothing is added."""


def with_hint(text: str, hints: tuple[RepoHint, ...], hint: RepoHint) -> str:
    """Return the text of a valid file with these hints, and one more: in place of the one with its key and scope, else
    at the end. A reason or evidence that the new hint does not have stays."""
    ends = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    if not text.strip():
        text = f"version = {VERSION}\n"
    positions = Positions(text)
    number = next((number for number, one in enumerate(hints) if one.variant == hint.variant), None)
    if hints and ("hint", 0) not in positions.tables:
        raise CannotEdit("its hints are one list; write each as a table of its own: [[hint]]")
    if number is None:
        edited = "\n".join([text.rstrip("\n"), "", *hint.toml_lines(), ""])
    else:
        edited = _replaced(positions, ("hint", number), hint)
    return edited.replace("\n", ends)


def _replaced(positions: Positions, table: Path, hint: RepoHint) -> str:
    """Replace the values that differ, from the last to the first; a new field comes on a line behind the value."""
    text = positions.text
    texts = {name: str(getattr(hint, name)) for name in _FIELDS}
    places = {name: positions.values.get((*table, name)) for name in _FIELDS}
    added = [f"{name} = {quoted(texts[name])}" for name in _FIELDS if texts[name] and places[name] is None]
    behind = places["value"]
    assert behind is not None  # the document is valid
    end = text.find("\n", behind.end)
    edits = [(end if end >= 0 else len(text), end if end >= 0 else len(text), "".join(f"\n{line}" for line in added))]
    for name, span in places.items():
        if span is not None and texts[name] and _value_at(text[span.start : span.end]) != texts[name]:
            edits.append((span.start, span.end, quoted(texts[name])))
    for start, stop, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


def _value_at(written: str) -> object:
    return tomllib.loads(f"x = {written}")["x"]
