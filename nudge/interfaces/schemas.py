"""The JSON schemas of the parameters and the result of an operation, for tool lists and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from nudge.core.call import UNLISTED


def schema_of(model: type[BaseModel], *, for_tools: bool = False) -> dict[str, Any]:
    """Return the model's JSON schema without titles and other decoration: an agent reads every character of it in every
    session. `for_tools` leaves out the fields marked `x-unlisted`."""
    schema = model.model_json_schema()
    fields = schema.get("properties", {})
    for name in [name for name, field in fields.items() if for_tools and UNLISTED in field]:
        del fields[name]
    slim = _slim(schema, schema.pop("$defs", {}))
    assert isinstance(slim, dict)
    return slim


def _slim(node: Any, shared: Mapping[str, Any]) -> Any:
    """Return a part of a schema without decoration. `$ref` is replaced by the definition in `shared`: a reference would
    lead nowhere once the schema is part of a larger document."""
    if isinstance(node, list):
        return [_slim(item, shared) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _slim(shared[node["$ref"].rpartition("/")[2]], shared)
    slim = {key: _slim(value, shared) for key, value in node.items() if not _is_decoration(key, value)}
    may_be_left_out = slim.get("default", 0) is None
    if may_be_left_out:
        del slim["default"]
    options = [option for option in slim.get("anyOf", ()) if option != {"type": "null"}]
    if options and may_be_left_out:
        slim["anyOf"] = options
    if len(options) == 1 and (may_be_left_out or len(slim["anyOf"]) == 1):
        del slim["anyOf"]
        slim = {**options[0], **slim}
    return slim


def _is_decoration(key: str, value: Any) -> bool:
    """Whether a member of a schema can be left out. `title` is decoration when it is text; otherwise it is a property
    of that name."""
    return key in ("additionalProperties", UNLISTED) or (key == "title" and isinstance(value, str))
