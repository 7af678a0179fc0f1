"""The change log: readable, whole, of our format, of a sane size; and the clock that its session runs on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from shlex import quote

from nudge import limits, paths
from nudge.clock import boot_id, boot_seconds
from nudge.doctor.finding import Finding, Patient, fail, ok, warn
from nudge.errors import StorageFailed
from nudge.ipc import lock
from nudge.storage.changelog import LogContents, damaged_copies, read_log
from nudge.usecases.measures import size, span

_CHECK = "change log"


def check_log(patient: Patient) -> Iterator[Finding]:
    path = _path(patient)
    try:
        contents = read_log(path)
    except StorageFailed as error:
        yield fail(_CHECK, f"{path} cannot be read: {error.message}", f"ls -l {quote(path)}")
        return
    if contents is None:
        yield ok(_CHECK, "none: there is no session")
    else:
        yield _contents(patient, path, contents)


def _contents(patient: Patient, path: str, contents: LogContents) -> Finding:
    length = os.path.getsize(path) if os.path.exists(path) else 0
    at_rest = lock.is_free(
        os.path.join(patient.directory, paths.LOCK)
    )  # a living server may be in the middle of a write
    if contents.newer:
        return warn(
            _CHECK,
            "a newer Nudge wrote it; this one takes no changes until it is upgraded",
            "uv tool upgrade nudge-mcp",
        )
    if contents.damaged and at_rest:
        return fail(
            _CHECK,
            f"{path} is damaged: {size(contents.damaged_bytes)} cannot be read, {len(contents.records)} records can."
            " The next start recovers those and keeps the damaged file beside it",
            "nudge ls",
        )
    if contents.torn and at_rest:
        return warn(
            _CHECK,
            "it ends in an incomplete record (written during a crash, never acknowledged), which the next start drops",
            "nudge ls",
        )
    if copies := damaged_copies(path):
        return warn(
            _CHECK,
            f"it was damaged; what could be read was recovered, and the damaged file is kept: {', '.join(copies)}",
            f"rm {' '.join(map(quote, copies))}",
        )
    if length > limits.LARGE_LOG_BYTES:
        return warn(
            _CHECK, f"{size(length)} is more than compaction leaves", "nudge export > hints.json; nudge stop --forget"
        )
    return ok(_CHECK, f"whole, {size(length)}")


def check_clock(patient: Patient) -> Iterator[Finding]:
    """Lifetimes run on a clock that ignores steps; a person may still wonder about the times that are shown."""
    if time.time() < limits.EARLIEST_CLOCK:
        yield fail("clock", f"it says {time.strftime('%Y-%m-%d', time.gmtime())}", "timedatectl set-ntp true")
        return
    step = _step(patient)
    if abs(step) > limits.CLOCK_STEP_NOTED:
        moved = f"moved {'forward' if step > 0 else 'back'} by {span(abs(step))} since the session began"
        yield warn("clock", f"{moved}; lifetimes ignore that, shown times are the session's", "nudge stop --forget")
    else:
        yield ok("clock", "steady since the session began")


def _step(patient: Patient) -> float:
    """How far the wall clock has moved from the session's, in whole seconds, since both clocks are read one after the
    other; 0 without a
    session of this boot."""
    try:
        contents = read_log(_path(patient))
    except StorageFailed:
        return 0.0
    header = {} if contents is None or contents.header is None else contents.header
    if header.get("boot_id") != boot_id() or not isinstance(header.get("offset"), int | float):
        return 0.0
    return float(round(time.time() - boot_seconds() - float(header["offset"])))


def _path(patient: Patient) -> str:
    return os.path.join(patient.directory, paths.CHANGE_LOG)
