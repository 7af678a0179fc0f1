"""JSON-RPC 2.0: single requests, notifications and batches, for `POST /` of the HTTP server."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

from nudge.core import limits, strict_json
from nudge.core.app import App
from nudge.core.call import Call, EnvNeeded
from nudge.core.errors import (
    INTERNAL_ERROR,
    INTERNAL_MESSAGE,
    INVALID_REQUEST,
    HandingOver,
    NudgeError,
    Unavailable,
    protocol_error,
)

_log = logging.getLogger(__name__)
_NO_ROOM = Unavailable("not executed: the answers before it fill this batch; send it again")


async def answer(app: App, payload: object, call: Call) -> bytes | None:
    """Return the response, or the list of responses, as JSON; None when the request has only notifications."""
    if not isinstance(payload, list):
        response = await _answer_one(app, payload, call)
        return None if response is None else strict_json.encode(response)
    if not payload or len(payload) > limits.MAX_BATCH:
        message = f"Invalid request: a batch has 1 to {limits.MAX_BATCH} calls"
        return strict_json.encode(error_response(None, INVALID_REQUEST, message))
    return await _answer_batch(app, payload, call)


async def _answer_batch(app: App, batch: list[Any], call: Call) -> bytes | None:
    """Execute the calls in turn. Once the answers exceed MAX_BATCH_ANSWER_BYTES the rest is refused: sending more in
    one piece would hold the event loop."""
    encoded: list[bytes] = []
    size = 0
    for index, item in enumerate(batch):
        response: dict[str, Any] | None
        if size > limits.MAX_BATCH_ANSWER_BYTES:
            response = refusal(id_of(item), _NO_ROOM)
        else:
            response = await _answer_one(app, item, _number(call, index))
            await asyncio.sleep(0)  # 100 sets in one step hold the event loop for 36 ms, so for 2 ms
        if response is not None:
            encoded.append(strict_json.encode(response))
            size += len(encoded[-1])
    return b"[" + b",".join(encoded) + b"]" if encoded else None


def _number(call: Call, index: int) -> Call:
    """Give each call of a batch a request id of its own."""
    return replace(call, request_id=f"{call.request_id}:{index}") if call.request_id else call


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
        return error_response(request_id, INTERNAL_ERROR, INTERNAL_MESSAGE)
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def refusal(request_id: object, error: NudgeError) -> dict[str, Any]:
    """Return the response for an error of an operation."""
    return {"jsonrpc": "2.0", "id": request_id, "error": error.to_json()}


def id_of(message: object) -> str | float | None:
    """Return the id that the answer to this message must carry; None when it has none that JSON-RPC allows."""
    request_id = message.get("id") if isinstance(message, dict) else None
    return request_id if isinstance(request_id, str | int | float) and not isinstance(request_id, bool) else None


def error_response(request_id: object, code: int, message: str) -> dict[str, Any]:
    """Return the response for an error of JSON-RPC itself: `code` is one of `errors.WIRE_REASONS`."""
    return {"jsonrpc": "2.0", "id": request_id, "error": protocol_error(code, message)}
