"""A service with a model, and its notes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nudge.meaning import search_ops
from tests.unit.meaning.service import Service
from tests.unit.meaning.tiny import make_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_model(tmp_path / "model")


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(search_ops, "_SETTLE", 0.0)
    opened = Service(tmp_path / "nudge.db")
    yield opened
    opened.close()
