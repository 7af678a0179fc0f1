"""Fixtures for the tests of every room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.service import Service


@pytest.fixture
def open_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open a `Service` of the test's module with these settings, on a database of its own."""
    opened: list[Service] = []

    def open_one(**settings: Any) -> Service:
        opened.append(request.module.Service(tmp_path / f"nudge-{len(opened)}.db", **settings))
        return opened[-1]

    yield open_one
    for service in opened:
        service.database.close()


@pytest.fixture
def service(open_service: Callable[..., Any]) -> Any:
    return open_service()
