from __future__ import annotations

from pathlib import Path

import pytest

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
    assert nudge("replay", str(empty)).code == 1
