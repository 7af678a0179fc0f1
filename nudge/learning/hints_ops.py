"""What was learned, as hints for the jobs that nobody set a hint for.

Nothing of it is stored as a hint: `get_hint`, `query`, `list_components` and `bump` ask here for what the hints do not
answer. Without a database, or before it is read, there is nothing.
"""

from __future__ import annotations

import asyncio
import shlex
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.clock import iso
from nudge.core.context import Context, project_name, project_of, resolve
from nudge.core.errors import Invalid, NotFound, NudgeError
from nudge.core.text import quote
from nudge.hints.index import HintIndex
from nudge.hints.model import Hint, microseconds
from nudge.hints.ranking import rank
from nudge.hints.search import HintFilter, search
from nudge.learning import store as fact_store
from nudge.learning.command import CUT_OFF
from nudge.learning.fact import Fact
from nudge.learning.job_answers import JobAnswer
from nudge.learning.observer import load_facts
from nudge.telling.hook_answers import load_banned

SOURCE = "learned"
"""What `meta.source` of such a hint says; nobody can set it."""
_MAX_CONFIDENCE = 0.8
_CUT = "it is the beginning of what worked: paths, tests or options came behind it"


class LearnedHints:
    """What was learned in one repo, as hints of its component: for each job at most one."""

    def __init__(
        self, project: str, names: list[str], scope: dict[str, Any], answers: list[JobAnswer], now: float
    ) -> None:
        self.project, self.names, self._scope, self._now = project, names, scope, now
        self._answers: dict[str, JobAnswer] = {}
        self._refused: dict[str, list[JobAnswer]] = {}
        for answer in answers:
            if answer.refusal:
                self._refused.setdefault(answer.job, []).append(answer)
            else:
                self._answers.setdefault(answer.job, answer)
        for job in self._answers:
            self._refused.pop(job, None)

    @property
    def component(self) -> str:
        """As the manifests of the repo name it, else the name of the repo."""
        return self.names[0]

    def answer(self, component: str, key: str) -> JobAnswer | None:
        return self._answers.get(key) if component in self.names else None

    def creditable(self, component: str, key: str) -> JobAnswer | None:
        """What was learned for a job, also where it is not the answer."""
        refused = (one for one in self.refused(component, key) if not one.is_step)
        return self.answer(component, key) or next(refused, None)

    def corrects(self, component: str, key: str, guess: dict[str, Any]) -> bool:
        """Whether what worked is the tool of a guess in another form: a guess of `mypy` says nothing about `ruff`."""
        from nudge.manifests import uses_same_tool  # late: it loads parsers that PRIMARY does not need to start

        answer, value = self.answer(component, key), guess["hint"]["value"]
        return answer is not None and isinstance(value, dict) and uses_same_tool(value.get("cmd", ""), answer.command)

    def refused(self, component: str, key: str) -> list[JobAnswer]:
        """What was learned for a job that has no answer here."""
        return self._refused.get(key, []) if component in self.names else []

    def get(self, component: str, key: str) -> dict[str, Any] | None:
        """The answer in the form of `get_hint`."""
        answer = self.answer(component, key)
        if answer is None:
            return None
        hint = self._hint(component, answer)
        return {"hint": self.to_json(component, answer), "match_explain": self._explanation(hint, answer.fact)}

    def search(self, filters: HintFilter, limit: int) -> Iterator[dict[str, Any]]:
        """Yield the answers that a query asks for in its form, best first."""
        hits = self._search(self._answers.values(), filters, limit)
        for hit in hits:
            fact = self._answers[hit["key"]].fact
            reasons = [*_reasons(fact), *hit["match_explain"]["reasons"]]
            yield {
                **{name: hit[name] for name in ("component", "key", "score", "partial") if name in hit},
                "hint": self.to_json(hit["component"], self._answers[hit["key"]]),
                "match_explain": {**hit["match_explain"], "reasons": reasons},
            }

    def search_refused(self, filters: HintFilter, limit: int) -> list[dict[str, Any]]:
        """What a query asks for and why it is not the answer, in the form of its `why_not`."""
        hits = self._search([ones[0] for ones in self._refused.values()], filters, limit)
        return [self.why_not(self._refused[hit["key"]][0]) for hit in hits]

    def _search(self, answers: Iterable[JobAnswer], filters: HintFilter, limit: int) -> list[dict[str, Any]]:
        index = HintIndex([self._hint(self.component, answer) for answer in answers])
        steps = search(index, self._now, filters, Context(repo=self._scope.get("repo")), limit)
        while True:
            try:
                next(steps)
            except StopIteration as finished:
                hits: list[dict[str, Any]] = finished.value["hints"]
                return hits

    def rows(self) -> list[dict[str, Any]]:
        """All answers and what is none, each with the reason, in the form of `list_components`."""
        refused = [ones[0] for ones in self._refused.values() if not ones[0].is_step]
        return [
            {
                "component": self.component,
                "key": answer.job,
                "hint": self.to_json(self.component, answer),
                "eligible": not answer.refusal,
                "reasons": [answer.refusal] if answer.refusal else _reasons(answer.fact),
            }
            for answer in sorted((*self._answers.values(), *refused), key=lambda one: one.job)
        ]

    def why_not(self, answer: JobAnswer) -> dict[str, Any]:
        """What was learned and why it is not the answer, as a row of `why_not`."""
        row = {"component": self.component, "key": answer.job, "scope": self._scope, "source": SOURCE}
        return {**row, "reasons": [*_reasons(answer.fact), answer.refusal]}

    def to_json(self, component: str, answer: JobAnswer) -> dict[str, Any]:
        """The form that callers get. Its version is 0: there is no hint yet, and `set` makes the first one."""
        fact, latest = answer.fact, answer.fact.latest
        evidence = {
            "fact": fact.subject,
            "error": fact.cure.error,
            "sessions": len(fact.support),
            "last": iso(microseconds(fact.timestamp)),
            "exit_codes": list(latest.exit_codes),
            "ids": list(latest.ids),
        }
        return {**self._hint(component, answer).to_json(), "version": 0, "evidence": evidence}

    def _explanation(self, hint: Hint, fact: Fact) -> dict[str, Any]:
        reasons = [f"repo {self._scope['repo']} matched"] if self._scope else []
        return rank(hint, [*_reasons(fact), *reasons], self._now).explain(self._now)

    def _hint(self, component: str, answer: JobAnswer) -> Hint:
        fact = answer.fact
        moment = microseconds(fact.timestamp)
        meta: dict[str, Any] = {
            "reason": fact.reason(),
            "tags": [answer.job],
            "confidence": min(round(0.3 + 0.1 * len(fact.support), 1), _MAX_CONFIDENCE),
            **({"scope": self._scope} if self._scope else {}),
            "source": SOURCE,
        }
        return Hint.of(
            component,
            answer.job,
            {"type": "command", "cmd": answer.command},
            meta,
            created_at=microseconds(min(evidence.timestamp for evidence in fact.support.values())),
            updated_at=moment,
            last_used_at=moment,
            use_count=fact.successes,
            failure_count=fact.failures,
        )


def _reasons(fact: Fact) -> list[str]:
    is_cut = fact.answer.endswith(CUT_OFF)
    return [f"fact {quote(fact.subject, 80)}: {fact.latest.text()}", *([_CUT] if is_cut else [])]


async def learned_here(app: App, context: Context) -> LearnedHints | None:
    """What was learned in the repo of a context; None when that is nothing, or cannot be read."""
    project = context.project or project_of(context.repo, context.cwd)
    if project is None or app.database is None:
        return None
    project = project.casefold()
    with suppress(NudgeError):
        all_facts, banned = await load_facts(app, app.database), await load_banned(app, app.database)
        if not all_facts.has_any(project):
            return None
        now = app.now()

        def choose() -> list[JobAnswer]:
            return all_facts.for_jobs(
                project, now, context.cwd, context.branch, lambda fact: (project, fact.name) in banned
            )

        answers = await app.in_learning_thread(choose)
        if answers:
            names = await asyncio.to_thread(_component_names, project, context.cwd)
            scope = {"repo": context.repo} if context.repo is not None else {}
            return LearnedHints(project, names, scope, answers, now)
    return None


def _component_names(project: str, cwd: str | None) -> list[str]:
    """What hints of a whole repo are called: as `scan` calls them, and by the name of the repo."""
    from nudge.manifests import root_component  # late: it loads parsers that PRIMARY does not need to start

    name = project_name(project)
    root = resolve(cwd).root if cwd is not None else None
    found = root_component(Path(root), name) if root is not None else name
    return list(dict.fromkeys((found, name)))


async def credit_fact(
    app: App, learned: LearnedHints, answer: JobAnswer, component: str, delta: int, call: Call
) -> Any:
    """Count an outcome of an answer, once for each call, in the form of `bump`."""
    if delta == 0:
        raise Invalid("must not be 0", field="delta")
    fact, project = answer.fact, learned.project
    session, evidence = fact.credited(delta, app.now())
    credited = replace(answer, fact=replace(fact, support={**fact.support, session: evidence}))
    result: dict[str, Any] = {"hint": learned.to_json(component, credited)}
    if credited.fact.failures >= credited.fact.successes:
        result["note"] = f"it is the answer no more; to forget it: nudge facts --forget {shlex.quote(fact.subject)}"

    def write(connection: sqlite3.Connection) -> dict[str, Any]:
        fact_store.store_evidence(connection, project, session, fact.cure, evidence)
        return result

    stored: dict[str, Any] = await app.write_once(call, write)
    if (all_facts := app.facts) is not None:
        await app.in_learning_thread(lambda: all_facts.put_evidence(project, fact.key, session, evidence))
    return stored


def not_deletable(error: NotFound, learned: LearnedHints | None, component: str, key: str) -> NotFound:
    """The error for the deletion of what is no hint; of a fact, with how to forget it."""
    answer = learned.creditable(component, key) if learned is not None else None
    if answer is None:
        return error
    forget = f"to forget it: nudge facts --forget {shlex.quote(answer.fact.subject)}"
    return NotFound(f"{component}/{key} is no hint but a fact; {forget}", **error.data)


def refused_error(error: NotFound, learned: LearnedHints | None, component: str, key: str) -> NotFound:
    """The error for a hint that does not exist, with what was learned and why that is not the answer here."""
    if learned is None:
        return error
    if refused := learned.refused(component, key):
        rows = [learned.why_not(one) for one in refused]
        if error.data.get("why_not"):
            return NotFound(error.message, **{**error.data, "why_not": [*error.data["why_not"], *rows]})
        message = f"{component}/{key} has no hint, and the fact about it does not apply here"
        return NotFound(message, **{**error.data, "why_not": rows})
    says_more = error.data.get("near") or error.data.get("why_not") or learned.answer(component, key)
    if learned.answer(learned.component, key) and not says_more:
        name = f"{learned.component}/{key}"
        return NotFound(f"{error.message} (did you mean {name}?)", **{**error.data, "near": [name]})
    return error
