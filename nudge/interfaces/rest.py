"""REST: `/api/v1/...`, made from the table of operations, and the OpenAPI document that describes it.

`match` finds the operation behind a path, `params` reads its parameters, `success_of` and `status_of` give the HTTP
status of a result and of an error, `error_body` the body of an error, `refusal_body` that of a request which reached no
operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote

from nudge import __version__
from nudge.core import strict_json
from nudge.core.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    WIRE_REASONS,
    Invalid,
    NotFound,
    NudgeError,
    Unauthorized,
    Unavailable,
)
from nudge.core.operation import Operation
from nudge.interfaces.operations import OPERATIONS
from nudge.interfaces.schemas import schema_of

PREFIX = "/api/v1/"
OPENAPI = "/api/v1/openapi.json"
HEALTH = "/api/v1/health"

_CREATED = frozenset(f"nudge.memory_{name}" for name in ("store", "link", "consolidate"))
LARGE_EXPORTS = ("nudge.export", "nudge.memory_export")  # whose result may be larger than an answer: it is streamed
LARGE_IMPORTS = ("nudge.import", "nudge.memory_import")  # whose body may be larger than others: it goes into a file
_ALSO_AS_QUERY = {"nudge.memory_recall": ("GET", "/api/v1/recall")}  # beside the route in the table
_LIST_BODY = {"nudge.memory_bulk": "memories"}  # a list as the body is this parameter

_STATUS = {
    "E_NOT_FOUND": 404,
    "E_CONFLICT": 409,
    "E_QUOTA": 429,
    "E_UNAVAILABLE": 503,
    "E_STORAGE": 507,
    "E_INTERNAL": 500,
}

_REFUSAL_CODES = {
    401: (Unauthorized.code, Unauthorized.reason),
    404: (NotFound.code, NotFound.reason),
    405: (METHOD_NOT_FOUND, WIRE_REASONS[METHOD_NOT_FOUND]),
    500: (INTERNAL_ERROR, WIRE_REASONS[INTERNAL_ERROR]),
    503: (Unavailable.code, Unavailable.reason),
}


def status_of(error: NudgeError) -> int:
    return _STATUS.get(error.reason, 400)


def success_of(operation: Operation) -> int:
    return 201 if operation.name in _CREATED else 200


def error_body(error: NudgeError) -> dict[str, Any]:
    """Return the error object with its message also as `error`, where many REST clients look for it."""
    return {"error": error.message, **error.to_json()}


def refusal_body(status: int, message: str) -> dict[str, Any]:
    """Return the body for a request that reached no operation: no token, unknown path, wrong method."""
    code, reason = _REFUSAL_CODES.get(status, (INVALID_REQUEST, WIRE_REASONS[INVALID_REQUEST]))
    return {"error": message, "code": code, "message": message, "data": {"reason": reason}}


def routes() -> Iterator[tuple[str, str, Operation]]:
    """Yield method, path template and operation of every route."""
    for operation in OPERATIONS.values():
        yield (*operation.route, operation)
        if operation.name in _ALSO_AS_QUERY:
            yield (*_ALSO_AS_QUERY[operation.name], operation)


def match(path: str) -> dict[str, tuple[Operation, dict[str, str]]]:
    """Return the operations that serve this path, by method, each with the parameters in the path.

    The path is split before it is decoded: a parameter may contain `%2F`.
    """
    parts = path.split("/")
    matched: dict[str, tuple[Operation, dict[str, str]]] = {}
    for method, template, operation in routes():
        names = template.split("/")
        if len(names) != len(parts) or not all(n == p or n[:1] == "{" for n, p in zip(names, parts, strict=True)):
            continue
        named = {
            n[1:-1]: unquote(p, errors="surrogateescape") for n, p in zip(names, parts, strict=True) if n[:1] == "{"
        }
        matched.setdefault(method, (operation, named))
    return matched


def merge_params(operation: Operation, named: Mapping[str, str], query: str, body: object) -> dict[str, Any]:
    """Merge path, query string and body into one parameter object; the path wins, then the body. Raises Invalid."""
    if isinstance(body, list) and operation.name in _LIST_BODY:
        body = {_LIST_BODY[operation.name]: body}
    if body is not None and not isinstance(body, dict):
        raise Invalid("must be a JSON object", field="body")
    properties = _properties(operation)
    given: dict[str, Any] = {}
    for name, raw in parse_qsl(query, keep_blank_values=True, errors="surrogateescape"):
        value = _parse(_checked_text("query", name), _checked_text(name, raw), properties.get(name, {}))
        before = given.get(name)
        given[name] = [*before, *value] if isinstance(before, list) and isinstance(value, list) else value
    in_path = {name: _parse(name, _checked_text(name, raw), properties[name]) for name, raw in named.items()}
    return {**given, **(body or {}), **in_path}


def _checked_text(name: str, raw: str) -> str:
    """Return a text. Raise Invalid for bytes that are not UTF-8, which decoding has made halves of surrogate pairs: no
    operation takes them, and JSON bodies have none either."""
    if any("\ud800" <= char <= "\udfff" for char in raw):
        raise Invalid("is not text in UTF-8", field=name)
    return raw


@cache
def _properties(operation: Operation) -> dict[str, Any]:
    properties: dict[str, Any] = schema_of(operation.params).get("properties", {})
    return properties


def _parse(name: str, raw: str, schema: Mapping[str, Any]) -> Any:
    """Convert a value of the path or query string to the type in the parameter's schema. A list is separated by commas,
    or the parameter is repeated."""
    kind = schema.get("type")
    if kind == "array":
        return raw.split(",")
    if kind in ("integer", "number", "boolean", "object"):
        try:
            return strict_json.decode(raw.encode("utf-8", "surrogatepass"))
        except strict_json.JsonError:
            raise Invalid(f"must be JSON ({kind})", field=name) from None
    return raw


# The OpenAPI document


def openapi() -> dict[str, Any]:
    """Return the OpenAPI document: every route with its parameters and responses."""
    paths: dict[str, dict[str, Any]] = {}
    for verb, template, operation in routes():
        paths.setdefault(template, {})[verb.lower()] = _describe(verb, template, operation)
    paths[HEALTH] = {"get": _HEALTH}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Nudge", "version": __version__},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": paths,
    }


def _describe(verb: str, template: str, operation: Operation) -> dict[str, Any]:
    schema = schema_of(operation.params)
    example = EXAMPLES.get(operation.name, {})
    is_main = (verb, template) == operation.route
    described: dict[str, Any] = {
        "operationId": operation.tool if is_main else f"{operation.tool}_{verb.lower()}",
        "summary": operation.summary,
        "parameters": [
            {**_parameter(name, field, schema, template), **({"example": example[name]} if name in example else {})}
            for name, field in schema.get("properties", {}).items()
            if verb in ("GET", "DELETE") or f"{{{name}}}" in template
        ],
        "responses": {
            str(success_of(operation)): _response("done", schema_of(operation.result)),
            **{str(status): _response(_REFUSED[status], _ERROR) for status in REFUSALS.get(operation.name, ())},
            "default": _response("refused", _ERROR),
        },
    }
    if verb in ("POST", "PUT"):
        body: dict[str, Any] = {"schema": _body_schema(schema, template)}
        if operation.name in _LIST_BODY:
            body["schema"] = {"anyOf": [body["schema"], schema["properties"][_LIST_BODY[operation.name]]]}
        if example:
            body["example"] = {name: value for name, value in example.items() if f"{{{name}}}" not in template}
        described["requestBody"] = {"required": "required" in schema, "content": {"application/json": body}}
    return described


def _response(description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


_REFUSED = {
    400: "a parameter is wrong",
    404: "there is no such thing",
    409: "it is not possible as things are, such as with a title that is taken",
    503: "the language model does not answer",
}
_ERROR = {
    "type": "object",
    "properties": {
        "error": {"type": "string"},
        "code": {"type": "integer"},
        "message": {"type": "string"},
        "data": {"type": "object"},
    },
    "required": ["error", "code", "message", "data"],
}
_HEALTH = {
    "operationId": "health",
    "summary": "Server: whether notes and their full-text index can be read and written. Needs no token.",
    "security": [],
    "parameters": [],
    "responses": {
        status: _response(meaning, {"type": "object", "properties": {"status": {"type": "string", "const": value}}})
        for status, meaning, value in (("200", "they can", "ok"), ("503", "they cannot", "error"))
    },
}


def _body_schema(schema: Mapping[str, Any], template: str) -> dict[str, Any]:
    """Return the schema of the body: the parameters that are not in the path."""
    fields = {name: field for name, field in schema.get("properties", {}).items() if f"{{{name}}}" not in template}
    return {
        "type": "object",
        "properties": fields,
        "required": [name for name in schema.get("required", ()) if name in fields],
    }


def _parameter(name: str, field: Mapping[str, Any], schema: Mapping[str, Any], template: str) -> dict[str, Any]:
    location = "path" if f"{{{name}}}" in template else "query"
    described = {"name": name, "in": location, "required": location == "path" or name in schema.get("required", ())}
    if field.get("type") == "object":
        return {**described, "content": {"application/json": {"schema": field}}}
    commas = {"style": "form", "explode": False} if field.get("type") == "array" else {}
    return {**described, **commas, "schema": field}


# Examples in the OpenAPI document for operations on notes and attempts, and the errors to expect. The examples for
# notes, and those for attempts, succeed in this order on an empty store; tests send them.

_ID: dict[str, Any] = {"id": 1}

NOTE_EXAMPLES: dict[str, dict[str, Any]] = {
    "nudge.memory_store": {
        "title": "The API uses Axum",
        "content": "The HTTP server is built with Axum 0.8.",
        "tier": "mid",
        "namespace": "my-app",
        "tags": ["rust", "web"],
        "priority": 6,
        "confidence": 1.0,
        "source": "api",
        "ttl_secs": 86_400,
    },
    "nudge.memory_bulk": {
        "memories": [
            {"title": "Sessions are in Redis", "content": "Port 6379.", "namespace": "my-app", "tags": ["redis"]},
            {"title": "Tokens are JWT", "content": "For 15 minutes.", "namespace": "my-app", "kind": "decision"},
        ]
    },
    "nudge.memory_recall": {"context": "auth flow jwt", "limit": 10},
    "nudge.memory_search": {"query": "built axum", "namespace": "my-app", "limit": 10},
    "nudge.memory_list": {"namespace": "my-app", "tier": "mid", "limit": 20, "offset": 0, "min_priority": 5},
    "nudge.memory_explain": {"query": "sessions in redis", "ids": [1], "include_pack_context": True},
    "nudge.assemble_context": {
        "query": "are sessions kept in redis?",
        "context_types": ["values", "notes"],
        "limit": 5,
    },
    "nudge.memory_get": _ID,
    "nudge.memory_update": {"id": 1, "content": "Axum 0.9 since May.", "priority": 8},
    "nudge.memory_link": {"source_id": 1, "target_id": 2, "relation": "related_to"},
    "nudge.memory_get_links": _ID,
    "nudge.memory_delete_link": {"source_id": 1, "target_id": 2},
    "nudge.memory_resolve": {"winner_id": 3, "loser_id": 2},
    "nudge.memory_promote": _ID,
    "nudge.memory_stats": {},
    "nudge.memory_namespaces": {},
    "nudge.memory_capabilities": {},
    "nudge.memory_auto_consolidate": {"min_count": 3, "dry_run": True},
    "nudge.memory_consolidate": {
        "ids": [1, 2],
        "title": "The server",
        "summary": "Axum, with sessions in Redis.",
        "namespace": "my-app",
        "tier": "long",
    },
    "nudge.memory_archive_list": {"limit": 20},
    "nudge.memory_archive_restore": {"id": 2},
    "nudge.memory_archive_stats": {},
    "nudge.memory_forget": {"pattern": "redis", "tier": "mid", "dry_run": True},
    "nudge.memory_gc": {},
    "nudge.memory_delete": {"id": 2},
    "nudge.memory_archive_purge": {"older_than_days": 30},
    "nudge.memory_import": {
        "memories": [
            {"id": 71, "title": "Port of the API", "content": "8080.", "namespace": "my-app", "tier": "long"},
            {"id": 72, "title": "Ports", "content": "Services are on 8080 to 8089.", "namespace": "my-app"},
        ],
        "links": [{"source_id": 71, "target_id": 72, "relation": "derived_from"}],
    },
    "nudge.memory_export": {"namespace": "my-app"},
    "nudge.memory_proposals": {"kind": "tags", "limit": 20},
}

JOURNAL_EXAMPLES: dict[str, dict[str, Any]] = {
    "nudge.start_session": {},
    "nudge.start_ghap": {
        "goal": "make login fast",
        "hypothesis": "the session lookup has no index",
        "action": "add an index on sessions.user_id",
        "prediction": "make bench passes",
        "domain": "optimization",
        "strategy": "check-assumptions",
        "confidence": 0.8,
        "session_id": "s-1",
    },
    "nudge.update_ghap": {"id": 1, "hypothesis": "the pool is too small", "note": "it has one", "session_id": "s-1"},
    "nudge.get_active_ghap": {"session_id": "s-1"},
    "nudge.increment_tool_count": {"session_id": "s-1"},
    "nudge.should_check_in": {"frequency": 10, "session_id": "s-1"},
    "nudge.reset_tool_count": {"session_id": "s-1"},
    "nudge.get_orphaned_ghap": {"session_id": "s-2"},
    "nudge.resolve_ghap": {
        "id": 1,
        "status": "falsified",
        "result": "make bench fails as before",
        "surprise": "the time goes into TLS",
        "root_cause": {"category": "wrong_assumption", "description": "nobody had measured"},
        "lesson": {"what_worked": "a profile", "takeaway": "measure before you add an index"},
        "session_id": "s-1",
    },
    "nudge.list_ghap_entries": {"limit": 20, "domain": "optimization", "outcome": "falsified"},
    "nudge.journal_calibration": {},
}
MODEL_EXAMPLES: dict[str, dict[str, Any]] = {
    "nudge.memory_expand_query": {"query": "flaky login test"},
    "nudge.memory_auto_tag": _ID,
    "nudge.memory_detect_contradiction": {"id_a": 1, "id_b": 2},
    "nudge.memory_proposal_accept": _ID,
    "nudge.memory_proposal_undo": _ID,
    "nudge.memory_proposal_reject": _ID,
}
"""They succeed in this order where there are two notes that contradict each other, and a language model says so."""
EXAMPLES = {**NOTE_EXAMPLES, **JOURNAL_EXAMPLES, **MODEL_EXAMPLES}

_CAN_BE_INVALID = frozenset(
    f"nudge.memory_{name}"
    for name in (
        *("store", "bulk", "recall", "explain", "search", "list", "get", "update", "link", "get_links", "resolve"),
        *("delete_link", "promote", "import", "export", "proposals"),
        *("auto_consolidate", "consolidate", "archive_list", "archive_restore", "forget", "delete", "archive_purge"),
    )
) | (JOURNAL_EXAMPLES.keys() - {"nudge.start_session"} | MODEL_EXAMPLES.keys())
_CAN_BE_MISSING = (
    frozenset(
        f"nudge.memory_{name}"
        for name in (
            *("get", "update", "link", "get_links", "delete_link", "resolve", "promote", "consolidate"),
            *("archive_restore", "delete"),
        )
    )
    | {"nudge.update_ghap", "nudge.resolve_ghap", "nudge.get_orphaned_ghap"}
    | (MODEL_EXAMPLES.keys() - {"nudge.memory_expand_query"})
)
_CAN_CONFLICT = frozenset(f"nudge.memory_{name}" for name in ("update", "consolidate", "archive_restore")) | {
    *("nudge.start_ghap", "nudge.update_ghap", "nudge.resolve_ghap", "nudge.get_orphaned_ghap"),
    *MODEL_EXAMPLES,
}
_CAN_BE_SILENT = frozenset(("nudge.memory_expand_query", "nudge.memory_auto_tag", "nudge.memory_detect_contradiction"))

_REFUSING = {400: _CAN_BE_INVALID, 404: _CAN_BE_MISSING, 409: _CAN_CONFLICT, 503: _CAN_BE_SILENT}

REFUSALS: dict[str, list[int]] = {
    name: [status for status, names in _REFUSING.items() if name in names] for name in EXAMPLES
}
"""The HTTP statuses of the errors that each operation can answer with."""
