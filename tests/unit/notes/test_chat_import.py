"""Mining an export into notes: files on the client's side, one import through a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.notes.chat_import import mine_export
from nudge.storage.database import Database
from tests.contract.ways import InProcess


class Server(InProcess):
    def mine(self, format_: str, path: str, **options: Any) -> Any:
        return mine_export(self, str(self.app.directory), format_, path, **options)

    def __call__(self, operation: str, params: Any) -> Any:
        outcome = self.call(operation, params)
        assert "result" in outcome, outcome
        return outcome["result"]

    def titles(self) -> list[str]:
        return [note["title"] for note in self("nudge.memory_list", {"limit": 200})["memories"]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with closing(Database.open(str(tmp_path / "notes.db"))) as database:
        server = Server(database)
        server.app.directory = str(tmp_path / "run")
        yield server


def conversation(number: int, text: str = "Hello") -> dict[str, Any]:
    messages = [{"sender": "human", "text": f"{text} {number}"}]
    return {
        "uuid": f"{number:08}-0",
        "name": f"C{number}",
        "updated_at": "2025-01-01T00:00:00Z",
        "chat_messages": messages,
    }


def test_a_second_run_stores_nothing(server: Server, tmp_path: Path) -> None:
    """A folder with `conversations.json` will do; bad records are counted."""
    (tmp_path / "conversations.json").write_text(json.dumps([conversation(1), 7, conversation(2)]))
    first = server.mine("claude", str(tmp_path), namespace="chats")
    assert (first["conversations"], first["bad"], first["created"], first["errors"]) == (2, 1, 2, [])
    assert sorted(title.split()[0] for title in server.titles()) == ["C1", "C2"]
    again = server.mine("claude", str(tmp_path / "conversations.json"), namespace="chats")
    assert (again["created"], again["updated"], again["unchanged"]) == (0, 0, 2)


def test_a_dry_run_stores_nothing(server: Server, tmp_path: Path) -> None:
    """It says what would be stored."""
    (tmp_path / "conversations.json").write_text(json.dumps([conversation(1)]))
    assert server.mine("claude", str(tmp_path), dry_run=True)["created"] == 1
    assert server.titles() == []


def test_a_large_export_is_one_import(server: Server, tmp_path: Path) -> None:
    """Progress is told note by note, and everything is there at the end."""
    (tmp_path / "conversations.json").write_text(
        json.dumps([conversation(number, "x" * 9_000) for number in range(90)])
    )
    seen: list[int] = []
    result = server.mine("claude", str(tmp_path), progress=seen.append)
    assert result["created"] == 90 and len(server.titles()) == 90
    assert seen == [1] * 90


def test_a_slack_folder(server: Server, tmp_path: Path) -> None:
    """Channels are folders with a file a day; a file that is no JSON is a bad record."""
    day = tmp_path / "export" / "ops" / "2025-01-01.json"
    day.parent.mkdir(parents=True)
    day.write_text(json.dumps([{"user": "U1", "text": "Staging is down", "ts": "1735689600.1"}]))
    (day.parent / "2025-01-02.json").write_text("{")
    (tmp_path / "export" / "users.json").write_text(json.dumps([{"id": "U1", "name": "ann"}]))
    result = server.mine("slack", str(tmp_path / "export"))
    assert (result["conversations"], result["bad"], result["created"]) == (1, 1, 1)
    [note] = server("nudge.memory_recall", {"context": "staging"})["memories"]
    assert (note["title"], note["content"]) == ("#ops 2025-01-01", "ann: Staging is down")


def test_an_empty_export_is_no_error(server: Server, tmp_path: Path) -> None:
    """There is nothing to store."""
    (tmp_path / "conversations.json").write_text("[]")
    assert server.mine("chatgpt", str(tmp_path))["created"] == 0


@pytest.mark.parametrize(("format_", "name"), [("claude", "absent.json"), ("claude", "text"), ("slack", "text")])
def test_what_cannot_be_read_is_refused(server: Server, tmp_path: Path, format_: str, name: str) -> None:
    """With the name of the file."""
    (tmp_path / "text").write_text("no JSON")
    with pytest.raises(Invalid):
        server.mine(format_, str(tmp_path / name))


@pytest.mark.parametrize("format_", ["claude", "chatgpt", "slack"])
def test_what_may_never_end_is_not_read(server: Server, tmp_path: Path, format_: str) -> None:
    """A device and a pipe are refused by name, as the file itself, in the folder of an export and in that of a
    channel."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder" / "channel").mkdir(parents=True)
    os.symlink("/dev/zero", tmp_path / "folder" / "conversations.json")
    os.mkfifo(tmp_path / "folder" / "channel" / "2025-01-01.json")
    for path in ("/dev/zero", str(tmp_path / "pipe"), str(tmp_path / "folder")):
        with pytest.raises(Invalid, match=r"it is not a regular file|must be the folder"):
            server.mine(format_, path)
    assert server.titles() == []


def test_a_mined_file_has_a_limit(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than can be read at once is refused, with the limit."""
    monkeypatch.setattr(limits, "MAX_MINED_FILE_BYTES", limits.MIB)
    (tmp_path / "conversations.json").write_text(json.dumps([conversation(1, "x" * limits.MIB)]))
    with pytest.raises(Invalid, match=r"conversations.json is larger than 1 MiB"):
        server.mine("claude", str(tmp_path))
