"""Which job a command line does, and how it is invoked for everything."""

from __future__ import annotations

import pytest

from nudge.manifests.commands import classify_command, job_invocation


@pytest.mark.parametrize(
    ("cmd", "key"),
    [
        ("python -m pytest -q", "test"),
        ("uv run pytest", "test"),
        ("cargo test --all", "test"),
        ("npm run test", "test"),
        ("make -j2 check", "test"),
        ("./gradlew --no-daemon check", "test"),
        ("mvn -B verify", "test"),
        ("python tests/runtests.py", "test"),
        ("ruff check .", "lint"),
        ("ruff format --check .", "lint"),
        ("ruff format .", "format"),
        ("cargo fmt --all -- --check", "lint"),
        ("npx eslint src", "lint"),
        ("npx mocha test", "test"),
        ("pyright", "lint"),
        ("npx tsc", None),
        ("zsh ci/lint.sh", "lint"),
        ("tox -e unittest", "test"),
        ("ls unittest", None),
        ("gmake test", "test"),
        ("yarn lint", "lint"),
        ("cargo build --release", "build"),
        ("./mvnw -B package", "build"),
        ("pip install pytest", None),
        ("npm ci", None),
        ("npm publish", None),
        ("sudo make test", None),
        ("echo pytest", None),
        ("python -m 'unbalanced", None),
        ("./scripts/bootstrap.sh", None),
        ("./scripts/test.sh -q", "test"),
        ("bash script/lint", "lint"),
        ("bin/check", "check"),
        ("/usr/bin/test -f x", None),
        ("docs/build", None),
    ],
)
def test_meaning_of_a_step(cmd: str, key: str | None) -> None:
    """Only what clearly checks or builds is understood; a formatter that only looks is a linter."""
    assert classify_command(cmd) == key


@pytest.mark.parametrize(
    ("cmd", "expected"),
    [
        ("pytest -x tests/a.py", ("test", "pytest")),
        ("A=1 B='x y' python3 -m pytest tests", ("test", "A=1 B='x y' python3 -m pytest")),
        ("cd api && npm run test -- --grep x", ("test", "cd api && npm run test")),
        ("go test ./... -run TestA", ("test", "go test ./...")),
        ("go test -run TestA ./...", None),
        ('MSG="a b"  uv  run pytest -x', ("test", 'MSG="a b"  uv  run pytest')),
        ("uv run ruff check src", ("lint", "uv run ruff check")),
        ("pip install -e .[test]", ("install", "pip install -e .[test]")),
        ("bundle install", ("install", "bundle install")),
        ("ruff", None),
        ("cd /home/me/api && pytest", None),
        ("ls tests", None),
        ("pytest 'unbalanced", None),
    ],
)
def test_invocation_of_a_job(cmd: str, expected: tuple[str, str] | None) -> None:
    """With variables and a directory of the repo, without targets and options of the moment, and as it was typed."""
    assert job_invocation(cmd) == expected
