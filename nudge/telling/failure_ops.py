"""The line about another way to do a job that failed, where nothing was learned: a part of `nudge.record`.

Hints are looked up in memory; manifests are read on another thread, as long as the hook waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from nudge.core import limits
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.clock import boot_seconds
from nudge.core.context import Context, project_of
from nudge.hints.freshness import mark_stale
from nudge.hints.search import HintFilter
from nudge.learning.availability import can_run
from nudge.learning.unanswered import Unanswered
from nudge.repofile.hints_ops import trusted_hints
from nudge.telling.failure import hint_answer, manifest_answer
from nudge.telling.ledger import Line
from nudge.telling.start_rows import hint_rows

_MARGIN = 0.02  # seconds that the answer needs after the manifests are read


async def find_other_way(
    app: App, event: Mapping[str, Any], unanswered: Unanswered, context: Context, call: Call
) -> Line | None:
    """The line about another way to do a job that failed: the hint of the repo, else its manifest if the program is
    missing."""
    line = await _hint_for(app, unanswered, context)
    if line is None and unanswered.is_missing and unanswered.cwd is not None:
        line = await _in_time(asyncio.to_thread(_from_manifest, unanswered), call)
    all_facts = app.facts
    if line is None or all_facts is None:
        return None
    claim = partial(all_facts.claim, str(event["session_id"]), line.name, unanswered)
    return line if await app.in_learning_thread(claim) else None


async def _hint_for(app: App, unanswered: Unanswered, context: Context) -> Line | None:
    store, project = app.lifetime.store, project_of(context.repo, context.cwd)
    steps = store.query(app.now(), keys=[unanswered.job], context=context, limit=limits.ANSWERING_HINTS)
    hits = store.drop_unproven((await app.in_slices(steps))["hints"], project)
    hits = await asyncio.to_thread(mark_stale, hits, unanswered.cwd) if hits else []
    if (in_file := await trusted_hints(app, context)) is not None:
        hits += in_file.search(HintFilter.parse(None, [unanswered.job], None, None, None))
    if not hits:
        return None
    rows = hint_rows(hits)
    return hint_answer(unanswered, rows, project or "")


def _from_manifest(unanswered: Unanswered) -> Line | None:
    from nudge.manifests import commands_of_directory, recipe_of  # late: PRIMARY does not need it to start

    directory = Path(unanswered.cwd or "")
    if not directory.is_dir():
        return None
    for command in commands_of_directory(directory):
        if command.key == unanswered.job and can_run(command.cmd, str(directory)):
            recipe = recipe_of(directory, command)
            return manifest_answer(unanswered, command.cmd, command.reason, recipe.text, is_plain=recipe.is_plain)
    return None


async def _in_time(work: Awaitable[Line | None], call: Call) -> Line | None:
    """The result of work that must end before the hook stops to wait; None when it takes longer."""
    remaining = 0.0 if call.deadline is None else call.deadline - boot_seconds() - _MARGIN
    with suppress(TimeoutError):
        return await asyncio.wait_for(work, max(remaining, 0.0))
    return None
