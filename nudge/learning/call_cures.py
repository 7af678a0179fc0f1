"""What is different about the call that worked, as the cure of a failure: a path, program, directory or variable."""

from __future__ import annotations

import posixpath
from dataclasses import replace

from nudge.learning.comparison import (
    has_same_arguments,
    has_same_subcommand,
    has_same_targets,
    is_misspelling,
    is_named_alike,
    is_same_call,
    is_same_script,
    launched_at,
    naming_length,
    quoted_at,
)
from nudge.learning.cure import DIRECTORY, LAUNCHER, PATH, RUNNER, VARIABLE, Cure
from nudge.learning.failures import names_command
from nudge.learning.harm import is_harmless_variable
from nudge.learning.jobs import (
    INSTALL,
    is_target,
    same_job,
    step_of,
)
from nudge.learning.moved_paths import is_compound, is_path, is_renamed, is_similar_path, names_path, path_in
from nudge.learning.told_span import command_cure, cure_of, subject_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.learning.attempt import Attempt
    from nudge.learning.command import SimpleCommand
    from nudge.learning.outcome import Call


def find_path(attempt: Attempt) -> Cure | None:
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
            return cure_of(attempt, PATH, missing.partition("::")[0], typed, (path.partition("::")[0],), commands=())
    return None


def find_name(attempt: Attempt) -> Cure | None:
    """A name of several parts that is not known, and the one that is: `:libs:core:test` for `:core:test`."""
    names = _renamed(attempt)
    return cure_of(attempt, PATH, *names, names[1:], commands=()) if names and is_compound(names[0]) else None


def find_word(attempt: Attempt) -> Cure | None:
    """A word that is not known, and the one that is: `shop-api` for `api`."""
    names = _renamed(attempt)
    return cure_of(attempt, PATH, *names, names[1:], commands=()) if names else None


def _renamed(attempt: Attempt) -> tuple[str, str] | tuple[()]:
    """The one word in which two calls differ, if the output names the old one and both have parts in common."""
    failed, worked = attempt.call, attempt.worked
    if len(failed.words) != len(worked.words) or failed.tool != worked.tool:
        return ()
    pairs = [pair for pair in zip(failed.words, worked.words, strict=True) if pair[0] != pair[1]]
    is_one = len(pairs) == 1 and pairs[0][0] in attempt.outcome.printed
    return pairs[0] if is_one and is_renamed(*pairs[0]) else ()


def find_launcher(attempt: Attempt) -> Cure | None:
    """The same program by another way: `uv run pytest`, `docker compose exec api python manage.py`, `bash x.sh`."""
    failed, worked, family = attempt.call, attempt.worked, attempt.failure.family
    is_install = step_of(worked.command) == INSTALL != attempt.job(failed)
    is_whole = len(failed.words) > 1 and launched_at(failed, worked, whole=True) > 0
    if is_install and failed.tool != worked.tool and not is_whole:
        return None
    subject = subject_of(failed, family)
    if at := launched_at(failed, worked):
        end = at + min(naming_length(failed), len(worked.words) - at)
        return command_cure(attempt, LAUNCHER, subject, end, worked.words[:at], keeps=True)
    if at := quoted_at(failed, worked):
        return command_cure(attempt, LAUNCHER, subject, at + 1, worked.words[:at], keeps=True)
    if is_same_script(failed, worked):
        return command_cure(attempt, LAUNCHER, subject, worked.command.head_length, worked.words[:2], keeps=True)
    if wrapper := _new_wrapper(failed, worked):
        return command_cure(attempt, LAUNCHER, subject, worked.head_length, wrapper, keeps=True)
    if added := _other_way(attempt):
        end = max(worked.command.head_length, worked.head_length)
        return command_cure(attempt, LAUNCHER, subject, end, added, keeps=True)
    if attempt.family.takes_runner and has_same_arguments(failed, worked):
        if failed.tool == worked.tool and not failed.command.is_anonymous:
            return None  # they differ in an option
        end = max(1, len(worked.words) - len(failed.words) + naming_length(failed))
        return command_cure(attempt, LAUNCHER, subject, end, worked.words[:1], keeps=True)
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


def find_directory(attempt: Attempt) -> Cure | None:
    """The same command in another directory of the repository."""
    worked, failed, outcome = attempt.worked, attempt.call, attempt.outcome
    if outcome.root is None or not attempt.is_same_program:
        return None
    is_possible = attempt.failure.family in ("directory", "script", "path", "module", "tool", "")
    if not is_possible and not is_same_call(failed, worked):
        return None
    moved = _change_of_directory(attempt)
    there = _directory_there(attempt, outcome.root, moved)
    if there is None:
        return None
    subject = subject_of(failed)
    if worked.directory:
        cure = command_cure(attempt, DIRECTORY, subject, worked.head_length, (there,), from_start=True)
        return replace(cure, directory=there)
    if moved is None:
        return None
    return replace(cure_of(attempt, DIRECTORY, subject, moved.text, (there,), commands=(moved,)), directory=there)


def _change_of_directory(attempt: Attempt) -> SimpleCommand | None:
    """The last `cd` between failure and success, if it names a directory."""
    alone = (step.call.command for step in reversed(attempt.steps) if len(step.outcome.calls) == 1)
    moved = next((command for command in alone if command.tool == "cd"), None)
    return moved if moved is not None and moved.arguments else None


def _directory_there(attempt: Attempt, root: str, moved: SimpleCommand | None) -> str | None:
    """Where the call worked, from the top of the clone; None where it failed there,
    too, where a directory was mistyped, and outside of the clone."""
    worked = attempt.worked
    here = posixpath.normpath(posixpath.join(attempt.outcome.place or ".", attempt.call.directory))
    there = posixpath.normpath(posixpath.join(attempt.success.place or ".", _below(worked.directory, root)))
    if there == here and moved is not None and not worked.directory:
        # the client reports the directory of the session, not that of its shell
        there = posixpath.normpath(posixpath.join(here, _below(moved.arguments[0], root)))
    is_outside = there.startswith(("/", "..", "~"))
    return None if there == here or is_outside or _is_misspelled(here, there) else there


def _is_misspelled(typed: str, meant: str) -> bool:
    """Whether two paths differ in slips of the keyboard."""
    parts = [pair for pair in zip(typed.split("/"), meant.split("/"), strict=False) if pair[0] != pair[1]]
    return typed.count("/") == meant.count("/") and all(is_misspelling(*pair) for pair in parts)


def _below(path: str, root: str) -> str:
    """A path relative to the clone, if it is in it."""
    return path[len(root) + 1 :] or "." if f"{path}/".startswith(f"{root}/") else path


def find_variable(attempt: Attempt) -> Cure | None:
    """A variable that was set, or has another value."""
    failed, worked = attempt.call, attempt.worked
    if not attempt.is_same_program:
        return None
    added = _new_variables(attempt)
    if not added:
        return _exported(attempt)
    return command_cure(attempt, VARIABLE, subject_of(failed), worked.head_length, added, from_start=True)


def _new_variables(attempt: Attempt) -> tuple[str, ...]:
    """The variables that only the working call has, or has with another value."""
    before = attempt.call.variables
    return tuple(f"{name}={value}" for name, value in attempt.worked.variables.items() if before.get(name) != value)


def sets_untold(attempt: Attempt) -> bool:
    """Whether the working call has a new variable that is never told, so that nothing else need have helped."""
    return not all(map(is_harmless_variable, _new_variables(attempt)))


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
    return cure_of(attempt, VARIABLE, subject_of(failed), command.text, added, commands=(command,))


def find_runner(attempt: Attempt) -> Cure | None:
    """Another program that does the same job: `make test` for `pytest`."""
    failed, worked = attempt.call, attempt.worked
    if not _may_run_instead(attempt):
        return None
    new = [at for at, word in enumerate(worked.command.words) if str(word) not in failed.command.words]
    kept = [at for at in new if not is_target(worked.command.words[at]) or at == 0]
    end = max([worked.head_length, *(at + 1 for at in kept)])
    while end > worked.head_length and worked.command.words[end - 1] == "--":
        end -= 1
    is_named = failed.subcommand != "" and failed.subcommand in worked.words[1:]
    end = max(end, worked.words.index(failed.subcommand) + 1 if is_named else 0)
    return command_cure(attempt, RUNNER, subject_of(failed), end, worked.words[:2], keeps=is_named)


def _may_run_instead(attempt: Attempt) -> bool:
    """Whether what worked is another program or subcommand, for the same job or for the same things."""
    failed, worked = attempt.call, attempt.worked
    if not attempt.family.takes_runner and not names_command(attempt.outcome.printed, worked.words[:2]):
        return False
    if failed.tool == worked.tool and (failed.subcommand == worked.subcommand or _is_option_value(worked)):
        return False
    if same_job(attempt.job(failed), attempt.job(worked)):
        return True
    return (has_same_targets(failed, worked) or is_named_alike(failed, worked)) and not attempt.job(worked)


def _is_option_value(call: Call) -> bool:
    """Whether what may be a subcommand may as well be the value of the option before it: `shellcheck -e SC2086`."""
    before, last = call.words[max(call.head_length - 2, 0)], call.words[call.head_length - 1]
    return before.startswith("-") and "(" not in last
