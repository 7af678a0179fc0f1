"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import effort
from tests.harness import Machine

settings.register_profile("same each time", derandomize=True, deadline=None)
settings.register_profile("at random", deadline=None)
settings.load_profile("at random" if effort.is_long() else "same each time")

_TESTS = Path(__file__).parent
_WAITING_PART = 0.8  # of the run, in which tests that wait are started


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files whose tests wait for processes take turns with files whose tests compute, so that no core is idle. The last
    files are of the second kind: they are short, and all workers end at the same time."""
    files = dict.fromkeys(item.path for item in items)
    waiting = [file for file in files if file.is_relative_to(_TESTS / "contract")]
    computing = [file for file in files if not file.is_relative_to(_TESTS / "contract")]
    places = {file: number / len(waiting) * _WAITING_PART for number, file in enumerate(waiting)}
    places |= {file: number / len(computing) for number, file in enumerate(computing)}
    items.sort(key=lambda item: places[item.path])


@pytest.fixture(autouse=True, scope="session")
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees what whoever runs it has set: directories and settings of their own Nudge, and of their clients."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        for name in [name for name in os.environ if name.startswith(("NUDGE_", "XDG_", "CLAUDE", "CODEX_", "GEMINI_"))]:
            patch.delenv(name)
        yield


@pytest.fixture
def make_machine() -> Iterator[Callable[..., Machine]]:
    made: list[Machine] = []

    def make(**environ: str) -> Machine:
        made.append(Machine(**environ))
        return made[-1]

    yield make
    for machine in made:
        machine.close()


@pytest.fixture
def machine(make_machine: Callable[..., Machine]) -> Machine:
    """A runtime directory of its own; whatever runs in it ends with the test."""
    return make_machine()
