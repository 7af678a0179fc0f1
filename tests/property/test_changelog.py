"""Whatever is written and wherever it is cut or damaged, every record that checks comes back."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nudge.storage.changelog import ChangeLog, read_log

HEADER = {"format": 1, "session": "s"}
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=6)
RECORDS = st.lists(st.dictionaries(st.text(), JSON, max_size=3), max_size=6)


def write(path: Path, records: list[dict[str, Any]], started_with: int) -> bytes:
    log = ChangeLog.create(str(path), HEADER, records[:started_with])
    for record in records[started_with:]:
        log.append(record)
    log.close()
    return path.read_bytes()


@given(records=RECORDS, started_with=st.integers(0, 6), cut=st.integers(0, 2_000))
def test_any_truncation_reads_back_as_a_prefix(records: list[dict[str, Any]], started_with: int, cut: int) -> None:
    """A log cut anywhere gives the records before the cut, all of them, and can be continued after them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "changes.log"
        whole = write(path, records, started_with)
        path.write_bytes(whole[:cut])
        contents = read_log(str(path))
        assert contents is not None
        assert contents.records == records[: len(contents.records)]
        assert contents.torn is (contents.good_bytes < min(cut, len(whole)))
        assert contents.damaged is (contents.header is None)
        if contents.header is not None:
            log = ChangeLog.resume(str(path), contents)
            for record in records[len(contents.records) :]:
                log.append(record)
            log.close()
            assert path.read_bytes() == whole


def is_subsequence(part: list[dict[str, Any]], whole: list[dict[str, Any]]) -> bool:
    remaining = iter(whole)
    return all(any(item == other for other in remaining) for item in part)


@given(records=RECORDS, noise=st.binary(max_size=64), position=st.integers(0, 2_000))
def test_overwritten_bytes_never_make_up_a_record(records: list[dict[str, Any]], noise: bytes, position: int) -> None:
    """Noise anywhere in the file never raises, and what is returned was written, in that order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "changes.log"
        whole = write(path, records, 0)
        path.write_bytes(whole[:position] + noise + whole[position + len(noise) :])
        contents = read_log(str(path))
        assert contents is not None
        assert is_subsequence(contents.records, records)


@given(records=RECORDS, position=st.integers(0, 2_000), change=st.integers(1, 255))
def test_one_changed_byte_costs_one_record_at_most(records: list[dict[str, Any]], position: int, change: int) -> None:
    """One changed byte anywhere, in any record's length, checksum or text: all the others are returned."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "changes.log"
        data = bytearray(write(path, records, 0))
        data[position % len(data)] ^= change
        path.write_bytes(data)
        contents = read_log(str(path))
        assert contents is not None and contents.damaged and not contents.torn
        assert len(contents.records) + (contents.header is not None) >= len(records)
        assert is_subsequence(contents.records, records)
