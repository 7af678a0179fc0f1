"""A machine on which agents have worked for a while, for the page to show."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.contract.scripted import Agent
from tests.harness import Machine

REPOS = ("shop-api", "shop-web")


def make_repo(machine: Machine, name: str) -> Path:
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


def build(machine: Machine) -> dict[str, Path]:
    """Hints, notes, and sessions of two agents that failed, found out, and were told."""
    repos = {name: make_repo(machine, name) for name in REPOS}
    api, web = repos["shop-api"], repos["shop-web"]

    def run(*words: str, cwd: Path = api) -> None:
        done = machine.cli(*words, cwd=str(cwd))
        assert done.returncode == 0, done.stderr

    run(
        "set",
        "shop-api",
        "test",
        "DOCKER=1 make test",
        "--type",
        "command",
        "--tags",
        "test,docker",
        "--reason",
        "the router needs a real Redis",
    )
    run(
        "set",
        "shop-api",
        "test",
        "make test-fast",
        "--type",
        "command",
        "--scope-branch",
        "spike/*",
        "--reason",
        "spikes have no Docker",
    )
    run("set", "shop-api", "build", "make build", "--tags", "build")
    run(
        "set",
        "shop-api",
        "migrate",
        "alembic upgrade head",
        "--tags",
        "database",
        "--reason",
        "before the first test of a new clone",
    )
    run(
        "set",
        "shop-web",
        "dev",
        "pnpm dev --port 5174",
        "--tags",
        "run",
        "--reason",
        "5173 is the docs server",
        cwd=web,
    )
    run("set", "shop-web", "lint", "pnpm biome check --write", cwd=web)
    run("set", "--global", "git", "sign", "git commit -S", "--reason", "main refuses unsigned commits")
    run(
        "remember",
        "Prices are integers in cents everywhere; the API divides by 100 only when it renders.",
        "--title",
        "Prices are cents",
        "--kind",
        "decision",
        "--tags",
        "pricing,api",
    )
    run(
        "remember",
        "Sessions moved from Redis to Postgres: Redis lost them at each deploy. The TTL job runs hourly.",
        "--title",
        "Sessions live in Postgres",
        "--kind",
        "decision",
        "--tags",
        "sessions,database",
    )
    run(
        "remember",
        "A flaky checkout test was a clock in the fixture, not the payment stub.",
        "--title",
        "The checkout test was the clock",
        "--kind",
        "lesson",
        "--tags",
        "test",
    )
    run(
        "remember",
        "Vite caches the env at start: restart it after changing .env.",
        "--title",
        "Vite and .env",
        "--kind",
        "discovery",
        cwd=web,
    )
    for number, session in enumerate(("ses-a1", "ses-a2", "ses-a3")):
        agent = Agent(machine, session, str(api), "claude-code")
        agent.start()
        agent.asks("make the checkout test pass" if number else "set up the project and run the tests")
        agent.fails("pytest -q", "Exit code 127\nbash: pytest: command not found")
        agent.runs("uv run pytest -q", "12 passed")
        agent.edits(str(api / "api.py"))
        agent.fails("alembic upgrade head", "Exit code 1\nsqlalchemy.exc.OperationalError: could not connect to server")
        agent.runs("docker compose up -d db", "started")
        agent.runs("alembic upgrade head", "ok")
        agent.runs("DOCKER=1 make test", "41 passed")
        agent.runs('git commit -am "Checkout: freeze the clock"', "[main 1234567] Checkout: freeze the clock")
        if number < 2:
            agent.ends()
    other = Agent(machine, "ses-b1", str(web), "codex")
    other.start()
    other.asks("why does the dev server not see the new variable? how do prices and sessions work")
    other.reads(str(web / "Makefile"))
    other.fails("npm run dev", 'Exit code 1\nnpm error Missing script: "dev"')
    other.runs("pnpm dev --port 5174", "ready")
    return repos
