"""How the answer of a language model is read. It is parsed, never obeyed: words, tags, one truth value and numbers are
all that is taken from it, each checked by what it may be. Whatever else it says is dropped, or makes it a BadAnswer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from nudge.core import limits, strict_json
from nudge.core.errors import NudgeError
from nudge.core.words import content_words

_MAX_DEPTH = 16  # of the body; an answer itself has at most four levels
_THOUGHT_END = "</think>"  # a model may think aloud before it answers
_FENCED = re.compile(r"\A```(?:json)?\s*\n(.*)\n\s*```\Z", re.DOTALL)
_TAG = re.compile(r"[^\W_][\w.+#/-]*")
_RESERVED_TAGS = frozenset(("pinned",))
"""A pinned note is told at every start: only a user pins."""


class BadAnswer(ValueError):
    """The server answered, but not what it was asked."""


def content_of(body: bytes) -> str:
    """Return what the model said, of the body of a chat completion."""
    match _decoded(body):
        case {"choices": [{"finish_reason": "length"}, *_]}:
            raise BadAnswer("was longer than it may be")
        case {"choices": [{"message": {"content": str(content)}}, *_]}:
            return content
    raise BadAnswer("is no chat completion")


def words_in_answer(content: str, query: str) -> list[str]:
    """Return the words that the model would search for, without those of the query."""
    asked = set(content_words(query))
    found = [word for term in _texts(_field(content, "terms")) for word in content_words(term)]
    kept = (word for word in dict.fromkeys(found) if word not in asked and len(word) <= limits.MAX_PROPOSED_CHARS)
    return list(kept)[: limits.EXPANDED_WORDS]


def tags_in_answer(content: str) -> list[str]:
    tags = (tag_of(text) for text in _texts(_field(content, "tags")))
    return list(dict.fromkeys(tag for tag in tags if tag))[: limits.PROPOSED_TAGS]


def tag_of(text: str) -> str | None:
    """Return the text as a tag: in lower case, with a hyphen for a blank. None when it can be none."""
    tag = "-".join(text.lower().split())
    if len(tag) > limits.MAX_PROPOSED_CHARS or tag in _RESERVED_TAGS or _TAG.fullmatch(tag) is None:
        return None
    return tag


def verdict_in_answer(content: str) -> bool:
    verdict = _field(content, "contradicts")
    if not isinstance(verdict, bool):
        raise BadAnswer("has no truth value where one was asked for")
    return verdict


def groups_in_answer(content: str, count: int) -> list[tuple[list[int], str]]:
    """Return groups as numbers from 1 to `count` with their tag; a number belongs to the first group that names it."""
    groups, taken = [], set[int]()
    for group in _rows(_field(content, "groups"))[: limits.PROPOSED_GROUPS]:
        numbers = [number for number in _numbers(group.get("notes")) if 1 <= number <= count and number not in taken]
        tag = tag_of(text) if isinstance(text := group.get("tag"), str) else None
        if tag is not None and len(set(numbers)) >= limits.LEAST_PROPOSED_GROUP:
            groups.append((list(dict.fromkeys(numbers)), tag))
            taken.update(numbers)
    return groups


def _field(content: str, name: str) -> Any:
    answer = content.rpartition(_THOUGHT_END)[2].strip()
    fenced = _FENCED.fullmatch(answer)
    value = _decoded((fenced[1] if fenced else answer).encode("utf-8", "replace"))
    if not isinstance(value, dict) or name not in value:
        raise BadAnswer(f"has no `{name}`")
    return value[name]


def _decoded(body: bytes) -> Any:
    try:
        return strict_json.decode(body, depth=_MAX_DEPTH)
    except NudgeError:
        raise BadAnswer("is not JSON that can be read") from None


def _texts(value: Any) -> Iterable[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BadAnswer("has no list of texts where one was asked for")
    return value


def _rows(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise BadAnswer("has no list of objects where one was asked for")
    return value


def _numbers(value: Any) -> list[int]:
    if not isinstance(value, list) or not all(type(number) is int for number in value):
        raise BadAnswer("has no list of numbers where one was asked for")
    return value
