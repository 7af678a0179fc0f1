"""The notes, hints and facts that a prompt is about: the operation `assemble_context`, and the notes for a hook."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from nudge import limits
from nudge.clock import ago
from nudge.context import Context
from nudge.hints.fields import search_text
from nudge.history import facts, projects
from nudge.history.digest_lines import hint_value_text, reason_text, short_name
from nudge.history.ledger import IDENTITY, Line
from nudge.memories.attempts import LESSON
from nudge.memories.note import ATTEMPT, GLOBAL
from nudge.memories.ranking import RelevantNote, relevant_notes, subject_words
from nudge.memories.store import NoteFilter
from nudge.text import quote, quote_name, quote_titled
from nudge.usecases.app import App
from nudge.usecases.call import Call, InContext, Result, Text
from nudge.usecases.visibility import visible_to
from nudge.words import split_words, stem

ContextType = Literal["values", "experiences", "notes", "hints", "facts"]
VALUES, EXPERIENCES = ("decision", "lesson"), (ATTEMPT,)
OTHERS = ("note", "bugfix", "feature", "refactor", "discovery", "change")

_TITLES = {
    "values": "Learned Values",
    "experiences": "Relevant Experiences",
    "notes": "Notes",
    "hints": "Hints",
    "facts": "What works here",
}
_KINDS = {"values": VALUES, "experiences": EXPERIENCES, "notes": OTHERS}
_CHARS_PER_TOKEN = 4
_MIN_SHARE = 0.5  # of the prompt's words that a hint or a fact must have


class AssembleContext(InContext):
    query: Annotated[Text, Field(description="the user's prompt", max_length=limits.MAX_PROMPT_CHARS * 10)]
    context_types: Annotated[list[ContextType] | None, Field(description="default: all")] = None
    limit: Annotated[int, Field(ge=1, le=limits.MAX_NOTES_LISTED, description="items of each type")] = 10
    max_tokens: Annotated[int, Field(ge=1, le=limits.MAX_BUDGET_TOKENS)] = 1_500


class AssembleContextResult(Result):
    """`markdown` is empty when nothing is known about the prompt; `truncated`: there was no room for everything."""

    markdown: str
    token_count: int
    item_count: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class _ContextSection:
    title: str
    lines: Sequence[Line]


async def assemble_context(app: App, params: AssembleContext, call: Call) -> Any:
    """Return only what the prompt is about, by the same threshold as for a hook. The notes are not touched."""
    types = list(dict.fromkeys(params.context_types or _TITLES))
    namespace, now = (await visible_to(app, call, params)).here, app.now()
    sections = {kind: await _hints(app, params, call) if kind == "hints" else [] for kind in types}

    def read(connection: sqlite3.Connection) -> None:
        for kind in types:
            if kind in _KINDS:
                relevant = notes_about(connection, params.query, namespace, _KINDS[kind], params.limit, now)
                sections[kind] = [note_line(one, now) for one in relevant]
            elif kind == "facts":
                sections[kind] = _facts(connection, params.query, namespace, params.limit, now)

    await app.read(read)
    return _to_markdown([_ContextSection(_TITLES[kind], sections[kind]) for kind in types], params.max_tokens)


def _to_markdown(sections: Iterable[_ContextSection], max_tokens: int) -> dict[str, Any]:
    """The sections as Markdown, without the lines that would exceed `max_tokens`. A line is never cut."""
    text, count, total = "", 0, 0
    for section in sections:
        head = ("\n\n" if text else "") + f"## {section.title}"
        for line in section.lines:
            total += 1
            longer = f"{text}{head}\n- {line.text}"
            if len(longer) // _CHARS_PER_TOKEN <= max_tokens:
                text, head, count = longer, "", count + 1
    return {
        "markdown": text,
        "token_count": len(text) // _CHARS_PER_TOKEN,
        "item_count": count,
        "truncated": count < total,
    }


# Notes


def notes_about(
    connection: sqlite3.Connection, prompt: str, namespace: str | None, kinds: Sequence[str], limit: int, now: float
) -> list[RelevantNote]:
    """Notes of the namespace and global ones. Of attempts, only those that were resolved."""
    names = tuple(dict.fromkeys((namespace or GLOBAL, GLOBAL)))
    where = NoteFilter(namespaces=names, kinds=tuple(kinds), without_open_attempts=True)
    return relevant_notes(connection, prompt, where, limit, now)


def without_attempts_of_lessons(relevant: Sequence[RelevantNote]) -> list[RelevantNote]:
    """Leave out the attempts whose lesson is among the notes: it tells their outcome."""
    attempts = {one.note.draft.metadata.get("attempt") for one in relevant if one.note.draft.kind == LESSON}
    return [one for one in relevant if one.note.draft.kind != ATTEMPT or one.note.id not in attempts]


def note_line(relevant: RelevantNote, now: float) -> Line:
    draft, name = relevant.note.draft, f"m{relevant.note.id}"
    outcome = ""
    if draft.kind == ATTEMPT:
        outcome = f", {quote_name(str(draft.metadata.get('outcome')), limits.INJECTED_NAME_CHARS)}"
    body = quote_titled(draft.title, draft.content, limits.MAX_TOLD_COMMAND, limits.INJECTED_NOTE_CHARS)
    supersedes, whose = "", "its"
    if (loser := relevant.supersedes) is not None:
        supersedes = f", in place of {quote(loser.draft.title, limits.MAX_TOLD_SUPERSEDED)}"
        whose = f"m{loser.id}'s"
    text = f"{name} {draft.kind}{outcome}, {ago(now - relevant.note.updated_at)}{supersedes}: {body}"
    reason = f"the prompt has {whose} words {', '.join(relevant.words[: limits.TOLD_WORDS])}"
    return Line(name, "note", text, reason, ((IDENTITY, name),))


# Hints and facts


async def _hints(app: App, params: AssembleContext, call: Call) -> list[Line]:
    """Hints that are eligible here and have at least half of the prompt's words. A secret is named without its
    value."""
    names = app.session.store.env_names()
    context = call.merge_context(Context.parse(params.context), names)
    result = await app.in_slices(app.session.store.query(app.now(), context=context, limit=limits.MAX_QUERY_LIMIT))
    lines = []
    told = []
    for hit in result["hints"]:
        meta = hit["hint"]["meta"]
        is_secret = meta.get("sensitivity") == "secret"
        value = None if is_secret else search_text(hit["hint"]["value"])
        name, reason = f"{hit['component']}/{hit['key']}", str(meta.get("reason") or "")
        if _shares_words(params.query, f"{name} {value or ''} {reason} {' '.join(meta.get('tags') or ())}"):
            text = f"{short_name(name)}: {hint_value_text(name, value)}"
            text += f" ({reason_text(reason)})" if reason else ""
            lines.append(Line(name, "hint", text, "it has most of the prompt's words"))
            told.append(hit)
    app.session.store.mark_returned(told[: params.limit], app.now())
    return lines[: params.limit]


def _facts(connection: sqlite3.Connection, prompt: str, project: str | None, limit: int, now: float) -> list[Line]:
    project = projects.find(connection, project)
    if project is None:
        return []
    offers = [offer for _, offer in facts.load(connection, project).list_offers(project, now)]
    about = [offer for offer in offers if _shares_words(prompt, f"{offer.fact.subject} {offer.answer}")]
    return [
        Line(f"fact {offer.fact.subject}", "fact", text, "it has most of the prompt's words")
        for offer in about[:limit]
        if (text := offer.text(now))
    ]


def _shares_words(prompt: str, text: str) -> bool:
    """Whether a short text has at least half of the words that the prompt is about."""
    wanted = {stem(part) for word in subject_words(prompt) for part in split_words(word)}
    return bool(wanted) and len(wanted & set(map(stem, split_words(text)))) >= _MIN_SHARE * len(wanted)
