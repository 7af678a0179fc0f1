"""REST: `/api/v1/...`, made from the table of operations, and the OpenAPI document that describes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote

from nudge import __version__
from nudge.errors import Invalid, NudgeError
from nudge.server import wire
from nudge.server.operations import OPERATIONS, Operation
from nudge.server.schemas import schema_of

PREFIX = "/api/v1/"
OPENAPI = "/api/v1/openapi.json"

_STATUS = {
    "E_NOT_FOUND": 404,
    "E_CONFLICT": 409,
    "E_QUOTA": 429,
    "E_UNAVAILABLE": 503,
    "E_STORAGE": 507,
    "E_INTERNAL": 500,
}


def status_of(error: NudgeError) -> int:
    return _STATUS.get(error.reason, 400)


def match(method: str, path: str) -> tuple[Operation, dict[str, str]] | None:
    """The operation that serves this request line, with what the path names. It is decoded last: a name may hold a
    `%2F`."""
    parts = path.split("/")
    for operation in OPERATIONS.values():
        verb, template = operation.route
        names = template.split("/")
        if (
            verb == method
            and len(names) == len(parts)
            and all(n == p or n[:1] == "{" for n, p in zip(names, parts, strict=True))
        ):
            return operation, {
                n[1:-1]: unquote(p, errors="surrogateescape") for n, p in zip(names, parts, strict=True) if n[:1] == "{"
            }
    return None


def params(
    operation: Operation, named: Mapping[str, str], query: Iterable[tuple[str, str]], body: object
) -> dict[str, Any]:
    """One parameter object from path, query string and body; where they disagree, the path wins."""
    if body is not None and not isinstance(body, dict):
        raise Invalid("must be a JSON object", field="body")
    properties = _properties(operation)
    asked: dict[str, Any] = {}
    for name, raw in query:
        typed = _typed(name, raw, properties.get(name, {}))
        before = asked.get(name)
        asked[name] = [*before, *typed] if isinstance(before, list) and isinstance(typed, list) else typed
    return {**asked, **(body or {}), **named}


@cache
def _properties(operation: Operation) -> dict[str, Any]:
    properties: dict[str, Any] = schema_of(operation.params).get("properties", {})
    return properties


def _typed(name: str, raw: str, schema: Mapping[str, Any]) -> Any:
    """A query string has text only; what the parameter wants to be is in its schema. A list has commas, or is given
    repeatedly."""
    kind = schema.get("type")
    if kind == "array":
        return raw.split(",")
    if kind in ("integer", "number", "boolean", "object"):
        try:
            return wire.decode(raw.encode("utf-8", "surrogatepass"))
        except wire.WireError:
            raise Invalid(f"must be JSON ({kind})", field=name) from None
    return raw


def openapi() -> dict[str, Any]:
    """The document that describes every route, its parameters and its answer."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS.values():
        verb, template = operation.route
        paths.setdefault(template, {})[verb.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Nudge", "version": __version__},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": paths,
    }


def _described(operation: Operation) -> dict[str, Any]:
    verb, template = operation.route
    schema = schema_of(operation.params)
    described: dict[str, Any] = {
        "operationId": operation.tool,
        "summary": operation.summary,
        "parameters": [
            _parameter(name, field, schema, template)
            for name, field in schema.get("properties", {}).items()
            if verb in ("GET", "DELETE") or f"{{{name}}}" in template
        ],
        "responses": {
            "200": {"description": "done", "content": {"application/json": {"schema": schema_of(operation.result)}}},
            "default": {"description": 'refused: {"error": {code, message, data}}'},
        },
    }
    if verb in ("POST", "PUT"):
        described["requestBody"] = {"content": {"application/json": {"schema": _body(schema, template)}}}
    return described


def _body(schema: Mapping[str, Any], template: str) -> dict[str, Any]:
    """What the path does not name already."""
    fields = {name: field for name, field in schema.get("properties", {}).items() if f"{{{name}}}" not in template}
    return {
        "type": "object",
        "properties": fields,
        "required": [name for name in schema.get("required", ()) if name in fields],
    }


def _parameter(name: str, field: Mapping[str, Any], schema: Mapping[str, Any], template: str) -> dict[str, Any]:
    place = "path" if f"{{{name}}}" in template else "query"
    described = {"name": name, "in": place, "required": place == "path" or name in schema.get("required", ())}
    if field.get("type") == "object":
        return {**described, "content": {"application/json": {"schema": field}}}
    commas = {"style": "form", "explode": False} if field.get("type") == "array" else {}
    return {**described, **commas, "schema": field}
