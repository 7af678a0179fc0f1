"""What PRIMARY does for the history in the background."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge.core.app import App
from nudge.core.errors import StorageFailed
from nudge.hints.lifetime import open_in_memory
from nudge.history import store
from nudge.history.observations import RETENTION_DAYS
from nudge.process import background
from nudge.process.background import BackgroundWork, Retention
from nudge.settings.config import Settings
from nudge.storage import spool
from nudge.storage.database import Database
from tests.unit.history.stored import DAY, event

NOW = 1_800_000_000


def run(work: Any) -> Any:
    async def main() -> Any:
        return await work

    return asyncio.run(main())


def record(database: Database, *events: dict[str, Any]) -> None:
    def write(connection: sqlite3.Connection) -> None:
        for one in events:
            store.insert_event(connection, one)

    run(database.write(write))


def ids(database: Database) -> list[int]:
    return [row[0] for row in run(database.read(lambda c: c.execute("SELECT id FROM observations").fetchall()))]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database.open(str(tmp_path / "nudge.db"))
    yield opened
    opened.close()


def test_a_sweep_goes_on_until_nothing_is_due(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several transactions, and what it did is reported."""
    monkeypatch.setattr("nudge.core.limits.SWEEP_PORTION", 2)
    record(database, *(event(timestamp=NOW - 999 * DAY) for _ in range(5)), event(timestamp=NOW))
    retention = Retention(database, RETENTION_DAYS)
    assert run(retention.sweep(NOW)) == {"command": 5}
    assert (retention.to_json()["deleted"], retention.to_json()["last_sweep"]) == ({"command": 5}, NOW)
    assert ids(database) == [6]


@pytest.mark.parametrize(("first_sweep", "left"), [(3_600.0, 2), (0.0, 1)])
def test_the_first_sweep_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_sweep: float, left: int) -> None:
    """A new PRIMARY takes in the spool at once, and deletes nothing in its first minutes."""
    monkeypatch.setattr("nudge.core.limits.FIRST_SWEEP", first_sweep)
    monkeypatch.setattr(background, "_POLL", 0.001)

    async def main() -> int:
        app = App(open_in_memory(Settings({})), {})
        keeper = BackgroundWork(app, str(tmp_path), Settings({"db": str(tmp_path / "nudge.db")}))
        assert app.database is not None
        task = asyncio.create_task(keeper.run())
        for timestamp in (100, int(app.now())):
            spool.write(str(tmp_path), event(timestamp=timestamp))
            while spool.pending(str(tmp_path)):
                await asyncio.sleep(0)
        while not first_sweep and keeper.report()["retention"]["last_sweep"] is None:
            await asyncio.sleep(0)
        rows: int = await app.database.read(lambda c: c.execute("SELECT count(*) FROM observations").fetchone()[0])
        task.cancel()
        keeper.close()
        return rows

    assert asyncio.run(main()) == left


@pytest.mark.parametrize("is_writable", [True, False])
def test_a_read_of_the_history_waits_for_the_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_writable: bool
) -> None:
    """Right after a start, what hooks spooled before is recorded first; where that fails, the read does not wait on."""
    monkeypatch.setattr("nudge.core.limits.SPOOL_WAIT", 60.0)
    spool.write(str(tmp_path), event(timestamp=NOW))

    async def main() -> int:
        app = App(open_in_memory(Settings({})), {})
        keeper = BackgroundWork(app, str(tmp_path), Settings({"db": str(tmp_path / "nudge.db")}))
        assert app.database is not None
        if not is_writable:

            async def refuse(*_: Any) -> None:
                raise StorageFailed("disk full")

            monkeypatch.setattr(app.database, "write", refuse)
        read = asyncio.create_task(
            app.read_history(lambda c: int(c.execute("SELECT count(*) FROM observations").fetchone()[0]))
        )
        await asyncio.sleep(0)
        task = asyncio.create_task(keeper.run())
        rows = await read
        task.cancel()
        keeper.close()
        return rows

    assert asyncio.run(main()) == int(is_writable)
