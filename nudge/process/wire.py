"""The private wire, version 1: one JSON object a line, both ways. Standard library only.

A client's first line is a hello, in one write with its first call; the server answers it with its own. Then:

    call    {"id", "op", "params", "once"?, "caller"?: {context, client, env, protocol, tools, door, deadline, text}}
    answer  {"id", "result", "text"?} | {"id", "error"} | {"id", "need_env": [names]} | {"id", "retry": why}

`need_env` and `retry` mean that nothing was applied. `text` is what a model reads in place of the result's JSON: it is
in the answer when `caller.text` is true and the operation makes such a text; the result is then the one that the text
was made from, without invisible characters. On loopback TCP both sides first prove that they know the token:
`{"nonce"}`, `{"nonce", "proof"}`, `{"proof"}`, server first, and the token itself is never sent.
"""

from __future__ import annotations

import os

from nudge import __version__
from nudge.core import limits, thin_json
from nudge.core.errors import INVALID_REQUEST, protocol_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

VERSION = 1
MCP, ROLE = "mcp", "role"
"""Calls that are not operations: a raw MCP message, and a successor's request for the role."""

LONG_OPERATIONS = frozenset(
    (
        *("nudge.backup", "nudge.purge", "nudge.record_many"),
        *("nudge.export", "nudge.import"),
        *("nudge.memory_auto_consolidate", "nudge.memory_export", "nudge.memory_gc", "nudge.memory_import"),
        "nudge.memory_sync",
        *("nudge.memory_expand_query", "nudge.memory_auto_tag", "nudge.memory_detect_contradiction"),
        *("nudge.team_join", "nudge.team_doctor"),  # they wait for the team's server
    )
)
"""Operations that may take longer than CALL_TIMEOUT: they have the deadline of their caller, and are not retried when
it has passed."""


class JsonText(bytes):
    """A value as JSON already, which is put into a line as it is."""

    __slots__ = ()


def timeout_of(op: str) -> float:
    """Return the seconds that one PRIMARY has for a call."""
    return limits.LONG_CALL_TIMEOUT if op in LONG_OPERATIONS else limits.CALL_TIMEOUT


def encode_value(value: Any) -> bytes:
    """Return compact JSON without a newline. Raises UnicodeEncodeError for text that is not UTF-8."""
    return thin_json.dumps(value).encode()


def encode(message: dict[str, Any]) -> bytes:
    """Return a message as one line."""
    return encode_value(message) + b"\n"


def client_hello(client: str, *, member: bool, differs: Sequence[str]) -> bytes:
    """Return the client's first line. A `member` keeps the session alive while its connection is open; `differs` are
    the settings of this process that PRIMARY does not use."""
    hello = {"hello": VERSION, "version": __version__, "pid": os.getpid(), "client": client, "member": member}
    return encode({**hello, "differs": list(differs)} if differs else hello)


def encode_call(call_id: int, op: str, params: bytes, request_id: str | None, caller: dict[str, Any]) -> bytes:
    """Return the line of a call. `params` is JSON text already: it is encoded once, however often the call is sent."""
    key = b"" if request_id is None else b',"once":' + encode_value(request_id)
    return b'{"id":%d,"op":%s,"params":%s%s,"caller":%s}\n' % (
        call_id,
        encode_value(op),
        params,
        key,
        encode_value(caller),
    )


IN_A_FILE = "for a larger import run: nudge import FILE, or nudge note import FILE"


def overlong(most: int) -> dict[str, Any]:
    return protocol_error(
        INVALID_REQUEST, f"Invalid request: a line has at most {most} bytes; larger imports go through a file"
    )


def proof(token: str, side: str, client_nonce: str, server_nonce: str, port: int, generation: str) -> str:
    """Return the proof that `side` knows the token. It is bound to this connection: a proof relayed from another port
    or made by an earlier server is wrong."""
    import hashlib
    import hmac

    statement = "\n".join((side, client_nonce, server_nonce, str(port), generation))
    # A nonce comes from a program that has proved nothing yet: it may hold half of a surrogate pair.
    return hmac.new(token.encode(), statement.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
