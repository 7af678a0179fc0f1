"""A machine on which agents have worked for some weeks, for the page to show."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from nudge.core.clock import iso
from nudge.storage.sqlite import open_writable
from tests.contract.scripted import Agent
from tests.harness import Machine, eventually

REPOS = ("shop-api", "shop-web")
_MINUTE, _DAY = 60.0, 86_400.0
_SESSIONS = {"ses-a1": 22 * _DAY, "ses-a2": 9 * _DAY, "ses-a3": 14 * _MINUTE, "ses-b1": 6 * _MINUTE}
"""When each began, before now."""
# component, key, value, tags, reason, scope beside the repo, days since it was set
_HINTS: tuple[tuple[str, str, str, str, str, dict[str, Any], float], ...] = (
    ("shop-api", "test", "DOCKER=1 make test", "test docker", "the router needs a real Redis", {}, 19),
    ("shop-api", "test", "make test-fast", "", "spikes have no Docker", {"branch": ["spike/*"]}, 6),
    ("shop-api", "build", "make build", "build", "", {}, 19),
    ("shop-api", "migrate", "alembic upgrade head", "database", "before the first test of a new clone", {}, 12),
    ("shop-web", "dev", "pnpm dev --port 5174", "run", "5173 is the docs server", {}, 3),
    ("shop-web", "lint", "pnpm biome check --write", "", "", {}, 3),
    ("git", "sign", "git commit -S", "", "main refuses unsigned commits", {}, 25),
)
# repo, kind, title, text, tags, days since it was stored
_NOTES: tuple[tuple[str, str, str, str, list[str], float], ...] = (
    (
        *("shop-api", "decision", "Prices are cents"),
        "Prices are integers in cents everywhere; the API divides by 100 only when it renders.",
        *(["pricing", "api"], 24),
    ),
    (
        *("shop-api", "decision", "Sessions live in Postgres"),
        "Sessions moved from Redis to Postgres: Redis lost them at each deploy. The TTL job runs hourly.",
        *(["sessions", "database"], 11),
    ),
    (
        *("shop-api", "lesson", "The checkout test was the clock"),
        "A flaky checkout test was a clock in the fixture, not the payment stub.",
        *(["test"], 8),
    ),
    (
        *("shop-web", "discovery", "Vite and .env"),
        "Vite caches the env at start: restart it after changing .env.",
        *([], 2),
    ),
)


def build(machine: Machine) -> dict[str, Path]:
    """Hints, notes, and sessions of two agents that failed, found out, and were told. The server is another one
    afterwards."""
    repos = {name: _make_repo(machine, name) for name in REPOS}
    _import(machine, "import -", {"schema_version": "1.0", "components": _components()})
    _import(machine, "note import", {"memories": list(_memories()), "links": []})
    for session in ("ses-a1", "ses-a2", "ses-a3"):
        _work_on_the_api(machine, session, repos["shop-api"])
    _work_on_the_web(machine, "ses-b1", repos["shop-web"])
    _date_what_was_told(machine)
    return repos


def change(machine: Machine) -> None:
    """A hint that said other things before, one of them long, and notes in the archive."""
    scope = ("--scope-repo", "git:github.com/acme/shop-web", "--reason", "the port of the proxy")
    for value, session in (("pnpm dev --port 5175", "ses-a3"), (f"pnpm dev {'--verbose ' * 60}", ""), ("pnpm dev", "")):
        machine.json("set", "shop-web", "dev", value, *scope, CLAUDE_CODE_SESSION_ID=session)
    for number in range(3):
        stored = machine.json("remember", f"Text {number} that nobody needs.", "--title", f"An old note {number}")
        machine.json("note", "forget", "--id", f"m{stored['id']}", "--yes")


def _make_repo(machine: Machine, name: str) -> Path:
    folder = machine.base / "code" / name
    folder.mkdir(parents=True)
    git = ("git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@example.com")
    (folder / "Makefile").write_text("test:\n\tDOCKER=1 pytest -q\nbuild:\n\ttrue\n")
    (folder / "api.py").write_text("app = None\n")
    subprocess.run([*git[:3], "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "remote", "add", "origin", f"git@github.com:acme/{name}.git"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "start"], check=True)
    return folder


def _import(machine: Machine, verb: str, payload: dict[str, Any]) -> None:
    done = machine.cli(*verb.split(), stdin=json.dumps(payload))
    assert done.returncode == 0, done.stderr


def _components() -> dict[str, Any]:
    """A key that has several hints has a list of them."""
    components: dict[str, Any] = {}
    for component, key, value, tags, reason, scope, days in _HINTS:
        repo = {"repo": f"git:github.com/acme/{component}"} if component in REPOS else {}
        meta = {"scope": {**repo, **scope}, "tags": tags.split(), "added_by": "user"}
        at = iso(time.time() - days * _DAY)
        hint = {"value": value, "meta": {**meta, **({"reason": reason} if reason else {})}, "version": 1}
        hints = components.setdefault(component, {"hints": {}})["hints"]
        hints.setdefault(key, []).append({**hint, "created_at": at, "updated_at": at})
    return components


def _memories() -> Any:
    for repo, kind, title, content, tags, days in _NOTES:
        at = iso(time.time() - days * _DAY)
        place = {"namespace": f"github.com/acme/{repo}", "kind": kind, "tier": "long", "source": "claude"}
        yield {**place, "title": title, "content": content, "tags": tags, "created_at": at, "updated_at": at}


def _work_on_the_api(machine: Machine, session: str, repo: Path) -> None:
    agent = Agent(machine, session, str(repo), "claude-code", _SESSIONS[session])
    agent.start()
    agent.asks("set up the project and run the tests" if session == "ses-a1" else "make the checkout test pass")
    agent.fails("pytest -q", "Exit code 127\nbash: pytest: command not found")
    agent.runs("uv run pytest -q", "12 passed")
    agent.edits(str(repo / "api.py"))
    agent.fails("alembic upgrade head", "Exit code 1\nsqlalchemy.exc.OperationalError: could not connect to server")
    agent.runs("docker compose up -d db", "started")
    agent.runs("alembic upgrade head", "ok")
    agent.runs("DOCKER=1 make test", "41 passed")
    agent.runs('git commit -am "Checkout: freeze the clock"', "[main 1234567] Checkout: freeze the clock")
    if session != "ses-a3":
        agent.ends()


def _work_on_the_web(machine: Machine, session: str, repo: Path) -> None:
    agent = Agent(machine, session, str(repo), "codex", _SESSIONS[session])
    agent.start()
    agent.asks("why does the dev server not see the new variable? how do prices and sessions work")
    agent.reads(str(repo / "Makefile"))
    agent.fails("npm run dev", 'Exit code 1\nnpm error Missing script: "dev"')
    agent.runs("pnpm dev --port 5174", "ready")


def _date_what_was_told(machine: Machine) -> None:
    """Lines are told now, whenever the session was: they get the time of its events, while no server has the
    database."""
    assert machine.cli("stop").returncode == 0
    eventually(machine.lock_is_free, "the server has ended")
    with closing(open_writable(str(_database(machine)))) as connection:
        for session, ago in _SESSIONS.items():
            connection.execute(
                "UPDATE told SET timestamp = timestamp - ?1, used_at = used_at - ?1 + 60 WHERE session_id = ?2",
                (int(ago) - 20, session),
            )
    machine.http_only()


def _database(machine: Machine) -> Path:
    own = Path(machine.runtime) / "nudge.db"
    return own if own.exists() else next(Path(machine.home).rglob("nudge.db"))
