"""What PRIMARY has seen of sessions: how many actions since they last said something about their attempt, and when."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from nudge import limits


@dataclass(slots=True)
class _Activity:
    last_seen: float
    count: int = 0
    reminded_at: int = 0
    """The count at the last reminder."""


class SessionActivity:
    """Kept in memory only. After a restart the counts begin at 0, and history and the attempts themselves still say
    when a session was last seen. The sessions that were not seen for the longest time are dropped first."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, _Activity] = OrderedDict()

    def count(self, session: str) -> int:
        """Actions since the last `reset`."""
        return self._sessions[session].count if session in self._sessions else 0

    def last_seen(self, session: str) -> float | None:
        return self._sessions[session].last_seen if session in self._sessions else None

    def see(self, session: str, now: float) -> None:
        self._get(session, now)

    def increment(self, session: str, now: float) -> int:
        activity = self._get(session, now)
        activity.count += 1
        return activity.count

    def reset(self, session: str, now: float) -> None:
        activity = self._get(session, now)
        activity.count = activity.reminded_at = 0

    def forget(self, session: str) -> None:
        """The session has ended; whatever is seen of it from now on is a sign that it goes on."""
        self._sessions.pop(session, None)

    def is_reminder_due(self, session: str) -> bool:
        """Whether the session did enough since its last update, and since the last reminder."""
        activity = self._sessions.get(session)
        return activity is not None and activity.count - activity.reminded_at >= limits.CHECK_IN_ACTIONS

    def note_reminder(self, session: str) -> None:
        if session in self._sessions:
            self._sessions[session].reminded_at = self._sessions[session].count

    def _get(self, session: str, now: float) -> _Activity:
        activity = self._sessions.setdefault(session, _Activity(now))
        activity.last_seen = now
        self._sessions.move_to_end(session)
        if len(self._sessions) > limits.WATCHED_SESSIONS:
            self._sessions.popitem(last=False)
        return activity
