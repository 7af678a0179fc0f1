"""A failure that nothing was learned about, as far as another way to do the same job may help."""

from __future__ import annotations

from dataclasses import dataclass

from nudge.learning.failures import SURROUNDINGS
from nudge.learning.families import family_of
from nudge.learning.jobs import job_of
from nudge.learning.origin import is_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from nudge.learning.failures import Failure
    from nudge.learning.outcome import Call, Outcome

_MODULE, _PROGRAM = "module", "tool"
_OF_THE_WORK = frozenset(("timeout", "permission"))
"""Families that another way to do the job may cure, but that it seldom does."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    error: tuple[str, str]
    line: str
    job: str
    tool: str
    is_missing: bool
    """Whether the tool itself is what is missing."""
    cwd: str | None
    root: str | None
    tried: tuple[str, ...]
    """The lines of the session that failed shortly before."""


def error_of(failure: Failure) -> tuple[str, str]:
    """What tells one error from another: its kind, and what is missing or the line that says so."""
    return failure.family, failure.detail or failure.sign or failure.line


def unanswered_failure(outcome: Outcome, calls: Iterable[Call], tried: Iterable[str]) -> Unanswered | None:
    """Return the failure of a job for want of its surroundings; None for any other. `calls` may have failed, and are no
    code of the session's own."""
    failure = outcome.failure
    if failure is None or outcome.exit_code == 0 or failure.nature != SURROUNDINGS:
        return None
    if not family_of(failure.family).takes_runner or failure.family in _OF_THE_WORK:
        return None
    for call in calls:
        if not (job := job_of(call.command)):
            continue
        is_missing = _is_missing(call, failure)
        if failure.family == _MODULE and not is_missing and not is_named(failure.detail, outcome.root):
            return None  # it may be a module of the session's own
        return Unanswered(
            error_of(failure), outcome.line, job, call.tool, is_missing, outcome.cwd, outcome.root, tuple(tried)
        )
    return None


def _is_missing(call: Call, failure: Failure) -> bool:
    """Whether the program of a call is missing: `pytest` for `pytest` and `python3 -m pytest`."""
    command = call.command
    if failure.family == _PROGRAM:
        return failure.detail in (command.program, command.launched_program, command.tool)
    return failure.family == _MODULE and command.is_python_module and failure.detail == command.tool
