"""The cure that a difference makes: its answer is a span of the line that ran."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace

from nudge.learning import poison
from nudge.learning.command import CUT_OFF, span_text
from nudge.learning.cure import LAUNCHER, RUNNER, VARIABLE, Cure
from nudge.learning.jobs import NOISE, SELECTING, is_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from nudge.learning.attempt import Attempt
    from nudge.learning.command import SimpleCommand
    from nudge.learning.outcome import Call


def command_cure(
    attempt: Attempt,
    kind: str,
    subject: str,
    end: int,
    added: Sequence[str],
    *,
    from_start: bool = False,
    keeps: bool = False,
) -> Cure:
    """A cure whose answer is the call that worked, up to its word `end`, and further to what changes its meaning: with
    the words behind it where these are few, with less where more must not be told."""
    command = attempt.worked.command
    typed = command.words if kind == LAUNCHER else attempt.call.command.words if kind != RUNNER else ()
    least, end = end, _end_of_meaning(command.words, end, frozenset(typed))
    rest = command.words[end:]
    is_short = kind != LAUNCHER and rest and not any(is_target(word) for word in rest) and len(rest) < 3
    ends = [len(command.words), end] if is_short else [end]
    if not any(map(_ASSIGNMENT.match, command.words[least:end])):
        ends += [least, min(least, command.head_length)] if kind in (LAUNCHER, VARIABLE) else [least]
    cures = (_cure_up_to(attempt, kind, subject, one, added, from_start=from_start) for one in ends)
    first = next(cures)
    cure = first if first.sessions else next((one for one in cures if one.sessions), first)
    return replace(cure, keeps_arguments=keeps)


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_TEST = re.compile(r"::|\.\w+$")
"""What a value has that names a test or a file."""


def _end_of_meaning(words: Sequence[str], end: int, typed: Collection[str]) -> int:
    """Return how many words of a command must be told, `end` at least: paths and the choice of tests may be left out at
    its end, an option or an assignment not (`make deploy DRY_RUN=1`). Options that are `typed` are the caller's own."""
    last = end - 1
    for at in range(end, len(words)):
        word = words[at]
        if _ASSIGNMENT.match(word):
            last = at if not _TEST.search(word) else last
        elif word not in typed and _is_meaningful_option(word):
            has_value = "=" not in word and at + 1 < len(words) and not words[at + 1].startswith("-")
            last = at + has_value
    return last + 1


def _is_meaningful_option(word: str) -> bool:
    is_option = len(word) > 1 and word[0] in "-+" and word != "--"
    return is_option and word not in NOISE and word.partition("=")[0] not in SELECTING


def _cure_up_to(attempt: Attempt, kind: str, subject: str, end: int, added: Sequence[str], *, from_start: bool) -> Cure:
    worked, success = attempt.worked, attempt.success
    command = worked.command
    text, before = span_text(command, end), []
    if from_start and worked.start < command.start:
        text = command.source[worked.start : command.start] + text
        before = [one for one in success.commands if worked.start <= one.start < command.start]
    cut = replace(command, words=command.words[:end], end=command.words[end - 1].end)
    return cure_of(attempt, kind, subject, text, added, commands=(*before, cut))


def cure_of(
    attempt: Attempt, kind: str, subject: str, text: str, added: Sequence[str], *, commands: Sequence[SimpleCommand]
) -> Cure:
    failure, failed, outcome = attempt.failure, attempt.call, attempt.outcome
    return Cure(
        kind,
        subject,
        text,
        failed.tool,
        failed.subcommand,
        program_of(failed),
        attempt.job(failed),
        failure.nature,
        failure.family,
        failure.detail,
        failure.line,
        failure.causes,
        failure.sign,
        tuple(map(str, added)),
        place=outcome.place,
        sessions=poison.sessions_needed(commands, text, outcome.root, outcome.printed, failed.command),
    )


def program_of(call: Call) -> str:
    return posixpath.basename(call.command.launched_program)


_ACTION = re.compile(r"[a-z][\w:-]*")


def subject_of(failed: Call, family: str = "") -> str:
    """What fails, as it was typed: the program, and what it is to do unless the program itself is what is missing."""
    length = failed.command.head_length if family in ("tool", "module") else _script_length(failed)
    return span_text(failed.command, length).removesuffix(CUT_OFF)


def _script_length(failed: Call) -> int:
    """How many words name what fails. Of an interpreter these are its script and what the script is to do: that one
    command of `php artisan` or `python manage.py` fails says nothing about the others."""
    head, words = failed.command.head_length, failed.command.words
    is_interpreter = failed.command.is_anonymous or failed.tool == "php"
    if not is_interpreter or len(words) == head or words[head].startswith("-"):
        return failed.head_length
    has_action = len(words) > head + 1 and _ACTION.fullmatch(words[head + 1]) is not None
    return head + 1 + has_action
