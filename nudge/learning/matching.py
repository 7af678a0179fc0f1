"""Which cure answers the next failure."""

from __future__ import annotations

import posixpath
import re

from nudge.learning.cure import DIRECTORY, FLAG, LAUNCHER, PATH, RUNNER, STEP, VARIABLE, Cure
from nudge.learning.failures import OWN_WORK, SURROUNDINGS, Failure, likeness, tells_apart
from nudge.learning.families import family_of
from nudge.learning.jobs import same_job
from nudge.learning.moved_paths import is_path, moved_along, names_path, path_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.learning.outcome import Call


_ALIKE = 0.6  # of failures of the same tool
_ALIKE_ANYWHERE = 0.7
_SAME = 0.85  # where nothing but the lines of the output tells failures apart
_OF_MACHINE = frozenset(("port", "timeout", "resources"))
"""Families whose cure helps whatever the program is to do."""


def matches(cure: Cure, call: Call, failure: Failure, job: str) -> float:
    """Return how well a cure answers a failing call, 0 for not at all."""
    if _has_it_already(cure, call) or _is_about_another(cure, failure):
        return 0.0
    alike = likeness(cure.failure, failure)
    is_same_tool = cure.tool == call.tool
    if not is_same_tool and cure.kind == FLAG and alike < _ALIKE_ANYWHERE:
        return 0.0
    if cure.kind == PATH:
        return _path_match(cure, call, failure, alike)
    if not _fits_nature(cure, call, failure, alike):
        return 0.0
    if cure.kind == STEP:
        return alike if alike >= (_ALIKE if is_same_tool else _ALIKE_ANYWHERE) else 0.0
    if cure.kind in (VARIABLE, FLAG):
        return _word_match(cure, call, failure, alike)
    if cure.kind == DIRECTORY:
        return 0.8 if is_same_tool and failure.family == cure.family and alike >= 0.4 else 0.0
    return _program_match(cure, call, failure, job, alike)


def _fits_nature(cure: Cure, call: Call, failure: Failure, alike: float) -> bool:
    """Whether the failure has the nature that the cure is for; outside of the surroundings it must be the same one."""
    if cure.nature != SURROUNDINGS and (alike < _SAME or not _is_same_failing(cure, call, failure)):
        return False
    return (cure.nature == OWN_WORK) == (failure.nature == OWN_WORK) or _is_same_error(cure, failure)


def _is_same_failing(cure: Cure, call: Call, failure: Failure) -> bool:
    is_any = _is_of_any(cure) or _is_sibling(cure.tool, call.tool)
    return cure.tool == call.tool or (_is_same_error(cure, failure) and is_any)


_HOUSES = (
    frozenset(("ansible", "ansible-playbook", "ansible-vault", "ansible-inventory", "ansible-galaxy")),
    frozenset(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump")),
    frozenset(("psql", "pg_dump", "pg_restore", "pg_isready", "createdb")),
    frozenset(("mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport")),
)
"""Programs that take the same options for where to connect and how to log in."""


def _is_sibling(tool: str, other: str) -> bool:
    return tool != other and any({tool, other} <= house for house in _HOUSES)


def _word_match(cure: Cure, call: Call, failure: Failure, alike: float) -> float:
    """A variable or an option answers what is about the same thing, if it means the same to the failing call."""
    is_about_it = (
        not tells_apart(cure.failure, failure)
        or (failure.family == "module" and _names_place(cure))
        or (cure.kind == FLAG and _is_typed(failure.detail, call))
    )
    return alike if alike >= _ALIKE and is_about_it and _takes_it(cure, call, failure) else 0.0


_PLACE = re.compile(
    r"(?i)(?:\w*(?:path|dir|root|home|lib|include|project))[=:]\S+|-I\S+|(?:.*[=:])?\.{0,2}/\S*|.*[=:]\."
)


def _names_place(cure: Cure) -> bool:
    """Whether it says where modules are, so that others are found there too. An option is one of the program, and not
    of a script that it runs: it stands right behind it."""
    words = cure.answer.split()
    is_of_program = cure.kind == VARIABLE or cure.added[0] in words[1:2]
    return is_of_program and any(_PLACE.fullmatch(word) for word in cure.added)


def _is_typed(name: str, call: Call) -> bool:
    """Whether a call names a thing itself: `deploy/api`."""
    return any(name in re.split(r"[/:=]", word) or name == word for word in call.words[1:])


def _is_same_error(cure: Cure, failure: Failure) -> bool:
    return bool(cure.causes) and cure.causes[0] in failure.causes


def _is_of_any(cure: Cure) -> bool:
    """Whether a cure helps whatever program meets the error: it changes what all of them run in."""
    return cure.kind in (VARIABLE, STEP) and cure.nature != OWN_WORK


def _is_about_another(cure: Cure, failure: Failure) -> bool:
    """Whether the answer names what was missing then, and something else is missing now."""
    if cure.kind not in (STEP, FLAG, VARIABLE) or not tells_apart(cure.failure, failure):
        return False
    if cure.family == "connection":
        return True
    if cure.kind == FLAG and cure.detail in cure.subject.split():
        return False  # it was typed
    names = {part for part in re.split(r"[^a-z0-9]+", cure.detail.casefold()) if len(part) > 2}
    return bool(names & set(re.split(r"[^a-z0-9]+", cure.answer.casefold())))


def _takes_it(cure: Cure, call: Call, failure: Failure) -> bool:
    """Whether a variable or an option of the cure means the same to the failing call."""
    if cure.kind == VARIABLE:
        names = [word.partition("=")[0] for word in cure.added]
        is_asked_for = failure.family == "variable" and failure.detail in names
        return cure.tool == call.tool or is_asked_for or _is_same_error(cure, failure)
    if cure.tool != call.tool:
        return _is_sibling(cure.tool, call.tool)
    is_any = family_of(failure.family).is_of_program or cure.nature != SURROUNDINGS or cure.family in _OF_MACHINE
    return cure.subcommand == call.subcommand or is_any or call.subcommand == failure.detail


def _program_match(cure: Cure, call: Call, failure: Failure, job: str, alike: float) -> float:
    """A launcher or another program answers where the same program fails for the same reason."""
    if cure.family == failure.family == "tool":
        return _missing_program_match(cure, call, failure, job)
    is_same_tool = _is_same_tool(cure, call)
    if alike < (_ALIKE if is_same_tool else _ALIKE_ANYWHERE):
        return 0.0
    if tells_apart(cure.failure, failure) and cure.family not in ("script", "module"):
        return 0.0
    # What runs one program where its modules are runs any other there.
    is_same_module = cure.family == failure.family == "module" and cure.detail == failure.detail != ""
    return _weigh_program(cure, call, job, alike, is_same_tool=is_same_tool or is_same_module)


def _is_same_tool(cure: Cure, call: Call) -> bool:
    is_same_program = cure.program == posixpath.basename(call.command.launched_program)
    is_module = cure.kind == LAUNCHER and is_same_program and call.command.is_python_module
    return cure.tool == call.tool or is_module


def _missing_program_match(cure: Cure, call: Call, failure: Failure, job: str) -> float:
    """The answer for a program that is not there, called or started by another."""
    if cure.detail != failure.detail:
        return 0.0
    is_program = failure.detail in (call.words[0] if call.words else "", call.tool, call.command.launched_program)
    is_same_tool = _is_same_tool(cure, call) or cure.subject.partition(" ")[0].removeprefix("./") == call.words[0]
    if is_program and not is_same_tool:
        return 0.0
    if is_program and cure.kind == RUNNER:
        return 1.0 + 0.1 * same_job(job, cure.job)  # whatever it is to do, the program is not there
    return _weigh_program(cure, call, job, 1.0, is_same_tool=is_same_tool)


def _weigh_program(cure: Cure, call: Call, job: str, alike: float, *, is_same_tool: bool) -> float:
    is_same_job = same_job(job, cure.job)
    if cure.kind == LAUNCHER:
        is_it = cure.keeps_arguments and is_same_tool
        return alike + 0.1 * (cure.subcommand == call.subcommand) if is_it else 0.0
    if cure.kind != RUNNER:
        return 0.0
    if cure.keeps_arguments and is_same_tool and alike >= _SAME:
        return alike + 0.1 * is_same_job
    is_same_call = is_same_tool and cure.subcommand == call.subcommand and not cure.job
    return alike if is_same_call or (is_same_job and (is_same_tool or alike >= 0.9)) else 0.0


def _has_it_already(cure: Cure, call: Call) -> bool:
    """Whether the failing call is already what the cure would have it be."""
    if cure.kind == VARIABLE:
        return all(call.variables.get(word.partition("=")[0]) == word.partition("=")[2] for word in cure.added)
    if cure.kind == FLAG:
        return set(cure.added) <= {*call.words, *call.command.wrapper}
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


def _path_match(cure: Cure, call: Call, failure: Failure, alike: float) -> float:
    words = [path_in(word) for word in call.words]
    if not is_path(cure.subject):
        is_it = cure.subject in words and cure.tool == call.tool and alike >= _SAME
        return 1.0 if is_it else 0.8 if alike >= _SAME and moved_path(cure, call) else 0.0
    if failure.family not in ("path", "tool", "module"):
        return 0.0
    if any(names_path(word, cure.subject) for word in words):
        return 1.0
    return 0.8 if failure.family == "path" and moved_path(cure, call) else 0.0


def moved_path(cure: Cure, call: Call) -> str:
    """Where another path or name of the call is, if it moved together with the one of the cure."""
    return next(filter(None, (moved_along(cure.subject, cure.answer, path_in(word)) for word in call.words)), "")
