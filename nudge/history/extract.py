"""Turn the payload of a hook, translated by `clients`, into at most one redacted event, and find the paths that it is
about, to compare with the user's globs of paths to ignore. Hooks load this module."""

from __future__ import annotations

import os
import sys

from nudge.core import limits, thin_json
from nudge.core.errors import Invalid
from nudge.core.text import CLIENT_OUTPUT, unwrap_command
from nudge.core.thin_json import text_of
from nudge.history.observations import (
    PATH_NAMES,
    TYPES,
    Observation,
    ToolCall,
    command_line,
    observe_tool_call,
    patched_files,
)
from nudge.history.redact import PRIVATE, redact_event, redact_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from nudge.core.context import Context

TOO_LONG = "[too long]"

_REQUIRED = ("session_id", "cwd", "hook_event_name")


def extract(payload: Mapping[str, Any], *, now: float) -> dict[str, Any] | None:
    """Return the event in a payload that `clients` has translated, or None when there is nothing to store. Raises
    Invalid for a payload without a required field. The caller adds `repo` and `project` with `locate`."""
    for field in _REQUIRED:
        _require(payload, field)
    reader = _READERS.get(payload["hook_event_name"])
    observation = reader(payload) if reader is not None else None
    if observation is None:
        return None
    event = redact_event(
        {
            "session_id": payload["session_id"],
            "client": text_of(payload, "client") or "unknown",
            "cwd": payload["cwd"] if len(payload["cwd"]) <= limits.MAX_PATH_CHARS else None,
            "repo": None,
            "project": None,
            "timestamp": int(now),
            "source_event": text_of(payload, "source_event"),
            "prompt_id": _prompt_id(payload) or None,
            "agent_id": text_of(payload, "agent_id") or None,
            "type": observation.type,
            "tool_name": text_of(payload, "tool_name")[: limits.MAX_LABEL_CHARS] or None,
            "file_path": observation.path,
            "content": observation.content,
            "metadata": _fit_metadata(observation.metadata),
            "start_source": observation.content if observation.type == "session_start" else None,
        }
    )
    return {"event_id": _event_id(payload, observation.type, now), **event}


def locate(event: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Return the event with the repository, clone, branch and project of its directory."""
    names = {"repo": context.repo, "clone": context.root, "branch": context.branch, "project": context.project}
    return {**event, **redact_event(names)}


def is_complete(payload: Mapping[str, Any]) -> bool:
    """Whether the payload has every field that an event needs."""
    return all(text_of(payload, field) for field in _REQUIRED)


def _require(payload: Mapping[str, Any], field: str) -> None:
    if not text_of(payload, field):
        raise Invalid("is required, and must be a string", field=field)
    if field == "session_id" and len(payload[field]) > limits.MAX_SESSION_ID_CHARS:
        raise Invalid(f"must be at most {limits.MAX_SESSION_ID_CHARS} characters", field=field)


def _fit_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Replace the largest values until the rest fits into the store; a KiB is left for ids and redaction marks."""
    while len(thin_json.dumps_sorted(metadata)) > limits.MAX_METADATA_CHARS - limits.KIB:
        largest = max(metadata, key=lambda name: len(thin_json.dumps_sorted(metadata[name])))
        metadata = {**metadata, largest: TOO_LONG}
    return metadata


# By event


def _read_tool(payload: Mapping[str, Any]) -> Observation:
    return observe_tool_call(payload, failed=False)


def _read_failed_tool(payload: Mapping[str, Any]) -> Observation:
    return observe_tool_call(payload, failed=True)


def _read_prompt(payload: Mapping[str, Any]) -> Observation | None:
    """Remove the blocks that the client added. A prompt that is all private is stored without its text: the actions
    after it belong to it."""
    prompt = text_of(payload, "prompt")
    for name in payload.get("prompt_blocks", ()):
        prompt = _remove_blocks(name, prompt)
    prompt = unwrap_command(prompt)
    if not prompt.strip() or prompt.lstrip().startswith(CLIENT_OUTPUT):
        return None
    return Observation("user_prompt", redact_start(prompt, limits.MAX_PROMPT_CHARS) or PRIVATE)


def _remove_blocks(name: str, text: str) -> str:
    """Return the text without blocks of that name. A tag that is never closed is text, unless the text begins with
    it."""
    if f"<{name}" not in text.lower():  # compiling a pattern costs a hook more than this search
        return text
    kept, place = [], 0
    for begin, end in _blocks(name, text)[0]:
        kept.append(text[place:begin])
        place = end
    rest = "".join([*kept, text[place:]])
    import re

    return "" if re.match(rf"\s*{_opening(name)}", rest) else rest


def cut_unclosed_block(prompt: str, names: Iterable[str]) -> str:
    """Cut a prompt whose end is missing before the first block of the client that is not closed."""
    return prompt[: min([len(prompt), *(begin for name in names for begin in _blocks(name, prompt)[1])])]


def _blocks(name: str, text: str) -> tuple[list[tuple[int, int]], list[int]]:
    """Start and end of the outermost blocks, and the starts of those that are not closed."""
    blocks: list[tuple[int, int]] = []
    opened: list[int] = []
    import re  # late: 7 ms, which most events do not need

    for tag in re.finditer(rf"{_opening(name)}|(?i:</{name}\s*>)", text):
        if tag[0][1] != "/":
            opened.append(tag.start())
        elif opened:
            begin = opened.pop()
            while blocks and blocks[-1][0] > begin:
                blocks.pop()
            blocks.append((begin, tag.end()))
    return blocks, opened


def _opening(name: str) -> str:
    return rf"(?i:<{name}(?:\s[^<>]*)?>)"


def _read_session_start(payload: Mapping[str, Any]) -> Observation:
    model = text_of(payload, "model")[: limits.MAX_LABEL_CHARS]
    metadata = {"model": model} if model else {}
    return Observation("session_start", _label(payload, "source", "startup"), metadata=metadata)


def _read_session_end(payload: Mapping[str, Any]) -> Observation:
    words = _read_last_words(payload)
    return Observation(
        "session_end", _label(payload, "reason", "other"), metadata={"last_words": words} if words else None
    )


def _read_stop(payload: Mapping[str, Any]) -> Observation | None:
    """The end of a turn. It has the last words of a session that is killed before its end is reported."""
    words = _read_last_words(payload)
    return Observation("session_stop", "stop", metadata={"last_words": words}) if words else None


def _read_last_words(payload: Mapping[str, Any]) -> str:
    return redact_start(" ".join(text_of(payload, "last_assistant_message").split()), limits.MAX_LAST_WORDS)


def _read_session_compact(payload: Mapping[str, Any]) -> Observation:
    return Observation("session_compact", _label(payload, "trigger", "auto"))


def _label(payload: Mapping[str, Any], name: str, default: str) -> str:
    return redact_start(text_of(payload, name), limits.MAX_LABEL_CHARS) or default


_READERS: dict[str, Callable[[Mapping[str, Any]], Observation | None]] = {
    "PostToolUse": _read_tool,
    "PostToolUseFailure": _read_failed_tool,
    "UserPromptSubmit": _read_prompt,
    "SessionStart": _read_session_start,
    "SessionEnd": _read_session_end,
    "Stop": _read_stop,
    "PostCompact": _read_session_compact,
}


# Identity


def _prompt_id(payload: Mapping[str, Any]) -> str:
    return (text_of(payload, "prompt_id") or text_of(payload, "turn_id"))[: limits.MAX_NAME_CHARS]


def _event_id(payload: Mapping[str, Any], obs_type: str, now: float) -> str:
    """An id that is the same when two hooks report the same event, so that it is stored once; random when nothing in
    the payload identifies the event."""
    name = payload["hook_event_name"]
    parts: list[str] = []
    if TYPES[obs_type].of_session:
        # The whole payload: two resumes in a row differ in more than their time.
        parts = [name, thin_json.dumps_sorted(payload), str(int(now) // limits.SESSION_EVENT_BUCKET)]
    elif obs_type == "user_prompt":
        if identity := _prompt_id(payload):
            # A turn of Codex can get a second prompt, so the turn's id alone is not enough.
            parts = [identity, name, "" if text_of(payload, "prompt_id") else text_of(payload, "prompt")]
    elif identity := text_of(payload, "tool_use_id"):
        parts = [identity, name]
    return event_id(payload["session_id"], parts)


def event_id(session_id: str, parts: list[str]) -> str:
    """Return an id of 32 characters, random without `parts`. The first eight are the session's: the database sorts ids,
    and a session writes to one page of them, where random ids would each write to another."""
    session = _digest(session_id)[:8]
    return session + (_digest("\0".join([session_id, *parts]))[:24] if parts else os.urandom(12).hex())


def _digest(text: str) -> str:
    return str(_sha256()(text.encode("utf-8", "replace")).hexdigest())


def _sha256() -> Callable[[bytes], Any]:
    """The interpreter's own SHA-256: `hashlib` loads OpenSSL, which costs a hook more than everything else."""
    try:
        if sys.version_info >= (3, 12):  # asking for a module that is not there searches all of sys.path
            from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]
        else:
            from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from hashlib import sha256
    return sha256  # type: ignore[no-any-return,unused-ignore]


# Paths

_FILE_URL = "file://"
_GLOB_NAMES = ("glob", "include")  # arguments of a search: the files that it reads
_NAMES_A_PATH = r"(?i)path|file|dir|folder|root|source|destination|uri"
_LOOKS_LIKE_A_PATH = ("/", "~/", "./", "../", _FILE_URL)
_HOME = r'"?\$(?:HOME\b|\{HOME\})"?'
_BETWEEN_WORDS = r"""[\s"'`=;|&<>(),]+"""
_MAX_DEPTH = 4


def event_paths(payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield absolute paths and globs: the working directory, then those in the tool's arguments. They are read from the
    translated payload, since the event is cut and redacted. A generator: without such globs a hook reads none, and does
    not import `re`."""
    call = ToolCall(payload, failed=False)
    yield call.cwd
    paths = _known_paths(call) if call.kind not in ("", "mcp") else _likely_paths(call.arguments)
    yield from (os.path.normpath(os.path.join(call.cwd, _expand_path(path))) for path in paths)


def _expand_path(path: str) -> str:
    return os.path.expanduser(path.strip().removeprefix(_FILE_URL))


def _known_paths(call: ToolCall) -> Iterator[str]:
    """By the names of arguments only: a text that a tool writes may look like a path."""
    names = (*PATH_NAMES, *_GLOB_NAMES, *(["pattern"] if call.kind == "find" else []))
    yield from (path for name in names if (path := text_of(call.arguments, name)))
    yield from (path for _, path in patched_files(call))
    yield from _command_words(command_line(call))


def _command_words(command: str) -> Iterator[str]:
    """Any word may be a file in the working directory. Of a long command, take the first words and those with a
    slash."""
    import re  # late: only for the user's globs of paths to ignore

    words = dict.fromkeys(re.split(_BETWEEN_WORDS, re.sub(_HOME, "~", command)))
    for number, word in enumerate(words):
        if "://" not in word and ("/" in word or (word and number < limits.MAX_COMMAND_WORDS)):
            yield word


def _likely_paths(value: object, name: str = "", depth: int = _MAX_DEPTH) -> Iterator[str]:
    """For a tool with unknown arguments: every text whose argument is named like a path, or that looks like one."""
    import re

    if isinstance(value, str):
        if "\n" not in value and (re.search(_NAMES_A_PATH, name) or value.startswith(_LOOKS_LIKE_A_PATH)):
            yield value
    elif depth and isinstance(value, list | dict):
        parts = value.items() if isinstance(value, dict) else ((name, part) for part in value)
        for inner, part in parts:
            yield from _likely_paths(part, inner, depth - 1)
