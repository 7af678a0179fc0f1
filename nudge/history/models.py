"""The parameters and the results of the operations of the history."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from nudge.core import limits
from nudge.core.call import UNLISTED, InContext, Params, Project, ProjectName, Result, Text, UnlistedContext

_LARGEST = 2**62  # larger than every id and time; SQLite's integers end soon after


def _between(least: int, most: int) -> AfterValidator:
    """Clamp a number: a caller that asks for too much gets less, not an error."""
    return AfterValidator(lambda value: min(max(value, least), most))


Whole = Annotated[int, _between(-_LARGEST, _LARGEST)]
Before = Annotated[Whole | None, Field(description="Unix seconds")]
After = Whole | None
# Clients read the schemas of all tools in each session: this one is short.
Rows = Annotated[list[dict[str, Any]], WithJsonSchema({"type": "array"})]
_UNLISTED = Field(json_schema_extra={UNLISTED: True})  # an agent is in its project, and seldom names another one
Offset = Annotated[int, _between(0, limits.MAX_SEARCH_OFFSET)]


class Search(InContext):
    query: Text
    project: Project = None
    obs_type: Text | None = None
    before: Before = None
    after: After = None
    order_by: Literal["relevance", "blended"] = "relevance"
    limit: Annotated[int, _between(1, limits.MAX_SEARCH_LIMIT)] = limits.DEFAULT_SEARCH_LIMIT
    offset: Offset = 0


class OneProject(InContext):
    """A caller outside of a private project finds its data only when it names the project."""

    context: UnlistedContext = None
    project: Annotated[ProjectName | None, _UNLISTED] = None


class GetObservations(OneProject):
    ids: list[Whole]


class Timeline(OneProject):
    anchor: Whole
    before: Annotated[int, _between(0, limits.MAX_TIMELINE)] = limits.DEFAULT_TIMELINE
    after: Annotated[int, _between(0, limits.MAX_TIMELINE)] = limits.DEFAULT_TIMELINE


class RecentContext(InContext):
    project: Project = None
    work: Annotated[bool, _UNLISTED] = False  # only what `recent_work` returns
    limit: Annotated[int, _between(1, limits.MAX_RECENT_LIMIT)] = limits.DEFAULT_RECENT_LIMIT


class SessionTrace(OneProject):
    session_id: Text
    before: Before = None
    after: After = None
    limit: Annotated[int, _between(1, limits.MAX_TRACE_LIMIT)] = limits.DEFAULT_TRACE_LIMIT


class FileHistory(OneProject):
    file_path: Text
    before: Before = None
    after: After = None
    limit: Annotated[int, _between(1, limits.MAX_HISTORY_LIMIT)] = limits.DEFAULT_HISTORY_LIMIT


class Sessions(InContext):
    """`session` is the beginning of an id; `nonempty` leaves out those in which nothing was done or asked."""

    project: ProjectName | None = None
    session: Text = ""
    nonempty: bool = False
    limit: Annotated[int, _between(1, limits.MAX_SESSIONS_LIMIT)] = limits.DEFAULT_SESSIONS_LIMIT
    offset: Offset = 0


class Pin(OneProject):
    ids: list[Whole]
    pinned: bool = True


class PurgeParams(InContext):
    """An observation must meet every condition that is given; `older_than` is in days."""

    context: Annotated[dict[str, Any] | None, _UNLISTED] = None
    before: Before = None
    project: ProjectName | None = None
    session: Text | None = None
    ids: Annotated[list[Whole] | None, Field(max_length=limits.MAX_PURGED_IDS)] = None
    type: Text | None = None
    older_than: Annotated[int | None, Field(ge=0, le=limits.MAX_RETENTION_DAYS)] = None
    search: Text | None = None
    confirm: bool = False


class Backup(Params):
    path: Annotated[Text | None, Field(description="absolute; default: beside the database")] = None


class ExportHistory(OneProject):
    after: Annotated[Text | None, Field(description="`next` of the previous page")] = None


class ObservationListResult(Result):
    """An array of observations. Not a RootModel: pydantic builds that at once, which takes a tenth of a server's
    start."""

    @classmethod
    def __get_pydantic_json_schema__(cls, _core: Any, _handler: Any) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "object", "additionalProperties": True}}


class TimelineResult(Result):
    anchor: dict[str, Any]
    before: Rows
    after: Rows


class SessionTraceResult(Result):
    """`project` and `ended_at` are null when they are not known."""

    session_id: str
    project: str | None
    started_at: int
    ended_at: int | None
    summary: dict[str, Any]
    prompts: Rows
    injections: Rows
    more: bool | None = None


class FileHistoryResult(Result):
    file_path: str
    sessions: Rows
    more: bool | None = None


class PinResult(Result):
    pinned: bool
    ids: list[int]
    missing: list[int]


class PurgeResult(Result):
    """`total` and `counts` are observations; `prompts` and `injections` are their copies, which are deleted too."""

    total: int
    counts: dict[str, int]
    pinned: int
    prompts: int
    injections: int
    deleted: bool
    waiting: int
    """Events in the spool that could not be recorded yet."""
    scrubbed: bool | None = None
    backups: list[str] | None = None


class BackupResult(Result):
    path: str
    bytes: int


class ExportHistoryResult(Result):
    rows: list[dict[str, Any]]
    next: str | None
