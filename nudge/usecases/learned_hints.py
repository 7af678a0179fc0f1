"""Hints from what was learned: the invocation that works becomes the hint for its job, and goes when that is withdrawn.

It has the owner `nudge:learned`, as scan's hints have theirs. What a person, an agent or the repo itself says comes
before it; only a guess of scan's does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from nudge import limits
from nudge.context import Context, project_name, project_of
from nudge.errors import NudgeError
from nudge.hints.model import Hint
from nudge.hints.sync import LEARNED_BY, is_guess
from nudge.history.availability import names_clone
from nudge.history.facts import Facts
from nudge.history.offers import Offer
from nudge.text import quote
from nudge.usecases.app import App
from nudge.usecases.call import Call
from nudge.usecases.freshness import digest_files, named_paths

JOBS = frozenset(("test", "build", "lint", "run", "install"))
_MOST_CONFIDENCE = 0.8

Jobs = dict[str, list[tuple[str, Offer]]]
"""For each job the commands, best first, and what each was learned from."""


async def update(app: App, invocations: Sequence[Offer], event: Mapping[str, Any]) -> None:
    """Set or remove the hints of the repo in which a command of this event taught or withdrew something. What cannot
    be stored now is set when it is learned again: no reason to refuse the event."""
    repo, root = event.get("repo"), event.get("clone")
    project = project_of(repo, None) if isinstance(repo, str) else None
    if project is None or not isinstance(repo, str):
        return
    name = project_name(project)
    jobs, component, bases = await asyncio.to_thread(_look, invocations, root, name)
    with suppress(NudgeError):
        await app.once(Call(), partial(_sync, app, repo, component, jobs, bases))


async def remove_unlearned(app: App, learned_facts: Facts, project: str) -> None:
    """Remove the hints of a project that nothing stands for any more."""
    jobs = await asyncio.to_thread(_find_jobs, learned_facts.invocations(project, app.now()))
    held: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for hint in filter(_is_learned, app.session.store.hints()):
        held.setdefault((hint.meta["scope"]["repo"], hint.component), {})[_command_of(hint)] = hint.basis or {}
    for (repo, component), bases in held.items():
        if project_of(repo, None) == project:
            with suppress(NudgeError):
                await app.once(Call(), partial(_sync, app, repo, component, jobs, bases))


def _look(invocations: Sequence[Offer], root: object, name: str) -> tuple[Jobs, str, dict[str, dict[str, str]]]:
    """The jobs, the component of the root, and the files that each command names."""
    from nudge.manifests import root_component  # late: it loads parsers that PRIMARY does not need to start

    jobs = _find_jobs(invocations)
    if not isinstance(root, str) or not Path(root).is_dir():
        return jobs, name, {}
    commands = (cmd for pairs in jobs.values() for cmd, _ in pairs)
    bases = {cmd: digest_files(root, named_paths(cmd)) for cmd in commands}
    return jobs, root_component(Path(root), name), bases


def _find_jobs(invocations: Sequence[Offer]) -> Jobs:
    """Of several invocations for one job that of most sessions comes first."""
    from nudge.manifests import job_invocation

    jobs: Jobs = {}
    for offer in invocations:
        job, cmd = job_invocation(offer.answer) or ("", "")
        if job in JOBS and len(cmd) <= limits.MAX_TOLD_COMMAND and not names_clone(cmd):
            jobs.setdefault(job, []).append((cmd, offer))
    return jobs


async def _sync(app: App, repo: str, component: str, jobs: Jobs, bases: Mapping[str, dict[str, str]]) -> None:
    context = Context(repo=repo)
    held = [hint for hint in app.session.store.live_hints(app.now(), component) if _is_from_others(hint, context)]
    chosen = {job: pair for job, pairs in jobs.items() if (pair := _first_allowed(job, pairs, held))}
    entries = [
        (component, job, {"type": "command", "cmd": cmd}, _meta(job, offer, repo))
        for job, (cmd, offer) in chosen.items()
    ]
    decision = app.session.store.decide_sync(
        app.now(),
        {"repo": repo},
        LEARNED_BY,
        entries,
        replaces=lambda held, _: is_guess(held.meta),
        bases={(component, job): bases[cmd] for job, (cmd, _) in chosen.items() if bases.get(cmd)},
    )
    if decision.change:
        app.commit(decision, Call())


def _is_learned(hint: Hint) -> bool:
    return hint.meta.get("added_by") == LEARNED_BY and "repo" in hint.meta.get("scope", {})


def _is_from_others(hint: Hint, context: Context) -> bool:
    """Whether somebody else set it, for this repo."""
    return not _is_learned(hint) and hint.scope.check(context).eligible


def _first_allowed(job: str, pairs: list[tuple[str, Offer]], held: list[Hint]) -> tuple[str, Offer] | None:
    """The best command that no hint of somebody else's comes before. A guess does only when it is about another tool:
    to have found `mypy` says nothing about `ruff check`."""
    from nudge.manifests import uses_same_tool

    others = [hint for hint in held if hint.key == job]
    if any(not is_guess(hint.meta) for hint in others):
        return None
    guessed = [_command_of(hint) for hint in others]
    return next((pair for pair in pairs if all(uses_same_tool(cmd, pair[0]) for cmd in guessed)), None)


def _command_of(hint: Hint) -> str:
    return str(hint.value["cmd"] if isinstance(hint.value, dict) and "cmd" in hint.value else hint.value)


def _meta(job: str, offer: Offer, repo: str) -> dict[str, Any]:
    number = len(offer.support.sessions)
    return {
        "reason": _reason(offer),
        "confidence": min(round(0.3 + 0.1 * number, 1), _MOST_CONFIDENCE),
        "tags": [job],
        "scope": {"repo": repo},
    }


def _reason(offer: Offer) -> str:
    """As much as is told whole at a session's start."""
    number, failure = len(offer.support.sessions), f"failed #{offer.support.failure_id}"
    worked = f"worked in {number} session{'s' * (number != 1)} #{offer.support.success_id}"
    where = f"{worked}, where {quote(offer.fact.subject, limits.MAX_TOLD_COMMAND)} {failure}"
    whole = f"{where} ({quote(offer.fact.error, limits.MAX_TOLD_ERROR)})"
    texts = (whole, where, f"{worked}, where another {failure}")
    return next(text for text in texts if len(text) <= limits.INJECTED_REASON_CHARS)
