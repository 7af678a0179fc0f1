"""What made a failing command work, as it was learned from one failure and one success."""

from __future__ import annotations

from dataclasses import dataclass

from nudge.learning.failures import Failure

LAUNCHER, RUNNER, VARIABLE, FLAG, DIRECTORY, PATH, STEP = (
    *("launcher", "runner", "variable", "flag", "directory", "path", "step"),
)
MISSING = "missing"
"""A program that is missing, without anything that worked in its place."""


@dataclass(frozen=True, slots=True)
class Cure:
    """Everything that is told of it is a span of a line that ran."""

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
