"""Strict JSON: what is read, what is refused and by which code, and what a hostile message costs."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nudge.core import limits
from nudge.core.errors import INVALID_REQUEST, PARSE_ERROR, NudgeError
from nudge.core.strict_json import JsonError, decode, decode_any, encode
from tests import effort
from tests.pace import slowness

DEEPEST = limits.MAX_JSON_DEPTH

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**limits.MAX_INTEGER_DIGITS) + 1, 10**limits.MAX_INTEGER_DIGITS - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=30,
)

# Bytes that are nearly JSON reach further into the scanner than bytes at random.
FRAGMENTS = [
    *(b"[", b"]", b"{", b"}", b",", b":", b"[" * 70, b"]" * 70, b" ", b" " * 120, b"\n", b"\x00", b"\xef\xbb\xbf"),
    *(b'"', b'"a"', b'"b":', b"\\", b"\\n", b'"\\ud83d\\ude00"', b'"\\ud800"', b'"\\u00e9"', b"\xc3\xa9", b"\xc3"),
    b'"' + b"x" * 5000 + b'"',
    *(b"1", b"-", b"0", b"1.5", b"1e999", b"e", b".", b"1" * 31, b"true", b"nul", b"NaN", b'{"a":1,"a":2}'),
]
nearly_json = st.lists(st.sampled_from(FRAGMENTS), max_size=25).map(b"".join)


def refusal(body: bytes) -> JsonError:
    with pytest.raises(JsonError) as caught:
        decode(body)
    return caught.value


# What is accepted


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b' {"a" : [1, -2.5e3, true, false, null, "x"] } \r\n\t', {"a": [1, -2500.0, True, False, None, "x"]}),
        (b"[]", []),
        (b"{}", {}),
        (b"[ ]", []),
        (b'"\\ud83d\\ude00 \\u00e9 \\n\\t\\"\\\\\\/"', '😀 é \n\t"\\/'),
        ('"größe 日本 😀"'.encode(), "größe 日本 😀"),
        (b'"\\\\ud800"', "\\ud800"),
        (b'"a\\u0000b"', "a\0b"),
        (b"9" * limits.MAX_INTEGER_DIGITS, int("9" * limits.MAX_INTEGER_DIGITS)),
        (b"-" + b"9" * limits.MAX_INTEGER_DIGITS, -int("9" * limits.MAX_INTEGER_DIGITS)),
        (b"1e-999", 0.0),
        (b'{"":{"":""}}', {"": {"": ""}}),
        (b'{"a":1,"b":{"a":1}}', {"a": 1, "b": {"a": 1}}),
        (b" " * 5000 + b"1" + b" " * 5000, 1),
        (b"[" + b" " * 5000 + b'"' + b"x" * 9000 + b'"' + b" " * 5000 + b"]", ["x" * 9000]),
        (b'{"k\\n"' + b" " * 200 + b":" + b" " * 200 + b"1}", {"k\n": 1}),
    ],
)
def test_valid_json_is_read(body: bytes, value: Any) -> None:
    """Everything that the JSON standard allows and no limit forbids comes out as its value."""
    assert decode(body) == value


def test_depth_is_counted_in_brackets_that_nest() -> None:
    """The allowed depth passes however many brackets lie side by side or inside strings."""
    deepest = b"[" * DEEPEST + b"]" * DEEPEST
    wide = b"[" + b",".join([b"[[]]"] * 500 + [b'"' + b"[{" * 500 + b'\\""']) + b"]"
    assert json.loads(deepest) == decode(deepest)
    assert json.loads(wide) == decode(wide)


# What is refused


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b" ", b"{", b"[", b"[1", b"[1,", b"[1,]", b"{]", b"[}", b"[]]", b"[1 2]", b"1 2"),
        *(b'{"a"}', b'{"a":}', b'{"a":1,}', b"{a:1}", b"{1:1}", b'{"a" 1}', b"tru", b"True", b"'a'", b"//", b"\x00"),
        *(b"01", b"1.", b".5", b"+1", b"-", b"1e", b"--1", b"1.5.5", b"0x10"),
        *(
            b'"',
            b'"a',
            b'"a\\"',
            b'"\\',
            b'"\\x"',
            b'"\\u12"',
            b'"\\u12g4"',
            b'"tab\there"',
            b'"\x00"',
            b'"line\nbreak"',
        ),
        *(b"NaN", b"Infinity", b"-Infinity", b"[NaN]", b'{"a":-Infinity}'),
        *(b'"\xff"', b'"\xc3"', b'"\xed\xa0\x80"', b"[\xc3\xa9]", b'{"\xff":1}', b'["' + b"x" * 5000 + b'\xff"]'),
        *(b"\xef\xbb\xbf1", '"utf-16"'.encode("utf-16"), b"\xc2\xa01", "١".encode()),
    ],
)
def test_broken_json_is_a_parse_error(body: bytes) -> None:
    """What is not JSON, or not UTF-8, is -32700."""
    error = refusal(body)
    assert (error.code, error.reason) == (PARSE_ERROR, "E_PARSE")
    assert error.message.startswith("Parse error") and not error.message.endswith(" at")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"1e999", "too large"),
        (b"[-1.5E+400]", "too large"),
        (b"1" * (limits.MAX_INTEGER_DIGITS + 1), "digits"),
        (b"[-" + b"1" * 5000 + b"]", "digits"),
        (b"0." + b"1" * 5000, "characters"),
        (b'{"a":1,"a":1}', "same key twice"),
        (b'[{"b":{"a":1,"\\u0061":2}}]', "same key twice"),
        (b'"\\ud800"', "surrogate"),
        (b'["\\udc00\\ud800"]', "surrogate"),
        (b'{"\\uDBFF x":1}', "surrogate"),
        (b'["\\ud83d\\ude00","\\ud83d"]', "surrogate"),
        (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), "nested"),
        (b'{"a":' * (DEEPEST + 1) + b"1" + b"}" * (DEEPEST + 1), "nested"),
        (b"[1," + b"[" * DEEPEST + b"]" * DEEPEST + b"]", "nested"),
    ],
)
def test_ambiguous_json_is_an_invalid_request(body: bytes, says: str) -> None:
    """JSON that two readers could understand differently, or that exhausts one, is -32600 and says which rule it
    breaks."""
    error = refusal(body)
    assert (error.code, error.reason) == (INVALID_REQUEST, "E_REQUEST")
    assert error.message.startswith("Invalid request: ") and says in error.message


@pytest.mark.parametrize("unit", [b"[", b'{"a":', b'[{"":', b'["]",', b"[ "])
def test_a_hundred_thousand_levels_are_refused(unit: bytes) -> None:
    """Neither a RecursionError nor a crash: an invalid request."""
    assert refusal(unit * 100_000).code == INVALID_REQUEST


def test_an_error_does_not_repeat_the_message() -> None:
    """What a caller sent by mistake, a secret perhaps, does not come back in the error."""
    for body in (b'{"hunter2":1,"hunter2":2}', b'["hunter2" "hunter2"]', b'"hunter2\\ud800"', b"hunter2"):
        assert "hunter2" not in refusal(body).message


def test_a_json_error_renders_like_every_other() -> None:
    """It renders like every other error."""
    error = refusal(b"[")
    assert isinstance(error, NudgeError)
    assert error.to_json() == {"code": PARSE_ERROR, "message": error.message, "data": {"reason": "E_PARSE"}}


def test_only_a_large_message_meets_the_bound_on_values() -> None:
    """Three bytes can ask for an object of sixty: a message that costs far more memory than bytes is refused."""
    crowded = b"[" + b"[]," * (limits.MAX_JSON_VALUES // 2) + b"[]]"
    assert refusal(crowded).message == "Invalid request: too many values in one message; send it in parts"
    assert len(decode(b"[" + b"1," * 10_000 + b"1]")) == 10_001


# Both ways


@given(json_values)
def test_what_is_written_is_read_back(value: Any) -> None:
    """decode(encode(v)) == v for every JSON value, on the event loop and on a worker thread."""
    assert decode(encode(value)) == value
    assert asyncio.run(decode_any(encode(value).ljust(limits.SMALL_JSON_BYTES + 1))) == value


@given(json_values)
def test_escapes_and_blanks_change_nothing(value: Any) -> None:
    """The same value escaped to ASCII and indented is the same value."""
    assert decode(json.dumps(value, indent=3).encode()) == value


@settings(max_examples=effort.times(150))
@given(st.binary(max_size=200) | nearly_json)
def test_any_bytes_give_a_value_or_a_json_error(body: bytes) -> None:
    """Nothing else is ever raised, and what is read is what the standard library reads."""
    try:
        value = decode(body)
    except JsonError:
        return
    assert repr(value) == repr(json.loads(body))


def test_output_is_compact_utf8() -> None:
    """No blank is sent, and text stays text."""
    assert encode({"a": [1, 2.5, None, True], "ü": "日本"}) == '{"a":[1,2.5,null,true],"ü":"日本"}'.encode()


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": -float("inf")}])
def test_what_is_not_json_is_never_sent(value: Any) -> None:
    """A number that JSON cannot say is our bug, and must not reach a client as a bare NaN."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(value)


def test_text_that_says_nan_is_sent() -> None:
    """The check is for numbers."""
    assert encode(["NaN", "Infinity"]) == b'["NaN","Infinity"]'


# What it costs


@pytest.fixture
def _collector_off() -> Iterator[None]:
    """The garbage collector's own pauses depend on the whole process and are not the decoder's."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def longest_gap(body: bytes) -> float:
    """The longest time, in processor seconds, that this thread could not run while another one decodes."""
    kept: list[object] = []  # freeing what was made is a pause too, but not one of the decoder's

    def work() -> None:
        try:
            kept.append(decode(body))
        except JsonError:
            pass

    thread = threading.Thread(target=work)
    longest, last = 0.0, time.process_time()
    thread.start()
    while thread.is_alive():
        thread.join(0.0005)
        now = time.process_time()
        longest, last = max(longest, now - last), now
    return longest


HOSTILE = {
    "blanks": b" " * limits.MAX_BODY_BYTES,
    "digits": b"1" * limits.MAX_BODY_BYTES,
    "brackets": b"[" * limits.MAX_BODY_BYTES,
    "quotes": b'"' * limits.MAX_BODY_BYTES,
    "an open string": b'"' + b"x" * (limits.MAX_BODY_BYTES - 1),
    "escapes": b'["' + b'\\"' * 500_000 + b'"]',
    "surrogates": b'["' + b"\\ud83d\\ude00" * 80_000 + b'"]',
    "keys": b"{" + b",".join(b'"%d":1' % nth for nth in range(90_000)) + b"}",
    "containers": b"[" + b",".join([b"[]"] * 99_000) + b"]",
    "numbers": b"[" + b",".join([b"1.5"] * 199_000) + b"]",
    "objects": b"[" + b",".join([b'{"a":1}'] * 95_000) + b"]",
    "columns": b"[" + b",".join([b"[" * 60 + b"]" * 60] * 3_000) + b"]",
}


@pytest.mark.usefixtures("_collector_off")
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_no_hostile_message_stops_other_threads(body: bytes) -> None:
    """Whatever a mebibyte consists of, a worker thread that decodes it holds the interpreter for under 20 ms at a
    time."""
    assert any(longest_gap(body) < 0.020 * slowness() for _ in range(3))


@pytest.mark.parametrize("unit", [b'\\"', b'"\\', b'"]",', b"[", b"[],", b'{"":', b" ", b"1"])
def test_no_small_message_is_expensive(unit: bytes) -> None:
    """64 KiB are decoded on the event loop itself: any of them in under 20 ms."""
    body = (b"[" + unit * limits.SMALL_JSON_BYTES)[: limits.SMALL_JSON_BYTES]

    def once() -> float:
        began = time.process_time()
        try:
            decode(body)
        except JsonError:
            pass
        return time.process_time() - began

    assert any(once() < 0.020 * slowness() for _ in range(5))
