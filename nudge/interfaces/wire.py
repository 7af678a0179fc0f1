"""Calls over the private socket, from CLI, hooks and PROXYs: parsed and executed here; `nudge.process.wire_server`
reads and writes the lines."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_args

from nudge.core import limits, strict_json
from nudge.core.app import App
from nudge.core.call import Call, EnvNeeded, Interface
from nudge.core.context import NO_CONTEXT, Context
from nudge.core.errors import (
    INTERNAL_ERROR,
    INTERNAL_MESSAGE,
    Conflict,
    HandingOver,
    Invalid,
    NudgeError,
    protocol_error,
)
from nudge.interfaces.mcp import visible_result
from nudge.interfaces.mcp_server import McpCaller, McpServer, run_with_env, text_renderer
from nudge.interfaces.operations import OPERATIONS
from nudge.process import wire as protocol

_log = logging.getLogger(__name__)
_INTERFACES = get_args(Interface)
_UNKNOWN_CALLER = McpCaller(Call())


class IpcHandler:
    """Handles calls for one application. `yield_role` decides about a successor's request for the role."""

    def __init__(
        self, app: App, mcp: McpServer, yield_role: Callable[[Mapping[str, Any]], bool] = lambda _asked: False
    ) -> None:
        self._app, self._mcp, self._yield_role = app, mcp, yield_role

    def is_read(self, op: str) -> bool:
        operation = OPERATIONS.get(op)
        return operation is not None and operation.effect == "read"

    async def answer(self, call: dict[str, Any], *, env_asked: bool) -> dict[str, Any]:
        """Return the answer without its id. Never raises; an unexpected exception is logged, not sent."""
        try:
            caller = read_caller(call.get("caller"), call.get("once"))
            op, params = call["op"], call.get("params", {})
            run = partial(self._result, op, params)
            # A caller is asked once: what it turns out to need after that counts as unset.
            result = await (run_with_env(run, caller, dict.fromkeys) if env_asked else run(caller))
            return _with_text(op, params, result) if caller.wants_text else {"result": result}
        except EnvNeeded as needed:
            return {"need_env": needed.names}
        except HandingOver as error:
            return {"retry": error.message}
        except NudgeError as error:
            return {"error": error.to_json()}
        except Exception:
            _log.exception("a call failed")
            return {"error": protocol_error(INTERNAL_ERROR, INTERNAL_MESSAGE)}

    async def _result(self, op: str, params: Any, caller: McpCaller) -> Any:
        if op == protocol.MCP:
            if not await self._mcp.can_answer(params, limits.LOAD_TIMEOUT):
                raise HandingOver("the server is still loading")
            return await self._mcp.answer(params, caller)
        if op == protocol.ROLE:
            return self._answer_role(params)
        return await self._app.execute(op, params, caller.call)

    def _answer_role(self, params: Any) -> dict[str, Any]:
        if not isinstance(params, dict) or not self._yield_role(params):
            raise Conflict("this server keeps its role")
        return {"yielding": True}


def _with_text(op: str, params: Any, result: Any) -> dict[str, Any]:
    """Return the answer with the text that the operation makes of its result, if it makes one. The result is encoded
    here, to see whether it has invisible characters, and not again for the line."""
    render = text_renderer(op, params)
    if render is None:
        return {"result": result}
    visible, encoded = visible_result(result, strict_json.encode)
    text = render(visible)
    return {"result": protocol.JsonText(encoded.encode()), **({} if text is None else {"text": text})}


def read_caller(raw: object, request_id: object) -> McpCaller:
    """Parse the envelope's `caller` and `once`. Raises Invalid, which names the field."""
    if raw is None and request_id is None:
        return _UNKNOWN_CALLER
    raw = {} if raw is None else raw
    if not isinstance(raw, dict):
        raise Invalid("must be an object", field="caller")
    interface = raw.get("door", "http")
    if interface not in _INTERFACES:
        raise Invalid(f"must be one of {', '.join(_INTERFACES)}", field="caller.door")
    deadline = raw.get("deadline")
    if deadline is not None and (isinstance(deadline, bool) or not isinstance(deadline, int | float)):
        raise Invalid("must be a number", field="caller.deadline")
    context = raw.get("context")
    call = Call(
        interface=interface,
        client=_text(raw.get("client"), "caller.client", limits.MAX_CLIENT_CHARS),
        context=NO_CONTEXT if context is None else Context.parse(context, "caller.context"),
        env=_env(raw.get("env")),
        deadline=deadline,
        request_id=_text(request_id, "once", limits.MAX_REQUEST_ID_CHARS),
        session=_text(raw.get("session"), "caller.session", limits.MAX_SESSION_ID_CHARS),
        connection=_text(raw.get("connection"), "caller.connection", limits.MAX_SESSION_ID_CHARS),
        client_process=_process(raw.get("client_process")),
    )
    protocol_version = _text(raw.get("protocol"), "caller.protocol", limits.MAX_CLIENT_CHARS)
    tools = _text(raw.get("tools"), "caller.tools", limits.KIB) or "default"
    return McpCaller(call, protocol_version, tools, wants_text=_flag(raw.get("text"), "caller.text"))


def _text(raw: object, field: str, most: int) -> str | None:
    if raw is None or raw == "":
        return None
    if not isinstance(raw, str) or len(raw) > most:
        raise Invalid(f"must be text of at most {most} characters", field=field)
    return raw


def _flag(raw: object, field: str) -> bool:
    if raw is not None and not isinstance(raw, bool):
        raise Invalid("must be true or false", field=field)
    return raw is True


def _process(raw: object) -> int | None:
    if raw is not None and (isinstance(raw, bool) or not isinstance(raw, int) or raw < 1):
        raise Invalid("must be a process id", field="caller.client_process")
    return raw


def _env(raw: object) -> dict[str, str | None] | None:
    """Parse `caller.env`. None: the caller cannot be asked for variables. An object: the values asked for so far."""
    if raw is None:
        return None
    if not isinstance(raw, dict) or not all(value is None or isinstance(value, str) for value in raw.values()):
        raise Invalid("must map names to text or null", field="caller.env")
    return raw
