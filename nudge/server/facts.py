"""The facts that travel in headers beside a request: who asks, from where, until when, under which id. Names in small
letters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nudge.context import NO_CONTEXT, Context
from nudge.errors import Invalid
from nudge.limits import MAX_REQUEST_ID_CHARS
from nudge.server import wire
from nudge.server.members import client_of
from nudge.usecases.call import Call, Door


@dataclass(frozen=True, slots=True)
class Facts:
    """What the transport of an MCP message knows beside its text."""

    call: Call
    protocol: str | None = None
    tools: str = "default"


def call_from(headers: Mapping[str, str], door: Door = "http") -> Call:
    return Call(
        door=door,
        once=_short(headers.get("nudge-request-id"), "Nudge-Request-Id"),
        deadline=_number(headers.get("nudge-deadline")),
        context=Context.parse(_object(headers["nudge-context"], "Nudge-Context"))
        if "nudge-context" in headers
        else NO_CONTEXT,
        env=_env(headers.get("nudge-env")),
        client=_short(client_of(headers), "Nudge-Client"),
    )


def facts_from(headers: Mapping[str, str]) -> Facts:
    return Facts(call_from(headers, "mcp"), headers.get("mcp-protocol-version"), headers.get("nudge-tools", "default"))


def _short(raw: str | None, field: str) -> str | None:
    if raw is not None and len(raw) > MAX_REQUEST_ID_CHARS:
        raise Invalid(f"must have at most {MAX_REQUEST_ID_CHARS} characters", field=field)
    return raw or None


def _number(raw: str | None) -> float | None:
    try:
        return None if raw is None else float(raw)
    except ValueError:
        raise Invalid("must be a number", field="Nudge-Deadline") from None


def _object(raw: str | None, field: str) -> dict[str, Any] | None:
    if raw is None:
        return None
    try:
        decoded = wire.decode(raw.encode("utf-8", "surrogateescape"))
    except wire.WireError:
        decoded = None
    if not isinstance(decoded, dict):
        raise Invalid("must be a JSON object", field=field)
    return decoded


def _env(raw: str | None) -> dict[str, str | None] | None:
    """`ask`: the caller can be asked; a JSON object: what it has been asked for."""
    if raw == "ask":
        return {}
    told = _object(raw, "Nudge-Env")
    if told is not None and not all(value is None or isinstance(value, str) for value in told.values()):
        raise Invalid("must map names to text or null", field="Nudge-Env")
    return told
