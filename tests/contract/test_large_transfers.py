"""Exports and imports of any size: whole or refused, through each interface that takes them."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits, paths
from nudge.storage.database import Database
from tests.contract.ways import EMPTY_STORE, Http, Served, served
from tests.harness import Machine, eventually

NOTES = 2_502
PAGE = {"memories": [{"title": "a", "content": "b"}], "links": [], "next": 737}
TOO_LARGE = b'{"memories": [' + b" " * limits.MAX_IMPORT_BODY_BYTES


def notes(count: int = NOTES, size: int = 60) -> dict[str, Any]:
    memories = [
        {"id": n, "title": f"Note {n}", "content": f"{n} " + "x" * size, "tier": "long"} for n in range(1, count)
    ]
    memories.append({"id": count, "title": f"Note {count}", "content": "größer als ein Byte: €, 😀", "tier": "long"})
    return {"memories": memories, "links": [{"source_id": 1, "target_id": count, "relation": "related_to"}]}


def hints(count: int = 300) -> dict[str, Any]:
    parts = {f"c{part}": {f"k{n}": "x" * 8_000 for n in range(part, count, 3)} for part in range(3)}
    return {"components": {component: {"hints": part} for component, part in parts.items()}}


def titles(document: dict[str, Any]) -> list[str]:
    return sorted(note["title"] for note in document["memories"])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with closing(Database.open(str(tmp_path / "nudge.db"))) as database, served(database) as running:
        running.app.directory = str(tmp_path)
        yield running


@pytest.fixture
def script(server: Served) -> Iterator[Http]:
    with server.script() as opened:
        yield opened


def left_files(server: Served) -> list[str]:
    folder = Path(str(server.app.directory)) / paths.TRANSFERS
    return os.listdir(folder) if folder.exists() else []


# Notes


def test_the_plain_export_is_whole(machine: Machine, make_machine: Any) -> None:
    """2,502 notes: what the command and `GET /api/v1/export` give has all of them, and another machine imports it."""
    file = machine.base / "notes.json"
    file.write_text(json.dumps(notes()))
    assert machine.json("memory", "import", str(file))["created"] == NOTES
    with closing(Http.to(machine)) as script:
        downloaded = script.exchange("GET", "/api/v1/export")
    exported = machine.json("memory", "export")
    assert downloaded.status == 200 and downloaded.headers["content-type"] == "application/json"
    for document in (downloaded.json, exported):
        assert titles(document) == titles(notes()) and len(document["links"]) == 1 and "next" not in document
    file.write_bytes(downloaded.body)
    other = make_machine()
    assert other.json("memory", "import", str(file))["created"] == NOTES
    assert titles(other.json("memory", "export")) == titles(notes())
    left = Path(machine.runtime) / paths.TRANSFERS
    assert os.listdir(left) == [] and left.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("size", [60, 4_000])
def test_what_http_exports_http_imports(script: Http, server: Served, size: int) -> None:
    """Of 2,502 notes in less than 1 MiB and in 10 MiB."""
    sent = script.exchange("POST", "/api/v1/import", notes(size=size))
    assert (sent.status, sent.json["created"], sent.json["links"], sent.json["errors"]) == (200, NOTES, 1, [])
    exported = script.exchange("GET", "/api/v1/export")
    assert titles(exported.json) == titles(notes()) and exported.json["memories"][-1]["content"].endswith("€, 😀")
    assert (len(exported.body) > limits.MAX_BODY_BYTES) == (size > 60)
    again = script.exchange("POST", "/api/v1/import", exported.body)
    assert again.json.get("unchanged") == NOTES, again
    assert left_files(server) == []


def test_the_head_of_an_export_has_its_length(script: Http) -> None:
    """As of any other path; the connection goes on."""
    script.exchange("POST", "/api/v1/import", notes(size=4_000))
    head = script.exchange("HEAD", "/api/v1/export")
    assert head.status == 200 and int(head.headers["content-length"]) > limits.MAX_BODY_BYTES
    assert len(script.exchange("GET", "/api/v1/export").body) == int(head.headers["content-length"])


def test_one_namespace_can_be_exported(script: Http) -> None:
    """The parameters of an operation are those of its large form."""
    script.exchange("POST", "/api/v1/import?namespace=a", notes(size=4_000))
    script.exchange("POST", "/api/v1/import", {**notes(3), "namespace": "b"})
    assert titles(script.exchange("GET", "/api/v1/export?namespace=b").json) == titles(notes(3))
    assert len(script.exchange("GET", "/api/v1/export?namespace=a").json["memories"]) == NOTES


@pytest.mark.parametrize("following", [737, "t:500"])
def test_a_page_is_not_imported_as_if_it_were_all(script: Http, machine: Machine, following: object) -> None:
    """A file that says in `next` that it has more is refused by each interface, with the command that exports all."""
    page = {**PAGE, "next": following}
    hint_page = {"components": {"c": {"hints": {"k": "v"}}}, "next": following}
    sentence = "this is one page of an export"
    for path, body in (("/api/v1/import", page), ("/api/v1/hints/import", {"payload": hint_page})):
        refused = script.exchange("POST", path, body)
        assert refused.status == 400 and sentence in refused.json["message"], refused
    refused = script.call("nudge.memory_import", page)["error"]
    assert sentence in refused["message"] and "nudge note export -o FILE" in refused["message"]
    assert sentence in script.call("nudge.import", {"payload": hint_page})["error"]["message"]
    assert script.exchange("GET", "/api/v1/export").json["memories"] == []
    file = machine.base / "page.json"
    for words, document in ((["memory", "import"], page), (["import"], hint_page)):
        for filler in ("", "x" * limits.MIB):
            file.write_text(json.dumps({**document, **({"created_at": filler} if filler else {})}))
            done = machine.cli(*words, str(file))
            assert done.returncode == 3 and (sentence in done.stderr or filler), done.stderr
    assert machine.json("memory", "export")["memories"] == [] and machine.json("ls")["components"] == []


def test_a_whole_export_of_an_earlier_version_is_imported(script: Http) -> None:
    """It said `next: null` when it was all."""
    document = {**PAGE, "next": None, "exported_at": "2026-11-16T08:00:00+00:00"}
    assert script.exchange("POST", "/api/v1/import", document).json["created"] == 1
    assert script.call("nudge.memory_import", document)["result"]["unchanged"] == 1


# Limits and faults


def test_an_import_over_http_has_16_mib(script: Http, server: Served) -> None:
    """More is refused with the command that takes it, by its length and without one; nothing is stored or left."""
    for body in (TOO_LARGE, iter([TOO_LARGE[: limits.MIB]] * 17)):
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        sent = {"Content-Type": "application/json", "Authorization": f"Bearer {server.token}"}
        with closing(link):
            try:
                link.request("POST", "/api/v1/import", body, sent, encode_chunked=not isinstance(body, bytes))
            except (BrokenPipeError, ConnectionResetError):
                pass  # it answers before it has read everything
            answer = link.getresponse()
            refused = json.loads(answer.read())
        assert answer.status == 413 and "16 MiB" in refused["message"] and "nudge note import" in refused["message"]
    assert left_files(server) == [] and script.exchange("GET", "/api/v1/export").json["memories"] == []


def test_a_body_that_ends_early_stores_nothing(script: Http, server: Served) -> None:
    """A connection that is cut in the middle of an import."""
    body = json.dumps(notes(size=4_000)).encode()
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    link.putrequest("POST", "/api/v1/import")
    for name, text in {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {server.token}",
        "Content-Length": str(len(body)),
    }.items():
        link.putheader(name, text)
    link.endheaders(body[: len(body) // 2])
    eventually(lambda: left_files(server), "the body is written to a file")
    link.close()
    eventually(lambda: left_files(server) == [], "the file is removed")
    assert script.exchange("GET", "/api/v1/export").json["memories"] == []


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "must be an object"),
        (b'{"memories": [{"title": "a", "content": "b"}]', 400, "Parse error"),
        (b'{"memories": {}}', 400, "memories: must be a list"),
        (b'{"memories": [7]}', 400, "memories[0]: must be an object"),
        (b'{"memories": [], "memories": []}', 400, "the same key twice"),
        (b'{"memories": [], "dryrun": true}', 400, "dryrun: is not a parameter"),
        (b'{"memories": [], "dry_run": 7}', 400, "dry_run: must be true or false"),
        (b'{"components": {}}', 400, "nudge import FILE"),
        (b'{"memories": []} x', 400, "Extra data"),
    ],
)
def test_what_is_no_import_is_refused(script: Http, server: Served, body: bytes, status: int, said: str) -> None:
    """A body that goes into a file is as strict as any other."""
    refused = script.exchange("POST", "/api/v1/import", body)
    assert refused.status == status and said in refused.json["message"], refused
    assert left_files(server) == []


def test_a_repeated_import_is_known_by_its_body(script: Http) -> None:
    """The same request id with the same body gets the first answer; with another body it is refused."""
    first, again, other = (
        script.exchange("POST", "/api/v1/import", body, Nudge_Request_Id="one")
        for body in (notes(3), notes(3), notes(4))
    )
    assert first.json["created"] == 3 and again.json == first.json
    assert other.status == 400 and other.json["data"]["field"] == "once"


def test_links_may_come_first(script: Http) -> None:
    """The order of the members of a file says nothing."""
    whole = notes(3)
    body = {
        "dry_run": False,
        "links": whole["links"],
        "memories": [{"title": ""}, *whole["memories"]],
        "namespace": "n",
    }
    sent = script.exchange("POST", "/api/v1/import", body).json
    assert (sent["created"], sent["links"], [error["index"] for error in sent["errors"]]) == (3, 1, [0])


def test_large_things_have_their_command(script: Http) -> None:
    """JSON-RPC, like MCP, has no room for more than 1 MiB, and says which command has it."""
    script.exchange("POST", "/api/v1/import", notes(size=4_000))
    refused = script.call("nudge.memory_export", {})["error"]
    assert refused["data"]["reason"] == "E_INVALID" and "nudge note export -o FILE" in refused["message"]
    body = {"jsonrpc": "2.0", "id": 1, "method": "nudge.memory_import", "params": notes(size=4_000)}
    large = script.post("/", body)
    assert large.status == 413 and "nudge note import FILE" in large.json["error"]["message"]


def test_a_full_disk_stores_nothing(script: Http, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import or an export that finds no room for its file is refused with the reason."""
    script.exchange("POST", "/api/v1/import", notes(size=4_000))
    full = partial(open, "/dev/full")
    monkeypatch.setattr("nudge.core.transfer_files.open", lambda _descriptor, mode: full(mode), raising=False)
    refused = script.exchange("POST", "/api/v1/import", notes(5))
    assert refused.status == 507 and "nothing was changed" in refused.json["message"]
    refused = script.exchange("GET", "/api/v1/export")
    assert refused.status == 507 and "No space left" in refused.json["message"]
    assert left_files(server) == []


# Hints


def test_a_large_store_of_hints_is_exported_whole(machine: Machine) -> None:
    """Over HTTP and by the command, more than 1 MiB; and imported again, both ways."""
    file = machine.base / "hints.json"
    file.write_text(json.dumps(hints()))
    assert machine.json("import", str(file))["imported"] == 300
    with closing(Http.to(machine)) as script:
        downloaded = script.exchange("GET", "/api/v1/hints/export")
        assert downloaded.status == 200 and downloaded.json["payload"] == machine.json("export")["payload"]
        assert sum(len(part["hints"]) for part in downloaded.json["payload"]["components"].values()) == 300
        assert "nudge export -o FILE" in script.call("nudge.export", {})["error"]["message"]
        script.call("nudge.import", EMPTY_STORE)
        assert script.exchange("POST", "/api/v1/hints/import?mode=replace", downloaded.body).json["imported"] == 300
    file.write_bytes(downloaded.body)
    assert machine.json("import", str(file))["skipped"] == 300
