"""Parameters and results of the operations on attempts; `nudge.journal.attempts` checks what schemas leave out."""

from __future__ import annotations

from operator import getitem
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from nudge.core import limits
from nudge.core.call import InContext, Project, Result
from nudge.core.text import is_all_visible
from nudge.journal.fields import DOMAINS, FIELDS, OPEN_STATUS, OUTCOMES, RESOLUTION
from nudge.notes.models import NoteId, with_fields

if TYPE_CHECKING:
    Domain = str
    Status = str
else:  # the choices of the table
    Domain = getitem(Literal, DOMAINS)
    Status = getitem(Literal, (OPEN_STATUS, *OUTCOMES))


def _checked_session_id(value: str) -> str:
    if not 0 < len(value) <= limits.MAX_SESSION_ID_CHARS or not is_all_visible(value):
        raise PydanticCustomError("session_id", f"must be 1 to {limits.MAX_SESSION_ID_CHARS} printable characters")
    return value


SessionId = Annotated[str, AfterValidator(_checked_session_id)]


class InSession(InContext):
    """`session_id` takes precedence over the session that the interface knows of."""

    session_id: SessionId | None = None


@with_fields(FIELDS, is_new=True)
class _Plan(InSession):
    pass


class StartAttempt(_Plan):
    parallel: Annotated[bool | None, Field(description="in addition to your open one")] = None


@with_fields(FIELDS, is_new=False)
class _Changes(InSession):
    id: Annotated[NoteId | None, Field(description="needed when several are open")] = None


class UpdateAttempt(_Changes):
    """What is not given stays."""

    note: Annotated[str | None, Field(description="what you found out")] = None


@with_fields(RESOLUTION, is_new=True)
class _Resolution(InSession):
    pass


class ResolveAttempt(_Resolution):
    id: NoteId | None = None


class GetOrphaned(InSession):
    adopt: Annotated[NoteId | None, Field(description="id of the orphan to take over")] = None
    parallel: Annotated[bool, Field(description="in addition to your open one")] = False


class ListAttempts(InContext):
    limit: Annotated[int, Field(ge=1, le=limits.MAX_ATTEMPTS_LISTED)] = limits.DEFAULT_ATTEMPTS_LISTED
    domain: Domain | None = None
    outcome: Status | None = None
    since: Annotated[str | None, Field(description="RFC 3339: started since then")] = None
    project: Project = None
    session_id: Annotated[SessionId | None, Field(description="only this session's")] = None


class Calibrate(InContext):
    since: Annotated[str | None, Field(description="RFC 3339: started since then")] = None
    project: Project = None


class CheckIn(InSession):
    frequency: Annotated[int, Field(ge=1, le=10_000, description="actions between reminders")] = limits.CHECK_IN_ACTIONS


class StartAttemptResult(Result):
    """Also `session_id` and `status`."""

    id: int


class UpdateAttemptResult(StartAttemptResult):
    iteration_count: int


class ResolveAttemptResult(Result):
    """Also `status`, `confidence_tier`, and `lesson_id`: the note that the lesson became."""

    id: int


class ActiveAttemptResult(Result):
    """The latest open attempt of the session, if there is one; `open` are the ids when there are several."""

    has_active: bool
    id: int | None = None
    goal: str | None = None
    hypothesis: str | None = None
    action: str | None = None
    prediction: str | None = None
    open: list[int] | None = None


class GetOrphanedResult(Result):
    """The latest open attempt here whose session is gone, if there is one; `others` are the ids of more. `adopted`: it
    is yours now."""

    has_orphan: bool
    adopted: bool | None = None
    id: int | None = None
    session_id: str | None = None
    goal: str | None = None
    hypothesis: str | None = None
    action: str | None = None
    prediction: str | None = None
    created_at: str | None = None
    others: list[int] | None = None


class ListAttemptsResult(Result):
    """`more`: there are others behind these."""

    entries: list[dict[str, Any]]
    count: int
    more: bool | None = None


class CalibrateResult(Result):
    """By domain and in all: counts by outcome, `observed`: the share of predictions that came true, `predicted`: how
    sure the agents had been of those, on average."""

    domains: list[dict[str, Any]]
    total: dict[str, Any]


class StartSessionResult(Result):
    session_id: str
    started_at: str


class CheckInResult(Result):
    should_check_in: bool
    tool_count: int
    id: int | None = None


class ToolCountResult(Result):
    tool_count: int
