"""What a measurement comes to: one row a budget, as a table for people or JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """`measured` and `budget` share a unit; `baseline` is what the ratio was taken against, or what the machine did
    meanwhile."""

    group: str
    what: str
    measured: float
    budget: float
    unit: str
    baseline: str = ""
    note: str = ""
    at_least: bool = False

    @property
    def ok(self) -> bool:
        return self.measured >= self.budget if self.at_least else self.measured <= self.budget

    def cells(self) -> tuple[str, ...]:
        measured, budget = _number(self.measured, self.unit), _number(self.budget, self.unit)
        limit = f"{'>=' if self.at_least else '<='} {budget}"
        return self.group, self.what, measured, self.baseline, limit, "ok" if self.ok else "MISSED", self.note


HEADINGS = ("group", "what", "measured", "baseline", "budget", "", "note")


def table(rows: Sequence[Row]) -> str:
    cells = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    )


def as_json(rows: Iterable[Row]) -> str:
    return json.dumps([{**asdict(row), "ok": row.ok} for row in rows], indent=2)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def _number(value: float, unit: str) -> str:
    return f"{value:.0f}" if not unit else f"{value:.2f} {unit}" if unit in ("x", "s") else f"{value:.1f} {unit}"
