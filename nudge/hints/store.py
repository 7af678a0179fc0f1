"""The hint store, in memory. A write is decided here, logged by the caller, then applied; nothing else changes it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Any

from nudge.core import limits
from nudge.core.clock import SESSION
from nudge.core.context import Context, describe_scope, project_of
from nudge.core.errors import Conflict, Invalid, NotFound
from nudge.core.visibility import EVERYTHING, Visibility
from nudge.hints import reconcile as sync
from nudge.hints import transfer as import_export
from nudge.hints.admission import Admission
from nudge.hints.fields import copy_json, parse_name, parse_text, parse_value, parse_whole
from nudge.hints.index import HintIndex
from nudge.hints.model import (
    Change,
    Decision,
    Hint,
    Identity,
    merge_meta,
    microseconds,
    next_version,
    parse_meta,
    parse_ttl,
)
from nudge.hints.ranking import RankedHint, order_key, rank
from nudge.hints.scope import parse_scope, scope_of
from nudge.hints.search import HintFilter, no_such_hint, no_such_variant, no_variant_here, search, shown_hints
from nudge.hints.transfer import IncomingHint, PayloadReader

_NOT_WORKING = "it worked no more often than it failed: set it right or delete it"


class HintStore:
    def __init__(
        self,
        lifetime_id: str,
        created_at: float,
        *,
        max_hints: int = limits.MAX_HINTS,
        secret_guard: bool = True,
        default_ttl: str = SESSION,
        idle: float = limits.HINT_IDLE,
    ) -> None:
        parse_ttl(default_ttl, "default_ttl")
        self.lifetime_id, self.created_at = lifetime_id, created_at
        self._index = HintIndex()
        self._admission = Admission(secret_guard, max_hints)
        self._idle = idle
        self._seen: dict[Identity, float] = {}  # read since the last sweep, which logs it
        self._default_ttl = {} if default_ttl == SESSION else {"ttl": default_ttl}

    def __len__(self) -> int:
        return len(self._index)

    def hints(self) -> list[Hint]:
        """All hints, including expired ones that are not swept yet."""
        return list(self._index)

    def apply(self, change: Change) -> None:
        self._index.apply(change)

    def prepare(self, change: Change) -> HintIndex:
        """Return an index with a large change applied; the store is not changed. May run on another thread, as long as
        nothing else is applied."""
        return self._index.with_change(change)

    def swap(self, index: HintIndex) -> HintIndex:
        """Use the index that `prepare` returned: readers see all of the change or nothing. Returns the former index,
        for the caller to free."""
        replaced, self._index = self._index, index
        return replaced

    # Writes

    def decide_set(
        self,
        now: float,
        component: object,
        key: object,
        value: object,
        meta: object = None,
        if_match_version: int | None = None,
        basis: dict[str, str] | None = None,
        session: str | None = None,
    ) -> Decision:
        """`basis` are the files of the repo that the hint depends on. It is stored only for a hint that is scoped to a
        repo: elsewhere the same paths are other files. `session` is the agent's that sets it."""
        name, label = parse_name(component, "component"), parse_name(key, "key")
        parsed = merge_meta({**self._default_ttl, **parse_meta(meta)})
        new = next_version(None, name, label, parse_value(value), parsed, now)
        self._admission.refuse_secret(new)
        current = self._index.live(new.identity, now)
        _check_version(new, current, if_match_version)
        hint = new if current is None else next_version(current, name, label, new.value, parsed, now)
        is_in_repo = "repo" in hint.meta.get("scope", {})
        hint = replace(hint, basis=basis if is_in_repo and basis else None, session=session)
        change = self._admission.make_room(self._index, Change((hint,)), now)
        return Decision(change, {"hint": hint.to_json()})

    def decide_delete(
        self, now: float, component: object, key: object, scope: object = None, *, visible: Visibility = EVERYTHING
    ) -> Decision:
        """Delete every variant that the caller may see, or the one with this scope; `{}` is the scope of the variant
        that applies everywhere. Raises NotFound."""
        name, label = parse_name(component, "component"), parse_name(key, "key")
        scope_key = None if scope is None else parse_scope(scope, "scope").key
        everything = sorted(self._live_variants(name, label, now), key=lambda hint: hint.scope.key)
        variants = shown_hints(everything, visible)
        gone = variants if scope_key is None else [hint for hint in everything if hint.scope.key == scope_key]
        if not gone:
            raise (
                no_such_variant(name, label, variants)
                if variants
                else no_such_hint(self._index, now, name, label, visible=visible)
            )
        previous = [hint.to_json() for hint in gone]
        change = Change(removals=tuple(hint.identity for hint in gone))
        return Decision(change, {"deleted": True, "previous": previous if len(previous) > 1 else previous[0]})

    def decide_bump(
        self,
        now: float,
        component: object,
        key: object,
        context: Context | None = None,
        delta: object = 1,
        *,
        scope: object = None,
        only_here: bool = True,
        visible: Visibility = EVERYTHING,
    ) -> Generator[None, None, Decision]:
        """Credit a hint for an outcome, without a new version: the variant with the scope, or the one that `get`
        returns in the context. If none applies and `only_here` is false, the only variant is credited. The credit
        counts for the project of the context."""
        credit = parse_whole(delta, "delta", -limits.MAX_BUMP, limits.MAX_BUMP)
        if credit == 0:
            raise Invalid("must not be 0", field="delta")
        project = None if context is None else project_of(context.repo, context.cwd)
        if scope is not None:
            return _credit(self._variant(now, component, key, scope, visible), credit, project, now)
        try:
            return _credit((yield from self._best(now, component, key, context, visible)).hint, credit, project, now)
        except NotFound:
            variants = shown_hints(self._live_variants(str(component), str(key), now), visible)
            if only_here or not variants:
                raise
        if len(variants) > 1:
            scopes = [copy_json(hint.scope.fields) for hint in variants[: limits.MAX_WHY_NOT]]
            rule = f"is needed: {component}/{key} has {len(variants)} variants, and none applies here: "
            raise Invalid(rule + "; ".join(map(describe_scope, scopes)), field="scope", scopes=scopes)
        return _credit(variants[0], credit, project, now)

    def applies(self, now: float, component: str, key: str, context: Context) -> bool:
        """Whether `get` returns a hint in the context."""
        return any(hint.scope.check(context).eligible for hint in self._live_variants(component, key, now))

    def has_variant(self, now: float, component: object, key: object, scope: object) -> bool:
        try:
            self._variant(now, component, key, scope, EVERYTHING)
        except NotFound:
            return False
        return True

    def _variant(self, now: float, component: object, key: object, scope: object, visible: Visibility) -> Hint:
        name, label = parse_name(component, "component"), parse_name(key, "key")
        scope_key = parse_scope(scope, "scope").key
        variants = self._live_variants(name, label, now)
        for hint in variants:
            if hint.scope.key == scope_key:
                return hint
        raise (
            no_such_variant(name, label, shown)
            if (shown := shown_hints(variants, visible))
            else no_such_hint(self._index, now, name, label, visible=visible)
        )

    def decide_credit(self, now: float, identity: Identity, credit: int, project: str | None) -> Decision | None:
        """Credit one variant for an outcome in a project, whichever `get` would return; None when it is gone."""
        current = self._index.live(identity, now)
        return None if current is None else _credit(current, credit, project, now)

    def decide_basis(self, now: float, identity: Identity, basis: dict[str, str]) -> Decision | None:
        """Update the files that a hint depends on; None when they are the same, or the hint is gone."""
        current = self._index.live(identity, now)
        if current is None or current.basis == basis:
            return None
        return Decision(Change((replace(current, basis=basis),)), {})

    def read_payload(self, now: float, payload: object) -> list[IncomingHint]:
        """Return the checked hints of a whole import. Of the store, it reads only the rules."""
        return import_export.read_payload(payload, now, self._admission)

    def payload_reader(self, now: float) -> PayloadReader:
        """Return a reader of an import of any size. Of the store, it reads only the rules."""
        return PayloadReader(now, self._admission)

    def decide_import(
        self, now: float, incoming: Iterable[IncomingHint], mode: str, visible: Visibility = EVERYTHING
    ) -> Decision:
        return import_export.decide_import(self._index, self._admission, now, incoming, mode, visible)

    def decide_change(self, now: float, change: Change) -> Decision:
        """Decide on a change whose hints are checked. Raises QuotaExceeded."""
        return Decision(self._admission.make_room(self._index, change, now), {})

    def decide_sync(
        self,
        now: float,
        scope: object,
        added_by: object,
        entries: Iterable[sync.Entry],
        keeps: sync.Keeps = sync.keep_none,
        bases: sync.Bases = MappingProxyType({}),
    ) -> Decision:
        tool = parse_text(added_by, "added_by", limits.MAX_ADDED_BY_CHARS, least=1)
        owner = sync.Owner(parse_scope(scope, "scope"), tool, self._default_ttl)
        return sync.decide_sync(self._index, self._admission, now, owner, entries, keeps, bases)

    def decide_sweep(self, now: float) -> Change:
        """Remove hints that have expired or were idle for too long; store which hints were read, once a day for
        each."""
        seen = dict(islice(self._seen.items(), limits.APPENDED_HINTS))
        for identity in seen:
            del self._seen[identity]
        hints = [self._index.get(identity) for identity in seen if identity in self._index]
        puts = [replace(hint, last_seen=seen[hint.identity]) for hint in hints]
        removals = [hint.identity for hint in self._index if not hint.live_at(now) or self._is_idle(hint, now)]
        live_identities = {hint.identity for hint in puts if hint.live_at(now)} | self._seen.keys()
        return Change(
            tuple(hint for hint in puts if hint.identity in live_identities),
            tuple(identity for identity in removals if identity not in live_identities),
        )

    def _is_idle(self, hint: Hint, now: float) -> bool:
        return hint.expires_at is None and 0 < self._idle < now - hint.last_seen

    # Reads

    def get(
        self,
        now: float,
        component: object,
        key: object,
        context: Context | None = None,
        visible: Visibility = EVERYTHING,
    ) -> Generator[None, None, dict[str, Any]]:
        """Return the best eligible variant. It has the hint's `basis`, if any, which must not be sent to the caller."""
        ranked = yield from self._best(now, component, key, context, visible)
        if ranked.hint.is_due(now):
            self._seen[ranked.hint.identity] = microseconds(now)
        result = {"hint": ranked.hint.to_json(), "match_explain": ranked.explain(now)}
        return {**result, "basis": ranked.hint.basis} if ranked.hint.basis else result

    def index_words(self) -> Generator[None, None, None]:
        """Build the index of words for queries by text. A query does this itself, unless it runs on a thread: then the
        caller must do it before, on the event loop."""
        return self._index.index_words()

    def query(
        self,
        now: float,
        *,
        component: object = None,
        keys: object = None,
        tags: object = None,
        text: object = None,
        regex: object = None,
        context: Context | None = None,
        limit: object = None,
        visible: Visibility = EVERYTHING,
    ) -> Generator[None, None, dict[str, Any]]:
        filters = HintFilter.parse(component, keys, tags, text, regex)
        most = parse_whole(limits.DEFAULT_QUERY_LIMIT if limit is None else limit, "limit", 1, limits.MAX_QUERY_LIMIT)
        return (yield from search(self._index, now, filters, context or Context(), most, visible))

    def mark_returned(self, hits: Iterable[dict[str, Any]], now: float) -> None:
        """Store at the next sweep that the hits of a query were returned to an agent or a user."""
        for hit in hits:
            if "due" in hit:
                self._seen[hit["due"]] = microseconds(now)

    def drop_unproven(self, hits: Iterable[dict[str, Any]], project: str | None) -> list[dict[str, Any]]:
        """Of the hits of a query, keep those that say something about a project: their scope names a place, or they
        were credited in the project."""
        return [hit for hit in hits if self._is_about(hit, project)]

    def _is_about(self, hit: dict[str, Any], project: str | None) -> bool:
        scope = scope_of(hit["hint"]["meta"].get("scope", {}))
        identity = (hit["component"], hit["key"], scope.key)
        if scope.names_place or project is None or identity not in self._index:
            return scope.names_place
        return project in (self._index.get(identity).credits or ())

    def list_components(
        self,
        now: float,
        component: object = None,
        context: Context | None = None,
        offset: int = 0,
        visible: Visibility = EVERYTHING,
    ) -> Generator[None, None, dict[str, Any]]:
        """Return the components, or the hints of one. All that the caller may see are listed; the context only marks
        those that apply, or counts them for each component. Hints that do not fit into one answer are left out, and
        `more` is set: the next `offset` is the number of hints listed so far."""
        if component is None:
            live = shown_hints((hint for hint in self._index if hint.live_at(now)), visible)
            if context is None:
                return {"components": _count(live)}
            eligible: dict[str, int] = {}
            for hint in live:
                eligible[hint.component] = eligible.get(hint.component, 0) + hint.scope.check(context).eligible
                yield
            return {"components": [{**row, "eligible_count": eligible[row["name"]]} for row in _count(live)]}
        live_hints = self.live_hints(now, component, visible)
        hints: list[dict[str, Any]] = []
        room = limits.PAGE_BYTES
        for hint in live_hints[offset:]:
            room -= hint.weight
            if room < 0 and hints:
                return {"components": _count(live_hints), "hints": hints, "more": True}
            hints.append(_list_entry(hint, context or Context()))
            yield
        return {"components": _count(live_hints), "hints": hints}

    def count_missing(self, now: float, identities: Iterable[Identity]) -> int:
        """Return how many of these variants do not exist."""
        return sum(self._index.live(identity, now) is None for identity in identities)

    def live_hints(self, now: float, component: object = None, visible: Visibility = EVERYTHING) -> list[Hint]:
        """Return the live hints that the caller may see, or those of one component, in the order of an export."""
        hints = self._index if component is None else self._index.component(parse_name(component, "component"))
        live = shown_hints((hint for hint in hints if hint.live_at(now)), visible)
        return sorted(live, key=lambda hint: hint.identity)

    def find_variants(self, now: float, component: object, key: object, visible: Visibility = EVERYTHING) -> list[Hint]:
        """Return every variant of one hint that the caller may see. Raises NotFound."""
        name, label = parse_name(component, "component"), parse_name(key, "key")
        variants = shown_hints(self._live_variants(name, label, now), visible)
        if not variants:
            raise no_such_hint(self._index, now, name, label, visible=visible)
        return sorted(variants, key=lambda hint: hint.identity)

    def find_named(self, name: str, now: float) -> Iterator[list[Hint]]:
        """Yield the live variants of each hint that `name` (component/key) may mean. Both parts may contain a slash, so
        each split is tried, that at the last slash first."""
        for at in range(len(name) - 1, -1, -1):
            component, key = name[:at], name[at + 1 :]
            if name[at] != "/" or not component or not key:
                continue
            if variants := [hint for hint in self._index.variants(component, key) if hint.live_at(now)]:
                yield sorted(variants, key=lambda hint: hint.identity)

    def export(self, now: float) -> dict[str, Any]:
        """Return the live hints; secrets without their value."""
        hints = self.live_hints(now)
        components = import_export.export_components(hints, import_export.PLAIN)
        return {"payload": {**self.export_header(hints), "components": components}}

    def export_header(self, hints: Sequence[Hint], form: import_export.Form = import_export.PLAIN) -> dict[str, Any]:
        return import_export.export_header(self.lifetime_id, self.created_at, hints, form)

    def env_names(self, component: str | None = None, key: str | None = None) -> frozenset[str]:
        """Return the environment variables in the scopes of these hints: a caller need not send others."""
        if component is None:
            return frozenset(self._index.env_names())
        hints = self._index.component(component) if key is None else self._index.variants(component, key)
        return frozenset(name for hint in hints for name in hint.scope.env_names)

    def _best(
        self, now: float, component: object, key: object, context: Context | None, visible: Visibility
    ) -> Generator[None, None, RankedHint]:
        """Return the best eligible variant, or raise NotFound with the reason for each that was excluded. Pauses after
        each variant: one may have patterns that take milliseconds, and there may be two hundred."""
        name, label = parse_name(component, "component"), parse_name(key, "key")
        checked = []
        for hint in self._live_variants(name, label, now):
            checked.append((hint, hint.scope.check(context or Context())))
            yield
        eligible = [(hint, verdict.reasons) for hint, verdict in checked if verdict.eligible]
        if not eligible:
            shown = {hint.identity for hint in shown_hints((hint for hint, _ in checked), visible)}
            refused = [pair for pair in checked if pair[0].identity in shown]
            raise (
                no_variant_here(name, label, refused)
                if refused
                else no_such_hint(self._index, now, name, label, context, visible=visible)
            )
        hint, reasons = min(eligible, key=lambda pair: order_key(pair[0], now)) if len(eligible) > 1 else eligible[0]
        more = [f"best of {len(eligible)} variants that apply"] if len(eligible) > 1 else []
        return rank(hint, [*reasons, *more], now)

    def _live_variants(self, component: str, key: str, now: float) -> list[Hint]:
        return [hint for hint in self._index.variants(component, key) if hint.live_at(now)]


def _credit(current: Hint, credit: int, project: str | None, now: float) -> Decision:
    """Count successes or, with a negative credit, failures."""
    hint = replace(
        current,
        use_count=min(current.use_count + max(credit, 0), limits.MAX_USE_COUNT),
        failure_count=min(current.failure_count + max(-credit, 0), limits.MAX_USE_COUNT),
        last_used_at=microseconds(now) if credit > 0 else current.last_used_at,
        last_seen=microseconds(now),
        credits=_credits_after(current, credit, project),
    )
    note = {} if credit > 0 or hint.net_use else {"note": _NOT_WORKING}
    return Decision(Change((hint,)), {"hint": hint.to_json(), **note})


def _credits_after(current: Hint, credit: int, project: str | None) -> dict[str, int] | None:
    """The credit of each project, the latest last. A project in which nothing is left to lower is not kept."""
    if project is None or current.scope.names_place:
        return current.credits
    others = dict(current.credits or {})
    count = min(others.pop(project, 0) + credit, limits.MAX_USE_COUNT)
    latest = list({**others, **({project: count} if count > 0 else {})}.items())[-limits.MAX_CREDITED_PROJECTS :]
    return dict(latest) or None


def _check_version(new: Hint, current: Hint | None, expected: int | None) -> None:
    """Raise Conflict unless the version is the expected one; 0 means that the hint must not exist."""
    if expected is None:
        return
    parse_whole(expected, "if_match_version", 0, limits.MAX_VERSION)
    actual = current.version if current else 0
    if expected != actual:
        raise Conflict(
            f"{new.component}/{new.key} {_mismatch(expected, actual)}, then retry", expected=expected, actual=actual
        )


def _mismatch(expected: int, actual: int) -> str:
    if actual == 0:
        return f"has no version {expected}, as it does not exist with this scope: see what there is"
    if expected == 0:
        return f"exists already, at version {actual}: read it"
    return f"is at version {actual}, not {expected}: read it again"


def _count(hints: Iterable[Hint]) -> list[dict[str, Any]]:
    counts: dict[str, int] = {}
    for hint in hints:
        counts[hint.component] = counts.get(hint.component, 0) + 1
    return [{"name": name, "hint_count": counts[name]} for name in sorted(counts)]


def _list_entry(hint: Hint, context: Context) -> dict[str, Any]:
    verdict = hint.scope.check(context)
    return {"key": hint.key, "hint": hint.to_json(), "eligible": verdict.eligible, "reasons": verdict.reasons}
