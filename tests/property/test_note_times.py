"""Times of notes: whatever is given, by whichever way, every note stays readable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nudge.notes.fields import parse_time, rfc3339
from nudge.storage.database import Database
from tests.contract.ways import InProcess

OFFSETS = st.integers(-(24 * 60 - 1), 24 * 60 - 1).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(timezones=OFFSETS)
LATEST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
LATEST_WEST = LATEST.replace(tzinfo=timezone(-timedelta(hours=23, minutes=59)))
EARLIEST_EAST = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=23, minutes=59)))


class Notes(InProcess):
    def result(self, operation: str, **params: Any) -> Any:
        outcome = self.call(f"nudge.memory_{operation}", params)
        assert "result" in outcome or outcome["error"]["data"]["reason"] == "E_INVALID", outcome
        return outcome.get("result")

    def read_all(self) -> list[dict[str, Any]]:
        """Through every way to read notes, which leaves none for the next example."""
        for _ in range(2):
            self.result("recall", context="word")
        exported: list[dict[str, Any]] = self.result("export")["memories"]
        assert self.result("list")["count"] == len(exported)
        for note in exported:
            assert self.result("get", id=note["id"]) and self.result("delete", id=note["id"])
        return exported


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    with closing(Database.open(str(tmp_path / "notes.db"))) as database:
        yield Notes(database)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(MOMENTS)
@example(LATEST)
@example(LATEST_WEST)
@example(datetime(2199, 12, 31, 23, 59, tzinfo=UTC))
def test_a_stored_expiry_stays_readable(notes: Notes, moment: datetime) -> None:
    """A time that cannot be stored is refused, and no recall extends one beyond that."""
    notes.result("store", title="t", content="word", expires_at=moment.isoformat(), namespace="n")
    for note in notes.read_all():
        assert parse_time(note["expires_at"], "expires_at") is not None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.fixed_dictionaries(dict.fromkeys(("created_at", "updated_at", "last_accessed_at", "expires_at"), MOMENTS)))
@example(dict.fromkeys(("updated_at",), LATEST_WEST))
@example(dict.fromkeys(("created_at",), EARLIEST_EAST))
@example({"updated_at": datetime(2150, 1, 1, tzinfo=UTC)})
def test_an_import_stays_readable(notes: Notes, times: dict[str, datetime]) -> None:
    """A note whose times cannot be stored is named; every other is stored, with no time in the future."""
    fields = {name: moment.isoformat() for name, moment in times.items()}
    outcome = notes.result("import", memories=[{"title": "t", "content": "word", **fields}])
    assert outcome["imported"] + outcome["expired"] + len(outcome["errors"]) == 1
    for note in notes.read_all():
        assert parse_time(note["updated_at"], "updated_at") <= notes.app.now()
        assert parse_time(note["created_at"], "created_at") <= notes.app.now()


@given(st.floats(allow_nan=False))
@example(1e300)
@example(float("inf"))
@example(-62_135_596_801.0)
def test_any_number_is_shown_as_a_time(seconds: float) -> None:
    """Also one that an older version stored, and it can be read back."""
    assert parse_time(rfc3339(seconds), "time") is not None
