"""Observation types, and the observation that each tool call becomes.

To add a type, add a line to TYPES and, if it comes from a tool, a function to `_READERS`, whose keys are the tool kinds
that `clients` translates to. An observation keeps what was asked for and how it ended, never the text of a file or the
output of a tool, except the two ends of an error. Hooks load this module: patterns are imported late.
"""

from __future__ import annotations

import os

from nudge.core import limits
from nudge.core.text import to_unicode
from nudge.core.thin_json import text_of
from nudge.history.redact import redact_ends, redact_start, remove_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from nudge.history import git

_PATCH_HEADER = r"(?m)^\s*\*\*\* (Add File|Update File|Delete File|Move to): (.+?)\s*$"
_CAUSE = r"\w(?:Error|Exception)\b|(?i:\b(?:error|fatal|panic)\b[:\[ ])|(?i:\b(?:not found|no such|cannot|undefined)\b)"
# Texts that show a failure in the output of a command whose exit code is not known or is that of another one in a pipe.
_FAILURE_MARKS = (
    "No module named ",
    "ommand not found",
    "No such file or directory",
    "file or directory not found",
    "unrecognized argument",
    "o such option",
    "issing script: ",
    "No rule to make target",
    "unexpected argument '",
    "flag provided but not defined",
    # Reports of tests: pytest, unittest, cargo and gtest; go; jest and go.
    "FAILED",
    "--- FAIL: ",
    "\nFAIL",
)
_EXIT_CODE = "Exit code "
_DIGITS = "0123456789"
_MOST_DIGITS = 9
PATH_NAMES = ("file_path", "notebook_path", "path")


class ObservationType:
    """`days`: how long it is kept by default. `recent`: its weight in recent context. `changes_file`: whether session
    summaries list its file. `is_command`: whether its content is a command line. `is_action`: whether the agent did it.
    `of_session`: whether it belongs to no prompt."""

    __slots__ = ("changes_file", "days", "is_action", "is_command", "of_session", "recent")

    def __init__(
        self,
        days: int = 90,
        *,
        recent: float = 0.17,
        changes_file: bool = False,
        is_command: bool = False,
        is_action: bool = True,
        of_session: bool = False,
    ) -> None:
        self.days, self.recent, self.changes_file, self.is_command = days, recent, changes_file, is_command
        self.is_action, self.of_session = is_action and not of_session, of_session


TYPES = {
    "file_read": ObservationType(),
    "file_write": ObservationType(365, changes_file=True),
    "file_edit": ObservationType(365, recent=1.0, changes_file=True),
    "command": ObservationType(180, recent=0.67, is_command=True),
    "command_error": ObservationType(180, is_command=True),
    "search": ObservationType(),
    "user_prompt": ObservationType(is_action=False),
    "session_start": ObservationType(365, of_session=True),
    "session_end": ObservationType(365, of_session=True),
    "session_stop": ObservationType(365, of_session=True),
    "session_compact": ObservationType(365, recent=0.5, of_session=True),
    "mcp_call": ObservationType(recent=0.33),
    "git_commit": ObservationType(730, is_command=True),
    "git_push": ObservationType(730, is_command=True),
    "task_spawn": ObservationType(),
    "web_fetch": ObservationType(),
    "web_search": ObservationType(),
    "tool_other": ObservationType(),
}
FAILURE = "command_error"
COMMAND_TYPES = tuple(name for name, kind in TYPES.items() if kind.is_command)
UNFAILED_COMMANDS = tuple(name for name in COMMAND_TYPES if name != FAILURE)
"""Commands that passed, or whose exit code is not known."""
FILE_CHANGES = tuple(name for name, kind in TYPES.items() if kind.changes_file)
SESSION_TYPES = tuple(name for name, kind in TYPES.items() if kind.of_session)
NOT_ACTIONS = tuple(name for name, kind in TYPES.items() if not kind.is_action)
RETENTION_DAYS = {name: kind.days for name, kind in TYPES.items()}


class Observation:
    """The content of a hook event, before `extract` adds the session."""

    __slots__ = ("content", "metadata", "path", "type")

    def __init__(
        self, type: str, content: str, *, path: str | None = None, metadata: dict[str, Any] | None = None
    ) -> None:
        self.type, self.content, self.path, self.metadata = type, content, path, metadata or {}


class ToolCall:
    """A tool call and its result. `error` is None when the client reports a success."""

    __slots__ = ("arguments", "cwd", "error", "kind", "name", "payload", "response")

    def __init__(self, payload: Mapping[str, Any], *, failed: bool) -> None:
        self.payload = payload
        self.name = text_of(payload, "tool_name")
        self.kind = text_of(payload, "tool_kind")
        self.arguments: Mapping[str, Any] = _object(payload.get("tool_input"))
        self.response = payload.get("tool_response")
        self.cwd = text_of(payload, "cwd")
        self.error = text_of(payload, "error") if failed else None

    def argument(self, *names: str) -> str:
        """The first of these arguments that is a text."""
        return next((text for name in names if (text := text_of(self.arguments, name))), "")

    def path(self, *names: str) -> str | None:
        """The path in the first of these arguments that is given, absolute and normalized: one file has one name."""
        given = self.argument(*names)
        return os.path.normpath(os.path.join(self.cwd, given))[: limits.MAX_PATH_CHARS] if given else None

    def returned(self, name: str) -> Any:
        return self.response.get(name) if isinstance(self.response, dict) else None

    def output(self) -> str:
        """The text that it printed; it is searched for failures and commits, and never stored."""
        if isinstance(self.response, str):
            return self.response
        return "\n".join(
            filter(None, (text_of(_object(self.response), name) for name in ("stdout", "stderr", "output")))
        )


def _object(raw: object) -> dict[str, Any]:
    return raw if isinstance(raw, dict) else {}


def observe_tool_call(payload: Mapping[str, Any], *, failed: bool) -> Observation:
    """The observation in a tool event."""
    call = ToolCall(payload, failed=failed)
    observation = _READERS.get(call.kind, _read_other)(call)
    if call.error is not None and observation.type in FILE_TYPES:
        observation.type = "tool_other"  # the file was not read or changed: keep this out of its history
    _add_outcome(call, observation.metadata)
    return observation


def _add_outcome(call: ToolCall, metadata: dict[str, Any]) -> None:
    if call.error:
        _add_error(call.error, metadata)
    if call.payload.get("is_interrupt") is True or call.returned("interrupted") is True:
        metadata["interrupted"] = True
    duration = call.payload.get("duration_ms")
    if isinstance(duration, int | float) and 0 <= duration <= limits.MAX_DURATION_MS:
        metadata["duration_ms"] = int(duration)


def _add_error(error: str, metadata: dict[str, Any]) -> None:
    """Add both ends of the error, and as `cause` the first line that names one, if it is in neither end."""
    metadata["error"] = redact_ends(error, limits.MAX_ERROR_CHARS)
    if len(error) > limits.MAX_ERROR_CHARS:
        import re

        text = remove_private(to_unicode(error[: limits.MAX_CAUSE_SEARCHED]))
        if match := re.search(_CAUSE, text):
            start = text.rfind("\n", 0, match.start()) + 1
            line = text[start : match.end() + limits.MAX_LABEL_CHARS].partition("\n")[0]
            cause = redact_start(line, limits.MAX_LABEL_CHARS)
            metadata |= {} if cause in metadata["error"] else {"cause": cause}


# Commands


def _read_command(call: ToolCall) -> Observation:
    command, code = command_line(call).strip(), _exit_code(call)
    metadata: dict[str, Any] = {"exit_code": code}
    if description := call.argument("description"):
        metadata["description"] = redact_start(description, limits.MAX_LABEL_CHARS)
    content = redact_start(command, limits.MAX_COMMAND_CHARS)
    printed = call.output() if call.error is None else call.error
    git_action = _read_git(command, printed, succeeded=code == 0)
    if call.error is not None or code:
        if call.error is None:
            _add_error(printed, metadata)
        metadata["command"] = content
        if git_action and "subject" in git_action.metadata:  # the commit succeeded, a later command of the line failed
            metadata |= git_action.metadata
        return Observation(FAILURE, content, metadata=metadata)
    if git_action:
        return Observation(git_action.type, content, metadata=metadata | git_action.metadata)
    if (code is None or "|" in command) and _shows_failure(printed):
        _add_error(printed, metadata)
    return Observation("command", content, metadata=metadata)


def _shows_failure(printed: str) -> bool:
    """Whether the output of a command names something missing or a failed test. Of a report that is piped to `tail -1`,
    only `1 failed, 2 passed` is left."""
    if any(mark in printed for mark in _FAILURE_MARKS):
        return True
    before = [text.split()[-1:] for text in printed[-limits.MAX_LABEL_CHARS :].split(" failed")[:-1]]
    return any(word and word[0].isdecimal() and int(word[0]) for word in before)


def _read_git(command: str, printed: str, *, succeeded: bool) -> git.GitAction | None:
    if "git" not in command:
        return None
    from nudge.history import git  # late: most commands do not need it

    return git.read(command, printed, succeeded=succeeded)


def command_line(call: ToolCall) -> str:
    """The command as one line. Some clients pass a list of words, or a shell with the line as its last argument."""
    words = call.arguments.get("command")
    if not isinstance(words, list):
        return call.argument("command")
    texts = [word for word in words if isinstance(word, str)]
    return texts[2] if len(texts) == 3 and texts[1] in ("-c", "-lc") else " ".join(texts)


def _exit_code(call: ToolCall) -> int | None:
    """The exit code, or None when it is not known: not every client reports it, and a command may be interrupted or
    continue in the background."""
    if call.error is not None:
        return _reported_code(call.error)
    for name in ("exit_code", "exitCode"):
        if type(code := call.returned(name)) is int:
            return code
    # A success has exit code 0, unless the client interpreted another code as one (`grep` without a match).
    unclear = any(call.returned(name) for name in ("interrupted", "backgroundTaskId", "returnCodeInterpretation"))
    return 0 if isinstance(call.returned("stdout"), str) and not unclear else None


def _reported_code(error: str) -> int | None:
    """The number in `Exit code 1`, with which an error begins. Without a pattern: `re` takes 5 ms to import."""
    text = error.lstrip()
    if not text.startswith(_EXIT_CODE):
        return None
    rest = text[len(_EXIT_CODE) : len(_EXIT_CODE) + _MOST_DIGITS + 1]
    behind = rest.lstrip(_DIGITS)
    number = rest[: len(rest) - len(behind)]
    is_number = 0 < len(number) <= _MOST_DIGITS and not (behind[:1].isalnum() or behind[:1] == "_")
    return int(number) if is_number else None


# Files


def _read_file_read(call: ToolCall) -> Observation:
    file = _object(call.returned("file"))
    lines = {
        name: value for name in ("startLine", "numLines", "totalLines") if isinstance(value := file.get(name), int)
    }
    return _file_observation("file_read", call, {"lines": lines} if lines else {})


def _read_file_write(call: ToolCall) -> Observation:
    written = call.argument("content")
    metadata: dict[str, Any] = {"lines": len(written.splitlines())} if written else {}
    if isinstance(kind := call.returned("type"), str):
        metadata["created"] = kind == "create"
    return _file_observation("file_write", call, metadata)


def _read_file_edit(call: ToolCall) -> Observation:
    signs = [line[:1] for line in _patch_lines(call.returned("structuredPatch"))]
    return _file_observation(
        "file_edit", call, {"added": signs.count("+"), "removed": signs.count("-")} if signs else {}
    )


def _patch_lines(patch: object) -> Iterator[str]:
    for hunk in patch if isinstance(patch, list) else ():
        lines = _object(hunk).get("lines")
        yield from (line for line in (lines if isinstance(lines, list) else ()) if isinstance(line, str))


def _file_observation(type: str, call: ToolCall, metadata: dict[str, Any]) -> Observation:
    path = call.path(*PATH_NAMES)
    return Observation(type, path or call.name, path=path, metadata=metadata)


def _read_patch(call: ToolCall) -> Observation:
    """A patch with its files in headers. The content lists all of them, so that a search finds each."""
    changes = patched_files(call)
    files = _first_files(dict.fromkeys(os.path.normpath(os.path.join(call.cwd, name)) for _, name in changes))
    if not files:
        return _read_other(call)
    added = all(change == "Add File" for change, _ in changes)
    metadata = {"files": files} if len(files) > 1 else {}
    return Observation("file_write" if added else "file_edit", "\n".join(files), path=files[0], metadata=metadata)


def _first_files(files: Iterable[str]) -> list[str]:
    """The first files, as many as fit into one observation."""
    kept: list[str] = []
    for path in files:
        if (
            len(kept) == limits.MAX_PATCHED_FILES
            or sum(map(len, kept)) + len(kept) + len(path) > limits.MAX_CONTENT_CHARS
        ):
            break
        kept.append(path)
    return kept


def patched_files(call: ToolCall) -> list[tuple[str, str]]:
    """The changes of a patch as pairs of action (`Add File`, `Update File`...) and file."""
    import re

    return re.findall(_PATCH_HEADER, command_line(call) or call.argument("patch"))


# Everything else


def _read_search(call: ToolCall) -> Observation:
    """Without a `file_path`: two searches of one directory are different observations."""
    pattern = redact_start(call.argument("pattern", "query"), limits.MAX_COMMAND_CHARS)
    place = call.path("path")
    content = " in ".join(filter(None, (pattern, place))) or call.name
    return Observation(
        "search", content, metadata={name: text for name, text in (("pattern", pattern), ("path", place)) if text}
    )


def _read_task(call: ToolCall) -> Observation:
    description = redact_start(call.argument("description"), limits.MAX_LABEL_CHARS)
    prompt = redact_start(call.argument("prompt"), limits.MAX_TASK_CHARS)
    metadata = {"subagent_type": call.argument("subagent_type"), "spawned": call.returned("agentId")}
    return Observation(
        "task_spawn",
        ": ".join(filter(None, (description, prompt))) or call.name,
        metadata={
            name: text[: limits.MAX_LABEL_CHARS] for name, text in metadata.items() if isinstance(text, str) and text
        },
    )


def _read_web_fetch(call: ToolCall) -> Observation:
    """Some clients pass the URL inside the prompt."""
    return Observation("web_fetch", redact_start(call.argument("url", "prompt"), limits.MAX_COMMAND_CHARS) or call.name)


def _read_web_search(call: ToolCall) -> Observation:
    return Observation("web_search", redact_start(call.argument("query"), limits.MAX_COMMAND_CHARS) or call.name)


def _read_mcp_call(call: ToolCall) -> Observation:
    """`mcp__server__tool`, unless the client names the tool itself. The answer is not kept."""
    server, _, tool = call.name.removeprefix("mcp__").partition("__")
    if not tool or "mcp_tool" in call.payload:
        server, tool = "", text_of(call.payload, "mcp_tool") or call.name
    server = text_of(_object(call.payload.get("mcp_server")), "name") or server
    arguments = _short_arguments(call.arguments)
    return Observation(
        "mcp_call",
        _describe("/".join(filter(None, (server, tool))), arguments),
        metadata={"server": server, "tool": tool, "arguments": arguments},
    )


def _read_other(call: ToolCall) -> Observation:
    arguments = _short_arguments(call.arguments)
    path = call.path(*PATH_NAMES[:-1])
    return Observation(
        "tool_other",
        _describe(call.name, arguments),
        path=path,
        metadata={"arguments": arguments} if arguments else {},
    )


def _describe(name: str, arguments: Mapping[str, Any]) -> str:
    return redact_start(
        " ".join([name, *(f"{key}={value}" for key, value in arguments.items())]), limits.MAX_COMMAND_CHARS
    )


def _short_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    names = list(arguments)[: limits.MAX_ARGUMENTS]
    short = {redact_start(name, limits.MAX_NAME_CHARS): _short_value(arguments[name]) for name in names}
    ids = arguments.get("ids")  # the ledger reads here which of its lines an agent looked up
    if isinstance(ids, list) and 0 < len(ids) <= limits.MAX_ARGUMENT_IDS and all(type(one) is int for one in ids):
        short["ids"] = " ".join(map(str, ids))[: limits.MAX_ARGUMENT_CHARS]
    return short


def _short_value(value: Any) -> Any:
    """Lists and objects are replaced by their size: they may hold a whole file."""
    if isinstance(value, str):
        return redact_start(value, limits.MAX_ARGUMENT_CHARS)
    if isinstance(value, list | dict):
        return f"[{len(value)}]" if isinstance(value, list) else f"{{{len(value)}}}"
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)  # JSON has no infinity and no NaN
    return value


FILE_TYPES = frozenset(("file_read", *FILE_CHANGES))

_READERS: dict[str, Callable[[ToolCall], Observation]] = {
    "command": _read_command,
    "read": _read_file_read,
    "write": _read_file_write,
    "edit": _read_file_edit,
    "patch": _read_patch,
    "search": _read_search,
    "find": _read_search,
    "task": _read_task,
    "web_fetch": _read_web_fetch,
    "web_search": _read_web_search,
    "mcp": _read_mcp_call,
}
