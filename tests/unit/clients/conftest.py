"""Every test of a client has a home of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.clients.homes import empty_home, only_nudge_on_path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return empty_home(tmp_path, monkeypatch)


@pytest.fixture(autouse=True)
def bin_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return only_nudge_on_path(tmp_path, monkeypatch)


@pytest.fixture
def executable(bin_directory: Path) -> str:
    return str(bin_directory / "nudge")
