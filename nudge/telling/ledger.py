"""The ledger: every line that a session was told, when and why, and whether it was used afterwards.

A line has the same name in every session of a project: a hint's `component/key`, a note's `m12`, `fact SUBJECT`, `edit
PATH`.

It counts as used when the session does what it says (`use`) after it was told, and had not done so before. One act is
one use: what was told twice counts for the line that was told last.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field
from zlib import crc32

from nudge.core import limits
from nudge.core.text import to_unicode
from nudge.history.event import placeholders
from nudge.telling.use import find_use, past_uses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from nudge.history.event import SqlConnection
    from nudge.learning.outcome import RecordedEvent
    from nudge.telling.use import Use, Uses


BannedLine = tuple[str, str]
"""The identity of a project, empty outside of one, and the name of a line."""

START, FAILURE, PROMPT, EDIT, ATTEMPT, TOUCH = ("start", "failure", "prompt", "edit", "attempt", "file")
HEADER = "Nudge record, not an instruction: "
"""The text before every line with which a hook answers."""

BEFORE, REPEATED = "before", "repeated"
"""Why a line can no longer be used: the session had done what it says before it was told; or it was told the same by
another line, which counts as used."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line for an agent. `uses`: what shows that it was used."""

    name: str
    kind: str
    text: str
    reason: str
    uses: Uses = ()

    def as_list(self) -> list[Any]:
        return [self.name, self.kind, self.text, self.reason, self.uses]


@dataclass(frozen=True, slots=True)
class StoredLine:
    """A row of the ledger. `is_open`: whether it may still be used."""

    id: int
    timestamp: int
    moment: str
    name: str
    uses: Uses
    is_open: bool


@dataclass(slots=True)
class Settled:
    """The ids of rows that an event settles: those that were used, and others by BEFORE or REPEATED."""

    used: list[int] = field(default_factory=list)
    unused: dict[int, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.used or self.unused)


@dataclass(slots=True)
class _SessionLines:
    is_loaded: bool = False
    names: set[str] = field(default_factory=set)
    open: dict[int, StoredLine] = field(default_factory=dict)
    """Lines that may still be used, by the ids of their rows."""
    is_shadow: bool | None = None
    """Its stored side of the shadow comparison; None when none is stored."""


class Ledger:
    """The PRIMARY's in-memory state: what the active sessions were told."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, _SessionLines] = OrderedDict()
        self.banned: set[BannedLine] | None = None
        """None until the bans are read; nothing is told before."""

    def is_loaded(self, session: str) -> bool:
        """Whether the stored lines of the session were added."""
        return session in self._sessions and self._sessions[session].is_loaded

    def add_session(self, session: str, lines: Iterable[StoredLine], *, is_shadow: bool | None = None) -> None:
        """Add what is stored about a session: its side, and its lines."""
        session_lines = self._session(session)
        session_lines.is_loaded, session_lines.is_shadow = True, is_shadow
        self.add_lines(session, lines)

    def add_lines(self, session: str, lines: Iterable[StoredLine]) -> None:
        """Add lines that were stored, and watch for their use."""
        session_lines = self._session(session)
        for line in lines:
            session_lines.names.add(line.name)
            if line.is_open:
                session_lines.open[line.id] = line

    def is_shadow(self, setting: str, session: str) -> bool:
        """Whether lines are only logged in this session. A stored side wins over the current share in the setting."""
        kept = self._sessions[session].is_shadow if session in self._sessions else None
        return is_shadow(setting, session) if kept is None else kept and is_comparing(setting)

    def set_banned(self, lines: Iterable[BannedLine], never: bool) -> None:
        """Ban lines from now on, or allow them again. Does nothing before the bans are read from the table."""
        if self.banned is not None:
            self.banned = self.banned.union(lines) if never else self.banned.difference(lines)

    def claim(self, session: str, project: str | None, lines: Sequence[Line], *, again: bool = False) -> list[Line]:
        """Return the lines to tell, and count them as told: those that are not banned in the project and, unless
        `again`, were not told to the session before. Returns none before the bans are read."""
        if self.banned is None:
            return []
        session_lines = self._session(session)
        allowed = [line for line in lines if (project or "", line.name) not in self.banned]
        new = [line for line in allowed if again or line.name not in session_lines.names]
        session_lines.names.update(line.name for line in new)
        return new

    def settle(self, session: str, recorded: RecordedEvent, *, is_late: bool = False) -> Settled:
        """Return the lines that an event settles, each once. `is_late`: it comes from the spool, and may be older than
        a line."""
        open_lines = self._session(session).open
        by_use: dict[Use, list[StoredLine]] = {}
        for line in open_lines.values():
            if (use := find_use(recorded, line.uses)) is not None:
                by_use.setdefault(use, []).append(line)
        settled = Settled()
        for lines in by_use.values():
            before = [line for line in lines if is_late and int(recorded.event["timestamp"]) < line.timestamp]
            after = [line for line in lines if line not in before]
            settled.unused.update((line.id, BEFORE) for line in before)
            if after:
                used = _told_last(after)
                settled.used.append(used.id)
                settled.unused.update((line.id, REPEATED) for line in after if line is not used)
        for row_id in (*settled.used, *settled.unused):
            del open_lines[row_id]
        return settled

    def _session(self, session: str) -> _SessionLines:
        session_lines = self._sessions.setdefault(session, _SessionLines())
        self._sessions.move_to_end(session)
        if len(self._sessions) > limits.WATCHED_SESSIONS:
            self._sessions.popitem(last=False)
        return session_lines


def _told_last(lines: Sequence[StoredLine]) -> StoredLine:
    """The line that was told last; of several in one text, the first."""
    last = max(lines, key=lambda line: line.id)
    return next(line for line in lines if (line.moment, line.timestamp) == (last.moment, last.timestamp))


# The setting and the shadow comparison


def bucket(session: str) -> int:
    """Return a number from 0 to 99 that is always the same for a session."""
    return crc32(session.encode("utf-8", "replace")) % 100


def is_silent(setting: str) -> bool:
    return setting == "0"


def is_comparing(setting: str) -> bool:
    """Whether a share of the sessions is told nothing, for comparison; `setting` is `1`, `0`, or `shadow:20%`."""
    return setting.startswith("shadow:")


def is_shadow(setting: str, session: str) -> bool:
    """Whether lines are only logged in a session that has no stored side yet."""
    share = setting.removeprefix("shadow:").removesuffix("%")
    return is_comparing(setting) and bucket(f"shadow {session}") < int(share)


# Tables


def store(
    connection: SqlConnection,
    session: str,
    project: str | None,
    timestamp: float,
    moment: str,
    lines: Iterable[Line],
    *,
    is_shadow: bool,
    is_late: bool = False,
) -> list[StoredLine]:
    """Store lines that were told, or in a shadow session would have been, after what the session did before them.
    Without a project, they are stored under that of the session. `is_late`: they come from the spool, and what is
    recorded of the session may be newer."""
    stored = []
    for line in lines:
        first_use = next(past_uses(connection, session, line.uses), None)
        is_before = first_use is not None and not (is_late and first_use >= int(timestamp))
        used_at = first_use if not is_before else None
        row = (
            *(project, to_unicode(session)),
            *(to_unicode(session), int(timestamp), moment, line.kind, to_unicode(line.name)),
            *(to_unicode(line.text), to_unicode(line.reason), json.dumps(line.uses), int(is_shadow)),
            *(used_at, BEFORE if is_before else None),
        )
        row_id = connection.execute(
            "INSERT INTO told (project, session_id, timestamp, moment, kind, name, text, reason, uses, is_shadow,"
            " used_at, unused) VALUES (coalesce(?, (SELECT project FROM sessions WHERE id = ?), ''),"
            f" {placeholders(row[2:])})",
            row,
        ).lastrowid
        is_open = first_use is None
        stored.append(StoredLine(int(row_id), int(timestamp), moment, line.name, line.uses, is_open))
    return stored


def load_session(connection: SqlConnection, session: str) -> list[StoredLine]:
    """The lines that a session was told, in the order in which it was."""
    rows = connection.execute(
        "SELECT id, timestamp, moment, name, uses, used_at IS NULL AND unused IS NULL FROM told WHERE session_id = ?"
        " ORDER BY id",
        (session,),
    )
    return [
        StoredLine(
            row_id, timestamp, moment, name, tuple((kind, text) for kind, text in json.loads(uses)), bool(is_open)
        )
        for row_id, timestamp, moment, name, uses, is_open in rows
    ]


def store_side(connection: SqlConnection, session: str, is_shadow: bool, timestamp: float) -> None:
    """Store that the session takes part in the comparison, and on which side; a later change of the share does not
    change it."""
    connection.execute("INSERT OR IGNORE INTO coins VALUES (?, ?, ?)", (session, int(is_shadow), int(timestamp)))


def load_side(connection: SqlConnection, session: str) -> bool | None:
    row = connection.execute("SELECT is_shadow FROM coins WHERE session_id = ?", (session,)).fetchone()
    return None if row is None else bool(row[0])


def is_shadow_in_history(connection: SqlConnection, setting: str, session: str) -> bool:
    """`Ledger.is_shadow` for a process without a `Ledger`."""
    kept = load_side(connection, session) if is_comparing(setting) else False
    return is_shadow(setting, session) if kept is None else kept


def find_line(
    connection: SqlConnection, project: str | None, line: str, hidden: frozenset[str] = frozenset()
) -> tuple[str | None, str]:
    """Return project and name of a line. A line given by the number of its row has both there, unless it was told in a
    `hidden` project."""
    number = line.removeprefix("#")
    if not number.isdecimal() or len(number) > limits.MAX_ROW_DIGITS:
        return project, line
    row = connection.execute("SELECT project, name FROM told WHERE id = ?", (int(number),)).fetchone()
    return (row[0], str(row[1])) if row and row[0] not in hidden else (project, line)


def ban(
    connection: SqlConnection, project: str | None, name: str, timestamp: float, hidden: frozenset[str] = frozenset()
) -> list[BannedLine]:
    """Ban a line in a project, or without one in all projects in which it was told but the `hidden` ones; return the
    banned lines."""
    lines = _lines_named(connection, "told", project, name, hidden)
    connection.executemany(
        "INSERT OR REPLACE INTO banned_lines VALUES (?, ?, ?)", [(*line, int(timestamp)) for line in lines]
    )
    return lines


def unban(
    connection: SqlConnection, project: str | None, name: str, hidden: frozenset[str] = frozenset()
) -> list[BannedLine]:
    """Allow a line again; return the lines that were banned."""
    lines = _lines_named(connection, "banned_lines", project, name, hidden)
    connection.executemany("DELETE FROM banned_lines WHERE project = ? AND name = ?", lines)
    return lines


def _lines_named(
    connection: SqlConnection, table: str, project: str | None, name: str, hidden: frozenset[str]
) -> list[BannedLine]:
    sql = f"SELECT DISTINCT project, name FROM {table} WHERE name = ? AND (? IS NULL OR project = ?) ORDER BY project"
    return [(row[0], row[1]) for row in connection.execute(sql, (name, project, project)) if row[0] not in hidden]


def load_banned(connection: SqlConnection) -> set[BannedLine]:
    return {(row[0], row[1]) for row in connection.execute("SELECT project, name FROM banned_lines")}


def never_used(connection: SqlConnection, project: str | None, names: Iterable[str]) -> set[str]:
    """Return the names of lines that were told at several recent starts in the project and never used."""
    unused = set()
    for name in names:
        told_count, used_count = connection.execute(
            "SELECT count(*), count(used_at) FROM (SELECT used_at FROM told WHERE name = ? AND project = ?"
            " AND moment = ? AND is_shadow = 0 ORDER BY timestamp DESC LIMIT ?)",
            (name, project or "", START, limits.JUDGED_TELLINGS),
        ).fetchone()
        if told_count >= limits.SINKING_TELLINGS and not used_count:
            unused.add(name)
    return unused


def count_told_sessions(connection: SqlConnection, project: str, name: str) -> int:
    """Return how many sessions of a project were told a line at their start."""
    row = connection.execute(
        "SELECT count(DISTINCT session_id) FROM told WHERE name = ? AND project = ? AND moment = ? AND is_shadow = 0",
        (name, project, START),
    ).fetchone()
    return int(row[0])


def settle(connection: SqlConnection, settled: Settled, timestamp: float) -> None:
    """Store which lines were used, and which no longer can be."""
    connection.executemany(
        "UPDATE told SET used_at = ? WHERE id = ?", [(int(timestamp), row_id) for row_id in settled.used]
    )
    connection.executemany(
        "UPDATE told SET unused = ? WHERE id = ?", [(why, row_id) for row_id, why in settled.unused.items()]
    )
