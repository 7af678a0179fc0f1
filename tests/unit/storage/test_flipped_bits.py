"""One changed bit of a database, in the pages that hold its header and its schema."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.errors import NudgeError
from nudge.doctor import data
from nudge.doctor.model import FAIL, Finding
from nudge.hints.lifetime import open_in_memory
from nudge.interfaces.operations import OPERATIONS
from nudge.process.background import BackgroundWork
from nudge.settings.config import Settings
from nudge.storage.database import Database
from tests.unit.doctor.conftest import Make, make, run
from tests.unit.history.stored import event

__all__ = ["make", "run"]

_SEED = 20_261_121
_FLIPS = 300
_PAGE, _HEADER = 4_096, 108
_NOTE = {"title": "Deploy target", "content": "Deploys go to the staging cluster first."}
_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("nudge.search", {"query": "make", "project": None}),
    ("nudge.memory_list", {}),
    ("nudge.memory_recall", {"context": "deploy"}),
    ("nudge.memory_store", {**_NOTE, "title": "Deploy window"}),
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a small database with an observation and a note."""
    path = tmp_path_factory.mktemp("sound") / "nudge.db"

    async def fill() -> None:
        app = App(open_in_memory(Settings({})), OPERATIONS)
        app.database = Database.open(str(path))
        await app.execute("nudge.record", {"event": event(content="make test")}, Call())
        await app.execute("nudge.memory_store", _NOTE, Call())
        app.database.close()

    asyncio.run(fill())
    return path.read_bytes()


def _flips(sound: bytes) -> Iterator[tuple[int, int]]:
    """Each byte of the header, and a sample of the others in pages that hold the schema: (offset, bit)."""
    chance = random.Random(_SEED)
    pages = [number for number in range(len(sound) // _PAGE) if b"CREATE " in sound[number * _PAGE :][:_PAGE]]
    yield from ((offset, chance.randrange(8)) for offset in range(_HEADER))
    for _ in range(_FLIPS - _HEADER):
        yield chance.choice(pages) * _PAGE + chance.randrange(_PAGE), chance.randrange(8)


async def _serve(directory: Path, path: Path) -> list[str]:
    """Start what a server starts, set and get a hint, and call what needs the database; return the errors of the
    latter."""
    app = App(open_in_memory(Settings({})), OPERATIONS)
    keeper = BackgroundWork(app, str(directory), Settings({"db": str(path)}))
    app.spool_recorded.set()
    failed = []
    try:
        await app.execute("nudge.set_hint", {"component": "c", "key": "k", "value": "v"}, Call())
        assert (await app.execute("nudge.get_hint", {"component": "c", "key": "k"}, Call()))["hint"]["value"] == "v"
        for name, params in (("nudge.record", {"event": event()}), *_CALLS):
            try:
                await app.execute(name, params, Call())
            except NudgeError as error:
                failed.append(f"{error.reason}: {error.message}")
        keeper.report()
    finally:
        keeper.close()
    return failed


def test_hints_are_served_and_doctor_says_restore(sound: bytes, tmp_path: Path, make: Make) -> None:
    """A server starts and answers hints; what needs the database works or fails with E_STORAGE, and wherever it fails,
    doctor says `nudge restore`."""
    path = tmp_path / "nudge.db"
    here = make(environ={"NUDGE_DB": str(path)})
    failures = 0
    for offset, bit in _flips(sound):
        damaged = bytearray(sound)
        damaged[offset] ^= 1 << bit
        for file in tmp_path.glob("nudge.db*"):
            file.unlink()
        path.write_bytes(damaged)
        path.chmod(0o600)
        result: list[Finding] = list(data.check_history(here))
        failed = asyncio.run(_serve(tmp_path, path))
        failures += bool(failed)
        says_restore = any(one.level == FAIL and "nudge restore" in (one.fix or "") for one in result)
        for message in failed:
            assert message.startswith("E_STORAGE: "), (offset, bit, message)
            assert says_restore or "newer Nudge" in message, (offset, bit, message, result)
    assert failures > _FLIPS // 4
