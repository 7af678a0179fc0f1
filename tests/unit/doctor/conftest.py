"""A machine to examine, made of a few files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge import paths
from nudge.config import Settings
from nudge.doctor.finding import Finding, Patient
from nudge.ipc.lock import Flock
from tests.harness import free_port

Make = Callable[..., Patient]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The runtime directory of a machine that has had a server."""
    directory = tmp_path / "run"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
def make(tmp_path: Path, run: Path) -> Make:
    def patient(**changed: Any) -> Patient:
        fields: dict[str, Any] = {
            "directory": str(run),
            "log_directory": str(run / "log"),
            "home": str(tmp_path),
            "cwd": str(tmp_path / "work"),
            "environ": {},
            "settings": Settings({"port": free_port()}),
        }
        return Patient(**{**fields, **changed})

    return patient


@pytest.fixture
def held(run: Path) -> Iterator[Flock]:
    lock = Flock(str(run / paths.LOCK))
    assert lock.acquire()
    yield lock
    lock.release()


def levels(findings: Iterable[Finding]) -> list[str]:
    return [finding.level for finding in findings]


def only(findings: Iterable[Finding]) -> Finding:
    [finding] = findings
    return finding
