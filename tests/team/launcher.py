"""`nudge` for the tests of a team: with a clock that is ahead, with short pauses between two looks at the server, and
with a step at which the process dies. Nothing of this is in the product."""

from __future__ import annotations

import os
import signal
import sys
import time
from importlib import import_module
from typing import Any

AHEAD = float(os.environ.get("TEAM_TEST_AHEAD", "0"))
AGO = float(os.environ.get("TEAM_TEST_AGO", "0"))
"""By how many seconds this process runs in the past: unlike with a clock that is wrong, time went by since."""
DIES = os.environ.get("TEAM_TEST_DIES", "")
"""`STEP:before` or `STEP:after`, with the number of the call: `push:after:2`."""

STEPS = {
    "add": ("nudge.team.store", None, "add"),
    "acknowledge": ("nudge.team.store", None, "acknowledge"),
    "note_taken": ("nudge.team.store", None, "note_taken"),
    "advance": ("nudge.team.store", None, "advance"),
    "put_version": ("nudge.team.store", None, "put_version"),
    "note_incoming": ("nudge.team.hints_ops", None, "note_incoming"),
    "push": ("nudge.team.server_ops", "PostgresServer", "push"),
    "rows": ("nudge.team.server_ops", "PostgresServer", "rows"),
    "heads": ("nudge.team.server_ops", "PostgresServer", "heads"),
    "write": ("nudge.core.app", "App", "write"),
    "commit": ("nudge.core.app", "App", "commit"),
}


def set_clock() -> None:
    from nudge.core import clock

    real = time.time
    time.time = lambda: real() + AHEAD - AGO
    up_for = 1_000 * 86_400.0  # the machine was not started after the past that it runs in
    clock.Clock.__init__.__defaults__ = (None, lambda: clock.boot_seconds() + up_for - AGO)


def set_pauses() -> None:
    from nudge.core import limits

    for name, text in ((name, value) for name, value in os.environ.items() if name.startswith("TEAM_TEST_LIMIT_")):
        attribute = name.removeprefix("TEAM_TEST_LIMIT_")
        current = getattr(limits, attribute)
        setattr(limits, attribute, type(current)(float(text)))


def cut_network() -> None:
    """Let every connection to the server fail."""
    from nudge.team import server_ops

    async def connect(*_: Any) -> Any:
        raise server_ops.TeamProblem("the server cannot be reached: this test is offline")

    vars(server_ops)["connect"] = connect


def die_at(step: str, moment: str, count: int) -> None:
    """Kill this process before or after the step's call of this number."""
    module, owner, name = STEPS[step]
    place = import_module(module) if owner is None else getattr(import_module(module), owner)
    real, calls = getattr(place, name), [0]

    def reached() -> bool:
        calls[0] += 1
        return calls[0] == count

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def run_async(*arguments: Any, **named: Any) -> Any:
        is_last = reached()
        if is_last and moment == "before":
            die()
        result = await real(*arguments, **named)
        if is_last:
            die()
        return result

    def run(*arguments: Any, **named: Any) -> Any:
        is_last = reached()
        if is_last and moment == "before":
            die()
        result = real(*arguments, **named)
        if is_last:
            die()
        return result

    import inspect

    setattr(place, name, run_async if inspect.iscoroutinefunction(real) else run)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    set_clock()
    set_pauses()
    if "TEAM_TEST_OFFLINE" in os.environ:
        cut_network()
    if DIES:
        named, moment, number = DIES.split(":")
        die_at(named, moment, int(number))
    from nudge.__main__ import main

    sys.exit(main())
