"""What shows that an agent did what a line says: it ran the line's command with success, fetched its id, or opened its
file.

A line says so as pairs of COMMAND, IDENTITY or FILE and a text (`Uses`). Hooks load this module: only the standard
library is imported.
"""
# ruff: noqa: S608 - only constants are put into the SQL; every value is bound

from __future__ import annotations

import json
import posixpath

from nudge.core import limits
from nudge.history.event import placeholders
from nudge.history.observations import COMMAND_TYPES
from nudge.learning.broken_tests import find_failed
from nudge.learning.jobs import is_looking
from nudge.learning.outcome import Outcome, RecordedEvent
from nudge.learning.shell import parse_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from nudge.history.event import SqlConnection
    from nudge.learning.command import SimpleCommand

    Use = tuple[str, str]
    Uses = tuple[Use, ...]

COMMAND, IDENTITY, FILE = "command", "id", "file"


def find_use(recorded: RecordedEvent, uses: Uses) -> Use | None:
    """The first of these uses that an event shows."""
    return next((use for use in uses if _shows(recorded, *use)), None)


def _shows(recorded: RecordedEvent, kind: str, text: str) -> bool:
    event = recorded.event
    content, is_command = str(event.get("content") or ""), event.get("type") in COMMAND_TYPES
    if kind == COMMAND:
        outcome = recorded.outcome if is_command else None
        return outcome is not None and has_worked(outcome) and runs(outcome.commands, text)
    if kind == IDENTITY:
        by_cli = is_command and content.startswith("nudge ") and bool(_names(text) & set(content.split()))
        return by_cli or (event.get("type") == "mcp_call" and bool(_names(text) & _fetched(event)))
    return event.get("type") == "file_read" and _is_path(str(event.get("file_path") or ""), text)


def _is_path(path: str, text: str) -> bool:
    """Whether a path is the one in a line, which may be relative to the top of the clone."""
    relative = text.removeprefix("./")
    return path == text or (bool(relative) and not relative.startswith("/") and path.endswith(f"/{relative}"))


def runs(line: Iterable[SimpleCommand], told: str) -> bool:
    """Whether a command line runs a command that was told, alone or with more arguments, also by way of another
    program (`timeout 60 make test`). One that only shows its words (`echo make test`) does not; nor does one beside
    `||`, since the exit code does not say that it worked."""
    wanted = parse_known(told)
    commands = [command for command in line if command.words]
    for start in range(len(commands) - len(wanted) + 1 if wanted else 0):
        *whole, last = commands[start : start + len(wanted)]
        if "||" in (commands[start].preceded_by, last.followed_by):
            continue
        if all(map(_is_same, whole, wanted)) and _begins(last, wanted[-1]):
            return True
    return False


def _is_same(command: SimpleCommand, wanted: SimpleCommand) -> bool:
    return command.words == wanted.words and set(wanted.variables) <= set(command.variables)


def _begins(command: SimpleCommand, wanted: SimpleCommand) -> bool:
    if not set(wanted.variables) <= set(command.variables):
        return False
    length, words = len(wanted.words), command.words
    places = (at for at in range(len(words) - length + 1) if words[at : at + length] == wanted.words)
    return any(at == 0 or not is_looking(command) for at in places)


def has_worked(outcome: Outcome) -> bool:
    """Whether a command worked; a test runner works also when tests fail. A success only because of a pipe does not
    count."""
    return not outcome.printed or bool(find_failed(outcome.printed))


def _names(identity: str) -> set[str]:
    """The forms of an id: `#412` and `412`, `m12` and `12`."""
    return {identity, identity.removeprefix("#"), identity.removeprefix("m")}


def _fetched(event: Mapping[str, Any]) -> set[str]:
    """The ids and names in the arguments of an MCP call."""
    metadata = event.get("metadata")
    arguments = metadata.get("arguments") if isinstance(metadata, dict) else None
    if not isinstance(arguments, dict):
        return set()
    texts = {word for value in arguments.values() for word in str(value).split()}
    return texts | {f"{arguments.get('component')}/{arguments.get('key')}"}


# What a session did, from the history


def past_uses(connection: SqlConnection, session: str, uses: Uses) -> Iterator[int]:
    """Yield the times at which a session did what a line says, in the order in which that was recorded. Of a session
    without end, its latest actions are looked at."""
    conditions: list[str] = []
    values: list[str] = []
    for condition, texts in map(_possible, uses):
        conditions.append(condition)
        values += texts
    rows = connection.execute(
        "SELECT timestamp, obs_type, content, file_path, metadata FROM observations"
        " WHERE id IN (SELECT id FROM observations WHERE session_id = ? ORDER BY timestamp DESC LIMIT ?)"
        f" AND ({' OR '.join(conditions) or 'FALSE'}) ORDER BY id",
        (session, limits.PAST_ACTIONS_READ, *values),
    )
    for timestamp, obs_type, content, path, metadata in rows:
        event = {"type": obs_type, "content": content, "file_path": path, "metadata": json.loads(metadata)}
        if find_use(RecordedEvent(event, 0), uses) is not None:
            yield timestamp


def _possible(use: Use) -> tuple[str, Sequence[str]]:
    """A condition on observations that those fulfill that show a use, and its values."""
    kind, text = use
    if kind == COMMAND:
        first = next((command.program for command in parse_known(text) if command.words), text)
        return f"obs_type IN ({placeholders(COMMAND_TYPES)}) AND instr(content, ?)", (*COMMAND_TYPES, first)
    if kind == IDENTITY:
        name = min(_names(text), key=len).rpartition("/")[2]
        return "obs_type = 'mcp_call' AND instr(metadata, ?) OR content LIKE 'nudge %' AND instr(content, ?)", [
            name
        ] * 2
    return "obs_type = 'file_read' AND instr(file_path, ?)", [posixpath.basename(text)]
