"""How long observations are kept: by type, as configured, swept in portions so that recording never waits long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nudge import limits
from nudge.errors import Invalid
from nudge.history import store
from nudge.history.model import OBS_TYPES, RETENTION_DAYS
from nudge.storage.database import Database


def retention_of(configured: Mapping[str, Any] | None) -> dict[str, int]:
    """Days for every type: the defaults, with what the settings say instead."""
    days = dict(RETENTION_DAYS)
    for obs_type, value in (configured or {}).items():
        field = f"retention.{obs_type}"
        if obs_type not in OBS_TYPES:
            raise Invalid(f"is none of {', '.join(OBS_TYPES)}", field=field)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= limits.MAX_RETENTION_DAYS:
            raise Invalid(f"must be 1 to {limits.MAX_RETENTION_DAYS} days", field=field)
        days[obs_type] = value
    return days


class Retention:
    """Sweeps, and remembers what the last sweep did, for whoever asks."""

    def __init__(self, database: Database, days: Mapping[str, int]) -> None:
        self._database, self.days = database, dict(days)
        self.last_sweep: float | None = None
        self.deleted: dict[str, int] = {}

    async def sweep(self, now: float) -> dict[str, int]:
        """Everything that is due; how many of each type."""
        total: dict[str, int] = {}
        while True:
            portion = await self._database.write(lambda connection: store.sweep(connection, now, self.days))
            for obs_type, number in portion.items():
                total[obs_type] = total.get(obs_type, 0) + number
            if sum(portion.values()) < limits.SWEEP_PORTION:
                break
        self.last_sweep, self.deleted = now, total
        return total

    def to_wire(self) -> dict[str, Any]:
        return {"days": self.days, "last_sweep": self.last_sweep, "deleted": self.deleted}
