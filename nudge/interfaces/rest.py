"""REST: `/api/v1/...`, made from the table of operations, and the OpenAPI document that describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nudge import __version__
from nudge.errors import Invalid, NudgeError
from nudge.interfaces.mcp import schema_of
from nudge.service.operations import OPERATIONS, Operation

PREFIX = "/api/v1/"
OPENAPI = "/api/v1/openapi.json"

_STATUS = {
    "E_NOT_FOUND": 404, "E_CONFLICT": 409, "E_QUOTA": 429, "E_UNAVAILABLE": 503, "E_STORAGE": 507, "E_INTERNAL": 500,
}  # fmt: skip


def status_of(error: NudgeError) -> int:
    return _STATUS.get(error.reason, 400)


def match(method: str, path: str) -> tuple[Operation, dict[str, str]] | None:
    """The operation that serves this request line, with what the path names."""
    parts = path.split("/")
    for operation in OPERATIONS.values():
        verb, template = operation.route
        names = template.split("/")
        if verb == method and len(names) == len(parts) and all(n == p or n[:1] == "{" for n, p in zip(names, parts, strict=True)):
            return operation, {n[1:-1]: p for n, p in zip(names, parts, strict=True) if n[:1] == "{"}
    return None


def params(operation: Operation, named: Mapping[str, str], query: Mapping[str, str], body: object) -> dict[str, Any]:
    """One parameter object from path, query string and body; where they disagree, the path wins."""
    if body is not None and not isinstance(body, dict):
        raise Invalid("must be a JSON object", field="body")
    properties = schema_of(operation.params)["properties"]
    asked = {name: _typed(name, raw, properties.get(name, {})) for name, raw in query.items()}
    return {**asked, **(body or {}), **named}


def _typed(name: str, raw: str, schema: Mapping[str, Any]) -> Any:
    """A query string has text only; what the parameter wants to be is in its schema."""
    kind = schema.get("type")
    if kind == "array":
        return raw.split(",")
    if kind in ("integer", "number", "boolean", "object"):
        try:
            return json.loads(raw)
        except ValueError:
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
        "parameters": [_parameter(name, field, schema, template) for name, field in schema.get("properties", {}).items()
                       if verb in ("GET", "DELETE") or f"{{{name}}}" in template],
        "responses": {"200": {"description": "done", "content": {"application/json": {"schema": schema_of(operation.result)}}},
                      "default": {"description": "refused: {\"error\": {code, message, data}}"}},
    }  # fmt: skip
    if verb in ("POST", "PUT"):
        described["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return described


def _parameter(name: str, field: Mapping[str, Any], schema: Mapping[str, Any], template: str) -> dict[str, Any]:
    place = "path" if f"{{{name}}}" in template else "query"
    return {"name": name, "in": place, "required": place == "path" or name in schema.get("required", ()), "schema": field}
