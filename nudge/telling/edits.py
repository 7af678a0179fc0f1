"""Recent edits, to tell a session that edits a file which another live session edited, too.

`Edits` is the PRIMARY's in-memory state. The key of a file is its path in the project, so that the copies in two clones
are one file.
"""

# ruff: noqa: S608 - only constants are put into the SQL; every value is bound
from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from nudge.core import limits
from nudge.core.clock import ago
from nudge.core.text import quote_name
from nudge.history.event import UNKNOWN_CLIENT, client_label, placeholders
from nudge.history.observations import FILE_CHANGES
from nudge.telling.ledger import EDIT, Line
from nudge.telling.use import FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from nudge.history.event import SqlConnection

_File = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Edit:
    session: str
    client: str
    branch: str | None
    clone: str | None
    timestamp: float


class Edits:
    """The latest edit of each file by each session."""

    def __init__(self) -> None:
        self._files: OrderedDict[_File, dict[str, Edit]] = OrderedDict()
        self.is_loaded = False

    def observe(self, event: Mapping[str, Any], now: float) -> list[Line]:
        """Add an edit, and return a line for each of its files that another live session edited recently. Drop the
        edits of a session that ends."""
        session = str(event.get("session_id"))
        if event.get("type") == "session_end":
            for edits in self._files.values():
                edits.pop(session, None)
        if event.get("type") not in FILE_CHANGES:
            return []
        edit = Edit(
            session,
            str(event.get("client") or UNKNOWN_CLIENT),
            event.get("branch"),
            event.get("clone"),
            float(event.get("timestamp") or now),
        )
        return [line for file, path in _files(event) if (line := self._add(file, path, edit, now))]

    def _add(self, file: _File, path: str, edit: Edit, now: float) -> Line | None:
        edits = self._files.setdefault(file, {})
        self._files.move_to_end(file)
        if len(self._files) > limits.EDITED_FILES:
            self._files.popitem(last=False)
        previous = edits.get(edit.session)
        if previous is None or previous.timestamp <= edit.timestamp:
            edits[edit.session] = edit
        others = [
            other
            for other in edits.values()
            if other.session != edit.session and now - other.timestamp <= limits.LIVE_SECONDS
        ]
        return _line(file, path, edit, max(others, key=lambda other: other.timestamp), now) if others else None


def _files(event: Mapping[str, Any]) -> Iterator[tuple[_File, str]]:
    """Yield the files of an edit, each with its absolute path."""
    project, clone = str(event.get("project") or ""), str(event.get("clone") or "")
    metadata = event.get("metadata")
    more = metadata.get("files") if isinstance(metadata, dict) else None
    paths = [event.get("file_path"), *(more if isinstance(more, list) else ())]
    for path in dict.fromkeys(path for path in paths if isinstance(path, str) and path):
        yield (project.casefold(), path.removeprefix(f"{clone.rstrip('/')}/") if clone else path), path


def _line(file: _File, path: str, edit: Edit, other: Edit, now: float) -> Line:
    where = []
    if other.branch and other.branch != edit.branch:
        where.append(f"branch {quote_name(other.branch, limits.INJECTED_NAME_CHARS)}")
    if other.clone and other.clone != edit.clone:
        where.append(f"in {quote_name(other.clone, limits.INJECTED_NAME_CHARS)}")
    client = "" if other.client == UNKNOWN_CLIENT else f" in {client_label(other.client)}"
    place = f" ({', '.join(where)})" if where else ""
    name = quote_name(file[1], limits.MAX_TOLD_COMMAND)
    text = f"another session that is at work{client}{place} edited {name} too, {ago(now - other.timestamp)}"
    return Line(f"{EDIT} {file[1]}", EDIT, text, "two sessions edit one file", ((FILE, path),))


def load(connection: SqlConnection, now: float) -> list[dict[str, Any]]:
    """Return the recent edits of sessions that have not ended, as events, oldest first."""
    rows = connection.execute(
        "SELECT o.session_id, s.client, o.branch, o.clone, o.timestamp, o.project, o.file_path, o.obs_type"
        " FROM observations AS o JOIN sessions AS s ON s.id = o.session_id WHERE s.ended_at IS NULL"
        f" AND o.obs_type IN ({placeholders(FILE_CHANGES)}) AND o.timestamp > ? ORDER BY o.timestamp LIMIT ?",
        (*FILE_CHANGES, int(now) - limits.LIVE_SECONDS, limits.EDITED_FILES),
    )
    names = ("session_id", "client", "branch", "clone", "timestamp", "project", "file_path", "type")
    return [dict(zip(names, row, strict=True)) for row in rows]
