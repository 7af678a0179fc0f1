"""MCP without the SDK: the handshake from package data, tool calls read and answered. Standard library only.

The SDK takes 0.6 s to import. `handshake.json` holds what it answers to `initialize`, `server/discover` and
`tools/list` (`make handshake` writes it), and a tool call is an operation whose result is put into the envelope that
the SDK makes. Only messages whose shape is fully recognized are answered here; all others go to the SDK, which also
says what is wrong with them. A contract test compares both.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache

from nudge import __version__
from nudge.clients import registry
from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.core.text import escape_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Message = dict[str, Any]

HANDSHAKE = os.path.join(os.path.dirname(__file__), "handshake.json")

PROTOCOL_META = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_META = "io.modelcontextprotocol/clientCapabilities"
_CLIENT_META = "io.modelcontextprotocol/clientInfo"
_SERVER_META = "io.modelcontextprotocol/serverInfo"
_RESERVED = "io.modelcontextprotocol/"
_INFO_TEXTS = frozenset(("name", "version", "title", "description", "websiteUrl"))
_ENVELOPE = frozenset(("jsonrpc", "id", "method", "params"))


@lru_cache(maxsize=1)
def handshake() -> dict[str, Any]:
    """The package data: `initialize`, `discover`, `list` (results without their tools), `prompts`, `versions` and
    `tools`."""
    with open(HANDSHAKE, encoding="utf-8") as file:
        data: dict[str, Any] = json.load(file)
    data["server"]["version"] = __version__
    return data


class McpToolCall:
    """A `tools/call` that needs no SDK: the operation's name and its parameters."""

    __slots__ = ("arguments", "operation")

    def __init__(self, operation: str, arguments: dict[str, Any]) -> None:
        self.operation, self.arguments = operation, arguments


# Reading messages


def read_tool_call(message: Any) -> McpToolCall | None:
    """Return the call of a known tool; None for every message that the SDK has to answer."""
    if not _is_request(message, "tools/call"):
        return None
    params = message.get("params")
    if not isinstance(params, dict) or not params.keys() <= {"name", "arguments", "_meta"}:
        return None
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, dict | None) or not _knows_meta(params.get("_meta")):
        return None
    operation = find_operation(name)
    return None if operation is None else McpToolCall(operation, arguments or {})


def read_client(message: Any) -> str | None:
    """Return the sender's name: from `initialize`, or from the metadata that every request has since 2026-07-28."""
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(params, dict):
        return None
    meta = params.get("_meta")
    info = params.get("clientInfo") or (meta.get(_CLIENT_META) if isinstance(meta, dict) else None)
    name = info.get("name") if isinstance(info, dict) else None
    return name[: limits.MAX_CLIENT_CHARS] if isinstance(name, str) and name else None


def read_session(message: Any) -> str | None:
    """Return the session that the sender names in the metadata of a request; None when it names none."""
    params = message.get("params") if isinstance(message, dict) else None
    return registry.call_session(params.get("_meta")) if isinstance(params, dict) else None


def is_notification(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and "id" not in message
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
    )


def cancelled_id(message: Mapping[str, Any]) -> str | int | None:
    """Return the id of the request that a notification cancels; None for any other notification."""
    params = message.get("params")
    if message.get("method") != "notifications/cancelled" or not isinstance(params, dict):
        return None
    request_id = params.get("requestId")
    return request_id if isinstance(request_id, str | int) else None


def _is_request(message: Any, method: str) -> bool:
    if not isinstance(message, dict) or message.get("method") != method or message.get("jsonrpc") != "2.0":
        return False
    request_id = message.get("id")
    known_id = isinstance(request_id, str) or (isinstance(request_id, int) and not isinstance(request_id, bool))
    return known_id and message.keys() <= _ENVELOPE


def is_modern(message: Any) -> bool:
    """Whether a request is of protocol version 2026-07-28 or later: only those name their version in `_meta`."""
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and PROTOCOL_META in meta


def _knows_meta(meta: Any) -> bool:
    """Whether `_meta` needs no SDK: members of vendors are accepted, those of the protocol only in a known shape."""
    if meta is None:
        return True
    if not isinstance(meta, dict):
        return False
    token = meta.get("progressToken", 0)
    if isinstance(token, bool) or not isinstance(token, str | int):
        return False
    reserved = {name for name in meta if name.startswith(_RESERVED)}
    if not reserved:
        return True
    return (
        reserved <= {PROTOCOL_META, _CAPABILITIES_META, _CLIENT_META}
        and meta.get(PROTOCOL_META) == handshake()["modern"]
        and _knows_capabilities(meta.get(_CAPABILITIES_META))
        and (_CLIENT_META not in meta or _knows_client(meta[_CLIENT_META]))
    )


def _knows_capabilities(capabilities: Any) -> bool:
    """Whether these are nested objects with no value in them but `listChanged`."""
    return isinstance(capabilities, dict) and all(
        isinstance(part, bool) if name == "listChanged" else _knows_capabilities(part)
        for name, part in capabilities.items()
    )


def _knows_client(info: Any) -> bool:
    return (
        isinstance(info, dict)
        and {"name", "version"} <= info.keys() <= _INFO_TEXTS
        and all(isinstance(text, str) for text in info.values())
    )


# Answers


def tool_answer(
    message: Mapping[str, Any],
    result: Any,
    *,
    is_error: bool = False,
    encode: Callable[[Any], bytes] | None = None,
    render: Callable[[Message], str | None] | None = None,
) -> Message:
    """Return the answer to a tool call. A result that is no object is wrapped into one: structured content must be one.
    Invisible characters are escaped: stored text is untrusted.

    `encode` makes the JSON text of the result; the default is the standard library's. `render` makes another text than
    JSON; where it returns None, the text is JSON."""
    structured, text = visible_result(result, encode or _encode, render)
    return tool_envelope(message, structured, text, is_error=is_error)


def tool_envelope(message: Mapping[str, Any], structured: Message, text: str, *, is_error: bool = False) -> Message:
    """Return the answer to a tool call from a result and its text that `visible_result` has made."""
    envelope: Message = {"content": [{"type": "text", "text": text}], "isError": is_error}
    if is_modern(message):
        envelope |= {"resultType": "complete", "_meta": {_SERVER_META: handshake()["server"]}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": {**envelope, "structuredContent": structured}}


def visible_result(
    result: Any, encode: Callable[[Any], bytes], render: Callable[[Message], str | None] | None = None
) -> tuple[Message, str]:
    """Return a tool's result as an object, and its text: that of `render`, or JSON. Both are without invisible and
    bidirectional characters."""
    structured = result if isinstance(result, dict) else {"result": result}
    text = encode(structured).decode()
    visible = escape_json(structured, text)
    rendered = None if render is None else render(visible)
    if rendered is not None:
        return visible, rendered
    return visible, text if visible is structured else encode(visible).decode()


def _encode(value: Any) -> bytes:
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def tool_failure(message: Mapping[str, Any], error: Mapping[str, Any]) -> Message:
    """Return the answer to a tool call that failed; `error` is the error object of the wire. An error of the protocol
    (a negative code) becomes a JSON-RPC error, one of the operation a result with `isError`."""
    if error["code"] < 0:
        return {"jsonrpc": "2.0", "id": message.get("id"), "error": dict(error)}
    data = dict(error.get("data") or {})
    reason = data.pop("reason", None)
    structured = {"code": error["code"], "reason": reason, "message": error["message"], **data}
    return tool_answer(message, {"error": structured}, is_error=True)


_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))


def answer_handshake(message: Any, tools: str) -> Message | None:
    """Return the answer to `initialize`, `server/discover`, `tools/list`, `prompts/list` or `ping`; None when the SDK
    has to answer. `tools` is the choice of tools to list: see `choose_tools`."""
    method = message.get("method") if isinstance(message, dict) else None
    make = _HANDSHAKE.get(method) if isinstance(method, str) else None
    if make is None or not _is_request(message, str(method)):
        return None
    params = message.get("params")
    if not isinstance(params, dict | None):
        return None
    answer: Message = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        result = make(params or {}, tools)
    except Invalid as error:
        return {**answer, "error": error.to_json()}
    return None if result is None else {**answer, "result": result}


def _initialize(params: Message, _tools: str) -> Message | None:
    fields = {"protocolVersion", "capabilities", "clientInfo"}
    version = params.get("protocolVersion")
    if params.keys() != fields or not isinstance(version, str):
        return None
    if not _knows_capabilities(params["capabilities"]) or not _knows_client(params["clientInfo"]):
        return None
    data = handshake()
    spoken = version if version in data["versions"] else data["versions"][-1]
    return {**data["initialize"], "protocolVersion": spoken, "serverInfo": data["server"]}


def _discover(params: Message, _tools: str) -> Message | None:
    if not _is_modern_only(params):
        return None
    return {**handshake()["discover"], "_meta": {_SERVER_META: handshake()["server"]}}


def _list_tools(params: Message, tools: str) -> Message | None:
    listed = {"tools": [_tools()[name]["tool"] for name in choose_tools(tools)]} if _is_listing(params) else None
    if listed is None or not params:
        return listed
    return {**handshake()["list"], **listed, "_meta": {_SERVER_META: handshake()["server"]}}


def _list_prompts(params: Message, _tools: str) -> Message | None:
    """Answered here because clients ask for prompts at their start, which must not load the SDK."""
    if not _is_listing(params):
        return None
    prompts: Message = handshake()["prompts"]
    return {**prompts, "_meta": {_SERVER_META: handshake()["server"]}} if params else {"prompts": prompts["prompts"]}


def _is_listing(params: Message) -> bool:
    return not params or _is_modern_only(params)


def _is_modern_only(params: Message) -> bool:
    meta = params.get("_meta")
    return params.keys() == {"_meta"} and isinstance(meta, dict) and PROTOCOL_META in meta and _knows_meta(meta)


def _ping(params: Message, _tools: str) -> Message | None:
    return None if params else {}


_HANDSHAKE = {
    "initialize": _initialize,
    "server/discover": _discover,
    "tools/list": _list_tools,
    "prompts/list": _list_prompts,
    "ping": _ping,
}


class StdioClient:
    """The client at the other end of a pipe: its name, protocol version and choice of tools. `connection` is a random
    name for the pipe, used as the session of a client that names none."""

    __slots__ = ("connection", "name", "protocol", "tools")

    def __init__(self, tools: str = "default", name: str = "") -> None:
        self.tools, self.name = tools, name
        self.protocol = ""
        self.connection = f"stdio-{os.urandom(8).hex()}"

    def answer(self, message: Any) -> Message | None:
        """Store the client's name, and return the answer to its handshake; None when the message is for the server."""
        self.name = read_client(message) or self.name
        answer = answer_handshake(message, self.tools)
        if answer is not None:
            self.note_protocol(message, answer)
        return answer

    def note_protocol(self, message: Any, answer: Mapping[str, Any]) -> None:
        """Store the protocol version of the answer to `initialize`."""
        if isinstance(message, dict) and message.get("method") == "initialize" and "result" in answer:
            self.protocol = str(answer["result"].get("protocolVersion", ""))


# Tools


@lru_cache(maxsize=1)
def _tools() -> dict[str, Any]:
    """Return the tools by name, in the order of the table of operations. Each entry has `operation`, `group`, `listed`
    and `tool`."""
    return {entry["tool"]["name"]: entry for entry in handshake()["tools"]}


def find_operation(tool: str) -> str | None:
    """Return the name of the operation behind a tool; None when there is none. The operation's own name is accepted
    too, with dots or underscores."""
    return _operations().get(tool.replace(".", "_"))


@lru_cache(maxsize=1)
def _operations() -> dict[str, str]:
    tools = _tools()
    by_operation = {entry["operation"].replace(".", "_"): entry["operation"] for entry in tools.values()}
    return {**by_operation, **{name: entry["operation"] for name, entry in tools.items()}}


def choose_tools(choice: str) -> list[str]:
    """Return the names of the tools to list: `choice` is `default`, `all`, or groups and names separated by commas.
    Raises Invalid for an unknown word. Tools that are not listed stay callable."""
    tools = _tools()
    if choice in ("all", "default"):
        return [name for name, entry in tools.items() if choice == "all" or entry["listed"]]
    return list(dict.fromkeys(name for word in choice.split(",") for name in _named(word.strip(), tools)))


def _named(word: str, tools: Mapping[str, Any]) -> list[str]:
    """`hints` is a group; `nudge_get_hint`, `nudge.get_hint` and `get_hint` are the same tool."""
    if group := [name for name, entry in tools.items() if entry["group"] == word]:
        return group
    bare = word.replace(".", "_").removeprefix("nudge_")
    if tool := next((name for name in (f"nudge_{bare}", bare) if name in tools), None):
        return [tool]
    names = ", ".join(name.removeprefix("nudge_") for name in tools)
    groups = ", ".join(sorted({entry["group"] for entry in tools.values()}))
    raise Invalid(f"there is no {word[: limits.MAX_NAME_CHARS]!a}; groups: {groups}; tools: {names}", field="tools")
