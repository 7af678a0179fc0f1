"""What a manifest says, before and after it is known whose command it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

KEYS = ("build", "test", "run", "lint", "format")

Names = Mapping[str, Sequence[str]]

# The best name first: a Makefile with both `test` and `check` means `test`.
TARGETS: Names = {
    "build": ("build", "all", "compile", "dist"),
    "test": ("test", "tests", "check", "unit", "test-unit", "unit-test", "unit-tests", "unittest", "pytest"),
    "run": ("run", "serve", "start", "dev", "up"),
    "lint": ("lint", "vet", "flake8", "ruff", "linting", "golangci-lint", "clippy"),
    "format": ("fmt", "format", "prettier", "black"),
}


@dataclass(frozen=True, slots=True)
class Found:
    """A command that runs from the root of the repo; `cwd` is the directory of the package it is for, `.` for the
    root."""

    component: str
    key: str
    cmd: str
    reason: str
    cwd: str


class Rank(IntEnum):
    """Who is believed first: a person wrote the runner's targets to be typed, a CI step was written for a machine."""

    RUNNER = 0
    SCRIPT = 1
    LANGUAGE = 2
    CONTAINER = 3
    WORKFLOW = 4


@dataclass(frozen=True, slots=True)
class Claim:
    """One manifest's answer. Without a `package` it belongs to whatever lives in `directory`."""

    key: str
    cmd: str
    rank: Rank
    directory: str
    file: str  # from the root, not always below `directory`
    line: int
    package: str | None = None
    is_service: bool = False  # a compose service is the same thing as a package of that name, wherever that lives

    @property
    def reason(self) -> str:
        return f"{self.file}:{self.line}"


def best_names(defined: Iterable[str], wanted: Names = TARGETS) -> Iterator[tuple[str, str]]:
    """`("test", "check")` when `check` is the best name for testing among those that are defined."""
    known = frozenset(defined)
    for key, names in wanted.items():
        name = next((name for name in names if name in known), None)
        if name is not None:
            yield key, name


def folded(name: str) -> str:
    """`Pydantic_Core` and `pydantic-core` are one package to every registry."""
    return name.lower().replace("_", "-").replace(".", "-")
