"""What a session is told, by a server and without one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits, paths
from nudge.core.app import App
from nudge.core.call import Call, EnvNeeded
from nudge.core.context import Context
from nudge.core.errors import StorageFailed
from nudge.core.visibility import VARIABLES
from nudge.hints.lifetime import HintLifetime, open_lifetime
from nudge.history import store
from nudge.interfaces.operations import OPERATIONS
from nudge.settings import config
from nudge.settings.config import Sources
from nudge.storage.database import Database
from nudge.telling.offline import build_offline_digest

HERE = {"repo": "git:org/api", "cwd": "/code/api", "os": "linux"}
SCOPE = {"repo": "git:org/api"}
META = {"scope": SCOPE, "reason": "from the README"}


class Machine:
    """A runtime directory with a session's log and a history in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environ = {
            "NUDGE_RUNTIME_DIR": str(directory),
            "HOME": str(directory),
            "NUDGE_CONFIG": str(directory / "config.toml"),
        }

    def session(self, **variables: str) -> HintLifetime:
        return open_lifetime(str(self.directory), Sources(str(self.directory), environ={**self.environ, **variables}))

    def hint(self, key: str, value: Any = "make it", **meta: Any) -> None:
        """Logged by a server that has gone since; for this repo unless it says otherwise."""
        session = self.session()
        meta.setdefault("scope", SCOPE)
        decision = session.store.decide_set(session.clock.now(), "api", key, value, meta)
        assert session.log is not None
        session.log.append({**decision.change.to_record(), "t": session.clock.now()})
        session.log.close()

    def event(self, content: str, *, type: str = "git_commit", project: str = "api", session: str = "old") -> None:
        asyncio.run(self._record(content, type, project, session))

    async def _record(self, content: str, type: str, project: str, session: str) -> None:
        database = self.database()
        event = {
            "event_id": f"{session}-{content}",
            "session_id": session,
            "client": "codex",
            "cwd": f"/code/{project}",
            "project": f"org/{project}",
            "timestamp": int(time.time()) - 7_200,
            "type": type,
            "content": content,
            "metadata": {},
        }
        await database.write(lambda connection: store.insert_event(connection, event))
        database.close()

    def database(self) -> Database:
        return Database.open(config.database_file(self.environ))

    def told(self, session_id: str | None = "new", source: str | None = "startup", **context: Any) -> str:
        return build_offline_digest(self.environ, {**HERE, **context}, session_id, source).text


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    directory = tmp_path / "run"
    directory.mkdir(mode=0o700)
    return Machine(directory)


Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def served(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[App, Ask]]:
    """A server of this machine, and a way to ask it."""
    for name, value in machine.environ.items():
        monkeypatch.setenv(name, value)
    app = App(machine.session(), OPERATIONS)
    database = machine.database()
    app.database = database

    def ask(**params: Any) -> dict[str, Any]:
        told: dict[str, Any] = asyncio.run(app.execute("nudge.inject", {"context": HERE, **params}, Call()))
        return told

    yield app, ask
    database.close()


def noted(app: App) -> list[Any]:
    assert app.database is not None
    look = app.database.read(
        lambda connection: connection.execute("SELECT session_id, text FROM injections").fetchall()
    )
    found: list[Any] = asyncio.run(look)
    return found


# By a server


@pytest.mark.parametrize("explain", [False, True])
def test_hints_and_history_meet(served: tuple[App, Ask], explain: bool) -> None:
    """The text has hints and history; `explain` adds the score and the reason of each line."""
    app, ask = served
    app.lifetime.store.apply(app.lifetime.store.decide_set(app.now(), "api", "test", "pytest -q", META).change)
    record(app, "wip make build")
    told = ask(explain=explain)
    assert '- api/test: "pytest -q" ("from the README")' in told["text"]
    assert '- 2h ago, codex: committed "wip make build" #1' in told["text"]
    assert [item["kind"] for item in told["items"]] == (["hint", "session"] if explain else [])
    for item in told["items"]:
        assert item["matches"]["reasons"] and item["pack_context"]["included"]


def test_a_hint_with_slashes_in_its_name_is_explained(served: tuple[App, Ask]) -> None:
    """The line of a hint whose component has a slash has the parts of the hint's score."""
    app, ask = served
    app.lifetime.store.apply(app.lifetime.store.decide_set(app.now(), "packages/api", "test", "pytest -q", META).change)
    [item] = ask(explain=True)["items"]
    assert item["id"] == "packages/api/test" and item["score"]["components"]["specificity"] is not None


def test_an_injection_is_explained_as_anything_is(served: tuple[App, Ask]) -> None:
    """A hint and a note have the parts that `memory_explain` gives them, and a line of the history its one score."""
    app, ask = served
    app.lifetime.store.apply(app.lifetime.store.decide_set(app.now(), "api", "test", "pytest -q", META).change)
    record(app, "wip make build")
    here = Call(context=Context(project="org/api"))
    note = {"title": "Database", "content": "SQLite", "tags": ["pinned"], "namespace": "org/api"}
    note_id = asyncio.run(app.execute("nudge.memory_store", note, here))["id"]
    items = {item["id"]: item for item in ask(explain=True)["items"]}
    asked = {"ids": [note_id], "names": ["api/test"], "context": HERE}
    explained = asyncio.run(app.execute("nudge.memory_explain", asked, here))["items"]
    assert {item["id"] for item in explained} == {note_id, "api/test"}
    for item in explained:
        injected = items[item["id"]]
        same = ("id", "kind", "title", "created_at", "project")
        assert {name: injected[name] for name in same} == {name: item[name] for name in same}
        assert injected["score"]["components"] == pytest.approx(item["score"]["components"])
        assert injected["retrieval"]["source"] == "injection" and injected["pack_context"]["section"]
    [session] = [item for item in items.values() if item["kind"] == "session"]
    assert session["score"]["total"] == session["score"]["components"]["base"]


def record(app: App, content: str, *, session: str = "old") -> None:
    event = {
        "event_id": f"{session}-{content}",
        "session_id": session,
        "client": "codex",
        "cwd": "/code/api",
        "project": "org/api",
        "timestamp": int(time.time()) - 7_200,
        "type": "git_commit",
        "content": content,
        "metadata": {},
    }
    assert app.database is not None
    asyncio.run(app.database.write(lambda connection: store.insert_event(connection, event)))


def test_what_was_told_is_kept(served: tuple[App, Ask]) -> None:
    """Each real injection is stored for its session's trace; one that nobody was told, or that said nothing, is not."""
    app, ask = served
    assert ask(session_id="new")["text"] == "" and noted(app) == []
    record(app, "wip ls")
    ask()
    ask(session_id="new", note=False)
    assert noted(app) == []
    told = ask(session_id="new")
    assert noted(app) == [("new", told["text"])]


def test_the_history_cannot_be_read(served: tuple[App, Ask], monkeypatch: pytest.MonkeyPatch) -> None:
    """The hints are told even if the history can be neither read nor written."""
    app, ask = served
    app.lifetime.store.apply(app.lifetime.store.decide_set(app.now(), "api", "test", "pytest -q", META).change)

    async def fail(*_: Any) -> Any:
        raise StorageFailed("no")

    monkeypatch.setattr(Database, "read", fail)
    monkeypatch.setattr(Database, "write", fail)
    assert "pytest -q" in ask(session_id="new")["text"]
    app.database = None
    assert "pytest -q" in ask(session_id="new")["text"]


def test_only_the_best_variant(served: tuple[App, Ask]) -> None:
    """Of several hints of one name, the one that a `get` would give; one that is not for here is not told."""
    app, ask = served
    for value, scope in (
        ("everywhere", {}),
        ("here", {"repo": "git:org/api", "os": ["linux"]}),
        ("there", {"repo": "git:org/web"}),
    ):
        app.lifetime.store.apply(
            app.lifetime.store.decide_set(app.now(), "api", "test", value, {"scope": scope}).change
        )
    told = [line for line in ask()["text"].splitlines() if line.startswith("- api/test")]
    assert told == ['- api/test: "here"']


def test_secrets_stay(served: tuple[App, Ask]) -> None:
    """A hint marked as secret is named without its value."""
    app, ask = served
    meta = {"sensitivity": "secret", "scope": SCOPE}
    app.lifetime.store.apply(app.lifetime.store.decide_set(app.now(), "api", "token", "hunter2", meta).change)
    text = ask()["text"]
    assert "- api/token: a secret; read it with: nudge get api token --value-only" in text and "hunter2" not in text


def test_the_environment_is_asked_for(served: tuple[App, Ask]) -> None:
    """A scope that needs a variable makes the interface ask for it, as everywhere else; with the settings that are the
    caller's."""
    app, _ = served
    meta = {"scope": {"env_required": ["CI"]}}
    app.lifetime.store.apply(app.lifetime.store.decide_set(app.now(), "api", "test", "x", meta).change)
    with pytest.raises(EnvNeeded) as asked:
        asyncio.run(app.execute("nudge.inject", {"context": HERE}, Call(env={})))
    assert VARIABLES | {"CI"} <= set(asked.value.names)


def test_the_project_of_a_bare_context(served: tuple[App, Ask]) -> None:
    """The repo is the project, or its name; a directory of the same name elsewhere is another project."""
    app, ask = served
    record(app, "wip ls")
    assert "## Left to do here" in ask(context={"repo": "git:org/api"})["text"]
    assert "## Left to do here" in ask(context={"project": "api"})["text"]
    assert ask(context={"cwd": "/somewhere/web"})["text"] == ""


# Without one


def test_nothing_there(machine: Machine) -> None:
    """Without log and database the digest is empty, and no file is created."""
    assert machine.told() == "" and list(machine.directory.iterdir()) == []


def test_the_same_words(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest that a hook builds equals the server's."""
    machine.hint("test", {"type": "command", "cmd": "pytest -q"}, tags=["x"], reason="from the README")
    machine.hint("other", scope={"repo": "git:org/web"})
    machine.event("wip make build")
    machine.event("docker up", project="web", session="elsewhere")
    by_itself = machine.told()
    for name, value in machine.environ.items():
        monkeypatch.setenv(name, value)
    app = App(machine.session(), OPERATIONS)
    app.database = machine.database()
    by_server = asyncio.run(app.execute("nudge.inject", {"context": HERE, "session_id": "new"}, Call()))["text"]
    app.database.close()
    assert by_itself == by_server and '- api/test: "pytest -q" ("from the README")' in by_itself


def test_beside_a_server_that_does_not_answer(machine: Machine) -> None:
    """The look works while another process has the database open, and sees what it committed."""
    machine.event("wip make build")
    held = machine.database()
    try:
        assert "make build" in machine.told()
    finally:
        held.close()


def test_a_look_changes_nothing(machine: Machine) -> None:
    """The log and the database have the same bytes and the same times after it."""
    machine.hint("test")
    machine.event("ls")

    def state() -> dict[str, Any]:
        files = (path for path in machine.directory.iterdir() if not path.name.endswith(("-shm", "-wal", ".lock")))
        return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    before = state()
    assert machine.told() and state() == before


def test_a_context_as_an_object(machine: Machine) -> None:
    """A hook has resolved its context already; how a session starts may be unknown."""
    machine.hint("test", scope={"repo": "git:org/api"})
    made = build_offline_digest(machine.environ, Context(repo="git:org/api"), None, None)
    assert [item["id"] for item in made.items] == ["api/test"]


def test_hints_of_an_ended_session(machine: Machine) -> None:
    """When the grace has passed, those with a duration of their own are left, as after a server's start."""
    machine.hint("short")
    machine.hint("long", ttl="P1D")
    assert "api/short" in machine.told()
    config.store(str(machine.directory), machine.session().id, {"session_grace": "0"})
    assert "api/short" not in machine.told() and "api/long" in machine.told()


def test_the_last_word_counts(machine: Machine) -> None:
    """A hint that was changed is told as it is, one that was deleted or has expired is not."""
    machine.hint("test", "old")
    machine.hint("test", "new")
    machine.hint("gone")
    session = machine.session()
    decision = session.store.decide_delete(session.clock.now(), "api", "gone")
    assert session.log is not None
    session.log.append(decision.change.to_record())
    session.log.close()
    text = machine.told()
    assert '"new"' in text and '"old"' not in text and "api/gone" not in text


def test_the_hooks_own_environment(machine: Machine) -> None:
    """Scopes that ask for a variable are checked against the environment that the hook runs in."""
    machine.hint("ci", scope={**SCOPE, "env_match": {"CI": "1"}})
    assert machine.told() == ""
    machine.environ["CI"] = "1"
    assert "api/ci" in machine.told()


@pytest.mark.parametrize("damage", [b"", b"garbage", b"SQLite format 3\0" + b"x" * 5_000])
def test_a_broken_database(machine: Machine, damage: bytes) -> None:
    """The hints are told whatever the database looks like."""
    machine.hint("test")
    Path(config.database_file(machine.environ)).write_bytes(damage)
    assert "api/test" in machine.told()


@pytest.mark.parametrize("damage", ["torn", "newer", "garbage", "large"])
def test_a_log_that_cannot_be_used(machine: Machine, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The history is told whatever the log looks like; one that takes too long to read is not read."""
    machine.event("wip make build")
    machine.hint("test")
    log = machine.directory / paths.CHANGE_LOG
    if damage == "newer":
        monkeypatch.setattr("nudge.storage.changelog.LOG_FORMAT", 0)
    elif damage == "large":
        monkeypatch.setattr(limits, "OFFLINE_LOG_BYTES", 10)
    else:
        log.write_bytes(log.read_bytes()[:-3] if damage == "torn" else b"\xff" * 100)
    text = machine.told()
    assert "make build" in text and "api/test" not in text


@pytest.mark.parametrize("limit", ["OFFLINE_READ_TIMEOUT", "OFFLINE_READ_WAIT"])
def test_a_look_that_takes_too_long(machine: Machine, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """A query that takes too long, of work or by the clock, is interrupted; the hints are told."""
    machine.event("wip make build")
    machine.hint("test")
    monkeypatch.setattr(limits, limit, -1.0)
    monkeypatch.setattr("nudge.telling.offline._STEPS_PER_CHECK", 1)
    text = machine.told()
    assert "api/test" in text and "make build" not in text


@pytest.mark.parametrize("by", ["itself", "server"])
def test_whose_rows_are_told(machine: Machine, by: str) -> None:
    """Other projects are told of only when the settings say so, and some of them never."""
    machine.event("secret work", project="vault")
    machine.event("docker up", project="web", session="elsewhere")

    def told(**settings: str) -> list[bool]:
        text = _told_by(by, machine, settings)
        return ["secret work" in text, "docker up" in text]

    assert told() == [False, False]
    assert told(NUDGE_CROSS_PROJECT="1") == [True, True]
    assert told(NUDGE_CROSS_PROJECT="1", NUDGE_PRIVATE_PROJECTS="vault,other") == [False, True]


def _told_by(by: str, machine: Machine, settings: dict[str, str]) -> str:
    if by == "itself":
        return build_offline_digest({**machine.environ, **settings}, HERE, "new", "startup").text
    app = App(machine.session(**settings), OPERATIONS)
    app.database = machine.database()
    told = asyncio.run(app.execute("nudge.inject", {"context": HERE}, Call()))
    app.database.close()
    return str(told["text"])


def test_what_a_hook_pays_for(machine: Machine) -> None:
    """No package that only a server needs is loaded, even with hints and a history."""
    machine.hint("test")
    machine.event("wip make build")
    script = (
        "import sys; from nudge.telling.offline import build_offline_digest\n"
        f"text = build_offline_digest({machine.environ!r}, {HERE!r}, 'new', 'startup').text\n"
        "assert 'make build' in text and 'api/test' in text\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"mcp", "aiohttp", "pydantic", "asyncio", "logging", "http", "rich"} & {
        name.partition(".")[0] for name in loaded
    }
