"""REST: `/api/v1/...`, made from the table of operations, and the OpenAPI document that describes it.

`match` finds the operation behind a path, `params` reads its parameters, `status_of` gives an error its HTTP status.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote

from nudge import __version__, strict_json
from nudge.errors import Invalid, NudgeError
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


def match(path: str) -> dict[str, tuple[Operation, dict[str, str]]]:
    """By method, the operations that serve this path, each with the names in it.

    The path is split before it is decoded: a name may hold a `%2F`.
    """
    parts = path.split("/")
    matched: dict[str, tuple[Operation, dict[str, str]]] = {}
    for operation in OPERATIONS.values():
        method, template = operation.route
        names = template.split("/")
        if len(names) != len(parts) or not all(n == p or n[:1] == "{" for n, p in zip(names, parts, strict=True)):
            continue
        named = {
            n[1:-1]: unquote(p, errors="surrogateescape") for n, p in zip(names, parts, strict=True) if n[:1] == "{"
        }
        matched.setdefault(method, (operation, named))
    return matched


def params(operation: Operation, named: Mapping[str, str], query: str, body: object) -> dict[str, Any]:
    """One parameter object from path, query string and body; where they disagree, the path wins."""
    if body is not None and not isinstance(body, dict):
        raise Invalid("must be a JSON object", field="body")
    properties = _properties(operation)
    given: dict[str, Any] = {}
    for name, raw in parse_qsl(query, keep_blank_values=True, errors="surrogateescape"):
        value = _parse(name, raw, properties.get(name, {}))
        before = given.get(name)
        given[name] = [*before, *value] if isinstance(before, list) and isinstance(value, list) else value
    return {**given, **(body or {}), **named}


@cache
def _properties(operation: Operation) -> dict[str, Any]:
    properties: dict[str, Any] = schema_of(operation.params).get("properties", {})
    return properties


def _parse(name: str, raw: str, schema: Mapping[str, Any]) -> Any:
    """A query string has text only; the parameter's schema says its type. A list has commas, or is given repeatedly."""
    kind = schema.get("type")
    if kind == "array":
        return raw.split(",")
    if kind in ("integer", "number", "boolean", "object"):
        try:
            return strict_json.decode(raw.encode("utf-8", "surrogatepass"))
        except strict_json.JsonError:
            raise Invalid(f"must be JSON ({kind})", field=name) from None
    return raw


def openapi() -> dict[str, Any]:
    """The document that describes every route, its parameters and its answer."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS.values():
        verb, template = operation.route
        paths.setdefault(template, {})[verb.lower()] = _describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Nudge", "version": __version__},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": paths,
    }


def _describe(operation: Operation) -> dict[str, Any]:
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
        described["requestBody"] = {"content": {"application/json": {"schema": _body_schema(schema, template)}}}
    return described


def _body_schema(schema: Mapping[str, Any], template: str) -> dict[str, Any]:
    """The parameters that the path does not name."""
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
