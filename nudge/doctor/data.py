"""Checks of what is stored: the change log, the clock of its session, the database of the history, the spool."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from shlex import quote

from nudge.core import limits, paths
from nudge.core.clock import boot_id, boot_seconds
from nudge.core.errors import NudgeError, StorageFailed
from nudge.core.locks import OwnerLock, is_free
from nudge.core.text import format_size, format_span
from nudge.doctor.files import remove_command
from nudge.doctor.model import OK, WARN, Finding, Repair, Snapshot, edit_command, fail, ok, warn
from nudge.settings import config
from nudge.storage import spool
from nudge.storage.changelog import LogContents, damaged_copies, read_log
from nudge.storage.database_files import damage_fix, latest_backup
from nudge.storage.schema import drop_foreign, find_foreign
from nudge.storage.sqlite import DatabaseDamaged, check, open_readonly, open_writable, scrub

_LOG = "change log"
_HISTORY = "history"


# The change log


def check_change_log(snapshot: Snapshot) -> Iterator[Finding]:
    path = snapshot.path(paths.CHANGE_LOG)
    try:
        contents = read_log(path)
    except StorageFailed as error:
        message = f"{path} cannot be read: {error.message}"
        if os.path.isdir(path):
            yield fail(_LOG, message, remove_command(path))
        else:
            yield fail(_LOG, message, look=f"ls -l {quote(path)}")
        return
    if contents is None:
        yield ok(_LOG, "none: there is no session")
    else:
        yield _log_finding(snapshot, path, contents)


def _log_finding(snapshot: Snapshot, path: str, contents: LogContents) -> Finding:
    length = os.path.getsize(path) if os.path.exists(path) else 0
    is_at_rest = snapshot.has_no_server  # a running server may be in the middle of a write
    name = os.path.basename(path)
    if contents.newer:
        message = f"a newer Nudge wrote {name}; this one accepts no changes until it is upgraded"
        return warn(_LOG, message, "uv tool upgrade nudge-mcp")
    if contents.damaged and is_at_rest:
        unreadable, readable = format_size(contents.damaged_bytes), len(contents.records)
        message = f"{path} is damaged: {unreadable} cannot be read, {readable} records can"
        return fail(_LOG, f"{message}; the next start recovers these and keeps the damaged file beside it")
    if contents.torn and is_at_rest:
        message = f"{name} ends in an incomplete record (written during a crash, never acknowledged)"
        return warn(_LOG, f"{message}; the next start drops it")
    if copies := damaged_copies(path):
        message = f"{name} was damaged; what could be read was recovered, and the damaged file is kept"
        return warn(_LOG, f"{message}: {', '.join(copies)}", f"rm {' '.join(map(quote, copies))}")
    if length > limits.LARGE_LOG_BYTES:
        message = f"{format_size(length)} is more than compaction leaves"
        return warn(_LOG, message, "nudge export > hints.json; nudge stop --forget")
    return ok(_LOG, f"intact, {format_size(length)}")


def check_clock(snapshot: Snapshot) -> Iterator[Finding]:
    """Lifetimes are measured by a clock that ignores steps of the system clock, but the shown times may then look
    wrong."""
    if time.time() < limits.EARLIEST_CLOCK:
        date = time.strftime("%Y-%m-%d", time.gmtime())
        yield fail("clock", f"the system clock says {date}", "timedatectl set-ntp true")
        return
    step = _clock_step(snapshot)
    if abs(step) > limits.CLOCK_STEP_REPORTED:
        moved = f"moved {'forward' if step > 0 else 'back'} by {format_span(abs(step))} since the session began"
        yield warn("clock", f"{moved}; lifetimes ignore that, shown times are the session's", "nudge stop --forget")
    else:
        yield ok("clock", "steady since the session began")


def _clock_step(snapshot: Snapshot) -> float:
    """How far the wall clock has moved from the session's clock, in whole seconds: both are read one after the other. 0
    without a session of this boot."""
    try:
        contents = read_log(snapshot.path(paths.CHANGE_LOG))
    except StorageFailed:
        return 0.0
    header = {} if contents is None or contents.header is None else contents.header
    if header.get("boot_id") != boot_id() or not isinstance(header.get("offset"), int | float):
        return 0.0
    return float(round(time.time() - boot_seconds() - float(header["offset"])))


# The database


def check_history(snapshot: Snapshot) -> Iterator[Finding]:
    path = config.database_file(snapshot.environ)
    if os.path.islink(path):
        yield _linked(snapshot, path)
        return
    if not os.path.exists(path):
        yield ok(_HISTORY, "none yet: nothing was recorded")
        return
    read_only = ((snapshot.status or {}).get("history") or {}).get("read_only")
    integrity = _integrity(path)
    if read_only and integrity.level == OK:
        folder = os.path.dirname(path)
        is_full = shutil.disk_usage(folder).free < limits.DISK_FULL_BYTES
        message = f"nothing can be recorded: {read_only}"
        yield (
            fail(_HISTORY, message, look=f"df -h {quote(folder)}") if is_full else fail(_HISTORY, message, "nudge stop")
        )
        return
    yield integrity
    yield _write_ahead_log(path)


def _linked(snapshot: Snapshot, path: str) -> Finding:
    """The finding for a link in place of the database. The server does not follow one: it would create a file wherever
    the link points."""
    target = os.path.realpath(path)
    message = f"nothing can be recorded: {path} is a symbolic link, which is not followed"
    if not os.path.exists(target):
        return fail(_HISTORY, f"{message}; {target} does not exist", f"nudge stop; rm {quote(path)}")
    if "NUDGE_DB" in snapshot.environ:
        return fail(_HISTORY, message, f"nudge stop; export NUDGE_DB={quote(target)}")
    message = f"{message}; name the file itself in config.toml (db = {target!r}), then run: nudge stop"
    return fail(_HISTORY, message, edit_command(paths.config_file(snapshot.environ)))


def _integrity(path: str) -> Finding:
    if os.path.isdir(path):
        return fail(_HISTORY, f"{path} is a directory", f"nudge stop; {remove_command(path)}")
    try:
        with closing(open_readonly(path, limits.BUSY_TIMEOUT)) as connection:
            problems = check(connection)
            foreign = find_foreign(connection) if not problems else []
    except DatabaseDamaged as error:
        problems, foreign = [error.message], []
    except NudgeError as error:
        return fail(_HISTORY, f"{path} cannot be read: {error.message}", look=f"ls -l {quote(path)}")
    if problems:
        return _damage(path, problems[0])
    if foreign:
        message = f"{path} has objects that Nudge did not make, which may run with its statements: {', '.join(foreign)}"
        question = f"Drop {', '.join(foreign)} from {path}?"
        return Finding(_HISTORY, WARN, message, "nudge stop; nudge doctor --fix", _drop(path), question)
    return ok(_HISTORY, f"intact, {format_size(os.path.getsize(path))}")


def _damage(path: str, problem: str) -> Finding:
    """The finding for a damaged database, with the restore of the newest usable backup as its fix, if there is one."""
    message = f"{path} is damaged: {problem}"
    latest = latest_backup(path)
    if latest is None:
        return fail(_HISTORY, message, damage_fix(path))
    backup, observations = latest
    noun = "observation" if observations == 1 else "observations"
    question = f"Restore the backup {backup} ({observations} {noun})? The damaged history is kept."
    return fail(_HISTORY, message, f"nudge restore {quote(backup)}", _restore(backup), question)


def _restore(backup: str) -> Repair:
    def repair() -> str:
        """Stop the server, then restore. A server inside a client refuses to stop; then nothing is changed."""
        from nudge.process.client import Client
        from nudge.process.owned_files import restore_backup

        if not is_free(paths.lock_file()):
            Client(autostart=False).call("nudge.stop", {"force": False, "forget": False}, start=False)
        restored = restore_backup(backup)
        done = f"restored {backup}; the damaged history is kept: {restored.kept}"
        return "; ".join([done, *restored.left_out.lines()])

    return repair


def _drop(path: str) -> Repair:
    def repair() -> str:
        """Drop what Nudge did not make. Does nothing while a server runs; holds the lock of the database, so that none
        starts meanwhile."""
        lock = OwnerLock(f"{path}.lock")
        if not lock.acquire():
            return ""
        try:
            with closing(open_writable(path)) as connection:
                return f"dropped {', '.join(drop_foreign(connection))}"
        finally:
            lock.release()

    return repair


def _write_ahead_log(path: str) -> Finding:
    """SQLite checkpoints its log while it is written to. A large log means that nobody writes, or that a reader never
    ends."""
    log = f"{path}-wal"
    length = os.path.getsize(log) if os.path.exists(log) else 0
    if length > limits.LARGE_LOG_BYTES:
        return warn(
            "history log",
            f"{format_size(length)} not checkpointed",
            "nudge stop; nudge doctor --fix",
            _checkpoint(path),
        )
    return ok("history log", format_size(length))


def _checkpoint(path: str) -> Repair:
    def repair() -> str:
        """Does nothing while a server runs; holds the lock of the database, so that none starts meanwhile."""
        lock = OwnerLock(f"{path}.lock")
        if not lock.acquire():
            return ""
        try:
            with closing(open_writable(path)) as connection:
                return "checkpointed, and free pages returned" if not check(connection) and scrub(connection) else ""
        finally:
            lock.release()

    return repair


# The spool


def check_spool(snapshot: Snapshot) -> Iterator[Finding]:
    counts = spool.counts(snapshot.directory)
    waiting = "1 event waits" if counts["files"] == 1 else f"{counts['files']} events wait"
    if counts["files"] and snapshot.status is None and snapshot.silent is None:
        start = "nudge ls" if snapshot.settings.autostart else "nudge serve"
        message = f"{waiting} for a server, which starts with any command that needs one"
        yield warn("spool", message, start)
    else:
        yield ok("spool", waiting)
    if counts["dropped"]:
        dropped = "1 event was" if counts["dropped"] == 1 else f"{counts['dropped']} events were"
        message = f"{dropped} dropped: the spool was full, or an event could not be understood"
        yield warn("dropped events", message, "nudge doctor --fix", _reset_dropped(snapshot.directory))


def _reset_dropped(directory: str) -> Repair:
    def repair() -> str:
        """Dropped events cannot be recovered; the count starts again, so that new ones are noticed."""
        spool.forget_dropped(directory)
        return "reset the count of dropped events"

    return repair
