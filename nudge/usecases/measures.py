"""Sizes and spans as people read them. Standard library only: `nudge status` is here within a few milliseconds."""

from __future__ import annotations

from nudge.limits import KIB, MIB

_SIZES = ((1024 * MIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def size(count: float) -> str:
    """`0 B`, `312 B`, `1.5 KiB`, `4 MiB`."""
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{int(count)} B"


def span(seconds: float) -> str:
    """The two largest units that say something: `45s`, `12h`, `3h 12m`, `2d 1h`."""
    left = max(int(seconds), 0)
    told: list[str] = []
    for unit, name in _SPANS:
        count, left = divmod(left, unit)
        if count or told:
            told.append(f"{count}{name}")
    return " ".join(part for part in told[:2] if part[:-1] != "0") or "0s"
