"""The change log: every acknowledged change as one checksummed record, appended before it is applied.

A frame is its length, its CRC-32 (4 bytes each, big-endian) and that many bytes of JSON; the first frame is the header.
`write()`
without `fsync` outlives the process, which is what a session needs. Reading stops at the first frame that is not whole:
dying in
the middle of a write costs that one change, of which nobody was told that it had been made.
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
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nudge import limits
from nudge.errors import StorageFailed

FORMAT = 1

Record = dict[str, Any]

_PREFIX = struct.Struct(">II")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_TEMPORARY = ".tmp"
_NOT_APPLIED = "the write was not applied"
_CAUSES = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk quota is used up"}
_GUARDED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_APPEND = os.O_WRONLY | os.O_APPEND | _GUARDED


class LogGone(StorageFailed):
    """The path no longer names the file we write, or its end is not ours: the whole log must be written anew from
    memory."""

    def __init__(self) -> None:
        super().__init__(f"the change log was removed or changed by somebody else; {_NOT_APPLIED}")


@dataclass(slots=True)
class LogContents:
    """What a log holds. `torn`: bytes after `good_bytes` were dropped. `newer`: of a format we do not know, records
    unread."""

    header: Record | None = None
    records: list[Record] = field(default_factory=list)
    good_bytes: int = 0
    torn: bool = False
    newer: bool = False


def read_log(path: str) -> LogContents | None:
    """Everything up to the first frame that is not whole, or None when there is no log. Only the disk can make this
    raise."""
    try:
        data = _read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _spoken(error, "the change log was not read") from None
    return _parse(data)


def last_alive(path: str) -> float | None:
    """When the log's owner last gave a sign of life. Ask before `resume`, which is one."""
    try:
        return os.stat(path, follow_symlinks=False).st_mtime
    except OSError:
        return None


def _read_regular(path: str) -> bytes:
    # O_NONBLOCK: a FIFO in the log's place must not hang the start.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _GUARDED)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read()


def _parse(data: bytes) -> LogContents:
    frames = _frames(data)
    header, end = next(frames, (None, 0))
    if header is None or not _is_format(header.get("format")):
        return LogContents(torn=True)
    if header["format"] > FORMAT:
        return LogContents(header, good_bytes=len(data), newer=True)
    contents = LogContents(header, good_bytes=end)
    for record, end in frames:
        contents.records.append(record)
        contents.good_bytes = end
    contents.torn = contents.good_bytes < len(data)
    return contents


def _is_format(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= FORMAT


def _frames(data: bytes) -> Iterator[tuple[Record, int]]:
    """Each whole frame's record and where the frame ends."""
    start = 0
    while start + _PREFIX.size <= len(data):
        length, checksum = _PREFIX.unpack_from(data, start)
        start += _PREFIX.size
        body = data[start : start + length] if length <= limits.MAX_LOG_RECORD_BYTES else b""
        record = _decode(body) if len(body) == length and zlib.crc32(body) == checksum else None
        if record is None:
            return
        start += length
        yield record, start


def _decode(body: bytes) -> Record | None:
    try:
        record = json.loads(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


Pieces = list[bytes]
"""A large frame, cut where it was convenient."""


def encode_in_pieces(record: Record) -> Pieces:
    """For a large record and a worker thread: `json` in one go, or all of it in one text, would keep every other thread
    waiting."""
    pieces, piece, size = [], [], 0
    for part in _ENCODER.iterencode(record):
        piece.append(part)
        size += len(part)
        if size >= limits.LOG_PIECE_BYTES:
            pieces.append(_bytes("".join(piece)))
            piece, size = [], 0
    pieces.append(_bytes("".join(piece)))
    return [_prefix(pieces), *pieces]


def _encode(record: Record) -> bytes:
    body = _bytes(_ENCODER.encode(record))
    return _prefix([body]) + body


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _prefix(pieces: Pieces) -> bytes:
    length, checksum = sum(map(len, pieces)), 0
    if length > limits.MAX_LOG_RECORD_BYTES:
        raise StorageFailed(f"the change is too large for the change log; {_NOT_APPLIED}")
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
    return _PREFIX.pack(length, checksum)


class ChangeLog:
    """The log open for appending. One thread calls it; only `Compaction.write` runs on another."""

    def __init__(self, path: str, descriptor: int, size: int, compact_at: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._size = size
        self._compact_at = compact_at
        self._spoiled = False
        self._compaction: Compaction | None = None

    @classmethod
    def create(cls, path: str, header: Record, records: Iterable[Record] = ()) -> ChangeLog:
        """Write a whole new log beside `path`, then put it there: whoever looks sees the old log or the new one, never
        a part."""
        remove_stale(path)
        temporary = _temporary_name(path)
        descriptor = -1
        try:
            descriptor = _open_new(temporary)
            for piece in _pieces(header, records):
                _write_whole(descriptor, piece)
            size = os.fstat(descriptor).st_size
            if size > len(_encode(header)):
                os.fsync(descriptor)  # as for a compaction: what is carried over may have been on the disk already
            os.replace(temporary, path)
        except BaseException as error:
            _discard(descriptor, temporary)
            raise _spoken(error, _NOT_APPLIED) from None
        return cls(path, descriptor, size, _next_compaction(size))

    @classmethod
    def resume(cls, path: str, contents: LogContents) -> ChangeLog:
        """Go on after the last good record of what `read_log` found."""
        if contents.header is None or contents.newer:
            raise StorageFailed("the change log has no header that this version can continue")
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
            raise _spoken(error, "the change log was not continued") from None
        return cls(path, descriptor, contents.good_bytes, limits.COMPACT_AT_BYTES)

    @property
    def size(self) -> int:
        return self._size

    @property
    def compaction_due(self) -> bool:
        return self._compaction is None and self._size >= self._compact_at

    def append(self, record: Record) -> None:
        """Returns when the kernel has the record; raises when the log is as it was before."""
        frame = _encode(record)
        self._check_ours()
        try:
            _write_whole(self._descriptor, frame)
        except OSError as error:
            self._take_back()
            raise _spoken(error, _NOT_APPLIED) from None
        self._appended([frame])

    def append_in_pieces(self, frame: Pieces) -> Generator[None, None, None]:
        """`append` for a record of megabytes. It pauses between the pieces, in which nobody else may append; left off
        there, it
        leaves no trace."""
        self._check_ours()
        try:
            for piece in frame:
                _write_whole(self._descriptor, piece)
                yield
        except BaseException as error:
            self._take_back()
            raise _spoken(error, _NOT_APPLIED) from None
        self._appended(frame)
        self._check_ours()  # the file may have been taken away meanwhile

    def _appended(self, frame: Pieces) -> None:
        self._size += sum(map(len, frame))
        if self._compaction is not None:
            self._compaction.missed += frame

    def touch(self) -> None:
        """The heartbeat. A disk that refuses it will refuse the next write too, and be reported there."""
        with contextlib.suppress(OSError):
            os.utime(self._descriptor if os.utime in os.supports_fd else self.path)

    def close(self) -> None:
        if self._compaction is not None:
            self.abandon_compaction(self._compaction)
        _discard(self._descriptor)
        self._descriptor = -1

    def begin_compaction(self, header: Record) -> Compaction:
        """Appends are remembered from here on: the caller takes its snapshot now, has it written by a worker, then
        finishes."""
        if self._compaction is not None:
            raise StorageFailed("the change log is being compacted already")
        self._compaction = Compaction(_temporary_name(self.path), header)
        return self._compaction

    def finish_compaction(self, compaction: Compaction) -> None:
        """Add what the snapshot missed and take the old log's place. On failure the old log, which has everything, goes
        on."""
        descriptor = -1
        try:
            self._check_ours()
            descriptor = compaction.reopen()
            for piece in compaction.missed:
                _write_whole(descriptor, piece)
            size = os.fstat(descriptor).st_size
            os.replace(compaction.path, self.path)
        except BaseException as error:
            _discard(descriptor)
            self.abandon_compaction(compaction)
            raise _spoken(error, "the change log was not compacted") from None
        replaced, self._descriptor = self._descriptor, descriptor
        self._size, self._compact_at, self._compaction = size, _next_compaction(size), None
        _discard(replaced)

    def abandon_compaction(self, compaction: Compaction) -> None:
        """Forget it, even while its thread still writes; the next one waits until the log has grown some more."""
        compaction.cancel()
        if self._compaction is compaction:
            self._compaction = None
            self._compact_at = self._size + limits.COMPACT_AT_BYTES

    def _check_ours(self) -> None:
        """A file that was removed would swallow the record; one that somebody else appends to has an owner besides
        us."""
        try:
            ours, named = os.fstat(self._descriptor), os.stat(self.path, follow_symlinks=False)
        except OSError:
            raise LogGone from None
        if self._spoiled or not os.path.samestat(ours, named) or ours.st_size != self._size:
            raise LogGone

    def _take_back(self) -> None:
        """What a failed write left would end the log for every reader, hiding all that is appended after it."""
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            self._spoiled = True


class Compaction:
    """A smaller log in the making."""

    def __init__(self, path: str, header: Record) -> None:
        self.path = path
        self.missed: list[bytes] = []
        self._header = header
        self._complete = False
        self._cancelled = False

    def write(self, records: Iterable[Record]) -> None:
        """Blocking, for a worker thread. Each piece is a system call, and so a moment for the other threads."""
        descriptor = -1
        try:
            descriptor = _open_new(self.path)
            for piece in _pieces(self._header, records):
                if self._cancelled:
                    break
                _write_whole(descriptor, piece)
            # The log that this one replaces may have reached the disk long ago.
            os.fsync(descriptor)
            self._complete = True
        except OSError as error:
            raise _spoken(error, "the change log was not compacted") from None
        finally:
            _discard(descriptor, None if self._complete and not self._cancelled else self.path)

    def reopen(self) -> int:
        """A descriptor of one's own: one shared with the writing thread could be closed under it, and then mean another
        file."""
        if not self._complete or self._cancelled:
            raise StorageFailed("the compaction did not come to its end")
        return os.open(self.path, _APPEND)

    def cancel(self) -> None:
        """Either we remove the file here, or the writer, who looks at the mark after its last write, does."""
        self._cancelled = True
        _discard(-1, self.path)


def remove_stale(path: str) -> None:
    """Drop what a process that died while writing a whole log left beside it."""
    folder, name = os.path.split(path)
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder or "."):
            if entry.startswith(f"{name}.") and entry.endswith(_TEMPORARY):
                _discard(-1, os.path.join(folder, entry))


def _temporary_name(path: str) -> str:
    return f"{path}.{secrets.token_hex(8)}{_TEMPORARY}"


def _open_new(path: str) -> int:
    return os.open(path, _APPEND | os.O_CREAT | os.O_EXCL, 0o600)


def _next_compaction(size: int) -> int:
    return max(limits.COMPACT_AT_BYTES, limits.COMPACT_RATIO * size)


def _pieces(header: Record, records: Iterable[Record]) -> Iterator[bytes]:
    """A whole log in portions."""
    piece = bytearray(_encode(header))
    for record in records:
        piece += _encode(record)
        if len(piece) >= limits.LOG_PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _write_whole(descriptor: int, data: bytes) -> None:
    """One write. A file takes part of it only when the disk has no room for the rest."""
    if os.write(descriptor, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _discard(descriptor: int, path: str | None = None) -> None:
    """Neither step may fail: what is discarded is not worth an error."""
    with contextlib.suppress(OSError):
        os.close(descriptor)
    if path is not None:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _spoken(error: BaseException, outcome: str) -> BaseException:
    """An error of the system as a sentence for the wire, which carries no paths; any other error as it is."""
    if not isinstance(error, OSError):
        return error
    number = error.errno or errno.EIO
    return StorageFailed(f"{_CAUSES.get(number, os.strerror(number).lower())}; {outcome}")
