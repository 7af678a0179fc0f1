"""Measuring on a machine that has other things to do: baseline and subject take turns, and the middle of many turns
counts."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

Samples = dict[str, list[float]]
_KILOBYTES_IN_MB = 1000 / 1.024


def take_turns(subjects: Mapping[str, Callable[[], float]], rounds: int) -> Samples:
    """What each subject measured in each round. The first round only warms the caches up, and is left out."""
    samples: Samples = {name: [] for name in subjects}
    for number in range(rounds + 1):
        for name, measure in subjects.items():
            measured = measure()
            if number:
                samples[name].append(measured)
    return samples


def ratio(samples: Samples, subject: str, baseline: str) -> float:
    """Neighbours in time share whatever else the machine does, so each round has its own ratio; the middle one
    counts."""
    return median(one / other for one, other in zip(samples[subject], samples[baseline], strict=True))


def seconds_of(command: Sequence[str], environ: Mapping[str, str], cwd: str) -> float:
    """From spawn to exit; a command that fails measures nothing and ends the run."""
    began = time.perf_counter()
    quiet = subprocess.DEVNULL
    subprocess.run(command, env=dict(environ), cwd=cwd, stdin=quiet, stdout=quiet, stderr=quiet, check=True)
    return time.perf_counter() - began


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / _KILOBYTES_IN_MB
    raise AssertionError(f"process {pid} has no resident memory")
