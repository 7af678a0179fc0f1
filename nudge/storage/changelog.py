"""The change log: every acknowledged change is appended as one checksummed record before it is applied.

A record is framed by its length and its CRC-32 (4 bytes each, big-endian), followed by that many bytes of JSON. The
first record is the header. `write()` without `fsync` survives the death of the process, which is what a session
needs.

An incomplete last record was never acknowledged: it is dropped as a torn tail. Anything else that does not check is
damage: reading continues with the next record that checks, and `keep_damaged` saves the file before it is replaced.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nudge.core import limits
from nudge.core.errors import StorageFailed

LOG_FORMAT = 1

Record = dict[str, Any]

_PREFIX = struct.Struct(">II")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_TEMPORARY = ".tmp"
_DAMAGED = ".damaged"
_NOT_REWRITTEN = "the change log was not rewritten, and the old one stays in use"
_NOT_APPLIED = "the write was not applied"
_CAUSES = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk quota is used up"}
_GUARDED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_APPEND = os.O_WRONLY | os.O_APPEND | _GUARDED


class LogGone(StorageFailed):
    """The path no longer names the file that is open, or another process has written to it: the whole log must be
    written again from memory."""

    def __init__(self) -> None:
        super().__init__(f"the change log was removed or changed by another process; {_NOT_APPLIED}")


@dataclass(slots=True)
class LogContents:
    """What a log file holds.

    `torn`: an incomplete last record, behind `good_bytes`, was dropped. `damaged_bytes`: how many bytes belong to no
    record that checks although they are not a torn tail; `records` are then those that could be recovered. `newer`: the
    format is newer than LOG_FORMAT and the records were not read.
    """

    header: Record | None = None
    records: list[Record] = field(default_factory=list)
    good_bytes: int = 0
    torn: bool = False
    newer: bool = False
    damaged_bytes: int = 0

    @property
    def damaged(self) -> bool:
        """Whether the log can be continued only after it was written again. Without a header it cannot."""
        return self.header is None or self.damaged_bytes > 0


# Reading


def read_log(path: str) -> LogContents | None:
    """Return every record that checks, or None when there is no log. Raises StorageFailed only when the file cannot be
    read."""
    try:
        data = _read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _storage_error(error, "the change log was not read") from None
    return _parse(data)


def _read_regular(path: str) -> bytes:
    # O_NONBLOCK: opening a FIFO in the log's place would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _GUARDED)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read()


def _parse(data: bytes) -> LogContents:
    contents = LogContents()
    position = 0
    while position < len(data):
        record, end = _frame_at(data, position)
        if record is None:
            end = _next_frame(data, position)
            record = _frame_between(data, position, end)
            if record is None and end == len(data) and _is_torn(data, position):
                contents.torn = True
                break
            contents.damaged_bytes += end - position
        if record is not None and not _take(contents, record, first=position == 0):
            return LogContents(record, good_bytes=len(data), newer=True)
        position = contents.good_bytes = end
    return contents


def _take(contents: LogContents, record: Record, *, first: bool) -> bool:
    """Add a record. Only the first one can be the header; False when that one is of a newer format."""
    version = record.get("format")
    is_header = first and isinstance(version, int) and not isinstance(version, bool) and version >= LOG_FORMAT
    if not is_header:
        contents.records.append(record)
        return True
    contents.header = record
    return bool(record["format"] == LOG_FORMAT)


def _frame_at(data: bytes, start: int) -> tuple[Record | None, int]:
    """The record whose frame starts at `start`, and where the frame ends; None when it does not check."""
    if start + _PREFIX.size > len(data):
        return None, start
    length, checksum = _PREFIX.unpack_from(data, start)
    body, end = start + _PREFIX.size, start + _PREFIX.size + length
    if length > limits.MAX_LOG_RECORD_BYTES or end > len(data) or data[body : body + 1] != b"{":
        return None, start
    return _decode(data[body:end], checksum), end


def _next_frame(data: bytes, position: int) -> int:
    """Where the first frame that checks behind a bad one at `position` starts, or the end of the data.

    A body is a JSON object, so only places before a `{` are tried. Inside the text of another record none is taken
    for a frame: JSON escapes control characters, so the four bytes of the length would be printable, which is more
    than MAX_LOG_RECORD_BYTES.
    """
    brace = data.find(b"{", position + _PREFIX.size + 1)
    while brace >= 0:
        if _frame_at(data, brace - _PREFIX.size)[0] is not None:
            return brace - _PREFIX.size
        brace = data.find(b"{", brace + 1)
    return len(data)


def _frame_between(data: bytes, start: int, end: int) -> Record | None:
    """The record between two places, when nothing but its length is wrong."""
    if end - start < _PREFIX.size:
        return None
    return _decode(data[start + _PREFIX.size : end], _PREFIX.unpack_from(data, start)[1])


def _is_torn(data: bytes, position: int) -> bool:
    """Whether the rest of the file is an incomplete record. After a power failure a file may end in zeros instead."""
    rest = data[position:]
    if len(rest) < _PREFIX.size or not rest.strip(b"\0"):
        return True
    length = _PREFIX.unpack_from(rest)[0]
    return bool(len(rest) - _PREFIX.size < length <= limits.MAX_LOG_RECORD_BYTES)


def _decode(body: bytes, checksum: int) -> Record | None:
    if zlib.crc32(body) != checksum:
        return None
    try:
        record = json.loads(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


# Damage


def keep_damaged(path: str) -> str:
    """Save the log file at `path` as `changes.log.damaged` (numbered when there is one) and return that name."""
    for damaged_copy in damaged_copies(path):
        if os.path.samefile(damaged_copy, path):
            return damaged_copy  # a start that was interrupted after this step
    number, target = 1, path + _DAMAGED
    while os.path.lexists(target):
        number += 1
        target = f"{path}{_DAMAGED}.{number}"
    try:
        os.chmod(path, 0o600)
        try:
            os.link(path, target)
        except OSError:  # some filesystems have no hard links
            with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _GUARDED, 0o600), "wb") as copy:
                copy.write(_read_regular(path))
    except OSError as error:
        raise _storage_error(error, "the damaged change log was not saved") from None
    return target


def damaged_copies(path: str) -> list[str]:
    """The damaged logs that `keep_damaged` saved beside `path`."""
    folder, name = os.path.split(path)
    try:
        entries = os.listdir(folder or ".")
    except OSError:
        return []
    return sorted(os.path.join(folder, entry) for entry in entries if entry.startswith(name + _DAMAGED))


# Writing


def _encode(record: Record) -> bytes:
    body = _ENCODER.encode(record).encode("utf-8", "surrogatepass")
    if len(body) > limits.MAX_LOG_RECORD_BYTES:
        raise StorageFailed(f"the change is too large for the change log; {_NOT_APPLIED}")
    return _PREFIX.pack(len(body), zlib.crc32(body)) + body


class ChangeLog:
    """The log open for appending. One thread calls it; only `Rewrite.write` runs on another."""

    def __init__(self, path: str, descriptor: int, size: int, compact_at: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._size = size
        self._compact_at = compact_at
        self._spoiled = False
        self._rewrite: Rewrite | None = None

    @classmethod
    def create(cls, path: str, header: Record, records: Iterable[Record] = ()) -> ChangeLog:
        """Write a whole new log beside `path`, then rename it: a reader sees the old log or the new one, never a
        part."""
        remove_stale(path)
        temporary = _temporary_name(path)
        descriptor = -1
        try:
            descriptor = _open_new(temporary)
            for piece in _pieces(header, records):
                _write_whole(descriptor, piece)
            size = os.fstat(descriptor).st_size
            if size > len(_encode(header)):
                os.fsync(descriptor)  # the log that this one replaces may have reached the disk long ago
            os.replace(temporary, path)
        except BaseException as error:
            _discard(descriptor, temporary)
            raise _storage_error(error, _NOT_APPLIED) from None
        return cls(path, descriptor, size, _next_compaction(size))

    @classmethod
    def resume(cls, path: str, contents: LogContents) -> ChangeLog:
        """Continue after the last record that `read_log` returned. A damaged log cannot be continued."""
        if contents.newer or contents.damaged:
            raise StorageFailed("the change log cannot be continued by this version")
        remove_stale(path)
        descriptor = -1
        try:
            descriptor = os.open(path, _APPEND)
            os.fchmod(descriptor, 0o600)
            if os.fstat(descriptor).st_size < contents.good_bytes:
                raise LogGone
            os.ftruncate(descriptor, contents.good_bytes)
        except BaseException as error:
            _discard(descriptor)
            raise _storage_error(error, "the change log was not continued") from None
        return cls(path, descriptor, contents.good_bytes, limits.COMPACT_AT_BYTES)

    @property
    def size(self) -> int:
        return self._size

    @property
    def compaction_due(self) -> bool:
        return self._rewrite is None and self._size >= self._compact_at

    def append(self, record: Record) -> None:
        """Return when the kernel has the record. When it raises, the log is as it was before."""
        frame = _encode(record)
        self._check_path()
        try:
            _write_whole(self._descriptor, frame)
        except OSError as error:
            self._undo_write()
            raise _storage_error(error, _NOT_APPLIED) from None
        self._size += len(frame)
        if self._rewrite is not None:
            self._rewrite.missed.append(frame)

    def close(self) -> None:
        if self._rewrite is not None:
            self.abandon_rewrite(self._rewrite)
        _discard(self._descriptor)
        self._descriptor = -1

    def begin_rewrite(self, header: Record) -> Rewrite:
        """Start collecting what is appended from now on. The caller takes its snapshot now, has a worker thread write
        it, then calls `finish_rewrite`. A rewrite that is under way is abandoned."""
        if self._rewrite is not None:
            self.abandon_rewrite(self._rewrite)
        self._rewrite = Rewrite(_temporary_name(self.path), header)
        return self._rewrite

    def finish_rewrite(self, rewrite: Rewrite) -> None:
        """Add what was appended since the snapshot and replace the old log. On failure the old log stays in use."""
        descriptor = -1
        try:
            self._check_path()
            descriptor = rewrite.reopen()
            for piece in rewrite.missed:
                _write_whole(descriptor, piece)
            size = os.fstat(descriptor).st_size
            os.replace(rewrite.path, self.path)
        except BaseException as error:
            _discard(descriptor)
            self.abandon_rewrite(rewrite)
            raise _storage_error(error, _NOT_REWRITTEN) from None
        replaced, self._descriptor = self._descriptor, descriptor
        self._size, self._compact_at, self._rewrite = size, _next_compaction(size), None
        _discard(replaced)

    def abandon_rewrite(self, rewrite: Rewrite) -> None:
        """Cancel a rewrite, even while its thread still writes. The next compaction waits until the log has grown."""
        rewrite.cancel()
        if self._rewrite is rewrite:
            self._rewrite = None
            self._compact_at = self._size + limits.COMPACT_AT_BYTES

    def _check_path(self) -> None:
        """Raise LogGone when the path no longer names our file, or when another process has written to it."""
        try:
            ours, on_disk = os.fstat(self._descriptor), os.stat(self.path, follow_symlinks=False)
        except OSError:
            raise LogGone from None
        if self._spoiled or not os.path.samestat(ours, on_disk) or ours.st_size != self._size:
            raise LogGone

    def _undo_write(self) -> None:
        """Remove what a failed write left: it would be damage in front of every later record."""
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            self._spoiled = True


class Rewrite:
    """A whole log that is being written beside the one in use: by a compaction, or by an import of thousands of
    hints."""

    def __init__(self, path: str, header: Record) -> None:
        self.path = path
        self.missed: list[bytes] = []
        self._header = header
        self._complete = False
        self.abandoned = False

    def write(self, records: Iterable[Record]) -> None:
        """Write the snapshot; blocks, so it runs on a worker thread."""
        descriptor = -1
        try:
            descriptor = _open_new(self.path)
            for piece in _pieces(self._header, records):
                if self.abandoned:
                    break
                _write_whole(descriptor, piece)
            os.fsync(descriptor)  # the log that this one replaces may have reached the disk long ago
            self._complete = True
        except OSError as error:
            raise _storage_error(error, _NOT_REWRITTEN) from None
        finally:
            _discard(descriptor, None if self._complete and not self.abandoned else self.path)

    def reopen(self) -> int:
        """Open the snapshot for appending. The writing thread has its own descriptor and may close it at any time."""
        if not self._complete or self.abandoned:
            raise StorageFailed(f"{_NOT_REWRITTEN}: it was cancelled")
        return os.open(self.path, _APPEND)

    def cancel(self) -> None:
        """Stop the writer. The file is removed here, or by the writer, which checks the flag after its last write."""
        self.abandoned = True
        _discard(-1, self.path)


def remove_stale(path: str) -> None:
    """Remove the temporary files of a process that died while writing a whole log."""
    folder, name = os.path.split(path)
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder or "."):
            if entry.startswith(f"{name}.") and entry.endswith(_TEMPORARY):
                _discard(-1, os.path.join(folder, entry))


def _temporary_name(path: str) -> str:
    return f"{path}.{secrets.token_hex(8)}{_TEMPORARY}"


def _open_new(path: str) -> int:
    # Not `files.Replacement`: the descriptor stays open for appending after the rename, a rewrite is written on one
    # thread and renamed on another, and each piece must be one system call, to notice a full disk.
    return os.open(path, _APPEND | os.O_CREAT | os.O_EXCL, 0o600)


def _next_compaction(size: int) -> int:
    return max(limits.COMPACT_AT_BYTES, limits.COMPACT_RATIO * size)


def _pieces(header: Record, records: Iterable[Record]) -> Iterator[bytes]:
    """A whole log in parts of about LOG_PIECE_BYTES."""
    piece = bytearray(_encode(header))
    for record in records:
        piece += _encode(record)
        if len(piece) >= limits.LOG_PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _write_whole(descriptor: int, data: bytes) -> None:
    """Write in one system call. A regular file takes only a part when the disk has no room for the rest."""
    if os.write(descriptor, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _discard(descriptor: int, path: str | None = None) -> None:
    """Close and remove, ignoring errors."""
    with contextlib.suppress(OSError):
        os.close(descriptor)
    if path is not None:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _storage_error(error: BaseException, outcome: str) -> BaseException:
    """An OSError as a StorageFailed whose sentence names no path; any other error unchanged."""
    if not isinstance(error, OSError):
        return error
    number = error.errno or errno.EIO
    return StorageFailed(f"{_CAUSES.get(number, os.strerror(number).lower())}; {outcome}")
