"""Strict JSON in, compact JSON out, for every interface that reads bytes. Standard library only, to decode.

Beyond what the JSON standard refuses, it refuses duplicate keys, NaN and Infinity, numbers that a reader would round,
half of a surrogate pair, and more than `limits.MAX_JSON_DEPTH` levels: two readers may interpret each of them
differently."""

from __future__ import annotations

import json
import json.scanner
import re
from math import isinf

from nudge.core import limits
from nudge.core.errors import INVALID_REQUEST, PARSE_ERROR, WIRE_REASONS, NudgeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_SLICE = 4_096  # members of an object


class JsonError(NudgeError):
    """A message that reaches no operation: code -32700 when it is not JSON, -32600 when it is ambiguous JSON."""

    request_id: int | str | None = None
    """The id of the request, where it could be read."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = WIRE_REASONS[code]


def decode(body: bytes, *, depth: int = limits.MAX_JSON_DEPTH) -> Any:
    """Return the value in `body`, which has at most `depth` levels, or raise JsonError."""
    brackets = body.count(b"[") + body.count(b"{")
    decoder = _FAST
    if len(body) > limits.SMALL_JSON_BYTES and (values := brackets + body.count(b",")) > limits.FAST_JSON_VALUES:
        if values > limits.MAX_JSON_VALUES:
            refuse("too many values in one message; send it in parts")
        decoder = _INTERRUPTIBLE
    return _decode(body, brackets, decoder, depth)


def decode_file(content: bytes) -> Any:
    """`decode` for a file that the user names on the command line: as strict, with any number of values."""
    return _decode(content, content.count(b"[") + content.count(b"{"), _FAST, limits.MAX_JSON_DEPTH)


def decode_at(text: str, start: int, *, depth: int, before: int = 0, is_large: bool = False) -> tuple[Any, int]:
    """Return the value that begins at `start`, and where it ends; raise JsonError. For a reader of pieces: `before` is
    the number of characters in front of `text`, which positions in errors count; a value `is_large` when it takes more
    than SMALL_JSON_BYTES."""
    decoder = _FAST
    if is_large and text.count("[", start) + text.count("{", start) + text.count(",", start) > limits.FAST_JSON_VALUES:
        decoder = _INTERRUPTIBLE
    try:
        value, end = decoder.scan_once(text, start)
    except StopIteration as stopped:
        raise parse_error("Expecting value", before + stopped.value) from None
    except json.JSONDecodeError as error:
        raise parse_error(error.msg, before + error.pos) from None
    except RecursionError:
        refuse_depth()
    brackets = text.count("[", start, end) + text.count("{", start, end)
    if brackets > depth or _ESCAPED_SURROGATE.search(text, start, end):
        _check(value, depth)
    return value, end


def parse_error(reason: str, position: int) -> JsonError:
    # `json` ends some of its messages with a preposition for the position that it adds itself.
    reason = reason.removesuffix(" at").removesuffix(" starting")
    return JsonError(PARSE_ERROR, f"Parse error at {position}: {reason}")


def _decode(body: bytes, brackets: int, decoder: _Decoder, depth: int) -> Any:
    try:
        value = decoder.decode(body.decode())
    except json.JSONDecodeError as error:
        raise parse_error(error.msg, error.pos) from None
    except UnicodeDecodeError as error:
        raise JsonError(PARSE_ERROR, f"Parse error at {error.start}: invalid UTF-8") from None
    except RecursionError:
        refuse_depth()
    if brackets > depth or _SURROGATE.search(body):
        _check(value, depth)
    return value


async def decode_any(body: bytes) -> Any:
    """`decode` for the event loop: a large body goes to a worker thread."""
    if len(body) <= limits.SMALL_JSON_BYTES:
        return decode(body)
    import asyncio  # late: a PROXY has no event loop

    return await asyncio.to_thread(decode, body)


def encode(value: Any) -> bytes:
    """Return compact JSON in UTF-8. Raises ValueError for NaN and Infinity. Needs pydantic: only servers encode."""
    encoded = (_to_json or _load_to_json())(value)
    # Searching for one byte is ten times as fast as for a word, and most answers have neither letter.
    if (b"N" in encoded and b"NaN" in encoded) or (b"I" in encoded and b"Infinity" in encoded):
        _ENCODER.encode(value)
    return encoded


_to_json: Callable[[Any], bytes] | None = None


def _load_to_json() -> Callable[[Any], bytes]:
    """Import pydantic's encoder, which takes a quarter of the time of `json`, but writes NaN."""
    global _to_json
    from pydantic_core import to_json

    _to_json = to_json
    return to_json


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs if len(pairs) <= _SLICE else pairs[:_SLICE])
    for start in range(_SLICE, len(pairs), _SLICE):  # 90,000 in one step hold the interpreter for 11 ms, so for 6
        members.update(pairs[start : start + _SLICE])
    if len(members) != len(pairs):
        refuse("an object has the same key twice")
    return members


def _integer(literal: str) -> int:
    if len(literal.lstrip("-")) > limits.MAX_INTEGER_DIGITS:
        refuse(f"an integer has more than {limits.MAX_INTEGER_DIGITS} digits")
    return int(literal)


def _real(literal: str) -> float:
    if len(literal) > limits.MAX_NUMBER_CHARS:
        refuse(f"a number has more than {limits.MAX_NUMBER_CHARS} characters")
    number = float(literal)
    if isinf(number):
        refuse("a number is too large")
    return number


def _constant(name: str) -> NoReturn:
    raise JsonError(PARSE_ERROR, f"Parse error: {name} is not JSON")


class _Decoder(json.JSONDecoder):
    def __init__(self, scanner: Callable[[Any], Any]) -> None:
        super().__init__(object_pairs_hook=_object, parse_int=_integer, parse_float=_real, parse_constant=_constant)
        self.scan_once = scanner(self)

    def decode(self, text: str) -> Any:  # type: ignore[override]
        """Decode without the search for blanks before the value, where there are none."""
        try:
            value, end = self.scan_once(text, 0)
        except StopIteration:
            return super().decode(text)
        return value if end == len(text) or not text[end:].strip(" \t\n\r") else super().decode(text)


# The C scanner keeps the interpreter lock from start to end: 60 ms for 90,000 members of one object, in which no other
# thread runs. The scanner in Python takes ten times as long, but is interrupted every 5 ms.
_FAST = _Decoder(json.scanner.make_scanner)
_INTERRUPTIBLE = _Decoder(json.scanner.py_make_scanner)  # type: ignore[attr-defined]  # missing from the stubs only
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPED_SURROGATE = re.compile(_SURROGATE.pattern.decode())


def _check(value: Any, depth: int) -> None:
    """Refuse too many levels and lone surrogates, which the decoder lets pass. Level by level, without recursion."""
    level, texts = [value], []
    for _ in range(depth):
        inner: list[Any] = []
        for part in level:
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, dict):
                inner += part
                inner += part.values()
            elif isinstance(part, list):
                inner += part
        level = inner
    if any(isinstance(part, dict | list) for part in level):
        refuse_depth()
    texts += [part for part in level if isinstance(part, str)]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        refuse("a string has half of a surrogate pair")


def refuse_depth() -> NoReturn:
    refuse(f"nested deeper than {limits.MAX_JSON_DEPTH}")


def refuse(message: str) -> NoReturn:
    raise JsonError(INVALID_REQUEST, f"Invalid request: {message}")
