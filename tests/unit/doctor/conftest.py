"""A machine to check, made of a few files."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge.core import paths
from nudge.core.locks import Flock
from nudge.doctor.model import Finding, Snapshot
from nudge.process import endpoint
from nudge.process.endpoint import Endpoint
from nudge.settings.config import Settings
from tests.harness import free_port

Make = Callable[..., Snapshot]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The runtime directory of a machine that has had a server."""
    directory = tmp_path / "run"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
def make(tmp_path: Path, run: Path) -> Make:
    def snapshot(**changed: Any) -> Snapshot:
        fields: dict[str, Any] = {
            "directory": str(run),
            "log_directory": str(run / "log"),
            "home": str(tmp_path),
            "cwd": str(tmp_path / "work"),
            "environ": {},
            "settings": Settings({"port": free_port()}),
        }
        return Snapshot(**{**fields, **changed})

    return snapshot


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


def publish(run: Path, *, pid: int = 4_000_000, state: str = "ready", path: str | None = None) -> None:
    endpoint.publish(str(run), Endpoint(pid, 8765, path, "2026-11-16T08:30:00.000000Z", "g1", "0.1.0", state))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
