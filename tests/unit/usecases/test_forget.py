from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nudge import paths
from nudge.clock import Clock
from nudge.config import Settings
from nudge.errors import Unavailable
from nudge.ipc.lock import Flock
from nudge.storage.changelog import ChangeLog
from nudge.usecases import session

SETTINGS = Settings({})


def with_a_hint(directory: Path, key: str = "test", ttl: str = "session") -> None:
    opened = session.open_session(str(directory), SETTINGS)
    assert opened.log is not None
    decision = opened.store.decide_set(opened.clock.now(), "api", key, f"the value of {key}", {"ttl": ttl})
    opened.log.append({**decision.change.to_record(), "t": opened.clock.now()})
    opened.log.close()


def keys_of_the_next(directory: Path) -> list[str]:
    opened = session.open_session(str(directory), SETTINGS)
    assert opened.log is not None and opened.id != session.NO_SESSION
    opened.log.close()
    return [hint.key for hint in opened.store.hints()]


def previous_keys(directory: Path) -> list[str]:
    components = json.loads((directory / paths.PREVIOUS).read_text())["components"]
    return [key for component in components.values() for key in component["hints"]]


def test_the_session_ends_and_is_kept_once(tmp_path: Path) -> None:
    """The log is gone, its hints are in the export of the previous session, and the lock is free again."""
    with_a_hint(tmp_path)
    assert session.forget(str(tmp_path), SETTINGS) == 1
    assert not (tmp_path / paths.CHANGE_LOG).exists()
    assert "api" in json.loads((tmp_path / paths.PREVIOUS).read_text())["components"]
    assert Flock(str(tmp_path / paths.LOCK)).acquire()


def test_a_hint_with_a_duration_outlives_the_session(tmp_path: Path) -> None:
    """Only what had the session's lifetime goes, to the last byte; the next session has the rest."""
    with_a_hint(tmp_path)
    with_a_hint(tmp_path, "flag", "PT1H")
    assert session.forget(str(tmp_path), SETTINGS) == 1
    assert b"the value of test" not in (tmp_path / paths.CHANGE_LOG).read_bytes()
    assert previous_keys(tmp_path) == ["flag", "test"]
    assert keys_of_the_next(tmp_path) == ["flag"]


def test_between_two_sessions_there_is_none_to_forget(tmp_path: Path) -> None:
    """What outlived a session is not one: neither a second --forget nor the next start takes the last session's place
    with it."""
    with_a_hint(tmp_path)
    with_a_hint(tmp_path, "flag", "PT1H")
    session.forget(str(tmp_path), SETTINGS)
    assert session.forget(str(tmp_path), SETTINGS) is None
    assert keys_of_the_next(tmp_path) == ["flag"]
    assert previous_keys(tmp_path) == ["flag", "test"]


def test_no_session_no_trace(tmp_path: Path) -> None:
    """Where there is none, nothing is made."""
    assert session.forget(str(tmp_path / "none"), SETTINGS) is None
    assert session.forget(str(tmp_path), SETTINGS) is None
    assert os.listdir(tmp_path) == []


def test_a_servers_session_is_left_to_the_server(tmp_path: Path) -> None:
    """Whoever holds the lock owns the log."""
    with_a_hint(tmp_path)
    held = Flock(str(tmp_path / paths.LOCK))
    assert held.acquire()
    with pytest.raises(Unavailable, match="nudge stop --forget"):
        session.forget(str(tmp_path), SETTINGS)
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
    assert session.forget(str(tmp_path), SETTINGS) == 0
    assert not path.exists() and (tmp_path / paths.PREVIOUS).read_text() == "earlier"
