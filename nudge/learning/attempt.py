"""A failure and a success that are compared, with what ran between them."""

from __future__ import annotations

from dataclasses import dataclass

from nudge.learning.comparison import has_same_subcommand
from nudge.learning.failures import SURROUNDINGS
from nudge.learning.families import family_of
from nudge.learning.family import Family
from nudge.learning.jobs import START, is_looking, job_of, step_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nudge.learning.command import SimpleCommand
    from nudge.learning.failures import Failure
    from nudge.learning.outcome import Call, Outcome

_GROUPS = frozenset(("(", "{"))
_NO_STEPS = frozenset(("cd", "pushd", "export", "sed", "tee", "ssh", "kill", "pkill", "timeout", "vim", "nano"))
"""Programs that change nothing for the commands after them, or are looked at elsewhere."""


@dataclass(frozen=True, slots=True)
class Step:
    """A call that worked between a failure and a success."""

    call: Call
    outcome: Outcome

    @property
    def kind(self) -> str:
        command = self.call.command
        return START if command.followed_by == "&" else step_of(command)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A failure and the call that is looked at, with what ran after it."""

    outcome: Outcome
    failure: Failure
    call: Call
    steps: Sequence[Step]
    is_edited: bool
    is_after_edit: bool
    is_repeated: bool
    """Whether the session failed so more than once."""
    scripts: Mapping[str, str]
    worked: Call
    """The call that is compared with it."""
    success: Outcome

    @property
    def family(self) -> Family:
        return family_of(self.failure.family)

    @property
    def is_of_surroundings(self) -> bool:
        return self.failure.nature == SURROUNDINGS

    @property
    def is_same_program(self) -> bool:
        """Whether the same program worked, with the same thing to do unless no call of the program could work."""
        failed, worked = self.call, self.worked
        return failed.tool == worked.tool and (has_same_subcommand(failed, worked) or self.family.is_of_program)

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
            and set(call.command.within) <= _GROUPS
            and call.command.followed_by in ("&&", ";", "&", "|")
        ]

    def job(self, call: Call) -> str:
        return job_of(call.command, self.scripts)


def is_step(command: SimpleCommand) -> bool:
    """Whether a command can change the surroundings of those after it."""
    if is_looking(command) or command.tool in _NO_STEPS:
        return False
    if command.is_anonymous and ("-c" in command.words or "-e" in command.words or command.reads_here_document):
        return False
    return command.tool != "python" or bool(step_of(command))
