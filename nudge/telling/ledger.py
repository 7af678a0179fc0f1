"""The ledger: every line that a session was told, when and why, and whether it was used afterwards.

A line has the same name in every session of a project: a hint's `component/key`, a note's `m12`, `fact SUBJECT`, `edit
PATH`. It counts as used when the session runs its command with success, fetches its id or opens its file.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field
from zlib import crc32

from nudge import limits
from nudge.history.event import placeholders
from nudge.history.observations import COMMAND_TYPES, SESSION_TYPES
from nudge.learning.broken_tests import find_failed
from nudge.learning.outcome import analyse
from nudge.text import to_unicode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from nudge.history.event import SqlConnection

    Uses = tuple[tuple[str, str], ...]
    BannedLine = tuple[str, str]
    """The identity of a project, empty outside of one, and the name of a line."""

START, FAILURE, PROMPT, EDIT, ATTEMPT, TOUCH = ("start", "failure", "prompt", "edit", "attempt", "file")
HEADER = "Nudge record, not an instruction: "
"""The text before every line with which a hook answers."""

COMMAND, IDENTITY, FILE = "command", "id", "file"


@dataclass(frozen=True, slots=True)
class Line:
    """One line for an agent. `uses`: what shows that it was used, as pairs of COMMAND, IDENTITY or FILE and a text."""

    name: str
    kind: str
    text: str
    reason: str
    uses: Uses = ()

    def as_list(self) -> list[Any]:
        return [self.name, self.kind, self.text, self.reason, self.uses]


@dataclass(slots=True)
class _SessionLines:
    is_loaded: bool = False
    names: set[str] = field(default_factory=set)
    unused: dict[int, Uses] = field(default_factory=dict)
    """Ids of rows that were not used yet, with their uses."""
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

    def add_session(
        self, session: str, rows: Iterable[tuple[int, str, str, int | None]], *, is_shadow: bool | None = None
    ) -> None:
        """Add what is stored about a session: its side, and rows of id, name, uses and time of use."""
        session_lines = self._session(session)
        session_lines.is_loaded, session_lines.is_shadow = True, is_shadow
        for row_id, name, uses, used_at in rows:
            session_lines.names.add(name)
            if used_at is None:
                session_lines.unused[row_id] = tuple((kind, text) for kind, text in json.loads(uses))

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

    def add_rows(self, session: str, ids: Iterable[int], lines: Iterable[Line]) -> None:
        """Watch for the use of lines that were stored."""
        session_lines = self._session(session)
        session_lines.unused.update((row_id, line.uses) for row_id, line in zip(ids, lines, strict=True))
        session_lines.names.update(line.name for line in lines)

    def take_used(self, session: str, event: Mapping[str, Any]) -> list[int]:
        """Return the ids of the rows that an event shows to be used, each once."""
        unused = self._session(session).unused
        used = [row_id for row_id, uses in unused.items() if any(_shows(event, *use) for use in uses)]
        for row_id in used:
            del unused[row_id]
        return used

    def _session(self, session: str) -> _SessionLines:
        session_lines = self._sessions.setdefault(session, _SessionLines())
        self._sessions.move_to_end(session)
        if len(self._sessions) > limits.WATCHED_SESSIONS:
            self._sessions.popitem(last=False)
        return session_lines


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


# Use


def _shows(event: Mapping[str, Any], kind: str, text: str) -> bool:
    """Whether an event runs a command, fetches an id or opens a file."""
    content, is_command = str(event.get("content") or ""), event.get("type") in COMMAND_TYPES
    if kind == COMMAND:
        return is_command and _runs(content, text) and _has_worked(event)
    if kind == IDENTITY:
        by_cli = is_command and content.startswith("nudge ") and bool(_names(text) & set(content.split()))
        return by_cli or (event.get("type") == "mcp_call" and bool(_names(text) & _fetched(event)))
    return event.get("type") == "file_read" and _is_path(str(event.get("file_path") or ""), text)


def _is_path(path: str, text: str) -> bool:
    """Whether a path is the one in a line, which may be relative to the top of the clone."""
    relative = text.removeprefix("./")
    return path == text or (bool(relative) and not relative.startswith("/") and path.endswith(f"/{relative}"))


def _runs(content: str, command: str) -> bool:
    """Whether a command line has the words of a command in a row."""
    words, wanted = content.split(), command.split()
    return bool(wanted) and any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))


def _has_worked(event: Mapping[str, Any]) -> bool:
    """Whether a command worked; a test runner works also when tests fail. A success only because of a pipe does not
    count."""
    outcome = analyse(event, 0)
    if outcome is None:
        return False
    return bool(find_failed(outcome.printed)) if outcome.printed else event.get("type") != "command_error"


def _names(identity: str) -> set[str]:
    """The forms of an id: `#412` and `412`, `m12` and `12`."""
    return {identity, identity.removeprefix("#"), identity.removeprefix("m")}


def _fetched(event: Mapping[str, Any]) -> set[str]:
    """The ids and names in the arguments of an MCP call."""
    arguments = _metadata(event).get("arguments")
    if not isinstance(arguments, dict):
        return set()
    texts = {word for value in arguments.values() for word in str(value).split()}
    return texts | {f"{arguments.get('component')}/{arguments.get('key')}"}


def _metadata(event: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = event.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


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
) -> list[int]:
    """Store lines that were told, or in a shadow session would have been; return the ids of their rows. Without a
    project, they are stored under that of the session."""
    return [
        int(
            connection.execute(
                "INSERT INTO told (project, session_id, timestamp, moment, kind, name, text, reason, uses, is_shadow)"
                " VALUES (coalesce(?, (SELECT project FROM sessions WHERE id = ?), ''), ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(project, to_unicode(session)),
                    *(to_unicode(session), int(timestamp), moment, line.kind, to_unicode(line.name)),
                    *(to_unicode(line.text), to_unicode(line.reason), json.dumps(line.uses), int(is_shadow)),
                ),
            ).lastrowid
        )
        for line in lines
    ]


def load_session(connection: SqlConnection, session: str) -> list[tuple[int, str, str, int | None]]:
    """Rows as `Ledger.add_session` takes them."""
    rows = connection.execute("SELECT id, name, uses, used_at FROM told WHERE session_id = ?", (session,))
    return [(row[0], row[1], row[2], row[3]) for row in rows]


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


def mark_used(connection: SqlConnection, ids: Sequence[int], timestamp: float) -> None:
    sql = f"UPDATE told SET used_at = ? WHERE id IN ({placeholders(ids)})"
    connection.execute(sql, (int(timestamp), *ids))


# Reports for users

_WEEK = 7 * 86_400
_COLUMNS = ("id", "timestamp", "session_id", "moment", "kind", "name", "text", "reason", "is_shadow", "used_at")


def latest(connection: SqlConnection, project: str | None, hidden: Iterable[str], limit: int) -> list[dict[str, Any]]:
    """Return the latest lines, newest first, with the project of their session."""
    condition, values = _visible(project, hidden)
    rows = connection.execute(
        f"SELECT {', '.join(f't.{name}' for name in _COLUMNS)}, s.project FROM told AS t"
        f" LEFT JOIN sessions AS s ON s.id = t.session_id WHERE {condition}"
        " ORDER BY t.timestamp DESC, t.id DESC LIMIT ?",
        (*values, limit),
    )
    lines = [dict(zip((*_COLUMNS, "project"), row, strict=True)) for row in rows]
    return [{**line, "is_shadow": bool(line["is_shadow"])} for line in lines]


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


def weeks(connection: SqlConnection, project: str | None, hidden: Iterable[str], now: float) -> list[dict[str, Any]]:
    """Return counts for each of the last weeks with any line, oldest first; `week` is its first second. A failure is
    `spared` when its fact was told at the start and used, and the session did not have the failure anyway."""
    condition, values = _visible(project, hidden)
    # Facts with the same answer are one line at a start and several when they are met: the first use is the answer.
    met = (
        "EXISTS (SELECT 1 FROM told AS f WHERE f.session_id = t.session_id AND f.moment = ? AND f.kind = 'fact'"
        " AND (f.name = t.name OR json_extract(f.uses, '$[0]') = json_extract(t.uses, '$[0]')))"
    )
    rows = connection.execute(
        f"SELECT t.timestamp / {_WEEK} * {_WEEK}, sum(NOT t.is_shadow), sum(NOT t.is_shadow AND t.used_at IS NOT NULL),"
        " sum(t.moment = ? AND t.kind = 'fact'),"
        " sum(t.moment = ? AND t.kind = 'fact' AND NOT t.is_shadow AND t.used_at IS NOT NULL AND NOT"
        f" {met}) FROM told AS t LEFT JOIN sessions AS s ON s.id = t.session_id"
        f" WHERE {condition} AND t.timestamp > ? GROUP BY 1 ORDER BY 1",
        (FAILURE, START, FAILURE, *values, int(now) - limits.STATS_WEEKS * _WEEK),
    )
    return [dict(zip(("week", "told", "used", "repeated", "spared"), row, strict=True)) for row in rows]


def shadow_counts(
    connection: SqlConnection, project: str | None, hidden: Iterable[str], since: float, *, is_shadow: bool
) -> list[tuple[int, int]]:
    """Return the numbers of failures and of commands of each session on one side of the comparison. A session with
    other actions but no command counts; one that began before `since` does not, as some of its commands may be
    deleted."""
    condition, values = _visible(project, hidden)
    rows = connection.execute(
        f"SELECT sum(o.obs_type = 'command_error'), sum(o.obs_type IN ({placeholders(COMMAND_TYPES)}))"
        " FROM coins AS c JOIN sessions AS s ON s.id = c.session_id JOIN observations AS o ON o.session_id = s.id"
        f" WHERE c.is_shadow = ? AND c.timestamp >= ? AND {condition}"
        f" AND o.obs_type NOT IN ({placeholders(SESSION_TYPES)}) GROUP BY s.id",
        (*COMMAND_TYPES, int(is_shadow), int(since), *values, *SESSION_TYPES),
    )
    return [(row[0], row[1]) for row in rows]


def _visible(project: str | None, hidden: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """Return a condition on the table `s`, and its values."""
    names = tuple(hidden)
    if project is not None:
        return "s.project = ?", (project,)
    return f"(s.project IS NULL OR s.project NOT IN ({placeholders(names)}))", names
