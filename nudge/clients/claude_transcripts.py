"""Claude Code's transcripts, as the hook events that they stand for. Nothing here writes, sends or redacts.

A transcript is a file of JSON lines in an undocumented format: what is not recognized is skipped.
"""

from __future__ import annotations

import json
from datetime import datetime

from nudge.core import limits
from nudge.core.text import CLIENT_OUTPUT, unwrap_command
from nudge.core.thin_json import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    Entry = dict[str, Any]
    Payload = dict[str, Any]

ENTRY_TYPES = ("assistant", "user", "system")
"""Of the entries that stand for hook events."""
# Entries under the user's name that are no prompt.
_NOT_A_PROMPT = (*CLIENT_OUTPUT, "[Request interrupted by user")
_COMMAND = "<command-"
# A call that was refused before it ran: no hook fires for it either.
_NEVER_RAN = ("<tool_use_error>", "The user doesn't want to ", "[Request interrupted by user", "Permission to use ")


class HookEvent:
    """A hook's payload, and when the hook would have run."""

    __slots__ = ("at", "payload")

    def __init__(self, at: float, payload: Payload) -> None:
        self.at, self.payload = at, payload


def entries(file: BinaryIO, offset: int) -> Iterator[tuple[int, int, Entry]]:
    """Every complete line from `offset` on that is not blank: its start, its end, and its JSON object (empty when it is
    none, or too long)."""
    file.seek(offset)
    while (line := _line(file)) is not None:
        raw, length = line
        if raw.strip() or length > len(raw):
            yield offset, offset + length, _parse(raw)
        offset += length


def _line(file: BinaryIO) -> tuple[bytes, int] | None:
    """A line and its length; b"" for one that is too long; None at the end, or when the last line is incomplete."""
    raw = file.readline(limits.MAX_TRANSCRIPT_LINE_BYTES)
    length = len(raw)
    if raw.endswith(b"\n"):
        return raw, length
    while len(raw) == limits.MAX_TRANSCRIPT_LINE_BYTES:
        raw = file.readline(limits.MAX_TRANSCRIPT_LINE_BYTES)
        length += len(raw)
        if raw.endswith(b"\n"):
            return b"", length
    return None


def _parse(raw: bytes) -> Entry:
    try:
        entry = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


class _ToolUse:
    __slots__ = ("arguments", "name", "start")

    def __init__(self, start: int, block: Entry) -> None:
        self.start, self.name, self.arguments = start, text_of(block, "name"), block.get("input")


class Transcript:
    """One file, read entry by entry. `seen` holds the ids of all entries of this run: a session that was resumed or
    forked under a new id begins with a copy of the old one's entries."""

    def __init__(self, seen: set[int], *, from_start: bool) -> None:
        self._seen = seen
        self._begun = not from_start
        self._copied = False
        self._first: float | None = None
        self._last: HookEvent | None = None
        self._calls: dict[str, _ToolUse] = {}
        self._command: tuple[int, HookEvent] | None = None

    def resume_at(self, end: int) -> int:
        """Where the next run should start after a line that ends at `end`: at the first entry that is not finished,
        such as a call without its result."""
        if not self._begun:
            return 0
        open_lines = [call.start for call in self._calls.values()] + ([self._command[0]] if self._command else [])
        return min(open_lines, default=end)

    def read(self, start: int, entry: Entry) -> Iterator[HookEvent]:
        """The hook events that an entry stands for."""
        readers = dict(zip(ENTRY_TYPES, (self._assistant, self._user, self._system), strict=True))
        reader = readers.get(text_of(entry, "type"))
        at = _seconds(entry.get("timestamp"))
        if (
            reader is None
            or at is None
            or not text_of(entry, "sessionId")
            or not text_of(entry, "cwd")
            or self._is_copy(entry)
        ):
            return
        self._first = at if self._first is None else self._first
        for event in reader(start, at, entry):
            yield from self._begin(event, entry)
            self._last = event
            yield event

    def end(self, now: float) -> Iterator[HookEvent]:
        """A transcript does not say that its session ended: a long silence does."""
        if self._last is None or "agent_id" in self._last.payload or now - self._last.at < limits.SILENT_SESSION:
            return
        yield HookEvent(
            self._last.at, {**_session(self._last.payload), "hook_event_name": "SessionEnd", "reason": "other"}
        )

    def _begin(self, first: HookEvent, entry: Entry) -> Iterator[HookEvent]:
        if self._begun:
            return
        self._begun = True
        if entry.get("isSidechain") is not True and self._first is not None:
            source = "fork" if self._copied else "startup"
            yield HookEvent(
                self._first, {**_session(first.payload), "hook_event_name": "SessionStart", "source": source}
            )

    def _is_copy(self, entry: Entry) -> bool:
        if not (identity := text_of(entry, "uuid")):
            return "forkedFrom" in entry
        copied = "forkedFrom" in entry or hash(identity) in self._seen
        self._seen.add(hash(identity))
        self._copied = self._copied or copied
        return copied

    # By the entry's type

    def _assistant(self, start: int, _at: float, entry: Entry) -> Iterator[HookEvent]:
        if self._command is not None and entry.get("isSidechain") is not True:
            (_, event), self._command = self._command, None
            yield event
        for block in _blocks(entry):
            if block.get("type") == "tool_use" and (identity := text_of(block, "id")):
                self._calls[identity] = _ToolUse(start, block)
        while len(self._calls) > limits.MAX_CALLS_OPEN:
            del self._calls[next(iter(self._calls))]

    def _user(self, start: int, at: float, entry: Entry) -> Iterator[HookEvent]:
        blocks = _blocks(entry)
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            call = self._calls.pop(text_of(block, "tool_use_id"), None)
            outcome = _outcome(entry, block, alone=len(results) == 1)
            if call is not None and outcome is not None:
                tool = {"tool_name": call.name, "tool_input": call.arguments, "tool_use_id": block["tool_use_id"]}
                yield HookEvent(at, {**_common(entry), **tool, **outcome})
        if not results and not any(entry.get(mark) is True for mark in ("isMeta", "isSidechain", "isCompactSummary")):
            yield from self._prompt(start, at, entry, _text(blocks))

    def _prompt(self, start: int, at: float, entry: Entry, text: str) -> Iterator[HookEvent]:
        """A slash command is a prompt only if the agent answers; `/clear` and the like are the client's own."""
        self._command = None
        if text.lstrip().startswith(_NOT_A_PROMPT):
            return
        identity = text_of(entry, "promptId") or text_of(entry, "uuid")
        prompt = {**_common(entry), "hook_event_name": "UserPromptSubmit", "prompt_id": identity}
        if text.lstrip().startswith(_COMMAND):
            self._command = (start, HookEvent(at, {**prompt, "prompt": unwrap_command(text)}))
        else:
            yield HookEvent(at, {**prompt, "prompt": text})

    def _system(self, _start: int, at: float, entry: Entry) -> Iterator[HookEvent]:
        if entry.get("subtype") == "compact_boundary":
            details = entry.get("compactMetadata")
            trigger = text_of(details, "trigger") if isinstance(details, dict) else ""
            yield HookEvent(at, {**_common(entry), "hook_event_name": "PostCompact", "trigger": trigger or "auto"})


def _common(entry: Entry) -> Payload:
    payload = {"client": "claude-code", "session_id": entry["sessionId"], "cwd": entry["cwd"]}
    if prompt := text_of(entry, "promptId"):
        payload["prompt_id"] = prompt
    if entry.get("isSidechain") is True and (agent := text_of(entry, "agentId")):
        payload["agent_id"] = agent
    return payload


def _session(payload: Payload) -> Payload:
    return {name: payload[name] for name in ("client", "session_id", "cwd")}


def _outcome(entry: Entry, block: Entry, *, alone: bool) -> Payload | None:
    """How a call ended; None when it never ran. `toolUseResult` belongs to one call: with several it is not used."""
    text = _text(block.get("content"))
    result = entry.get("toolUseResult") if alone else None
    if block.get("is_error") is not True:
        return {"hook_event_name": "PostToolUse", "tool_response": _response(result, text)}
    decision = entry.get("permissionDecision")
    refused = isinstance(decision, dict) and decision.get("decision") == "reject"
    if refused or text.lstrip().startswith(_NEVER_RAN):
        return None
    return {"hook_event_name": "PostToolUseFailure", "error": text}


def _response(result: Any, text: str) -> Any:
    """Transcripts of subagents have only what the model read; for a command that is its output."""
    return result if result is not None else {"stdout": text}


def _blocks(entry: Entry) -> list[Entry]:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    return "\n".join(
        text_of(block, "text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"
    )


def _seconds(timestamp: Any) -> float | None:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        return None
