"""What the database should consist of: the objects that the migrations create. A file whose objects differ is damaged,
or was made by somebody else, whose triggers and views would run with our statements.

`PRAGMA trusted_schema = OFF` would refuse our own schema, whose generated columns use `json_extract`; a schema that is
the same as ours needs no such guard.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache

from nudge.core.errors import Invalid
from nudge.storage import migrations
from nudge.storage.sqlite import STATEMENT_ERRORS, describe_damage

_OF_SQLITE = frozenset(f"sqlite_stat{number}" for number in range(1, 5))
_MOST_NAMED = 5
_MOST_FORMATS = 1_000  # no Nudge is newer by so many; such a number is a damaged one

Objects = dict[tuple[str, str], str]
"""The SQL of each object by its type and name. That of the tables which FTS5 makes is part of its file format."""


def find_differences(connection: sqlite3.Connection) -> list[str]:
    """Say which objects are missing or not as the migrations made them. Nothing is known of a newer format."""
    try:
        version = migrations.read_version(connection)
        if migrations.LATEST < version < migrations.LATEST + _MOST_FORMATS:
            return []
        if not 0 <= version <= migrations.LATEST:
            return [f"there is no format {version}"]
        found, expected, latest = _read_objects(connection), _expected(version), _expected(migrations.LATEST)
    except STATEMENT_ERRORS as error:
        return [f"the schema cannot be read: {describe_damage(error)}"]
    if version == 0 and found:
        return ["the file has no format"]
    missing = [f"the {kind} {name} is missing" for kind, name in expected if (kind, name) not in found]
    changed = (key for key in expected if key in found and found[key] != expected[key])
    later = (key for key in found if key in latest and key not in expected)  # no migration ends half-way
    return [
        *missing,
        *(f"the {kind} {name} is not as Nudge made it" for kind, name in changed),
        *(f"the {kind} {name} is not of format {version}" for kind, name in later),
    ]


def find_foreign(connection: sqlite3.Connection) -> list[str]:
    """Name the objects that no migration makes: tables, indexes, views and triggers of somebody else. Nothing is known
    of a newer format."""
    if migrations.read_version(connection) > migrations.LATEST:
        return []
    found, expected = _read_objects(connection), _expected(migrations.read_version(connection))
    return [f"{kind} {name}" for kind, name in found if (kind, name) not in expected]


def drop_foreign(connection: sqlite3.Connection) -> list[str]:
    """Drop the objects that no migration makes, and return their names."""
    foreign = find_foreign(connection)
    for kind, name in (one.split(" ", 1) for one in foreign):
        escaped = name.replace('"', '""')
        connection.execute(f'DROP {kind} IF EXISTS "{escaped}"')  # an index goes with its table
    return foreign


def refuse_foreign(connection: sqlite3.Connection) -> None:
    """Raise Invalid unless the file consists of what our migrations make, and of nothing else."""
    if migrations.LATEST < migrations.read_version(connection) < migrations.LATEST + _MOST_FORMATS:
        raise Invalid("was written by a newer Nudge; upgrade this one first", field="path")
    if problems := find_differences(connection):
        raise Invalid(f"is damaged, or no database of Nudge: {problems[0]}", field="path")
    if foreign := find_foreign(connection):
        raise Invalid(f"has objects that Nudge did not make: {', '.join(foreign[:_MOST_NAMED])}", field="path")


def load_expected() -> None:
    """Make the objects of the latest format known: that takes 10 ms, once, which no deadline of a file should count."""
    _expected(migrations.LATEST)


@cache
def _expected(version: int) -> Objects:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrations.migrate(connection, migrations.MIGRATIONS[:version])
        return _read_objects(connection)


def _read_objects(connection: sqlite3.Connection) -> Objects:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return {
        (str(kind), str(name)): " ".join(f"{table} {sql}".split())
        for kind, name, table, sql in rows
        if not _is_of_sqlite(kind, name, sql)
    }


def _is_of_sqlite(kind: object, name: object, sql: object) -> bool:
    """Tables that SQLite makes by itself, and the indexes of constraints, which have no SQL."""
    return (kind == "table" and name in _OF_SQLITE) or (kind == "index" and sql is None)
