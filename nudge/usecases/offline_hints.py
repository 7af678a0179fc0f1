"""The hints that a server would have if it started now, read from the change log. Nothing is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from nudge import limits, paths
from nudge.clock import SESSION
from nudge.config import Settings
from nudge.context import Context
from nudge.hints.model import Change, Identity
from nudge.hints.scope import scope_of
from nudge.hints.store import HintStore
from nudge.repos import is_same_repo
from nudge.storage.changelog import read_log
from nudge.usecases import session

Put = dict[str, Any]


def eligible(directory: str, settings: Settings, context: Context, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """The best hints that are eligible in the context, as `nudge.query` returns them."""
    contents = read_log(os.path.join(directory, paths.CHANGE_LOG))
    if contents is None or contents.header is None or contents.newer:
        return []
    puts = _latest_puts(contents.records, context.repo)
    if not session.continues(contents, settings, directory):
        puts = [put for put in puts if put["meta"].get("ttl", SESSION) != SESSION]
    now = session.clock_of(contents).now()
    store = _build_store(contents.header, puts, settings, now)
    env = {name: environ[name] for name in store.env_names() if name in environ}
    steps = store.query(now, context=context.merged(Context(env=env)), limit=limits.INJECTION_VARIANTS)
    hints: list[dict[str, Any]] = session.run_steps(steps)["hints"]
    return hints


def _latest_puts(records: Iterable[dict[str, Any]], repo: str | None) -> list[Put]:
    """The latest version of each variant that may be for this repo: building the others takes too long."""
    latest: dict[Identity, Put] = {}
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


def _build_store(header: dict[str, Any], puts: list[Put], settings: Settings, now: float) -> HintStore:
    store = HintStore(header["session"], header["created"], idle=settings.hint_idle)
    newest = sorted(puts, key=lambda put: -put["updated_at"])[: limits.OFFLINE_HINTS]
    store.apply(Change.from_record({"puts": newest, "removals": []}))
    store.apply(store.decide_sweep(now))
    return store
