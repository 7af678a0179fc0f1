"""The client's side of `nudge note mine`: writes the conversations in the export of a chat program to a file, which
PRIMARY imports. All notes are stored, or none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nudge.core import files, limits, transfer_files
from nudge.core.errors import Invalid
from nudge.notes import chat_exports
from nudge.notes.chat_exports import CHATGPT, CLAUDE, SLACK, Conversation, ConversationCounts

Call = Callable[[str, Mapping[str, Any]], Any]
_CONVERSATIONS, _USERS = "conversations.json", "users.json"


def mine_export(
    call: Call,
    directory: str,
    format_: str,
    path: str,
    *,
    namespace: str | None = None,
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Import every conversation of an export as notes. Return the result of the import, with the number of
    conversations, and of those that were empty or `bad`: not understood. `directory` is the runtime directory;
    `progress` is called with the number of notes of each step."""
    mined = ConversationCounts()
    with transfer_files.reserved(directory) as name:
        with transfer_files.created(directory, name) as file:
            before = b'{"memories":[\n'
            for note in chat_exports.notes_of(format_, _conversations(format_, Path(path)), mined):
                file.write(before + json.dumps(note).encode())
                before = b",\n"
                progress(1)
            file.write((b"" if before == b",\n" else before) + b"]}")
        fields = {"namespace": namespace} if namespace else {}
        result = call("nudge.memory_import", {"file": name, **fields, "dry_run": dry_run})
    counts = {"conversations": mined.conversations, "empty": mined.empty, "bad": mined.bad}
    return {**counts, **result}


def _conversations(format_: str, path: Path) -> Iterator[Conversation | None]:
    if format_ == SLACK:
        return _slack_days(path)
    file = path / _CONVERSATIONS if path.is_dir() else path
    exported = _load(file)
    if exported is None:
        raise Invalid(f"{file} is not JSON", field="path")
    return {CLAUDE: chat_exports.claude, CHATGPT: chat_exports.chatgpt}[format_](exported)


def _slack_days(folder: Path) -> Iterator[Conversation | None]:
    """Slack writes a file for each day of each channel; a file that is not JSON is a bad record."""
    if not folder.is_dir():
        raise Invalid("must be the folder of an unpacked Slack export", field="path")
    users = chat_exports.slack_users(_load(folder / _USERS)) if (folder / _USERS).is_file() else {}
    for channel in sorted(entry for entry in folder.iterdir() if entry.is_dir()):
        for day in sorted(channel.glob("*.json")):
            yield from chat_exports.slack(channel.name, day.stem, _load(day), users)


def _load(file: Path) -> Any:
    """The content of a JSON file; None when it is not JSON. A pipe or a device, which may never end, is refused."""
    try:
        content = files.read_regular(os.fspath(file), limits.MAX_MINED_FILE_BYTES + 1)
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror or error}", field="path") from None
    if len(content) > limits.MAX_MINED_FILE_BYTES:
        raise Invalid(f"{file} is larger than {limits.MAX_MINED_FILE_BYTES // limits.MIB} MiB", field="path")
    try:
        return json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
