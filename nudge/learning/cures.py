"""What made a failing command work: the difference between a failure and the success that does the same thing.

`find_cure` compares two outcomes and what ran between them. Everything that is told is a span of a line that ran.
"""

from __future__ import annotations

import re
from dataclasses import replace

from nudge.core import limits
from nudge.core.programs import TARGET_RUNNERS
from nudge.learning.call_cures import (
    find_directory,
    find_launcher,
    find_name,
    find_path,
    find_runner,
    find_variable,
    find_word,
    sets_untold,
)
from nudge.learning.comparison import (
    has_same_arguments,
    has_same_subcommand,
    has_same_targets,
    is_misspelling,
    is_named_alike,
    is_same_script,
    launched_at,
    quoted_at,
    targets_of,
)
from nudge.learning.cure import DIRECTORY, FLAG, LAUNCHER, PATH, RUNNER, STEP, VARIABLE, Cure
from nudge.learning.failures import OWN_WORK, has_failed_tests, names_command
from nudge.learning.families import family_of, fits
from nudge.learning.harm import undoes
from nudge.learning.jobs import (
    FILE_PROGRAMS,
    NOISE,
    is_looking,
    main_words,
    same_job,
    step_of,
)
from nudge.learning.moved_paths import is_path
from nudge.learning.option_cures import find_option
from nudge.learning.step_cures import find_inline_step, find_step_between, is_named_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.learning.attempt import Attempt
    from nudge.learning.outcome import Call


def find_cure(attempt: Attempt) -> Cure | None:
    """Return what made the failing call work, if the other call does the same thing; None when nothing is known to
    have."""
    if attempt.is_edited and not attempt.is_of_surroundings:
        return None
    if any(undoes(step.call.command) for step in (*attempt.inline, *attempt.steps)) or sets_untold(attempt):
        return None
    found = (find(attempt) for find in _FINDERS)
    cure = next((cure for cure in found if cure is not None), None)
    if cure is None or (attempt.is_edited and not _outlasts_edit(cure)):
        return None
    return _weighed(cure, attempt)


_FINDERS = (
    *(find_path, find_name, find_launcher, find_directory, find_variable, find_inline_step, find_option),
    *(find_step_between, find_runner, find_word),
)
"""The narrow ones first: the first that finds a difference decides."""


def does_same(attempt: Attempt) -> bool:
    """Whether a call does what the failing one was to do, so that its success answers the failure."""
    failed, worked, failure = attempt.call, attempt.worked, attempt.failure
    if failed.tool != worked.tool and _is_file_work(worked, failed):
        return False
    if is_misspelling(failed.tool, worked.tool) or is_misspelling(failed.subcommand, worked.subcommand):
        return False
    if _only_shows(failed, worked) or _prepares(attempt):
        return False
    if is_looking(worked.command) and not (_is_same_call(failed, worked) and is_looking(failed.command)):
        return failure.family == "path"
    if _is_same_thing(attempt) or (failure.family in ("path", "tool") and is_path(failure.detail)):
        return True
    return same_job(attempt.job(failed), attempt.job(worked)) or is_named_alike(failed, worked)


def _is_same_call(failed: Call, worked: Call) -> bool:
    is_same = failed.tool == worked.tool and has_same_subcommand(failed, worked)
    return is_same or launched_at(failed, worked, whole=True) > 0


def _is_same_thing(attempt: Attempt) -> bool:
    """Whether both calls have the same program or script, or the same arguments."""
    failed, worked = attempt.call, attempt.worked
    if attempt.is_same_program or launched_at(failed, worked) or quoted_at(failed, worked):
        return True
    return has_same_arguments(failed, worked) or has_same_targets(failed, worked) or is_same_script(failed, worked)


def _prepares(attempt: Attempt) -> bool:
    """Whether a call is a step that cures such failures, not what failed: `docker login` after `docker push`."""
    failed, worked = attempt.call, attempt.worked
    step = step_of(worked.command)
    is_same = failed.subcommand == worked.subcommand != "" or main_words(failed.command) == main_words(worked.command)
    if is_same or failed.tool != worked.tool or step_of(failed.command) == step:
        return False
    return fits(attempt.failure.family, step) > 0


def _only_shows(failed: Call, worked: Call) -> bool:
    """Whether a call has a word more with which it does nothing of what failed: `--dry-run`."""
    added = [word for word in worked.words if word not in failed.words]
    return added == ["-n"] or any(map(_SHOWING.match, added))


_SHOWING = re.compile(
    r"--(?:dry-?run|help|version|list|no-run|collect-only|just-print|what-?if|preview|no-execute|print|show|explain)\b"
)


def _is_file_work(worked: Call, failed: Call) -> bool:
    """Whether a call changes files, or runs a script that the other worked on: it does no job of the repository."""
    if worked.tool in FILE_PROGRAMS:
        return True
    if failed.command.is_anonymous and failed.words[1:2] == worked.words[1:2]:
        return False  # another interpreter runs the same script
    script = worked.words[1] if worked.command.is_anonymous and len(worked.words) > 1 else ""
    return worked.command.is_anonymous and (script in failed.words[1:] or script in ("", "-", "-c", "-e"))


def _outlasts_edit(cure: Cure) -> bool:
    """Whether an edit between failure and success cannot have been what helped."""
    if cure.kind in (LAUNCHER, DIRECTORY, PATH):
        return True
    return family_of(cure.family).outlasts_edit and cure.family not in (
        ("version",) if cure.kind == STEP else ("schema", "version")
    )


def _weighed(cure: Cure, attempt: Attempt) -> Cure | None:
    """The cure with the number of sessions that it needs; None when it must not be told."""
    if not cure.sessions or len(cure.answer) > limits.MAX_TOLD_COMMAND or _gives_up_trust(cure):
        return None
    return replace(cure, sessions=2) if _is_doubtful(cure, attempt) else cure


def _gives_up_trust(cure: Cure) -> bool:
    """Whether a cure may make a certificate count that nobody vouches for: a variable or an option that names no
    file."""
    return cure.family == "tls" and cure.kind in (VARIABLE, FLAG) and not any("/" in word for word in cure.added)


def _is_doubtful(cure: Cure, attempt: Attempt) -> bool:
    """Whether something else than the cure may have helped, so that one session is no proof."""
    if attempt.is_of_surroundings:
        is_only_change = cure.kind in (PATH, LAUNCHER, RUNNER) or (cure.kind == VARIABLE and _adds_only(attempt))
        return attempt.is_after_edit and not attempt.family.outlasts_edit and not is_only_change
    new = [word for word in cure.added[:3] if word not in attempt.call.words]
    if cure.kind != FLAG and any(names_command(attempt.outcome.printed, words) for words in (new, cure.added[:2])):
        return False  # the output itself names it
    if has_failed_tests(attempt.outcome.printed):
        return True
    if cure.kind == FLAG and any(_is_quoted(word, attempt.outcome.printed) for word in new):
        return False  # the output names its value
    return not _is_same_call_elsewhere(cure, attempt) and _may_be_chance(cure, attempt)


def _is_same_call_elsewhere(cure: Cure, attempt: Attempt) -> bool:
    """Whether the cure is the same call, in another directory or through a launcher."""
    failed, worked = attempt.call, attempt.worked
    is_same = failed.tool == worked.tool or launched_at(failed, worked) or is_same_script(failed, worked)
    return cure.kind == DIRECTORY or (cure.kind == LAUNCHER and bool(is_same))


def _may_be_chance(cure: Cure, attempt: Attempt) -> bool:
    """Whether a failure that is not of the surroundings may have ended by itself."""
    if cure.nature == OWN_WORK:
        return True
    if cure.kind == FLAG and all(_LETTER.fullmatch(word) for word in cure.added):
        return True  # it may only print more
    if cure.kind in (VARIABLE, FLAG):
        return not _adds_only(attempt)
    if attempt.is_after_edit:
        return True
    if cure.kind == STEP:
        return not _is_named_step(attempt, cure) or sum(bool(step.kind) for step in attempt.steps) > 1
    return not _does_the_same_job(attempt)


def _is_quoted(word: str, printed: str) -> bool:
    return re.search(rf"[`'\"]{re.escape(word)}[`'\"]", printed) is not None


_LETTER = re.compile(r"-[A-Za-z]")


def _adds_only(attempt: Attempt) -> bool:
    """Whether the call that worked has all words of the one that failed."""
    return set(attempt.call.words) - NOISE <= set(attempt.worked.words)


def _is_named_step(attempt: Attempt, cure: Cure) -> bool:
    """Whether a step says that it prepares something, or the error names what it is about."""
    return any(
        step.kind or is_named_by(attempt, step)
        for step in (*attempt.steps, *attempt.inline)
        if step.call.words == cure.added
    )


def _does_the_same_job(attempt: Attempt) -> bool:
    """Whether another program does exactly the job, on the same things or on all."""
    failed, worked = attempt.call, attempt.worked
    job = attempt.job(failed)
    if worked.tool in TARGET_RUNNERS:
        return True
    return job != "" and job == attempt.job(worked) and (has_same_targets(failed, worked) or not targets_of(failed)[1:])
