"""The client's side of an import of notes: sends an exported file, or the conversations of a chat program, to PRIMARY
in pages. All notes are stored, or none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nudge import files, limits
from nudge.errors import Invalid
from nudge.memories import chat_exports
from nudge.memories.chat_exports import CHATGPT, CLAUDE, SLACK, Conversation, ConversationCounts

Call = Callable[[str, Mapping[str, Any]], Any]
Page = dict[str, list[dict[str, Any]]]
_CONVERSATIONS, _USERS = "conversations.json", "users.json"


def send_notes(
    call: Call,
    memories: Iterable[dict[str, Any]],
    links: Iterable[dict[str, Any]],
    fields: Mapping[str, Any],
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Send one import and return its result. `fields` are sent with each page; `progress` is called with the number of
    notes sent so far. Raises NotFound when the server does not know the transfer: send it again from the beginning."""
    transfer: dict[str, Any] = {}
    sent, number = 0, 0
    held: Page | None = None
    for page in _pages(memories, links):
        if held is not None:
            answer = call("nudge.memory_import", {**held, **fields, **transfer, "page": number, "more": True})
            transfer = {"transfer": answer["transfer"]}
            number, sent = number + 1, sent + len(held["memories"])
            progress(sent)
        held = page
    last = held or {"memories": [], "links": []}
    result: dict[str, Any] = call("nudge.memory_import", {**last, **fields, **transfer, "page": number})
    progress(sent + len(last["memories"]))
    return {name: value for name, value in result.items() if name != "transfer"}


def _pages(memories: Iterable[dict[str, Any]], links: Iterable[dict[str, Any]]) -> Iterator[Page]:
    """Pages that fit into a call: first the notes, then the links."""
    page: Page = {"memories": [], "links": []}
    room = limits.PAGE_BYTES
    for kind, rows in (("memories", memories), ("links", links)):
        for row in rows:
            size = len(json.dumps(row))
            if any(page.values()) and (size > room or len(page["memories"]) == limits.MAX_BULK_NOTES):
                yield page
                page, room = {"memories": [], "links": []}, limits.PAGE_BYTES
            page[kind].append(row)
            room -= size
    if any(page.values()):
        yield page


# Exports of chat programs


def mine_export(
    call: Call,
    format_: str,
    path: str,
    *,
    namespace: str | None = None,
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Send every conversation of an export as notes. Return the result of the import, with the number of conversations,
    and of those that were empty or `bad`: not understood. `progress` is as for `send_notes`."""
    mined = ConversationCounts()
    notes = chat_exports.notes_of(format_, _conversations(format_, Path(path)), mined)
    fields = {"namespace": namespace} if namespace else {}
    result = send_notes(call, notes, (), {**fields, "dry_run": dry_run}, progress)
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
