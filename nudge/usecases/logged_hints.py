"""The hints that a server would hold if it started now, read from the change log beside it. Nothing is written, no
session begins."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from nudge import limits, paths
from nudge.clock import Clock, boot_id
from nudge.config import Settings
from nudge.context import Context
from nudge.hints.change import Change
from nudge.hints.model import Identity
from nudge.hints.scope import scope_of
from nudge.hints.store import HintStore
from nudge.hints.ttl import SESSION
from nudge.storage.changelog import read_log
from nudge.usecases import session

Put = dict[str, Any]


def eligible(directory: str, settings: Settings, here: Context, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """The best hits of a query that asks for nothing but the context."""
    contents = read_log(os.path.join(directory, paths.CHANGE_LOG))
    if contents is None or contents.header is None or contents.newer:
        return []
    standing = _standing(contents.records, here.repo)
    if not session.goes_on(contents, settings, directory):
        standing = [put for put in standing if put["meta"].get("ttl", SESSION) != SESSION]
    return _asked(_store(contents.header, standing), _clock(contents.header).now(), here, environ)


def _asked(store: HintStore, now: float, here: Context, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    env = {name: environ[name] for name in store.env_names() if name in environ}
    steps = store.query(now, context=here.merged(Context(env=env)), limit=limits.INJECTION_VARIANTS)
    found: list[dict[str, Any]] = session.run_through(steps)["hints"]
    return found


def _standing(records: Iterable[dict[str, Any]], repo: str | None) -> list[Put]:
    """The last word on each variant that may be for this repo: to build what another repo's hints or old versions were
    takes too long."""
    latest: dict[Identity, Put] = {}
    for record in records:
        for component, key, scope_key in record.get("removals", ()):
            latest.pop((component, key, scope_key), None)
        for put in record.get("puts", ()):
            scope = put["meta"].get("scope", {})
            if _may_hold(scope, repo):
                latest[put["component"], put["key"], scope_of(scope).key] = put
    return list(latest.values())


def _may_hold(scope: Mapping[str, Any], repo: str | None) -> bool:
    """The repo is part of what tells variants apart, so all versions of one pass here, or none."""
    wanted = scope.get("repo")
    return wanted is None or repo in ([wanted] if isinstance(wanted, str) else wanted)


def _store(header: dict[str, Any], standing: list[Put]) -> HintStore:
    store = HintStore(header["session"], header["created"])
    newest = sorted(standing, key=lambda put: -put["updated_at"])[: limits.OFFLINE_HINTS]
    store.apply(Change.from_record({"puts": newest, "removals": []}))
    return store


def _clock(header: dict[str, Any]) -> Clock:
    return Clock(header["offset"]) if header.get("boot_id") == boot_id() else Clock()
