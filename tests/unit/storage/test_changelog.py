"""The change log keeps what it acknowledged, and nothing else, through every kind of interruption."""

from __future__ import annotations

import errno
import os
import stat
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nudge.core import limits
from nudge.core.errors import StorageFailed
from nudge.storage import changelog
from nudge.storage.changelog import (
    ChangeLog,
    LogContents,
    LogGone,
    Record,
    damaged_copies,
    keep_damaged,
    read_log,
)

HEADER = {"format": 1, "session": "s1", "created": 1.5, "boot_id": "b", "offset": 0.25, "version": "0.1.0"}
RECORDS: list[Record] = [
    {"n": 1, "text": "plain"},
    {"n": 2, "text": "kůň 🐎 \u0000"},
    {"n": 3, "nested": {"a": [None, 2.5]}},
]

Write = Callable[[int, bytes], int]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "changes.log")


def bytes_of(path: str) -> bytes:
    return Path(path).read_bytes()


def contents_of(path: str) -> LogContents:
    contents = read_log(path)
    assert contents is not None
    return contents


def numbers(path: str) -> list[int]:
    return [record["n"] for record in contents_of(path).records]


def write_log(path: str, records: list[Record]) -> bytes:
    log = ChangeLog.create(path, HEADER)
    for record in records:
        log.append(record)
    log.close()
    return bytes_of(path)


def frame(body: bytes, *, length: int | None = None, checksum: int | None = None) -> bytes:
    return (
        struct.pack(">II", len(body) if length is None else length, zlib.crc32(body) if checksum is None else checksum)
        + body
    )


def files_beside(path: str) -> list[str]:
    return sorted(os.listdir(os.path.dirname(path)))


def failing_write(error: int | None, partial: int) -> Write:
    """A disk that takes `partial` bytes of the next write; then the call fails, or with no error just stops short."""
    genuine, failed = os.write, False

    def write(descriptor: int, data: bytes) -> int:
        nonlocal failed
        if failed:
            return genuine(descriptor, data)
        failed = True
        written = genuine(descriptor, data[:partial]) if partial else 0
        if error is not None:
            raise OSError(error, os.strerror(error))
        return written

    return write


class TestReading:
    def test_round_trip(self, path: str) -> None:
        """What was appended comes back in order, with the header."""
        data = write_log(path, RECORDS)
        contents = contents_of(path)
        assert (contents.header, contents.records) == (HEADER, RECORDS)
        assert (contents.good_bytes, contents.torn, contents.newer) == (len(data), False, False)

    def test_the_frame(self, path: str) -> None:
        """Length and CRC-32 in four big-endian bytes each, then compact UTF-8: other versions read this."""
        data = write_log(path, [{"a": "ž", "b": [1, 2]}])
        assert data.endswith(frame('{"a":"ž","b":[1,2]}'.encode()))

    def test_no_file(self, path: str) -> None:
        """No log is None, not an empty log."""
        assert read_log(path) is None

    def test_half_of_a_surrogate_pair_survives(self, path: str) -> None:
        """JSON may carry one; the log must not fail on it."""
        write_log(path, [{"x": "\ud83d"}])
        assert contents_of(path).records == [{"x": "\ud83d"}]

    def test_a_tail_torn_at_any_byte_costs_one_record(self, path: str) -> None:
        """Cut anywhere inside the last record: all earlier ones are there, and appending goes on after them."""
        whole = write_log(path, RECORDS)
        good = len(write_log(path, RECORDS[:-1]))
        for cut in range(good + 1, len(whole)):
            Path(path).write_bytes(whole[:cut])
            contents = contents_of(path)
            assert (contents.records, contents.good_bytes, contents.torn) == (RECORDS[:-1], good, True)
            log = ChangeLog.resume(path, contents)
            log.append(RECORDS[-1])
            log.close()
            assert bytes_of(path) == whole

    def test_a_cut_between_records_is_not_torn(self, path: str) -> None:
        """A log that ends with a whole record lost nothing that can be seen."""
        data = write_log(path, RECORDS[:-1])
        assert contents_of(path).torn is False
        assert contents_of(path).good_bytes == len(data)

    def test_any_flipped_bit_costs_one_record_at_most(self, path: str) -> None:
        """Every record that checks is returned, in order, and no damaged one: a flip costs the record that it is in, a
        flip in a length costs none."""
        whole = write_log(path, RECORDS)
        everything = [HEADER, *RECORDS]
        for index in range(len(whole)):
            damaged = bytearray(whole)
            damaged[index] ^= 1 << (index % 8)
            Path(path).write_bytes(damaged)
            contents = contents_of(path)
            returned = [contents.header] if contents.header else []
            returned += contents.records
            assert contents.damaged and not contents.torn
            assert len(returned) >= len(everything) - 1
            assert returned == [record for record in everything if record in returned]

    @pytest.mark.parametrize(
        "noise",
        [
            frame(b"{}", length=limits.MAX_LOG_RECORD_BYTES + 1, checksum=0),
            frame(b"{}", length=0xFFFFFFFF, checksum=0),
            frame(b"{}", checksum=0),
            frame(b""),
            frame(b"{broken"),
            frame(b"\xff\xfe"),
            frame(b"[]"),
            frame(b"3"),
            frame(b"[" * 100_000),
            frame(b'{"n":' + b"9" * 10_000 + b"}"),
            b"\x00" * 4_096,
        ],
    )
    def test_what_is_no_record_is_skipped(self, path: str, noise: bytes) -> None:
        """Whatever the bytes are, the record behind them is returned, and the log counts as damaged."""
        whole = write_log(path, RECORDS)
        Path(path).write_bytes(whole + noise + frame(b'{"n":9}'))
        contents = contents_of(path)
        assert (contents.records, contents.torn, contents.damaged) == ([*RECORDS, {"n": 9}], False, True)
        assert contents.damaged_bytes == len(noise)
        with pytest.raises(StorageFailed):
            ChangeLog.resume(path, contents)

    def test_a_complete_last_record_that_does_not_check_is_damage(self, path: str) -> None:
        """It may have been acknowledged, so it is not dropped as a torn tail."""
        whole = write_log(path, RECORDS)
        Path(path).write_bytes(whole + frame(b'{"n":9}', checksum=1))
        contents = contents_of(path)
        assert (contents.records, contents.torn, contents.damaged) == (RECORDS, False, True)

    def test_a_tail_of_zeros_is_torn(self, path: str) -> None:
        """A power failure leaves a file longer than what reached the disk."""
        whole = write_log(path, RECORDS)
        Path(path).write_bytes(whole + b"\0" * 100)
        contents = contents_of(path)
        assert (contents.records, contents.good_bytes, contents.torn) == (RECORDS, len(whole), True)
        assert not contents.damaged

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\x00",
            b"no log",
            b"something else altogether",
            frame(b"{}"),
            frame(b'{"format":"1"}'),
            frame(b'{"format":true}'),
            frame(b'{"format":0}'),
        ],
    )
    def test_without_a_header_it_is_damaged(self, path: str, data: bytes) -> None:
        """A log always starts with a header: one without cannot be continued."""
        Path(path).write_bytes(data)
        contents = contents_of(path)
        assert (contents.header, contents.damaged) == (None, True)
        with pytest.raises(StorageFailed):
            ChangeLog.resume(path, contents)

    def test_a_damaged_log_is_kept(self, path: str) -> None:
        """Under a name that is free, owner-only, once for one file however often a start is interrupted."""
        write_log(path, RECORDS)
        os.chmod(path, 0o644)
        first = keep_damaged(path)
        assert (first, keep_damaged(path)) == (f"{path}.damaged", first)
        data = bytes_of(path)
        ChangeLog.create(path, HEADER).close()
        second = keep_damaged(path)
        assert damaged_copies(path) == [first, second] == [f"{path}.damaged", f"{path}.damaged.2"]
        assert bytes_of(first) == data != bytes_of(second)
        assert stat.S_IMODE(os.stat(first).st_mode) == 0o600

    def test_a_damaged_log_is_kept_without_hard_links(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Some filesystems have none; then it is copied."""
        data = write_log(path, RECORDS)

        def refuse(_source: str, _target: str) -> None:
            raise OSError(errno.EPERM, "no")

        monkeypatch.setattr(os, "link", refuse)
        assert bytes_of(keep_damaged(path)) == data

    def test_a_newer_format_is_left_alone(self, path: str) -> None:
        """Its records may mean something else: unread, and never continued by us."""
        data = frame(b'{"format":2,"session":"s9"}') + b"whatever it is by then"
        Path(path).write_bytes(data)
        contents = contents_of(path)
        assert (contents.newer, contents.records, contents.torn) == (True, [], False)
        assert contents.header == {"format": 2, "session": "s9"}
        with pytest.raises(StorageFailed):
            ChangeLog.resume(path, contents)
        assert bytes_of(path) == data

    @pytest.mark.parametrize("place", [os.mkdir, os.mkfifo, lambda path: os.symlink("/etc/hostname", path)])
    def test_what_is_no_file_is_refused(self, path: str, place: Callable[[str], None]) -> None:
        """A directory, a FIFO or a link in the log's place is an error without a path in it, and blocks nobody."""
        place(path)
        with pytest.raises(StorageFailed) as caught:
            read_log(path)
        assert path not in caught.value.message


class TestAppending:
    def test_owner_only(self, path: str) -> None:
        """0600 whatever the umask, and again on a log that was opened up in between."""
        previous = os.umask(0)
        try:
            ChangeLog.create(path, HEADER).close()
        finally:
            os.umask(previous)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        os.chmod(path, 0o644)
        ChangeLog.resume(path, contents_of(path)).close()
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600

    def test_the_descriptor_is_not_inherited(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A spawned successor must not hold the predecessor's log open; a link in the way is never followed."""
        flags: list[int] = []
        genuine = os.open

        def noting(name: str, flag: int, mode: int = 0o777) -> int:
            flags.append(flag)
            return genuine(name, flag, mode)

        monkeypatch.setattr(os, "open", noting)
        ChangeLog.create(path, HEADER).close()
        ChangeLog.resume(path, contents_of(path)).close()
        assert len(flags) == 3
        assert all(flag & os.O_CLOEXEC and flag & os.O_NOFOLLOW for flag in flags)
        assert flags[0] & os.O_EXCL

    def test_create_takes_the_place_of_the_old_log(self, path: str) -> None:
        """A new session's log replaces the last one whole, with the records it starts from."""
        write_log(path, RECORDS)
        log = ChangeLog.create(path, {**HEADER, "session": "s2"}, RECORDS[:1])
        log.append(RECORDS[1])
        contents = contents_of(path)
        assert contents.header == {**HEADER, "session": "s2"}
        assert contents.records == RECORDS[:2]
        assert log.size == contents.good_bytes == os.path.getsize(path)
        log.close()

    def test_a_failed_create_leaves_the_old_log(self, path: str) -> None:
        """Records that cannot be written leave neither a part of a log nor a temporary file."""
        data = write_log(path, RECORDS)
        with pytest.raises(TypeError):
            ChangeLog.create(path, HEADER, [{"x": object()}])
        assert bytes_of(path) == data
        assert files_beside(path) == ["changes.log"]

    def test_create_without_room(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A full disk keeps the old log too."""
        data = write_log(path, RECORDS)
        monkeypatch.setattr(os, "write", failing_write(errno.ENOSPC, 3))
        with pytest.raises(StorageFailed):
            ChangeLog.create(path, HEADER, RECORDS)
        assert bytes_of(path) == data
        assert files_beside(path) == ["changes.log"]

    def test_create_where_there_is_no_directory(self, tmp_path: Path) -> None:
        """The sentence for the wire names the cause, not the path."""
        with pytest.raises(StorageFailed) as caught:
            ChangeLog.create(str(tmp_path / "gone" / "changes.log"), HEADER)
        assert caught.value.message == "no such file or directory; the write was not applied"

    @pytest.mark.parametrize("partial", [0, 1, 7, 8, 20])
    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (errno.ENOSPC, "the disk is full; the write was not applied"),
            (None, "the disk is full; the write was not applied"),
            (errno.EDQUOT, "the disk quota is used up; the write was not applied"),
            (errno.EIO, "input/output error; the write was not applied"),
        ],
    )
    def test_a_refused_write_leaves_no_trace(
        self, path: str, monkeypatch: pytest.MonkeyPatch, error: int | None, message: str, partial: int
    ) -> None:
        """The log is what it was, byte for byte, and the next append works."""
        log = ChangeLog.create(path, HEADER)
        log.append(RECORDS[0])
        before = bytes_of(path)
        monkeypatch.setattr(os, "write", failing_write(error, partial))
        with pytest.raises(StorageFailed) as caught:
            log.append(RECORDS[1])
        assert caught.value.message == message
        assert not isinstance(caught.value, LogGone)
        assert bytes_of(path) == before
        log.append(RECORDS[2])
        assert contents_of(path).records == [RECORDS[0], RECORDS[2]]
        log.close()

    def test_a_trace_that_cannot_be_removed_asks_for_a_new_log(
        self, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Appending behind a broken frame would hide the record from every reader, so the log must be written anew
        first."""
        log = ChangeLog.create(path, HEADER)
        log.append(RECORDS[0])

        def refuse(_descriptor: int, _length: int) -> None:
            raise OSError(errno.EIO, "no")

        with monkeypatch.context() as patched:
            patched.setattr(os, "write", failing_write(errno.EIO, 0))
            patched.setattr(os, "ftruncate", refuse)
            with pytest.raises(StorageFailed):
                log.append(RECORDS[1])
        for _ in range(2):
            with pytest.raises(LogGone):
                log.append(RECORDS[1])
        log.close()
        renewed = ChangeLog.create(path, HEADER, RECORDS[:1])
        renewed.append(RECORDS[1])
        assert contents_of(path).records == RECORDS[:2]
        renewed.close()

    def test_a_real_limit_of_the_kernel(self, path: str) -> None:
        """A file that may not grow takes a part of the write and stops: refused and taken back, without any
        simulation."""
        program = """
import resource, signal, sys
from nudge.core.errors import StorageFailed
from nudge.storage.changelog import ChangeLog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = ChangeLog.create(sys.argv[1], {"format": 1})
resource.setrlimit(resource.RLIMIT_FSIZE, (log.size + 100, resource.RLIM_INFINITY))
try:
    log.append({"n": 1, "x": "y" * 500})
except StorageFailed:
    log.append({"n": 2})
"""
        subprocess.run([sys.executable, "-c", program, path], check=True, cwd=Path(__file__).parents[3])
        assert (numbers(path), contents_of(path).torn) == ([2], False)

    def test_too_large_a_record_is_refused(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """What no reader would accept is not written."""
        monkeypatch.setattr(limits, "MAX_LOG_RECORD_BYTES", 100)
        log = ChangeLog.create(path, {"format": 1})
        with pytest.raises(StorageFailed):
            log.append({"x": "y" * 200})
        assert contents_of(path).records == []
        log.close()


def remove(path: str) -> None:
    os.unlink(path)


def replace(path: str) -> None:
    Path(path + ".other").write_bytes(bytes_of(path))
    os.replace(path + ".other", path)


def link_elsewhere(path: str) -> None:
    os.replace(path, path + ".moved")
    os.symlink(path + ".moved", path)


def remove_directory(path: str) -> None:
    os.unlink(path)
    os.rmdir(os.path.dirname(path))


def append_as_another(path: str) -> None:
    with open(path, "ab") as file:
        file.write(frame(b"{}"))


def shorten(path: str) -> None:
    os.truncate(path, os.path.getsize(path) - 1)


class TestLosingTheFile:
    @pytest.mark.parametrize("lose", [remove, replace, link_elsewhere, remove_directory, append_as_another, shorten])
    def test_append_notices(self, tmp_path: Path, lose: Callable[[str], None]) -> None:
        """A record must not go into a file that nobody will read, or whose end is somebody else's."""
        path = str(tmp_path / "runtime" / "changes.log")
        os.mkdir(os.path.dirname(path))
        log = ChangeLog.create(path, HEADER)
        log.append(RECORDS[0])
        lose(path)
        with pytest.raises(LogGone):
            log.append(RECORDS[1])
        log.close()

    def test_written_anew_from_memory(self, path: str) -> None:
        """After a removal the caller writes all it knows, and goes on."""
        log = ChangeLog.create(path, HEADER)
        log.append(RECORDS[0])
        os.unlink(path)
        with pytest.raises(LogGone):
            log.append(RECORDS[1])
        log.close()
        renewed = ChangeLog.create(path, HEADER, RECORDS[:1])
        renewed.append(RECORDS[1])
        assert contents_of(path).records == RECORDS[:2]
        renewed.close()

    def test_a_closed_log_takes_nothing(self, path: str) -> None:
        """Closing twice is harmless, appending afterwards is refused."""
        log = ChangeLog.create(path, HEADER)
        log.close()
        log.close()
        with pytest.raises(LogGone):
            log.append(RECORDS[0])

    def test_resume_does_not_invent_bytes(self, path: str) -> None:
        """A file that became shorter than what was read is not stretched with zeros."""
        data = write_log(path, RECORDS)
        contents = contents_of(path)
        os.truncate(path, len(data) - 1)
        with pytest.raises(LogGone):
            ChangeLog.resume(path, contents)
        assert bytes_of(path) == data[:-1]


def stepping(records: list[Record], written: threading.Semaphore, appended: threading.Semaphore) -> Iterator[Record]:
    for record in records:
        yield record
        written.release()
        assert appended.acquire(timeout=10)


class TestCompaction:
    def test_what_is_appended_meanwhile_is_kept(self, path: str) -> None:
        """The new log is the snapshot, then every change since it was taken, in order, and later ones go into it."""
        log = ChangeLog.create(path, HEADER)
        for n in range(100):
            log.append({"n": n})
        before = log.size
        compaction = log.begin_rewrite({**HEADER, "offset": 9.0})
        log.append({"n": 100})
        compaction.write([{"n": 99}])
        log.append({"n": 101})
        assert numbers(path)[-3:] == [99, 100, 101]
        log.finish_rewrite(compaction)
        log.append({"n": 102})
        assert numbers(path) == [99, 100, 101, 102]
        assert contents_of(path).header == {**HEADER, "offset": 9.0}
        assert log.size == os.path.getsize(path) < before
        assert files_beside(path) == ["changes.log"]
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        log.close()

    def test_concurrent_appends_lose_nothing(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A worker writes piece after piece while this thread appends after each of them, five logs in a row."""
        monkeypatch.setattr(limits, "LOG_PIECE_BYTES", 1)
        log = ChangeLog.create(path, HEADER)
        kept: list[Record] = [{"n": 0}]
        log.append(kept[0])
        for _ in range(5):
            compaction = log.begin_rewrite(HEADER)
            written, appended = threading.Semaphore(0), threading.Semaphore(0)
            snapshot = list(kept)
            worker = threading.Thread(target=compaction.write, args=(stepping(snapshot, written, appended),))
            worker.start()
            for _ in snapshot:
                assert written.acquire(timeout=10)
                kept.append({"n": len(kept)})
                log.append(kept[-1])
                appended.release()
            worker.join()
            log.finish_rewrite(compaction)
            assert contents_of(path).records == kept
        assert len(kept) == 2**5
        log.close()

    def test_pieces(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A long log is written piece by piece: it is never in memory as a whole."""
        monkeypatch.setattr(limits, "LOG_PIECE_BYTES", 32 * limits.KIB)
        sizes: list[int] = []
        genuine = os.write

        def noting(descriptor: int, data: bytes) -> int:
            sizes.append(len(data))
            return genuine(descriptor, data)

        monkeypatch.setattr(os, "write", noting)
        log = ChangeLog.create(path, HEADER)
        compaction = log.begin_rewrite(HEADER)
        compaction.write({"n": n, "x": "y" * 1_000} for n in range(200))
        assert len(sizes) > 5
        assert max(sizes) < 2 * limits.LOG_PIECE_BYTES
        log.finish_rewrite(compaction)
        assert numbers(path) == list(range(200))
        log.close()

    def test_abandoned(self, path: str) -> None:
        """The old log goes on as if nothing had been tried."""
        log = ChangeLog.create(path, HEADER, RECORDS[:1])
        compaction = log.begin_rewrite(HEADER)
        compaction.write([])
        log.append(RECORDS[1])
        log.abandon_rewrite(compaction)
        assert files_beside(path) == ["changes.log"]
        log.append(RECORDS[2])
        assert contents_of(path).records == RECORDS
        log.close()

    def test_abandoned_while_it_writes(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """The writer stops soon, and removes the file that it may have made after the other thread looked."""
        monkeypatch.setattr(limits, "LOG_PIECE_BYTES", 1)
        log = ChangeLog.create(path, HEADER)
        compaction = log.begin_rewrite(HEADER)

        def records() -> Iterator[Record]:
            yield RECORDS[0]
            log.abandon_rewrite(compaction)
            yield RECORDS[1]
            pytest.fail("goes on writing for nobody")

        compaction.write(records())
        assert files_beside(path) == ["changes.log"]
        with pytest.raises(StorageFailed):
            log.finish_rewrite(compaction)
        log.append(RECORDS[0])
        assert contents_of(path).records == RECORDS[:1]
        log.close()

    def test_abandoned_before_it_writes(self, path: str) -> None:
        """A worker that starts late leaves no file behind."""
        log = ChangeLog.create(path, HEADER)
        compaction = log.begin_rewrite(HEADER)
        log.close()
        compaction.write(RECORDS)
        assert files_beside(path) == ["changes.log"]

    def test_one_at_a_time(self, path: str) -> None:
        """A second one takes the first one's place, which can then not be finished: it has not the newest records."""
        log = ChangeLog.create(path, HEADER)
        first = log.begin_rewrite(HEADER)
        first.write(RECORDS[:1])
        second = log.begin_rewrite(HEADER)
        second.write(RECORDS)
        log.finish_rewrite(second)
        with pytest.raises(StorageFailed):
            log.finish_rewrite(first)
        assert contents_of(path).records == RECORDS and files_beside(path) == ["changes.log"]
        log.close()

    def test_an_unfinished_one_takes_nobodys_place(self, path: str) -> None:
        """Finishing what was never written is refused, and the old log stays."""
        log = ChangeLog.create(path, HEADER, RECORDS)
        with pytest.raises(StorageFailed):
            log.finish_rewrite(log.begin_rewrite(HEADER))
        assert contents_of(path).records == RECORDS
        log.close()

    def test_a_half_written_one_takes_nobodys_place(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Finishing while the writer is still at it is refused, and the old log stays."""
        monkeypatch.setattr(limits, "LOG_PIECE_BYTES", 1)
        log = ChangeLog.create(path, HEADER, RECORDS)
        compaction = log.begin_rewrite(HEADER)

        def records() -> Iterator[Record]:
            yield RECORDS[0]
            with pytest.raises(StorageFailed):
                log.finish_rewrite(compaction)
            yield RECORDS[1]

        compaction.write(records())
        assert contents_of(path).records == RECORDS
        assert files_beside(path) == ["changes.log"]
        log.close()

    @pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, None])
    def test_no_room_for_the_snapshot(self, path: str, monkeypatch: pytest.MonkeyPatch, error: int | None) -> None:
        """A compaction that fails in its thread costs nothing."""
        log = ChangeLog.create(path, HEADER, RECORDS)
        compaction = log.begin_rewrite(HEADER)
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", failing_write(error, 5))
            with pytest.raises(StorageFailed):
                compaction.write(RECORDS)
        log.abandon_rewrite(compaction)
        assert files_beside(path) == ["changes.log"]
        log.append({"n": 4})
        assert numbers(path) == [1, 2, 3, 4]
        log.close()

    def test_no_room_for_what_was_missed(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Failing at the very end leaves the old log, which has everything."""
        log = ChangeLog.create(path, HEADER)
        compaction = log.begin_rewrite(HEADER)
        compaction.write([])
        log.append(RECORDS[0])
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", failing_write(errno.ENOSPC, 5))
            with pytest.raises(StorageFailed):
                log.finish_rewrite(compaction)
        log.append(RECORDS[1])
        assert contents_of(path).records == RECORDS[:2]
        assert files_beside(path) == ["changes.log"]
        log.close()

    def test_a_refused_append_is_not_remembered(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A change that was not acknowledged must not appear with the new log."""
        log = ChangeLog.create(path, HEADER)
        compaction = log.begin_rewrite(HEADER)
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", failing_write(errno.ENOSPC, 5))
            with pytest.raises(StorageFailed):
                log.append(RECORDS[0])
        compaction.write([])
        log.finish_rewrite(compaction)
        assert contents_of(path).records == []
        log.close()

    def test_never_over_somebody_elses_log(self, path: str) -> None:
        """A log that replaced ours meanwhile is not overwritten by the compaction of the old one."""
        log = ChangeLog.create(path, HEADER)
        compaction = log.begin_rewrite(HEADER)
        compaction.write([])
        renewed = ChangeLog.create(path, HEADER, RECORDS)
        with pytest.raises(LogGone):
            log.finish_rewrite(compaction)
        log.close()
        assert contents_of(path).records == RECORDS
        renewed.close()

    def test_when_it_is_due(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """At the size in `limits`, at a multiple of what the last one left, never beside another, not at once after a
        failure."""
        monkeypatch.setattr(limits, "COMPACT_AT_BYTES", 1_000)
        log = ChangeLog.create(path, HEADER)
        assert not log.compaction_due
        log.append({"x": "y" * 1_000})
        assert log.compaction_due
        compaction = log.begin_rewrite(HEADER)
        assert not log.compaction_due
        compaction.write([{"x": "y" * 1_000}])
        log.finish_rewrite(compaction)
        left = log.size
        while not log.compaction_due:
            log.append({"x": "y" * 100})
        assert limits.COMPACT_RATIO * left <= log.size < limits.COMPACT_RATIO * left + 200
        log.abandon_rewrite(log.begin_rewrite(HEADER))
        assert not log.compaction_due
        log.close()

    @pytest.mark.parametrize("begin", ["create", "resume"])
    def test_stale_temporary_files_go(self, path: str, begin: str) -> None:
        """What a killed process left beside the log is removed by the next; other files are not ours."""
        write_log(path, RECORDS)
        for name in ("changes.log.0123456789abcdef.tmp", "other.tmp", "changes.log.bak"):
            (Path(path).parent / name).write_bytes(b"x")
        log = ChangeLog.create(path, HEADER) if begin == "create" else ChangeLog.resume(path, contents_of(path))
        log.close()
        assert files_beside(path) == ["changes.log", "changes.log.bak", "other.tmp"]


# Appends for ever, saying each number only when `append` has returned; one compaction after the other runs in a thread.
BUSY_CHILD = """
import sys, threading
from nudge.core import limits
from nudge.storage.changelog import ChangeLog
limits.LOG_PIECE_BYTES = 64
log = ChangeLog.create(sys.argv[1], {"format": 1})
kept, worker = [], None
while True:
    record = {"n": len(kept), "fill": "x" * (len(kept) % 300)}
    log.append(record)
    kept.append(record)
    sys.stdout.write(f"{record['n']}\\n")
    sys.stdout.flush()
    if worker and not worker.is_alive():
        log.finish_rewrite(compaction)
        worker = None
    if worker is None:
        compaction = log.begin_rewrite({"format": 1})
        worker = threading.Thread(target=compaction.write, args=(list(kept),), daemon=True)
        worker.start()
"""

# Compacts once, and stops for ever just before or after the named system call.
STOPPING_CHILD = """
import os, sys
from nudge.core import limits
from nudge.storage.changelog import ChangeLog
limits.LOG_PIECE_BYTES = 64
path, name, moment = sys.argv[1:]
log = ChangeLog.create(path, {"format": 1})
for n in range(50):
    log.append({"n": n})
compaction = log.begin_rewrite({"format": 1})
log.append({"n": 50})
genuine, calls = getattr(os, name), 0
def stopping(*arguments):
    global calls
    calls += 1
    if calls < (3 if name == "write" else 1):
        return genuine(*arguments)
    if moment == "after":
        genuine(*arguments)
    print("stopped", flush=True)
    sys.stdin.read()
setattr(os, name, stopping)
compaction.write({"n": n} for n in range(50))
log.finish_rewrite(compaction)
"""


def start_child(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])


class TestKilled:
    @pytest.mark.parametrize("acknowledged", [1, 19, 173, 1_000])
    def test_nothing_acknowledged_is_lost(self, path: str, acknowledged: int) -> None:
        """SIGKILL while appending and compacting: the log holds every record that was acknowledged, and at most one
        more."""
        with start_child(BUSY_CHILD, path) as child:
            assert child.stdout is not None
            said = [int(child.stdout.readline()) for _ in range(acknowledged)]
            child.kill()
            rest = child.stdout.read().decode()
        said += [int(line) for line in rest.split("\n")[:-1]]
        result = numbers(path)
        assert result == list(range(len(result)))
        assert len(said) <= len(result) <= len(said) + 1

    @pytest.mark.parametrize("moment", ["before", "after"])
    @pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
    def test_at_each_step_of_a_compaction(self, path: str, call: str, moment: str) -> None:
        """The old log or the new one, both complete; the successor clears what is left over."""
        with start_child(STOPPING_CHILD, path, call, moment) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"stopped\n"
            child.kill()
        contents = contents_of(path)
        assert (numbers(path), contents.torn) == (list(range(51)), False)
        log = ChangeLog.resume(path, contents)
        log.append({"n": 51})
        log.close()
        assert numbers(path) == list(range(52))
        assert files_beside(path) == ["changes.log"]


def test_the_format_number() -> None:
    """Raising it makes every older Nudge open the log read-only: never by accident."""
    assert changelog.LOG_FORMAT == 1
