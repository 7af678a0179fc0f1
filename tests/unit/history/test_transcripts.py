"""Backfill records each event once, however often it is read, and wherever a run was stopped. Replay counts what would
have been told in earlier sessions."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.errors import NudgeError, RemoteError, Unavailable
from nudge.history import transcripts
from nudge.history.transcripts import Backfill, BackfillState, EventFilter, find_all, find_new, read_commands, replay
from tests.unit.clients.transcripts import LONG_AGO, Refusal, Script, Server, Stopped, hook_events, recorded

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


class Desk:
    """One user: transcripts, a runtime directory, a database file, a server."""

    def __init__(self, folder: Path) -> None:
        self.root, self.run, self.database = folder / "projects", folder / "run", folder / "nudge.db"
        self.root.mkdir()
        self.database.touch()
        self.server = Server()

    def script(self, session: str = "s-1", **fields: Any) -> Script:
        return Script(self.root / "p" / f"{session}.jsonl", session, **fields)

    def state(self) -> BackfillState:
        return BackfillState(str(self.run), str(self.database))

    def backfill(self, only: EventFilter | None = None, *, dry_run: bool = False) -> dict[str, Any]:
        state, only = self.state(), only or EventFilter()
        files = find_new(str(self.root), state, only.since)
        self.work = Backfill(files, only, state, None if dry_run else self.server.call)
        return self.work.run()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_past_is_recorded(tmp_path: Path) -> None:
    """A session, its subagent and its fork: with prompts, commands, files, commits and what failed."""
    server, state = Server(), BackfillState(str(tmp_path / "run"), "")
    result = Backfill(find_new(str(recorded(tmp_path)), state), EventFilter(), state, server.call).run()
    assert (result["files"], result["new"], result["skipped"]) == (3, result["events"], 0)
    assert server.contents("user_prompt") == ["please do it", "/hello world", "forked"]
    assert server.contents("command_error") == ["ls nosuchfile; exit 3"]
    assert {row[0] for row in server.rows("project")} == {"/home/u/proj"}


def test_backfilled_sessions_are_closed(desk: Desk) -> None:
    """A session of long ago gets an end; one of just now has none yet."""
    desk.script("old").commands("a")
    desk.script("new", at=time.time() - 60).commands("b")
    desk.backfill()
    sessions = dict(desk.server.connection.execute("SELECT id, ended_at FROM sessions").fetchall())
    assert sessions["old"] is not None and sessions["new"] is None


def test_what_hooks_recorded_is_not_recorded_again(tmp_path: Path) -> None:
    """Nor is a session's start, its compaction or its end, of which hooks and transcripts tell in different words."""
    server, state = Server(), BackfillState(str(tmp_path / "run"), "")
    root = recorded(tmp_path)
    first = next(event["timestamp"] for event in _told(root))
    server.record([event for event in hook_events(now=first) if "resume" not in event["content"]])
    before = server.rows("count(*)")
    result = Backfill(find_new(str(root), state), EventFilter(), state, server.call).run()
    assert result["new"] == 0 and server.rows("count(*)") == before


def _told(root: Path) -> list[dict[str, Any]]:
    server, state = Server(), BackfillState("/nowhere", "")
    Backfill(find_new(str(root), state), EventFilter(since=0), state, server.call).run()
    return [event for batch in server.batches for event in batch]


def test_a_second_run_has_nothing_to_do(desk: Desk) -> None:
    """A file that has not grown is not opened."""
    desk.script().commands("a", "b")
    assert desk.backfill()["new"] == 4  # with the session's start and end
    assert desk.backfill() | {"seconds": 0} == {
        "files": 0,
        "events": 0,
        "new": 0,
        "skipped": 0,
        "seconds": 0,
        "types": {},
    }


def test_what_is_read_again_is_known(desk: Desk) -> None:
    """Without the file that says what has been read, all is read, and nothing recorded twice."""
    desk.script().commands("a", "b")
    desk.backfill()
    (desk.run / transcripts.BACKFILL_STATE).unlink()
    assert (desk.backfill()["new"], desk.server.contents("command")) == (0, ["make a", "make b"])


def test_a_file_that_has_grown_is_read_on(desk: Desk) -> None:
    """From where reading had come to; a call whose result has come in meanwhile is told whole."""
    script = desk.script()
    script.commands("a")
    script.call("b")
    desk.backfill()
    script.result("b")
    script.commands("c")
    desk.backfill()
    assert [event["content"] for event in desk.server.batches[-1] if event["type"] == "command"] == ["make b", "make c"]
    assert desk.server.contents("command") == ["make a", "make b", "make c"]


def test_a_session_without_anything_to_tell_still_has_its_start_before_it(desk: Desk) -> None:
    """What was read of it is read again once there is more."""
    script = desk.script()
    script.entry("user", message={"role": "user", "content": "a note"}, isMeta=True)
    desk.backfill()
    script.commands("a")
    desk.backfill()
    assert desk.server.contents("session_start") == ["startup"]


def test_another_file_in_its_place_is_read_from_the_start(desk: Desk) -> None:
    """A position belongs to the inode, not to the name."""
    desk.script("s-1").commands("a", "b")
    desk.backfill()
    (desk.root / "p" / "s-1.jsonl").unlink()
    desk.script("s-1", at=LONG_AGO + 100).commands("c")
    desk.backfill()
    assert desk.server.contents("command") == ["make a", "make b", "make c"]


@pytest.mark.parametrize("answered", range(4))
def test_it_may_be_stopped_anywhere(desk: Desk, monkeypatch: pytest.MonkeyPatch, answered: int) -> None:
    """After any batch, the next run goes on from there; all is recorded, and in the end nothing is sent twice."""
    monkeypatch.setattr(limits, "BACKFILL_EVENTS", 3)
    desk.script("s-1").commands("a", "b", "c", "d")
    desk.script("s-2").commands("e", "f", "g", "h")
    desk.server.fail = [None] * answered + [Stopped()]
    with pytest.raises(Stopped):
        desk.backfill()
    desk.backfill()
    sent = [event["event_id"] for batch in desk.server.batches for event in batch]
    assert sorted(desk.server.contents("command")) == [f"make {name}" for name in "abcdefgh"]
    assert len(sent) == len(set(sent)) == 12


def test_an_answer_that_was_lost_costs_nothing(desk: Desk) -> None:
    """When an acknowledgment is lost, the next run sends the batch again, and it is not recorded twice."""
    desk.script().commands("a")
    desk.backfill()
    os.truncate(desk.run / transcripts.BACKFILL_STATE, 0)
    desk.backfill()
    assert desk.server.contents("command") == ["make a"]


def test_batches_are_small(desk: Desk) -> None:
    """A batch is limited in events and in bytes."""
    script = desk.script()
    script.commands(*(f"c{number}" for number in range(250)))
    script.call("long", command="x" * 400)
    script.result("long", "Exit code 1\n" + "y" * 5_000, error=True)
    desk.backfill()
    assert [len(batch) for batch in desk.server.batches] == [limits.BACKFILL_EVENTS] * 2 + [53]
    assert limits.BACKFILL_BYTES + limits.MAX_EVENT_BYTES < limits.MAX_BODY_BYTES
    assert limits.BACKFILL_EVENTS <= limits.MAX_EVENTS_AT_ONCE


def test_large_events_make_shorter_batches(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes count, whatever the number."""
    monkeypatch.setattr(limits, "BACKFILL_BYTES", 2_000)
    desk.script().commands(*(f"c{number}" for number in range(20)))
    desk.backfill()
    assert max(len(json.dumps(batch)) for batch in desk.server.batches) < 3_000


def test_a_dry_run_changes_nothing(desk: Desk) -> None:
    """It counts by type, asks no server, and leaves no trace."""
    desk.script().commands("a", "b")
    result = desk.backfill(dry_run=True)
    assert result["types"] == {"command": 2, "session_end": 1, "session_start": 1}
    assert (result["new"], result["skipped"], desk.server.batches) == (None, None, []) and not desk.run.exists()


def test_secrets_do_not_leave_the_reader(desk: Desk) -> None:
    """What is sent is redacted already."""
    script = desk.script()
    script.call("a", command=f"curl -H 'Authorization: Bearer {SECRET}' https://example.com")
    script.result("a", f"Exit code 1\n{SECRET}", error=True)
    desk.backfill()
    assert SECRET not in str(desk.server.batches) and "[REDACTED:" in desk.server.contents("command_error")[0]


def test_only_a_part_may_be_asked_for(desk: Desk) -> None:
    """By time and by project; the rest stays to be read."""
    desk.script("s-1", cwd="/home/u/old", at=LONG_AGO - 86_400).commands("a")
    desk.script("s-2", cwd="/home/u/api").commands("b")
    desk.script("s-3", cwd="/home/u/web").commands("c")
    desk.backfill(EventFilter(since=LONG_AGO, project="api"))
    assert desk.server.contents("command") == ["make b"]
    desk.backfill()
    assert desk.server.contents("command") == ["make a", "make b", "make c"]


def test_what_is_not_wanted_is_not_sent(desk: Desk) -> None:
    """Directories where recording is turned off are left out."""
    desk.script("s-1", cwd="/home/u/secret").commands("a")
    desk.script("s-2").commands("b")
    desk.backfill(EventFilter(wanted=lambda _, context: context.cwd != "/home/u/secret"))
    assert desk.server.contents("command") == ["make b"]


def test_a_new_database_gets_everything(desk: Desk) -> None:
    """With another database, positions are dropped and everything is read again."""
    desk.script().commands("a")
    desk.backfill()
    desk.database.rename(desk.database.with_suffix(".old"))
    desk.database.touch()
    desk.server = Server()
    assert desk.backfill()["new"] == 3


@pytest.mark.parametrize("error", [Unavailable("busy"), RemoteError(Unavailable("busy").to_json()), Refusal("full")])
def test_an_error_of_the_server_ends_the_run(desk: Desk, error: NudgeError) -> None:
    """What was not acknowledged is not written down as read: the next run sends it."""
    desk.script().commands("a")
    desk.server.fail = [error]
    with pytest.raises(NudgeError):
        desk.backfill()
    assert desk.state().positions == {}
    assert desk.backfill()["new"] == 3


def test_a_file_that_cannot_be_read_is_named(desk: Desk) -> None:
    """And the others are read."""
    desk.script("s-1").commands("a")
    desk.script("s-2").commands("b")
    state = desk.state()
    files = find_new(str(desk.root), state)
    files[0].path = str(desk.root)
    work = Backfill(files, EventFilter(), state, desk.server.call)
    assert work.run()["files"] == 1 and list(work.unreadable) == [str(desk.root)]


def test_the_state_is_for_its_owner(desk: Desk) -> None:
    """The state file has mode 600: it names the user's projects."""
    desk.script().commands("a")
    desk.backfill()
    assert (desk.run / transcripts.BACKFILL_STATE).stat().st_mode & 0o777 == 0o600
    assert "make a" not in (desk.run / transcripts.BACKFILL_STATE).read_text()


# Replay

_BROKEN, _ERROR = "/usr/bin/python3 -m pytest tests", "Exit code 1\n/usr/bin/python3: No module named pytest"


def _session(folder: Path, number: int, *commands: str) -> None:
    """A session, a day after the one before. What is broken fails, everything else ends well."""
    script = Script(folder / f"s-{number}.jsonl", f"s-{number}", at=LONG_AGO + 86_400 * number)
    script.prompt("go")
    for place, command in enumerate(commands):
        identity = f"t{number}-{place}"
        script.call(identity, command=command)
        broken = command == _BROKEN
        script.result(identity, _ERROR if broken else "ok", error=broken)


def test_what_is_known_by_then_is_counted(tmp_path: Path) -> None:
    """The first failure teaches; the same in the second session is answered, and in the third it is spared by what the
    session reads at its start."""
    _session(tmp_path, 1, _BROKEN, "which pytest", "pytest tests")
    _session(tmp_path, 2, "ls", _BROKEN, "which pytest", "ls", "pytest tests")
    _session(tmp_path, 3, _BROKEN, "pytest tests")
    _session(tmp_path, 4, "make")
    result = replay(read_commands(find_all([str(tmp_path)])))
    assert (result["files"], result["sessions"], result["failures"]) == (4, 4, 3)
    assert (result["failures_spared"], result["failures_answered"]) == (1, 1)
    assert result["commands_saved"] == 3, "two commands before pytest was found, and the third failure itself"
    answered, spared = result["told"]
    assert (answered["kind"], answered["session"]) == ("answered", "s-2")
    assert (spared["kind"], spared["session"]) == ("spared", "s-3")
    for line in (answered, spared):
        assert (line["subject"], line["answer"]) == ("/usr/bin/python3 -m pytest", "pytest …")


def test_nothing_is_known_in_a_first_session(tmp_path: Path) -> None:
    """However often it fails; a file that is named twice is read once."""
    _session(tmp_path, 1, _BROKEN, _BROKEN, "pytest tests")
    result = replay(read_commands(find_all([str(tmp_path), str(tmp_path / "s-1.jsonl")])))
    assert (result["files"], result["commands"], result["told"]) == (1, 3, [])
