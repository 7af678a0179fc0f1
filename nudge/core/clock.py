"""A clock that counts suspend and ignores steps of the wall clock; waiting; times, lifetimes and ages as text.

`Clock.now()` is Unix seconds: the wall clock read once, continued by the kernel's boot clock. Every PRIMARY of one
boot uses the same offset, which is kept in the change log, so a step of the wall clock changes neither a TTL nor the
order of two writes. After a reboot the wall clock is read again.
"""

from __future__ import annotations

import sys
import time

from nudge.core import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

# CLOCK_MONOTONIC of macOS counts sleep, as CLOCK_BOOTTIME of Linux does.
_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def boot_seconds() -> float:
    """Return the seconds since boot, suspend included; the same in every process of one boot."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


def boot_id() -> str:
    """Return an identifier of this boot."""
    if sys.platform == "linux":
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            pass
    # Elsewhere: the time of boot, coarse enough that a small step of the wall clock is not taken for a reboot.
    return f"boot-{round((time.time() - boot_seconds()) / 600)}"


class Clock:
    """Unix seconds = `offset` + boot clock."""

    def __init__(self, offset: float | None = None, boot: Callable[[], float] = boot_seconds) -> None:
        self._boot = boot
        self.offset = time.time() - boot() if offset is None else offset

    def now(self) -> float:
        return self.offset + self._boot()


def poll_until(condition: Callable[[], T], timeout: float, pause: float) -> T:
    """Call `condition` every `pause` seconds until it returns something true, and return that; after `timeout` seconds
    return the last false value. Suspend does not count: what this process waits for was suspended too."""
    until = time.monotonic() + timeout
    while not (value := condition()) and time.monotonic() <= until:
        time.sleep(pause)
    return value


_TIMES_CACHED = 16_384
_times: dict[float, str] = {}  # every answer contains a hint's times, which rarely change


def iso(seconds: float) -> str:
    """Return Unix seconds as `2026-11-16T08:30:00.123456Z`: ISO-8601 in UTC, sortable as text."""
    text = _times.get(seconds)
    if text is None:
        whole, micros = divmod(round(seconds * 1_000_000), 1_000_000)
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{micros:06d}Z"
        if len(_times) >= _TIMES_CACHED:
            _times.clear()
        _times[seconds] = text
    return text


SESSION = "session"

_NUMBER = r"([0-9]{1,99}(?:\.[0-9]{1,9})?)"
_DURATION = rf"P(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=[0-9])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?"
_UNIT_SECONDS = (7 * 86_400, 86_400, 3_600, 60, 1)


def parse_lifetime(text: object) -> float | None:
    """Return the seconds of an ISO-8601 duration; None for `session`. Raises ValueError with the rule.

    Months and years have no fixed length, so they are refused, as is a fraction before the last part.
    """
    if text == SESSION:
        return None
    import re  # late: 7 ms, too long for a hook and `nudge get`

    match = re.fullmatch(_DURATION, text.replace(",", ".")) if isinstance(text, str) else None
    parts = (
        [(number, unit) for number, unit in zip(match.groups(), _UNIT_SECONDS, strict=True) if number] if match else []
    )
    if not parts or any("." in number for number, _ in parts[:-1]):
        raise ValueError(
            'must be "session" or a duration in weeks, days, hours, minutes and seconds such as PT2H or P1DT12H'
        )
    seconds = sum(float(number) * unit for number, unit in parts)
    if not 0 < seconds <= limits.MAX_TTL_SECONDS:
        raise ValueError(f"must be longer than 0 seconds and at most {limits.MAX_TTL_SECONDS // 86_400} days")
    return seconds


def ago(seconds: float) -> str:
    """Return a short age for users: `now`, `5m ago`, `3h ago`, `2d ago`."""
    if seconds < 60:
        return "now"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    raise AssertionError("unreachable")


def last_time(seconds: float, what: str = "last") -> str:
    """Return an age as part of a sentence: `last 5m ago`, `just now`."""
    return "just now" if seconds < 60 else f"{what} {ago(seconds)}"
