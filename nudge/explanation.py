"""The one shape of "why": every answer that was chosen, and every miss, says so in this form."""

from __future__ import annotations

from nudge.limits import MAX_REASONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def explain(
    matched: bool, score: float | None, components: Mapping[str, float], reasons: Sequence[str]
) -> dict[str, Any]:
    """`{"matched", "score", "components", "reasons"}`, rounded so that it reads well and costs few tokens."""
    return {
        "matched": matched,
        "score": None if score is None else round(score, 4),
        "components": {name: round(part, 4) for name, part in components.items()},
        "reasons": list(reasons[:MAX_REASONS]),
    }
