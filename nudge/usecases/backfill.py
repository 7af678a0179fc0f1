"""The past, from the transcripts that Claude Code keeps: read on the client's side, handed to PRIMARY in batches, each
event once.

Where reading has come to is written down after each batch that PRIMARY has acknowledged, so it may be stopped at any
time. What is
handed over a second time changes nothing: an event has the id that a hook would have given it.
"""

from __future__ import annotations

import json
import os
import time
from functools import lru_cache

from nudge import limits, paths
from nudge.clients import claude_code
from nudge.context import resolve
from nudge.errors import Invalid, NotFound, NudgeError, Unavailable
from nudge.files import replace as replace_file
from nudge.history.extract import extract, located
from nudge.history.model import SESSION_TYPES
from nudge.history.touched import touched
from nudge.usecases.transcripts import Transcript, entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from nudge.context import Context
    from nudge.usecases.transcripts import Payload, Told

    Event = dict[str, Any]
    Call = Callable[[str, Mapping[str, Any]], Any]

STATE = "backfill.json"

_ENDING = ".jsonl"
_MOMENT = 60  # seconds between what a hook and what a transcript calls the same time


def _everything(_touched: Iterable[str], _context: Context) -> bool:
    return True


class Only:
    """What of the past is asked for. `wanted` is given the paths that an event touches, and where it happened: it says
    no to what a
    person does not want recorded at all."""

    __slots__ = ("project", "since", "wanted")

    def __init__(
        self,
        *,
        since: float | None = None,
        project: str | None = None,
        wanted: Callable[[Iterable[str], Context], bool] = _everything,
    ) -> None:
        self.since, self.project, self.wanted = since, project and project.casefold(), wanted

    @property
    def is_part(self) -> bool:
        """Whether it is less than all: then what has been read is not done with."""
        return self.since is not None or self.project is not None

    def takes(self, event: Event, payload: Payload, context: Context) -> bool:
        if self.since is not None and event["timestamp"] < self.since:
            return False
        return self.project in (None, event["project"]) and self.wanted(touched(payload), context)


class Place:
    """Where reading a file has come to. `size` is that of the file when it was read to its end; before that, 0."""

    __slots__ = ("inode", "offset", "size")

    def __init__(self, inode: int, size: int, offset: int) -> None:
        self.inode, self.size, self.offset = inode, size, offset


class State:
    """The places, as kept in the runtime directory. They hold for one database: of another, all has yet to be read."""

    def __init__(self, directory: str, database: str) -> None:
        self._path, self._database = os.path.join(directory, STATE), database
        self.places = self._load()

    def save(self) -> None:
        files = {path: [place.inode, place.size, place.offset] for path, place in self.places.items()}
        paths.ensure_private_dir(os.path.dirname(self._path))
        replace_file(self._path, json.dumps({"database": _identity(self._database), "files": files}).encode())

    def _load(self) -> dict[str, Place]:
        """Whatever is wrong with it only costs reading again."""
        try:
            with open(self._path, "rb") as file:
                kept = json.loads(file.read())
            found = {path: Place(*map(int, place)) for path, place in kept["files"].items() if os.path.exists(path)}
            return found if kept["database"] == _identity(self._database) else {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}


def _identity(path: str) -> list[int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_dev, status.st_ino]


class File:
    """A transcript with something new in it."""

    __slots__ = ("inode", "offset", "path", "size")

    def __init__(self, path: str, status: os.stat_result, place: Place | None) -> None:
        self.path, self.inode, self.size = path, status.st_ino, status.st_size
        followed = place is not None and place.inode == status.st_ino and place.offset <= status.st_size
        self.offset = place.offset if place is not None and followed else 0


def find(root: str, state: State, since: float | None = None) -> list[File]:
    """The transcripts below `root` that have grown since they were read, the one written to last at the end: copies of
    a session
    come after it."""
    found: list[tuple[float, File]] = []
    for path in _transcripts(root):
        try:
            status = os.stat(path)
        except OSError:
            continue
        place = state.places.get(path)
        unchanged = place is not None and (place.inode, place.size) == (status.st_ino, status.st_size)
        if not unchanged and (since is None or status.st_mtime >= since):
            found.append((status.st_mtime, File(path, status, place)))
    return [file for _, file in sorted(found, key=lambda pair: (pair[0], pair[1].path))]


def _transcripts(root: str) -> Iterator[str]:
    for folder, _, names in os.walk(root):
        yield from (os.path.join(folder, name) for name in names if name.endswith(_ENDING))


class Backfill:
    """One run over `files`. With `call` it hands over what it reads; without, it only counts."""

    def __init__(self, files: list[File], only: Only, state: State, call: Call | None = None) -> None:
        self._files, self._only, self._state, self._call = files, only, state, call
        self._batch: list[Event] = []
        self._bytes = 0
        self._known: set[int] = set()
        self._resolve = lru_cache(maxsize=None)(resolve)
        self.types: dict[str, int] = {}
        self.recorded = 0
        self.refusals: dict[str, int] = {}
        self.unreadable: dict[str, str] = {}

    def run(self, progress: Callable[[int], None] = lambda _bytes: None) -> dict[str, Any]:
        began = time.monotonic()
        for file in self._files:
            self._read(file, progress)
        self._hand_over()
        events = sum(self.types.values())
        return {
            "files": len(self._files) - len(self.unreadable),
            "events": events,
            "new": None if self._call is None else self.recorded,
            "skipped": None if self._call is None else events - self.recorded,
            "seconds": round(time.monotonic() - began, 3),
            "types": dict(sorted(self.types.items())),
        }

    def _read(self, file: File, progress: Callable[[int], None]) -> None:
        """`size` is what the file had when it was found: what has been added since is there for the next run."""
        try:
            with open(file.path, "rb") as opened:
                transcript = Transcript(self._known, from_start=file.offset == 0)
                offset = file.offset
                for start, end, entry in entries(opened, file.offset):
                    self._take(transcript.tell(start, entry))
                    offset = transcript.resume_at(end)
                    self._reached(Place(file.inode, 0, offset), file.path)
                    progress(end - start)
                self._take(transcript.end(time.time()))
                self._reached(Place(file.inode, file.size, offset), file.path)
        except OSError as error:
            self.unreadable[file.path] = error.strerror or "cannot be read"

    def _take(self, told: Iterator[Told]) -> None:
        for one in told:
            event = self._event(one)
            if event is not None:
                self.types[event["type"]] = self.types.get(event["type"], 0) + 1
                if self._call is not None and not self._was_told(event):
                    self._batch.append(event)
                    self._bytes += len(json.dumps(event))

    def _event(self, told: Told) -> Event | None:
        payload = claude_code.CLIENT.translate(told.payload)
        try:
            event = extract(payload, now=told.at)
        except Invalid:
            return None
        if event is None:
            return None
        context = self._resolve(payload["cwd"])
        event = located(event, context)
        return event if self._only.takes(event, payload, context) else None

    def _was_told(self, event: Event) -> bool:
        """Hooks tell of a session's start and end in words that no transcript keeps, so that their ids differ: the time
        decides."""
        if event["type"] not in SESSION_TYPES or self._call is None:
            return False
        at = event["timestamp"]
        window = {"after": at - _MOMENT, "before": at + _MOMENT}
        window.pop({"session_start": "after", "session_end": "before"}.get(event["type"], ""), None)
        try:
            trace = self._asked("nudge.session_trace", {"session_id": event["session_id"], **window})
        except NudgeError as error:
            if error.reason != NotFound.reason:
                raise
            return False
        return any(seen["obs_type"] == event["type"] for prompt in trace["prompts"] for seen in prompt["observations"])

    # Handing over

    def _reached(self, place: Place, path: str) -> None:
        if self._call is not None:
            self._state.places[path] = place
        if len(self._batch) >= limits.BACKFILL_EVENTS or self._bytes >= limits.BACKFILL_BYTES:
            self._hand_over()

    def _hand_over(self) -> None:
        """The places are written down only now that all that was read up to them is stored."""
        if self._call is None:
            return
        for start in range(0, len(self._batch), limits.BACKFILL_EVENTS):
            self._send(self._batch[start : start + limits.BACKFILL_EVENTS])
        self._batch, self._bytes = [], 0
        if not self._only.is_part:
            self._state.save()

    def _send(self, events: list[Event]) -> None:
        answer = self._asked("nudge.record_many", {"events": events})
        self.recorded += answer["recorded"]
        for refused in answer["refused"]:
            self.refusals[refused["reason"]] = self.refusals.get(refused["reason"], 0) + 1

    def _asked(self, method: str, params: Mapping[str, Any]) -> Any:
        """A server that was busy for a moment need not end a run of minutes."""
        assert self._call is not None
        attempts = limits.BACKFILL_ATTEMPTS
        while True:
            attempts -= 1
            try:
                return self._call(method, params)
            except NudgeError as error:
                if error.reason != Unavailable.reason or not attempts:
                    raise
