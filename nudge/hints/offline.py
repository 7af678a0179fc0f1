"""The hints that a server would have if it started now, read from the change log: a hook does not wait for one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from nudge.core import limits, paths
from nudge.core.clock import SESSION
from nudge.core.context import Context, project_of
from nudge.core.repos import is_same_repo
from nudge.hints.lifetime import clock_of, continues
from nudge.hints.model import Change, Identity
from nudge.hints.scope import scope_of
from nudge.hints.store import HintStore
from nudge.settings.config import Settings
from nudge.storage.changelog import read_log

_Put = dict[str, Any]  # the record of a hint in the change log


def read_eligible_hints(
    directory: str, settings: Settings, context: Context, environ: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The best hints about this context that a server would have if it started now, as `nudge.query` returns them.
    Reads the change log and writes nothing."""
    contents = read_log(os.path.join(directory, paths.CHANGE_LOG))
    if contents is None or contents.header is None or contents.newer:
        return []
    puts = _latest_puts(contents.records, context.repo)
    if not continues(contents, settings, directory):
        puts = [put for put in puts if put["meta"].get("ttl", SESSION) != SESSION]
    now = clock_of(contents).now()
    store = _build_store(contents.header, puts, settings, now)
    env = {name: environ[name] for name in store.env_names() if name in environ}
    steps = store.query(now, context=context.with_env(env), limit=limits.INJECTION_VARIANTS)
    hints: list[dict[str, Any]] = _run_steps(steps)["hints"]
    return store.drop_unproven(hints, project_of(context.repo, context.cwd))


def _latest_puts(records: Iterable[dict[str, Any]], repo: str | None) -> list[_Put]:
    """The latest version of each variant that may be for this repo: building the others takes too long."""
    latest: dict[Identity, _Put] = {}
    for record in records:
        for component, key, scope_key in record.get("removals", ()):
            latest.pop((component, key, scope_key), None)
        for put in record.get("puts", ()):
            scope = put["meta"].get("scope", {})
            if _may_match(scope, repo):
                latest[put["component"], put["key"], scope_of(scope).key] = put
    return list(latest.values())


def _may_match(scope: Mapping[str, Any], repo: str | None) -> bool:
    """The repo is part of a variant's identity, so all versions of a variant pass, or none."""
    repos = scope.get("repo")
    if repos is None or repo is None:
        return repos is None
    return any(is_same_repo(one, repo) for one in ([repos] if isinstance(repos, str) else repos))


def _build_store(header: dict[str, Any], puts: list[_Put], settings: Settings, now: float) -> HintStore:
    store = HintStore(header["session"], header["created"], idle=settings.hint_idle)
    newest = sorted(puts, key=lambda put: -put["updated_at"])[: limits.OFFLINE_HINTS]
    store.apply(Change.from_record({"puts": newest, "removals": []}))
    store.apply(store.decide_sweep(now))
    return store


def _run_steps(steps: Any) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            return finished.value
