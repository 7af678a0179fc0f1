"""What PRIMARY has seen of sessions: how many actions since they last said something about their attempt, and when."""

from __future__ import annotations

from collections import OrderedDict

from nudge import limits


class SessionActivity:
    """Kept in memory only. After a restart the counts begin at 0, and history and the attempts themselves still say
    when a session was last seen. The sessions that were not seen for the longest time are dropped first."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def count(self, session: str) -> int:
        """Actions since the last `reset`."""
        return self._sessions.get(session, (0, 0.0))[0]

    def last_seen(self, session: str) -> float | None:
        known = self._sessions.get(session)
        return None if known is None else known[1]

    def see(self, session: str, now: float) -> None:
        self._keep(session, self.count(session), now)

    def increment(self, session: str, now: float) -> int:
        self._keep(session, self.count(session) + 1, now)
        return self.count(session)

    def reset(self, session: str, now: float) -> None:
        self._keep(session, 0, now)

    def _keep(self, session: str, count: int, now: float) -> None:
        self._sessions[session] = (count, now)
        self._sessions.move_to_end(session)
        if len(self._sessions) > limits.WATCHED_SESSIONS:
            self._sessions.popitem(last=False)
