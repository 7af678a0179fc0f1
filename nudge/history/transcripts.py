"""Earlier sessions, read from Claude Code's transcripts on the client's side.

Backfill records them: it sends their events to PRIMARY in batches. The position in each file is saved after every batch
that PRIMARY has acknowledged, so a run may be stopped at any time. Sending an event twice changes nothing: it has the
id that a hook would have given it.

Replay computes what Nudge would have told them, from what was known by then. It stores nothing.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO

from nudge.clients import claude_code
from nudge.clients.claude_transcripts import ENTRY_TYPES, HookEvent, Transcript, entries
from nudge.core import limits, paths
from nudge.core.context import Context, is_project, resolve
from nudge.core.errors import Invalid, NotFound, NudgeError
from nudge.core.files import replace as replace_file
from nudge.core.thin_json import text_of
from nudge.history.extract import event_paths, extract, locate
from nudge.history.observations import FILE_CHANGES, SESSION_TYPES
from nudge.learning.outcome import analyse
from nudge.telling.replay import Replay

if TYPE_CHECKING:
    from nudge.clients.claude_transcripts import Payload

Event = dict[str, Any]
Call = Callable[[str, Mapping[str, Any]], Any]

BACKFILL_STATE = "backfill.json"

_SUFFIX = ".jsonl"
_SAME_TIME = 60  # seconds between the times of a hook and of a transcript for the same event


# Transcripts and their events


class Position:
    """How far a file was read. `size` is the file's size when it was read to its end; before that, 0."""

    __slots__ = ("inode", "offset", "size")

    def __init__(self, inode: int, size: int, offset: int) -> None:
        self.inode, self.size, self.offset = inode, size, offset


class TranscriptFile:
    """A transcript, and the offset of the first entry to read."""

    __slots__ = ("inode", "offset", "path", "size")

    def __init__(self, path: str, status: os.stat_result, position: Position | None) -> None:
        self.path, self.inode, self.size = path, status.st_ino, status.st_size
        self.offset = 0
        if position is not None and position.inode == status.st_ino and position.offset <= status.st_size:
            self.offset = position.offset


def find_all(roots: Iterable[str]) -> list[TranscriptFile]:
    """All transcripts among `roots`, which are files or directories, to be read from their start."""
    named = (path for root in roots for path in ([root] if os.path.isfile(root) else _transcripts(root)))
    return [TranscriptFile(path, _status(path), None) for path in dict.fromkeys(named)]


def _status(path: str) -> os.stat_result:
    """That of a link which leads nowhere is its own."""
    try:
        return os.stat(path)
    except OSError:
        return os.lstat(path)


def _transcripts(root: str) -> Iterator[str]:
    for folder, _, names in os.walk(root):
        yield from (os.path.join(folder, name) for name in names if name.endswith(_SUFFIX))


def extract_event(
    hook_event: HookEvent, resolve_once: Callable[[str], Context]
) -> tuple[Event, Payload, Context] | None:
    """The event as a hook would have recorded it, with its payload and context; None when there is nothing to keep."""
    payload = claude_code.CLIENT.translate(hook_event.payload)
    try:
        event = extract(payload, now=hook_event.at)
    except Invalid:
        return None
    if event is None:
        return None
    context = resolve_once(payload["cwd"])
    return locate(event, context), payload, context


# Backfill


def _any_event(_paths: Iterable[str], _context: Context) -> bool:
    return True


class EventFilter:
    """Which events to record. `wanted` gets the paths of an event and its context, and returns False for what the
    user's settings exclude."""

    __slots__ = ("project", "since", "wanted")

    def __init__(
        self,
        *,
        since: float | None = None,
        project: str | None = None,
        wanted: Callable[[Iterable[str], Context], bool] = _any_event,
    ) -> None:
        self.since, self.project, self.wanted = since, project and project.casefold(), wanted

    @property
    def is_partial(self) -> bool:
        """Whether only a part of the events is recorded: then positions are not saved."""
        return self.since is not None or self.project is not None

    def accepts(self, event: Event, payload: Payload, context: Context) -> bool:
        if self.since is not None and event["timestamp"] < self.since:
            return False
        is_named = self.project is None or is_project(event["project"] or "", self.project)
        return is_named and self.wanted(event_paths(payload), context)


class BackfillState:
    """The positions, saved in the runtime directory. They are valid for one database; with another, every file is read
    again."""

    def __init__(self, directory: str, database: str) -> None:
        self._path, self._database = os.path.join(directory, BACKFILL_STATE), database
        self.positions = self._load()

    def save(self) -> None:
        files = {path: [position.inode, position.size, position.offset] for path, position in self.positions.items()}
        paths.ensure_private_dir(os.path.dirname(self._path))
        replace_file(self._path, json.dumps({"database": _identity(self._database), "files": files}).encode())

    def _load(self) -> dict[str, Position]:
        """Empty when the file cannot be read: then everything is read again."""
        try:
            with open(self._path, "rb") as file:
                saved = json.loads(file.read())
            if saved["database"] != _identity(self._database):
                return {}
            return {
                path: Position(*map(int, fields)) for path, fields in saved["files"].items() if os.path.exists(path)
            }
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}


def _identity(path: str) -> list[int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_dev, status.st_ino]


def find_new(root: str, state: BackfillState, since: float | None = None) -> list[TranscriptFile]:
    """The transcripts below `root` that have grown since they were read, by time of the last write, so that the copy of
    a session comes after the original."""
    files: list[tuple[float, TranscriptFile]] = []
    for path in _transcripts(root):
        try:
            status = os.stat(path)
        except OSError:
            continue
        position = state.positions.get(path)
        unchanged = position is not None and (position.inode, position.size) == (status.st_ino, status.st_size)
        if not unchanged and (since is None or status.st_mtime >= since):
            files.append((status.st_mtime, TranscriptFile(path, status, position)))
    return [file for _, file in sorted(files, key=lambda pair: (pair[0], pair[1].path))]


class Backfill:
    """One run over `files`. With `call` it sends the events to PRIMARY; without, it only counts them."""

    def __init__(
        self, files: list[TranscriptFile], condition: EventFilter, state: BackfillState, call: Call | None = None
    ) -> None:
        self._files, self._filter, self._state, self._call = files, condition, state, call
        self._batch: list[Event] = []
        self._bytes = 0
        self._seen: set[int] = set()
        self._resolve = lru_cache(maxsize=None)(resolve)
        self.types: dict[str, int] = {}
        self.recorded = 0
        self.refusals: dict[str, int] = {}
        self.unreadable: dict[str, str] = {}

    def run(self, progress: Callable[[int], None] = lambda _bytes: None) -> dict[str, Any]:
        began = time.monotonic()
        for file in self._files:
            self._read(file, progress)
        self._flush()
        events = sum(self.types.values())
        return {
            "files": len(self._files) - len(self.unreadable),
            "events": events,
            "new": None if self._call is None else self.recorded,
            "skipped": None if self._call is None else events - self.recorded,
            "seconds": round(time.monotonic() - began, 3),
            "types": dict(sorted(self.types.items())),
        }

    def _read(self, file: TranscriptFile, progress: Callable[[int], None]) -> None:
        """Read one file. `file.size` is its size when it was found; what was added since is left for the next run."""
        try:
            with open(file.path, "rb") as opened:
                transcript = Transcript(self._seen, from_start=file.offset == 0)
                offset = file.offset
                for start, end, entry in entries(opened, file.offset):
                    self._collect(transcript.read(start, entry))
                    offset = transcript.resume_at(end)
                    self._advance(Position(file.inode, 0, offset), file.path)
                    progress(end - start)
                self._collect(transcript.end(time.time()))
                self._advance(Position(file.inode, file.size, offset), file.path)
        except OSError as error:
            self.unreadable[file.path] = error.strerror or "cannot be read"

    def _collect(self, hook_events: Iterator[HookEvent]) -> None:
        for hook_event in hook_events:
            event = self._extract(hook_event)
            if event is not None:
                self.types[event["type"]] = self.types.get(event["type"], 0) + 1
                if self._call is not None and not self._is_recorded(event):
                    self._batch.append(event)
                    self._bytes += len(json.dumps(event))

    def _extract(self, hook_event: HookEvent) -> Event | None:
        result = extract_event(hook_event, self._resolve)
        return result[0] if result is not None and self._filter.accepts(*result) else None

    def _is_recorded(self, event: Event) -> bool:
        """Whether a hook has recorded a session's start or end. Transcripts do not keep a hook's payload, so the event
        ids differ, and the time decides."""
        if event["type"] not in SESSION_TYPES or self._call is None:
            return False
        at = event["timestamp"]
        window = {"after": at - _SAME_TIME, "before": at + _SAME_TIME, "limit": limits.MAX_TRACE_LIMIT}
        window.pop({"session_start": "after", "session_end": "before"}.get(event["type"], ""), None)
        try:
            params = {"session_id": event["session_id"], "project": event.get("project"), **window}
            trace = self._call("nudge.session_trace", params)
        except NudgeError as error:
            if error.reason != NotFound.reason:
                raise
            return False
        rows = (row for prompt in trace["prompts"] for row in prompt["observations"])
        return any(row["obs_type"] == event["type"] for row in rows)

    # Sending

    def _advance(self, position: Position, path: str) -> None:
        if self._call is not None:
            self._state.positions[path] = position
        if len(self._batch) >= limits.BACKFILL_EVENTS or self._bytes >= limits.BACKFILL_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Send the batch, then save the positions: everything before them is now stored. An error of the server ends
        the run (the client has repeated what may be repeated), and the next run starts at the saved positions."""
        if self._call is None:
            return
        for start in range(0, len(self._batch), limits.BACKFILL_EVENTS):
            events = self._batch[start : start + limits.BACKFILL_EVENTS]
            self._count(self._call("nudge.record_many", {"events": events}))
        self._batch, self._bytes = [], 0
        if not self._filter.is_partial:
            self._state.save()

    def _count(self, answer: Mapping[str, Any]) -> None:
        self.recorded += answer["recorded"]
        for refused in answer["refused"]:
            self.refusals[refused["reason"]] = self.refusals.get(refused["reason"], 0) + 1


# Replay


@dataclass(slots=True)
class Commands:
    """The commands and file changes in transcripts, and what could not be read of them."""

    events: list[Event] = field(default_factory=list)
    files: int = 0
    foreign: int = 0
    """Files without a session of Claude Code."""
    unreadable: int = 0
    damaged: int = 0
    """Lines that are no JSON object, or have no end."""


def read_commands(files: Iterable[TranscriptFile], progress: Callable[[int], None] = lambda _bytes: None) -> Commands:
    """Read the transcripts. `progress` gets the bytes of each line."""
    found = Commands()
    resolve_once = lru_cache(maxsize=None)(resolve)
    for file in files:
        try:
            with open(file.path, "rb") as opened:
                _read_file(opened, found, resolve_once, progress)
        except OSError:
            found.unreadable += 1
    found.events.sort(key=lambda event: float(event["timestamp"]))
    return found


def _read_file(
    opened: BinaryIO, found: Commands, resolve_once: Callable[[str], Context], progress: Callable[[int], None]
) -> None:
    transcript, is_foreign, end = Transcript(set(), from_start=True), True, 0
    for start, end, entry in entries(opened, 0):
        found.damaged += not entry
        is_foreign &= not (text_of(entry, "sessionId") and text_of(entry, "type") in ENTRY_TYPES)
        found.events += _commands(transcript.read(start, entry), resolve_once)
        progress(end - start)
    found.events += _commands(transcript.end(time.time()), resolve_once)
    found.damaged += end < opened.seek(0, os.SEEK_END)
    found.foreign += is_foreign
    found.files += not is_foreign


def _commands(hook_events: Iterator[HookEvent], resolve_once: Callable[[str], Context]) -> Iterator[Event]:
    for hook_event in hook_events:
        result = extract_event(hook_event, resolve_once)
        event = result[0] if result is not None else {}
        if event.get("type") in FILE_CHANGES or analyse(event, 0) is not None:
            yield event


def replay(commands: Commands, progress: Callable[[int], None] = lambda _events: None) -> dict[str, Any]:
    """Replay the commands in order of time. `progress` gets the number of events that were replayed."""
    work = Replay()
    for event in commands.events:
        work.add(event)
        progress(1)
    counts = {name: getattr(commands, name) for name in ("files", "foreign", "unreadable", "damaged")}
    return {**counts, **work.result()}
