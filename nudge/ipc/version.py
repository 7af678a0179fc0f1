"""Which of two versions is the newer one."""

from __future__ import annotations


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+")[0].split(".") if part.isdecimal())


def is_newer(one: str, other: str) -> bool:
    return _key(one) > _key(other)
