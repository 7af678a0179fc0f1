"""The operations of hints: set, get, query, bump, delete and list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call, ContextParam, InContext, Params, Result, agent_session
from nudge.core.context import Context, describe_scope
from nudge.core.errors import NotFound
from nudge.core.operation import operation
from nudge.core.text import mask
from nudge.core.visibility import Visibility, visible_hints
from nudge.core.words import split_words
from nudge.hints import freshness
from nudge.hints.meaning_ops import hints_that_mean
from nudge.hints.reconcile import is_guess
from nudge.hints.scope import default_scope
from nudge.hints.search import HintFilter
from nudge.learning.hints_ops import LearnedHints, credit_fact, learned_here, not_deletable, refused_error
from nudge.repofile.hints_ops import (
    add_hits,
    best_not_set,
    is_from_file,
    not_here_error,
    not_own_error,
    order,
    trusted_hints,
)

if TYPE_CHECKING:
    from nudge.repofile.told import TrustedHints

_META = (
    "{reason, tags[], priority 1-10, confidence 0-1, ttl: 'session' or ISO-8601 such as PT2H, sensitivity:"
    " normal|secret, "
    "scope: {cwd_glob[], repo, branch[], os[], env_required[], env_match{}}}; "
    "repo = yours unless given, [] = any; scope {} = everywhere"
)
_VALUE = (
    "text, or {type: command, cmd, shell?} | {type: path, abs} | {type: template, format, body,"
    " defaults?} | {type: json, data}"
)


class Name(Params):
    component: str
    key: str


class SetHint(Name, InContext):
    value: Annotated[
        Any, Field(description=_VALUE, json_schema_extra={"anyOf": [{"type": "string"}, {"type": "object"}]})
    ]
    meta: Annotated[dict[str, Any] | None, Field(description=_META)] = None
    if_match_version: Annotated[
        int | None, Field(ge=0, description="only if the stored version is this; 0 = must be new")
    ] = None


class GetHint(Name, InContext):
    context: ContextParam = None


class Query(InContext):
    component: str | None = None
    keys: list[str] | None = None
    tags: Annotated[list[str] | None, Field(description="any of these")] = None
    text: Annotated[str | None, Field(description='words, "a phrase", prefix*')] = None
    regex: Annotated[str | None, Field(description="RE2, in all texts")] = None
    limit: Annotated[int, Field(ge=1, le=limits.MAX_QUERY_LIMIT)] = limits.DEFAULT_QUERY_LIMIT


class DeleteHint(Name, InContext):
    scope: Annotated[dict[str, Any] | None, Field(description="only this variant")] = None


class ListComponents(InContext):
    component: str | None = None
    offset: Annotated[int, Field(ge=0, description="hints of the component to skip")] = 0


class Bump(Name, InContext):
    delta: Annotated[int, Field(ge=-limits.MAX_BUMP, le=limits.MAX_BUMP)] = 1
    scope: dict[str, Any] | None = None


class HintResult(Result):
    hint: dict[str, Any]
    note: str | None = None


class GetResult(Result):
    hint: dict[str, Any]
    match_explain: dict[str, Any]


class QueryResult(Result):
    hints: list[dict[str, Any]]
    more: bool | None = None
    why_not: list[dict[str, Any]] | None = None
    note: str | None = None


class DeleteResult(Result):
    deleted: bool
    previous: dict[str, Any] | list[dict[str, Any]]


class ListComponentsResult(Result):
    components: list[dict[str, Any]]
    hints: list[dict[str, Any]] | None = None
    more: bool | None = None
    learned: list[dict[str, Any]] | None = None
    repo_file: list[dict[str, Any]] | None = None
    note: str | None = None


@operation(
    "nudge.get_hint",
    tool="nudge_get_hint",
    group="hints",
    effect="read",
    route="GET /api/v1/hints/{component}/{key}",
    result=GetResult,
    summary=(
        "Hints: the best fact for component/key here (build, test or run command, path, toggle), and why it "
        "matched. Ask before guessing."
    ),
)
async def get_hint(app: App, params: GetHint, call: Call) -> Any:
    """Return the best hint; where nobody set one, what the repo's file says, or what was learned for the job. A guess
    of scan's gives way to both."""
    store, name = app.lifetime.store, (params.component, params.key)
    context = call.with_variables(call.context, store.env_names(*name))
    visible = visible_hints(app, call)
    try:
        result = await app.in_slices(store.get(app.now(), *name, context, visible))
    except NotFound as error:
        in_file, learned = await trusted_hints(app, context), await learned_here(app, context)
        if found := best_not_set(in_file, learned, *name):
            return found
        refused = refused_error(not_here_error(error, in_file, *name), learned, *name)
        refused = await _with_near(app, refused, context, visible, *name)
        raise await _with_previous_offer(app, refused) from None
    if is_guess(result["hint"]["meta"]) and (better := await _better_than_guess(app, result, context, *name)):
        return better
    if "basis" in result:
        (result,) = await _mark_stale([result], context, call)
    return result


async def _better_than_guess(
    app: App, result: dict[str, Any], context: Context, component: str, key: str
) -> dict[str, Any] | None:
    in_file, learned = await trusted_hints(app, context), await learned_here(app, context)
    if in_file is not None and in_file.answers(component, key):
        return best_not_set(in_file, learned, component, key)
    return learned.get(component, key) if learned is not None and learned.corrects(component, key, result) else None


async def _mark_stale(hits: list[dict[str, Any]], context: Context, call: Call) -> list[dict[str, Any]]:
    """Mark stale hits when the caller has a directory on this machine; files are read on another thread."""
    cwd = context.cwd if call.interface in ("cli", "mcp") else None
    marked = await asyncio.to_thread(freshness.mark_stale, hits, cwd)
    for hit in marked:
        hit.pop("stale", None)  # match_explain has it among its reasons
        hit.pop("is_gone", None)
    return marked


async def _with_near(
    app: App, error: NotFound, context: Context, visible: Visibility, component: str, key: str
) -> NotFound:
    """The error with the names of hints that mean nearly the same, where there are no similar names."""
    if error.data.get("near") or error.data.get("why_not"):
        return error
    text = " ".join(split_words(f"{component} {key}"))
    near = [f"{hit['component']}/{hit['key']}" for hit in await hints_that_mean(app, text, context, visible)]
    if not near:
        return error
    return NotFound(f"{error.message} (close in meaning: {', '.join(near)})", **{**error.data, "near": near})


async def _with_previous_offer(app: App, error: NotFound) -> NotFound:
    """The error with how to import the hints of the previous session, when there are any. A hint that exists, but not
    for here, is not one of those: the reasons say more."""
    note = None if error.data.get("why_not") else await app.changes.previous_note()
    return NotFound(f"{error.message}; {note}", **error.data) if note else error


@operation(
    "nudge.set_hint",
    tool="nudge_set_hint",
    group="hints",
    effect="write",
    route="PUT /api/v1/hints/{component}/{key}",
    result=HintResult,
    summary=(
        "Hints: remember a fact that cost effort to find. Same scope replaces it, another scope adds a "
        "variant. Never secrets."
    ),
)
async def set_hint(app: App, params: SetHint, call: Call) -> Any:
    scope = default_scope((params.meta or {}).get("scope"), call.context.repo)
    session = agent_session(app.clients, call)
    basis = await _find_basis(params.value, scope, call)
    return await app.changes.serialize(call, lambda: _set(app, params, scope, basis, session, call))


async def _find_basis(value: object, scope: object, call: Call) -> dict[str, str] | None:
    """The files that the value names in the caller's clone, as they are now; they are read on another thread."""
    if not freshness.may_name_files(freshness.command_text(value)):
        return None
    repo = scope.get("repo") if isinstance(scope, dict) else None
    return await asyncio.to_thread(freshness.find_basis_of_hint, value, repo, call.context, call.interface)


async def _set(
    app: App, params: SetHint, scope: object, basis: dict[str, str] | None, session: str | None, call: Call
) -> Any:
    meta, given = _with_author(params.meta, call), (params.meta or {}).get("scope")
    decision = app.lifetime.store.decide_set(
        app.now(),
        params.component,
        params.key,
        params.value,
        meta if scope is None else {**(meta or {}), "scope": scope},
        params.if_match_version,
        basis,
        session,
    )
    if call.interface == "mcp" or (scope != given and call.interface != "cli"):
        decision.result["note"] = _set_note(app, decision.result["hint"], given, scope)
    elif call.interface == "cli" and app.lifetime.log is None:
        decision.result["note"] = f"kept {_lifetime(app, decision.result['hint'])}"
    return app.changes.commit(decision, call)


def _set_note(app: App, hint: dict[str, Any], given: object, scope: object) -> str:
    """The note for an agent: the whole scope, how to widen it if the repo is a default, and how long the hint lives."""
    default = "pass repo: [] in meta.scope for any repo" if given else "pass meta.scope {} for everywhere"
    widen = "" if scope == given else f"; {default}"
    return f"scope: {describe_scope(hint['meta'].get('scope'))}{widen}; kept {_lifetime(app, hint)}"


def _lifetime(app: App, hint: dict[str, Any]) -> str:
    return app.lifetime.settings.describe_lifetime(hint["meta"], durable=app.lifetime.log is not None)


def _with_author(meta: dict[str, Any] | None, call: Call) -> dict[str, Any] | None:
    """Name the agent as the author of its hint, unless the hint names one."""
    if call.interface != "mcp":
        return meta
    given = {name: value for name, value in (meta or {}).items() if value is not None}
    author = {"source": "agent", **({"added_by": f"agent:{mask(call.client)}"} if call.client else {})}
    return {**author, **given}


def _named_scope(app: App, params: DeleteHint | Bump, call: Call) -> object:
    """The scope of the variant that the caller names: what `set` makes of the same scope here or, where there is no
    such variant, the scope as it is."""
    if params.scope is None:
        return None
    named = (params.component, params.key, default_scope(params.scope, call.context.repo))
    return named[-1] if app.lifetime.store.has_variant(app.now(), *named) else params.scope


@operation(
    "nudge.query",
    tool="nudge_query",
    group="hints",
    effect="read",
    route="GET /api/v1/hints",
    result=QueryResult,
    summary=(
        "Hints: search by words, component, keys, tags or regex; ranked for this context. Use it when the key"
        " is unknown."
    ),
)
async def query(app: App, params: Query, call: Call) -> Any:
    store = app.lifetime.store
    context = call.with_variables(call.context, store.env_names(params.component))
    if params.text is not None and params.regex is not None:
        await app.in_slices(store.index_words())
    steps = store.query(
        app.now(),
        component=params.component,
        keys=params.keys,
        tags=params.tags,
        text=params.text,
        regex=params.regex,
        context=context,
        limit=params.limit,
        visible=visible_hints(app, call),
    )
    result = await (app.in_slices(steps) if params.regex is None else app.in_thread(steps))
    if params.text is not None and not result["hints"] and "why_not" not in result:
        filters = {"component": params.component, "keys": params.keys, "tags": params.tags}
        result["hints"] = await hints_that_mean(app, params.text, context, visible_hints(app, call), **filters)
    store.mark_returned(result["hints"], app.now())
    for hit in result["hints"]:
        hit.pop("due", None)
    if any("basis" in hit for hit in result["hints"]):
        result["hints"] = await _mark_stale(result["hints"], context, call)
    if "more" not in result:
        await _add_not_set(app, params, context, result)
    return result if result["hints"] else await _with_previous_note(app, result)


async def _add_not_set(app: App, params: Query, context: Context, result: dict[str, Any]) -> None:
    """Add what matches for the jobs that no hint is for here: what the repo's file says, behind the hints, and what was
    learned, among those that match as a whole by its score. A guess of scan's gives way to both."""
    in_file, learned = await trusted_hints(app, context), await learned_here(app, context)
    filters = HintFilter.parse(params.component, params.keys, params.tags, params.text, params.regex)
    store, now = app.lifetime.store, app.now()
    if in_file is not None:
        add_hits(in_file, result, filters, params.limit, lambda name: store.applies(now, *name, context))
    if learned is not None:
        is_answered = partial(_is_answered, app, context, in_file)
        _add_learned(learned, result, filters, params.limit, is_answered)


def _is_answered(app: App, context: Context, in_file: TrustedHints | None, component: str, key: str) -> bool:
    """Whether a hint that applies here, or the repo's file, has an answer under this name."""
    if app.lifetime.store.applies(app.now(), component, key, context):
        return True
    return in_file is not None and in_file.answers(component, key)


def _add_learned(
    learned: LearnedHints,
    result: dict[str, Any],
    filters: HintFilter,
    limit: int,
    is_answered: Callable[[str, str], bool],
) -> None:
    """Add what was learned among the hits, in place of the guesses that it corrects."""
    hits = result["hints"]
    guesses = [hit for hit in hits if is_guess(hit["hint"]["meta"]) or is_from_file(hit)]
    corrected = [hit for hit in guesses if learned.corrects(hit["component"], hit["key"], hit)]
    hits = [hit for hit in hits if hit not in corrected]
    replaced = {(hit["component"], hit["key"]) for hit in corrected}
    for hit in learned.search(filters, limit):
        name = (hit["component"], hit["key"])
        if name in replaced or not is_answered(*name):
            hits.append(hit)
    hits.sort(key=order)
    result["hints"] = hits[:limit]
    result.update({"more": True} if len(hits) > limit else {})
    if hits:
        result.pop("why_not", None)
    elif refused := learned.search_refused(filters, limits.MAX_QUERY_WHY_NOT):
        result["why_not"] = [*result.get("why_not", ()), *refused][: limits.MAX_QUERY_WHY_NOT]


async def _with_previous_note(app: App, result: dict[str, Any]) -> dict[str, Any]:
    note = await app.changes.previous_note()
    return {**result, "note": note} if note else result


@operation(
    "nudge.bump",
    tool="nudge_bump",
    group="hints",
    effect="write",
    route="POST /api/v1/hints/{component}/{key}/bump",
    result=HintResult,
    summary=(
        "Hints: credit one that worked (delta 1) or failed (-1), so that it ranks higher or lower. Not for mere "
        "reading."
    ),
)
async def bump(app: App, params: Bump, call: Call) -> Any:
    """Credit a hint or, where there is none, what was learned for the job."""
    return await app.changes.serialize(call, lambda: _bump(app, params, call))


async def _bump(app: App, params: Bump, call: Call) -> Any:
    store = app.lifetime.store
    context = call.with_variables(call.context, store.env_names(params.component, params.key))
    steps = store.decide_bump(
        app.now(),
        params.component,
        params.key,
        context,
        params.delta,
        scope=_named_scope(app, params, call),
        only_here=params.context is not None,
        visible=visible_hints(app, call),
    )
    try:
        decision = await app.in_slices(steps)
    except NotFound as error:
        learned = await learned_here(app, call.context) if params.scope is None else None
        if learned is not None and (answer := learned.creditable(params.component, params.key)):
            return await credit_fact(app, learned, answer, params.component, params.delta, call)
        name = (params.component, params.key)
        error = not_own_error(refused_error(error, learned, *name), await trusted_hints(app, context), *name)
        raise await _with_previous_offer(app, error) from None
    return app.changes.commit(decision, call)


@operation(
    "nudge.delete_hint",
    tool="nudge_delete_hint",
    group="hints",
    effect="delete",
    route="DELETE /api/v1/hints/{component}/{key}",
    result=DeleteResult,
    listed=False,
    summary="Hints: delete component/key: all variants, or the one with the given scope.",
)
async def delete_hint(app: App, params: DeleteHint, call: Call) -> Any:
    try:
        return await app.changes.serialize(call, lambda: _delete(app, params, call))
    except NotFound as error:
        name = (params.component, params.key)
        in_file, learned = await trusted_hints(app, call.context), await learned_here(app, call.context)
        error = not_own_error(not_deletable(error, learned, *name), in_file, *name)
        raise await _with_previous_offer(app, error) from None


async def _delete(app: App, params: DeleteHint, call: Call) -> Any:
    visible = visible_hints(app, call)
    scope = _named_scope(app, params, call)
    decision = app.lifetime.store.decide_delete(app.now(), params.component, params.key, scope, visible=visible)
    return app.changes.commit(decision, call)


@operation(
    "nudge.list_components",
    tool="nudge_list_components",
    group="hints",
    effect="read",
    route="GET /api/v1/components",
    result=ListComponentsResult,
    listed=False,
    summary="Hints: components with their counts; with `component`, every key and variant in it, whatever the context.",
)
async def list_components(app: App, params: ListComponents, call: Call) -> Any:
    store = app.lifetime.store
    context = None
    if params.component is not None or params.context is not None:
        context = call.with_variables(call.context, store.env_names(params.component))
    visible = visible_hints(app, call)
    result = await app.in_slices(store.list_components(app.now(), params.component, context, params.offset, visible))
    if params.offset == 0:
        result.update(await _not_set_rows(app, params.component, call.context))
    return await _with_previous_note(app, result)


async def _not_set_rows(app: App, component: str | None, context: Context) -> dict[str, list[dict[str, Any]]]:
    """The trusted hints of the repo's file, and what was learned for the jobs that no hint is for, apart from one's
    own hints."""
    in_file, learned = await trusted_hints(app, context), await learned_here(app, context)
    store, now = app.lifetime.store, app.now()

    def is_set(name: tuple[str, str]) -> bool:
        return store.applies(now, *name, context)

    written = in_file.rows(component, is_set) if in_file is not None else []
    rows = learned.rows() if learned is not None and component in (None, *learned.names) else []
    answered = {(row["component"], row["key"]) for row in written if row["eligible"]}
    rows = [row for row in rows if not is_set((row["component"], row["key"]))]
    rows = [row for row in rows if (row["component"], row["key"]) not in answered]
    return {name: found for name, found in (("repo_file", written), ("learned", rows)) if found}


# Scan: the commands in a repo's manifests become hints, and are updated and removed with them
