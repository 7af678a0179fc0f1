"""A session: continued, ended, forgotten, recovered from a damaged log."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nudge.core import paths
from nudge.core.clock import Clock
from nudge.core.errors import StorageFailed, Unavailable
from nudge.core.locks import Flock
from nudge.hints import lifetime
from nudge.settings.config import Settings, Sources
from nudge.storage.changelog import ChangeLog, read_log

SETTINGS = Settings({})


def sources(directory: Path, **flags: str) -> Sources:
    """Flags only: no variable and no config.toml of whoever runs the tests."""
    return Sources(str(directory), flags, {"NUDGE_CONFIG": str(directory / "config.toml")})


def with_a_hint(directory: Path, key: str = "test", ttl: str = "session") -> None:
    opened = lifetime.open_lifetime(str(directory), sources(directory))
    assert opened.log is not None
    decision = opened.store.decide_set(opened.clock.now(), "api", key, f"the value of {key}", {"ttl": ttl})
    opened.log.append({**decision.change.to_record(), "t": opened.clock.now()})
    opened.log.close()


def keys_of_the_next(directory: Path) -> list[str]:
    opened = lifetime.open_lifetime(str(directory), sources(directory))
    assert opened.log is not None and opened.id != lifetime.NO_SESSION
    opened.log.close()
    return [hint.key for hint in opened.store.hints()]


def previous_keys(directory: Path) -> list[str]:
    components = json.loads((directory / paths.PREVIOUS).read_text())["components"]
    return [key for component in components.values() for key in component["hints"]]


def test_the_session_ends_and_is_kept_once(tmp_path: Path) -> None:
    """The log is gone, its hints are in the export of the previous session, and the lock is free again."""
    with_a_hint(tmp_path)
    assert lifetime.forget(str(tmp_path), SETTINGS) == (1, 0)
    assert not (tmp_path / paths.CHANGE_LOG).exists()
    assert "api" in json.loads((tmp_path / paths.PREVIOUS).read_text())["components"]
    assert Flock(str(tmp_path / paths.LOCK)).acquire()


def test_a_session_that_loses_nothing_leaves_the_export(tmp_path: Path) -> None:
    """A session whose hints all outlive it, or that has none, does not replace the export of the one before it."""
    with_a_hint(tmp_path)
    lifetime.forget(str(tmp_path), SETTINGS)
    with_a_hint(tmp_path, "flag", "PT1H")
    assert lifetime.forget(str(tmp_path), SETTINGS) == (0, 1)
    assert previous_keys(tmp_path) == ["test"]


def test_a_session_of_secrets_leaves_the_export(tmp_path: Path) -> None:
    """A secret cannot be imported again: a session that has no other hints does not replace the export before it."""
    with_a_hint(tmp_path)
    lifetime.forget(str(tmp_path), SETTINGS)
    ended = lifetime.open_lifetime(str(tmp_path), sources(tmp_path))
    assert ended.log is not None
    meta = {"sensitivity": "secret"}
    ended.store.apply(ended.store.decide_set(ended.clock.now(), "api", "token", "value", meta).change)
    assert lifetime.count_ended_hints(ended) == (1, 0)
    ended.log.close()
    lifetime.end_lifetime(str(tmp_path), ended)
    assert previous_keys(tmp_path) == ["test"]


def test_a_hint_with_a_duration_outlives_the_session(tmp_path: Path) -> None:
    """Only what had the session's lifetime goes, to the last byte; the next session has the rest."""
    with_a_hint(tmp_path)
    with_a_hint(tmp_path, "flag", "PT1H")
    assert lifetime.forget(str(tmp_path), SETTINGS) == (1, 1)
    assert b"the value of test" not in (tmp_path / paths.CHANGE_LOG).read_bytes()
    assert previous_keys(tmp_path) == ["flag", "test"]
    assert keys_of_the_next(tmp_path) == ["flag"]


def test_hints_of_a_large_previous_session_are_known_too(tmp_path: Path) -> None:
    """A caller that finds nothing is told of them, however large the export is."""
    opened = lifetime.open_lifetime(str(tmp_path), sources(tmp_path))
    assert opened.log is not None
    for number in range(50):
        decision = opened.store.decide_set(opened.clock.now(), "api", f"k{number}", "x" * 2_000, {})
        opened.log.append(decision.change.to_record())
    opened.log.close()
    assert lifetime.forget(str(tmp_path), SETTINGS) == (50, 0)
    assert len(lifetime.PreviousLifetime(str(tmp_path)).identities()) == 50


def test_between_two_sessions_there_is_none_to_forget(tmp_path: Path) -> None:
    """What outlived a session is not one: neither a second --forget nor the next start takes the last session's place
    with it."""
    with_a_hint(tmp_path)
    with_a_hint(tmp_path, "flag", "PT1H")
    lifetime.forget(str(tmp_path), SETTINGS)
    assert lifetime.forget(str(tmp_path), SETTINGS) is None
    assert keys_of_the_next(tmp_path) == ["flag"]
    assert previous_keys(tmp_path) == ["flag", "test"]


def test_no_session_no_trace(tmp_path: Path) -> None:
    """Without a session, forgetting creates no file."""
    assert lifetime.forget(str(tmp_path / "none"), SETTINGS) is None
    assert lifetime.forget(str(tmp_path), SETTINGS) is None
    assert os.listdir(tmp_path) == []


def test_a_servers_session_is_left_to_the_server(tmp_path: Path) -> None:
    """A session whose server holds the lock is not forgotten."""
    with_a_hint(tmp_path)
    held = Flock(str(tmp_path / paths.LOCK))
    assert held.acquire()
    with pytest.raises(Unavailable, match="nudge stop --forget"):
        lifetime.forget(str(tmp_path), SETTINGS)
    held.release()
    assert (tmp_path / paths.CHANGE_LOG).exists()


@pytest.mark.parametrize("content", [b"", b"not a log", b"newer"])
def test_a_log_that_cannot_be_read_is_forgotten_too(tmp_path: Path, content: bytes) -> None:
    """It was asked for by name; an export of it cannot be made, and an earlier one is not overwritten."""
    path = tmp_path / paths.CHANGE_LOG
    if content == b"newer":
        ChangeLog.create(str(path), {"format": 99, "session": "s", "created": Clock().now()}).close()
    else:
        path.write_bytes(content)
    (tmp_path / paths.PREVIOUS).write_text("earlier")
    assert lifetime.forget(str(tmp_path), SETTINGS) == (0, 0)
    assert not path.exists() and (tmp_path / paths.PREVIOUS).read_text() == "earlier"


def values(opened: lifetime.HintLifetime) -> set[str]:
    return {hint.key for hint in opened.store.hints()}


def flip(path: Path, needle: bytes) -> None:
    """Change one byte of the record that holds `needle`."""
    data = bytearray(path.read_bytes())
    data[data.index(needle)] ^= 1
    path.write_bytes(data)


def test_a_damaged_log_costs_only_its_bad_records(tmp_path: Path) -> None:
    """The damaged file is kept, what checks is recovered into a log that is whole, and the session says so."""
    for key in ("first", "second", "third"):
        with_a_hint(tmp_path, key)
    path = tmp_path / paths.CHANGE_LOG
    flip(path, b"the value of second")
    damaged = path.read_bytes()
    opened = lifetime.open_lifetime(str(tmp_path), sources(tmp_path))
    assert values(opened) == {"first", "third"}
    assert opened.warning is not None and "damaged" in opened.warning and "changes.log.damaged" in opened.warning
    assert (tmp_path / "changes.log.damaged").read_bytes() == damaged
    assert opened.log is not None
    opened.log.close()
    again = lifetime.open_lifetime(str(tmp_path), sources(tmp_path))
    assert (values(again), again.id, again.warning) == ({"first", "third"}, opened.id, None)


def test_a_damaged_header_costs_no_hint(tmp_path: Path) -> None:
    """The hints go into a new session."""
    with_a_hint(tmp_path)
    flip(tmp_path / paths.CHANGE_LOG, b'"session"')
    opened = lifetime.open_lifetime(str(tmp_path), sources(tmp_path))
    assert values(opened) == {"test"} and opened.warning is not None
    assert (tmp_path / "changes.log.damaged").exists()


def test_an_ended_session_with_a_damaged_log_ends(tmp_path: Path) -> None:
    """Damage does not prolong a session: its hints are in the export of the previous one."""
    with_a_hint(tmp_path)
    with_a_hint(tmp_path, "second")
    flip(tmp_path / paths.CHANGE_LOG, b"the value of second")
    opened = lifetime.open_lifetime(str(tmp_path), sources(tmp_path, session_grace="0"))
    assert values(opened) == set() and opened.warning is not None
    assert previous_keys(tmp_path) == ["test"]


@pytest.mark.parametrize("place", [os.mkdir, os.mkfifo, lambda path: os.symlink("/etc/hostname", path)])
def test_what_stands_in_the_logs_place_is_forgotten_too(tmp_path: Path, place: Callable[[Path], None]) -> None:
    """Otherwise the next session would be in memory again. A directory with something in it is left to the user."""
    path = tmp_path / paths.CHANGE_LOG
    place(path)
    assert lifetime.forget(str(tmp_path), SETTINGS) == (0, 0)
    assert not os.path.lexists(path) and os.path.exists("/etc/hostname")
    path.mkdir()
    (path / "something").write_text("")
    with pytest.raises(StorageFailed, match="move it away"):
        lifetime.forget(str(tmp_path), SETTINGS)
    assert (path / "something").exists()


@pytest.mark.parametrize("place", [os.mkdir, lambda path: os.symlink("/etc/hostname", path)])
def test_an_unreadable_log_is_left_alone(tmp_path: Path, place: Callable[[Path], None]) -> None:
    """The session starts in memory and says so; what stands in the log's place stays."""
    path = tmp_path / paths.CHANGE_LOG
    place(path)
    opened = lifetime.open_lifetime(str(tmp_path), sources(tmp_path))
    assert opened.log is None and opened.warning is not None and "memory" in opened.warning
    assert (os.path.lexists(path) and not path.is_file()) or path.is_symlink()


def test_a_disk_that_takes_no_log_starts_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the hints that the log holds."""
    with_a_hint(tmp_path)

    def refuse(*_: object) -> ChangeLog:
        raise StorageFailed("the disk is full")

    monkeypatch.setattr(ChangeLog, "resume", refuse)
    opened = lifetime.open_lifetime(str(tmp_path), sources(tmp_path))
    assert (values(opened), opened.log) == ({"test"}, None)
    assert opened.warning is not None and "the disk is full" in opened.warning


def test_forgetting_removes_the_damaged_copy_too(tmp_path: Path) -> None:
    """`stop --forget` leaves no byte of a session's hints but its one export."""
    with_a_hint(tmp_path)
    flip(tmp_path / paths.CHANGE_LOG, b'"session"')
    opened = lifetime.open_lifetime(str(tmp_path), sources(tmp_path))
    assert opened.log is not None
    opened.log.close()
    lifetime.forget(str(tmp_path), SETTINGS)
    assert not [name for name in os.listdir(tmp_path) if "damaged" in name]


# It lasts

DAY = 86_400.0


def reopen_later(directory: Path, monkeypatch: pytest.MonkeyPatch, days: float, **flags: str) -> lifetime.HintLifetime:
    """Open the session after a reboot, so many days later by the wall clock."""
    monkeypatch.setattr("nudge.hints.lifetime.boot_id", lambda: f"boot after {days} days")
    monkeypatch.setattr("nudge.core.clock.time.time", lambda: time.clock_gettime(time.CLOCK_REALTIME) + days * DAY)
    opened = lifetime.open_lifetime(str(directory), sources(directory, **flags))
    assert opened.log is not None
    opened.log.close()
    return opened


def test_it_lasts_through_a_reboot_and_a_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a reboot nor silence of less than 30 days ends a session; the next header has this boot's clock."""
    with_a_hint(tmp_path)
    first = keys_of_the_next(tmp_path)
    opened = reopen_later(tmp_path, monkeypatch, 2.5)
    assert values(opened) == set(first) == {"test"} and opened.warning is None
    contents = read_log(str(tmp_path / paths.CHANGE_LOG))
    assert contents is not None and contents.header is not None
    assert contents.header["boot_id"] == "boot after 2.5 days"


def test_it_lasts_for_a_duration_on_the_wall_clock_across_boots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A duration goes on while the machine is off."""
    with_a_hint(tmp_path, "short", "P1D")
    with_a_hint(tmp_path, "long", "P9D")
    assert values(reopen_later(tmp_path, monkeypatch, 2)) == {"long"}


def test_the_session_ends_after_30_days_of_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its hints are then those of the session before."""
    with_a_hint(tmp_path)
    assert values(reopen_later(tmp_path, monkeypatch, 31)) == set()
    assert previous_keys(tmp_path) == ["test"]


def test_a_session_hint_goes_after_its_idle_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the session does; with 0 it lives as long as the session."""
    with_a_hint(tmp_path)
    assert values(reopen_later(tmp_path, monkeypatch, 8, hint_idle="0")) == {"test"}
    with_a_hint(tmp_path, "second")
    settings = {"session_grace": str(90 * DAY), "hint_idle": str(7 * DAY)}
    assert values(reopen_later(tmp_path, monkeypatch, 10, **settings)) == {"second"}
