"""Which of two versions of a thing counts: the later one by a hybrid logical clock, on a tie the one of the greater
origin. Every machine decides the same from the same rows, in whatever order they come.

A clock value has milliseconds since 1970 in its upper bits and a counter in the lower 16. A new version is never below
one that its author has seen, whatever the author's clock says.

A version that counts no more was either replaced or lost. It was replaced when another was made from it, that is, by
somebody who had it before; the rows say so (`Body.after`). Otherwise it lost, and is kept. That does not depend on the
order in which rows come either.
"""

from __future__ import annotations

from dataclasses import dataclass

from nudge.core import limits

_COUNTER_BITS = 16


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """One version of a thing; `origin` is the store that wrote it."""

    clock: int
    origin: str


@dataclass(frozen=True, slots=True)
class Known:
    """The version of a thing that counts here. `after` is the clock of the version that its author had before, 0 for
    none; `n` is its number in the log of its origin."""

    version: Version
    after: int
    is_live: bool
    digest: str
    n: int = 0


def clock_at(seconds: float, seen: int = 0) -> int:
    """Return the clock of a change at Unix `seconds` to a thing whose latest version has the clock `seen`."""
    return max(int(seconds * 1_000) << _COUNTER_BITS, seen + 1)


def seconds_of(clock: int) -> float:
    """Return the Unix seconds of a clock, without its counter."""
    return (clock >> _COUNTER_BITS) / 1_000


def has_lost(version: Version, digest: str, winner: Known) -> bool:
    """Whether a version lost against a later one that has another content and was not made from it."""
    return digest != winner.digest and winner.after != version.clock


def latest_of(clock: int) -> float:
    """Return the latest time that a version of this clock may have: the clock has milliseconds only."""
    return ((clock >> _COUNTER_BITS) + 1) / 1_000


@dataclass(frozen=True, slots=True)
class StoreTime:
    """The time of a store, which goes on without steps while the machine runs, and by how many seconds the clock on the
    wall is ahead of it: it may have been set since."""

    now: float
    shift: float = 0.0

    def wall(self, seconds: float) -> float:
        """Return a time of the store by the clock on the wall; none is later than now."""
        return self.bound(seconds + (self.shift if abs(self.shift) > limits.TEAM_CLOCK_STEP else 0.0))

    def bound(self, seconds: float | None) -> float:
        """Return a time by the clock on the wall, which is now when it is not known or was taken from a clock that was
        ahead."""
        now = self.now + self.shift
        return now if seconds is None else min(seconds, now)


def clock_problem(ahead: float) -> str | None:
    """Why a machine whose clock is so many seconds ahead of the server's may not take part; None when it may. It would
    win against every change that is made until its time has come."""
    if ahead <= limits.TEAM_CLOCK_AHEAD:
        return None
    hours, minutes = divmod(int(ahead) // 60, 60)
    span = f"{hours} h {minutes} min" if hours else f"{minutes} min"
    return f"the clock of this machine is {span} ahead of the server's: set it, then run: nudge stop"
