"""The journal: attempts in SQLite. Each function takes a connection; transactions are the caller's.

Every change is a compare-and-set on owner and outcome: of two sessions that adopt or resolve one attempt, the second is
refused and told who was first.
"""

# ruff: noqa: S608 - only constants are put into the SQL; every value is bound
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nudge.core import limits
from nudge.core.errors import Conflict, NotFound
from nudge.core.passages import index_passages
from nudge.core.text import quote, quote_name
from nudge.journal.attempts import (
    LESSON,
    RANKED_AS,
    Attempt,
    ObservedOutcome,
    Plan,
    Resolution,
    content_of,
    cut_title,
    fitting_metadata,
    lesson_draft,
    plan_draft,
    tier_of,
    without_none,
)
from nudge.journal.fields import CONFIRMED, DOMAINS, FALSIFIED, OPEN_STATUS, OUTCOMES
from nudge.notes import store
from nudge.notes.fields import ATTEMPT, Draft, rfc3339
from nudge.notes.note import Lifetimes, Note
from nudge.notes.store import OPEN, SqlConnection, placeholders


@dataclass(frozen=True, slots=True)
class AttemptFilter:
    """Which attempts to select. `namespace` is None for all; `hidden` are namespaces that the caller may not see."""

    namespace: str | None = None
    status: str | None = None
    domain: str | None = None
    session: str | None = None
    since: float | None = None
    hidden: tuple[str, ...] = ()

    def where(self) -> tuple[str, list[Any]]:
        """A condition on the table `n`, and its values."""
        parts = [f"n.kind = '{ATTEMPT}'", "n.attempt_session IS NOT NULL"]
        values: list[Any] = []
        if self.namespace is not None:
            parts.append("n.namespace = ?")
            values.append(self.namespace)
        if self.hidden:
            parts.append(f"n.namespace NOT IN ({placeholders(self.hidden)})")
            values.extend(self.hidden)
        if self.status == OPEN_STATUS:
            parts.append("n.attempt_outcome IS NULL")
        elif self.status is not None:
            parts.append("n.attempt_outcome = ?")
            values.append(self.status)
        if self.domain is not None:
            parts.append("json_extract(n.metadata, '$.domain') = ?")
            values.append(self.domain)
        if self.session is not None:
            parts.append("n.attempt_session = ?")
            values.append(self.session)
        if self.since is not None:
            parts.append("n.created_at >= ?")
            values.append(self.since)
        return " AND ".join(parts), values


# Reading


def get(connection: SqlConnection, attempt_id: int) -> Attempt:
    note = next(store.select(connection, f"n.id = ? AND n.kind = '{ATTEMPT}'", (attempt_id,)), None)
    if note is None or note.damage is not None or not note.draft.metadata.get("session_id"):
        raise NotFound(f"there is no attempt m{attempt_id}", id=attempt_id)
    return Attempt(note)


def open_in_session(connection: SqlConnection, session: str, namespace: str | None = None) -> list[Attempt]:
    """Return the open attempts of a session, or those in one namespace, the latest first; there are several if they
    were started in parallel."""
    condition = f"{OPEN} AND n.attempt_session = ? AND (? IS NULL OR n.namespace = ?) ORDER BY n.id DESC"
    return _attempts(store.select(connection, condition, (session, namespace, namespace)))


def count_call(connection: SqlConnection, session: str, since: float, now: float) -> None:
    """Store one more counted call of a session. Those before `since`, the last update of its attempt, count no more."""
    connection.execute(
        "INSERT INTO called_counts VALUES (?1, 1, ?3, 0) ON CONFLICT DO UPDATE SET counted_at = ?3,"
        " number = CASE WHEN counted_at < ?2 THEN 1 ELSE number + 1 END",
        (session, since, now),
    )
    connection.execute("DELETE FROM called_counts WHERE counted_at < ?", (now - limits.CALLED_COUNT_SECONDS,))


def reset_calls(connection: SqlConnection, session: str, now: float) -> None:
    connection.execute("INSERT OR REPLACE INTO called_counts VALUES (?1, 0, ?2, ?2)", (session, now))


def counted_calls(connection: SqlConnection, session: str, since: float) -> tuple[int, float]:
    """Return how many calls were counted since then, and when the count was reset last."""
    row = connection.execute(
        "SELECT CASE WHEN counted_at < ? THEN 0 ELSE number END, reset_at FROM called_counts WHERE session_id = ?",
        (since, session),
    ).fetchone()
    return (int(row[0]), float(row[1])) if row else (0, 0.0)


def open_in_namespace(connection: SqlConnection, namespace: str) -> list[Attempt]:
    """Return the open attempts of a repo, of any session, the latest first."""
    return _attempts(store.select(connection, f"{OPEN} AND n.namespace = ? ORDER BY n.id DESC", (namespace,)))


def latest_in_session(connection: SqlConnection, session: str, namespace: str | None) -> Attempt | None:
    condition = (
        f"n.kind = '{ATTEMPT}' AND n.attempt_session = ? AND (? IS NULL OR n.namespace = ?) ORDER BY n.id DESC LIMIT 1"
    )
    return next(iter(_attempts(store.select(connection, condition, (session, namespace, namespace)))), None)


def list_attempts(connection: SqlConnection, which: AttemptFilter, limit: int) -> list[Attempt]:
    """Return attempts, the open ones first, then the latest."""
    condition, values = which.where()
    order = "n.attempt_outcome IS NULL DESC, n.updated_at DESC, n.id DESC LIMIT ?"
    return _attempts(store.select(connection, f"{condition} ORDER BY {order}", (*values, limit)))


def calibration(connection: SqlConnection, which: AttemptFilter) -> dict[str, Any]:
    """Return for each domain and in total: the number of attempts by outcome, the share of predictions that came true
    (`observed`), and the average confidence that the agents stated (`predicted`). Abandoned attempts count in neither
    share."""
    condition, values = which.where()
    rows = connection.execute(
        f"SELECT coalesce(json_extract(n.metadata, '$.domain'), '{DOMAINS[-1]}'), n.attempt_outcome,"
        f" json_extract(n.metadata, '$.confidence') FROM notes n WHERE {condition}",
        values,
    )
    total = _Tally()
    domains = {domain: _Tally() for domain in DOMAINS}
    for domain, outcome, confidence in rows:
        total.add(outcome, confidence)
        domains.setdefault(domain, _Tally()).add(outcome, confidence)
    shown = [{"domain": domain, **tally.to_json()} for domain, tally in domains.items() if any(tally.counts.values())]
    return {"domains": shown, "total": total.to_json()}


@dataclass(slots=True)
class _Tally:
    """Outcomes of the attempts in one domain."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys((OPEN_STATUS, *OUTCOMES), 0))
    stated: list[float] = field(default_factory=list)

    def add(self, outcome: str | None, confidence: float | None) -> None:
        self.counts[outcome or OPEN_STATUS] = self.counts.get(outcome or OPEN_STATUS, 0) + 1
        if isinstance(confidence, int | float) and outcome in (CONFIRMED, FALSIFIED):
            self.stated.append(float(confidence))

    def to_json(self) -> dict[str, Any]:
        settled = self.counts[CONFIRMED] + self.counts[FALSIFIED]
        return {
            **{name: self.counts[name] for name in (OPEN_STATUS, *OUTCOMES)},
            **({"observed": round(self.counts[CONFIRMED] / settled, 3)} if settled else {}),
            **({"predicted": round(sum(self.stated) / len(self.stated), 3)} if self.stated else {}),
        }


def _attempts(notes: Iterable[Note]) -> list[Attempt]:
    return [Attempt(note) for note in notes if note.damage is None]


# Writing


def start(
    connection: SqlConnection,
    plan: Plan,
    session: str,
    draft: Draft,
    now: float,
    *,
    parallel: bool = False,
    is_shared: bool = False,
) -> Attempt:
    """Insert an open attempt. `draft` has its namespace, source and origin. Raises Conflict when the session has an
    open one, in a session that callers share only one in this namespace, unless `parallel`."""
    if not parallel:
        _refuse_second(connection, session, draft.namespace, is_shared)
    note = replace(
        plan_draft(plan, draft), metadata={"session_id": session, **plan.to_metadata(), "iteration_count": 1}
    )
    return Attempt(store.get(connection, store.insert(connection, note, now, expires_at=None), now))


def update(
    connection: SqlConnection, attempt: Attempt, changes: Mapping[str, Any], note: str | None, now: float
) -> Attempt:
    """Change fields; their former values are kept in the list of iterations."""
    metadata = attempt.note.draft.metadata
    was = {name: metadata[name] for name in changes if name in metadata and metadata[name] != changes[name]}
    if "prediction" in was:  # what was observed is about the former one
        metadata = {name: value for name, value in metadata.items() if name != "observed"}
    iteration = {"at": rfc3339(now), **without_none(note=note), **({"was": was} if was else {})}
    return _replace(connection, attempt, {**metadata, **changes}, iteration, now, counts=True)


def note_outcome(connection: SqlConnection, attempt: Attempt, observed: ObservedOutcome, now: float) -> Attempt:
    """Store the outcome that a command shows for an open attempt. It does not resolve the attempt."""
    metadata = {**attempt.note.draft.metadata, "observed": observed.to_metadata(rfc3339(now))}
    return _replace(connection, attempt, metadata, None, now)


def adopt(
    connection: SqlConnection,
    attempt: Attempt,
    session: str,
    now: float,
    *,
    parallel: bool = False,
    is_shared: bool = False,
) -> Attempt:
    """Make a session the owner. The caller checks that the former owner is gone. Raises Conflict as `start` does."""
    if not parallel:
        _refuse_second(connection, session, attempt.note.draft.namespace, is_shared)
    iteration = {"at": rfc3339(now), "adopted_by": session, "from": attempt.session}
    return _replace(connection, attempt, {**attempt.note.draft.metadata, "session_id": session}, iteration, now)


def resolve(
    connection: SqlConnection, attempt: Attempt, resolution: Resolution, now: float, lifetimes: Lifetimes
) -> tuple[Attempt, Note | None]:
    """Resolve an attempt, and store its lesson as a note of the kind `lesson` that is linked to it. The caller's
    transaction stores both or neither."""
    if attempt.observed == resolution.status:
        resolution = replace(resolution, is_captured=True)
    metadata = {**attempt.note.draft.metadata, **resolution.to_metadata()}
    tier = tier_of(metadata, resolution)
    metadata |= {"confidence_tier": tier, "resolved_at": rfc3339(now)}
    resolved = _replace(connection, attempt, metadata, None, now, confidence=RANKED_AS[tier])
    return resolved, _store_lesson(connection, attempt, resolution, now, lifetimes)


def add_lesson(
    connection: SqlConnection, attempt: Attempt, resolution: Resolution, now: float, lifetimes: Lifetimes
) -> tuple[Attempt, Note | None]:
    """Add a lesson to an attempt that an exit code resolved. Raises Conflict when it has one, or has changed since it
    was read."""
    current = attempt.note.draft.metadata
    added = {name: value for name, value in resolution.to_metadata().items() if name != "outcome"}
    metadata = {**current, **added}
    changed = connection.execute(
        "UPDATE notes SET content = ?, metadata = ?, updated_at = ? WHERE id = ? AND attempt_session = ?"
        f" AND attempt_outcome = ? AND json_extract(metadata, '$.{LESSON}') IS NULL",
        (
            *(content_of(metadata), json.dumps(fitting_metadata(metadata), ensure_ascii=False), now),
            *(attempt.id, attempt.session, resolution.status),
        ),
    ).rowcount
    if not changed:
        raise changed_since(get(connection, attempt.id))
    index_passages(connection, attempt.id, attempt.note.draft.title, content_of(metadata))
    return get(connection, attempt.id), _store_lesson(connection, attempt, resolution, now, lifetimes)


def _store_lesson(
    connection: SqlConnection, attempt: Attempt, resolution: Resolution, now: float, lifetimes: Lifetimes
) -> Note | None:
    if resolution.lesson is None:
        return None
    lesson = store.store(connection, _free_title(connection, lesson_draft(attempt, resolution), now), now, lifetimes)[0]
    store.add_link(connection, lesson.id, attempt.id, "derived_from", now)
    return lesson


def _refuse_second(connection: SqlConnection, session: str, namespace: str, is_shared: bool) -> None:
    for attempt in open_in_session(connection, session, namespace if is_shared else None):
        goal = quote(attempt.note.draft.title, limits.INJECTED_NOTE_CHARS)
        other = attempt.note.draft.namespace
        place = "" if other == namespace else f", for {quote_name(other, limits.INJECTED_NOTE_CHARS)}"
        raise Conflict(
            f"m{attempt.id} is open in this session{place} ({goal}); resolve it first, or say parallel: true",
            id=attempt.id,
        )


def _replace(
    connection: SqlConnection,
    attempt: Attempt,
    metadata: dict[str, Any],
    iteration: Mapping[str, Any] | None,
    now: float,
    *,
    counts: bool = False,
    confidence: float | None = None,
) -> Attempt:
    """Write an attempt. Raises Conflict when it has been resolved or adopted since it was read."""
    if iteration is not None:
        metadata = {**metadata, "iterations": [*metadata.get("iterations", ()), dict(iteration)]}
    metadata["iteration_count"] = metadata.get("iteration_count", 1) + counts
    stored = json.dumps(fitting_metadata(metadata), ensure_ascii=False)
    changed = connection.execute(
        f"UPDATE notes AS n SET content = ?, metadata = ?, confidence = coalesce(?, confidence), updated_at = ?"
        f" WHERE n.id = ? AND {OPEN} AND n.attempt_session = ?",
        (content_of(metadata), stored, confidence, now, attempt.id, attempt.session),
    ).rowcount
    current = get(connection, attempt.id)
    if not changed:
        raise changed_since(current)
    index_passages(connection, attempt.id, attempt.note.draft.title, content_of(metadata))
    return current


def changed_since(attempt: Attempt) -> Conflict:
    """The error for an attempt that another session owns, or that is resolved."""
    if attempt.is_open:
        since = f", which adopted it at {attempt.adopted_at}" if attempt.adopted_at else ""
        owner = quote_name(str(attempt.session), limits.MAX_SESSION_ID_CHARS)
        message = f"m{attempt.id} belongs to session {owner}{since}"
    else:
        message = f"m{attempt.id} was resolved before: {attempt.status}"
    return Conflict(message, id=attempt.id, status=attempt.status, session_id=attempt.session)


def _free_title(connection: SqlConnection, draft: Draft, now: float) -> Draft:
    """Return the draft of a lesson with a title that is free: a lesson of this title is updated, but a note of another
    kind keeps its title."""
    other = store.find_same_title(connection, draft, now)
    if other is None or other.draft.kind == LESSON:
        return draft
    suffix = f" (m{draft.metadata['attempt']})"
    return replace(draft, title=cut_title(draft.title, limits.MAX_TITLE_BYTES - len(suffix)) + suffix)
