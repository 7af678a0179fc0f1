"""What made a failing command work: the difference between a failure and the success that does the same thing.

`find_cure` compares two outcomes and what ran between them. Everything that is told is a span of a line that ran.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from nudge import limits
from nudge.learning import poison
from nudge.learning.command import CUT_OFF, span_text
from nudge.learning.failures import OWN_WORK, SURROUNDINGS, Failure, likeness, names_command, tells_apart
from nudge.learning.families import family_of, fits
from nudge.learning.jobs import (
    EDITING,
    INSTALL,
    NOISE,
    SELECTING,
    is_file_name,
    is_looking,
    is_target,
    job_of,
    same_job,
    step_of,
)
from nudge.programs import TARGET_RUNNERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nudge.learning.command import SimpleCommand
    from nudge.learning.outcome import Call, Outcome

LAUNCHER, RUNNER, VARIABLE, FLAG, DIRECTORY, PATH, STEP = (
    *("launcher", "runner", "variable", "flag", "directory", "path", "step"),
)
MISSING = "missing"
"""A program that is missing, without anything that worked in its place."""

_SIMILAR = 0.7


@dataclass(frozen=True, slots=True)
class Cure:
    """What worked where something failed, as it was learned from one failure and one success."""

    kind: str
    subject: str
    """What fails, as it was typed: `pytest`, `npm run build`, a path."""
    answer: str
    """What to run: a span of a line that ran."""
    tool: str
    subcommand: str
    program: str
    """The program that failed, without launcher and path."""
    job: str
    nature: str
    family: str
    detail: str
    error: str
    """The line of the output that names the cause."""
    causes: tuple[str, ...]
    sign: str = ""
    added: tuple[str, ...] = ()
    """The words that the answer has and the failing command had not."""
    directory: str = ""
    """Where the answer changes to, relative to the clone."""
    place: str = ""
    """Where the failing command began, relative to the clone."""
    keeps_arguments: bool = False
    """Whether the answer took the words behind the program, so that it can be run with others as well."""
    sessions: int = 1
    """In how many sessions it must have worked before it is told."""

    @property
    def failure(self) -> Failure:
        return Failure(self.nature, self.family, self.detail, self.error, self.causes, self.sign)


@dataclass(frozen=True, slots=True)
class Step:
    """A call that worked between a failure and a success."""

    call: Call
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Attempt:
    """A failure and the call that is looked at, with what ran after it."""

    outcome: Outcome
    failure: Failure
    call: Call
    steps: Sequence[Step]
    is_edited: bool
    is_after_edit: bool
    scripts: Mapping[str, str]
    worked: Call
    """The call that is compared with it."""
    success: Outcome

    @property
    def inline(self) -> list[Step]:
        """The calls on the line of the success before what failed, without those that the failing line had as well."""
        before = {call.words for call in self.outcome.calls}
        return [
            Step(call, self.success)
            for call in self.success.calls
            if call.index < self.worked.index
            and call.tool not in ("cd", "export")
            and call.words not in before
            and set(call.command.within) <= {"(", "{"}
            and call.command.followed_by in ("&&", ";", "&", "|")
        ]

    def job(self, call: Call) -> str:
        return job_of(call.command, self.scripts)


def find_cure(attempt: Attempt) -> Cure | None:
    """Return what made the failing call work, if the other call does the same thing; None when nothing is known to
    have."""
    failure = attempt.failure
    is_strict = failure.nature != SURROUNDINGS
    if is_strict and attempt.is_edited:
        return None
    if any(poison.undoes(step.call.command) for step in (*attempt.inline, *attempt.steps)):
        return None
    finders = (_path, _launcher, _directory, _variable, _inline_step, _flag, _step_between, _runner)
    found = (find(attempt) for find in finders)
    cure = next((cure for cure in found if cure is not None), None)
    if cure is None or (attempt.is_edited and not _outlasts_edit(cure)):
        return None
    return _weighed(cure, attempt)


def _outlasts_edit(cure: Cure) -> bool:
    """Whether an edit between failure and success cannot have been what helped."""
    if cure.kind in (LAUNCHER, DIRECTORY, PATH):
        return True
    return family_of(cure.family).outlasts_edit and cure.family not in (
        ("version",) if cure.kind == STEP else ("schema", "version")
    )


def does_same(attempt: Attempt) -> bool:
    """Whether a call does what the failing one was to do, so that its success answers the failure."""
    failed, worked = attempt.call, attempt.worked
    if failed.tool != worked.tool and _is_file_work(worked, failed):
        return False
    if is_looking(worked.command) and not (failed.tool == worked.tool and _same_subcommand(failed, worked)):
        return attempt.failure.family == "path"
    if failed.tool == worked.tool and (
        _same_subcommand(failed, worked) or family_of(attempt.failure.family).is_of_program
    ):
        return True
    if _contains_head(failed, worked) or _has_same_arguments(failed, worked) or _has_same_targets(failed, worked):
        return True
    if attempt.failure.family in ("path", "tool") and _is_path(attempt.failure.detail):
        return True
    return same_job(attempt.job(failed), attempt.job(worked))


def _is_file_work(worked: Call, failed: Call) -> bool:
    """Whether a call changes files, or runs a script that the other worked on: it does no job of the repository."""
    if worked.tool in _FILE_PROGRAMS:
        return True
    script = worked.words[1] if worked.command.is_anonymous and len(worked.words) > 1 else ""
    return worked.command.is_anonymous and (script in failed.words[1:] or script in ("", "-", "-c", "-e"))


_FILE_PROGRAMS = frozenset(
    (
        "sed",
        "cp",
        "mv",
        "ln",
        "touch",
        "mkdir",
        "tee",
        "patch",
        "git",
        "chmod",
        "chown",
        "ed",
        "vim",
        "nano",
        "tar",
        "unzip",
    )
)


def _weighed(cure: Cure, attempt: Attempt) -> Cure | None:
    """The cure with the number of sessions that it needs; None when it must not be told."""
    if not cure.sessions or len(cure.answer) > limits.MAX_TOLD_COMMAND:
        return None
    return replace(cure, sessions=2) if _is_doubtful(cure, attempt) else cure


def _is_doubtful(cure: Cure, attempt: Attempt) -> bool:
    """Whether something else than the cure may have helped, so that one session is no proof."""
    if cure.nature == SURROUNDINGS:
        return attempt.is_after_edit and not family_of(cure.family).outlasts_edit and cure.kind not in (PATH, LAUNCHER)
    new = [word for word in cure.added[:3] if word not in attempt.call.words]
    if cure.kind != FLAG and any(names_command(attempt.outcome.printed, words) for words in (new, cure.added[:2])):
        return False  # the output itself names it
    if cure.nature == OWN_WORK or attempt.is_after_edit:
        return True
    if cure.kind == STEP:
        return sum(bool(step_of(step.call.command)) for step in attempt.steps) > 1
    return cure.kind == RUNNER and not (cure.added[:1] != () and cure.added[0] in TARGET_RUNNERS)


# Finders, each for one kind of difference


def _path(attempt: Attempt) -> Cure | None:
    """A path that does not exist, and where the file is: the same name elsewhere, or nearly the same name."""
    worked, success = attempt.worked, attempt.success
    failure, failed = attempt.failure, attempt.call
    if failure.family not in ("path", "tool", "module") or not _is_path(failure.detail):
        return None
    missing = next((word for word in failed.words if _names_path(word, failure.detail)), None)
    if missing is None or not _is_path(missing):
        return None
    for at, word in enumerate(worked.command.words):
        if word.is_expanded or word in failed.words or not _is_similar_path(missing, str(word)):
            continue
        if at == 0 or worked.tool == failed.tool or _is_script_of(missing, failed):
            found = str(word).partition("::")[0]
            typed = success.line[word.start : word.end].partition("::")[0]
            return _cure(attempt, PATH, missing.partition("::")[0], typed, (found,), commands=())
    return None


def _launcher(attempt: Attempt) -> Cure | None:
    """The same program by another way: `uv run pytest`, `docker compose exec api python manage.py`, `bash x.sh`."""
    worked = attempt.worked
    failed = attempt.call
    if (
        step_of(worked.command) == INSTALL != attempt.job(failed)
        and failed.tool != worked.tool
        and not _contains_head(failed, worked, whole=True)
    ):
        return None
    at = _contains_head(failed, worked)
    if at:
        end = at + _head_words(failed, worked, at)
        subject = _subject(failed, attempt.failure.family)
        return _command_cure(attempt, LAUNCHER, subject, end, worked.words[:at], keeps=True)
    if added := _new_wrapper(failed, worked):
        return _command_cure(
            attempt, LAUNCHER, _subject(failed, attempt.failure.family), worked.head_length, added, keeps=True
        )
    is_of_interpreter = attempt.failure.family in ("tool", "module", "version")
    is_same_tool = failed.tool == worked.tool and (not failed.command.is_anonymous or is_of_interpreter)
    old, new = failed.command.words[: failed.command.head_length], worked.command.words[: worked.command.head_length]
    if is_same_tool and tuple(old) != tuple(new) and _same_subcommand(failed, worked):
        if failed.words[: len(old)] == worked.words[: len(new)]:
            return None
        added = tuple(word for word in new if word not in old) or tuple(map(str, new))
        end = max(len(new), worked.head_length)
        return _command_cure(attempt, LAUNCHER, _subject(failed, attempt.failure.family), end, added, keeps=True)
    if family_of(attempt.failure.family).takes_runner and _has_same_arguments(failed, worked):
        if failed.words[1:2] != worked.words[1:2] and worked.words[:1] == failed.words[:1]:
            return None
        end = max(1, len(worked.words) - len(failed.words) + failed.head_length)
        return _command_cure(
            attempt, LAUNCHER, _subject(failed, attempt.failure.family), end, worked.words[:1], keeps=True
        )
    return None


_OF_ROOT = frozenset(("docker", "docker-compose", "podman", "systemctl", "service", "mount", "lsof", "apt", "apt-get"))
"""Programs that are meant to be run by root where a user may not; of others `sudo` leaves files behind."""


def _new_wrapper(failed: Call, worked: Call) -> tuple[str, ...]:
    """The words of `sudo` that only the working call has."""
    is_new = "sudo" in worked.command.wrapper and "sudo" not in failed.command.wrapper and failed.tool in _OF_ROOT
    return tuple(map(str, worked.command.wrapper)) if is_new and failed.words[:1] == worked.words[:1] else ()


def _directory(attempt: Attempt) -> Cure | None:
    """The same command in another directory of the repository."""
    worked, success = attempt.worked, attempt.success
    failed, outcome = attempt.call, attempt.outcome
    if failed.tool != worked.tool or not (
        _same_subcommand(failed, worked) or family_of(attempt.failure.family).is_of_program
    ):
        return None
    if attempt.failure.family not in ("directory", "script", "path", "module", "tool", "") or outcome.root is None:
        return None
    there = posixpath.normpath(posixpath.join(success.place or ".", worked.directory))
    here = posixpath.normpath(posixpath.join(outcome.place or ".", failed.directory))
    if there == here or there.startswith(("/", "..", "~")):
        return None
    if worked.directory:
        return replace(
            _command_cure(attempt, DIRECTORY, _subject(failed), worked.head_length, (there,), from_start=True),
            directory=there,
        )
    moved = next((step for step in reversed(attempt.steps) if step.call.tool == "cd"), None)
    if moved is None or moved.call.command.arguments[:1] == ():
        return None
    cure = _cure(
        attempt, DIRECTORY, _subject(failed), moved.call.command.text, (there,), commands=(moved.call.command,)
    )
    return replace(cure, directory=there)


def _variable(attempt: Attempt) -> Cure | None:
    """A variable that was set, or has another value."""
    worked = attempt.worked
    failed = attempt.call
    if failed.tool != worked.tool or not (
        _same_subcommand(failed, worked) or family_of(attempt.failure.family).is_of_program
    ):
        return None
    before = failed.variables
    new = {name: value for name, value in worked.variables.items() if before.get(name) != value}
    if not new:
        return None
    added = tuple(f"{name}={value}" for name, value in new.items())
    if not all(map(poison.is_harmless_variable, added)):
        return None
    return _command_cure(attempt, VARIABLE, _subject(failed), worked.head_length, added, from_start=True)


def _flag(attempt: Attempt) -> Cure | None:
    """An option that was given: `--platform linux/amd64`, `-p 1`, `+nightly`."""
    worked = attempt.worked
    failed, failure = attempt.call, attempt.failure
    if failed.tool != worked.tool or not _same_subcommand(failed, worked):
        return None
    removed, inserted = _differences(failed, worked)
    options = [
        at
        for at, word in inserted
        if _is_option(word) and word not in NOISE and not (_waits(word, failure) or _selects(word, failure))
    ]
    targets = [at for at, word in inserted if not _is_option(word)]
    if failure.family == "auth" and targets and not options:
        return _command_cure(attempt, FLAG, _subject(failed), max(targets) + 1, _words_at(worked, targets))
    if not options:
        return None
    if failure.nature != SURROUNDINGS and any(word not in NOISE for word in removed):
        return None
    if any(fits(failure.family, step_of(step.call.command)) for step in attempt.steps) and failure.is_known:
        return None  # a step that cures such failures came before
    values = [at for at in targets if at - 1 in options or (at - 2 in options and at - 1 in targets)]
    new = sorted({*options, *values}) if failure.family != "auth" else sorted({*options, *targets})
    end = max(max(new) + 1, worked.head_length)
    return _command_cure(attempt, FLAG, _subject(failed), end, _words_at(worked, new))


def _inline_step(attempt: Attempt) -> Cure | None:
    """Steps on the line of the success, before what failed: `npm ci && npm run build`."""
    worked, success, inline = attempt.worked, attempt.success, attempt.inline
    failed = attempt.call
    if (
        not inline
        or failed.tool != worked.tool
        or not (_same_subcommand(failed, worked) or family_of(attempt.failure.family).is_of_program)
    ):
        return None
    if failed.words == inline[0].call.words:
        return None
    commands = success.commands[inline[0].call.index : inline[-1].call.index + 1]
    text = success.line[commands[0].start : commands[-1].end]
    if not all(_is_step(step.call.command) for step in inline) or len(inline) > 3:
        return None
    return _cure(attempt, STEP, _subject(failed), text, inline[-1].call.words, commands=commands)


def _step_between(attempt: Attempt) -> Cure | None:
    """A command between failure and success, after which the same command worked."""
    worked = attempt.worked
    failed, failure = attempt.call, attempt.failure
    if failed.tool != worked.tool or not attempt.steps:
        return None
    if not (_same_subcommand(failed, worked) or family_of(failure.family).is_of_program):
        return None
    steps = [step for step in attempt.steps if _is_step(step.call.command) and step.call.words != failed.words]
    if not steps:
        return None
    best = max(steps, key=lambda step: fits(failure.family, step_of(step.call.command)))
    fit = fits(failure.family, step_of(best.call.command))
    is_task = steps[-1].call.tool in TARGET_RUNNERS
    is_possible = family_of(failure.family).takes_any_step or (failure.family == "auth" and is_task)
    if not fit and (attempt.is_edited or not is_possible or len(steps) > 1):
        return None
    best = [step for step in steps if fits(failure.family, step_of(step.call.command)) == fit][-1] if not fit else best
    if best.call.tool == failed.tool and best.call.subcommand == failed.subcommand and not fit:
        return None
    command = best.call.command
    text = best.outcome.line[best.call.start : command.end]
    if failure.nature == OWN_WORK and not step_of(command):
        return None
    return _cure(attempt, STEP, _subject(failed), text, best.call.words, commands=(command,))


def _runner(attempt: Attempt) -> Cure | None:
    """Another program that does the same job: `make test` for `pytest`."""
    worked = attempt.worked
    failed, failure = attempt.call, attempt.failure
    is_named = names_command(attempt.outcome.printed, worked.words[:2])
    is_possible = family_of(failure.family).takes_runner
    if not is_named and not is_possible:
        return None
    is_same = failed.tool == worked.tool and _same_subcommand(failed, worked)
    if is_same and failed.subcommand == worked.subcommand:
        return None
    is_job = same_job(attempt.job(failed), attempt.job(worked))
    if not is_job and not (_has_same_targets(failed, worked) and not attempt.job(worked)):
        return None
    new = [at for at, word in enumerate(worked.command.words) if str(word) not in failed.command.words]
    kept = [at for at in new if not is_target(worked.command.words[at]) or at == 0]
    end = max([worked.head_length, *(at + 1 for at in kept)])
    while end > worked.head_length and worked.command.words[end - 1] == "--":
        end -= 1
    return _command_cure(attempt, RUNNER, _subject(failed), end, worked.words[:2])


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
    """A cure whose answer is the call that worked, up to its word `end`."""
    worked = attempt.worked
    command = worked.command
    text = span_text(command, end)
    if from_start and worked.start < command.start:
        text = command.source[worked.start : command.start] + text
    rest = command.words[end:]
    if kind != LAUNCHER and rest and not any(is_target(word) for word in rest) and len(rest) < 3:
        text, end = (
            text.removesuffix(CUT_OFF) + command.source[command.words[end - 1].end : command.end],
            len(command.words),
        )
    cut = replace(command, words=command.words[:end])
    cure = _cure(attempt, kind, subject, text, added, commands=(cut,))
    return replace(cure, keeps_arguments=keeps)


def _cure(
    attempt: Attempt,
    kind: str,
    subject: str,
    text: str,
    added: Sequence[str],
    *,
    commands: Sequence[SimpleCommand],
) -> Cure:
    failure, failed = attempt.failure, attempt.call
    root = attempt.outcome.root
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
        place=attempt.outcome.place,
        sessions=poison.sessions_needed(commands, text, root, attempt.outcome.printed),
    )


def program_of(call: Call) -> str:
    return posixpath.basename(call.command.launched_program)


def _subject(failed: Call, family: str = "") -> str:
    """What fails, as it was typed: the program, and what it is to do unless the program itself is what is missing."""
    length = failed.command.head_length if family in ("tool", "module") else failed.head_length
    return span_text(failed.command, length).removesuffix(CUT_OFF)


# Comparing two calls


def _same_subcommand(failed: Call, worked: Call) -> bool:
    if failed.subcommand == worked.subcommand:
        return True
    return bool(failed.subcommand and worked.subcommand) and (
        failed.subcommand in worked.words and worked.subcommand not in failed.words
    )


def _contains_head(failed: Call, worked: Call, *, whole: bool = False) -> int:
    """Where the failing call's program begins among the words of the other, behind a launcher; 0 for nowhere."""
    if not failed.words or (failed.command.is_anonymous and len(failed.words) < 2):
        return 0
    head = failed.words if whole else failed.words[: max(failed.head_length, 2 if failed.command.is_anonymous else 1)]
    for at in range(1, len(worked.words) - len(head) + 1):
        if worked.words[at].removeprefix("./") != head[0] or worked.words[at : at + len(head)][1:] != head[1:]:
            continue
        rest, other = failed.words[len(head) :], worked.words[at + len(head) :]
        is_launcher = (
            len(worked.command.launcher) == at or worked.words[at - 1] == "--" or worked.words[0] in _CONTAINERS
        )
        if whole or is_launcher or (rest and set(rest) & set(other)) or (not rest and not other):
            return at
    return 0


_CONTAINERS = frozenset(
    ("docker", "docker-compose", "podman", "kubectl", "vagrant", "nix", "nix-shell", "toolbox", "distrobox")
)


def _head_words(failed: Call, worked: Call, at: int) -> int:
    """How many words name the program in the launched call."""
    return min(max(failed.head_length, 2 if failed.command.is_anonymous else 1), len(worked.words) - at)


def _has_same_arguments(failed: Call, worked: Call) -> bool:
    """Whether another program was run with the words behind the failing one."""
    rest = [word for word in failed.words[1:] if word not in NOISE]
    other = [word for word in worked.words[1:] if word not in NOISE]
    if not rest or not any(is_target(word) or not word.startswith("-") for word in rest):
        return False
    return other[-len(rest) :] == rest and worked.words != failed.words and not is_looking(worked.command)


def _has_same_targets(failed: Call, worked: Call) -> bool:
    """Whether another program works on all that the failing one was to work on."""
    targets = [word for word in failed.words[failed.head_length :] if word[:1] not in ("-", "") and "=" not in word]
    return bool(targets) and set(targets) <= set(worked.words) and not is_looking(worked.command)


def _differences(failed: Call, worked: Call) -> tuple[list[str], list[tuple[int, str]]]:
    """The words that were removed, and those that were inserted with their place in the call that worked."""
    old, new = list(failed.words[1:]), list(worked.words[1:])
    removed: list[str] = []
    inserted: list[tuple[int, str]] = []
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("delete", "replace"):
            removed += old[i:j]
        if tag in ("insert", "replace"):
            inserted += [(at + 1, new[at]) for at in range(k, m)]
    return removed, [(at, word) for at, word in inserted if word not in removed]


def _words_at(call: Call, places: Sequence[int]) -> tuple[str, ...]:
    return tuple(call.words[at] for at in places)


_SETTING = re.compile(r"[A-Za-z_]\w*=")


def _selects(word: str, failure: Failure) -> bool:
    """Whether an option only chooses what is tested. `-n` and `-C` mean more to other programs."""
    name = word.partition("=")[0]
    return name in EDITING or (name in SELECTING and failure.family in ("", "timeout", "resources"))


def _waits(word: str, failure: Failure) -> bool:
    """Whether an option only waits for what is not up yet."""
    return failure.family != "timeout" and word.startswith(
        ("--retry", "--wait", "--timeout", "--connect-timeout", "--max-time")
    )


def _is_option(word: str) -> bool:
    if _SETTING.match(word):  # `make PREFIX=~/.local`
        return poison.is_harmless_variable(word)
    return word == "" or (len(word) > 1 and word[0] in "-+" and word != "--")


# Steps


def _is_step(command: SimpleCommand) -> bool:
    """Whether a command can change the surroundings of those after it."""
    if is_looking(command) or (command.is_anonymous and "-c" in command.words):
        return False
    return command.tool not in (
        "cd",
        "export",
        "sed",
        "tee",
        "ssh",
        "kill",
        "pkill",
        "timeout",
        "vim",
        "nano",
        "python",
    )


# Paths


def _is_path(word: str) -> bool:
    return (
        ("/" in word or is_file_name(word))
        and not word.startswith(("-", "~", "$", "http", "/tmp", "/dev", "/proc"))
        and "*" not in word
    )


def _names_path(word: str, path: str) -> bool:
    plain, path = _plain_path(word), _plain_path(path)
    return plain == path or (path.startswith("/") and path.endswith(f"/{plain}"))


def _is_script_of(path: str, call: Call) -> bool:
    """Whether a path is the program that a call runs."""
    return path in call.words[:2]


def _is_similar_path(missing: str, word: str) -> bool:
    """Whether a path is likely the one that was meant: the same name elsewhere, or a name with a word in common."""
    path, missing = _plain_path(word), _plain_path(missing)
    if path == missing or not _is_path(path):
        return False
    name, other = posixpath.basename(missing), posixpath.basename(path)
    if name == other:
        return True
    (stem, ending), (other_stem, other_ending) = posixpath.splitext(name), posixpath.splitext(other)
    if ending != other_ending and {ending, other_ending} != {".yml", ".yaml"}:
        return False
    shared = (_name_parts(stem) & _name_parts(other_stem)) - _COMMON_PARTS
    return bool(shared) or (bool(ending) and SequenceMatcher(None, name, other).ratio() >= _SIMILAR)


_COMMON_PARTS = frozenset(
    ("test", "tests", "spec", "main", "index", "init", "mod", "lib", "src", "app", "run", "my", "the")
)


def _name_parts(stem: str) -> set[str]:
    parts = re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", stem).casefold())
    return {part.rstrip("s") for part in parts if len(part) > 2}


def _plain_path(word: str) -> str:
    return posixpath.normpath(word.partition("::")[0].removesuffix("/..."))


# Matching the next failure


def matches(cure: Cure, call: Call, failure: Failure, job: str) -> float:
    """Return how well a cure answers a failing call, 0 for not at all."""
    if _has_it_already(cure, call):
        return 0.0
    alike = likeness(cure.failure, failure)
    is_same_tool = cure.tool == call.tool
    if cure.nature != SURROUNDINGS and (alike < 0.85 or not is_same_tool):
        return 0.0
    if cure.kind == PATH:
        return _path_match(cure, call, failure)
    if cure.kind == STEP:
        return alike if alike >= 0.7 or (is_same_tool and alike >= 0.6) else 0.0
    if cure.kind in (VARIABLE, FLAG):
        is_same_call = is_same_tool and (cure.kind == VARIABLE or _takes_flag(cure, call, failure))
        return alike if is_same_call and alike >= 0.6 and not tells_apart(cure.failure, failure) else 0.0
    if cure.kind == DIRECTORY:
        return 0.8 if is_same_tool and failure.family == cure.family and alike >= 0.4 else 0.0
    return _program_match(cure, call, failure, job, alike)


def _takes_flag(cure: Cure, call: Call, failure: Failure) -> bool:
    return (
        cure.subcommand == call.subcommand
        or family_of(failure.family).is_of_program
        or cure.nature != SURROUNDINGS
        or alike_all(cure)
    )


def alike_all(cure: Cure) -> bool:
    return cure.family in ("port", "timeout", "resources")


def _program_match(cure: Cure, call: Call, failure: Failure, job: str, alike: float) -> float:
    """A launcher or another program answers where the same program fails for the same reason."""
    is_same_program = cure.program == program_of(call) and call.command.is_python_module
    is_same_tool = cure.tool == call.tool or (cure.kind == LAUNCHER and is_same_program)
    if cure.family == "tool" and failure.family == "tool":
        if cure.detail != failure.detail:
            return 0.0
        is_program = failure.detail in (call.words[0] if call.words else "", call.tool, call.command.launched_program)
        if is_program and not is_same_tool:
            return 0.0
        alike = 1.0
    elif alike < (0.6 if is_same_tool else 0.7) or (
        tells_apart(cure.failure, failure) and cure.family not in ("script", "module")
    ):
        return 0.0
    is_same_job = same_job(job, cure.job)
    if cure.kind == LAUNCHER and cure.keeps_arguments and is_same_tool:
        return alike + 0.1 * (cure.subcommand == call.subcommand)
    is_same_call = is_same_tool and cure.subcommand == call.subcommand
    if cure.kind == RUNNER and ((is_same_job and (is_same_tool or alike >= 0.9)) or (is_same_call and not cure.job)):
        return alike
    return 0.0


def _has_it_already(cure: Cure, call: Call) -> bool:
    """Whether the failing call is already what the cure would have it be."""
    if cure.kind == VARIABLE:
        return all(call.variables.get(word.partition("=")[0]) == word.partition("=")[2] for word in cure.added)
    if cure.kind == FLAG:
        return set(cure.added) <= set(call.words)
    if cure.kind in (LAUNCHER, RUNNER):
        return (
            call.words[: len(cure.added)] == tuple(cure.added)
            and cure.subject != cure.answer
            and cure.kind == LAUNCHER
            and len(cure.added) > 0
            and not cure.subject.startswith(call.words[0])
        )
    if cure.kind == DIRECTORY:
        return posixpath.normpath(call.directory or ".") == cure.directory
    return False


def _path_match(cure: Cure, call: Call, failure: Failure) -> float:
    if failure.family not in ("path", "tool", "module"):
        return 0.0
    return 1.0 if any(_names_path(word, cure.subject) for word in call.words) else 0.0
