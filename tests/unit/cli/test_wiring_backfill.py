"""Backfill records earlier sessions from transcripts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from nudge.core.errors import NotFound, Unavailable
from tests.unit.cli.conftest import Nudge, Server

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
    monkeypatch.setattr("nudge.history.transcripts.time.time", lambda: 2_000_000_000.0)
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
    ("flags", "found"), [(("--since", "2030-01-01"), 0), (("--repo", "proj"), EVENTS), (("--repo", "x"), 0)]
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
