"""An option that was given, or has another value, as the cure of a failure."""

from __future__ import annotations

import re

from nudge.learning.comparison import (
    changed_values,
    differences,
    has_same_subcommand,
    is_misspelling,
    is_same_call,
)
from nudge.learning.cure import FLAG, Cure
from nudge.learning.failures import Failure
from nudge.learning.families import fits
from nudge.learning.harm import is_harmless_variable
from nudge.learning.jobs import (
    CHECKS,
    EDITING,
    NOISE,
    SELECTING,
)
from nudge.learning.told_span import command_cure, subject_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from nudge.learning.attempt import Attempt
    from nudge.learning.outcome import Call


def find_option(attempt: Attempt) -> Cure | None:
    """An option that was given, or has another value: `--platform linux/amd64`, `-p 1`, `+nightly`."""
    failed, worked = attempt.call, attempt.worked
    if failed.tool != worked.tool or not has_same_subcommand(failed, worked):
        return None
    if time := _more_time(attempt):
        return command_cure(attempt, FLAG, subject_of(failed), worked.command.head_length, time)
    removed, inserted = differences(failed, worked)
    if any(is_misspelling(old.lstrip("-"), new.lstrip("-")) for old in removed for _, new in inserted):
        return None
    targets = [at for at, word in inserted if not _is_option(word)]
    options = _helping_options(attempt, inserted, targets)
    if not options:
        return _target_of_login(attempt, targets) or _changed_value(attempt)
    return _fewest_options(attempt, options, targets) if _is_about_options(attempt, removed) else None


def _helping_options(attempt: Attempt, inserted: Sequence[tuple[int, str]], targets: Sequence[int]) -> list[int]:
    """The places of the new options that may be what helped; where a port is in use, also of new numbers."""
    worked, failure = attempt.worked, attempt.failure
    is_check = attempt.job(attempt.call) in CHECKS
    options = [
        at
        for at, word in inserted
        if _is_option(word)
        and (word not in NOISE or _names_file_of_repo(worked.words[at + 1 : at + 2]))
        and _may_cure(worked.words[at:], failure, is_check=is_check)
    ]
    numbers = [at for at in targets if any(map(str.isdigit, worked.words[at]))]
    return [*options, *(numbers if failure.family == "port" else ())]


def _target_of_login(attempt: Attempt, targets: Sequence[int]) -> Cure | None:
    if attempt.failure.family != "auth" or not targets:
        return None
    words = _words_at(attempt.worked, targets)
    return command_cure(attempt, FLAG, subject_of(attempt.call), max(targets) + 1, words)


def _changed_value(attempt: Attempt) -> Cure | None:
    """An option that both calls have, with another value."""
    failed, worked = attempt.call, attempt.worked
    changed = changed_values(failed, worked)
    is_check = attempt.job(failed) in CHECKS
    if not changed or not _may_cure(worked.words[changed[0] - 1 :], attempt.failure, is_check=is_check):
        return None
    return command_cure(attempt, FLAG, subject_of(failed), changed[-1] + 1, _words_at(worked, changed))


def _is_about_options(attempt: Attempt, removed: Sequence[str]) -> bool:
    """Whether nothing else than new options can have helped: no words that went, no step that came before."""
    if not attempt.is_of_surroundings:
        return all(word in NOISE for word in removed)
    if attempt.failure.family == "path" and attempt.failure.detail in removed:
        return False
    return not any(fits(attempt.failure.family, step.kind) for step in attempt.steps)


def _fewest_options(attempt: Attempt, options: Sequence[int], targets: Sequence[int]) -> Cure:
    """All new options with their values, or the first of them where only these may be told."""
    values = [at for at in targets if at - 1 in options or (at - 2 in options and at - 1 in targets)]
    new = sorted({*options, *(targets if attempt.failure.family == "auth" else values)})
    lengths = [len(new), *(at for at in range(len(new) - 1, 0, -1) if new[at] in options)]
    cures = (_with_options(attempt, new[:length]) for length in lengths)
    first = next(cures)
    return first if first.sessions else next((cure for cure in cures if cure.sessions), first)


def _with_options(attempt: Attempt, places: Sequence[int]) -> Cure:
    failed, worked = attempt.call, attempt.worked
    end = max(places[-1] + 1, worked.head_length)
    return command_cure(attempt, FLAG, subject_of(failed), end, _words_at(worked, places))


def _more_time(attempt: Attempt) -> tuple[str, ...]:
    """The words of `timeout 600`, where less was not enough more than once."""
    failed, worked = attempt.call, attempt.worked
    is_same = is_same_call(failed, worked) and worked.command.wrapper != failed.command.wrapper
    is_slow = attempt.failure.family == "timeout" and attempt.is_repeated
    return tuple(map(str, worked.command.wrapper)) if is_same and is_slow else ()


def _words_at(call: Call, places: Sequence[int]) -> tuple[str, ...]:
    return tuple(call.words[at] for at in places)


def _names_file_of_repo(values: Sequence[str]) -> bool:
    """Whether the value behind an option is a path: `-s` is less output for one program, settings for another."""
    return any("/" in value and not value.startswith("-") for value in values)


_SETTING = re.compile(r"[A-Za-z_]\w*=")


_WAITING = ("--retry", "--wait", "--timeout", "--connect-timeout", "--max-time")


_HIDING = re.compile(
    r"--(?:no|ignore|skip|exclude|disable|allow|keep-going|continue|exit-zero|pass-?with|warn|quiet|lenient|max-warnings"
    r"|[\w-]*(?:fail-under|threshold|tolerance))"
    r"(?:$|[-=A-Z])|-Wno|-k$"
)
"""Options with which a program looks at less, or goes on after an error."""


def _may_cure(words: Sequence[str], failure: Failure, *, is_check: bool) -> bool:
    """Whether the first of these words, an option, is more than a choice of what is done or of what is an error, or a
    wait for what is not up yet.
    `-n` and `--filter` mean more to programs that check nothing, and with a number: in how many processes."""
    word, is_number = words[0], words[1:2] != () and words[1].isdigit()
    name = word.partition("=")[0]
    if name in EDITING or (
        is_check and name in SELECTING and not is_number and failure.family in ("", "timeout", "resources")
    ):
        return False
    if failure.family == "" and _HIDING.match(word):
        return False
    return failure.family == "timeout" or not word.startswith(_WAITING)


def _is_option(word: str) -> bool:
    if _SETTING.match(word):  # `make PREFIX=~/.local`
        return is_harmless_variable(word)
    return word == "" or (len(word) > 1 and word[0] in "-+" and word != "--")
