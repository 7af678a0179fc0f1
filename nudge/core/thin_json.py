"""`json.loads` and `json.dumps` for the thin path, and reading a field of what they return.

Importing `json` loads `re`, `enum` and `functools` and compiles patterns: 8 ms, two thirds of what a bare interpreter
takes. The C functions that it calls need none of that. Input that they do not accept is passed to `json` itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_BLANKS = " \t\n\r"


class _Decoding:
    """The attributes that the C scanner reads, with the defaults of `json.loads`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.__getitem__


def _refuse(value: Any) -> Any:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_compact: Any
_sorted: Any
_scan: Any
try:
    from _json import encode_basestring, encode_basestring_ascii, make_encoder, make_scanner

    # markers, default, encoder, indent, key_separator, item_separator, sort_keys, skipkeys, allow_nan
    _compact = make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, True)
    _sorted = make_encoder(None, _refuse, encode_basestring_ascii, None, ": ", ", ", True, False, True)
    _scan = make_scanner(_Decoding)  # type: ignore[arg-type,unused-ignore]  # reads attributes only
except (ImportError, AttributeError, TypeError):  # another interpreter, or a version with other parameters
    import json

    _compact = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).iterencode
    _sorted = json.JSONEncoder(check_circular=False, sort_keys=True).iterencode
    _scan = json.JSONDecoder().raw_decode


def loads(text: str | bytes) -> Any:
    """Return the value, or raise ValueError, as `json.loads` does."""
    try:
        content = (text if isinstance(text, str) else text.decode()).strip(_BLANKS)
        value, end = _scan(content, 0)
        if end == len(content):
            return value
    except (ValueError, StopIteration, SystemError):  # the last one is 3.11's, while `json.decoder` is not imported
        pass
    import json  # late: it makes the error message, and knows other encodings

    return json.loads(text)


def dumps(value: Any) -> str:
    """Return compact JSON in Unicode: `json.dumps(value, ensure_ascii=False, separators=(",", ":"))`."""
    return "".join(_compact(value, 0))


def dumps_sorted(value: Any) -> str:
    """Return the same ASCII text for equal values: `json.dumps(value, sort_keys=True)`."""
    return "".join(_sorted(value, 0))


def text_of(source: Mapping[str, Any], name: str) -> str:
    """Return a field of a JSON object when it is text, else the empty text."""
    value = source.get(name)
    return value if isinstance(value, str) else ""
