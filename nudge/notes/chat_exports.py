"""Convert chat exports of Claude, ChatGPT and Slack to notes.

A conversation, or a day of a Slack channel, becomes one note, or several if it is longer than a note may be. The `uid`
is derived from the conversation, so that an export that is read twice gives the same notes; their time is that of the
conversation, so that a note that was edited since is not overwritten. Records that cannot be parsed are counted and
left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeGuard

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.core.text import single_line
from nudge.notes.fields import parse_time, rfc3339

CLAUDE, CHATGPT, SLACK = "claude", "chatgpt", "slack"

_PART_BYTES = limits.MAX_NOTE_BYTES - limits.KIB
_TITLE_CHARS = 100
_SPEAKERS = {"human": "User", "user": "User", "assistant": "Assistant"}
_SLACK_NOISE = frozenset(("channel_join", "channel_leave", "channel_topic", "channel_purpose", "bot_add", "bot_remove"))

_SLACK_MENTION = re.compile(r"<@([A-Z0-9]{1,64})(?:\|([^<>|]*))?>")  # `<@U12>`, `<@U12|ada>` in older exports


@dataclass(slots=True)
class ConversationCounts:
    """Counts: conversations that became notes, empty ones, and records that could not be parsed."""

    conversations: int = 0
    empty: int = 0
    bad: int = 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation: who said what, in order."""

    identity: str
    title: str
    lines: Sequence[tuple[str, str]]
    began: float | None = None
    ended: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def notes_of(
    format_: str, conversations: Iterable[Conversation | None], counts: ConversationCounts
) -> Iterator[dict[str, Any]]:
    """Yield the fields of notes, as an import takes them. None stands for a record that could not be parsed."""
    for conversation in conversations:
        if conversation is None:
            counts.bad += 1
        elif not conversation.lines:
            counts.empty += 1
        else:
            counts.conversations += 1
            yield from _notes(format_, conversation)


def _notes(format_: str, conversation: Conversation) -> Iterator[dict[str, Any]]:
    parts = list(_parts(conversation.lines))
    for number, content in enumerate(parts, 1):
        nth = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
        times = {"created_at": rfc3339(conversation.began), "updated_at": rfc3339(conversation.ended)}
        yield {
            "title": f"{_title(conversation)}{nth}",
            "content": content,
            "tier": "long",
            "source": "import",
            "tags": [format_],
            "metadata": {"mined_from": format_, "conversation": conversation.identity, **conversation.metadata},
            "uid": _digest(f"{format_}\0{conversation.identity}\0{number}", 12),
            **{name: time for name, time in times.items() if time},
        }


def _title(conversation: Conversation) -> str:
    """Its name, its day and a digest of its id: titles must be unique, and many conversations have the same name."""
    words = single_line(conversation.title or conversation.lines[0][1], _TITLE_CHARS).strip() or "Conversation"
    if "channel" in conversation.metadata:
        return words
    day = "" if conversation.began is None else f", {datetime.fromtimestamp(conversation.began, UTC):%Y-%m-%d}"
    return f"{words}{day} [{_digest(conversation.identity, 4)}]"


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


def _parts(lines: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the text of a conversation in parts that fit into a note, split between messages where possible."""
    text: list[str] = []
    size = 0
    for speaker, message in lines:
        for piece in _pieces(f"{speaker}: {message}"):
            weight = len(piece.encode()) + 1
            if text and size + weight > _PART_BYTES:
                yield "\n".join(text)
                text, size = [], 0
            text.append(piece)
            size += weight
    yield "\n".join(text)


def _pieces(message: str) -> Iterator[str]:
    encoded = message.encode("utf-8", "replace").replace(b"\0", b"")
    for start in range(0, len(encoded), _PART_BYTES):
        # A character that is cut in two is left out.
        yield encoded[start : start + _PART_BYTES].decode("utf-8", "ignore")


# Claude: conversations.json is a list, each with `chat_messages`


def claude(exported: object) -> Iterator[Conversation | None]:
    for record in _list(exported):
        messages = record.get("chat_messages") if isinstance(record, Mapping) else None
        if not isinstance(record, Mapping) or not isinstance(messages, list) or not _identity(record.get("uuid")):
            yield None
            continue
        objects = filter(_is_object, messages)
        lines = [(_speaker(message.get("sender")), _claude_text(message)) for message in objects]
        times = _when(record.get("created_at")), _when(record.get("updated_at"))
        yield Conversation(record["uuid"], _text(record.get("name")), _spoken(lines), *times)


def _claude_text(message: Mapping[str, Any]) -> str:
    """Its text, or the text of its blocks: newer exports have both, some only the blocks."""
    if text := _text(message.get("text")):
        return text
    blocks = message.get("content")
    return _joined(block.get("text") for block in blocks if _is_object(block)) if isinstance(blocks, list) else ""


# ChatGPT: conversations.json is a list, each with a tree of messages in `mapping`


def chatgpt(exported: object) -> Iterator[Conversation | None]:
    for record in _list(exported):
        mapping = record.get("mapping") if isinstance(record, Mapping) else None
        if not isinstance(record, Mapping) or not isinstance(mapping, Mapping):
            yield None
            continue
        identity = record.get("conversation_id") or record.get("id")
        if not _identity(identity):
            yield None
            continue
        lines = [_chatgpt_line(node) for node in _branch(mapping, record.get("current_node"))]
        times = _when(record.get("create_time")), _when(record.get("update_time"))
        yield Conversation(str(identity), _text(record.get("title")), _spoken(lines), *times)


def _branch(mapping: Mapping[str, Any], last: object) -> list[Mapping[str, Any]]:
    """The nodes from the root to the current one; regenerated answers are on other branches."""
    if not isinstance(last, str) or last not in mapping:
        leaves = [name for name, node in mapping.items() if _is_object(node) and not node.get("children")]
        last = max(leaves, key=lambda name: _created(mapping[name]), default=None)
    branch: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while isinstance(last, str) and last not in seen and isinstance(node := mapping.get(last), Mapping):
        seen.add(last)
        branch.append(node)
        last = node.get("parent")
    return branch[::-1]


def _created(node: Mapping[str, Any]) -> float:
    message = node.get("message")
    return (_when(message.get("create_time")) if isinstance(message, Mapping) else None) or 0.0


def _chatgpt_line(node: Mapping[str, Any]) -> tuple[str, str]:
    message = node.get("message")
    if not isinstance(message, Mapping):
        return "", ""
    author, content = message.get("author"), message.get("content")
    role = author.get("role") if _is_object(author) else None
    parts = content.get("parts") if _is_object(content) else None
    if role not in _SPEAKERS or not isinstance(parts, list):  # system prompts, tool calls, images
        return "", ""
    texts = (part.get("text") if _is_object(part) else part for part in parts)
    return _speaker(role), _joined(texts)


# Slack: a folder of channels, each a folder with a file for a day


def slack(channel: str, day: str, exported: object, users: Mapping[str, str]) -> Iterator[Conversation | None]:
    """Yield one day of a channel, and None for each record in it that is no message. `users` are names by id, from
    `users.json`."""
    records = exported if isinstance(exported, list) else [None]
    messages = [record for record in records if _is_object(record)]
    yield from (None for _ in range(len(records) - len(messages)))
    if records and not messages:
        return
    posts = [message for message in messages if _text(message.get("subtype")) not in _SLACK_NOISE]
    lines = [(_slack_name(message, users), _slack_text(message, users)) for message in posts]
    times = sorted(filter(None, (_when(message.get("ts")) for message in messages)))
    began, ended = (times[0], times[-1]) if times else (None, None)
    metadata = {"channel": channel, "day": day}
    yield Conversation(f"{channel}/{day}", f"#{channel} {day}", _spoken(lines), began, ended, metadata)


def slack_users(exported: object) -> dict[str, str]:
    """Names by id."""
    users: dict[str, str] = {}
    for user in exported if isinstance(exported, list) else ():
        if _is_object(user) and isinstance(user.get("id"), str):
            profile = user.get("profile")
            shown = profile.get("display_name") if _is_object(profile) else None
            names = (shown, user.get("real_name"), user.get("name"))
            users[user["id"]] = next((name for name in map(_text, names) if name), user["id"])
    return users


def _slack_name(message: Mapping[str, Any], users: Mapping[str, str]) -> str:
    user = _text(message.get("user"))
    return users.get(user) or _text(message.get("username")) or user or "Somebody"


def _slack_text(message: Mapping[str, Any], users: Mapping[str, str]) -> str:
    """The text of a message, with the names of those it mentions."""

    def name(mention: re.Match[str]) -> str:
        user, label = mention.groups()
        return f"@{users.get(user) or label or user}"

    return _SLACK_MENTION.sub(name, _text(message.get("text")))


# Values of foreign files, which may be anything


def _list(exported: object) -> list[Any]:
    if isinstance(exported, Mapping):
        exported = exported.get("conversations")
    if not isinstance(exported, list):
        raise Invalid("is not an export of conversations: it must be a list", field="path")
    return exported


def _is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _identity(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= limits.MAX_NAMESPACE_BYTES


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _joined(texts: Iterable[object]) -> str:
    return "\n".join(text for text in map(_text, texts) if text)


def _speaker(sender: object) -> str:
    return _SPEAKERS.get(sender, "") if isinstance(sender, str) else ""


def _spoken(lines: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(speaker, text) for speaker, text in lines if speaker and text]


def _when(value: object) -> float | None:
    """A moment as ISO text or as seconds, which Slack writes as text."""
    try:
        seconds = parse_time(value, "time") if isinstance(value, str) and "-" in value else float(value)  # type: ignore[arg-type]
        return seconds if 0 < seconds < limits.MAX_TIMESTAMP else None
    except (Invalid, TypeError, ValueError, OverflowError):
        return None
