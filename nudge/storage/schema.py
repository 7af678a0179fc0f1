"""What the database should consist of: the objects that the migrations create. A file whose objects differ is damaged,
or was made by somebody else, whose triggers and views would run with our statements."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from functools import cache

from nudge.storage import migrations
from nudge.storage.sqlite import STATEMENT_ERRORS, describe_damage

_OF_SQLITE = frozenset(("sqlite_sequence", *(f"sqlite_stat{number}" for number in range(1, 5))))
_SHADOW = re.compile(r"_fts_[a-z]+$")  # FTS5 makes them; their SQL is its affair, and may change
_MOST_FORMATS = 1_000  # no Nudge is newer by so many; such a number is a damaged one

Objects = dict[tuple[str, str], str]
"""The SQL of each object by its type and name."""


def find_differences(connection: sqlite3.Connection) -> list[str]:
    """Say which objects are missing or not as the migrations made them. Nothing is known of a newer format."""
    try:
        version = migrations.read_version(connection)
        if migrations.LATEST < version < migrations.LATEST + _MOST_FORMATS:
            return []
        if not 0 <= version <= migrations.LATEST:
            return [f"there is no format {version}"]
        found, expected = _read_objects(connection), _expected(version)
    except STATEMENT_ERRORS as error:
        return [f"the schema cannot be read: {describe_damage(error)}"]
    if version == 0 and found:
        return ["the file has no format"]
    missing = [f"the {kind} {name} is missing" for kind, name in expected if (kind, name) not in found]
    changed = (key for key in expected if key in found and found[key] != expected[key])
    return [*missing, *(f"the {kind} {name} is not as Nudge made it" for kind, name in changed)]


def find_foreign(connection: sqlite3.Connection) -> list[str]:
    """Name the objects that no migration makes: tables, indexes, views and triggers of somebody else."""
    found, expected = _read_objects(connection), _expected(migrations.read_version(connection))
    return [f"{kind} {name}" for kind, name in found if (kind, name) not in expected]


@cache
def _expected(version: int) -> Objects:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrations.migrate(connection, migrations.MIGRATIONS[:version])
        return _read_objects(connection)


def _read_objects(connection: sqlite3.Connection) -> Objects:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return {
        (str(kind), str(name)): str(table) if _SHADOW.search(str(name)) else " ".join(f"{table} {sql}".split())
        for kind, name, table, sql in rows
        if not _is_of_sqlite(kind, name, sql)
    }


def _is_of_sqlite(kind: object, name: object, sql: object) -> bool:
    """Tables that SQLite makes by itself, and the indexes of constraints, which have no SQL."""
    return (kind == "table" and name in _OF_SQLITE) or (kind == "index" and sql is None)
