"""Events: validation of what comes over the wire or from the spool, and the columns of a stored row."""

from __future__ import annotations

import json

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.core.text import quote_name, to_unicode
from nudge.history.observations import TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    class SqlConnection(Protocol):
        """The part of a database connection that this package uses."""

        def execute(self, sql: str, parameters: Any = ..., /) -> Any: ...

        def executemany(self, sql: str, parameters: Any, /) -> Any: ...

        def create_function(self, name: str, narg: int, func: Any, /, *, deterministic: bool = ...) -> Any: ...


UNKNOWN_CLIENT = "unknown"
"""The client of an event that does not name one."""

COLUMNS = (
    "id, timestamp, session_id, prompt_id, project, obs_type, source_event, tool_name, content,"
    " file_path, metadata, is_pinned, branch, clone"
)
_FIELDS = tuple(COLUMNS.split(", "))


def observation(row: Sequence[Any]) -> dict[str, Any]:
    """Return an observation with all fields, from a row of `COLUMNS`."""
    fields = dict(zip(_FIELDS, row, strict=False))
    return {**fields, "metadata": json.loads(fields["metadata"]), "is_pinned": bool(fields["is_pinned"])}


def placeholders(values: Iterable[object]) -> str:
    """Return SQL placeholders, one for each value."""
    return ", ".join("?" for _ in values)


def check_type(obs_type: str | None, field: str = "obs_type") -> None:
    if obs_type is not None and obs_type not in TYPES:
        raise Invalid(f"must be one of {', '.join(TYPES)}", field=field)


class Event:
    """A validated event; raises Invalid with the field that is wrong."""

    __slots__ = (
        "branch",
        "client",
        "clone",
        "content",
        "cwd",
        "details",
        "event_id",
        "file_path",
        "files",
        "metadata",
        "project",
        "prompt_id",
        "repo",
        "session_id",
        "source_event",
        "timestamp",
        "tool_name",
        "type",
    )

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.event_id = _name(raw, "event_id", limits.MAX_EVENT_ID_CHARS)
        self.session_id = _name(raw, "session_id", limits.MAX_SESSION_ID_CHARS)
        self.timestamp = _seconds(raw.get("timestamp"))
        self.type = _type(raw.get("type"))
        self.client = _client(raw.get("client"))
        self.content = (
            _text(raw, "content", limits.MAX_PROMPT_CHARS if self.type == "user_prompt" else limits.MAX_CONTENT_CHARS)
            or ""
        )
        self.cwd, self.repo, self.project = _text(raw, "cwd"), _text(raw, "repo"), _project(raw)
        self.branch, self.clone = _text(raw, "branch"), _text(raw, "clone")
        self.source_event, self.tool_name = _text(raw, "source_event"), _text(raw, "tool_name")
        self.file_path, self.prompt_id = _text(raw, "file_path"), _text(raw, "prompt_id")
        self.metadata = _metadata(raw)
        self.details = _details(raw.get("metadata"), self.content)
        self.files = _other_files(raw, self.file_path) if TYPES[self.type].changes_file else []


def _name(raw: Mapping[str, Any], field: str, most: int) -> str:
    value = raw.get(field)
    if not isinstance(value, str) or not value or len(value) > most:
        raise Invalid(f"must be a string of 1 to {most} characters", field=field)
    return to_unicode(value)


def client_label(client: str) -> str:
    """The client's name in texts for agents."""
    return "an agent" if client == UNKNOWN_CLIENT else quote_name(client, limits.INJECTED_NAME_CHARS)


def _client(value: object) -> str:
    """Accept any well-formed name: an older server must store what a newer hook sends."""
    is_name = isinstance(value, str) and len(value) <= limits.MAX_CLIENT_CHARS and value.replace("-", "").isalnum()
    return str(value) if is_name and str(value).isascii() else UNKNOWN_CLIENT


def _seconds(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= limits.MAX_TIMESTAMP:
        raise Invalid("must be Unix seconds", field="timestamp")
    return int(value)


def _type(value: object) -> str:
    if not isinstance(value, str) or value not in TYPES:
        raise Invalid(f"must be one of {', '.join(TYPES)}", field="type")
    return value


def _text(raw: Mapping[str, Any], field: str, most: int = limits.MAX_EVENT_FIELD_CHARS) -> str | None:
    value = raw.get(field)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid("must be a string", field=field)
    return to_unicode(value[:most])


def _project(raw: Mapping[str, Any]) -> str | None:
    """Case-folded, as filters and settings are when they are compared."""
    name = _text(raw, "project")
    return None if name is None else name.casefold()


def _other_files(raw: Mapping[str, Any], file_path: str | None) -> list[str]:
    """The files that a change touched besides its `file_path`."""
    files = (raw.get("metadata") or {}).get("files")
    paths = files[: limits.MAX_PATCHED_FILES] if isinstance(files, list) else []
    kept = [to_unicode(path[: limits.MAX_EVENT_FIELD_CHARS]) for path in paths if isinstance(path, str)]
    return [path for path in dict.fromkeys(kept) if path != file_path]


def _details(metadata: object, content: str) -> str:
    """The texts in the metadata that are not in the content already: they are indexed for search."""
    texts = dict.fromkeys(to_unicode(text).strip() for text in text_values(metadata))
    return "\n".join(text for text in texts if text not in content)


def text_values(value: object) -> Iterator[str]:
    """Yield the texts in a JSON value, without the names of its fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from text_values(part)


def _metadata(raw: Mapping[str, Any]) -> str:
    """The metadata as JSON, with the fields that have no column: prompt_id, agent_id and start_source."""
    given = raw.get("metadata") or {}
    if not isinstance(given, dict):
        raise Invalid("must be an object", field="metadata")
    facts = {name: raw[name] for name in ("prompt_id", "agent_id", "start_source") if isinstance(raw.get(name), str)}
    try:
        encoded = to_unicode(json.dumps({**given, **facts}, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    except (TypeError, ValueError, RecursionError):
        raise Invalid("must be JSON", field="metadata") from None
    if len(encoded) > limits.MAX_METADATA_CHARS:
        raise Invalid(f"must be at most {limits.MAX_METADATA_CHARS} characters as JSON", field="metadata")
    return encoded
