"""JSON-RPC 2.0: `POST /`, single and batch."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from nudge.errors import INTERNAL_ERROR, INVALID_REQUEST, WIRE_REASONS, HandingOver, NudgeError
from nudge.limits import MAX_BATCH
from nudge.usecases.app import App
from nudge.usecases.call import Call, EnvNeeded

_log = logging.getLogger(__name__)


async def answer(app: App, payload: object, call: Call) -> Any:
    """The response object, a list of them, or None when nothing wants an answer."""
    if not isinstance(payload, list):
        return await _answer_one(app, payload, call)
    if not payload or len(payload) > MAX_BATCH:
        return error_response(None, INVALID_REQUEST, f"Invalid request: a batch has 1 to {MAX_BATCH} calls")
    if sum(_is_export(item) for item in payload) > 1:
        return error_response(
            None, INVALID_REQUEST, "Invalid request: a batch has one export at most, since each may be large"
        )
    responses = [await _answer_one(app, item, _numbered(call, index)) for index, item in enumerate(payload)]
    return [response for response in responses if response is not None] or None


def _is_export(item: object) -> bool:
    return isinstance(item, dict) and item.get("method") in ("nudge.export", "nudge.export_all")


def _numbered(call: Call, index: int) -> Call:
    return replace(call, once=f"{call.once}:{index}") if call.once else call


async def _answer_one(app: App, message: object, call: Call) -> dict[str, Any] | None:
    if not _is_request(message):
        rule = "Invalid request: needs jsonrpc 2.0, a method, and an id that is text or a number"
        return error_response(id_of(message), INVALID_REQUEST, rule)
    assert isinstance(message, dict)
    response = await _execute(app, message, call)
    return response if "id" in message else None


def _is_request(message: object) -> bool:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        return False
    return message.get("id") is None or id_of(message) is not None


async def _execute(app: App, message: dict[str, Any], call: Call) -> dict[str, Any]:
    request_id = message.get("id")
    try:
        result = await app.execute(message["method"], message.get("params", {}), call)
    except (EnvNeeded, HandingOver):
        raise
    except NudgeError as error:
        return refusal(request_id, error)
    except Exception:
        _log.exception("operation failed")
        return error_response(request_id, INTERNAL_ERROR, "Internal error; the server's log has the details")
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def refusal(request_id: object, error: NudgeError) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": error.to_wire()}


def id_of(message: object) -> str | float | None:
    """What an answer to this message must carry, or its sender would wait for ever; None where it has no id that could
    be one."""
    request_id = message.get("id") if isinstance(message, dict) else None
    return request_id if isinstance(request_id, str | int | float) and not isinstance(request_id, bool) else None


def error_response(request_id: object, code: int, message: str) -> dict[str, Any]:
    """What JSON-RPC itself refuses; it has a reason too, like every other error."""
    return {
        "jsonrpc": "2.0",
        "id": request_id,
        "error": {"code": code, "message": message, "data": {"reason": WIRE_REASONS[code]}},
    }
