"""The answer of a hook to a failure that is known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.clock import boot_seconds
from nudge.hints.lifetime import open_in_memory
from nudge.interfaces.operations import OPERATIONS
from nudge.learning import outcome, store
from nudge.learning.command import SimpleCommand
from nudge.learning.shell import parse_commands
from nudge.settings.config import Settings
from nudge.storage.database import Database
from nudge.telling import hook_answers, ledger
from nudge.telling.use import COMMAND
from tests.unit.history.stored import event

PROJECT = "github.com/acme/api"
NO_MODULE = {"exit_code": 1, "error": "Exit code 1\n/usr/bin/python3: No module named pytest"}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    app = App(open_in_memory(Settings({})), OPERATIONS)
    database = app.database = Database.open(str(tmp_path / "nudge.db"))
    yield app
    database.close()


async def _record(app: App, kind: str, command: str, session: str, metadata: dict[str, Any]) -> str:
    happened = event(
        kind, command, session_id=session, timestamp=int(app.now()), project=PROJECT, cwd="/nowhere", metadata=metadata
    )
    result = await app.execute(
        "nudge.record", {"event": happened}, Call(interface="hook", deadline=boot_seconds() + 60)
    )
    return str(result.get("tell", ""))


async def _teach(app: App) -> None:
    await hook_answers.load(app, app.require_database())
    await _record(app, "command_error", "/usr/bin/python3 -m pytest", "s1", NO_MODULE)
    await _record(app, "command", "pytest -q", "s1", {"exit_code": 0})


def test_a_known_failure_is_answered_out_of_memory(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the commit of its own event the answer waits for no read and no write."""

    async def run() -> None:
        await _teach(app)
        database = app.require_database()
        commit = database.write
        waiting: list[str] = []

        async def write(work: Any) -> Any:
            if waiting:
                await asyncio.Event().wait()
            waiting.append("the event's own commit")
            return await commit(work)

        async def read(*_: Any) -> Any:
            await asyncio.Event().wait()

        monkeypatch.setattr(database, "write", write)
        monkeypatch.setattr(database, "read", read)
        answer = asyncio.wait_for(
            _record(app, "command_error", "/usr/bin/python3 -m pytest tests", "s2", NO_MODULE), 30
        )
        assert '"pytest …" #' in await answer
        for task in app._background:
            task.cancel()

    asyncio.run(run())


def test_what_an_answered_failure_teaches_is_stored_after_the_answer(app: App) -> None:
    """The answer that fails itself is gone from the tables, too."""

    async def run() -> None:
        await _teach(app)
        missing = {"exit_code": 127, "error": "Exit code 127\nbash: line 1: pytest: command not found"}
        await _record(app, "command_error", "pytest", "s2", missing)
        await _record(app, "command", ".venv/bin/pytest", "s2", {"exit_code": 0})
        assert await _record(app, "command_error", "pytest", "s3", missing)
        await _record(app, "command", "tools/pytest", "s3", {"exit_code": 0})
        await asyncio.gather(*app._background)
        stored = await app.read(store.load)
        answers = [(fact.subject, fact.answer) for _, fact in stored.listed(None, app.now())]
        assert answers == [("pytest", ".venv/bin/pytest"), ("pytest", "tools/pytest")]

    asyncio.run(run())


def test_a_command_is_parsed_once_for_all_that_look_at_it(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning, credit, the journal and the ledger share the outcome of an event, with a hint, an attempt and a line
    that are about its command."""
    command = "pytest -q tests/a.py"
    parsed: list[str] = []

    def parse(line: str) -> list[SimpleCommand]:
        parsed.append(line)
        return parse_commands(line)

    async def run() -> int:
        await _teach(app)
        await app.execute("nudge.set_hint", {"component": "api", "key": "t", "value": command}, Call(interface="cli"))
        attempt = {"goal": "Green", "prediction": f"`{command}` passes", "session_id": "s2"}
        await app.execute("nudge.start_ghap", attempt, Call(interface="cli"))
        line = ledger.StoredLine(1, 0, ledger.START, "hint api/t", ((COMMAND, command),), is_open=True)
        app.ledger.add_session("s2", [line], is_shadow=False)
        monkeypatch.setattr(outcome, "parse_commands", parse)
        assert "looks confirmed" in await _record(app, "command", command, "s2", {"exit_code": 0})
        await asyncio.gather(*app._background)
        (hint,) = app.lifetime.store.hints()
        return hint.use_count

    assert asyncio.run(run()) == 1
    assert parsed == [command]
