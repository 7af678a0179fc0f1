"""Strict JSON, with the standard library only: what two readers could understand in two ways is refused.

Every door decodes with it, PROXY included, so that a message means the same wherever it comes in.
"""

from __future__ import annotations

import json
import re
from math import isinf

from nudge import limits
from nudge.errors import INVALID_REQUEST, PARSE_ERROR, WIRE_REASONS, NudgeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


class WireError(NudgeError):
    """A message that never reaches an operation: not JSON, or JSON that is refused as ambiguous."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = WIRE_REASONS[code]


def refuse(message: str) -> NoReturn:
    raise WireError(INVALID_REQUEST, f"Invalid request: {message}")


def broken(what: str, at: int | None = None) -> WireError:
    what = what.removesuffix(" at").removesuffix(" starting")  # `json` leaves the end of its sentence to the reader
    return WireError(PARSE_ERROR, f"Parse error: {what}" if at is None else f"Parse error at {at}: {what}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        refuse_repeated_key()
    return members


def refuse_repeated_key() -> NoReturn:
    refuse("an object has the same key twice")


def integer(literal: str) -> int:
    if len(literal.lstrip("-")) > limits.MAX_INTEGER_DIGITS:
        refuse(f"an integer has more than {limits.MAX_INTEGER_DIGITS} digits")
    return int(literal)


def real(literal: str) -> float:
    if len(literal) > limits.MAX_NUMBER_CHARS:
        refuse(f"a number has more than {limits.MAX_NUMBER_CHARS} characters")
    number = float(literal)
    if isinf(number):
        refuse("a number is too large")
    return number


def _constant(name: str) -> NoReturn:
    raise broken(f"{name} is not JSON")


DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=integer, parse_float=real, parse_constant=_constant)

# An open string runs to the end: were it no match, each quote behind it would start another search of the whole rest.
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z|\\\Z)', re.DOTALL)
_TO_SQUARE = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def decode(body: bytes) -> Any:
    """Return the value in `body`; raises WireError."""
    if body.count(b"[") + body.count(b"{") > limits.MAX_JSON_DEPTH:
        _check_depth(body)
    try:
        value = DECODER.decode(body.decode())
    except json.JSONDecodeError as error:
        raise broken(error.msg, error.pos) from None
    except UnicodeDecodeError as error:
        raise broken("invalid UTF-8", error.start) from None
    if b"\\u" in body and SURROGATE.search(body):
        check_text(ENCODER.encode(value))
    return value


def _check_depth(body: bytes) -> None:
    """Each round removes the innermost pairs; what is left is too deep, or unclosed and reported by the parser."""
    brackets = _STRINGS.sub(b"", body).translate(_TO_SQUARE, _NOT_BRACKETS)
    for _ in range(limits.MAX_JSON_DEPTH):
        if not brackets:
            return
        brackets = brackets.replace(b"[]", b"")
    if brackets.startswith(b"[") and (b"]" in brackets or len(brackets) > limits.MAX_JSON_DEPTH):
        refuse_depth()


def refuse_depth() -> NoReturn:
    refuse(f"nested deeper than {limits.MAX_JSON_DEPTH}")


def check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        refuse("a string has half of a surrogate pair")
