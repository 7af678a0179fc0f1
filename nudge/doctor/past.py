"""The history: the database is whole, ours, of our format; the spool is being emptied."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from shlex import quote

from nudge import limits, paths
from nudge.doctor.finding import Finding, Fix, Patient, fail, ok, warn
from nudge.errors import StorageFailed
from nudge.ipc.lock import OwnerLock
from nudge.storage import spool
from nudge.storage.sqlite import check, open_readonly, open_writable, scrub
from nudge.usecases.measures import size

_CHECK = "history"


def check_history(patient: Patient) -> Iterator[Finding]:
    path = paths.database_file(patient.environ)
    if not os.path.exists(path):
        yield ok(_CHECK, "none yet: nothing was recorded")
        return
    said = (patient.status or {}).get("history") or {}
    if said.get("read_only"):
        yield fail(_CHECK, f"nothing can be recorded: {said['read_only']}", "nudge stop; nudge doctor")
        return
    yield _soundness(path)
    yield _log_beside(path)


def _soundness(path: str) -> Finding:
    try:
        with closing(open_readonly(path, limits.BUSY_TIMEOUT)) as connection:
            wrong = check(connection)
    except (StorageFailed, sqlite3.Error) as error:
        return fail(_CHECK, f"{path} cannot be read: {error}", f"ls -l {quote(path)}")
    if wrong:
        mend = f"nudge stop; mv {quote(path)} {quote(path + '.damaged')}  # then restore a backup, or begin anew"
        return fail(_CHECK, f"{path} is damaged: {wrong[0]}", mend)
    return ok(_CHECK, f"whole, {size(os.path.getsize(path))}")


def _log_beside(path: str) -> Finding:
    """SQLite's own log is folded in by whoever writes; a large one means that nobody does, or that a reader never
    ends."""
    log = f"{path}-wal"
    length = os.path.getsize(log) if os.path.exists(log) else 0
    if length > limits.LARGE_LOG_BYTES:
        return warn("history log", f"{size(length)} not folded in yet", "nudge stop; nudge doctor --fix", _tidy(path))
    return ok("history log", size(length))


def _tidy(path: str) -> Fix:
    def fix() -> str:
        """Only while no server has it: the lock that it would hold is ours meanwhile."""
        lock = OwnerLock(f"{path}.lock")
        if not lock.acquire():
            return ""
        try:
            with closing(open_writable(path)) as connection:
                return "folded in, and free pages given back" if not check(connection) and scrub(connection) else ""
        finally:
            lock.release()

    return fix


def check_spool(patient: Patient) -> Iterator[Finding]:
    counts = spool.counts(patient.directory)
    if counts["files"] and patient.status is None and patient.silent is None:
        starter = "nudge ls" if patient.settings.autostart else "nudge serve"
        yield warn(
            "spool",
            f"{counts['files']} events wait for a server, which starts with any command that needs one",
            starter,
        )
    else:
        yield ok("spool", f"{counts['files']} events wait")
    if counts["dropped"]:
        message = f"{counts['dropped']} events were dropped: the spool was full, or there was no sense in them"
        yield warn("dropped events", message, "nudge doctor --fix", _acknowledge(patient.directory))


def _acknowledge(directory: str) -> Fix:
    def fix() -> str:
        """They cannot be had back; whatever is dropped from now on is news."""
        spool.forget_dropped(directory)
        return "the count of dropped events begins anew"

    return fix
