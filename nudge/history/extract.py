"""What a hook event means: zero or one observation, by rules alone. One payload in, one event out, redacted before it
exists."""

from __future__ import annotations

import json
import os
import re

from nudge import limits
from nudge.errors import Invalid
from nudge.history import tools
from nudge.history.redaction import PRIVATE, redact_event, shortened
from nudge.history.tools import Seen, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from nudge.context import Context

IGNORED = "ignored"
TOO_LONG = "[too long]"
CLIENTS = ("claude-code", "codex", "gemini", "cursor", "opencode")

# Known, and without anything to remember: the tool's end says what its start said, and a turn's end says nothing.
IGNORED_EVENTS = frozenset(
    (
        *(
            "PreToolUse",
            "PostToolBatch",
            "PermissionRequest",
            "PermissionDenied",
            "PreModelRequest",
            "UserPromptExpansion",
        ),
        *("Stop", "StopFailure", "SubagentStart", "SubagentStop", "Interrupt", "TeammateIdle", "MessageDisplay"),
        *("Setup", "InstructionsLoaded", "ConfigChange", "CwdChanged", "FileChanged", "DirectoryAdded"),
        *("WorktreeCreate", "WorktreeRemove", "TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult"),
        *("PreCompact", "Notification", "PreModelSwitch", "PostModelSwitch"),
    )
)

_CLIENTS_OWN = ("system-reminder", "task-notification")  # blocks that a client puts among the user's words
_REQUIRED = ("session_id", "cwd", "hook_event_name")
_HOMES = ((".claude", "claude-code"), (".codex", "codex"), (".gemini", "gemini"), (".cursor", "cursor"))


def extract(payload: Mapping[str, Any], *, now: float, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """The event that a payload tells; None when it tells nothing worth keeping. `repo` and `project` are the caller's
    to add."""
    said = understood(payload)
    for field in _REQUIRED:
        _require(said, field)
    found = _seen(said)
    if found is None:
        return None
    return redact_event(
        {
            "event_id": _event_id(said, found, now),
            "session_id": said["session_id"],
            "client": client_of(payload, environ),
            "cwd": said["cwd"] if len(said["cwd"]) <= limits.MAX_PATH_CHARS else None,
            "repo": None,
            "project": None,
            "timestamp": int(now),
            "source_event": text_of(payload, "hook_event_name"),
            "prompt_id": _prompt_id(said) or None,
            "agent_id": text_of(said, "agent_id") or None,
            "type": found.type,
            "tool_name": text_of(said, "tool_name")[: limits.MAX_LABEL_CHARS] or None,
            "file_path": found.path,
            "content": found.content,
            "metadata": _fitting(found.metadata),
            "start_source": found.content if found.type == "session_start" else None,
        }
    )


def located(event: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The event, with the repository, branch and project of its directory at this moment."""
    return {**event, **redact_event({"repo": context.repo, "branch": context.branch, "project": context.project})}


def classify(payload: Mapping[str, Any]) -> str:
    """The type of the observation, or `ignored`."""
    found = _seen(understood(payload))
    return IGNORED if found is None else found.type


def working_directory(payload: Mapping[str, Any]) -> str:
    """Where the agent works, as its client says it; Cursor names the roots of a workspace instead."""
    roots = payload.get("workspace_roots")
    named = next((root for root in roots if isinstance(root, str)), "") if isinstance(roots, list) else ""
    return text_of(payload, "cwd") or named


def client_of(payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """What the payload shows counts first: an agent that another one started inherits that one's environment."""
    if payload.get("client") in CLIENTS:
        return str(payload["client"])
    if "cursor_version" in payload or "conversation_id" in payload:
        return "cursor"
    transcript = text_of(payload, "transcript_path")
    if owner := next((client for home, client in _HOMES if f"/{home}/" in transcript.replace("\\", "/")), None):
        return owner
    if "turn_id" in payload:
        return "codex"
    return _client_by_event(payload) or _client_by_environment(environ)


def _client_by_event(payload: Mapping[str, Any]) -> str | None:
    name = text_of(payload, "hook_event_name")
    if not name or name in _OBSERVED or name in IGNORED_EVENTS:
        return None
    from nudge.history import dialects

    return "gemini" if name in dialects.GEMINI_EVENTS else "cursor" if name in dialects.CURSOR_EVENTS else None


def _client_by_environment(environ: Mapping[str, str]) -> str:
    if environ.get("CLAUDECODE") or environ.get("AI_AGENT", "").startswith("claude-code"):
        return "claude-code"
    return "gemini" if environ.get("GEMINI_CLI") else "unknown"


def understood(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload in Claude Code's words, which Codex shares."""
    said = dict(payload)
    name = text_of(payload, "hook_event_name")
    foreign = name and name not in _OBSERVED and name not in IGNORED_EVENTS
    if foreign or "cursor_version" in payload or "conversation_id" in payload:
        from nudge.history import dialects  # late: Claude Code and Codex do without

        said = dialects.translated(payload)
    return said | {"cwd": working_directory(payload)}


def is_complete(payload: Mapping[str, Any]) -> bool:
    """Whether all is there that an event needs."""
    said = understood(payload)
    return all(text_of(said, field) for field in _REQUIRED)


def _require(said: Mapping[str, Any], field: str) -> None:
    if not text_of(said, field):
        raise Invalid("is required, and must be a text", field=field)
    if field == "session_id" and len(said[field]) > limits.MAX_SESSION_ID_CHARS:
        raise Invalid(f"must be at most {limits.MAX_SESSION_ID_CHARS} characters", field=field)


def _fitting(metadata: dict[str, Any]) -> dict[str, Any]:
    """Within what the store takes, by giving up what takes most; ids and marks of redaction need the rest of the
    room."""
    while len(json.dumps(metadata)) > limits.MAX_METADATA_CHARS - limits.KIB:
        largest = max(metadata, key=lambda name: len(json.dumps(metadata[name])))
        metadata = {**metadata, largest: TOO_LONG}
    return metadata


def _seen(said: Mapping[str, Any]) -> Seen | None:
    reader = _OBSERVED.get(text_of(said, "hook_event_name"))
    return reader(said) if reader is not None else None


def _tool(said: Mapping[str, Any]) -> Seen:
    return tools.seen(said, failed=False)


def _failed_tool(said: Mapping[str, Any]) -> Seen:
    return tools.seen(said, failed=True)


def _prompt(said: Mapping[str, Any]) -> Seen | None:
    """What a client tells its model under the user's name is not the user's word. A private prompt stays as a place in
    the order."""
    prompt = text_of(said, "prompt")
    for name in _CLIENTS_OWN:
        prompt = _without(name, prompt)
    return Seen("user_prompt", shortened(prompt, limits.MAX_PROMPT_CHARS) or PRIVATE) if prompt.strip() else None


def _without(name: str, text: str) -> str:
    """Without the blocks of that name. A tag that is never closed is a word, unless the text begins with it: then it is
    cut short."""
    if not _is_named(name, text):
        return text
    kept, place = [], 0
    for begin, end in _blocks(name, text)[0]:
        kept.append(text[place:begin])
        place = end
    rest = "".join([*kept, text[place:]])
    return "" if re.match(rf"\s*{_opening(name)}", rest) else rest


def up_to_unclosed(prompt: str) -> str:
    """Of a prompt whose end is not known: what a client began to put in reaches as far as it is known."""
    return prompt[: min([len(prompt), *(begin for name in _CLIENTS_OWN for begin in _blocks(name, prompt)[1])])]


def _blocks(name: str, text: str) -> tuple[list[tuple[int, int]], list[int]]:
    """Where the outermost blocks begin and end, and where those begin that do not end."""
    blocks: list[tuple[int, int]] = []
    opened: list[int] = []
    for tag in re.finditer(rf"{_opening(name)}|(?i:</{name}\s*>)", text):
        if tag[0][1] != "/":
            opened.append(tag.start())
        elif opened:
            begin = opened.pop()
            while blocks and blocks[-1][0] > begin:
                blocks.pop()
            blocks.append((begin, tag.end()))
    return blocks, opened


def _is_named(name: str, text: str) -> bool:
    """Asked first: a pattern costs a hook more than its search."""
    return f"<{name}" in text.lower()


def _opening(name: str) -> str:
    return rf"(?i:<{name}(?:\s[^<>]*)?>)"


def _session_start(said: Mapping[str, Any]) -> Seen:
    return Seen("session_start", _label(said, "source", "startup"), metadata=_model(said))


def _session_end(said: Mapping[str, Any]) -> Seen:
    return Seen("session_end", _label(said, "reason", "other"))


def _session_compact(said: Mapping[str, Any]) -> Seen:
    return Seen("session_compact", _label(said, "trigger", "auto"))


def _label(said: Mapping[str, Any], name: str, default: str) -> str:
    return shortened(text_of(said, name), limits.MAX_LABEL_CHARS) or default


def _model(said: Mapping[str, Any]) -> dict[str, Any]:
    model = text_of(said, "model")[: limits.MAX_LABEL_CHARS]
    return {"model": model} if model else {}


_OBSERVED: dict[str, Callable[[Mapping[str, Any]], Seen | None]] = {
    "PostToolUse": _tool,
    "PostToolUseFailure": _failed_tool,
    "UserPromptSubmit": _prompt,
    "SessionStart": _session_start,
    "SessionEnd": _session_end,
    "PostCompact": _session_compact,
}


# Identity


def _prompt_id(said: Mapping[str, Any]) -> str:
    return (text_of(said, "prompt_id") or text_of(said, "turn_id"))[: limits.MAX_NAME_CHARS]


def _event_id(said: Mapping[str, Any], found: Seen, now: float) -> str:
    """The same for a plugin and a hook that tell the same, so that it is stored once; random where the client gives
    nothing to go by."""
    name = text_of(said, "hook_event_name")
    if found.type == "user_prompt":
        # A turn of Codex can be steered by a second prompt.
        parts = (
            [_prompt_id(said), name, "" if text_of(said, "prompt_id") else text_of(said, "prompt")]
            if _prompt_id(said)
            else []
        )
    elif found.type.startswith("session_"):
        # All that the client tells: two resumes in a row differ in more than their time.
        parts = [name, json.dumps(said, sort_keys=True), str(int(now) // limits.SESSION_EVENT_BUCKET)]
    else:
        parts = [text_of(said, "tool_use_id"), name] if text_of(said, "tool_use_id") else []
    return _digest([said["session_id"], *parts]) if parts else os.urandom(16).hex()


def _digest(parts: list[str]) -> str:
    text = "\0".join(parts).encode("utf-8", "replace")
    return str(_sha256()(text).hexdigest()[:32])


def _sha256() -> Callable[[bytes], Any]:
    """`hashlib` loads OpenSSL, which costs a hook more than all else it does; the interpreter's own module has the same
    digest."""
    try:
        from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]  # its name before Python 3.12
        except ImportError:
            from hashlib import sha256
    return sha256  # type: ignore[no-any-return,unused-ignore]
