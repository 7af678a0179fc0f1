"""The check of the model that finds notes by their meaning, if the database names one. It is not loaded: that takes
longer than all other checks together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from shlex import quote

from nudge.core import limits
from nudge.core.errors import NudgeError
from nudge.doctor.model import Finding, Snapshot, ok, warn
from nudge.meaning import store
from nudge.meaning.embedder import EXTRAS, LIBRARIES, ModelUnusable, kind_of, read_fingerprint
from nudge.meaning.store import Model, Progress
from nudge.settings import config
from nudge.settings.table import KEYWORD
from nudge.storage.sqlite import STATEMENT_ERRORS, open_readonly

_MEANING = "recall by meaning"
_WORDS = "notes are found by their words"


def check_meaning(snapshot: Snapshot) -> Iterator[Finding]:
    try:
        found = _read(config.database_file(snapshot.environ))
    except (NudgeError, OSError, *STATEMENT_ERRORS):
        return  # the check of the history says what is wrong with the database
    if found is None:
        return
    model, progress, lost = found
    problem = _problem_of(model)
    if problem is not None:
        yield warn(_MEANING, f"{problem[0]}; {_WORDS} meanwhile", problem[1])
    elif snapshot.settings.tier == KEYWORD:
        message = f"the tier is keyword, so the model {model.name} is not used"
        yield warn(_MEANING, message, "nudge stop; nudge serve --tier semantic")
    elif progress.waiting:
        yield _waiting(snapshot, model, progress)
    elif lost:
        message = f"{lost:,} of {progress.notes:,} notes have no vectors, and are found by their words"
        yield warn(_MEANING, message, _again(model))
    else:
        yield ok(_MEANING, f"{model.name}, {progress.notes:,} notes embedded")


def _read(path: str) -> tuple[Model, Progress, int] | None:
    """The model, how far it is, and how many notes have lost their vectors."""
    if not os.path.isfile(path):
        return None
    with closing(open_readonly(path, limits.BUSY_TIMEOUT)) as connection:
        model = store.read_model(connection)
        return None if model is None else (model, store.progress(connection), store.count_lost(connection))


def _again(model: Model) -> str:
    return f"nudge semantic on {quote(model.name if model.revision else model.directory)}"


def _problem_of(model: Model) -> tuple[str, str] | None:
    """What is wrong with the model, and the command that helps."""
    again = _again(model)
    try:
        kind = kind_of(model.directory)
        if read_fingerprint(model.directory) != model.fingerprint:
            return f"{model.directory} has another model than the one that the notes were embedded with", again
    except (ModelUnusable, OSError) as error:
        return str(error), f"{again}; or: nudge semantic off"
    missing = next((name for name in LIBRARIES[kind] if find_spec(name) is None), None)
    return None if missing is None else (f"{missing} is not installed", f"pip install 'nudge-mcp[{EXTRAS[kind]}]'")


def _waiting(snapshot: Snapshot, model: Model, progress: Progress) -> Finding:
    counts = f"{progress.embedded:,} of {progress.notes:,} notes embedded"
    done = f"{model.name}, {counts}; the others are found by their words"
    if snapshot.has_no_server:
        return warn(_MEANING, done, "nothing to do: the next server goes on")
    return ok(_MEANING, f"{done} until they are")
