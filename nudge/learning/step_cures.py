"""A command that ran before the one that worked, as the cure of a failure."""

from __future__ import annotations

import re

from nudge.core import limits
from nudge.core.programs import TARGET_RUNNERS
from nudge.learning.attempt import is_step
from nudge.learning.command import CUT_OFF
from nudge.learning.cure import STEP, Cure
from nudge.learning.failures import OWN_WORK, names_command
from nudge.learning.families import fits
from nudge.learning.jobs import main_words, step_of
from nudge.learning.outcome import is_filter
from nudge.learning.told_span import cure_of, subject_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from nudge.learning.attempt import Attempt, Step
    from nudge.learning.command import SimpleCommand


_MOST_INLINE = 3  # steps on one line that are told together


def is_named_by(attempt: Attempt, step: Step) -> bool:
    """Whether the error has a word that says what a step does, and that the failing command had not."""
    parts = {part for word in main_words(step.call.command)[1:] for part in re.split(r"[:._/-]", word.casefold())}
    typed = attempt.outcome.line.casefold()
    names = [part for part in parts if len(part) > 3 and part not in typed]
    printed = attempt.outcome.printed.casefold()
    return any(re.search(rf"(?<![a-z]){re.escape(name)}", printed) for name in names)


def find_inline_step(attempt: Attempt) -> Cure | None:
    """Steps on the line of the success, before what failed: `npm ci && npm run build`."""
    success, inline, failed = attempt.success, attempt.inline, attempt.call
    if not inline or not attempt.is_same_program or failed.words == inline[0].call.words:
        return None
    if not all(is_step(step.call.command) for step in inline) or len(inline) > _MOST_INLINE:
        return None
    commands = success.commands[inline[0].call.index : inline[-1].call.index + 1]
    text = success.line[commands[0].start : commands[-1].end]
    return cure_of(attempt, STEP, subject_of(failed), text, inline[-1].call.words, commands=commands)


def find_step_between(attempt: Attempt) -> Cure | None:
    """A command between failure and success, after which the same command worked."""
    failed, failure = attempt.call, attempt.failure
    if not attempt.is_same_program:
        return None
    steps = [step for step in attempt.steps if is_step(step.call.command) and step.call.words != failed.words]
    if not steps:
        return None
    printed = attempt.outcome.printed
    best = max(
        steps,
        key=lambda step: (
            fits(failure.family, step.kind) > 0,
            _is_asked_for(printed, step),
            fits(failure.family, step.kind),
        ),
    )
    if not fits(failure.family, best.kind):
        best = steps[-1]
        is_possible = attempt.family.takes_any_step or is_named_by(attempt, best)
        is_task = failure.family == "auth" and best.call.tool in TARGET_RUNNERS
        if attempt.is_edited or len(steps) > 1 or not (is_possible or is_task):
            return None
        if best.call.tool == failed.tool and best.call.subcommand == failed.subcommand:
            return None
    if failure.nature == OWN_WORK and not best.kind:
        return None
    commands = _joined(best)
    text = _fitting(best.outcome.line, min(commands[0].start, best.call.start), commands[-1])
    return cure_of(attempt, STEP, subject_of(failed), text, best.call.words, commands=commands)


def _is_asked_for(printed: str, step: Step) -> bool:
    """Whether the output names the command of a step."""
    words = main_words(step.call.command)
    return len(words) > 1 and names_command(printed, words[:3])


def _fitting(line: str, start: int, last: SimpleCommand) -> str:
    """The text of commands, without the last arguments of the last one if it is too long to be told."""
    text = line[start : last.end]
    for length in range(len(last.words) - 1, last.head_length, -1):
        if len(text) <= limits.MAX_TOLD_COMMAND:
            break
        text = line[start : last.words[length - 1].end] + CUT_OFF
    return text


def _joined(step: Step) -> list[SimpleCommand]:
    """A step with the rest of its pipe, and the steps directly before and behind it: `nvm install 20 && nvm use 20`."""
    commands = step.outcome.commands
    begin = end = step.call.index
    while commands[end].piped and not is_filter(commands[end + 1], commands, end + 1):
        end += 1
    while end + 1 < len(commands) and not commands[end].piped and _follows_step(commands, end + 1):
        if not step_of(commands[end + 1]):
            break
        end += 1
    while begin > 0 and (_is_pipe(commands[begin]) or _follows_step(commands, begin)):
        begin -= 1
    return commands[begin : end + 1]


def _is_pipe(command: SimpleCommand) -> bool:
    return command.preceded_by in ("|", "|&")


def _follows_step(commands: Sequence[SimpleCommand], at: int) -> bool:
    return commands[at].preceded_by == "&&" and is_step(commands[at - 1])
