"""The notes, hints and facts for a question: the operation `assemble_context`; and the few notes that a prompt is
about, for a hook."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, InContext, Result, Text
from nudge.core.operation import operation
from nudge.core.visibility import visible_to
from nudge.core.words import split_words, stem
from nudge.hints.fields import search_text
from nudge.history import projects
from nudge.learning import store as fact_store
from nudge.notes.fields import ATTEMPT
from nudge.notes.models import Filters
from nudge.notes.visible_ops import note_filter
from nudge.repofile.hints_ops import trusted_hints
from nudge.telling.common_words import weight_of
from nudge.telling.ledger import Line
from nudge.telling.prompt_notes import best_notes, note_line
from nudge.telling.start_rows import hint_origin
from nudge.telling.wording import hint_value_text, reason_text, short_name

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


class AssembleContext(InContext):
    query: Annotated[Text, Field(description="the user's prompt", max_length=limits.MAX_PROMPT_CHARS * 10)]
    context_types: Annotated[list[ContextType] | None, Field(description="default: all")] = None
    limit: Annotated[int, Field(ge=1, le=limits.MAX_NOTES_LISTED, description="items of each type")] = 10
    max_tokens: Annotated[int, Field(ge=1, le=limits.MAX_BUDGET_TOKENS)] = 1_500


class AssembleContextResult(Result):
    """`markdown` is empty when nothing has a word of the question; `truncated`: there was no room for everything."""

    markdown: str
    token_count: int
    item_count: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class _ContextSection:
    title: str
    lines: Sequence[Line]


@operation(
    "nudge.assemble_context",
    tool="assemble_context",
    group="memories",
    effect="read",
    route="POST /api/v1/context",
    result=AssembleContextResult,
    listed=False,
    summary="Notes: the best notes, attempts, hints and facts for a question, as Markdown of at most max_tokens.",
)
async def assemble_context(app: App, params: AssembleContext, call: Call) -> Any:
    """Return the best there is for the question, as much as fits: unlike a hook, whoever asks wants an answer. The
    notes are those that `memory_recall` finds; they are not touched."""
    types = list(dict.fromkeys(params.context_types or _TITLES))
    visible, now = visible_to(app, call), app.now()
    question = await app.meaning.question(params.query) if _KINDS.keys() & set(types) else None
    sections = {kind: await _hints(app, params, call) if kind == "hints" else [] for kind in types}

    def read(connection: sqlite3.Connection) -> None:
        for kind in types:
            if kind in _KINDS:
                where = replace(
                    note_filter(connection, visible, Filters()), kinds=_KINDS[kind], without_open_attempts=True
                )
                found = best_notes(connection, params.query, where, params.limit, now, question)
                sections[kind] = [note_line(one, now, visible.here, limits.INJECTED_NOTE_CHARS) for one in found]
            elif kind == "facts":
                sections[kind] = _facts(connection, params.query, visible.here, params.limit, now)

    await app.read(read)
    return _to_markdown([_ContextSection(_TITLES[kind], sections[kind]) for kind in types], params.max_tokens)


def _to_markdown(sections: Sequence[_ContextSection], max_tokens: int) -> dict[str, Any]:
    """The sections as Markdown, as far as they fit into `max_tokens`: the best line of each, then the second best. A
    line is never cut."""
    chosen: list[list[str]] = [[] for _ in sections]
    size, total = 0, sum(len(section.lines) for section in sections)
    for rank in range(max((len(section.lines) for section in sections), default=0)):
        for section, lines in zip(sections, chosen, strict=True):
            if rank >= len(section.lines):
                continue
            line = f"\n- {section.lines[rank].text}"
            head = 0 if lines else len(f"## {section.title}") + (2 if size else 0)
            if (size + head + len(line)) // _CHARS_PER_TOKEN <= max_tokens:
                lines.append(line)
                size += head + len(line)
    parts = [f"## {section.title}{''.join(lines)}" for section, lines in zip(sections, chosen, strict=True) if lines]
    text, count = "\n\n".join(parts), sum(map(len, chosen))
    return {
        "markdown": text,
        "token_count": len(text) // _CHARS_PER_TOKEN,
        "item_count": count,
        "truncated": count < total,
    }


# Notes


# Hints and facts


async def _hints(app: App, params: AssembleContext, call: Call) -> list[Line]:
    """Hints that are eligible here and have words of the question, those with the most of them first. A secret is named
    without its value."""
    names = app.lifetime.store.env_names()
    context = call.with_variables(call.context, names)
    result = await app.in_slices(app.lifetime.store.query(app.now(), context=context, limit=limits.MAX_QUERY_LIMIT))
    found: list[tuple[int, Line, dict[str, Any]]] = []
    in_file = await trusted_hints(app, context)
    own = {(hit["component"], hit["key"]) for hit in result["hints"]}
    more = [] if in_file is None else [hit for hit in in_file.at_start() if (hit["component"], hit["key"]) not in own]
    for hit in (*result["hints"], *more):
        meta = hit["hint"]["meta"]
        is_secret = meta.get("sensitivity") == "secret"
        value = None if is_secret else search_text(hit["hint"]["value"])
        name, reason = f"{hit['component']}/{hit['key']}", str(meta.get("reason") or "")
        if shared := _count_shared(params.query, f"{name} {value or ''} {reason} {' '.join(meta.get('tags') or ())}"):
            text = f"{short_name(name)}: {hint_value_text(name, value)}"
            told_reason = reason_text(reason, hint_origin(meta))
            text += f" ({told_reason})" if told_reason else ""
            found.append((shared, Line(name, "hint", text, "it has words of the question"), hit))
    best = sorted(found, key=lambda one: -one[0])[: params.limit]
    app.lifetime.store.mark_returned([hit for _, _, hit in best], app.now())
    return [line for _, line, _ in best]


def _facts(connection: sqlite3.Connection, prompt: str, project: str | None, limit: int, now: float) -> list[Line]:
    project = projects.find(connection, project)
    if project is None:
        return []
    facts = [fact for _, fact in fact_store.load(connection, project).listed(project, now) if fact.is_confirmed]
    about = [(_count_shared(prompt, f"{fact.subject} {fact.answer}"), fact) for fact in facts]
    best = sorted((one for one in about if one[0]), key=lambda one: -one[0])[:limit]
    return [
        Line(fact.name, "fact", text, "it has words of the question") for _, fact in best if (text := fact.text(now))
    ]


def _count_shared(question: str, text: str) -> int:
    """How many of the words that the question is about a text has."""
    wanted = {stemmed for stemmed in map(stem, split_words(question)) if weight_of(stemmed)}
    return len(wanted & set(map(stem, split_words(text))))
