"""What a command line that somebody wrote for CI is for."""

from __future__ import annotations

import posixpath
import shlex

from nudge.manifests.model import TARGETS

_RUNNERS = frozenset(
    ["npm", "pnpm", "yarn", "bun", "make", "just", "task", "rake", "composer", "invoke", "inv", "poe", "hatch", "pdm"],
)
_RUN_WORDS = ("run", "run-script")
# Consecutive words, a program's directory left out. Formatters come first: `ruff format` is no linter.
_PHRASES = {
    "format": (
        "cargo fmt",
        "gofmt",
        "go fmt",
        "prettier",
        "black",
        "isort",
        "ruff format",
        "dotnet format",
        "clang-format",
    ),
    "lint": (
        "cargo clippy",
        "go vet",
        "golangci-lint",
        "eslint",
        "flake8",
        "pylint",
        "ruff",
        "mypy",
        "pre-commit",
        "rubocop",
    ),
    "test": (
        *("cargo test", "cargo nextest run", "go test", "mix test", "dotnet test", "manage.py test", "runtests.py"),
        *("-m unittest", "pytest", "py.test", "tox", "nox", "jest", "vitest", "ctest", "rspec", "phpunit"),
    ),
    "build": ("cargo build", "go build", "cmake --build", "-m build", "dotnet build"),
}
_GOALS = {"test": {"test", "verify", "check"}, "build": {"package", "build", "assemble"}}
_GOAL_RUNNERS = ("mvn", "mvnw", "gradle", "gradlew")
_ONLY_CHECKS = frozenset(["--check", "--check-only", "--diff", "--list-different", "-l", "-d", "-c"])

_SETS_UP = frozenset(["sudo", "apt", "apt-get", "brew", "choco", "curl", "wget", "git", "docker", "rm", "echo", "set"])
_SHELL_SYNTAX = frozenset(["if", "for", "while", "case", "then", "else", "fi", "do", "done"])
_NOT_FOR_A_DESK = frozenset(["install", "ci", "publish", "deploy", "push", "upload", "secret", "secrets"])


def meaning(cmd: str) -> str | None:
    """The key that `cmd` answers; None when it prepares, ships or is not understood."""
    words = _words(cmd)
    if not words or words[0] in _SETS_UP | _SHELL_SYNTAX or not _NOT_FOR_A_DESK.isdisjoint(words):
        return None
    key = (
        _by_target(words)
        if words[0] in _RUNNERS
        else _by_goal(words)
        if words[0] in _GOAL_RUNNERS
        else _by_phrase(words)
    )
    # A formatter that only looks is a linter.
    return "lint" if key == "format" and not _ONLY_CHECKS.isdisjoint(words) else key


def _words(cmd: str) -> list[str]:
    try:
        return [posixpath.basename(word) or word for word in shlex.split(cmd)]
    except ValueError:
        return []


def _by_target(words: list[str]) -> str | None:
    target = next((word for word in words[1:] if not word.startswith("-") and word not in _RUN_WORDS), None)
    return next((key for key, names in TARGETS.items() if target in names), None)


def _by_goal(words: list[str]) -> str | None:
    return next((key for key, goals in _GOALS.items() if not goals.isdisjoint(words)), None)


def _by_phrase(words: list[str]) -> str | None:
    spaced = f" {' '.join(words)} "
    return next((key for key, phrases in _PHRASES.items() if any(f" {phrase} " in spaced for phrase in phrases)), None)
