from __future__ import annotations

import io
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from nudge import limits

from .conftest import HINT, Nudge, Server

REDACTED = {name: value for name, value in HINT.items() if name != "value"} | {"redacted": True}
PAYLOAD: dict[str, Any] = {
    "schema_version": "1.0",
    "created_at": "2026-11-16T08:00:00.000000Z",
    "session_id": "s",
    "components": {"api": {"hints": {"build": HINT, "test": [HINT, REDACTED]}}},
}


@pytest.fixture(autouse=True)
def transferring(server: Server) -> None:
    server.answers["nudge.export_page"] = {**PAYLOAD, "next": None}
    server.answers["nudge.import"] = {
        "imported": 1,
        "skipped": 1,
        "removed": 0,
        "reasons": [{"component": "api", "key": "test", "reason": "not newer"}],
    }


def test_export_is_the_payload(nudge: Nudge, server: Server) -> None:
    """stdout holds the document that import reads; what was left out is a remark beside it."""
    outcome = nudge("export", "--format", "json")
    assert json.loads(outcome.out) == PAYLOAD
    assert outcome.err == "1 secret value left out; include them with --reveal\n"
    assert server.params == {}


def test_export_json_is_the_result(nudge: Nudge) -> None:
    """--json is the exact result object here too."""
    assert json.loads(nudge("export", "--json").out) == {"payload": PAYLOAD}


def test_export_flags(nudge: Nudge, server: Server) -> None:
    """One component, and secrets on request."""
    nudge("export", "--component", "api", "--reveal")
    assert server.params == {"component": "api", "reveal": True}


def test_export_to_a_file(nudge: Nudge, somewhere: Path) -> None:
    """The file is the owner's alone, replaced whole, and nothing else is left beside it."""
    target = somewhere / "hints.json"
    target.write_text("old")
    target.chmod(0o644)
    assert nudge("export", "-o", "hints.json").out == "✔ exported 3 hints to hints.json\n"
    assert json.loads(target.read_text()) == PAYLOAD
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert os.listdir(somewhere) == ["hints.json"]


def test_export_through_a_link(nudge: Nudge, somewhere: Path) -> None:
    """A link stays a link; what it points to is replaced."""
    (somewhere / "link").symlink_to(somewhere / "real")
    nudge("export", "-o", "link")
    assert (somewhere / "link").is_symlink() and json.loads((somewhere / "real").read_text()) == PAYLOAD


def test_export_to_a_device(nudge: Nudge) -> None:
    """A device is written to, never renamed over."""
    assert nudge("export", "-o", os.devnull).code == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_export_to_nowhere(nudge: Nudge) -> None:
    """A place that cannot be written is a refusal in one line."""
    outcome = nudge("export", "-o", "missing/hints.json")
    assert outcome.code == 3 and outcome.err.count("\n") == 1 and "-o" in outcome.err


@pytest.mark.parametrize("document", [PAYLOAD, {"payload": PAYLOAD}])
def test_import_reads_what_export_wrote(nudge: Nudge, server: Server, somewhere: Path, document: Any) -> None:
    """Both forms of an export come back; what is here already is counted in the one line."""
    (somewhere / "hints.json").write_text(json.dumps(document))
    outcome = nudge("import", "hints.json")
    assert outcome.out.splitlines() == ["✔ imported 1 hint, skipped 1 (already here)"]
    assert server.params == {"payload": PAYLOAD, "mode": "merge"}


def test_not_every_reason_is_told(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """Of thousands that were skipped the first are explained, and the others counted."""
    (somewhere / "hints.json").write_text(json.dumps(PAYLOAD))
    reasons = [{"component": "api", "key": "test", "reason": "expired"}]
    server.answers["nudge.import"] = {"imported": 0, "skipped": 4, "removed": 0, "reasons": reasons}
    assert nudge("import", "hints.json").out.splitlines()[-1] == "  and 3 more"


def test_import_says_what_it_took_away(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """`--mode replace` removes what the file does not name, and counts it."""
    (somewhere / "hints.json").write_text(json.dumps(PAYLOAD))
    server.answers["nudge.import"] = {"imported": 2, "skipped": 0, "removed": 3, "reasons": []}
    assert nudge("import", "hints.json", "--mode", "replace").out == "✔ imported 2 hints, skipped 0, removed 3\n"


@pytest.mark.parametrize("mode", ["merge", "replace", "skip"])
def test_import_from_stdin(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """`-` is stdin; the mode goes along."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(PAYLOAD).encode())))
    assert nudge("import", "-", "--mode", mode).code == 0
    assert server.params["mode"] == mode


def test_import_previous(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """--previous brings back the session before; exit 1 when none is kept."""
    missing = nudge("import", "--previous")
    assert missing.code == 1 and missing.err.startswith("nudge: E_NOT_FOUND (40401): ")
    runtime = somewhere.parent / "runtime"
    runtime.mkdir()
    (runtime / "previous.json").write_text(json.dumps(PAYLOAD))
    assert nudge("import", "--previous").code == 0
    assert server.params["payload"] == PAYLOAD


@pytest.mark.parametrize(("content", "word"), [("{", "not JSON"), ("[" * 100_000, "not JSON"), ("\xff", "not JSON")])
def test_import_of_nonsense(nudge: Nudge, server: Server, somewhere: Path, content: str, word: str) -> None:
    """What is no JSON is refused here, in one line."""
    (somewhere / "x.json").write_text(content, encoding="latin-1")
    outcome = nudge("import", "x.json")
    assert outcome.code == 3 and word in outcome.err and outcome.err.count("\n") == 1
    assert server.calls == []


def test_import_of_too_much(nudge: Nudge, somewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beyond what any store holds is not sent."""
    monkeypatch.setattr(limits, "MAX_IMPORT_FILE_BYTES", 10)
    (somewhere / "x.json").write_text(json.dumps(PAYLOAD))
    assert nudge("import", "x.json").code == 3


@pytest.mark.parametrize("mode", ["merge", "replace", "skip"])
def test_a_large_import_goes_in_pages(
    nudge: Nudge, server: Server, somewhere: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """One import in several calls, and one answer."""
    hints = {f"k{number}": HINT for number in range(3)}
    (somewhere / "x.json").write_text(json.dumps({**PAYLOAD, "components": {"api": {"hints": hints}}}))
    monkeypatch.setattr(limits, "PAGE_BYTES", int(2.5 * len(json.dumps(HINT))))
    server.answers["nudge.import_begin"] = {"transfer": "t"}
    server.answers["nudge.import_page"] = {"pages": 1, "hints": 2}
    server.answers["nudge.import_commit"] = server.answers["nudge.import"]
    assert nudge("import", "x.json", "--mode", mode).out.startswith("✔ imported 1 hint, skipped 1")
    operations = [operation for operation, _ in server.calls]
    assert operations == ["nudge.import_begin", "nudge.import_page", "nudge.import_page", "nudge.import_commit"]
    assert server.calls[0][1]["mode"] == mode


@pytest.mark.parametrize("components", [[], {"api": []}, {"api": {"hints": []}}, {"api": {"hints": {}, "more": 1}}])
def test_what_is_no_export_is_sent_as_it_is(nudge: Nudge, server: Server, somewhere: Path, components: Any) -> None:
    """The server says what is wrong with it."""
    (somewhere / "x.json").write_text(json.dumps({"components": components}))
    nudge("import", "x.json")
    assert server.params["payload"] == {"components": components}


def test_a_key_that_comes_twice_is_refused(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """As on the wire: one of the two would be lost without a word."""
    (somewhere / "x.json").write_text('{"components": {"api": {"hints": {"a": {"value": "1"}, "a": {"value": "2"}}}}}')
    outcome = nudge("import", "x.json")
    assert outcome.code == 3 and "an object has the same key twice" in outcome.err
    outcome = nudge("set", "api", "ports", '{"http": 1, "http": 2}', "--type", "json")
    assert outcome.code == 2 and "an object has the same key twice" in outcome.err
    assert server.calls == []


@pytest.mark.parametrize("words", [[], ["x.json", "--previous"], ["missing.json"], ["."], ["x", "--mode", "overwrite"]])
def test_import_usage(nudge: Nudge, words: list[str]) -> None:
    """One source, that can be read, and a known mode."""
    outcome = nudge("import", *words)
    assert outcome.code == 2 and outcome.err.startswith("nudge import: ") and outcome.err.count("\n") == 1


# scan

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
    assert (server.params["repo"], server.params["dry_run"]) == ("git:github.com/org/x", False)
    built = server.params["found"][0]
    assert built.pop("files").keys() == {"Makefile"}
    assert built == entry("x", "build", "make build", "Makefile:1")


@pytest.mark.usefixtures("repo")
def test_pretty(nudge: Nudge) -> None:
    """A mark for each outcome, then the sum; what was passed over is a remark."""
    outcome = nudge("scan")
    assert outcome.out.splitlines() == [
        "+ x/build  make build  Makefile:1",
        "~ x/test   make test  Makefile:4",
        "- x/lint   make lint  Makefile:9",
        "= x/run    make run  Makefile:7",
        "✔ 1 added, 1 updated, 1 removed, 1 kept, 2 unchanged (kept: set by a person or an agent, or learned)",
    ]
    assert outcome.err == "skipped: x/format: value.cmd looks like a key\n"


@pytest.mark.usefixtures("repo")
def test_dry_run(nudge: Nudge, server: Server) -> None:
    """--dry-run reaches the server, and the output does not claim that anything was set."""
    last = nudge("scan", "--dry-run").out.splitlines()[-1]
    assert server.params["dry_run"] is True and last.startswith("nothing was set")


def test_another_directory(nudge: Nudge, server: Server, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DIR names the repo to read."""
    monkeypatch.chdir("/")
    assert nudge("scan", str(repo)).code == 0
    assert server.params["repo"] == "git:github.com/org/x"


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
    (found,) = server.params["found"]
    assert found.pop("files").keys() == {"services/api/Makefile"}
    assert found == entry("api", "test", "make -C services/api test", reason)
