"""Notes and links in a database that another process or another machine wrote: each row is validated as one of an
import. A row that is not valid is left out, counted and named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.notes import transfer
from nudge.notes.note_rows import COLUMNS, values_of
from nudge.notes.store import LIVE, placeholders
from nudge.notes.transfer import IncomingLink, IncomingNote

_IDS_AT_ONCE = 500
_SHOWN_CHARS = 20


@dataclass(slots=True)
class ForeignNotes:
    """`rows` returns all rows of a statement. `bad_notes` and `bad_links` are left out; `errors` names the
    first of them."""

    rows: Callable[[str, Sequence[Any]], list[Any]]
    now: float
    hidden: Sequence[str] = ()
    bad_notes: list[int] = field(default_factory=list)
    bad_links: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)

    def notes(self) -> Iterator[IncomingNote]:
        """The notes that have not expired and are in no hidden namespace, by id."""
        where = f"{LIVE} AND n.namespace NOT IN ({placeholders(self.hidden)})"
        last = -(2**63)
        while ids := self.rows("SELECT n.id FROM notes n WHERE n.id > ? ORDER BY n.id LIMIT ?", (last, _IDS_AT_ONCE)):
            for (note_id,) in ids:
                yield from self._note(note_id, where)
            last = ids[-1][0]

    def _note(self, note_id: int, where: str) -> Iterator[IncomingNote]:
        sql = f"SELECT {COLUMNS} FROM notes n WHERE n.id = ? AND {where}"  # noqa: S608 - constants
        try:
            for row in self.rows(sql, (note_id, self.now, *self.hidden)):
                yield transfer.parse_row(values_of(row), self.now)
        except Invalid as error:
            self.bad_notes.append(note_id)
            self.name({"id": note_id, "error": error.message})

    def links(self) -> Iterator[IncomingLink]:
        last = (-(2**63), -(2**63), "")
        sql = (
            "SELECT source_id, target_id, relation, created_at FROM note_links"
            " WHERE (source_id, target_id, relation) > (?, ?, ?) ORDER BY source_id, target_id, relation LIMIT ?"
        )
        while links := self.rows(sql, (*last, _IDS_AT_ONCE)):
            for link in links:
                try:
                    yield transfer.parse_link_row(link)
                except Invalid as error:
                    self.bad_links += 1
                    self.name({"link": str(link[0])[:_SHOWN_CHARS], "error": error.message})
            last = links[-1][:3]

    def name(self, named: dict[str, Any]) -> None:
        """Add to `errors` what is left out, as long as there is room."""
        if len(self.errors) < limits.MAX_IMPORT_REASONS:
            self.errors.append(named)
