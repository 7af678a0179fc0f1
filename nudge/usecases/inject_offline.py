"""Injection without a server: a read-only look at the database and the change log.

Clients fire SessionStart before they start their servers, so the hook runs this itself. Expensive imports are late, and
left out when there are no hints; a query that takes too long is interrupted.
"""

from __future__ import annotations

import gc
import os
import sqlite3
import time
from contextlib import closing, contextmanager

from nudge import config, limits, paths
from nudge.context import Context, project_of
from nudge.errors import NudgeError, StorageFailed
from nudge.history import digest, hint_selection, ledger
from nudge.history.digest import Digest
from nudge.history.sessions import Place
from nudge.storage.sqlite import open_readonly
from nudge.usecases.session_start import attempts_at_start, start_notes
from nudge.usecases.visibility import Visibility, visible_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from nudge.config import Settings
    from nudge.usecases.session_start import LastSeen

_STEPS = 1_000  # instructions of SQLite between two checks of the time


def offline(
    environ: Mapping[str, str], context: Context | dict[str, Any], session_id: str | None, source: str | None
) -> Digest:
    """The digest that a server would give, from what is on the disk."""
    context = context if isinstance(context, Context) else Context.parse(context)
    settings = config.load(environ)
    if ledger.is_silent(settings.tell):
        return Digest("", [])
    hints = _hints(environ, settings, context)
    options = digest_options(context, visible_here(environ), session_id, source or digest.STARTUP, time.time())
    try:
        with closing(open_readonly(config.database_file(environ))) as connection:
            _limit_time(connection)
            made = digest.build(connection, hints=hints, **stored_lines(connection, options), **options)
            made.is_shadow = ledger.is_shadow_in_history(connection, settings.tell, session_id or "")
    except (sqlite3.Error, StorageFailed):
        made = digest.build(None, hints=hints, **options)
        made.is_shadow = ledger.is_shadow(settings.tell, session_id or "")
    return made


def _limit_time(connection: sqlite3.Connection) -> None:
    until = time.monotonic() + limits.OFFLINE_READ_TIMEOUT
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)


# Shared with the server's injection


def digest_options(
    context: Context, visibility: Visibility, session_id: str | None, source: str, now: float
) -> dict[str, Any]:
    """The arguments of `digest.build` but the hints."""
    return {
        "project": context.project or project_of(context.repo, context.cwd),
        "session_id": session_id,
        "now": now,
        "source": source,
        "place": Place(context.cwd, context.branch),
        "cross_project": visibility.cross_project,
        "private": visibility.private,
    }


def stored_lines(
    connection: sqlite3.Connection, options: Mapping[str, Any], last_seen: LastSeen = lambda _session: None
) -> dict[str, Any]:
    """The notes and attempts for `digest.build`; `last_seen` is what a server knows of sessions beside the history."""
    project, now = options["project"], options["now"]
    return {
        "notes": start_notes(connection, project, now),
        "attempts": attempts_at_start(connection, project, options["session_id"], options["source"], now, last_seen),
    }


def hint_rows(hits: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results of a query as `digest.build` takes them: the best of several variants, a secret without its value.
    A hint that applies everywhere counts only when it was used, one whose file is not in this clone does not."""
    from nudge.hints.sync import LEARNED_BY, SCANNED_BY, is_guess
    from nudge.hints.value import search_text

    origins = {SCANNED_BY: hint_selection.SCANNED, LEARNED_BY: hint_selection.LEARNED}
    rows: dict[str, dict[str, Any]] = {}
    for hit in hits:
        hint, name = hit["hint"], f"{hit['component']}/{hit['key']}"
        meta = hint["meta"]
        if not (meta.get("scope") or hint.get("use_count")) or hit.get("is_gone"):
            continue
        value = None if meta.get("sensitivity") == "secret" else search_text(hint["value"])
        reasons = hit["match_explain"]["reasons"]
        row = {
            "name": name,
            "value": value,
            "score": hit["score"],
            "is_used": bool(hint.get("use_count")),
            "is_stale": bool(hit.get("stale")),
            "reasons": reasons,
            "origin": hint_selection.GUESSED if is_guess(meta) else origins.get(meta.get("added_by")),
            "reason": "; ".join(filter(None, (hit.get("stale"), meta.get("reason")))),
        }
        rows.setdefault(name, row)
    return list(rows.values())


# Hints from the log


def _hints(environ: Mapping[str, str], settings: Settings, context: Context) -> list[dict[str, Any]]:
    directory = paths.runtime_dir(environ)
    try:
        if os.path.getsize(os.path.join(directory, paths.CHANGE_LOG)) > limits.OFFLINE_LOG_BYTES:
            return []
        from nudge.usecases import offline_hints
        from nudge.usecases.freshness import mark_stale

        with _gc_disabled():
            return hint_rows(mark_stale(offline_hints.eligible(directory, settings, context, environ), context.cwd))
    except (OSError, NudgeError):
        return []


@contextmanager
def _gc_disabled() -> Iterator[None]:
    """Reading a log allocates tens of thousands of objects, none of them garbage: collections double its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
