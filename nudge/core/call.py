"""A call of an operation: who calls, through which interface, from where, until when; the base models of its parameters
and its result; and the agent session that it belongs to.

The session of a call is the first that is known: the argument `session_id`; the client's metadata of this one call
(Codex sends them); the environment of the process that the client started (Claude Code sets it); the connection,
which is a number that a process on stdio makes up for its client, or what an HTTP request names in `Nudge-Session`;
else the anonymous session.

Claude Code keeps its servers through `/clear`, with the old session in their environment, while its hooks report the
new one from the same process: what the hooks of a client's process reported last replaces what its environment says.
A resumed session has a new process, and its own id in both places.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from nudge.clients import registry
from nudge.core import limits
from nudge.core.clock import boot_seconds
from nudge.core.context import NO_CONTEXT, Context
from nudge.core.errors import Invalid, Unavailable
from nudge.core.text import is_all_visible, to_unicode
from nudge.core.visibility import VARIABLES, Visibility

_K = TypeVar("_K")
_V = TypeVar("_V")

Interface = Literal["cli", "mcp", "hook", "http"]

_SESSION_VARIABLES = registry.session_variables()
OWN_VARIABLES = frozenset(_SESSION_VARIABLES) | VARIABLES
"""A caller's variables that most operations ask for: the name of its session, and what it may see."""
"""Asked for together: a caller is asked once for a call."""
UNLISTED = "x-unlisted"
"""In the schema of a parameter: tools take it, but their lists do not name it."""
ANONYMOUS = "anonymous"
"""The one session of all callers that have no id: bare HTTP, and a terminal outside of any agent."""


class EnvNeeded(Exception):
    """A scope names environment variables that the caller was not asked for yet. The interface asks for them and
    repeats the call."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self.names = sorted(names)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one operation.

    `env` holds the variables that the caller was asked for, None for one that is not set; it is None as a whole when
    the caller cannot be asked. A repeated call with the same `request_id` gets the answer of the first
    one. `deadline` is on the boot clock; a write is not applied after it.

    `session` is the session that the client names with this one call; `connection` is the fallback for a client that
    names none.
    `client_process` is the process id of the client, None when the caller does not know it. `session_of` decides by
    these.
    """

    interface: Interface = "http"
    client: str | None = None
    context: Context = NO_CONTEXT
    env: dict[str, str | None] | None = None
    deadline: float | None = None
    request_id: str | None = None
    session: str | None = None
    connection: str | None = None
    client_process: int | None = None
    is_person: bool = False
    """A click on the page, to which a person signed in from a terminal. Only the HTTP server says so."""
    fingerprint: str | None = None
    """Hash of operation and parameters, set by the application, or by an interface that passes them in a file: no
    request id may be used for another call."""

    def located(self, named: Context) -> Call:
        """This call at the place that its parameters name; see `Context.located`."""
        if named is self.context is NO_CONTEXT:
            return self
        return replace(self, context=named.located(self.context))

    def refuse_late(self) -> None:
        """Raise Unavailable when the deadline of a write has passed."""
        if self.deadline is not None and boot_seconds() > self.deadline:
            raise Unavailable("the request came too late and was not applied; send it again")

    def with_variables(self, context: Context, names: frozenset[str]) -> Context:
        """The context with the caller's values of these variables, unless it has an environment; raises EnvNeeded when
        they are not known yet."""
        values = self.env_values(names) if names and context.env is None else None
        return context if values is None else context.with_env(values)

    def env_values(self, names: frozenset[str]) -> dict[str, str | None] | None:
        """The caller's values of these variables, or None when it cannot be asked; raises EnvNeeded when it can."""
        if self.env is not None and names - self.env.keys():
            raise EnvNeeded(names if names.isdisjoint(OWN_VARIABLES) else names | OWN_VARIABLES)
        return self.env


# Parameters and results

_CONTEXT = "where the caller is: {cwd, repo, branch, os: linux|darwin|windows, env}; filled in on stdio"

ContextParam = Annotated[dict[str, Any] | None, Field(description=_CONTEXT)]
Text = Annotated[str, AfterValidator(to_unicode)]
ProjectName = Annotated[Text, AfterValidator(str.casefold)]
# Null is a value here, unlike elsewhere, so the schema names it.
Project = Annotated[
    ProjectName | None,
    WithJsonSchema({"oneOf": [{"type": "string"}, {"type": "null"}], "description": "default: yours; null = all"}),
]


# Pydantic builds both kinds of models at their first use (`defer_build`): there are a hundred of them, and building all
# would delay the start of a server that takes over.
class Params(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    def place(self) -> Context:
        """Where the caller is, by its parameters. `App.execute` completes it: operations read `Call.context`."""
        return NO_CONTEXT


class Result(BaseModel):
    model_config = ConfigDict(defer_build=True)


class NoParams(Params):
    pass


UnlistedContext = Annotated[dict[str, Any] | None, Field(json_schema_extra={UNLISTED: True})]


class InContext(Params):
    """`context` is the caller's, as for hints. Interfaces fill it in, so its schema says no more about it."""

    context: dict[str, Any] | None = None

    def place(self) -> Context:
        return Context.parse(self.context)

    def chosen_project(self, visible: Visibility) -> str | None:
        """The parameter `project` when the caller gives it, null for all; otherwise the caller's own."""
        return getattr(self, "project", None) if "project" in self.model_fields_set else visible.here


def parse_params(model: Any, params: dict[str, Any]) -> Any:
    """The parameters as a model; raises Invalid naming a field that is wrong: one that does not exist first, since a
    wrong name also makes the right one missing. No operation takes a number that SQLite cannot hold."""
    for name, value in params.items():
        if type(value) is int and value.bit_length() > _SQLITE_INTEGER_BITS:
            raise Invalid("must be a number of at most 64 bits", field=name[:200])
    try:
        return model.model_validate(params)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    unknown = next((problem for problem in problems if problem["type"] == "extra_forbidden"), None)
    if unknown is None or len(unknown["loc"]) != 1:
        raise _invalid(problems[0])
    name = str(unknown["loc"][0])
    missing = [str(problem["loc"][0]) for problem in problems if problem["type"] == "missing"]
    raise Invalid(_unknown_parameter(name, list(model.model_fields), missing), field=name[:200])


_SQLITE_INTEGER_BITS = 63  # and the sign


_SENTENCES = {
    "missing": "is required",
    "extra_forbidden": "is not a known field",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "list_type": "must be a list",
    "literal_error": "must be one of {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must not be empty",
    "too_long": "must have at most {max_length} items",
}


def _unknown_parameter(name: str, known: list[str], missing: list[str]) -> str:
    """What to say about a parameter that does not exist: the one that was probably meant, and all of them. Probable is
    a similar name, or else the only parameter that is required and missing."""
    from difflib import get_close_matches  # late: only wrong calls need it

    parts = [other for other in known if name in other.split("_")]
    near = parts or get_close_matches(name[:100], known, n=1) or missing
    meant = f" (did you mean {near[0]}?)" if len(near) == 1 else ""
    return f"is not a parameter{meant}; known: {', '.join(known) or 'none'}"


def _invalid(problem: Mapping[str, Any]) -> Invalid:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]).lstrip(".")
    context = problem.get("ctx", {})
    sentence = _SENTENCES.get(problem["type"], problem["msg"]).format(**context)
    if problem["type"] == "too_short" and context["min_length"] > 1:
        sentence = f"must have at least {context['min_length']} items"
    return Invalid(sentence, field=place[:200] or None)


# The session of a call


class ClientProcesses:
    """The session that each client process is in, as its hooks report it. Kept in PRIMARY's memory: the oldest entries
    are dropped first, and after a restart the next hook reports it again."""

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
    """The session under which the hooks of the calling agent report; None when it is not known, or no name: a shell may
    have anything in its environment."""
    if call.session is not None:
        return call.session if is_all_visible(call.session) else None
    values = call.env_values(frozenset(_SESSION_VARIABLES)) or {}
    session = next(filter(None, map(values.get, _SESSION_VARIABLES)), "")[: limits.MAX_SESSION_ID_CHARS]
    return clients.current(session, call.client_process) if session and is_all_visible(session) else None


@dataclass(slots=True)
class _Activity:
    last_seen: float
    count: int | None = None
    """None until the actions before this server's start are counted."""
    reminded_at: int = 0
    """The count at the last reminder."""


class SessionActivity:
    """When PRIMARY last saw each session, and how many actions it counted since the last update of an attempt.

    Kept in memory only: after a restart, history and attempts tell when a session was last seen and how many actions
    it did. The sessions that were not seen for the longest time are dropped first."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, _Activity] = OrderedDict()

    def count(self, session: str) -> int | None:
        """Actions since the last `reset`; None for a session that this server has not counted yet."""
        return self._sessions[session].count if session in self._sessions else None

    def begin(self, session: str, earlier: int, now: float) -> None:
        """Begin to count at the number of earlier actions, unless the session is counted by now. The reminder of the
        last ten of them counts as told."""
        activity = self._get(session, now)
        if activity.count is None:
            activity.count, activity.reminded_at = earlier, earlier - earlier % limits.CHECK_IN_ACTIONS

    def last_seen(self, session: str) -> float | None:
        return self._sessions[session].last_seen if session in self._sessions else None

    def see(self, session: str, now: float) -> None:
        self._get(session, now)

    def increment(self, session: str, now: float) -> int:
        activity = self._get(session, now)
        activity.count = (activity.count or 0) + 1
        return activity.count

    def reset(self, session: str, now: float) -> None:
        activity = self._get(session, now)
        activity.count = activity.reminded_at = 0

    def forget(self, session: str) -> None:
        """The session has ended. If it is seen again, it has been resumed."""
        self._sessions.pop(session, None)

    def due_count(self, session: str) -> int | None:
        """The count when a reminder is due: CHECK_IN_ACTIONS after the last update and the last reminder; else None."""
        activity = self._sessions.get(session)
        if activity is None or activity.count is None:
            return None
        return activity.count if activity.count - activity.reminded_at >= limits.CHECK_IN_ACTIONS else None

    def note_reminder(self, session: str) -> None:
        if session in self._sessions:
            self._sessions[session].reminded_at = self._sessions[session].count or 0

    def _get(self, session: str, now: float) -> _Activity:
        activity = self._sessions.setdefault(session, _Activity(now))
        activity.last_seen = now
        self._sessions.move_to_end(session)
        if len(self._sessions) > limits.WATCHED_SESSIONS:
            self._sessions.popitem(last=False)
        return activity
