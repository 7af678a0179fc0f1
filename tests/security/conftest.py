"""Fixtures of the security tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.security.served import Served, served


@pytest.fixture
def server() -> Iterator[Served]:
    with served() as one:
        yield one
