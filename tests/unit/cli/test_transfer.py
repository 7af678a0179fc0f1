from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits, paths, transfer_files
from nudge.core.errors import RemoteError, Unavailable
from tests.unit.cli.conftest import HINT, NOTE, Nudge, Server, Typed

REDACTED = {name: value for name, value in HINT.items() if name != "value"} | {"redacted": True}
PAYLOAD: dict[str, Any] = {
    "schema_version": "1.0",
    "created_at": "2026-11-16T08:00:00.000000Z",
    "session_id": "s",
    "components": {"api": {"hints": {"build": HINT, "test": [HINT, REDACTED]}}},
}


LINK = {"source_id": 12, "target_id": 7, "relation": "related_to"}
NOTES_DOCUMENT: dict[str, Any] = {
    "memories": [NOTE, {**NOTE, "id": 7}],
    "links": [LINK],
    "exported_at": "2026-11-16T09:00:00Z",
}
NOTES_IMPORTED: dict[str, Any] = {
    "imported": 1,
    "errors": [],
    "created": 1,
    "updated": 0,
    "unchanged": 1,
    "links": 1,
    "dry_run": False,
}


class TransferServer(Server):
    """Answers an export of the history in two pages, a large export of notes with a file, and reads the file of an
    import."""

    exports_file: dict[str, Any] | None = None

    def __init__(self) -> None:
        super().__init__()
        self.imported: list[Any] = []

    def call(self, method: str, params: Mapping[str, Any], **options: Any) -> Any:
        if method == "nudge.export_all" and "after" not in params:
            return {"rows": [{"id": 1}], "next": "1"}
        answer = super().call(method, dict(params), **options)
        if "import" in method and "file" in params:
            with transfer_files.open_written(paths.runtime_dir(), params["file"]) as file:
                self.imported.append(json.load(file))
        if "export" in method and self.exports_file is not None:
            with transfer_files.created(paths.runtime_dir(), params["file"]) as file:
                file.write(json.dumps(self.exports_file).encode())
            return {"file": params["file"]}
        return answer


def left_files() -> list[str]:
    folder = os.path.join(paths.runtime_dir(), paths.TRANSFERS)
    return os.listdir(folder) if os.path.isdir(folder) else []


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> TransferServer:
    fake = TransferServer()
    monkeypatch.setattr("nudge.process.client.Client", fake.client)
    synced = {"direction": "merge", "dry_run": False, "pulled": {"created": 2, "links": 0}, "pushed": {"created": 0}}
    fake.answers = {
        "nudge.memory_export": NOTES_DOCUMENT,
        "nudge.memory_import": NOTES_IMPORTED,
        "nudge.memory_sync": synced,
    }
    return fake


def sent_notes(server: Server) -> list[dict[str, Any]]:
    return [fields for name, fields in server.calls if name == "nudge.memory_import"]


@pytest.fixture(autouse=True)
def transferring(server: Server) -> None:
    server.answers["nudge.export"] = {"payload": PAYLOAD}
    server.answers["nudge.import"] = {
        "imported": 1,
        "skipped": 1,
        "removed": 0,
        "reasons": [{"component": "api", "key": "test", "reason": "not newer"}],
    }


def test_an_export_of_the_history_has_no_component(nudge: Nudge, server: Server) -> None:
    """An option that would be ignored is refused."""
    outcome = nudge("export", "--all", "--component", "api")
    assert (outcome.code, server.calls) == (2, []) and "--component cannot be combined with --all" in outcome.err


def test_export_is_the_payload(nudge: Nudge, server: Server) -> None:
    """stdout holds the document that import reads; what was left out is a remark beside it."""
    outcome = nudge("export", "--format", "json")
    assert json.loads(outcome.out) == PAYLOAD
    assert outcome.err == "1 secret value left out; include it with --reveal\n"
    assert server.params.keys() == {"file"}


@pytest.mark.parametrize("as_json", [False, True])
def test_a_large_export_comes_in_a_file(nudge: Nudge, server: TransferServer, as_json: bool) -> None:
    """It is printed like a small one, and the file is removed."""
    server.exports_file = {"payload": PAYLOAD}
    outcome = nudge("export", *(["--json"] if as_json else []))
    assert json.loads(outcome.out) == ({"payload": PAYLOAD} if as_json else PAYLOAD)
    server.exports_file = NOTES_DOCUMENT
    assert json.loads(nudge("note", "export").out) == NOTES_DOCUMENT
    assert left_files() == []


def test_export_json_is_the_result(nudge: Nudge) -> None:
    """--json is the exact result object here too."""
    assert json.loads(nudge("export", "--json").out) == {"payload": PAYLOAD}


def test_export_flags(nudge: Nudge, server: Server) -> None:
    """One component, and secrets on request."""
    nudge("export", "--component", "api", "--reveal")
    assert {name: server.params[name] for name in ("component", "reveal")} == {"component": "api", "reveal": True}


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


def test_an_export_of_the_history_that_is_interrupted(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """The file is replaced when all pages are written; after Ctrl-C or an error the old one stays, and nothing else."""
    target = somewhere / "history.jsonl"
    target.write_text("old")
    for code, end in ((130, KeyboardInterrupt()), (4, Unavailable("gone"))):
        server.answers["nudge.export_all"] = end
        assert nudge("export", "--all", "-o", "history.jsonl").code == code
        assert target.read_text() == "old" and os.listdir(somewhere) == ["history.jsonl"]
    server.answers["nudge.export_all"] = {"rows": [{"id": 2}], "next": None}
    assert nudge("export", "--all", "-o", "history.jsonl").code == 0
    assert target.read_text() == '{"id":1}\n{"id":2}\n' and os.listdir(somewhere) == ["history.jsonl"]


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


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 3)])
def test_replacing_all_hints_asks(
    nudge: Nudge, server: Server, somewhere: Path, typed: Typed, answer: str, code: int
) -> None:
    """At a terminal, with the number of hints that are replaced; the other modes remove nothing and do not ask."""
    (somewhere / "hints.json").write_text(json.dumps(PAYLOAD))
    components = [{"name": "api", "hint_count": 2}, {"name": "web", "hint_count": 5}]
    server.answers["nudge.list_components"] = {"components": components}
    typed.lines = [answer]
    outcome = nudge("import", "hints.json", "--mode", "replace")
    said = "" if answer == "y" else "nothing was changed\n"
    assert (outcome.code, outcome.err) == (code, f"Replace all 7 hints? [y/N] {said}")
    assert ("nudge.import" in dict(server.calls)) == (answer == "y")
    for words in (["--mode", "replace", "--yes"], ["--mode", "skip"], []):
        assert nudge("import", "hints.json", *words).err == ""


def test_replacing_nothing_does_not_ask(nudge: Nudge, server: Server, somewhere: Path, typed: Typed) -> None:
    """Where there is no hint yet, none is removed."""
    (somewhere / "hints.json").write_text(json.dumps(PAYLOAD))
    server.answers["nudge.list_components"] = {"components": []}
    assert typed.lines == [] and nudge("import", "hints.json", "--mode", "replace").err == ""


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
    assert "a session ends with: nudge stop --forget" in missing.err and missing.err.count("\n") == 1
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


@pytest.mark.parametrize("mode", ["merge", "replace", "skip"])
def test_a_large_import_goes_through_a_file(
    nudge: Nudge, server: TransferServer, somewhere: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """One call and one answer, from a file or from stdin; the file is removed, also after an error."""
    hints = {f"k{number}": {**HINT, "value": "x" * 8_000} for number in range(300)}
    document = {**PAYLOAD, "components": {"api": {"hints": hints}}}
    (somewhere / "x.json").write_text(json.dumps(document))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(document).encode())))
    for source in ("x.json", "-"):
        assert nudge("import", source, "--mode", mode).out.startswith("✔ imported 1 hint, skipped 1")
        assert server.params == {"file": server.params["file"], "mode": mode}
    assert server.imported == [document] * 2 and left_files() == []
    server.answers["nudge.import"] = Unavailable("gone")
    assert nudge("import", "x.json").code == 4 and left_files() == []


@pytest.mark.parametrize("words", [["import"], ["note", "import"]])
def test_what_may_never_end_is_not_copied(nudge: Nudge, server: Server, words: list[str]) -> None:
    """A device that gives no JSON is refused at its first bytes."""
    for device in ("/dev/zero", "/dev/urandom"):
        outcome = nudge(*words, device)
        assert outcome.code == 3 and f"{device} is not JSON" in outcome.err and server.calls == []
    assert left_files() == []


def test_what_the_server_cannot_read_is_named(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """The server reads a large document; the error names the document and the command that writes such."""
    (somewhere / "x.json").write_text('{"a": "' + "x" * limits.MIB)
    error = {"code": -32700, "message": "Parse error at 7: Unterminated string", "data": {"reason": "E_PARSE"}}
    server.answers["nudge.import"] = RemoteError(error)
    outcome = nudge("import", "x.json")
    assert outcome.code == 3 and "x.json is not JSON: Parse error at 7" in outcome.err and "nudge export" in outcome.err


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


# Notes


def test_notes_export_is_the_document(nudge: Nudge, server: Server) -> None:
    """stdout holds the document that import reads."""
    assert json.loads(nudge("note", "export", "--repo", "n").out) == NOTES_DOCUMENT
    assert [fields["namespace"] for _, fields in server.calls] == ["n"]


@pytest.mark.usefixtures("server")
def test_notes_export_to_a_file(nudge: Nudge, somewhere: Path) -> None:
    """The file is the owner's alone."""
    outcome = nudge("note", "export", "-o", "notes.json")
    assert outcome.out == "✔ exported 2 notes and 1 link to notes.json\n"
    assert json.loads((somewhere / "notes.json").read_text()) == NOTES_DOCUMENT
    assert stat.S_IMODE((somewhere / "notes.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("words", [["notes.json"], ["-"], []])
def test_notes_import(
    nudge: Nudge, server: Server, somewhere: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """From a file or from stdin, which needs no word; one call when it fits into one."""
    (somewhere / "notes.json").write_text(json.dumps(NOTES_DOCUMENT))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(NOTES_DOCUMENT).encode())))
    assert nudge("note", "import", *words, "--repo", "n").out == (
        "✔ imported 1 note: 1 created, 1 unchanged, 1 links\n"
    )
    assert sent_notes(server) == [{**NOTES_DOCUMENT, "namespace": "n", "dry_run": False}]


def test_notes_import_names_what_is_wrong(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """The first errors by the place of the note in the file, and the number of the others."""
    (somewhere / "x.json").write_text('{"memories": [{}]}')
    errors = [{"index": number, "error": "title: is required"} for number in range(12)]
    server.answers["nudge.memory_import"] = {**NOTES_IMPORTED, "errors": [{"link": 0, "error": "is not one"}, *errors]}
    lines = nudge("note", "import", "x.json", "--dry-run").out.splitlines()
    assert lines[0] == "nothing was stored (--dry-run); it would be: 1 created, 1 unchanged, 1 links"
    assert lines[1:3] == ["  link 1: is not one", "  note 1: title: is required"] and lines[-1] == "  and 3 more"


@pytest.mark.parametrize(
    "text", ["[]", '{"name": "package", "version": "1"}', '{"memories": {}}', '{"memories": [7]}', '{"links": 1}', "{"]
)
def test_notes_what_is_no_export_is_refused_here(nudge: Nudge, server: Server, somewhere: Path, text: str) -> None:
    """In one line, and nothing is sent."""
    (somewhere / "x.json").write_text(text)
    outcome = nudge("note", "import", "x.json")
    assert outcome.code == 3 and "nudge note export" in outcome.err and server.calls == []


def test_an_import_of_notes_as_hints_names_its_command(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """The output of `nudge note export` is refused with the command that reads it."""
    (somewhere / "x.json").write_text(json.dumps(NOTES_DOCUMENT))
    outcome = nudge("import", "x.json")
    assert outcome.code == 3 and "nudge note import" in outcome.err and server.calls == []


def test_notes_an_export_of_hints_names_its_command(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """The output of `nudge export` is refused with the command that reads it."""
    (somewhere / "x.json").write_text('{"components": {}}')
    outcome = nudge("note", "import", "x.json")
    assert outcome.code == 3 and "x.json has no list `memories`" in outcome.err and server.calls == []
    assert "nudge import" in outcome.err


@pytest.mark.parametrize("content", ["x", "x" * 1_000])
def test_notes_a_large_import_goes_through_a_file(
    nudge: Nudge, server: TransferServer, somewhere: Path, content: str
) -> None:
    """Also when its many notes are small."""
    document = {"memories": [{**NOTE, "content": content}] * (limits.MAX_BULK_NOTES + 1), "links": [LINK]}
    (somewhere / "x.json").write_text(json.dumps(document))
    assert nudge("note", "import", "x.json").code == 0
    [sent] = sent_notes(server)
    assert sent == {"file": sent["file"], "dry_run": False}
    assert server.imported == [document] and left_files() == []


def test_notes_sync(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """A path of the caller's directory; both directions are told."""
    (somewhere / "other.db").touch()
    outcome = nudge("note", "sync", "other.db", "--direction", "merge")
    assert outcome.out.splitlines() == ["✔ pulled: 2 created", "✔ pushed: nothing new"]
    assert server.params == {"path": str(somewhere / "other.db"), "direction": "merge", "dry_run": False}
    dry = nudge("note", "sync", "other.db", "--dry-run")
    assert dry.out.startswith("pulled: ") and dry.err == "nothing was changed (--dry-run)\n"
    assert nudge("note", "sync", "new.db", "--direction", "push").code == 0  # which creates it


def test_notes_mine(nudge: Nudge, server: TransferServer, somewhere: Path) -> None:
    """Conversations become notes; what is empty or bad is counted."""
    said = [{"uuid": "1", "name": "A", "chat_messages": [{"sender": "human", "text": "Hello"}]}]
    exported = [*said, {"uuid": "2", "name": "B", "chat_messages": []}, 7]
    (somewhere / "conversations.json").write_text(json.dumps(exported))
    outcome = nudge("note", "mine", "--format", "claude", "conversations.json", "--repo", "chats")
    assert outcome.out.splitlines() == [
        "1 conversation (left out: 1 empty, 1 bad)",
        "✔ imported 1 note: 1 created, 1 unchanged, 1 links",
    ]
    assert server.params["namespace"] == "chats" and len(server.imported[0]["memories"]) == 1
    missing = nudge("note", "mine", "--format", "claude", "missing.json")
    assert missing.code == 2 and "missing.json does not exist" in missing.err
