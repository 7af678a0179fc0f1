"""What connecting and disconnecting change in clients' files, the change itself, and the record that undoes it.

`ConnectedFiles` stores, for each changed file, what was added and what that replaced, never a copy of the file. If the
file has not been changed since, disconnecting restores every byte; otherwise our entries are recognized by their
content.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from nudge.clients import config_files, text_edit
from nudge.clients.client import NAME, AgentClient, Home
from nudge.clients.config_files import ConfigFile
from nudge.clients.executable import Executable
from nudge.clients.text_edit import Malformed, Undo
from nudge.core import paths
from nudge.core.errors import Invalid, NudgeError, StorageFailed
from nudge.core.limits import CLIENT_COMMAND_TIMEOUT
from nudge.security.secrets import redact

CONNECTED_FILES = "connections.json"

Command = tuple[str, ...]

_HOME = "HOME"


@dataclass(frozen=True, slots=True)
class UndoRecord:
    """How a file was when Nudge last wrote it, and how to undo that."""

    digest: str
    undo: list[Undo]
    created: bool = False
    directories: list[str] = field(default_factory=list)  # that were made for it
    variables: dict[str, str] = field(default_factory=dict)  # HOME, and the client's own, that led to the file

    def matches(self, text: str) -> bool:
        """Whether the file has not been changed since."""
        return self.digest == digest(text)

    def restore(self, text: str) -> str | None:
        """Return the text of the file before it was connected; None when there was no file."""
        return None if self.created else text_edit.undo(text, self.undo)


class ConnectedFiles:
    """The records of all connected files, stored in the runtime directory."""

    def __init__(self) -> None:
        self.path = os.path.join(paths.runtime_dir(), CONNECTED_FILES)
        self._records = _read_records(self.path)

    @property
    def paths(self) -> list[str]:
        return list(self._records)

    def homes(self) -> list[Home]:
        """Return where clients kept their files when they were connected; the current variables may differ."""
        distinct = {tuple(sorted(record.variables.items())): record.variables for record in self._records.values()}
        return [Home(variables.get(_HOME), variables) for variables in distinct.values()]

    def undo_record(self, path: str) -> UndoRecord | None:
        return self._records.get(path)

    def store(self, path: str, record: UndoRecord | None) -> None:
        """Store the record of a file; with None, remove it."""
        self._records.pop(path, None)
        if record is not None:
            self._records[path] = record
        if self._records:
            paths.ensure_private_dir(os.path.dirname(self.path))
            config_files.write(self.path, json.dumps({path: asdict(record) for path, record in self._records.items()}))
        else:
            config_files.remove(self.path, [])


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read_records(path: str) -> dict[str, UndoRecord]:
    """Return the stored records; none when the file cannot be read: entries are then recognized by their content."""
    try:
        with open(path, encoding="utf-8") as file:
            return {name: _parse_record(raw) for name, raw in json.load(file).items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _parse_record(raw: Any) -> UndoRecord:
    return UndoRecord(
        str(raw["digest"]),
        [(int(at), int(length), str(text)) for at, length, text in raw["undo"]],
        bool(raw["created"]),
        [str(directory) for directory in raw["directories"]],
        {str(name): str(value) for name, value in raw.get("variables", {}).items()},
    )


# Planning


@dataclass(frozen=True)
class FileChange:
    """The change of one file from `before` to `after`; None means no file."""

    file: ConfigFile
    before: str | None
    after: str | None
    undo_record: UndoRecord | None = None
    directories: list[str] = field(default_factory=list)  # that are removed with the file
    commands: Sequence[Command] = ()  # commands of the client that make the same change
    client: str = ""  # the name of the client, where it is known

    @property
    def path(self) -> str:
        return self.file.path


def connect(
    client: AgentClient,
    executable: Executable,
    connected_files: ConnectedFiles,
    home: Home | None = None,
    files: Sequence[ConfigFile] | None = None,
) -> list[FileChange]:
    """Return the changes that connect the client; empty when it is connected. `files`: its configuration files, where
    they are not those that it is connected by alone."""
    home = home or Home()
    files = client.config_files(home, executable) if files is None else files
    variables = {_HOME: home.path}
    if moved := home.variable(client.home_variable):
        variables[client.home_variable] = moved
    changes = (_connect(file, connected_files, variables) for file in files)
    return [
        replace(change, commands=client.own_commands(change, home, executable), client=client.name)
        for change in changes
        if change is not None
    ]


def disconnect(files: Sequence[ConfigFile], connected_files: ConnectedFiles) -> list[FileChange]:
    """Return the changes that remove our entries from these files."""
    changes = (_disconnect(file, connected_files) for file in files)
    return [change for change in changes if change is not None]


def files_of(clients: Sequence[AgentClient], connected_files: ConnectedFiles) -> list[ConfigFile]:
    """Return the configuration files of the clients: where they are now, and where they were when connected."""
    executable = Executable(NAME)
    here = {file.path: file for client in clients for file in client.config_files(Home(), executable)}
    before = {
        file.path: file
        for home in connected_files.homes()
        for client in clients
        for file in client.config_files(home, executable)
        if file.path in connected_files.paths
    }
    return list({**before, **here}.values())


def connected_parts(files: Sequence[ConfigFile]) -> set[str]:
    """Return the parts that are connected now; a file that cannot be read or parsed has none."""
    parts: set[str] = set()
    for file in files:
        try:
            parts |= file.find(config_files.read(file.path) or "")
        except (Malformed, NudgeError):
            continue
    return parts


def diff(change: FileChange) -> Iterator[str]:
    """Yield the lines of a unified diff. The lines around the change are redacted: they may hold another program's
    key."""
    before, after = ((text or "").splitlines() for text in (change.before, change.after))
    name = config_files.display_path(change.path)
    old, new = ("/dev/null" if text is None else name for text in (change.before, change.after))
    for line in difflib.unified_diff(before, after, old, new, lineterm=""):
        yield redact(line) if line.startswith(" ") else line


def shown_diff(change: FileChange) -> Iterator[str]:
    """Yield the diff for a person: a block of lines that was added before, but for its first line, is shown once.

    The hooks of a client are the same handler for each event."""
    lines = list(diff(change))
    first = next((number for number, line in enumerate(lines) if line.startswith("@@")), 0)
    yield from lines[:first]
    seen: set[tuple[str, ...]] = set()
    for block in _blocks(lines[first:]):
        body = tuple(line.rstrip(",") for line in block[1:])
        if len(body) < _SHORT_BLOCK or body not in seen:
            yield from block
        else:
            yield f"{block[0]} ... as above"
        seen.add(body)


_SHORT_BLOCK = 4  # lines; a shorter one is no harder to read than a remark that it is left out
_EVENT_LINE = re.compile(r'\+ +"[A-Z]\w+": \[$')  # begins the handlers of an event


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Split a diff before each line that begins the handlers of an event, and behind the last line of the handlers."""
    block: list[str] = []
    end = ""
    for line in lines:
        if _EVENT_LINE.match(line):
            if block:
                yield block
            block, end = [line], f"{line[: len(line) - len(line[1:].lstrip())]}]"
            continue
        block.append(line)
        if end and line.rstrip(",") == end:
            yield block
            block, end = [], ""
    if block:
        yield block


def _connect(file: ConfigFile, connected_files: ConnectedFiles, variables: dict[str, str]) -> FileChange | None:
    text = config_files.read(file.path)
    try:
        if text is not None and file.is_connected(text):
            return None
        base, record = _without_ours(file, text, connected_files)
        buffer = file.connect(base or "", text or "")
    except Malformed as error:
        raise _refusal(file, error) from None
    directories = record.directories if record is not None else config_files.missing_directories(file.path)
    new_record = UndoRecord(digest(buffer.text), buffer.undo(), base is None, directories, variables)
    return FileChange(file, text, buffer.text, new_record)


def _without_ours(
    file: ConfigFile, text: str | None, connected_files: ConnectedFiles
) -> tuple[str | None, UndoRecord | None]:
    """Return the text without our entries, and the record with which it was restored, if any."""
    if text is None:
        return None, None
    record = connected_files.undo_record(file.path)
    if record is not None and record.matches(text):
        return record.restore(text), record
    return file.clean(text), None


def _disconnect(file: ConfigFile, connected_files: ConnectedFiles) -> FileChange | None:
    text = config_files.read(file.path)
    if text is None:
        return None
    record = connected_files.undo_record(file.path)
    after = record.restore(text) if record is not None and record.matches(text) else _clean(file, text, record)
    return None if after == text else FileChange(file, text, after, directories=record.directories if record else [])


def _clean(file: ConfigFile, text: str, record: UndoRecord | None) -> str | None:
    """Return the text without our entries; None for a file that Nudge created and that is then empty."""
    try:
        after = file.clean(text) if file.find(text) else text
    except Malformed as error:
        raise _refusal(file, error) from None
    emptied = after is not None and after != text and config_files.is_blank(after)
    return None if emptied and record is not None and record.created else after


def _refusal(file: ConfigFile, error: Malformed) -> Invalid:
    line = f", line {error.line}" if error.line is not None else ""
    name = config_files.display_path(file.path)
    return Invalid(f"{name}{line}: {error.problem}; nothing was changed; fix the file, then run nudge again")


# Applying


def apply(changes: Sequence[FileChange], connected_files: ConnectedFiles) -> None:
    """Make all changes. Raises StorageFailed, and changes nothing, when a file was changed after the plan was made."""
    for change in changes:
        if config_files.read(change.path) != change.before:
            name = config_files.display_path(change.path)
            raise StorageFailed(f"{name} has just been changed by another program; nothing was changed, try again")
    for change in changes:
        _apply(change, connected_files)


def drop_stale_records(files: Sequence[ConfigFile], connected_files: ConnectedFiles) -> None:
    """Drop the records of files whose entries another program has removed."""
    for file in files:
        if connected_files.undo_record(file.path) is not None:
            connected_files.store(file.path, None)


def _apply(change: FileChange, connected_files: ConnectedFiles) -> None:
    if change.after is None:
        config_files.remove(change.path, change.directories)
    elif change.commands:
        for command in change.commands:
            _run(command)
        _check_commands(change)
    else:
        connected_files.store(change.path, change.undo_record)  # first: a record that fits no file does no harm
        config_files.write(change.path, change.after)
    if change.after is None or config_files.read(change.path) != change.after:
        connected_files.store(change.path, None)
    elif change.commands:
        connected_files.store(change.path, change.undo_record)


def _check_commands(change: FileChange) -> None:
    """Raise NudgeError when the client's commands ended well, but did not make the change."""
    try:
        is_done = change.file.is_connected(config_files.read(change.path) or "")
    except Malformed:
        is_done = False
    if not is_done:
        parts, name = " and ".join(change.file.parts), config_files.display_path(change.path)
        raise NudgeError(
            f"{' '.join(change.commands[-1])}: it reports success, but the {parts} is not in {name}; add it by hand, "
            f"as printed by: nudge connect {change.client} --print"
        )


def _run(command: Command) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=CLIENT_COMMAND_TIMEOUT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NudgeError(f"{' '.join(command)}: {error}") from None
    if done.returncode != 0:
        output = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        raise NudgeError(f"{' '.join(command)}: {output[-1]}")
