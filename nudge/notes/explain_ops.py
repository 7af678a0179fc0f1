"""The operations `memory_explain` and `search_explain`: why notes, hints, facts and observations rank where they do, or
why they do not apply here."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, WithJsonSchema

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, InContext, Result
from nudge.core.clock import last_time
from nudge.core.context import is_project
from nudge.core.errors import Invalid
from nudge.core.operation import operation
from nudge.core.scoring import half_life
from nudge.core.text import mask
from nudge.core.visibility import Visibility, visible_to
from nudge.hints import ranking
from nudge.hints.fields import copy_json
from nudge.hints.model import Hint
from nudge.hints.scope import Verdict
from nudge.history import projects, traces
from nudge.history.models import Search
from nudge.history.ops import search_options
from nudge.history.search import correct_query, explain_observations
from nudge.learning import store as fact_store
from nudge.learning.hints_ops import learned_here
from nudge.notes import explain as explaining
from nudge.notes import store as notes
from nudge.notes.explain import INVALID_ARGUMENT, NOT_FOUND, NoteExplanation, error
from nudge.notes.models import AnyNoteId, Filters, Limit
from nudge.notes.ranking import Match, matched_words, query_words, recall, scores_of
from nudge.notes.retrieval import Words
from nudge.notes.store import NoteFilter
from nudge.notes.visible_ops import note_filter
from nudge.repofile.hints_ops import trusted_hints

if TYPE_CHECKING:
    from nudge.meaning.fusion import Question
    from nudge.repofile.told import TrustedHints

_NO_QUERY = "at least one of query or ids is required"


_Ids = Annotated[
    list[AnyNoteId] | None,
    Field(max_length=limits.MAX_EXPLAINED_IDS),
    WithJsonSchema(
        {
            "type": "array",
            "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "maxItems": limits.MAX_EXPLAINED_IDS,
        }
    ),
]


_Names = Annotated[list[str] | None, Field(max_length=limits.MAX_EXPLAINED_NAMES, description="hints, as api/test")]


class Explain(InContext):
    query: str | None = None
    ids: _Ids = None
    project: str | None = None
    include_pack_context: bool = False
    limit: Limit = limits.DEFAULT_RECALL_LIMIT
    names: _Names = None


class ExplainResult(Result):
    items: list[dict[str, Any]]
    missing_ids: list[int]
    errors: list[dict[str, Any]]
    metadata: dict[str, Any]


@operation(
    "nudge.memory_explain",
    tool="memory_explain",
    group="memories",
    effect="read",
    route="POST /api/v1/explain",
    result=ExplainResult,
    summary="Notes: why a note or hint ranks where it does, or does not apply here.",
)
async def explain(app: App, params: Explain, call: Call) -> Any:
    """Explain notes, hints and facts. A request that names nothing, or cannot be searched for, is answered with errors
    in the envelope."""
    request = _ExplainRequest(params, app.now(), visible_to(app, call))
    in_file = await trusted_hints(app, call.context) if request.names else None
    request.variants = [variant for name in request.names for variant in _variants(app, name, call, request, in_file)]
    request.subjects = await _answering_facts(app, call, request.unknown_names)
    if request.query is not None:
        request.question = await app.meaning.question(request.query)

    needs_facts = request.unknown_names and app.database is not None
    result = await app.read(request.run) if request.needs_database or needs_facts else request.run(None)
    if app.team is not None:
        await app.team.explain_conflicts(result["items"])
    return result


async def _answering_facts(app: App, call: Call, names: Sequence[str]) -> dict[str, str]:
    """What fails by the facts that answer for these names of hints, such as `api/test`, where the caller is."""
    learned = await learned_here(app, call.context) if names else None
    answers = {name: learned.creditable(*name.rpartition("/")[::2]) for name in names} if learned is not None else {}
    return {name: answer.fact.subject for name, answer in answers.items() if answer is not None}


@dataclass(frozen=True, slots=True)
class _Variant:
    """A variant of a hint, and whether it applies where the caller is; `rank` is None where it does not."""

    hint: Hint
    verdict: Verdict
    rank: int | None

    @property
    def name(self) -> str:
        return f"{self.hint.component}/{self.hint.key}"


@dataclass(frozen=True, slots=True)
class _ExplainedFact:
    """What was learned about a command, a path or a test; `id` is the latest observation of it."""

    project: str
    subject: str
    answer: str | None
    error: str
    sessions: int
    timestamp: float
    id: int
    age: float
    observed: str = ""
    """The failure and the success of the latest session, with their exit codes."""

    def is_about(self, text: str) -> bool:
        """Whether the text is the command that fails, with or without arguments, or the one that works instead."""
        words = " ".join(text.split()).removeprefix("fact ")
        return words in (self.subject, self.answer) or words.startswith(f"{self.subject} ")

    @property
    def reasons(self) -> list[str]:
        number = f"{self.sessions} session{'s' * (self.sessions != 1)}, {last_time(self.age)}"
        if self.answer is None:
            return [self.error, f"failed in {number} #{self.id}"]
        return [self.error, self.observed, f"worked in {number} #{self.id}"]


def _load_facts(connection: sqlite3.Connection, project: str | None, now: float) -> Iterator[_ExplainedFact]:
    learned = fact_store.load(connection, project)
    for name, fact in learned.listed(project, now):
        seen = (fact.timestamp, fact.latest.success_id, now - fact.timestamp, fact.latest.text())
        yield _ExplainedFact(name, fact.subject, fact.answer, fact.cure.error, len(fact.support), *seen)
    for name, test in learned.tests.list_frequent():
        error, age = "fails in one session after the other", now - test.latest[0]
        yield _ExplainedFact(name, test.id, None, error, len(test.sessions), *test.latest, age)


class _ExplainRequest:
    """One request: what it asks for, and the errors found in it."""

    def __init__(self, params: Explain, now: float, visible: Visibility) -> None:
        self._params, self.now, self.visible = params, now, visible
        self.errors: list[dict[str, str]] = []
        self.missing: list[int] = []
        self.query = _query(params, self.errors)
        self.ids = list(dict.fromkeys(params.ids or ()))
        # A query may be the name of a hint with blanks in it.
        self.names = list(dict.fromkeys([*(params.names or ()), *([self.query] if self.query else ())]))
        self.unknown_names: list[str] = []
        """Names that no hint has; they may be facts."""
        self.variants: list[_Variant] = []
        """Of the hints that are named."""
        self.subjects: Mapping[str, str] = {}
        """The facts that answer for such names, by what fails."""
        self.project = params.project
        self.corrections: Mapping[str, str] = {}
        self.question: Question | None = None
        """The query with its vector, where there is a model."""
        self._where = NoteFilter()

    @property
    def needs_database(self) -> bool:
        return bool(self.query or self.ids or self._params.include_pack_context or self.project)

    def run(self, connection: sqlite3.Connection | None) -> dict[str, Any]:
        """The answer; without a connection, one about hints only."""
        is_resolved = connection is not None and self.resolve_project(connection)
        explanations = self.notes(connection) if connection is not None and is_resolved else []
        learned = self.facts(connection if is_resolved else None)
        pack = _PackContext(connection if self._params.include_pack_context else None, self.visible)
        return self.envelope(
            [
                *(self.note_item(one, pack.of(f"m{one.note.id}")) for one in explanations),
                *(self.hint_item(one, pack.of(one.name)) for one in self.variants),
                *(self.fact_item(one, rank, pack.of(one.id)) for rank, one in enumerate(learned, 1)),
            ]
        )

    def resolve_project(self, connection: sqlite3.Connection) -> bool:
        """Find the project by its short name; False, with an error in `errors`, when several projects have that
        name."""
        try:
            self._where = note_filter(connection, self.visible, Filters(namespace=self.project))
        except Invalid as refused:
            self.errors.append(error(INVALID_ARGUMENT, refused.message, "project"))
            self.missing = self.ids
            return False
        self.project = self._where.namespaces[0] if self._where.namespaces else None
        return True

    def notes(self, connection: sqlite3.Connection) -> list[NoteExplanation]:
        """The query's results by rank, then the other ids in the order of the request."""
        query, now = self.query, self.now
        if query is not None:
            self.corrections = query_words(connection, query).corrections
        matches = [] if query is None else self._recall(connection, query)
        ranked = {match.note.id for match in matches}
        possible = [note_id for note_id in self.ids if 0 < note_id <= limits.MAX_NOTE_ID]
        by_id = {
            note_id: note
            for note_id, note in notes.get_many(connection, possible, now).items()
            if self.visible.shows(note.draft.namespace, self.project)
        }
        words = matched_words(connection, query, [*(match.note for match in matches), *by_id.values()])
        explanations = [
            NoteExplanation(match.note, match.score, words[match.note.id], rank)
            for rank, match in enumerate(matches, 1)
        ]
        others = [note for note_id, note in by_id.items() if note_id not in ranked]
        scores = scores_of(connection, query, others, words, matches, now, self._where, self.question)
        for note_id in self.ids:
            note = by_id.get(note_id)
            if note is None:
                self._miss(note_id, explaining.not_found(note_id))
            elif self.project is not None and note.draft.namespace != self.project:
                self._miss(note_id, explaining.other_project(note))
            elif note_id not in ranked:
                explanations.append(NoteExplanation(note, scores[note_id], words[note_id]))
        return explanations

    def _recall(self, connection: sqlite3.Connection, query: str) -> list[Match]:
        return recall(connection, query, self._where, self._params.limit, self.now, self.question)

    def facts(self, connection: sqlite3.Connection | None) -> list[_ExplainedFact]:
        """The facts about the query or a name, newest first. A name that is neither a hint's nor a fact's is an
        error."""
        texts = [*([self._params.query] if self._params.query else ()), *map(self._subject, self.unknown_names)]
        learned = _load_facts(connection, self.project, self.now) if texts and connection is not None else ()
        shown = (one for one in learned if self.visible.shows(one.project, self.project))
        matching = [one for one in shown if any(map(one.is_about, texts))]
        for name in self.unknown_names:
            if not any(one.is_about(self._subject(name)) for one in matching):
                self.errors.append(error(NOT_FOUND, f"there is no hint {mask(name)}", "names"))
        return sorted(matching, key=lambda one: -one.timestamp)[: self._params.limit]

    def _subject(self, name: str) -> str:
        return self.subjects.get(name, name)

    def _miss(self, note_id: int, reason: dict[str, str]) -> None:
        self.missing.append(note_id)
        self.errors.append(reason)

    def note_item(self, one: NoteExplanation, pack_context: Mapping[str, Any] | None) -> dict[str, Any]:
        requested = one.note.id in self.ids
        return explaining.item(one, requested=requested, project=self.project, pack_context=pack_context)

    def hint_item(self, one: _Variant, pack_context: Mapping[str, Any] | None) -> dict[str, Any]:
        reasons = [*one.verdict.reasons, *(ranking.usage_reasons(one.hint, self.now) if one.verdict.eligible else ())]
        return hint_item(
            one.hint,
            self.now,
            rank=one.rank,
            eligible=one.verdict.eligible,
            reasons=reasons,
            project=self.project,
            source=explaining.NAME_LOOKUP,
            pack_context=pack_context,
        )

    def fact_item(self, one: _ExplainedFact, rank: int, pack_context: Mapping[str, Any] | None) -> dict[str, Any]:
        is_query = bool(self._params.query) and one.is_about(str(self._params.query))
        return explaining.item_of(
            identity=f"fact {one.subject}",
            kind="fact",
            title=one.subject if one.answer is None else f"{one.subject} -> {one.answer}",
            created_at=one.timestamp,
            project=one.project,
            source=explaining.QUERY if is_query else explaining.NAME_LOOKUP,
            rank=rank,
            score={"base": half_life(self.now - one.timestamp)},
            matches={"project_match": self.project and one.project == self.project, "reasons": one.reasons},
            pack_context=pack_context,
        )

    def envelope(self, items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return explaining.envelope(
            query=self.query,
            project=self.project,
            requested=len(self.ids),
            corrections=self.corrections,
            include_pack_context=self._params.include_pack_context,
            items=items,
            missing_ids=self.missing,
            errors=self.errors,
        )


def hint_item(
    hint: Hint,
    now: float,
    *,
    rank: int | None,
    eligible: bool,
    reasons: Sequence[str],
    project: str | None,
    source: str,
    pack_context: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The explanation of one variant of a hint, with the parts of its score where it applies."""
    name, scope = f"{hint.component}/{hint.key}", copy_json(hint.scope.fields)
    parts = ranking.score_components(hint, now)
    weighted = {part: ranking.WEIGHTS[part] * value for part, value in parts.items()}
    belongs = None if project is None else is_project(scope.get("repo") or "", project)
    return explaining.item_of(
        identity=name,
        kind="hint",
        title=name,
        created_at=hint.created_at,
        project=scope.get("repo"),
        source=source,
        rank=rank,
        score=weighted if eligible else None,
        matches={"project_match": belongs, "eligible": eligible, "scope": scope, "reasons": list(reasons)},
        pack_context=pack_context,
        own_components=("frecency", "specificity"),
    )


def _query(params: Explain, errors: list[dict[str, str]]) -> str | None:
    """The query, when it can be searched for."""
    query = params.query if params.query and params.query.strip() else None
    if query is None:
        if not params.ids and not params.names:
            errors.append(error(INVALID_ARGUMENT, _NO_QUERY, "query"))
        return None
    try:
        Words.parse(query, all_needed=False)
    except Invalid as refused:
        errors.append(error(INVALID_ARGUMENT, refused.message, "query"))
        return None
    return query


def _variants(
    app: App, name: str, call: Call, request: _ExplainRequest, in_file: TrustedHints | None
) -> list[_Variant]:
    """All variants of a hint: those that apply here by rank, then the others. Those of the repo's file come behind
    one's own."""
    store, now = app.lifetime.store, request.now
    held = [hint for hint in next(store.find_named(name, now), []) if request.visible.shows_scope(hint.scope.fields)]
    env_names = frozenset(variable for hint in held for variable in hint.scope.env_names)
    context = call.with_variables(call.context, env_names)
    written = in_file.variants(*name.rpartition("/")[::2]) if in_file is not None else []
    if not held and not written and name != request.query:
        request.unknown_names.append(name)
    checked = [
        (hint, hint.scope.check(context)) for hint in sorted(held, key=lambda hint: ranking.order_key(hint, now))
    ]
    checked += [(one.hint, Verdict(verdict.eligible, [*one.reasons, *verdict.reasons])) for one, verdict in written]
    eligible = [pair for pair in checked if pair[1].eligible]
    others = [pair for pair in checked if not pair[1].eligible]
    return [
        *(_Variant(hint, verdict, rank) for rank, (hint, verdict) in enumerate(eligible, 1)),
        *(_Variant(hint, verdict, None) for hint, verdict in others),
    ]


class _PackContext:
    """Whether and where something was injected, in the sessions that the caller may see; without a connection nobody
    asked for it."""

    def __init__(self, connection: sqlite3.Connection | None, visible: Visibility) -> None:
        self._connection = connection
        self._hidden = frozenset() if connection is None else projects.find_hidden(connection, visible)

    def of(self, identity: int | str) -> dict[str, Any] | None:
        if self._connection is None:
            return None
        return traces.injected_as(self._connection, identity, hidden=self._hidden)


# The history


class ExplainSearch(Search):
    limit: Limit = limits.DEFAULT_RECALL_LIMIT
    include_pack_context: bool = False


@operation(
    "nudge.search_explain",
    tool="search_explain",
    group="history",
    effect="read",
    route="GET /api/v1/explain/observations",
    result=ExplainResult,
    listed=False,
    summary="History: why a search ranks its results as it does.",
)
async def explain_search(app: App, params: ExplainSearch, call: Call) -> Any:
    """The observations that `search` finds, in the same order and the same envelope as notes."""
    now, visible = app.now(), visible_to(app, call)

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        options = search_options(connection, params, visible)
        rows = explain_observations(connection, params.query, **options, limit=params.limit, now=now)
        pack = _PackContext(connection if params.include_pack_context else None, visible)
        corrections = correct_query(connection, params.query).corrections
        items = [
            explaining.item_of(
                identity=row["id"],
                kind=row["obs_type"],
                title=row["content"][: limits.PREVIEW_CHARS],
                created_at=row["timestamp"],
                project=row["project"],
                source=explaining.QUERY,
                rank=rank,
                score=parts,
                matches={"query_terms": words, "project_match": options["project"] and True},
                pack_context=pack.of(row["id"]),
            )
            for rank, (row, parts, words) in enumerate(rows, params.offset + 1)
        ]
        return explaining.envelope(
            query=params.query,
            project=options["project"],
            requested=0,
            corrections=corrections,
            include_pack_context=params.include_pack_context,
            items=items,
        )

    return await app.read_history(read)
