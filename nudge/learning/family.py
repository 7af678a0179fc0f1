"""What a family of failures says about the failures in it; `families` has them all."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of failure of the surroundings, and how such failures are cured."""

    name: str
    signs: tuple[str, ...]
    """Patterns of the output, with what is missing or refused as group `n` or `m`."""
    steps: tuple[str, ...] = ()
    """The kinds of steps that cure it, the best first."""
    tells_apart: bool = False
    """Whether what is missing tells two failures of it apart."""
    is_of_program: bool = False
    """Whether every call of the program has it, whatever it is to do."""
    takes_runner: bool = True
    """Whether another program that does the same may be its cure."""
    takes_any_step: bool = False
    """Whether a single step between failure and success cures it, whatever the name of the step."""
    outlasts_edit: bool = False
    """Whether an edit of the session does not cure it."""
    is_proved_by_run: bool = False
    """Whether tests that ran prove the cure, whether or not they passed."""
    is_certain: bool = False
    """Whether a test that failed with it failed because of it."""
    is_breaking: bool = False
    """Whether it shows that a command that once worked does so no more."""
