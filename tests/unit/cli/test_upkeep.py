"""The verbs that tidy up and secure what is stored: notes, their archive, observations and the database."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import NOTE, Nudge, Server, Typed
from tests.unit.cli.test_history import SESSION, listed

GONE = [{"id": 12, "title": "Chose SQLite", "namespace": "n", "tier": "mid"}]


@pytest.fixture(autouse=True)
def answering(server: Server) -> None:
    server.answers = {
        "nudge.memory_forget": {"deleted": 1, "dry_run": False, "memories": GONE},
        "nudge.memory_archive_stats": {"count": 3, "bytes": 900, "by_reason": []},
        "nudge.memory_archive_purge": {"purged": 2},
        "nudge.memory_archive_restore": {"restored": True, "memory": NOTE},
        "nudge.memory_consolidate": {"id": 20, "consolidated": 3},
        "nudge.memory_gc": {"expired_deleted": 1},
    }


def forgotten(server: Server) -> list[bool]:
    """Of each call of forget, whether it was a dry run."""
    return [fields.get("dry_run", False) for name, fields in server.calls if name == "nudge.memory_forget"]


# forget


@pytest.mark.parametrize(("answer", "runs", "code"), [("y", [True, False], 0), ("", [True], 3)])
def test_forget_shows_first_and_asks(
    nudge: Nudge, server: Server, typed: Typed, answer: str, runs: list[bool], code: int
) -> None:
    """A dry run, the notes that it names, a question, and only then the work."""
    typed.lines.append(answer)
    outcome = nudge("note", "forget", "--pattern", "sqlite", "--tier", "mid")
    assert outcome.code == code and outcome.out.startswith("m12  mid  Chose SQLite\n")
    assert "Move 1 note to the archive? [y/N]" in outcome.err and forgotten(server) == runs


def test_forget_without_a_terminal(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing goes without --yes, and --dry-run asks nobody."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert nudge("note", "forget", "--pattern", "x").code == 2 and forgotten(server) == [True]
    dry = nudge("note", "forget", "--pattern", "x", "--dry-run")
    assert (dry.code, dry.out) == (0, "m12  mid  Chose SQLite\n") and forgotten(server) == [True, True]
    done = nudge("note", "forget", "--pattern", "x", "--yes")
    assert done.out == "✔ moved 1 note to the archive\n" and "archive restore" in done.err
    assert server.params == {"pattern": "x"}


def test_forget_names_the_first(nudge: Nudge, server: Server) -> None:
    """And counts the others, so that nobody says yes to more than is shown."""
    server.answers["nudge.memory_forget"] = {"deleted": 1_300, "dry_run": True, "memories": GONE}
    lines = nudge("note", "forget", "--pattern", "x", "--dry-run").out.splitlines()
    assert lines == ["m12  mid  Chose SQLite", "and 1,299 more"]


def test_forget_nothing(nudge: Nudge, server: Server) -> None:
    """No question about no notes."""
    server.answers["nudge.memory_forget"] = {"deleted": 0, "dry_run": False, "memories": []}
    outcome = nudge("note", "forget", "--pattern", "x")
    assert (outcome.code, outcome.out) == (0, "") and "no note matches" in outcome.err


# consolidate


def test_consolidate(nudge: Nudge, server: Server) -> None:
    """Ids with spaces or commas."""
    outcome = nudge("note", "consolidate", "m1,2", "m3", "-T", "T", "-s", "S", "--tier", "mid")
    assert outcome.out == "✔ m20 stands for 3 notes\n"
    assert server.params == {"ids": [1, 2, 3], "title": "T", "summary": "S", "tier": "mid"}


@pytest.mark.parametrize(
    ("words", "group", "line", "remark"),
    [
        (["--dry-run"], {}, "would be one:  4 notes  web in n", "nothing was changed (--dry-run): 1 group"),
        ([], {"id": 20}, "m20  4 notes  web in n", ""),
    ],
)
def test_auto_consolidate(
    nudge: Nudge, server: Server, words: list[str], group: dict[str, Any], line: str, remark: str
) -> None:
    """A line for each group, done or not."""
    groups = [{"namespace": "n", "tag": "web", "count": 4, "ids": [1, 2, 3, 4], **group}]
    server.answers["nudge.memory_auto_consolidate"] = {"groups": groups, "consolidated": 4, "dry_run": bool(words)}
    outcome = nudge("note", "auto-consolidate", "--short-only", "--min-count", "4", *words)
    assert (outcome.out.strip(), outcome.err.strip()) == (line, remark)
    assert server.params == {"short_only": True, "min_count": 4, "dry_run": bool(words)}


# The archive


def test_archive_list(nudge: Nudge, server: Server) -> None:
    """With the reason why each is there."""
    row = {**NOTE, "archived_at": "2001-01-01T00:00:00+00:00", "archive_reason": "forgotten"}
    server.answers["nudge.memory_archive_list"] = {"memories": [row], "count": 1, "more": True}
    outcome = nudge("note", "archive", "list", "--limit", "1")
    assert outcome.out.startswith("m12  forgotten  ") and outcome.out.endswith("d ago  Chose SQLite\n")
    assert outcome.err == "there are more: --offset 1\n"


def test_archive_restore(nudge: Nudge, server: Server) -> None:
    """By the id that the note had."""
    assert nudge("note", "archive", "restore", "m12").out == "✔ restored m12 Chose SQLite\n"
    assert server.params == {"id": 12}


@pytest.mark.parametrize(("answer", "calls", "code"), [("y", 1, 0), ("n", 0, 3)])
def test_purge_asks(nudge: Nudge, server: Server, typed: Typed, answer: str, calls: int, code: int) -> None:
    """With the number of notes that are archived."""
    typed.lines.append(answer)
    outcome = nudge("note", "archive", "purge", "--older-than", "2w")
    assert outcome.code == code and "more than 14 days ago permanently? 3 are archived in all." in outcome.err
    assert [fields for name, fields in server.calls if name.endswith("purge")] == [{"older_than_days": 14}] * calls


def test_archive_stats(nudge: Nudge, server: Server) -> None:
    """How many, how large, since when, and why."""
    times = {"oldest": "2026-01-01T00:00:00+00:00", "newest": "2026-02-01T00:00:00+00:00"}
    reasons = [{"reason": "forgotten", "count": 3}]
    server.answers["nudge.memory_archive_stats"] = {"count": 3, "bytes": 900, **times, "by_reason": reasons}
    assert nudge("note", "archive", "stats").out.splitlines() == [
        "3 archived notes, 900 B",
        "archived from 2026-01-01T00:00:00+00:00 to 2026-02-01T00:00:00+00:00",
        "  forgotten  3",
    ]


def test_gc(nudge: Nudge) -> None:
    """It says how many."""
    assert nudge("note", "gc").out == "✔ archived 1 expired note\n"


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
    outcome = nudge("purge", "--repo", "api")
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
    assert nudge("purge", "--repo", "api", *confirm).code == 0


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
        "--repo",
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
