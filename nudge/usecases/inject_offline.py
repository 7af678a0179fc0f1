"""What a session is told when no server runs: a look at database and change log that changes neither.

Clients fire SessionStart before they start their servers, so a hook runs this itself. What costs much is imported late,
and not at
all where there are no hints; what takes too long is left out.
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
from nudge.history import digest
from nudge.history.digest import Digest
from nudge.storage.sqlite import open_readonly
from nudge.usecases.visibility import Visibility, visible_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from nudge.config import Settings

_STEPS = 1_000  # of SQLite's machine between two looks at the clock


def offline(
    environ: Mapping[str, str], context: Context | dict[str, Any], session_id: str | None, source: str | None
) -> Digest:
    settings = config.load(environ)
    here = context if isinstance(context, Context) else Context.parse(context)
    asked = {
        "project": project_here(here),
        "session_id": session_id,
        "now": time.time(),
        "source": source or digest.STARTUP,
        "hints": _hints(environ, settings, here),
        **told_of(visible_here(environ)),
    }
    try:
        with closing(open_readonly(config.database_file(environ))) as connection:
            _limit_time(connection)
            return digest.build(connection, **asked)
    except (sqlite3.Error, StorageFailed):
        return digest.build(None, **asked)


def _limit_time(connection: sqlite3.Connection) -> None:
    until = time.monotonic() + limits.LOOK_TIMEOUT
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)


# What the server's own injection does in the same way


def project_here(here: Context) -> str | None:
    return here.project or project_of(here.repo, here.cwd)


def told_of(seen: Visibility) -> dict[str, Any]:
    """The other projects that a digest may tell of, in its own words."""
    return {"cross_project": seen.cross_project, "private": seen.private}


def hint_rows(hits: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The hits of a query as the digest takes them: of several variants the best, of a secret no value."""
    from nudge.hints.value import search_text

    rows: dict[str, dict[str, Any]] = {}
    for hit in hits:
        hint, name = hit["hint"], f"{hit['component']}/{hit['key']}"
        value = None if hint["meta"].get("sensitivity") == "secret" else search_text(hint["value"])
        rows.setdefault(
            name, {"name": name, "value": value, "score": hit["score"], "reasons": hit["match_explain"]["reasons"]}
        )
    return list(rows.values())


# Hints from the log


def _hints(environ: Mapping[str, str], settings: Settings, here: Context) -> list[dict[str, Any]]:
    directory = paths.runtime_dir(environ)
    try:
        if os.path.getsize(os.path.join(directory, paths.CHANGE_LOG)) > limits.OFFLINE_LOG_BYTES:
            return []
        from nudge.usecases import logged_hints

        with _collector_at_rest():
            return hint_rows(logged_hints.eligible(directory, settings, here, environ))
    except (OSError, NudgeError):
        return []


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Reading a log makes objects by the ten thousand, none of them garbage: looking through them doubles the time it
    takes."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
