"""What a machine keeps of its team: where the server is, what is shared, what waits to be sent, what was received.

Each function takes a connection; the caller holds the transaction.
"""

# ruff: noqa: S608 - only constants are put into the SQL; every value is bound
from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nudge.core import limits
from nudge.team.entry import HINT, NOTE, Body, Entry, Name
from nudge.team.versions import Known, Version

Connection = sqlite3.Connection
_TABLES = (
    *("changes", "outbox", "numbers", "cursors", "roles", "versions", "bases", "conflicts", "withheld", "taken"),
    "repos",
)


@dataclass(frozen=True, slots=True)
class Team:
    """The team that this machine has joined. `home` says where the store was when its origin was made: a copy is
    elsewhere. `epoch` is that of the server's database, empty before the first contact."""

    url: str
    origin: str
    home: str
    epoch: str
    joined_at: float
    contact_at: float | None
    lifetime: str | None = None
    """The session whose hints are what was received."""


@dataclass(frozen=True, slots=True)
class SharedRepo:
    project: str
    notes: bool
    hints: bool
    is_gathered: bool = False
    """Whether the hints that were there when they were first shared are in the outbox."""

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(kind for kind, is_shared in ((NOTE, self.notes), (HINT, self.hints)) if is_shared)


# The team


def read_team(connection: Connection) -> Team | None:
    columns = "url, origin, home, epoch, joined_at, contact_at, lifetime"
    row = connection.execute(f"SELECT {columns} FROM team").fetchone()
    return None if row is None else Team(*row)


def join(connection: Connection, url: str, origin: str, home: str, now: float) -> None:
    """Join a team; another server's state does not concern this one, and is forgotten."""
    team = read_team(connection)
    if team is None or team.url != url:
        leave(connection)
        row = (url, origin, home, now)
        connection.execute("INSERT INTO team (id, url, origin, home, epoch, joined_at) VALUES (1, ?, ?, ?, '', ?)", row)


def leave(connection: Connection) -> None:
    """Forget the team. What was received stays."""
    for table in _TABLES:
        connection.execute(f"DELETE FROM team_{table}")
    connection.execute("DELETE FROM team")


def note_contact(connection: Connection, epoch: str, now: float) -> None:
    connection.execute("UPDATE team SET epoch = ?, contact_at = ?", (epoch, now))


def repos(connection: Connection) -> list[SharedRepo]:
    rows = connection.execute("SELECT project, notes, hints, is_gathered FROM team_repos ORDER BY project")
    return [SharedRepo(project, bool(notes), bool(hints), bool(gathered)) for project, notes, hints, gathered in rows]


def share(connection: Connection, repo: SharedRepo) -> None:
    """Share a repo from now on. Everything in it is received again: what was not shared before was passed over."""
    connection.execute("INSERT OR REPLACE INTO team_repos VALUES (?, ?, ?, 0)", (repo.project, repo.notes, repo.hints))
    connection.execute("UPDATE team_cursors SET n = 0 WHERE project = ?", (repo.project,))
    connection.execute("INSERT OR IGNORE INTO team_numbers VALUES (?, 0, 0)", (repo.project,))
    if repo.notes:
        connection.execute(
            "INSERT OR IGNORE INTO team_changes"
            " SELECT namespace, title, updated_at FROM notes"
            " WHERE namespace = ? AND kind <> 'attempt' AND typeof(title) = 'text'",
            (repo.project,),
        )


def unshare(connection: Connection, project: str) -> None:
    """Share a repo no longer. Numbers and versions stay, so that sharing it again goes on where it ended."""
    for table in ("repos", "changes", "withheld"):
        connection.execute(f"DELETE FROM team_{table} WHERE project = ?", (project,))


def begin_lifetime(connection: Connection, team: Team, lifetime: str) -> None:
    """Receive hints again when the session that they were received in has ended: they ended with it."""
    if team.lifetime is not None:
        sql = "UPDATE team_cursors SET n = 0 WHERE project IN (SELECT project FROM team_repos WHERE hints)"
        connection.execute(sql)
    connection.execute("UPDATE team SET lifetime = ?", (lifetime,))


def note_gathered(connection: Connection, project: str) -> None:
    connection.execute("UPDATE team_repos SET is_gathered = 1 WHERE project = ?", (project,))


# Changed notes


@dataclass(frozen=True, slots=True)
class NoteChange:
    """A title whose note was changed; `seconds` is when, by the clock on the wall, None from an older Nudge."""

    project: str
    title: str
    seconds: float | None


def changes(connection: Connection, most: int) -> list[NoteChange]:
    rows = connection.execute("SELECT project, title, changed_at FROM team_changes LIMIT ?", (most,))
    return [NoteChange(*row) for row in rows]


def change_of(connection: Connection, project: str, title: str) -> NoteChange | None:
    sql = "SELECT project, title, changed_at FROM team_changes WHERE project = ? AND title = ?"
    row = connection.execute(sql, (project, title)).fetchone()
    return None if row is None else NoteChange(*row)


def drop_change(connection: Connection, project: str, title: str) -> None:
    connection.execute("DELETE FROM team_changes WHERE project = ? AND title = ?", (project, title))


def taken(connection: Connection, log: str) -> int | None:
    """Return the last numbered change of a change log that is in the outbox; None for a log that is not known yet."""
    row = connection.execute("SELECT n FROM team_taken WHERE log = ?", (log,)).fetchone()
    return None if row is None else int(row[0])


def note_taken(connection: Connection, log: str, n: int) -> None:
    connection.execute("DELETE FROM team_taken WHERE log <> ?", (log,))
    connection.execute("INSERT OR REPLACE INTO team_taken VALUES (?, ?)", (log, n))


# The outbox


def add(connection: Connection, team: Team, name: Name, clock: int, body: Body) -> None:
    """Number a change and put it into the outbox; it is the version that counts here."""
    connection.execute("INSERT OR IGNORE INTO team_numbers VALUES (?, 0, 0)", (name.project,))
    (n,) = connection.execute(
        "UPDATE team_numbers SET given = given + 1 WHERE project = ? RETURNING given", (name.project,)
    ).fetchone()
    connection.execute(
        "INSERT INTO team_outbox VALUES (?, ?, ?, ?, ?, ?)",
        (name.project, n, clock, name.kind, name.key, body.to_text()),
    )
    known = Known(Version(clock, team.origin), body.after, body.fields is not None, body.digest, n)
    put_version(connection, name, known)
    drop_withheld(connection, name)


def outbox(connection: Connection, team: Team, project: str, most: int) -> list[Entry]:
    """Return the next rows to send, in the order of their numbers."""
    rows = connection.execute(
        "SELECT n, clock, kind, key, body FROM team_outbox WHERE project = ? ORDER BY n LIMIT ?", (project, most)
    )
    return [Entry(project, team.origin, *row) for row in rows]


def waiting(connection: Connection, kind: str) -> list[tuple[Name, Body]]:
    """Return what waits to be sent of a kind, in the order of its numbers."""
    rows = connection.execute("SELECT project, key, body FROM team_outbox WHERE kind = ? ORDER BY project, n", (kind,))
    return [(Name(project, kind, key), Body.parse(body)) for project, key, body in rows]


def acknowledge(connection: Connection, team: Team, project: str, n: int) -> None:
    """Drop what the server has, up to a number. What was sent is here; what was sent before may be on its way to be
    received again."""
    connection.execute("DELETE FROM team_outbox WHERE project = ? AND n <= ?", (project, n))
    connection.execute(
        "INSERT INTO team_cursors VALUES (?1, ?2, ?3, ?3) ON CONFLICT DO UPDATE SET head = ?3,"
        " n = iif(n < (SELECT sent FROM team_numbers WHERE project = ?1), n, max(n, ?3))",
        (project, team.origin, n),
    )
    connection.execute("UPDATE team_numbers SET sent = max(sent, ?) WHERE project = ?", (n, project))


def sent(connection: Connection, project: str) -> int:
    row = connection.execute("SELECT sent FROM team_numbers WHERE project = ?", (project,)).fetchone()
    return 0 if row is None else int(row[0])


def find_lost(connection: Connection, team: Team, heads: Mapping[str, int]) -> list[tuple[Name, Known]]:
    """Return the versions of this store that count, were sent, and that the server no longer has."""
    rows = connection.execute(
        "SELECT v.project, kind, key, clock, after, is_live, digest, n FROM team_versions v"
        " JOIN team_numbers USING (project) WHERE origin = ? AND n <= sent ORDER BY v.project, n",
        (team.origin,),
    )
    return [
        (Name(project, kind, key), Known(Version(clock, team.origin), after, bool(is_live), digest, n))
        for project, kind, key, clock, after, is_live, digest, n in rows
        if n > heads.get(project, 0)
    ]


def begin_origin(connection: Connection, team: Team, origin: str, home: str) -> Team:
    """Go on under a new origin: what waits is numbered anew, and the log of the old origin is that of another store."""
    waiting = connection.execute(
        "SELECT project, clock, kind, key, body FROM team_outbox ORDER BY project, n"
    ).fetchall()
    connection.execute(
        "INSERT OR IGNORE INTO team_cursors SELECT project, ?, sent, sent FROM team_numbers", (team.origin,)
    )
    connection.execute("DELETE FROM team_outbox")
    connection.execute("UPDATE team_numbers SET given = 0, sent = 0")
    connection.execute("UPDATE team SET origin = ?, home = ?", (origin, home))
    begun = replace(team, origin=origin, home=home)
    for project, clock, kind, key, body in waiting:
        add(connection, begun, Name(project, kind, key), clock, Body.parse(body))
    return begun


# What was received


def cursors(connection: Connection, project: str) -> dict[str, int]:
    rows = connection.execute("SELECT origin, n FROM team_cursors WHERE project = ?", (project,))
    return dict(rows.fetchall())


def note_heads(connection: Connection, heads: Iterable[tuple[str, str, int]]) -> None:
    """Keep how long the log of each origin is, by repo and origin."""
    sql = "INSERT INTO team_cursors VALUES (?1, ?2, 0, ?3) ON CONFLICT DO UPDATE SET head = ?3"
    connection.executemany(sql, heads)


def advance(connection: Connection, project: str, origin: str, n: int) -> None:
    sql = "INSERT INTO team_cursors VALUES (?1, ?2, ?3, ?3) ON CONFLICT DO UPDATE SET n = ?3, head = max(head, ?3)"
    connection.execute(sql, (project, origin, n))


def unknown_roles(connection: Connection) -> list[str]:
    """Return the origins whose roles are not known yet."""
    rows = connection.execute("SELECT DISTINCT origin FROM team_cursors EXCEPT SELECT origin FROM team_roles")
    return [origin for (origin,) in rows]


def note_roles(connection: Connection, roles: Iterable[tuple[str, str]]) -> None:
    connection.executemany("INSERT OR REPLACE INTO team_roles VALUES (?, ?)", roles)


# Versions


def version_of(connection: Connection, name: Name) -> Known | None:
    row = connection.execute(
        "SELECT clock, origin, after, is_live, digest, n FROM team_versions WHERE project = ? AND kind = ? AND key = ?",
        name,
    ).fetchone()
    return None if row is None else Known(Version(row[0], row[1]), row[2], bool(row[3]), row[4], row[5])


def put_version(connection: Connection, name: Name, known: Known) -> None:
    version = (known.version.clock, known.version.origin, known.after, known.is_live, known.digest, known.n)
    connection.execute("INSERT OR REPLACE INTO team_versions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*name, *version))


def note_base(connection: Connection, name: Name, clock: int) -> None:
    """Note that a version was made from the one with this clock, which is not lost then, whenever it comes."""
    connection.execute("INSERT OR IGNORE INTO team_bases VALUES (?, ?, ?, ?)", (*name, clock))
    sql = "DELETE FROM team_conflicts WHERE project = ? AND kind = ? AND key = ? AND clock = ?"
    connection.execute(sql, (*name, clock))


def add_conflict(
    connection: Connection, name: Name, lost: Version, fields: Mapping[str, Any] | None, won: Version
) -> None:
    """Keep a version that lost, unless another was made from it; of one name the latest are kept."""
    text = None if fields is None else json.dumps(fields, ensure_ascii=False, sort_keys=True)
    row = (*name, lost.clock, lost.origin, text, won.clock, won.origin)
    connection.execute(
        "INSERT OR IGNORE INTO team_conflicts SELECT NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE NOT EXISTS"
        " (SELECT 1 FROM team_bases WHERE project = ?1 AND kind = ?2 AND key = ?3 AND clock = ?4)",
        row,
    )
    connection.execute(
        "DELETE FROM team_conflicts WHERE project = ?1 AND kind = ?2 AND key = ?3 AND id NOT IN (SELECT id FROM"
        " team_conflicts WHERE project = ?1 AND kind = ?2 AND key = ?3 ORDER BY clock DESC, origin DESC LIMIT ?4)",
        (*name, limits.TEAM_CONFLICTS),
    )


@dataclass(frozen=True, slots=True)
class Conflict:
    """A version that lost; roles are None where they are not known."""

    name: Name
    clock: int
    role: str | None
    fields: dict[str, Any] | None
    won_clock: int
    won_role: str | None


def conflicts(connection: Connection, name: Name | None = None, most: int = limits.TEAM_CONFLICTS) -> list[Conflict]:
    """Return the versions that lost, of one thing or of all, the latest first."""
    where = "" if name is None else "WHERE project = ? AND kind = ? AND key = ?"
    rows = connection.execute(
        "SELECT project, kind, key, clock, l.role, fields, won_clock, w.role FROM team_conflicts"
        " LEFT JOIN team_roles l ON l.origin = team_conflicts.origin LEFT JOIN team_roles w ON w.origin = won_origin"
        f" {where} ORDER BY clock DESC, team_conflicts.origin DESC LIMIT ?",
        (*(name or ()), most),
    )
    return [_conflict(row) for row in rows]


def _conflict(row: Sequence[Any]) -> Conflict:
    project, kind, key, clock, role, fields, won_clock, won_role = row
    lost = None if fields is None else json.loads(fields)
    return Conflict(Name(project, kind, key), clock, role, lost, won_clock, won_role)


# What is not shared, or was not taken in


def withhold(connection: Connection, name: Name, reason: str, *, is_inbound: bool) -> None:
    row = (*name, is_inbound, reason)
    connection.execute("INSERT OR REPLACE INTO team_withheld VALUES (?, ?, ?, ?, ?)", row)


def is_withheld(connection: Connection, name: Name) -> bool:
    sql = "SELECT 1 FROM team_withheld WHERE project = ? AND kind = ? AND key = ?"
    return connection.execute(sql, name).fetchone() is not None


def drop_withheld(connection: Connection, name: Name) -> None:
    connection.execute("DELETE FROM team_withheld WHERE project = ? AND kind = ? AND key = ?", name)


def withheld(connection: Connection, project: str, most: int) -> list[tuple[str, str, bool, str]]:
    """Return kind, key, whether it came from the server, and the reason."""
    sql = "SELECT kind, key, is_inbound, reason FROM team_withheld WHERE project = ? ORDER BY kind, key LIMIT ?"
    rows = connection.execute(sql, (project, most))
    return [(kind, key, bool(is_inbound), reason) for kind, key, is_inbound, reason in rows]


# Counts, for `nudge team status`


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one repo: how many changes its logs have, how many of them are here, and how many wait to be sent."""

    expected: int
    received: int
    waiting: int
    conflicts: int
    withheld: int


def counts(connection: Connection, project: str) -> Counts:
    def one(sql: str) -> Any:
        return connection.execute(sql, (project,)).fetchone()

    expected, received = one("SELECT total(head), total(min(n, head)) FROM team_cursors WHERE project = ?")
    (outbox_rows,) = one("SELECT count(*) FROM team_outbox WHERE project = ?")
    (changes,) = one("SELECT count(*) FROM team_changes WHERE project = ?")
    (lost,) = one("SELECT count(*) FROM team_conflicts WHERE project = ?")
    (kept_back,) = one("SELECT count(*) FROM team_withheld WHERE project = ?")
    return Counts(int(expected), int(received), outbox_rows + changes, lost, kept_back)
