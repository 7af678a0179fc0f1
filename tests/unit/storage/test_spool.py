"""What no PRIMARY could take waits in files, whole, in order, bounded and counted."""

from __future__ import annotations

import os
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.errors import StorageFailed
from nudge.storage import spool


@pytest.fixture
def runtime(tmp_path: Path) -> str:
    return str(tmp_path)


def event(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {"event_id": f"{number:032x}", "content": f"event {number}", **fields}


def test_what_is_written_is_read(runtime: str) -> None:
    """Any text, as UTF-8."""
    spool.write(runtime, event(1, content="grün 😀\n"))
    (path,) = spool.pending(runtime)
    assert spool.read(path) == event(1, content="grün 😀\n")
    assert "grün" in Path(path).read_text(encoding="utf-8")


def test_the_oldest_comes_first(runtime: str) -> None:
    """The name begins with the time, all of one length."""
    for number in (3, 1, 2):
        spool.write(runtime, event(number))
    read = [spool.read(path) for path in spool.pending(runtime)]
    assert [row and row["content"] for row in read] == ["event 3", "event 1", "event 2"]
    names = [os.path.basename(path) for path in spool.pending(runtime)]
    assert all(
        len(name) == len(names[0]) and name.endswith(f"-{number:032x}.json")
        for name, number in zip(names, (3, 1, 2), strict=True)
    )


def test_an_empty_spool_is_no_error(runtime: str) -> None:
    """There is none before the first event."""
    assert spool.pending(runtime) == []
    assert spool.counts(runtime) == {"files": 0, "bytes": 0, "dropped": 0}
    spool.sweep(runtime, 0.0)
    assert not os.path.exists(spool.folder(runtime))


def test_a_file_goes_once(runtime: str) -> None:
    """Two that empty the spool at once do not disturb each other."""
    spool.write(runtime, event())
    (path,) = spool.pending(runtime)
    spool.remove(path)
    spool.remove(path)
    assert spool.pending(runtime) == []
    assert spool.read(path) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"null", b"\xff", b"[" * 100_000])
def test_a_broken_file_is_no_event(runtime: str, content: bytes) -> None:
    """A power cut can leave a name without its content."""
    spool.write(runtime, event())
    (path,) = spool.pending(runtime)
    Path(path).write_bytes(content)
    assert spool.read(path) is None


def test_what_cannot_be_stored_is_dropped_and_counted(runtime: str) -> None:
    """Nothing is lost without a trace."""
    spool.write(runtime, event())
    spool.drop(runtime, spool.pending(runtime)[0])
    assert spool.counts(runtime) == {"files": 0, "bytes": 0, "dropped": 1}


def test_the_number_of_files_is_capped(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Full, it refuses what comes, says so, and counts it; what waits stays."""
    monkeypatch.setattr(limits, "MAX_SPOOL_FILES", 2)
    for number in range(2):
        spool.write(runtime, event(number))
    for number in range(3):
        with pytest.raises(StorageFailed, match="full"):
            spool.write(runtime, event(number))
    assert spool.counts(runtime) | {"bytes": 0} == {"files": 2, "bytes": 0, "dropped": 3}


def test_the_bytes_are_capped(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted as they are on disk; one that is taken out makes room for one."""
    monkeypatch.setattr(limits, "MAX_SPOOL_BYTES", 250)
    spool.write(runtime, event(1))
    spool.write(runtime, event(2))
    size = spool.counts(runtime)["bytes"]
    assert 100 < size <= 250
    with pytest.raises(StorageFailed, match="full"):
        spool.write(runtime, event(3, content="x" * 200))
    spool.remove(spool.pending(runtime)[0])
    spool.write(runtime, event(4))
    assert spool.counts(runtime) == {"files": 2, "bytes": size, "dropped": 1}


def test_an_event_has_a_size(runtime: str) -> None:
    """What is larger than any event can be is refused."""
    with pytest.raises(StorageFailed):
        spool.write(runtime, event(content="x" * limits.MAX_EVENT_BYTES))
    assert spool.counts(runtime) == {"files": 0, "bytes": 0, "dropped": 1}


def test_only_the_owner_may_look(runtime: str) -> None:
    """Whatever the umask says."""
    before = os.umask(0)
    try:
        spool.write(runtime, event())
        spool.drop(runtime, "nothing")
    finally:
        os.umask(before)
    modes = {
        stat.S_IMODE(os.stat(os.path.join(spool.folder(runtime), name)).st_mode)
        for name in os.listdir(spool.folder(runtime))
    }
    assert modes == {0o600}
    assert stat.S_IMODE(os.stat(spool.folder(runtime)).st_mode) == 0o700


def test_a_write_is_whole_or_nothing(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under its name a file is complete: until then it has another, which nobody reads."""
    seen: list[list[str]] = []
    real = os.replace

    def watched(source: str, target: str) -> None:
        seen.append(spool.pending(runtime))
        assert spool.read(source) == event(1)
        real(source, target)

    monkeypatch.setattr(os, "replace", watched)
    spool.write(runtime, event(1))
    assert seen == [[]]
    assert len(spool.pending(runtime)) == 1


def test_a_failed_write_leaves_nothing(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is said in a sentence, without a half file."""

    def refuse(*_: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(StorageFailed, match="No space left"):
        spool.write(runtime, event())
    assert os.listdir(spool.folder(runtime)) == []


def test_what_a_killed_writer_left_is_swept(runtime: str) -> None:
    """After a minute; before that it may still be being written."""
    spool.write(runtime, event())
    part = Path(spool.folder(runtime), "1-x.json.77.part")
    part.write_bytes(b"{")
    now = part.stat().st_mtime
    spool.sweep(runtime, now + 59)
    assert part.exists() and len(spool.pending(runtime)) == 1
    spool.sweep(runtime, now + 61)
    assert not part.exists() and len(spool.pending(runtime)) == 1


def test_the_first_claim_counts(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of many at once; it is no event, and is swept. On a disk that takes no mark everybody goes on."""
    with ThreadPoolExecutor(8) as hooks:
        assert sum(hooks.map(lambda _: spool.claim(runtime, "e1"), range(8))) == 1
    assert spool.claim(runtime, "e2") and spool.counts(runtime)["files"] == 0
    spool.sweep(runtime, time.time() + 61)
    assert os.listdir(spool.folder(runtime)) == []

    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "open", refuse)
    assert spool.claim(runtime, "e3") and spool.claim(runtime, "e3")


def test_many_writers_at_once_lose_nothing(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an event nor a count."""
    monkeypatch.setattr(limits, "MAX_SPOOL_FILES", 10**6)

    def record(first: int) -> None:
        for number in range(first, first + 50):
            spool.write(runtime, event(number))
            spool.drop(runtime, "nothing")

    writers = [threading.Thread(target=record, args=(50 * number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    contents = {result["content"] for path in spool.pending(runtime) if (result := spool.read(path))}
    assert contents == {f"event {number}" for number in range(200)}
    assert spool.counts(runtime)["dropped"] == 200


def test_only_regular_files_are_events(tmp_path: Path) -> None:
    """A FIFO would block whoever reads it, a directory cannot be removed like an event, a link may lead anywhere."""
    folder = Path(spool.folder(str(tmp_path)))
    folder.mkdir(parents=True)
    os.mkfifo(folder / "1.json")
    (folder / "2.json").mkdir()
    (folder / "3.json").symlink_to("/etc/hostname")
    (folder / "4.json").write_text("{}")
    assert [os.path.basename(path) for path in spool.pending(str(tmp_path))] == ["4.json"]
    assert spool.counts(str(tmp_path))["files"] == 1
