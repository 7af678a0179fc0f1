"""What an agent's tool call means, by the kind of the tool and in the words of Claude Code (see `clients`).

Kept is what was asked for and how it ended: never a file's text, never a tool's output, but for the two ends of an
error.
"""

from __future__ import annotations

import os
import re

from nudge import limits
from nudge.history.redaction import head_and_tail, shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from nudge.history import git

_PATCH_HEADER = r"(?m)^\s*\*\*\* (Add File|Update File|Delete File|Move to): (.+?)\s*$"
_EXIT_CODE = re.compile(r"\s*Exit code (\d{1,9})\b")
PATH_NAMES = ("file_path", "notebook_path", "path")


class Seen:
    """One observation, before it is anybody's."""

    __slots__ = ("content", "metadata", "path", "type")

    def __init__(
        self, type: str, content: str, *, path: str | None = None, metadata: dict[str, Any] | None = None
    ) -> None:
        self.type, self.content, self.path, self.metadata = type, content, path, metadata or {}


class ToolCall:
    """`error` is None when the client calls it a success."""

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
        return next((found for name in names if (found := text_of(self.arguments, name))), "")

    def path(self, *names: str) -> str | None:
        """Absolute, and without `..`: a history has one name for one file."""
        given = self.argument(*names)
        return os.path.normpath(os.path.join(self.cwd, given))[: limits.MAX_PATH_CHARS] if given else None

    def returned(self, name: str) -> Any:
        return self.response.get(name) if isinstance(self.response, dict) else None

    def output(self) -> str:
        """What it printed, to be read here and kept nowhere."""
        if isinstance(self.response, str):
            return self.response
        return "\n".join(
            filter(None, (text_of(_object(self.response), name) for name in ("stdout", "stderr", "output")))
        )


def text_of(source: Mapping[str, Any], name: str) -> str:
    value = source.get(name)
    return value if isinstance(value, str) else ""


def _object(raw: object) -> dict[str, Any]:
    return raw if isinstance(raw, dict) else {}


def seen(payload: Mapping[str, Any], *, failed: bool) -> Seen:
    call = ToolCall(payload, failed=failed)
    found = _READERS.get(call.kind, _other)(call)
    if call.error is not None and found.type in _FILE_TYPES:
        found.type = "tool_other"  # a file that was not read, written or edited has no history of it
    return _with_outcome(call, found)


def _with_outcome(call: ToolCall, found: Seen) -> Seen:
    if call.error:
        found.metadata["error"] = head_and_tail(call.error, limits.MAX_ERROR_CHARS)
    if call.payload.get("is_interrupt") is True or call.returned("interrupted") is True:
        found.metadata["interrupted"] = True
    duration = call.payload.get("duration_ms")
    if isinstance(duration, int | float) and 0 <= duration <= limits.MAX_DURATION_MS:
        found.metadata["duration_ms"] = int(duration)
    return found


# Commands


def _command(call: ToolCall) -> Seen:
    command, code = command_line(call), _exit_code(call)
    metadata: dict[str, Any] = {"exit_code": code}
    if description := call.argument("description"):
        metadata["description"] = shortened(description, limits.MAX_LABEL_CHARS)
    content = shortened(command, limits.MAX_COMMAND_CHARS)
    printed = call.output() if call.error is None else call.error
    found = _by_git(command, printed, succeeded=code == 0)
    if call.error is not None or code:
        if call.error is None:
            metadata["error"] = head_and_tail(printed, limits.MAX_ERROR_CHARS)
        # What failed came after the commit.
        return Seen(
            "command_error",
            content,
            metadata=metadata | (found.metadata if found and "subject" in found.metadata else {}),
        )
    return (
        Seen(found.type, content, metadata=metadata | found.metadata)
        if found
        else Seen("command", content, metadata=metadata)
    )


def _by_git(command: str, printed: str, *, succeeded: bool) -> git.Found | None:
    if "git" not in command:
        return None
    from nudge.history import git  # late: most commands do without

    return git.read(command, printed, succeeded=succeeded)


def command_line(call: ToolCall) -> str:
    """Some clients pass a list of words, or a shell with the line as its last word."""
    words = call.arguments.get("command")
    if not isinstance(words, list):
        return call.argument("command")
    texts = [word for word in words if isinstance(word, str)]
    return texts[2] if len(texts) == 3 and texts[1] in ("-c", "-lc") else " ".join(texts)


def _exit_code(call: ToolCall) -> int | None:
    """None is "not known": Codex does not tell, and neither does a command that was interrupted or goes on in the
    background."""
    if call.error is not None:
        found = _EXIT_CODE.match(call.error)
        return int(found[1]) if found else None
    for name in ("exit_code", "exitCode"):
        if type(code := call.returned(name)) is int:
            return code
    # What Claude Code reports as success ended with 0, unless it says how else it read the code (`grep` without a
    # match).
    unclear = any(call.returned(name) for name in ("interrupted", "backgroundTaskId", "returnCodeInterpretation"))
    return 0 if isinstance(call.returned("stdout"), str) and not unclear else None


# Files


def _read(call: ToolCall) -> Seen:
    file = _object(call.returned("file"))
    lines = {
        name: value for name in ("startLine", "numLines", "totalLines") if isinstance(value := file.get(name), int)
    }
    return _file("file_read", call, {"lines": lines} if lines else {})


def _write(call: ToolCall) -> Seen:
    written = call.argument("content")
    metadata: dict[str, Any] = {"lines": len(written.splitlines())} if written else {}
    if isinstance(kind := call.returned("type"), str):
        metadata["created"] = kind == "create"
    return _file("file_write", call, metadata)


def _edit(call: ToolCall) -> Seen:
    marks = [line[:1] for line in _patch_lines(call.returned("structuredPatch"))]
    return _file("file_edit", call, {"added": marks.count("+"), "removed": marks.count("-")} if marks else {})


def _patch_lines(patch: object) -> Iterator[str]:
    for hunk in patch if isinstance(patch, list) else ():
        lines = _object(hunk).get("lines")
        yield from (line for line in (lines if isinstance(lines, list) else ()) if isinstance(line, str))


def _file(type: str, call: ToolCall, metadata: dict[str, Any]) -> Seen:
    path = call.path(*PATH_NAMES)
    return Seen(type, path or call.name, path=path, metadata=metadata)


def _patch(call: ToolCall) -> Seen:
    """Codex edits files by a patch that names them in its own headers. All of them are said: a search for the last
    finds it too."""
    found = patched(call)
    files = _fitting(dict.fromkeys(os.path.normpath(os.path.join(call.cwd, name)) for _, name in found))
    if not files:
        return _other(call)
    added = all(change == "Add File" for change, _ in found)
    metadata = {"files": files} if len(files) > 1 else {}
    return Seen("file_write" if added else "file_edit", "\n".join(files), path=files[0], metadata=metadata)


def _fitting(files: Iterable[str]) -> list[str]:
    """As many as one observation has room for."""
    kept: list[str] = []
    for path in files:
        if (
            len(kept) == limits.MAX_PATCHED_FILES
            or sum(map(len, kept)) + len(kept) + len(path) > limits.MAX_CONTENT_CHARS
        ):
            break
        kept.append(path)
    return kept


def patched(call: ToolCall) -> list[tuple[str, str]]:
    """What a patch does, and to which file."""
    return re.findall(_PATCH_HEADER, command_line(call) or call.argument("patch"))


# Everything else


def _search(call: ToolCall) -> Seen:
    """Without a `file_path`: two searches of one directory are two searches."""
    pattern = shortened(call.argument("pattern", "query"), limits.MAX_COMMAND_CHARS)
    place = call.path("path")
    content = " in ".join(filter(None, (pattern, place))) or call.name
    return Seen(
        "search", content, metadata={name: text for name, text in (("pattern", pattern), ("path", place)) if text}
    )


def _task(call: ToolCall) -> Seen:
    description = shortened(call.argument("description"), limits.MAX_LABEL_CHARS)
    prompt = shortened(call.argument("prompt"), limits.MAX_TASK_CHARS)
    metadata = {"subagent_type": call.argument("subagent_type"), "spawned": call.returned("agentId")}
    return Seen(
        "task_spawn",
        ": ".join(filter(None, (description, prompt))) or call.name,
        metadata={
            name: text[: limits.MAX_LABEL_CHARS] for name, text in metadata.items() if isinstance(text, str) and text
        },
    )


def _web_fetch(call: ToolCall) -> Seen:
    """Gemini CLI has the address inside the prompt."""
    return Seen("web_fetch", shortened(call.argument("url", "prompt"), limits.MAX_COMMAND_CHARS) or call.name)


def _web_search(call: ToolCall) -> Seen:
    return Seen("web_search", shortened(call.argument("query"), limits.MAX_COMMAND_CHARS) or call.name)


def _mcp_call(call: ToolCall) -> Seen:
    """`mcp__server__tool`, unless the client names the tool itself; what it answered is the server's, not ours to
    keep."""
    server, _, tool = call.name.removeprefix("mcp__").partition("__")
    if not tool or "mcp_tool" in call.payload:
        server, tool = "", text_of(call.payload, "mcp_tool") or call.name
    server = text_of(_object(call.payload.get("mcp_server")), "name") or server
    arguments = _short_arguments(call.arguments)
    return Seen(
        "mcp_call",
        _described("/".join(filter(None, (server, tool))), arguments),
        metadata={"server": server, "tool": tool, "arguments": arguments},
    )


def _other(call: ToolCall) -> Seen:
    arguments = _short_arguments(call.arguments)
    path = call.path(*PATH_NAMES[:-1])
    return Seen(
        "tool_other",
        _described(call.name, arguments),
        path=path,
        metadata={"arguments": arguments} if arguments else {},
    )


def _described(name: str, arguments: Mapping[str, Any]) -> str:
    return shortened(
        " ".join([name, *(f"{key}={value}" for key, value in arguments.items())]), limits.MAX_COMMAND_CHARS
    )


def _short_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    names = list(arguments)[: limits.MAX_ARGUMENTS]
    return {shortened(name, limits.MAX_NAME_CHARS): _short_value(arguments[name]) for name in names}


def _short_value(value: Any) -> Any:
    """Lists and objects are told by their size: what is inside may be a whole file."""
    if isinstance(value, str):
        return shortened(value, limits.MAX_ARGUMENT_CHARS)
    if isinstance(value, list | dict):
        return f"[{len(value)}]" if isinstance(value, list) else f"{{{len(value)}}}"
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)  # which JSON has no number for
    return value


_FILE_TYPES = frozenset(("file_read", "file_write", "file_edit"))

_READERS: dict[str, Callable[[ToolCall], Seen]] = {
    "command": _command,
    "read": _read,
    "write": _write,
    "edit": _edit,
    "patch": _patch,
    "search": _search,
    "find": _search,
    "task": _task,
    "web_fetch": _web_fetch,
    "web_search": _web_search,
    "mcp": _mcp_call,
}
