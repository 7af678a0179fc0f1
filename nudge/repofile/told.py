"""The trusted hints of a clone's file, in the forms in which hints are answered.

They are read when somebody asks: a hint disappears with its file, its branch, or the person's trust. Nothing of them is
stored as a hint.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nudge.core import limits
from nudge.core.clock import iso
from nudge.core.context import Context
from nudge.hints import scope as scopes
from nudge.hints.freshness import STALE_FACTOR
from nudge.hints.index import HintIndex
from nudge.hints.model import Hint
from nudge.hints.ranking import order_key, rank
from nudge.hints.scope import Verdict
from nudge.hints.search import HintFilter, search
from nudge.repofile import FILE, SAYS, SOURCE, evidence
from nudge.repofile.clone import Clone, find_clone, read_document
from nudge.repofile.document import COMMAND, PATH, Document, RepoHint
from nudge.repofile.trust import TRUSTED, Decision, TrustStore

_BEHIND_OWN = "a hint of your own comes first"


@dataclass(frozen=True, slots=True)
class TrustedHint:
    """A trusted hint as a hint of the clone; `stale` says why it may be out of date."""

    written: RepoHint
    hint: Hint
    decision: Decision
    stale: str | None

    @property
    def reasons(self) -> list[str]:
        place = f"{SAYS} so ({FILE}:{self.written.line}, trusted {iso(self.decision.at)[:10]})"
        return [*([self.stale] if self.stale else []), place]

    def to_json(self) -> dict[str, Any]:
        """The form that callers get. Its version is 0: there is no stored hint, and `set` makes the first one."""
        about = {"path": FILE, "line": self.written.line, "trusted_at": iso(self.decision.at)}
        rests_on = {"evidence": self.written.evidence} if self.written.evidence else {}
        return {**self.hint.to_json(), "version": 0, "file": {**about, **rests_on}}

    def explain(self, verdict: Verdict, now: float) -> dict[str, Any]:
        explanation = rank(self.hint, [*self.reasons, *verdict.reasons], now).explain(now)
        return _lowered(explanation) if self.stale else explanation


def trusted_here(store: TrustStore, context: Context, now: float | None = None) -> TrustedHints | None:
    """The trusted hints of the clone that a context is in; None without any. Reads files only where a clone of the
    context's repo has trusted hints."""
    if context.cwd is None or not store.may_trust(context.repo):
        return None
    clone = find_clone(context.cwd)
    if clone is None or clone.repo != context.repo or (document := read_document(clone)) is None:
        return None
    hints = [
        TrustedHint(written, hint, decision, evidence.stale_reason(clone.root, written.evidence, decision.evidence))
        for written, hint, decision in _trusted(store, clone, document)
    ]
    return TrustedHints(hints, context, time.time() if now is None else now) if hints else None


_Trusted = list[tuple[RepoHint, Hint, Decision]]
_built: dict[str, tuple[Document, object, _Trusted]] = {}
"""Cache by path of the file, with what the hints were built from: 200 hints take 30 ms."""


def _trusted(store: TrustStore, clone: Clone, document: Document) -> _Trusted:
    """The hints of the file that are trusted in this clone."""
    decisions = store.of(clone.repo, clone.git_dir)
    trust = (clone, store.version)
    known = _built.get(clone.file)
    if known is not None and known[0] is document and known[1] == trust:
        return known[2]
    trusted = {one.digest: one for one in decisions if one.state == TRUSTED}
    found = [
        (hint, _hint(clone, hint, trusted[digest]), trusted[digest])
        for hint in document.hints
        if (digest := hint.digest) in trusted
    ]
    if len(_built) >= limits.REPO_FILES_CACHED:
        _built.clear()
    _built[clone.file] = (document, trust, found)
    return found


def _hint(clone: Clone, written: RepoHint, decision: Decision) -> Hint:
    meta: dict[str, Any] = {"scope": _scope(clone, written), "source": SOURCE}
    if written.reason:
        meta["reason"] = written.reason
    return Hint.of(
        written.component,
        written.key,
        _value(clone, written),
        meta,
        created_at=round(decision.at, 6),
        updated_at=round(decision.at, 6),
    )


def _value(clone: Clone, written: RepoHint) -> Any:
    if written.kind == COMMAND:
        return {"type": "command", "cmd": written.value}
    if written.kind == PATH:
        return {"type": "path", "abs": os.path.join(clone.root, written.value)}
    return written.value


def _scope(clone: Clone, written: RepoHint) -> dict[str, Any]:
    """The scope as that of any hint: of this repo, with directories from the root of the file system."""
    root = "".join(f"[{char}]" if char in "*?[]{}(" else char for char in clone.root.rstrip("/"))
    globs = [f"{root}/{glob}" for glob in written.scope.get("cwd_glob", ())]
    others = {name: list(written.scope[name]) for name in ("branch", "os") if name in written.scope}
    return {**({"cwd_glob": globs} if globs else {}), "repo": clone.repo, **others}


def _lowered(explanation: dict[str, Any]) -> dict[str, Any]:
    return {**explanation, "score": round(explanation["score"] * STALE_FACTOR, 4)}


class TrustedHints:
    """The trusted hints of one clone for one caller."""

    def __init__(self, hints: Sequence[TrustedHint], context: Context, now: float) -> None:
        self._context, self._now = context, now
        self._checked = [(one, one.hint.scope.check(context)) for one in hints]

    def answers(self, component: str, key: str) -> bool:
        """Whether one of them applies here."""
        return any(verdict.eligible for _, verdict in self._named(component, key))

    def variants(self, component: str, key: str) -> list[tuple[TrustedHint, Verdict]]:
        """All variants of a hint, best first."""
        return sorted(self._named(component, key), key=lambda pair: order_key(pair[0].hint, self._now))

    def get(self, component: str, key: str) -> dict[str, Any] | None:
        """The best one that applies here, in the form of `get_hint`."""
        for one, verdict in self.variants(component, key):
            if verdict.eligible:
                return {"hint": one.to_json(), "match_explain": one.explain(verdict, self._now)}
        return None

    def why_not(self, component: str, key: str) -> list[dict[str, Any]]:
        """The variants that do not apply here, as rows of `why_not`."""
        return [
            {
                "component": component,
                "key": key,
                "scope": one.hint.scope.fields,
                "source": SOURCE,
                "reasons": [*one.reasons, *verdict.reasons],
            }
            for one, verdict in self.variants(component, key)
            if not verdict.eligible
        ]

    def search(self, filters: HintFilter, limit: int = limits.MAX_QUERY_LIMIT) -> Iterator[dict[str, Any]]:
        """Yield those that a query asks for and that apply here, in its form, best first."""
        by_identity = {one.hint.identity: one for one, _ in self._checked}
        index = HintIndex([one.hint for one in by_identity.values()])
        for hit in _finished(search(index, self._now, filters, self._context, limit))["hints"]:
            one = by_identity[hit["component"], hit["key"], scopes.scope_of(hit["hint"]["meta"]["scope"]).key]
            explanation = {**hit["match_explain"], "reasons": [*one.reasons, *hit["match_explain"]["reasons"]]}
            explanation = _lowered(explanation) if one.stale else explanation
            yield {
                **{name: hit[name] for name in ("component", "key", "partial") if name in hit},
                "score": explanation["score"] if one.stale else hit["score"],
                "hint": one.to_json(),
                "match_explain": explanation,
                **({"stale": one.stale} if one.stale else {}),
            }

    def rows(self, component: str | None, is_behind: Callable[[tuple[str, str]], bool]) -> list[dict[str, Any]]:
        """All of them, or those of one component, in the form of `list_components`. `is_behind` says of a name whether
        a hint of one's own comes first."""
        found = []
        for one, verdict in self._checked:
            if component not in (None, one.hint.component):
                continue
            behind = verdict.eligible and is_behind((one.hint.component, one.hint.key))
            reasons = [*one.reasons, *([_BEHIND_OWN] if behind else verdict.reasons)]
            found.append(
                {
                    "component": one.hint.component,
                    "key": one.hint.key,
                    "hint": one.to_json(),
                    "eligible": verdict.eligible and not behind,
                    "reasons": reasons,
                }
            )
        return sorted(found, key=lambda row: (row["component"], row["key"]))

    def at_start(self) -> list[dict[str, Any]]:
        """Those that apply here, for the text of a start."""
        return list(self.search(HintFilter.parse(None, None, None, None, None)))

    def _named(self, component: str, key: str) -> list[tuple[TrustedHint, Verdict]]:
        return [pair for pair in self._checked if (pair[0].hint.component, pair[0].hint.key) == (component, key)]


def _finished(steps: Generator[None, None, dict[str, Any]]) -> dict[str, Any]:
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            result: dict[str, Any] = finished.value
            return result
