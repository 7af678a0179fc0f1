"""The sessions of agents: which one a call belongs to, and what PRIMARY has seen of each.

The session of a call is the first that is known: the argument `session_id`; the client's metadata of this one call
(Codex sends them); the environment of the process that the client started (`CLAUDE_CODE_SESSION_ID`); the connection,
which is a number that a process on stdio makes up for its client, or what an HTTP request names in `Nudge-Session`;
else the anonymous session.

Claude Code keeps its servers through `/clear`, with the old session in their environment, while its hooks report the
new one from the same process: what the hooks of a client's process reported last replaces what its environment says.
A resumed session has a new process, and its own id in both places.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeVar

from nudge import limits
from nudge.usecases.call import Call

_K = TypeVar("_K")
_V = TypeVar("_V")

SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"
ANONYMOUS = "anonymous"
"""The one session of all callers that have no id: bare HTTP, and a terminal outside of any agent."""


class ClientProcesses:
    """PRIMARY's memory of the session that each client process is in, as its hooks report it. The oldest are dropped
    first; after a restart the next hook brings it back."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[int, str] = OrderedDict()
        self._processes: OrderedDict[str, int] = OrderedDict()

    def observe(self, process: int, session: str) -> None:
        """A hook of this client process reported something of the session."""
        _put(self._sessions, process, session)
        _put(self._processes, session, process)

    def current(self, session: str, process: int | None) -> str:
        """The session that the client is in now. It is found by the session that was in its environment or, when no
        hook reported that one to this server, by the process that started the caller."""
        client_process = self._processes.get(session, process)
        return session if client_process is None else self._sessions.get(client_process, session)


def _put(table: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    table[key] = value
    table.move_to_end(key)
    if len(table) > limits.WATCHED_SESSIONS:
        table.popitem(last=False)


def session_of(clients: ClientProcesses, call: Call, given: str | None = None) -> str:
    """The session of a call; `given` is its argument."""
    return given or agent_session(clients, call) or call.connection or ANONYMOUS


def agent_session(clients: ClientProcesses, call: Call) -> str | None:
    """The session under which the hooks of the calling agent report; None when it is not known."""
    if call.session is not None:
        return call.session
    values = call.env_values(frozenset([SESSION_VARIABLE])) or {}
    session = (values.get(SESSION_VARIABLE) or "")[: limits.MAX_SESSION_ID_CHARS]
    return clients.current(session, call.client_process) if session else None


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
