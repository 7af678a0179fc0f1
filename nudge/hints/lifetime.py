"""The lifetime of a hint that has no duration of its own: what all such hints live for, which files and settings call a
session. Its state is the change log; this module begins, continues and ends it.

It lasts from the first nudge process until the grace period has passed with none, or until
`nudge stop --forget`; a reboot does not end it. Hints with a duration outlive it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from nudge import __version__
from nudge.core import files, limits, paths
from nudge.core.answers import Answer, Answers
from nudge.core.clock import Clock, boot_id
from nudge.core.errors import StorageFailed, Unavailable
from nudge.core.locks import OwnerLock, is_free
from nudge.hints.model import Change, Hint, Identity, hide_secrets, is_copied_fact
from nudge.hints.outbox import HintOutbox
from nudge.hints.scope import scope_of
from nudge.hints.store import HintStore
from nudge.settings.config import Settings, Sources
from nudge.storage import spool
from nudge.storage.changelog import LOG_FORMAT, ChangeLog, LogContents, damaged_copies, keep_damaged, read_log

NO_SESSION = ""  # the session id in a log that holds only what outlived a forgotten session


@dataclass
class HintLifetime:
    """The store, the log behind it (None: memory only), and the clock that both run on."""

    store: HintStore
    clock: Clock
    log: ChangeLog | None
    answers: Answers = field(default_factory=Answers)
    read_only: str | None = None
    """Why nothing may be written; None when writing is allowed."""
    warning: str | None = None
    """What the user should know about the change log: it was damaged, or changes are kept in memory only."""
    settings: Settings = field(default_factory=lambda: Settings({}))
    began_here: bool = False
    """Whether this process began it, with no hints of an older one."""
    unwritten_log: str | None = None
    """The path of a change log for which there was no room."""
    outbox: HintOutbox = field(default_factory=HintOutbox)
    """The changes that a team is to be sent."""

    def write_log(self) -> bool:
        """Write the change log that there was no room for; return whether that succeeded now."""
        path = self.unwritten_log
        if path is None or os.path.lexists(path):
            return False
        try:
            self.log = ChangeLog.create(path, self.header(), self.records())
        except StorageFailed:
            return False
        self.unwritten_log = self.warning = None
        return True

    @property
    def directory(self) -> str | None:
        """The runtime directory; None when it cannot be written."""
        return None if self.log is None else os.path.dirname(self.log.path)

    @property
    def id(self) -> str:
        return self.store.lifetime_id

    def header(self) -> dict[str, Any]:
        return {
            "format": LOG_FORMAT,
            "session": self.store.lifetime_id,
            "created": self.store.created_at,
            "boot_id": boot_id(),
            "offset": self.clock.offset,
            "version": __version__,
        }

    def records(self) -> Iterator[dict[str, Any]]:
        """The whole state as log records, for a compaction; may be read on another thread."""
        return self.records_of(self.store.hints())

    def records_of(self, hints: list[Hint]) -> Iterator[dict[str, Any]]:
        """The state as `records`, with these hints in place of the store's."""
        return chain(self.outbox.records(), _records(hints, self.answers.items(), self.clock.now()))

    def replay(self, records: Iterable[dict[str, Any]]) -> None:
        for record in records:
            self.outbox.replay(record)
            if "puts" in record or "removals" in record:
                self.store.apply(Change.from_record(record))
            if "id" in record:
                self.answers.remember(record["t"], record["id"], record["result"], record.get("request"))


def _records(hints: list[Hint], answers: list[tuple[str, Answer]], now: float) -> Iterator[dict[str, Any]]:
    for hint in hints:
        if not hint.secret:
            yield Change(puts=(hint,), is_whole=True).to_record()
    for request_id, answer in answers:
        yield {
            "t": answer.when,
            "id": request_id,
            "request": answer.fingerprint,
            "result": hide_secrets(json.loads(answer.result)),
        }
    yield {"t": now}


def open_lifetime(directory: str, source: Sources, *, is_successor: bool = False) -> HintLifetime:
    """Continue the session that the directory holds, or begin a new one with what outlives the old. A successor always
    continues: the process that gives its role away has released the members' lock by now.

    When the log cannot be read or written, the session is kept in memory only, and its `warning` says so: the server
    starts all the same. The settings of the session are stored with it.
    """
    lifetime = _open_lifetime(directory, source, is_successor)
    if lifetime.log is not None and (problem := source.save(lifetime.id, lifetime.settings)):
        lifetime.warning = lifetime.warning or problem
    return lifetime


def _open_lifetime(directory: str, source: Sources, is_successor: bool) -> HintLifetime:
    path = os.path.join(directory, paths.CHANGE_LOG)
    try:
        contents = read_log(path)
    except StorageFailed as error:
        return _keep_in_memory(open_in_memory(source.resolve(source.stored_session)), error)
    settings = source.resolve(_lifetime_of(contents, source))
    if contents is not None and contents.newer:
        why = "the change log was written by a newer Nudge; upgrade this one, or run: nudge stop --forget"
        return HintLifetime(_new_store(settings, Clock()), Clock(), None, read_only=why, settings=settings)
    lifetime = open_in_memory(settings) if contents is None else _restore(settings, contents)
    try:
        if contents is None:
            lifetime.log = ChangeLog.create(path, lifetime.header())
            lifetime.began_here = True
            return lifetime
        return _attach_log(directory, source, lifetime, contents, is_successor)
    except StorageFailed as error:
        lifetime.unwritten_log = path if contents is None else None
        return _keep_in_memory(lifetime, error)


def _lifetime_of(contents: LogContents | None, source: Sources) -> str | None:
    """The id of the log's session; when the log does not say, that of the session that settings are stored for."""
    if contents is None:
        return None
    return source.stored_session if contents.header is None or contents.newer else str(contents.header["session"])


def open_in_memory(settings: Settings) -> HintLifetime:
    clock = Clock()
    return HintLifetime(_new_store(settings, clock), clock, None, settings=settings)


def _keep_in_memory(lifetime: HintLifetime, error: StorageFailed) -> HintLifetime:
    lifetime.log = None
    lifetime.warning = f"changes.log cannot be used ({error.message}); hints are kept in memory only. fix: nudge doctor"
    return lifetime


def _attach_log(
    directory: str, source: Sources, lifetime: HintLifetime, contents: LogContents, is_successor: bool
) -> HintLifetime:
    """Open the log for writing. A damaged one is copied, then replaced by one with every record that could be read."""
    path = os.path.join(directory, paths.CHANGE_LOG)
    if contents.damaged:
        lifetime.warning = (
            f"changes.log was damaged: {contents.damaged_bytes} bytes could not be read,"
            f" {len(contents.records)} records"
            f" were recovered; the damaged file is kept as {os.path.basename(keep_damaged(path))}"
        )
    if contents.header is not None and not (is_successor or continues(contents, lifetime.settings, directory)):
        return _end_and_begin(directory, source.resolve(None), lifetime)
    lifetime.store.apply(lifetime.store.decide_sweep(lifetime.clock.now()))
    if contents.damaged or not _of_this_boot(contents):
        # After a reboot the header must say how this boot's clock goes on.
        lifetime.log = ChangeLog.create(path, lifetime.header(), lifetime.records())
    else:
        lifetime.log = ChangeLog.resume(path, contents)
    return lifetime


def continues(contents: LogContents, settings: Settings, directory: str) -> bool:
    """Whether the session continues: one of its processes is alive (holds the members' lock), or the grace period has
    not passed."""
    assert contents.header is not None
    if contents.header["session"] == NO_SESSION:
        return False
    if not is_free(os.path.join(directory, paths.MEMBERS), shared=False):
        return True
    last = max((record["t"] for record in contents.records if "t" in record), default=contents.header["created"])
    idle = clock_of(contents).now() - last
    return settings.session_grace > 0 and idle <= settings.session_grace


def clock_of(contents: LogContents) -> Clock:
    """The clock of a log's times: the log's own within one boot, a new one after a reboot."""
    return Clock(contents.header["offset"]) if contents.header and _of_this_boot(contents) else Clock()


def _of_this_boot(contents: LogContents) -> bool:
    return contents.header is not None and contents.header.get("boot_id") == boot_id()


def _restore(settings: Settings, contents: LogContents) -> HintLifetime:
    """The session that a log holds. When its header is damaged, its hints go into a new session."""
    header = contents.header or open_in_memory(settings).header()
    clock = clock_of(contents)
    lifetime = HintLifetime(
        _new_store(settings, clock, header["session"], header["created"]), clock, None, settings=settings
    )
    lifetime.replay(contents.records)
    return lifetime


def _end_and_begin(directory: str, settings: Settings, ended: HintLifetime) -> HintLifetime:
    lifetime = HintLifetime(
        _new_store(settings, ended.clock),
        ended.clock,
        None,
        warning=ended.warning,
        settings=settings,
        outbox=ended.outbox,
    )
    lifetime.store.apply(Change(puts=tuple(_end(directory, ended))))
    lifetime.log = ChangeLog.create(os.path.join(directory, paths.CHANGE_LOG), lifetime.header(), lifetime.records())
    return lifetime


class EndedHints(NamedTuple):
    """What the end of a session does to its hints: how many go, and how many stay until they expire."""

    forgotten: int
    kept: int


def count_ended_hints(lifetime: HintLifetime) -> EndedHints:
    """Count what becomes of the hints when a session with a change log ends now. A secret is never written to a log, so
    it goes in any case."""
    now = lifetime.clock.now()
    hints = [hint for hint in lifetime.store.hints() if hint.live_at(now)]
    kept = sum(hint.expires_at is not None and not hint.secret for hint in hints)
    return EndedHints(len(hints) - kept, kept)


def _end(directory: str, ended: HintLifetime) -> list[Hint]:
    """Save the session's export for `nudge import --previous`; return the hints that outlive it, those with a duration.

    A session of which no hint could be imported again (all outlive it, or are secrets) leaves the export of the one
    before it in place."""
    now, previous = ended.clock.now(), os.path.join(directory, paths.PREVIOUS)
    hints = [hint for hint in ended.store.hints() if hint.live_at(now)]
    has_kept = os.path.lexists(previous)
    if ended.id != NO_SESSION and any(hint.expires_at is None and not (hint.secret and has_kept) for hint in hints):
        payload = ended.store.export(now)["payload"]
        files.replace(previous, json.dumps(payload).encode())
    return [hint for hint in hints if hint.expires_at is not None]


def end_lifetime(directory: str, ended: HintLifetime) -> None:
    """End a session that no process continues. A new log holds the hints that outlive it, and of the others only what a
    team is still to be sent."""
    outliving = _end(directory, ended)
    paths.remove_page_secrets(directory)
    path = os.path.join(directory, paths.CHANGE_LOG)
    for copy in damaged_copies(path):
        os.unlink(copy)
    unsent = list(ended.outbox.records())
    if outliving or unsent:
        header = {**ended.header(), "session": NO_SESSION}
        ChangeLog.create(path, header, chain(unsent, _records(outliving, [], ended.clock.now()))).close()
    else:
        os.unlink(path)


def discard_lifetime(directory: str) -> None:
    """Remove the files of a session in which nothing has happened."""
    for name in (paths.CHANGE_LOG, paths.SETTINGS):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, name))


class PreviousLifetime:
    """The hints of the session before this one, which `nudge import --previous` brings back."""

    def __init__(self, directory: str | None) -> None:
        self._path = None if directory is None else os.path.join(directory, paths.PREVIOUS)
        self._state: tuple[int, int] | None = None
        self._identities: list[Identity] = []

    def identities(self) -> list[Identity]:
        """The hints that an import would add; none when the file is older than PREVIOUS_OFFERED seconds. The file is
        read again when it has changed."""
        try:
            stat = None if self._path is None else os.stat(self._path)
        except OSError:
            return []
        if self._path is None or stat is None or time.time() - stat.st_mtime > limits.PREVIOUS_OFFERED:
            return []
        if self._state != (stat.st_mtime_ns, stat.st_size):
            self._identities = _identities_in(files.read_owned(self._path, stat.st_size))
            self._state = (stat.st_mtime_ns, stat.st_size)
        return self._identities

    def mark_imported(self, identities: Set[Identity]) -> None:
        """Stop to offer the hints if an import had all of them, also after the next start: whoever deletes one of them
        then does not want it. The file stays for another import; its time says that it is not offered."""
        offered = self.identities()
        if self._path is not None and offered and identities >= set(offered):
            with contextlib.suppress(OSError):
                os.utime(self._path, (0, 0))


def _identities_in(raw: bytes | None) -> list[Identity]:
    """Empty for a damaged file. Redacted hints and copies of facts are left out: they cannot be imported."""
    try:
        components = json.loads(raw or b"{}").get("components", {})
        return [
            (component, key, scope_of(hint["meta"].get("scope", {})).key)
            for component, content in components.items()
            for key, held in content["hints"].items()
            for hint in (held if isinstance(held, list) else [held])
            if not hint.get("redacted") and not is_copied_fact(hint["meta"])
        ]
    except (ValueError, AttributeError, KeyError, TypeError):
        return []


def spool_counts(directory: str) -> dict[str, int]:
    """Return how many hook events wait for a server, their bytes, and how many were dropped."""
    return spool.counts(directory)


def forget(directory: str, settings: Settings) -> EndedHints | None:
    """End a session that no server holds, and save its export as the previous one. Return how many hints were deleted
    and how many stay, or None when there is no session. Raises Unavailable when a server has started."""
    path = os.path.join(directory, paths.CHANGE_LOG)
    if not os.path.lexists(path):
        return None
    paths.ensure_private_dir(directory)
    lock = OwnerLock(os.path.join(directory, paths.LOCK))
    if not lock.acquire():
        raise Unavailable("a server has started meanwhile; run it again: nudge stop --forget")
    paths.remove_page_secrets(directory)
    try:
        return _forget_log(directory, path, settings)
    finally:
        lock.release()


def _forget_log(directory: str, path: str, settings: Settings) -> EndedHints | None:
    """A log that cannot be read, or that a newer version wrote, is deleted unread: the user asked for it."""
    try:
        contents = read_log(path)
    except StorageFailed:
        contents = None
    if contents is None or contents.newer:
        _delete_unread(path)
        return EndedHints(0, 0)
    ended = _restore(settings, contents)
    if ended.id == NO_SESSION:
        return None
    counts = count_ended_hints(ended)
    end_lifetime(directory, ended)
    return counts


def _delete_unread(path: str) -> None:
    """Delete whatever is at the log's path, but not a directory with files in it."""
    try:
        os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    except OSError as error:
        raise StorageFailed(f"{path} cannot be removed ({error.strerror}); move it away") from None


def _new_store(
    settings: Settings, clock: Clock, lifetime_id: str | None = None, created_at: float | None = None
) -> HintStore:
    return HintStore(
        os.urandom(8).hex() if lifetime_id is None else lifetime_id,
        clock.now() if created_at is None else created_at,
        max_hints=settings.max_hints,
        secret_guard=settings.secret_guard,
        default_ttl=settings.default_ttl,
        idle=settings.hint_idle,
    )
