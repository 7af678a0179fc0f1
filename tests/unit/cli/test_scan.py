from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import Nudge, Server

MAKEFILE = "build:\n\tcc x.c\n\ntest:\n\t./t\n"


def entry(component: str, key: str, cmd: str, reason: str) -> dict[str, Any]:
    return {"component": component, "key": key, "value": {"type": "command", "cmd": cmd}, "reason": reason}


@pytest.fixture(autouse=True)
def scanned(server: Server) -> None:
    server.answers["nudge.scan"] = {
        "added": [entry("x", "build", "make build", "Makefile:1")],
        "updated": [entry("x", "test", "make test", "Makefile:4")],
        "removed": [entry("x", "lint", "make lint", "Makefile:9")],
        "kept": [entry("x", "run", "make run", "Makefile:7")],
        "unchanged": 2,
        "skipped": [{"component": "x", "key": "format", "reason": "value.cmd looks like a key"}],
    }


def test_sends_what_the_manifests_say(
    nudge: Nudge, server: Server, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From anywhere in the repo, its root is read; commands go as typed values with the line they come from."""
    (repo / "Makefile").write_text(MAKEFILE)
    (repo / "sub").mkdir()
    monkeypatch.chdir(repo / "sub")
    assert nudge("scan").code == 0
    assert (server.params["repo"], server.params["dry_run"]) == ("git:org/x", False)
    assert entry("x", "build", "make build", "Makefile:1") in server.params["found"]


@pytest.mark.usefixtures("repo")
def test_pretty(nudge: Nudge) -> None:
    """A mark for each outcome, then the sum; what was passed over is a remark."""
    outcome = nudge("scan")
    assert outcome.out.splitlines() == [
        "+ x/build  make build  Makefile:1",
        "~ x/test   make test  Makefile:4",
        "- x/lint   make lint  Makefile:9",
        "= x/run    make run  Makefile:7",
        "✔ 1 added, 1 updated, 1 removed, 1 kept, 2 unchanged (kept: set by a person or an agent)",
    ]
    assert outcome.err == "passed over: x/format: value.cmd looks like a key\n"


@pytest.mark.usefixtures("repo")
def test_dry_run(nudge: Nudge, server: Server) -> None:
    """--dry-run reaches the server, and the output does not claim that anything was set."""
    last = nudge("scan", "--dry-run").out.splitlines()[-1]
    assert server.params["dry_run"] is True and last.startswith("nothing was set")


def test_another_directory(nudge: Nudge, server: Server, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DIR names the repo to read."""
    monkeypatch.chdir("/")
    assert nudge("scan", str(repo)).code == 0
    assert server.params["repo"] == "git:org/x"


def test_outside_a_repo(nudge: Nudge, server: Server) -> None:
    """Hints from a manifest belong to a repo; without one nothing is set, and the line says what to do."""
    outcome = nudge("scan")
    assert outcome.code == 3 and "git repository" in outcome.err
    assert nudge("scan", "missing").code == 2
    assert server.calls == []


def test_an_unreadable_manifest_is_told(nudge: Nudge, server: Server, repo: Path) -> None:
    """A broken file is named on stderr, and the others count."""
    (repo / "package.json").write_text("{")
    outcome = nudge("scan")
    assert outcome.code == 0 and "package.json" in outcome.err
    assert server.params["unread"] == ["package.json"]


def test_an_older_server_is_not_told_of_nothing(nudge: Nudge, server: Server, repo: Path) -> None:
    """It would not know the word."""
    (repo / "Makefile").write_text(MAKEFILE)
    nudge("scan")
    assert "unread" not in server.params


def test_where_a_command_is_to_be_run_is_told(nudge: Nudge, server: Server, repo: Path) -> None:
    """One for a nested package works at the root only, and is offered anywhere in the repo."""
    (repo / "services/api").mkdir(parents=True)
    (repo / "services/api/Makefile").write_text("test:\n")
    nudge("scan")
    reason = "services/api/Makefile:1, run it in the root of the repo"
    assert server.params["found"] == [entry("api", "test", "make -C services/api test", reason)]
