"""Taking in a large spool: how long it takes, and how long the event loop of PRIMARY is held meanwhile."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from typing import Any

from nudge import __version__
from nudge.core import limits
from nudge.storage import spool
from tests.bench import budgets, histories
from tests.bench.report import Row
from tests.bench.watched import Watched
from tests.harness import Machine, eventually

_BYTES = 150 * limits.MIB
_ERROR_CHARS = 14_000  # as much as an event may carry; a hook sends 2,000
_SESSION = 200  # events
_TIMEOUT = 900.0  # seconds


def taking_in(machine: Machine) -> Iterator[Row]:
    """150 MB of failed and successful commands with long errors and outputs, as hooks leave them."""
    watched = Watched(machine)
    directory, staged = f"{machine.runtime}/{spool.FOLDER}", f"{machine.base}/staged"
    number, size = _write(staged)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    for name in sorted(os.listdir(staged)):
        os.rename(f"{staged}/{name}", f"{directory}/{name}")
    watched.gap()
    used, began = watched.processor_seconds(), time.perf_counter()
    eventually(lambda: _is_empty(directory), "the spool is taken in", _TIMEOUT)
    seconds, work = time.perf_counter() - began, watched.processor_seconds() - used
    gap = watched.gap()
    assert machine.json("status")["spool"]["dropped"] == 0
    events = f"{number:,} events, {size / 1e6:.0f} MB"
    yield Row("spool", f"loop held by {events}", gap["held"], budgets.LOOP_HELD, "ms", "", f"wall {gap['wall']:.1f} ms")
    yield Row(
        "spool", f"taking in {events}", seconds, budgets.SPOOL_SECONDS, "s", "", f"{work:.1f} s of processor time"
    )


def _is_empty(directory: str) -> bool:
    """Looked at seldom: a look at ten thousand names takes the processor from the server."""
    time.sleep(0.2)
    return not any(name.endswith(".json") for name in os.listdir(directory))


def _write(directory: str) -> tuple[int, int]:
    """Write the files beside the spool; return their number and size."""
    os.makedirs(directory, mode=0o700)
    chance = random.Random(20_261_122)
    word = histories.Zipf(histories.words(), chance)
    number = size = 0
    while size < _BYTES:
        body = json.dumps(_event(number, word, chance)).encode()
        with open(f"{directory}/{number:020d}-spooled{number}.json", "wb") as file:
            file.write(body)
        number, size = number + 1, size + len(body)
    return number, size


def _event(number: int, word: histories.Zipf, chance: random.Random) -> dict[str, Any]:
    failed = number % 3 > 0
    printed = _printed(word, chance)
    metadata = {"exit_code": 1, "error": f"Exit code 1\n{printed}"} if failed else {"exit_code": 0, "output": printed}
    return {
        "event_id": f"spooled{number}",
        "session_id": f"spooled-{number // _SESSION}",
        "client": "claude-code",
        "cwd": "/home/dev/x",
        "repo": "git:github.com/acme/x",
        "project": "github.com/acme/x",
        "timestamp": int(time.time()) - 200_000 + number,
        "source_event": "PostToolUseFailure" if failed else "PostToolUse",
        "type": "command_error" if failed else "command",
        "tool_name": "Bash",
        "content": f"pytest -q tests/{word()}/test_{word()}.py -k {word()}",
        "metadata": metadata,
        spool.REDACTED_BY: __version__,
    }


def _printed(word: histories.Zipf, chance: random.Random) -> str:
    """A traceback with lines of code, as test runners print it."""
    lines: list[str] = []
    size = 0
    while size < _ERROR_CHARS:
        code = " ".join(word() for _ in range(8))
        lines.append(
            f'  File "/home/dev/x/{word()}/{word()}.py", line {chance.randrange(900)}, in {word()}\n    {code}'
        )
        size += len(lines[-1])
    return "\n".join([*lines, f"E   AssertionError: {word()} != {word()}"])[:_ERROR_CHARS]
