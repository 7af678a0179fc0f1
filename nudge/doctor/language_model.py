"""The check of the language model, if the settings name one: it is asked one question that says nothing of the user."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from nudge.core.errors import NudgeError
from nudge.doctor.model import Finding, Snapshot, ok, warn
from nudge.proposals.answers import words_in_answer
from nudge.proposals.language_model import LanguageModel
from nudge.proposals.questions import ask_for_words

_MODEL = "language model"
_ASKED = "database"


def check_language_model(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.settings_problem is not None:
        return
    model = LanguageModel(snapshot.settings)
    if not model.is_wanted:
        return
    if model.sends is not None:
        yield warn(_MODEL, model.sends, "nothing to do if that is meant; else set llm_remote = false")
    began = time.monotonic()
    try:
        asyncio.run(model.ask(ask_for_words(_ASKED), lambda content: words_in_answer(content, _ASKED)))
    except NudgeError as error:
        yield warn(_MODEL, error.message, "start it, or start the server with --tier keyword; notes work without it")
    else:
        yield ok(_MODEL, f"{model.name} answers in {time.monotonic() - began:.1f} s")
