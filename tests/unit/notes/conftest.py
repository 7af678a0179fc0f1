"""A database in memory, with the tables of notes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from nudge.storage import migrations


@pytest.fixture
def notes() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        migrations.migrate(connection)
        yield connection
