from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from nudge.errors import NotFound, Unavailable
from tests.unit.clients.transcripts import LONG_AGO, Script

from .conftest import Nudge, Server
from .test_history import SESSION, listed

# pin, purge, backup


@pytest.mark.parametrize(("verb", "pinned"), [("pin", True), ("unpin", False)])
def test_pin(nudge: Nudge, server: Server, verb: str, pinned: bool) -> None:
    """Each that is there; what is not is named, and none at all is exit 1."""
    server.answers["nudge.pin"] = {"pinned": pinned, "ids": [42], "missing": [9]}
    outcome = nudge(verb, "42", "#9")
    assert (outcome.code, outcome.out) == (0, f"✔ {verb}ned #42\n") and outcome.err == "not found: #9\n"
    assert server.params == {"ids": [42, 9], "pinned": pinned}
    server.answers["nudge.pin"] = {"pinned": pinned, "ids": [], "missing": [9]}
    assert nudge(verb, "9").code == 1


COPIES = {"prompts": 0, "injections": 0}


def test_purge_only_counts(nudge: Nudge, server: Server) -> None:
    """Without --confirm nothing goes; the counts say what would."""
    server.answers["nudge.purge"] = {
        "total": 15,
        "counts": {"command": 3, "file_read": 12},
        "pinned": 1,
        **COPIES,
        "deleted": False,
    }
    outcome = nudge("purge", "--project", "api")
    assert outcome.out.splitlines() == [
        "12  file_read",
        " 3  command",
        "15 observations would be deleted, 1 of them pinned",
    ]
    assert "--confirm" in outcome.err and server.params == {"project": "api", "confirm": False}


def test_purge_counts_copies(nudge: Nudge, server: Server) -> None:
    """Prompts, and what sessions were told, may hold the words though no observation does."""
    server.answers["nudge.purge"] = {
        "total": 0,
        "counts": {},
        "pinned": 0,
        "prompts": 1,
        "injections": 2,
        "deleted": False,
        "waiting": 2,
    }
    outcome = nudge("purge", "--search", "x")
    assert (
        outcome.out == "0 observations would be deleted, with 1 prompt and 2 injected texts\n"
        and "--confirm" in outcome.err
    )
    assert "2 hook events in the spool were not searched" in outcome.err


@pytest.mark.parametrize("confirm", [[], ["--confirm"]])
def test_purge_of_an_id_that_does_not_exist(nudge: Nudge, server: Server, confirm: list[str]) -> None:
    """Exit 1, as for every verb that is told an id; filters that match nothing are an answer."""
    server.answers["nudge.purge"] = {"total": 0, "counts": {}, "pinned": 0, **COPIES, "deleted": bool(confirm)}
    outcome = nudge("purge", "--id", "99999", *confirm)
    assert (outcome.code, outcome.out, outcome.err) == (1, "", "not found: #99999\n")
    assert nudge("purge", "--project", "api", *confirm).code == 0


def test_purge(nudge: Nudge, server: Server) -> None:
    """All filters together; what may still hold a copy is named."""
    server.answers |= {
        "nudge.sessions": [listed()],
        "nudge.purge": {
            "total": 1,
            "counts": {"command": 1},
            "pinned": 0,
            **COPIES,
            "deleted": True,
            "scrubbed": False,
            "backups": ["/b/x.db"],
        },
    }
    filters = (
        "--before",
        "100",
        "--project",
        "api",
        "--session",
        "d4f8",
        "--id",
        "4",
        "--id",
        "#5",
        "--type",
        "command",
    )
    outcome = nudge("purge", *filters, "--older-than", "12w", "--search", "stale", "--confirm")
    assert outcome.out.splitlines() == ["1  command", "✔ deleted 1 observation"]
    assert "/b/x.db" in outcome.err and "log" in outcome.err
    assert server.params == {
        "before": 100,
        "project": "api",
        "session": SESSION,
        "ids": [4, 5],
        "type": "command",
        "older_than": 84,
        "search": "stale",
        "confirm": True,
    }


@pytest.mark.parametrize("words", [[], ["--confirm"], ["--older-than", "5h"], ["--older-than", "soon"]])
def test_purge_of_who_knows_what(nudge: Nudge, server: Server, words: list[str]) -> None:
    """Everything is never meant by saying nothing."""
    outcome = nudge("purge", *words)
    assert outcome.code == 2 and server.calls == []


def test_backup(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """Into a folder beside the database, or where it was asked for."""
    server.answers["nudge.backup"] = {"path": "/d/backups/n.db", "bytes": 4096}
    assert nudge("backup").out.startswith("✔ backed up to /d/backups/n.db (4") and server.params == {}
    nudge("backup", "copy.db")
    assert server.params == {"path": str(somewhere / "copy.db")}


# backfill

TRANSCRIPT = Path(__file__).parents[2] / "fixtures" / "transcript.jsonl"
EVENTS = 14  # that it tells, with the session's start and end


@pytest.fixture
def taking(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Server:
    """A server that records what is read, and what Claude Code keeps: one transcript of a session that ended long
    ago."""
    folder = tmp_path / ".claude" / "projects" / "-home-u-proj"
    folder.mkdir(parents=True)
    shutil.copy(TRANSCRIPT, folder / "521000e6.jsonl")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "NUDGE_DB", "NUDGE_OFF", "NUDGE_IGNORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("nudge.usecases.transcripts.time.time", lambda: 2_000_000_000.0)
    server.answers = {
        "nudge.record_many": {"recorded": EVENTS - 1, "known": 1, "refused": []},
        "nudge.session_trace": NotFound("session not found"),
    }
    return server


def test_backfill_says_what_it_did(nudge: Nudge, taking: Server) -> None:
    """One line: what is new, of how much, out of how many transcripts."""
    outcome = nudge("backfill")
    assert outcome.code == 0 and f"{EVENTS - 1} new of {EVENTS} events in 1 transcript, " in outcome.out
    assert len(taking.params["events"]) == EVENTS


@pytest.mark.usefixtures("taking")
def test_a_program_gets_the_counts_of_backfill(nudge: Nudge) -> None:
    """And nothing else on its stream."""
    result = json.loads(nudge("backfill", "--json").out)
    assert (result["files"], result["events"], result["new"], result["skipped"]) == (1, EVENTS, EVENTS - 1, 1)


@pytest.mark.usefixtures("taking")
def test_a_second_backfill_says_that_nothing_is_left(nudge: Nudge) -> None:
    """Not that it did nothing."""
    nudge("backfill")
    assert nudge("backfill").out == "nothing new to read\n"


@pytest.mark.usefixtures("taking")
def test_a_dry_run_of_backfill_counts_by_type(nudge: Nudge, server: Server) -> None:
    """Without a server."""
    outcome = nudge("backfill", "--dry-run")
    assert "command_error            1\n" in outcome.out
    assert outcome.out.endswith("nothing was recorded (--dry-run): 14 events in 1 transcript\n")
    assert server.calls == []


@pytest.mark.usefixtures("taking")
def test_the_directory_of_the_transcripts_may_be_named(
    nudge: Nudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the line, or as Claude Code itself is told it."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "nowhere"))
    assert nudge("backfill").code == 1
    assert nudge("backfill", str(tmp_path / ".claude" / "projects")).code == 0


@pytest.mark.usefixtures("taking")
def test_backfill_without_transcripts_says_so(nudge: Nudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And how to say where there is. A directory that is named and does not exist is wrong usage."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "nowhere"))
    outcome = nudge("backfill")
    assert outcome.code == 1 and "nudge backfill DIR" in outcome.err
    assert nudge("backfill", str(tmp_path / "nowhere")).code == 2


@pytest.mark.usefixtures("taking")
@pytest.mark.parametrize(
    ("flags", "found"), [(("--since", "2030-01-01"), 0), (("--project", "proj"), EVENTS), (("--project", "x"), 0)]
)
def test_a_part_of_backfill_is_asked_for_by_flags(nudge: Nudge, flags: tuple[str, ...], found: int) -> None:
    """By time and by project."""
    assert json.loads(nudge("backfill", "--dry-run", "--json", *flags).out)["events"] == found


@pytest.mark.usefixtures("taking")
def test_backfill_is_off_where_recording_is(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """For one run, and for all."""
    monkeypatch.setenv("NUDGE_OFF", "1")
    outcome = nudge("backfill")
    assert outcome.code == 3 and "turn it on with: unset NUDGE_OFF" in outcome.err
    monkeypatch.delenv("NUDGE_OFF")
    nudge("off", "--all")
    outcome = nudge("backfill")
    assert outcome.code == 3 and "nudge on --all" in outcome.err and server.calls == []


@pytest.mark.usefixtures("taking")
def test_ignored_paths_are_ignored_in_the_past_too(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when hooks record."""
    monkeypatch.setenv("NUDGE_IGNORE", "*.txt")
    types = json.loads(nudge("backfill", "--dry-run", "--json").out)["types"]
    assert "command" in types and not {"file_read", "file_write", "file_edit"} & set(types)


def test_backfill_may_be_interrupted(nudge: Nudge, taking: Server) -> None:
    """With a word about what that means."""
    taking.answers["nudge.record_many"] = KeyboardInterrupt()
    outcome = nudge("backfill")
    assert outcome.code == 130 and "continues from here" in outcome.err


def test_backfill_ends_with_an_error_of_the_server(nudge: Nudge, taking: Server) -> None:
    """And says that the next run continues."""
    taking.answers["nudge.record_many"] = Unavailable("the server is busy")
    outcome = nudge("backfill")
    assert outcome.code == 4 and "the server is busy" in outcome.err and "continues from here" in outcome.err


def test_refusals_of_backfill_are_told(nudge: Nudge, taking: Server) -> None:
    """Beside the result, not in it."""
    taking.answers["nudge.record_many"] = {
        "recorded": 0,
        "known": 12,
        "refused": [{"event_id": "x", "reason": "type: must be one of"}] * 2,
    }
    assert "refused: 2 events: type: must be one of" in nudge("backfill").err


# replay


def test_replay_says_what_would_have_been_spared(nudge: Nudge, tmp_path: Path) -> None:
    """One line of counts, one for each failure; no server is asked."""
    for number in (1, 2):
        script = Script(tmp_path / f"s-{number}.jsonl", f"s-{number}", at=LONG_AGO + 86_400 * number)
        for command, error in (("tox", "bash: line 1: tox: command not found"), ("python -m tox", "")):
            identity = f"{number}-{command}"
            script.call(identity, command=command)
            script.result(identity, error, error=bool(error))
    lines = nudge("replay", str(tmp_path)).out.splitlines()
    assert lines[0] == "read 2 sessions, 4 commands, 2 failures"
    assert "1 failures spared at the start" in lines[1] and lines[2].endswith("tox -> python -m tox")
    empty = tmp_path / "empty"
    empty.mkdir()
    outcome = nudge("replay", str(empty))
    assert outcome.code == 1 and f"there are no transcripts in {empty}; " in outcome.err
