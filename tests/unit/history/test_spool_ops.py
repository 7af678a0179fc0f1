"""Taking in the spool: nobody waits for an answer to what is in it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge import __version__
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.clock import boot_seconds
from nudge.hints.lifetime import open_in_memory
from nudge.history import spool_ops as spool_drain
from nudge.interfaces.operations import OPERATIONS
from nudge.learning import observer as learning
from nudge.learning.facts import Facts
from nudge.settings.config import Settings
from nudge.storage import spool
from nudge.storage.database import Database
from nudge.telling import hook_answers
from tests.bench import failure_pairs
from tests.unit.history.stored import event

RECENTLY = int(time.time()) - 1_000
PROJECT = "github.com/acme/api"
NO_MODULE = {"exit_code": 1, "error": "Exit code 1\n/usr/bin/python3: No module named pytest"}
TOKEN = "ghp_" + "wJ4kP9sQ2xV7bN3mL8tR5yC1dF6gH0aZ2eXu"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    yield from opened(tmp_path / "nudge.db")


@pytest.fixture
def other_app(tmp_path: Path) -> Iterator[App]:
    yield from opened(tmp_path / "other.db")


def opened(path: Path) -> Iterator[App]:
    app = App(open_in_memory(Settings({})), OPERATIONS)
    database = app.database = Database.open(str(path))
    yield app
    database.close()


def failed(session: str) -> dict[str, Any]:
    return command("/usr/bin/python3 -m pytest", session, NO_MODULE, kind="command_error")


def command(line: str, session: str, metadata: dict[str, Any], kind: str = "command") -> dict[str, Any]:
    return event(kind, line, session_id=session, project=PROJECT, cwd="/nowhere", metadata=metadata)


def drain(app: App, directory: Path, *events: dict[str, Any]) -> int:
    for one in events:
        spool.write(str(directory), one)
    return asyncio.run(spool_drain.drain(app, str(directory)))


def rows(app: App, table: str) -> list[tuple[Any, ...]]:
    return asyncio.run(app.read(lambda connection: sorted(connection.execute(f"SELECT * FROM {table}"))))  # noqa: S608


def contents(app: App) -> list[str]:
    return [row[0] for row in asyncio.run(app.read(lambda c: c.execute("SELECT content FROM observations").fetchall()))]


def test_learning_from_the_spool_runs_off_the_event_loop(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it on one thread, which the facts belong to; the same is learned as from events that a hook waits for."""
    threads = []
    observe = Facts.observe

    def watched(self: Facts, *arguments: Any, **options: Any) -> Any:
        threads.append(threading.current_thread())
        return observe(self, *arguments, **options)

    monkeypatch.setattr(Facts, "observe", watched)
    sessions = [f"s{number}" for number in range(20)]
    lessons = [
        one for session in sessions for one in (failed(session), command("pytest -q", session, {"exit_code": 0}))
    ]
    assert drain(app, tmp_path, *lessons) == 0
    assert len(threads) == len(lessons) and len(set(threads)) == 1 and threads[0] is not threading.main_thread()
    result = asyncio.run(app.execute("nudge.learned", {}, Call()))
    assert [(row["subject"], row["answer"], row["sessions"]) for row in result["facts"]] == [
        ("/usr/bin/python3 -m pytest", "pytest …", 20)
    ]


def recorded_sessions() -> Iterator[dict[str, Any]]:
    """The events of the sessions in which something could be learned, and the failures that came after them."""
    for case in failure_pairs.cases(failure_pairs.OPEN):
        for number, session in enumerate([*case["sessions"], [case["then"]]]):
            project = f"github.com/acme/{case['id']}"
            place: dict[str, Any] = {
                "session_id": f"{case['id']}-{number}",
                "project": project,
                "cwd": "/repo",
                "timestamp": RECENTLY,
            }
            for step in session:
                if "edit" in step:
                    yield event("file_edit", step["edit"], file_path=step["edit"], **place)
                elif step["exit"]:
                    printed = f"Exit code {step['exit']}\n{step['output']}"
                    metadata = {"exit_code": step["exit"], "error": printed}
                    yield event("command_error", step["command"], metadata=metadata, **place)
                else:
                    yield event("command", step["command"], metadata={"exit_code": 0}, **place)


def test_the_same_is_learned_from_the_spool_as_from_waiting_hooks(app: App, other_app: App, tmp_path: Path) -> None:
    """The stored facts are the same with their errors, answers, sessions and evidence."""
    events = list(recorded_sessions())
    assert drain(app, tmp_path, *events) == 0

    async def record() -> None:
        for one in events:
            await other_app.execute(
                "nudge.record", {"event": one}, Call(interface="hook", deadline=boot_seconds() + 60)
            )

    asyncio.run(record())
    facts, invocations = rows(app, "facts"), rows(app, "invocations")
    assert facts == rows(other_app, "facts") and len(facts) > 30
    assert invocations == rows(other_app, "invocations") and invocations


def test_a_hook_that_waits_is_answered_before_the_spool_is_empty(app: App, tmp_path: Path) -> None:
    """It waits for the batch that is being stored or learned from, not for all that is in the spool."""
    for number in range(400):
        spool.write(str(tmp_path), failed(f"s{number % 7}"))

    async def record_meanwhile() -> tuple[bool, int]:
        draining = asyncio.ensure_future(spool_drain.drain(app, str(tmp_path)))
        await asyncio.sleep(0)
        await app.execute(
            "nudge.record", {"event": failed("now")}, Call(interface="hook", deadline=boot_seconds() + 60)
        )
        return draining.done(), await draining

    assert asyncio.run(record_meanwhile()) == (False, 0)


def test_the_spool_is_stored_in_batches(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred events take a few commits, not a hundred."""
    writes = []
    write = Database.write

    async def counted(self: Database, work: Callable[..., Any]) -> Any:
        writes.append(work)
        return await write(self, work)

    monkeypatch.setattr(Database, "write", counted)
    drain(app, tmp_path, *(command(f"make {number}", "s", {"exit_code": 0}) for number in range(100)))
    assert contents(app) == [f"make {number}" for number in range(100)] and len(writes) < 10


def test_nothing_is_answered_to_a_spooled_event(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is looked for, and a failure that was spooled does not count as answered: the session's next one, whose
    hook waits, is."""
    drain(app, tmp_path, failed("s1"), command("pytest -q", "s1", {"exit_code": 0}))

    def refuse(*_: Any) -> Awaitable[None]:
        raise AssertionError("a spooled event was answered")

    with monkeypatch.context() as patch:
        for module, name in ((hook_answers, "tell"), (learning, "_line_about")):
            patch.setattr(module, name, refuse)
        drain(app, tmp_path, failed("s2"))
    waiting = Call(interface="hook", deadline=boot_seconds() + 60)
    result = asyncio.run(app.execute("nudge.record", {"event": failed("s2")}, waiting))
    assert "pytest" in result["tell"]


def test_what_is_no_event_is_dropped_alone(app: App, tmp_path: Path) -> None:
    """The others of its batch are stored, and it is counted."""
    broken = [{"event_id": "1"}, {**event(), "timestamp": 10**30}, {"event_id": "3", "injection": {"lines": 3}}]
    assert drain(app, tmp_path, event(content="one"), *broken, event(content="two")) == 0
    assert contents(app) == ["one", "two"] and spool.counts(str(tmp_path)) == {"files": 0, "bytes": 0, "dropped": 3}


def test_an_event_that_nothing_is_learned_from_stays_stored(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in learning keeps neither this event nor the others in the spool."""

    async def fail(*_: Any) -> None:
        raise TypeError("an unusual event")

    monkeypatch.setattr(hook_answers, "learn_from", fail)
    assert drain(app, tmp_path, event(content="one"), event(content="two")) == 0
    assert contents(app) == ["one", "two"]


@pytest.mark.parametrize(("by", "kept"), [(None, False), ("0.0.1", False), (__version__, True)])
def test_what_a_hook_of_this_version_redacted_is_not_redacted_again(
    app: App, tmp_path: Path, by: str | None, kept: bool
) -> None:
    """Everything else in the spool is: another version has other rules."""
    drain(app, tmp_path, {**event(content=f"login {TOKEN}"), spool.REDACTED_BY: by})
    [content] = contents(app)
    assert (TOKEN in content) is kept
