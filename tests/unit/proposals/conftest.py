from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.proposals.model_server import ModelServer, model_server


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running
