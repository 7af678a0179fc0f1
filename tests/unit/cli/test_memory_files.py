from __future__ import annotations

import io
import json
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nudge import limits

from .conftest import NOTE, Nudge, Server, Terminal

LINK = {"source_id": 12, "target_id": 7, "relation": "related_to"}
DOCUMENT: dict[str, Any] = {
    "memories": [NOTE, {**NOTE, "id": 7}],
    "links": [LINK],
    "exported_at": "2026-11-16T09:00:00Z",
}
IMPORTED: dict[str, Any] = {
    "imported": 2,
    "errors": [],
    "created": 1,
    "updated": 0,
    "unchanged": 1,
    "links": 1,
    "dry_run": False,
}


class PagedServer(Server):
    """Answers an export in two pages, and gives a transfer its name."""

    def call(self, method: str, params: Mapping[str, Any], **options: Any) -> Any:
        answer = super().call(method, dict(params), **options)
        if method == "nudge.memory_export":
            place = 1 if params["after"] else 0
            links = DOCUMENT["links"] if place else []
            return {
                **DOCUMENT,
                "memories": [DOCUMENT["memories"][place]],
                "links": links,
                "next": None if place else 12,
            }
        return {"imported": 0, "errors": [], "transfer": "t1"} if params.get("more") else answer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    fake = PagedServer()
    monkeypatch.setattr("nudge.ipc.client.Client", fake.client)
    synced = {"direction": "merge", "dry_run": False, "pulled": {"created": 2, "links": 0}, "pushed": {"created": 0}}
    fake.answers = {"nudge.memory_export": {}, "nudge.memory_import": IMPORTED, "nudge.memory_sync": synced}
    return fake


def sent(server: Server) -> list[dict[str, Any]]:
    return [fields for name, fields in server.calls if name == "nudge.memory_import"]


# export


def test_export_joins_the_pages(nudge: Nudge, server: Server) -> None:
    """stdout holds the document that import reads."""
    assert json.loads(nudge("memory", "export", "--namespace", "n").out) == DOCUMENT
    assert [fields for _, fields in server.calls] == [{"namespace": "n", "after": 0}, {"namespace": "n", "after": 12}]


@pytest.mark.usefixtures("server")
def test_export_to_a_file(nudge: Nudge, somewhere: Path) -> None:
    """The file is the owner's alone."""
    outcome = nudge("memory", "export", "-o", "notes.json")
    assert outcome.out == "✔ exported 2 notes and 1 link to notes.json\n"
    assert json.loads((somewhere / "notes.json").read_text()) == DOCUMENT
    assert stat.S_IMODE((somewhere / "notes.json").stat().st_mode) == 0o600


# import


@pytest.mark.parametrize("words", [["notes.json"], ["-"], []])
def test_import(
    nudge: Nudge, server: Server, somewhere: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """From a file or from stdin, which needs no word; one call when it fits into one."""
    (somewhere / "notes.json").write_text(json.dumps(DOCUMENT))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(DOCUMENT).encode())))
    assert nudge("memory", "import", *words, "--namespace", "n").out == (
        "✔ imported 2 notes: 1 created, 1 unchanged, 1 links\n"
    )
    rows = {name: DOCUMENT[name] for name in ("memories", "links")}
    assert sent(server) == [{**rows, "namespace": "n", "dry_run": False, "page": 0}]


def test_import_names_what_is_wrong(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """The first errors by the place of the note in the file, and the number of the others."""
    (somewhere / "x.json").write_text('{"memories": [{}]}')
    errors = [{"index": number, "error": "title: is required"} for number in range(12)]
    server.answers["nudge.memory_import"] = {**IMPORTED, "errors": [{"link": 0, "error": "is not one"}, *errors]}
    lines = nudge("memory", "import", "x.json", "--dry-run").out.splitlines()
    assert lines[0] == "nothing was stored (--dry-run); it would be: 1 created, 1 unchanged, 1 links"
    assert lines[1:3] == ["  link 1: is not one", "  note 1: title: is required"] and lines[-1] == "  and 3 more"


@pytest.mark.parametrize("text", ["[]", '{"memories": {}}', '{"memories": [7]}', '{"links": 1}', "{"])
def test_what_is_no_export_is_refused_here(nudge: Nudge, server: Server, somewhere: Path, text: str) -> None:
    """In one line, and nothing is sent."""
    (somewhere / "x.json").write_text(text)
    outcome = nudge("memory", "import", "x.json")
    assert outcome.code == 3 and "nudge memory export" in outcome.err and server.calls == []


def test_a_large_import_goes_in_pages(
    nudge: Nudge, server: Server, somewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under one transfer, with a bar on a terminal."""
    monkeypatch.setattr(limits, "MAX_BULK_NOTES", 2)
    (somewhere / "x.json").write_text(json.dumps({"memories": [NOTE] * 5, "links": [LINK]}))
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    assert nudge("memory", "import", "x.json").code == 0
    assert [(page["page"], len(page["memories"]), page.get("transfer"), page.get("more")) for page in sent(server)] == [
        (0, 2, None, True),
        (1, 2, "t1", True),
        (2, 1, "t1", None),
    ]
    assert sent(server)[-1]["links"] == [LINK]
    assert "importing notes" in screen.text() and "100%" in screen.text()


# sync, mine


def test_sync(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """A path of the caller's directory; both directions are told."""
    outcome = nudge("memory", "sync", "other.db", "--direction", "merge")
    assert outcome.out.splitlines() == ["✔ pulled: 2 created", "✔ pushed: nothing new"]
    assert server.params == {"path": str(somewhere / "other.db"), "direction": "merge", "dry_run": False}
    dry = nudge("memory", "sync", "other.db", "--dry-run")
    assert dry.out.startswith("pulled: ") and dry.err == "nothing was changed (--dry-run)\n"


def test_mine(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """Conversations become notes; what is empty or bad is counted."""
    said = [{"uuid": "1", "name": "A", "chat_messages": [{"sender": "human", "text": "Hello"}]}]
    exported = [*said, {"uuid": "2", "name": "B", "chat_messages": []}, 7]
    (somewhere / "conversations.json").write_text(json.dumps(exported))
    outcome = nudge("memory", "mine", "--format", "claude", "conversations.json", "--namespace", "chats")
    assert outcome.out.splitlines() == [
        "1 conversation (left out: 1 empty, 1 bad)",
        "✔ imported 2 notes: 1 created, 1 unchanged, 1 links",
    ]
    assert server.params["namespace"] == "chats" and len(server.params["memories"]) == 1
    missing = nudge("memory", "mine", "--format", "claude", "missing.json")
    assert missing.code == 3 and "cannot be read" in missing.err
