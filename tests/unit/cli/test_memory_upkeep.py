from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from .conftest import NOTE, Nudge, Server, Typed

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
    outcome = nudge("memory", "forget", "--pattern", "sqlite", "--tier", "mid")
    assert outcome.code == code and outcome.out.startswith("m12  mid  Chose SQLite\n")
    assert "Move 1 note to the archive? [y/N]" in outcome.err and forgotten(server) == runs


def test_forget_without_a_terminal(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing goes without --yes, and --dry-run asks nobody."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert nudge("memory", "forget", "--pattern", "x").code == 2 and forgotten(server) == [True]
    dry = nudge("memory", "forget", "--pattern", "x", "--dry-run")
    assert (dry.code, dry.out) == (0, "m12  mid  Chose SQLite\n") and forgotten(server) == [True, True]
    done = nudge("memory", "forget", "--pattern", "x", "--yes")
    assert done.out == "✔ moved 1 note to the archive\n" and "archive restore" in done.err
    assert server.params == {"pattern": "x"}


def test_forget_names_the_first(nudge: Nudge, server: Server) -> None:
    """And counts the others, so that nobody says yes to more than is shown."""
    server.answers["nudge.memory_forget"] = {"deleted": 1_300, "dry_run": True, "memories": GONE}
    lines = nudge("memory", "forget", "--pattern", "x", "--dry-run").out.splitlines()
    assert lines == ["m12  mid  Chose SQLite", "and 1,299 more"]


def test_forget_nothing(nudge: Nudge, server: Server) -> None:
    """No question about no notes."""
    server.answers["nudge.memory_forget"] = {"deleted": 0, "dry_run": False, "memories": []}
    outcome = nudge("memory", "forget", "--pattern", "x")
    assert (outcome.code, outcome.out) == (0, "") and "no note matches" in outcome.err


# consolidate


def test_consolidate(nudge: Nudge, server: Server) -> None:
    """Ids with spaces or commas."""
    outcome = nudge("memory", "consolidate", "m1,2", "m3", "-T", "T", "-s", "S", "--tier", "mid")
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
    outcome = nudge("memory", "auto-consolidate", "--short-only", "--min-count", "4", *words)
    assert (outcome.out.strip(), outcome.err.strip()) == (line, remark)
    assert server.params == {"short_only": True, "min_count": 4, "dry_run": bool(words)}


# The archive


def test_archive_list(nudge: Nudge, server: Server) -> None:
    """With the reason why each is there."""
    row = {**NOTE, "archived_at": "2001-01-01T00:00:00+00:00", "archive_reason": "forgotten"}
    server.answers["nudge.memory_archive_list"] = {"memories": [row], "count": 1, "more": True}
    outcome = nudge("memory", "archive", "list", "--limit", "1")
    assert outcome.out.startswith("m12  forgotten  ") and outcome.out.endswith("d ago  Chose SQLite\n")
    assert outcome.err == "there are more: --offset 1\n"


def test_archive_restore(nudge: Nudge, server: Server) -> None:
    """By the id that the note had."""
    assert nudge("memory", "archive", "restore", "m12").out == "✔ restored m12 Chose SQLite\n"
    assert server.params == {"id": 12}


@pytest.mark.parametrize(("answer", "calls", "code"), [("y", 1, 0), ("n", 0, 3)])
def test_purge_asks(nudge: Nudge, server: Server, typed: Typed, answer: str, calls: int, code: int) -> None:
    """With the number of notes that are archived."""
    typed.lines.append(answer)
    outcome = nudge("memory", "archive", "purge", "--older-than", "2w")
    assert outcome.code == code and "more than 14 days ago permanently? 3 are archived in all." in outcome.err
    assert [fields for name, fields in server.calls if name.endswith("purge")] == [{"older_than_days": 14}] * calls


def test_archive_stats(nudge: Nudge, server: Server) -> None:
    """How many, how large, since when, and why."""
    times = {"oldest": "2026-01-01T00:00:00+00:00", "newest": "2026-02-01T00:00:00+00:00"}
    reasons = [{"reason": "forgotten", "count": 3}]
    server.answers["nudge.memory_archive_stats"] = {"count": 3, "bytes": 900, **times, "by_reason": reasons}
    assert nudge("memory", "archive", "stats").out.splitlines() == [
        "3 archived notes, 900 B",
        "archived from 2026-01-01T00:00:00+00:00 to 2026-02-01T00:00:00+00:00",
        "  forgotten  3",
    ]


def test_gc(nudge: Nudge) -> None:
    """It says how many."""
    assert nudge("memory", "gc").out == "✔ archived 1 expired note\n"
