"""`kill -9` of PRIMARY during large imports, which go through a file."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.crash.writers import Figures
from tests.harness import NUDGE, Machine

_SEED = 20_261_117
_HINTS = 600  # of 4,000 characters: 2 MiB
_LONGEST = 1.5  # seconds; an import of this size takes about as long on an idle machine


def killed_during_an_import(kills: int = 12) -> Figures:
    """At random points of an import that replaces everything: each time all of it is there afterwards, or nothing; what
    was acknowledged is there."""
    chance = random.Random(_SEED)
    outcomes: Counter[str] = Counter()
    machine = Machine()
    try:
        machine.json("set", "before", "k", "x", "--global")
        for number in range(kills):
            generation = f"g{number}"
            file = machine.base / "hints.json"
            file.write_text(json.dumps(_payload(generation)))
            before = _generations(machine)
            finished = _import_and_kill(machine, file, chance.random() * _LONGEST)
            after = _generations(machine)
            assert after in (before, {generation}), f"a mixture: {sorted(after)}"
            assert not finished or after == {generation}, "an acknowledged import is lost"
            outcomes["imported" if after == {generation} else "nothing"] += 1
        return {"kills": kills, "mixed": 0, "lost": 0, **outcomes}
    finally:
        machine.close()


def _payload(generation: str) -> dict[str, Any]:
    hints = {f"k{number}": {"value": f"{generation} " * 1_000} for number in range(_HINTS)}
    parts = [dict(list(hints.items())[start : start + 150]) for start in range(0, _HINTS, 150)]
    return {"schema_version": "1.0", "components": {f"c{nth}": {"hints": part} for nth, part in enumerate(parts)}}


def _import_and_kill(machine: Machine, file: Path, after: float) -> bool:
    """Whether the command said that it had imported everything."""
    command = subprocess.Popen(
        [*NUDGE, "import", str(file), "--mode", "replace"],
        env=machine.environ,
        cwd=machine.base,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    machine.processes.append(command)
    time.sleep(after)  # a random point of the import: the fault itself
    current = machine.endpoint()
    if current is not None and command.poll() is None:
        os.kill(current.pid, signal.SIGKILL)
    command.communicate(timeout=60)
    return command.returncode == 0


def _generations(machine: Machine) -> set[str]:
    """The imports that hints are from, each of which must be whole; read while nobody writes."""
    hints = [
        hint["value"].split()[0]
        for component in machine.json("export")["payload"]["components"].values()
        for hint in component["hints"].values()
    ]
    counts = Counter(hints)
    assert all(count == _HINTS for generation, count in counts.items() if generation != "x"), counts
    return set(counts)
