"""JSON from people, by the rules that the server has for the wire: what it would refuse must not become something else
on the way."""

from __future__ import annotations

import json
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def loads(text: str | bytes) -> Any:
    """The value, or `ValueError` (`RecursionError` where it nests too deep)."""
    return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = sorted(name for name, _ in pairs)
        twice = next(name for name, following in pairwise(names) if name == following)
        raise ValueError(f"an object has the key {json.dumps(twice[:64])} twice")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
