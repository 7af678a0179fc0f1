"""The start of a session without a server.

Clients fire SessionStart before they start their servers, so the hook builds the text itself, from a read-only look at
the database and the change log. Hooks load this module: only the standard library is imported at its top. Reading
hints takes expensive imports, which are late and left out when there are no hints; a query that takes too long is
interrupted.
"""

from __future__ import annotations

import gc
import os
import time
from contextlib import closing, contextmanager, suppress

from nudge.clients.instructions import read_instructions
from nudge.core import limits, paths
from nudge.core.context import Context
from nudge.core.errors import NudgeError
from nudge.core.visibility import visible_here
from nudge.settings import config
from nudge.storage.sqlite import STATEMENT_ERRORS, open_readonly
from nudge.telling import ledger, start
from nudge.telling.start import Digest
from nudge.telling.start_rows import digest_options, hint_rows, stored_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from nudge.settings.config import Settings

_STEPS_PER_CHECK = 1_000  # instructions of SQLite between two checks of the time


def build_offline_digest(
    environ: Mapping[str, str],
    context: Context | dict[str, Any],
    session_id: str | None,
    source: str | None,
    client: str | None = None,
) -> Digest:
    """Build the digest that a server would give, from the files on the disk. Writes nothing."""
    context = context if isinstance(context, Context) else Context.parse(context)
    settings = config.load(environ)
    if ledger.is_silent(settings.tell):
        return Digest("", [])
    hints = _hints(environ, settings, context)
    visible = visible_here(context, environ)
    instructions = read_instructions(client, context.cwd)
    options = digest_options(context, visible, session_id, source or start.STARTUP, time.time(), instructions)
    try:
        with closing(open_readonly(config.database_file(environ))) as connection:
            connection.set_progress_handler(_deadline(), _STEPS_PER_CHECK)
            result = start.build(connection, hints=hints, **stored_lines(connection, options), **options)
            result.is_shadow = ledger.is_shadow_in_history(connection, settings.tell, session_id or "")
    except (*STATEMENT_ERRORS, NudgeError):
        result = start.build(None, hints=hints, **options)
        result.is_shadow = ledger.is_shadow(settings.tell, session_id or "")
    return result


def _deadline() -> Callable[[], bool]:
    """A function that returns whether reading has taken too long: work of our own, or waiting on a busy machine, on
    which everything takes longer."""
    used, until = time.process_time() + limits.OFFLINE_READ_TIMEOUT, time.monotonic() + limits.OFFLINE_READ_WAIT
    return lambda: time.process_time() > used or time.monotonic() > until


def _hints(environ: Mapping[str, str], settings: Settings, context: Context) -> list[dict[str, Any]]:
    """The hints that are eligible in the context: those of the change log, then those of the repo's file."""
    directory = paths.runtime_dir(environ)
    hits = _own_hints(directory, environ, settings, context)
    with suppress(OSError, NudgeError):
        hits += _file_hints(directory, context)
    return hint_rows(hits) if hits else []


def _own_hints(
    directory: str, environ: Mapping[str, str], settings: Settings, context: Context
) -> list[dict[str, Any]]:
    """The hints of the change log; none of a log that is too large to read in time."""
    try:
        if os.path.getsize(os.path.join(directory, paths.CHANGE_LOG)) > limits.OFFLINE_LOG_BYTES:
            return []
        from nudge.hints.freshness import mark_stale
        from nudge.hints.offline import read_eligible_hints

        with _gc_disabled():
            return mark_stale(read_eligible_hints(directory, settings, context, environ), context.cwd)
    except (OSError, NudgeError):
        return []


def _file_hints(directory: str, context: Context) -> list[dict[str, Any]]:
    """The trusted hints of the repo's file. Where nobody ever trusted one, that costs one look at the disk."""
    if not os.path.exists(os.path.join(directory, paths.TRUST)):
        return []
    from nudge.repofile.told import trusted_here
    from nudge.repofile.trust import TrustStore

    found = trusted_here(TrustStore(directory), context)
    return [] if found is None else found.at_start()


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
