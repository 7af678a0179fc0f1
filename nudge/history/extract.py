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

TOO_LONG = "[too long]"

_CLIENTS_OWN = ("system-reminder", "task-notification")  # blocks that a client puts among the user's words
_REQUIRED = ("session_id", "cwd", "hook_event_name")


def extract(payload: Mapping[str, Any], *, now: float) -> dict[str, Any] | None:
    """The event in a payload that `clients` has translated; None when there is nothing worth keeping in it. `repo` and
    `project` are the caller's to add."""
    for field in _REQUIRED:
        _require(payload, field)
    found = _seen(payload)
    if found is None:
        return None
    return redact_event(
        {
            "event_id": _event_id(payload, found, now),
            "session_id": payload["session_id"],
            "client": text_of(payload, "client") or "unknown",
            "cwd": payload["cwd"] if len(payload["cwd"]) <= limits.MAX_PATH_CHARS else None,
            "repo": None,
            "project": None,
            "timestamp": int(now),
            "source_event": text_of(payload, "source_event"),
            "prompt_id": _prompt_id(payload) or None,
            "agent_id": text_of(payload, "agent_id") or None,
            "type": found.type,
            "tool_name": text_of(payload, "tool_name")[: limits.MAX_LABEL_CHARS] or None,
            "file_path": found.path,
            "content": found.content,
            "metadata": _fitting(found.metadata),
            "start_source": found.content if found.type == "session_start" else None,
        }
    )


def located(event: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The event, with the repository, branch and project of its directory at this moment."""
    return {**event, **redact_event({"repo": context.repo, "branch": context.branch, "project": context.project})}


def is_complete(payload: Mapping[str, Any]) -> bool:
    """Whether all is there that an event needs."""
    return all(text_of(payload, field) for field in _REQUIRED)


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
