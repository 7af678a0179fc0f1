"""What made a failing command work: the difference between a failure and the success that does the same thing.

`find_cure` compares two outcomes and what ran between them. Everything that is told is a span of a line that ran.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace

from nudge.core import limits
from nudge.core.programs import TARGET_RUNNERS
from nudge.learning import poison
from nudge.learning.attempt import is_step
from nudge.learning.command import CUT_OFF, span_text
from nudge.learning.comparison import (
    changed_values,
    differences,
    has_same_arguments,
    has_same_subcommand,
    has_same_targets,
    is_misspelling,
    is_same_call,
    is_same_script,
    launched_at,
    naming_length,
    quoted_at,
    targets_of,
)
from nudge.learning.cure import DIRECTORY, FLAG, LAUNCHER, PATH, RUNNER, STEP, VARIABLE, Cure
from nudge.learning.failures import OWN_WORK, Failure, has_failed_tests, names_command
from nudge.learning.families import family_of, fits
from nudge.learning.harm import is_harmless_variable, undoes
from nudge.learning.jobs import (
    CHECKS,
    EDITING,
    FILE_PROGRAMS,
    INSTALL,
    NOISE,
    SELECTING,
    is_looking,
    is_target,
    main_words,
    same_job,
    step_of,
)
from nudge.learning.moved_paths import is_compound, is_path, is_renamed, is_similar_path, names_path, path_in
from nudge.learning.outcome import is_filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from nudge.learning.attempt import Attempt, Step
    from nudge.learning.command import SimpleCommand
    from nudge.learning.outcome import Call

_MOST_INLINE = 3  # steps on one line that are told together


def find_cure(attempt: Attempt) -> Cure | None:
    """Return what made the failing call work, if the other call does the same thing; None when nothing is known to
    have."""
    if attempt.is_edited and not attempt.is_of_surroundings:
        return None
    if any(undoes(step.call.command) for step in (*attempt.inline, *attempt.steps)):
        return None
    finders = (_path, _name, _launcher, _directory, _variable, _inline_step, _option, _step_between, _runner, _word)
    found = (find(attempt) for find in finders)
    cure = next((cure for cure in found if cure is not None), None)
    if cure is None or (attempt.is_edited and not _outlasts_edit(cure)):
        return None
    return _weighed(cure, attempt)


def does_same(attempt: Attempt) -> bool:
    """Whether a call does what the failing one was to do, so that its success answers the failure."""
    failed, worked, failure = attempt.call, attempt.worked, attempt.failure
    if failed.tool != worked.tool and _is_file_work(worked, failed):
        return False
    if is_misspelling(failed.tool, worked.tool) or is_misspelling(failed.subcommand, worked.subcommand):
        return False
    if _only_shows(failed, worked) or _prepares(attempt):
        return False
    if is_looking(worked.command) and not (failed.tool == worked.tool and has_same_subcommand(failed, worked)):
        return failure.family == "path"
    if attempt.is_same_program or launched_at(failed, worked) or quoted_at(failed, worked):
        return True
    if has_same_arguments(failed, worked) or has_same_targets(failed, worked) or is_same_script(failed, worked):
        return True
    if failure.family in ("path", "tool") and is_path(failure.detail):
        return True
    return same_job(attempt.job(failed), attempt.job(worked))


def _prepares(attempt: Attempt) -> bool:
    """Whether a call is a step that cures such failures, not what failed: `docker login` after `docker push`."""
    failed, worked = attempt.call, attempt.worked
    step = step_of(worked.command)
    is_other = main_words(failed.command) != main_words(worked.command) and step_of(failed.command) != step
    return is_other and failed.tool == worked.tool and fits(attempt.failure.family, step) > 0


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
    script = worked.words[1] if worked.command.is_anonymous and len(worked.words) > 1 else ""
    return worked.command.is_anonymous and (script in failed.words[1:] or script in ("", "-", "-c", "-e"))


# What proves a cure


def _outlasts_edit(cure: Cure) -> bool:
    """Whether an edit between failure and success cannot have been what helped."""
    if cure.kind in (LAUNCHER, DIRECTORY, PATH):
        return True
    return family_of(cure.family).outlasts_edit and cure.family not in (
        ("version",) if cure.kind == STEP else ("schema", "version")
    )


def _weighed(cure: Cure, attempt: Attempt) -> Cure | None:
    """The cure with the number of sessions that it needs; None when it must not be told."""
    if not cure.sessions or len(cure.answer) > limits.MAX_TOLD_COMMAND:
        return None
    return replace(cure, sessions=2) if _is_doubtful(cure, attempt) else cure


def _is_doubtful(cure: Cure, attempt: Attempt) -> bool:
    """Whether something else than the cure may have helped, so that one session is no proof."""
    if attempt.is_of_surroundings:
        return attempt.is_after_edit and not attempt.family.outlasts_edit and cure.kind not in (PATH, LAUNCHER)
    new = [word for word in cure.added[:3] if word not in attempt.call.words]
    if cure.kind != FLAG and any(names_command(attempt.outcome.printed, words) for words in (new, cure.added[:2])):
        return False  # the output itself names it
    if has_failed_tests(attempt.outcome.printed):
        return True
    if cure.kind == FLAG and any(_is_quoted(word, attempt.outcome.printed) for word in new):
        return False  # the output names its value
    failed, worked = attempt.call, attempt.worked
    if cure.kind == DIRECTORY or (
        cure.kind == LAUNCHER
        and (failed.tool == worked.tool or launched_at(failed, worked) or is_same_script(failed, worked))
    ):
        return False  # the same call, in other surroundings
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
        step.kind or _is_named_by(attempt, step)
        for step in (*attempt.steps, *attempt.inline)
        if step.call.words == cure.added
    )


def _is_named_by(attempt: Attempt, step: Step) -> bool:
    """Whether the error has a word that says what a step does, and that the failing command had not."""
    parts = {part for word in main_words(step.call.command)[1:] for part in re.split(r"[:._/-]", word.casefold())}
    typed = attempt.outcome.line.casefold()
    names = [part for part in parts if len(part) > 3 and part not in typed]
    printed = attempt.outcome.printed.casefold()
    return any(re.search(rf"(?<![a-z]){re.escape(name)}", printed) for name in names)


def _does_the_same_job(attempt: Attempt) -> bool:
    """Whether another program does exactly the job, on the same things or on all."""
    failed, worked = attempt.call, attempt.worked
    job = attempt.job(failed)
    if worked.tool in TARGET_RUNNERS:
        return True
    return job != "" and job == attempt.job(worked) and (has_same_targets(failed, worked) or not targets_of(failed)[1:])


# Finders, each for one kind of difference


def _path(attempt: Attempt) -> Cure | None:
    """A path that does not exist, and where the file is: the same name elsewhere, or nearly the same name."""
    worked, success = attempt.worked, attempt.success
    failure, failed = attempt.failure, attempt.call
    detail = path_in(failure.detail)
    if failure.family not in ("path", "tool", "module") or not is_path(detail):
        return None
    missing = next((path for path in map(path_in, failed.words) if names_path(path, detail)), None)
    if missing is None or not is_path(missing):
        return None
    is_script = missing in failed.words[:2]
    for at, word in enumerate(worked.command.words):
        path = path_in(word)
        if word.is_expanded or word in failed.words or not is_similar_path(missing, path):
            continue
        if at == 0 or worked.tool == failed.tool or is_script:
            typed = path_in(success.line[word.start : word.end]).partition("::")[0]
            return _cure(attempt, PATH, missing.partition("::")[0], typed, (path.partition("::")[0],), commands=())
    return None


def _name(attempt: Attempt) -> Cure | None:
    """A name of several parts that is not known, and the one that is: `:libs:core:test` for `:core:test`."""
    names = _renamed(attempt)
    return _cure(attempt, PATH, *names, names[1:], commands=()) if names and is_compound(names[0]) else None


def _word(attempt: Attempt) -> Cure | None:
    """A word that is not known, and the one that is: `shop-api` for `api`."""
    names = _renamed(attempt)
    return _cure(attempt, PATH, *names, names[1:], commands=()) if names else None


def _renamed(attempt: Attempt) -> tuple[str, str] | tuple[()]:
    """The one word in which two calls differ, if the output names the old one and both have parts in common."""
    failed, worked = attempt.call, attempt.worked
    if len(failed.words) != len(worked.words) or failed.tool != worked.tool:
        return ()
    pairs = [pair for pair in zip(failed.words, worked.words, strict=True) if pair[0] != pair[1]]
    is_one = len(pairs) == 1 and pairs[0][0] in attempt.outcome.printed
    return pairs[0] if is_one and is_renamed(*pairs[0]) else ()


def _launcher(attempt: Attempt) -> Cure | None:
    """The same program by another way: `uv run pytest`, `docker compose exec api python manage.py`, `bash x.sh`."""
    failed, worked, family = attempt.call, attempt.worked, attempt.failure.family
    is_install = step_of(worked.command) == INSTALL != attempt.job(failed)
    is_whole = len(failed.words) > 1 and launched_at(failed, worked, whole=True) > 0
    if is_install and failed.tool != worked.tool and not is_whole:
        return None
    subject = _subject(failed, family)
    if at := launched_at(failed, worked):
        end = at + min(naming_length(failed), len(worked.words) - at)
        return _command_cure(attempt, LAUNCHER, subject, end, worked.words[:at], keeps=True)
    if at := quoted_at(failed, worked):
        return _command_cure(attempt, LAUNCHER, subject, at + 1, worked.words[:at], keeps=True)
    if is_same_script(failed, worked):
        return _command_cure(attempt, LAUNCHER, subject, worked.command.head_length, worked.words[:2], keeps=True)
    if wrapper := _new_wrapper(failed, worked):
        return _command_cure(attempt, LAUNCHER, subject, worked.head_length, wrapper, keeps=True)
    if added := _other_way(attempt):
        end = max(worked.command.head_length, worked.head_length)
        return _command_cure(attempt, LAUNCHER, subject, end, added, keeps=True)
    if attempt.family.takes_runner and has_same_arguments(failed, worked):
        if failed.tool == worked.tool and not failed.command.is_anonymous:
            return None  # they differ in an option
        end = max(1, len(worked.words) - len(failed.words) + failed.head_length)
        return _command_cure(attempt, LAUNCHER, subject, end, worked.words[:1], keeps=True)
    return None


def _other_way(attempt: Attempt) -> tuple[str, ...]:
    """The words by which the same tool is run in another way: another path, another launcher; none if it is not."""
    failed, worked = attempt.call, attempt.worked
    is_of_interpreter = attempt.failure.family in ("tool", "module", "version")
    is_same_tool = failed.tool == worked.tool and (not failed.command.is_anonymous or is_of_interpreter)
    old = tuple(map(str, failed.command.words[: failed.command.head_length]))
    new = tuple(map(str, worked.command.words[: worked.command.head_length]))
    is_same = has_same_subcommand(failed, worked) or failed.words[1:2] == worked.words[1:2] != ()
    if old == new or not is_same_tool or not is_same:
        return ()
    return tuple(word for word in new if word not in old) or new


def _new_wrapper(failed: Call, worked: Call) -> tuple[str, ...]:
    """The words of `sudo` that only the working call has."""
    is_new = "sudo" in worked.command.wrapper and "sudo" not in failed.command.wrapper
    return tuple(map(str, worked.command.wrapper)) if is_new and failed.words[:1] == worked.words[:1] else ()


def _directory(attempt: Attempt) -> Cure | None:
    """The same command in another directory of the repository."""
    worked, success = attempt.worked, attempt.success
    failed, outcome = attempt.call, attempt.outcome
    if outcome.root is None or not attempt.is_same_program:
        return None
    is_possible = attempt.failure.family in ("directory", "script", "path", "module", "tool", "")
    if not is_possible and not is_same_call(failed, worked):
        return None
    here = posixpath.normpath(posixpath.join(outcome.place or ".", failed.directory))
    there = posixpath.normpath(posixpath.join(success.place or ".", _below(worked.directory, outcome.root)))
    alone = (step for step in reversed(attempt.steps) if len(step.outcome.calls) == 1)
    moved = next((step for step in alone if step.call.tool == "cd"), None)
    if there == here and moved is not None and not worked.directory and moved.call.command.arguments:
        # the client reports the directory of the session, not that of its shell
        there = posixpath.normpath(posixpath.join(here, _below(moved.call.command.arguments[0], outcome.root)))
    if there == here or there.startswith(("/", "..", "~")):
        return None
    subject = _subject(failed)
    if worked.directory:
        cure = _command_cure(attempt, DIRECTORY, subject, worked.head_length, (there,), from_start=True)
        return replace(cure, directory=there)
    if moved is None or not moved.call.command.arguments:
        return None
    command = moved.call.command
    return replace(_cure(attempt, DIRECTORY, subject, command.text, (there,), commands=(command,)), directory=there)


def _below(path: str, root: str) -> str:
    """A path relative to the clone, if it is in it."""
    return path[len(root) + 1 :] or "." if f"{path}/".startswith(f"{root}/") else path


def _variable(attempt: Attempt) -> Cure | None:
    """A variable that was set, or has another value."""
    failed, worked = attempt.call, attempt.worked
    if not attempt.is_same_program:
        return None
    new = {name: value for name, value in worked.variables.items() if failed.variables.get(name) != value}
    added = tuple(f"{name}={value}" for name, value in new.items())
    if not added:
        return _exported(attempt)
    if not all(map(is_harmless_variable, added)):
        return None
    return _command_cure(attempt, VARIABLE, _subject(failed), worked.head_length, added, from_start=True)


def _exported(attempt: Attempt) -> Cure | None:
    """A variable that a command between failure and success set for those after it."""
    failed, worked = attempt.call, attempt.worked
    exports = [step.call.command for step in attempt.steps if step.call.tool == "export"]
    if not exports or failed.words != worked.words:
        return None
    command = exports[-1]
    added = tuple(map(str, command.arguments))
    if not added or not all("=" in word and is_harmless_variable(word) for word in added):
        return None
    return _cure(attempt, VARIABLE, _subject(failed), command.text, added, commands=(command,))


def _option(attempt: Attempt) -> Cure | None:
    """An option that was given, or has another value: `--platform linux/amd64`, `-p 1`, `+nightly`."""
    failed, worked, failure = attempt.call, attempt.worked, attempt.failure
    if failed.tool != worked.tool or not has_same_subcommand(failed, worked):
        return None
    if time := _more_time(attempt):
        return _command_cure(attempt, FLAG, _subject(failed), worked.command.head_length, time)
    removed, inserted = differences(failed, worked)
    if any(is_misspelling(old.lstrip("-"), new.lstrip("-")) for old in removed for _, new in inserted):
        return None
    is_check = attempt.job(failed) in CHECKS
    options = [
        at
        for at, word in inserted
        if _is_option(word) and word not in NOISE and _may_cure(worked.words[at:], failure, is_check=is_check)
    ]
    targets = [at for at, word in inserted if not _is_option(word)]
    if failure.family == "port":
        options += [at for at in targets if any(map(str.isdigit, worked.words[at]))]
    if failure.family == "auth" and targets and not options:
        return _command_cure(attempt, FLAG, _subject(failed), max(targets) + 1, _words_at(worked, targets))
    changed = [] if options else changed_values(failed, worked)
    if changed and _may_cure(worked.words[changed[0] - 1 :], failure, is_check=is_check):
        return _command_cure(attempt, FLAG, _subject(failed), changed[-1] + 1, _words_at(worked, changed))
    if not options or (not attempt.is_of_surroundings and any(word not in NOISE for word in removed)):
        return None
    if attempt.is_of_surroundings and any(fits(failure.family, step.kind) for step in attempt.steps):
        return None  # a step that cures such failures came before
    values = [at for at in targets if at - 1 in options or (at - 2 in options and at - 1 in targets)]
    new = sorted({*options, *values}) if failure.family != "auth" else sorted({*options, *targets})
    lengths = [len(new), *(at for at in range(len(new) - 1, 0, -1) if new[at] in options)]
    cures = (_with_options(attempt, new[:length]) for length in lengths)
    first = next(cures)
    return first if first.sessions else next((cure for cure in cures if cure.sessions), first)


def _with_options(attempt: Attempt, places: Sequence[int]) -> Cure:
    failed, worked = attempt.call, attempt.worked
    end = max(places[-1] + 1, worked.head_length)
    return _command_cure(attempt, FLAG, _subject(failed), end, _words_at(worked, places))


def _more_time(attempt: Attempt) -> tuple[str, ...]:
    """The words of `timeout 600`, where less was not enough more than once."""
    failed, worked = attempt.call, attempt.worked
    is_same = is_same_call(failed, worked) and worked.command.wrapper != failed.command.wrapper
    is_slow = attempt.failure.family == "timeout" and attempt.is_repeated
    return tuple(map(str, worked.command.wrapper)) if is_same and is_slow else ()


def _words_at(call: Call, places: Sequence[int]) -> tuple[str, ...]:
    return tuple(call.words[at] for at in places)


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


def _inline_step(attempt: Attempt) -> Cure | None:
    """Steps on the line of the success, before what failed: `npm ci && npm run build`."""
    success, inline, failed = attempt.success, attempt.inline, attempt.call
    if not inline or not attempt.is_same_program or failed.words == inline[0].call.words:
        return None
    if not all(is_step(step.call.command) for step in inline) or len(inline) > _MOST_INLINE:
        return None
    commands = success.commands[inline[0].call.index : inline[-1].call.index + 1]
    text = success.line[commands[0].start : commands[-1].end]
    return _cure(attempt, STEP, _subject(failed), text, inline[-1].call.words, commands=commands)


def _step_between(attempt: Attempt) -> Cure | None:
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
        is_possible = attempt.family.takes_any_step or _is_named_by(attempt, best)
        is_task = failure.family == "auth" and best.call.tool in TARGET_RUNNERS
        if attempt.is_edited or len(steps) > 1 or not (is_possible or is_task):
            return None
        if best.call.tool == failed.tool and best.call.subcommand == failed.subcommand:
            return None
    if failure.nature == OWN_WORK and not best.kind:
        return None
    commands = _joined(best)
    text = _fitting(best.outcome.line, min(commands[0].start, best.call.start), commands[-1])
    return _cure(attempt, STEP, _subject(failed), text, best.call.words, commands=commands)


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
    """A step with the rest of its pipe, and the steps directly before it: `nvm install 20 && nvm use 20`."""
    commands = step.outcome.commands
    begin = end = step.call.index
    while commands[end].piped and not is_filter(commands[end + 1], commands, end + 1):
        end += 1
    while begin > 0 and (_is_pipe(commands[begin]) or _follows_step(commands, begin)):
        begin -= 1
    return commands[begin : end + 1]


def _is_pipe(command: SimpleCommand) -> bool:
    return command.preceded_by in ("|", "|&")


def _follows_step(commands: Sequence[SimpleCommand], at: int) -> bool:
    return commands[at].preceded_by == "&&" and is_step(commands[at - 1])


def _runner(attempt: Attempt) -> Cure | None:
    """Another program that does the same job: `make test` for `pytest`."""
    failed, worked = attempt.call, attempt.worked
    if not attempt.family.takes_runner and not names_command(attempt.outcome.printed, worked.words[:2]):
        return None
    if failed.tool == worked.tool and (failed.subcommand == worked.subcommand or _is_option_value(worked)):
        return None
    is_job = same_job(attempt.job(failed), attempt.job(worked))
    if not is_job and not (has_same_targets(failed, worked) and not attempt.job(worked)):
        return None
    new = [at for at, word in enumerate(worked.command.words) if str(word) not in failed.command.words]
    kept = [at for at in new if not is_target(worked.command.words[at]) or at == 0]
    end = max([worked.head_length, *(at + 1 for at in kept)])
    while end > worked.head_length and worked.command.words[end - 1] == "--":
        end -= 1
    is_named = failed.subcommand != "" and failed.subcommand in worked.words[1:]
    end = max(end, worked.words.index(failed.subcommand) + 1 if is_named else 0)
    return _command_cure(attempt, RUNNER, _subject(failed), end, worked.words[:2], keeps=is_named)


def _is_option_value(call: Call) -> bool:
    """Whether what may be a subcommand may as well be the value of the option before it: `shellcheck -e SC2086`."""
    before, last = call.words[max(call.head_length - 2, 0)], call.words[call.head_length - 1]
    return before.startswith("-") and "(" not in last


# Making a cure


def _command_cure(
    attempt: Attempt,
    kind: str,
    subject: str,
    end: int,
    added: Sequence[str],
    *,
    from_start: bool = False,
    keeps: bool = False,
) -> Cure:
    """A cure whose answer is the call that worked, up to its word `end`: with the words behind it where these are few,
    with less where more must not be told."""
    command = attempt.worked.command
    rest = command.words[end:]
    is_short = kind != LAUNCHER and rest and not any(is_target(word) for word in rest) and len(rest) < 3
    ends = [len(command.words), end] if is_short else [end]
    if kind in (LAUNCHER, VARIABLE):
        ends.append(min(end, command.head_length))
    cures = (_cure_up_to(attempt, kind, subject, one, added, from_start=from_start) for one in ends)
    first = next(cures)
    cure = first if first.sessions else next((one for one in cures if one.sessions), first)
    return replace(cure, keeps_arguments=keeps)


def _cure_up_to(attempt: Attempt, kind: str, subject: str, end: int, added: Sequence[str], *, from_start: bool) -> Cure:
    worked, success = attempt.worked, attempt.success
    command = worked.command
    text, before = span_text(command, end), []
    if from_start and worked.start < command.start:
        text = command.source[worked.start : command.start] + text
        before = [one for one in success.commands if worked.start <= one.start < command.start]
    cut = replace(command, words=command.words[:end], end=command.words[end - 1].end)
    return _cure(attempt, kind, subject, text, added, commands=(*before, cut))


def _cure(
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


def _subject(failed: Call, family: str = "") -> str:
    """What fails, as it was typed: the program, and what it is to do unless the program itself is what is missing."""
    length = failed.command.head_length if family in ("tool", "module") else failed.head_length
    return span_text(failed.command, length).removesuffix(CUT_OFF)
