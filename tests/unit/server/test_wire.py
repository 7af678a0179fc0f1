from __future__ import annotations

import gc
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nudge import limits
from nudge.errors import INVALID_REQUEST, PARSE_ERROR, NudgeError
from nudge.server import wire
from nudge.server.wire import WireError

BOTH_IN = pytest.mark.parametrize("decode", [wire.decode, wire.decode_slow])
BOTH_OUT = pytest.mark.parametrize("encode", [wire.encode, wire.encode_slow])

Decode = Callable[[bytes], Any]
Encode = Callable[[Any], bytes]

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


def outcome(decode: Decode, body: bytes) -> Any:
    try:
        return "value", decode(body)
    except WireError as error:
        return "error", error.code in (PARSE_ERROR, INVALID_REQUEST)


def refusal(decode: Decode, body: bytes) -> WireError:
    with pytest.raises(WireError) as caught:
        decode(body)
    return caught.value


def import_body(size: int) -> bytes:
    """What `nudge export` writes, `size` bytes of it or a little more, in the call that reads it back."""
    hint = {
        "value": {
            "type": "command",
            "shell": "bash",
            "cmd": "docker compose build router && make -C services/router test",
        },
        "meta": {
            "reason": "custom router image",
            "tags": ["build", "docker"],
            "confidence": 0.8,
            "scope": {"cwd_glob": ["**/http-proxy*"], "branch": ["dev", "main"], "os": ["linux", "darwin"]},
            "added_by": "agent:codex",
        },
        "version": 3,
        "created_at": "2026-11-16T08:30:00.123456Z",
        "updated_at": "2026-11-16T08:30:00.123456Z",
        "use_count": 12,
    }
    text = json.dumps(hint)
    component = '{"hints":{' + ",".join(f'"key-{nth}":{text}' for nth in range(limits.MAX_HINTS_PER_COMPONENT)) + "}}"
    components = ",".join(f'"service-{nth}":{component}' for nth in range(size // len(component) + 1))
    payload = '{"schema_version":"1.0","components":{' + components + "}}"
    return ('{"jsonrpc":"2.0","id":1,"method":"nudge.import","params":{"payload":' + payload + "}}").encode()


# What is accepted


@BOTH_IN
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
def test_valid_json_is_read(decode: Decode, body: bytes, value: Any) -> None:
    """Everything that the JSON standard allows and no limit forbids comes out as its value."""
    assert decode(body) == value


@BOTH_IN
def test_depth_is_counted_in_brackets_that_nest(decode: Decode) -> None:
    """The allowed depth passes however many brackets lie side by side or inside strings."""
    deepest = b"[" * DEEPEST + b"]" * DEEPEST
    wide = b"[" + b",".join([b"[[]]"] * 500 + [b'"' + b"[{" * 500 + b'\\""']) + b"]"
    assert json.loads(deepest) == decode(deepest)
    assert json.loads(wide) == decode(wide)


# What is refused


@BOTH_IN
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
def test_broken_json_is_a_parse_error(decode: Decode, body: bytes) -> None:
    """What is not JSON, or not UTF-8, is -32700."""
    error = refusal(decode, body)
    assert (error.code, error.reason) == (PARSE_ERROR, "E_PARSE")
    assert error.message.startswith("Parse error") and not error.message.endswith(" at")


@BOTH_IN
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
def test_ambiguous_json_is_an_invalid_request(decode: Decode, body: bytes, says: str) -> None:
    """JSON that two readers could understand differently, or that exhausts one, is -32600 and says which rule it
    breaks."""
    error = refusal(decode, body)
    assert (error.code, error.reason) == (INVALID_REQUEST, "E_REQUEST")
    assert error.message.startswith("Invalid request: ") and says in error.message


@BOTH_IN
@pytest.mark.parametrize("unit", [b"[", b'{"a":', b'[{"":', b'["]",', b"[ "])
def test_a_hundred_thousand_levels_are_refused(decode: Decode, unit: bytes) -> None:
    """Depth is refused before anything recurses: no RecursionError, no crash."""
    assert refusal(decode, unit * 100_000).code == INVALID_REQUEST


@BOTH_IN
def test_an_error_does_not_repeat_the_message(decode: Decode) -> None:
    """What a caller sent by mistake, a secret perhaps, does not come back in the error."""
    for body in (b'{"hunter2":1,"hunter2":2}', b'["hunter2" "hunter2"]', b'"hunter2\\ud800"', b"hunter2"):
        assert "hunter2" not in refusal(decode, body).message


def test_a_wire_error_is_one_of_ours() -> None:
    """It renders like every other error."""
    error = refusal(wire.decode, b"[")
    assert isinstance(error, NudgeError)
    assert error.to_wire() == {"code": PARSE_ERROR, "message": error.message, "data": {"reason": "E_PARSE"}}


def test_only_a_large_message_meets_the_bounds_on_size() -> None:
    """A message that costs far more memory than bytes, one endless container and one endless string are refused."""
    crowded = b"[" + b"[]," * (limits.MAX_JSON_SEPARATORS // 2) + b"[]]"
    endless = b"[" + b"1," * limits.MAX_JSON_MEMBERS + b"1]"
    long = b'"' + b"x" * (limits.MAX_BODY_BYTES + 1) + b'"'
    for body, says in ((crowded, "too many values"), (endless, "members"), (long, "longer")):
        error = refusal(wire.decode_slow, body)
        assert error.code == INVALID_REQUEST and says in error.message


@pytest.mark.parametrize(
    "body",
    [
        b'"' + b'\\"' * 30_000,
        b'"\\' * 20_000,
        b"[" + b'"]",' * 15_000,
        b"[" * 60_000,
        b"[]," * 20_000,
        b'{"":' * 15_000,
        b" " * 65_000,
        b"1" * 65_000,
    ],
)
def test_no_small_message_is_expensive(body: bytes) -> None:
    """A hostile message of 64 KiB costs the event loop a small multiple of an honest one of that size, not its
    square."""
    honest = _best_of_three(wire.decode, import_body(0)[:60_000])
    hostile = _best_of_three(wire.decode, body)
    assert hostile < max(0.02, 20 * honest)


def _best_of_three(decode: Decode, body: bytes) -> float:
    def once() -> float:
        start = time.perf_counter()
        outcome(decode, body)
        return time.perf_counter() - start

    return min(once() for _ in range(3))


# Both ways


@given(json_values)
def test_what_is_written_is_read_back(value: Any) -> None:
    """decode(encode(v)) == v for every JSON value, by each pair of the two speeds; and both write the same bytes."""
    text = wire.encode(value)
    assert wire.encode_slow(value) == text
    assert wire.decode(text) == value
    assert wire.decode_slow(text) == value


@given(json_values)
def test_escapes_and_blanks_change_nothing(value: Any) -> None:
    """The same value escaped to ASCII and indented is the same value."""
    text = json.dumps(value, indent=3).encode()
    assert wire.decode(text) == value
    assert wire.decode_slow(text) == value


@settings(max_examples=300)
@given(st.binary(max_size=200) | nearly_json)
def test_any_bytes_give_a_value_or_a_wire_error(body: bytes) -> None:
    """Nothing else is ever raised, and the two speeds agree on what is JSON."""
    assert repr(outcome(wire.decode, body)) == repr(outcome(wire.decode_slow, body))


@given(
    st.integers(0, 3),
    st.integers(4_000, 4_200),
    st.sampled_from(["x", "é", "日", "😀", "\\n", "\\u00e9", "\\ud83d\\ude00"]),
)
def test_no_cut_into_windows_shows(shift: int, size: int, unit: str) -> None:
    """Wherever a window of the slow scanner ends - inside a character, an escape, a number - the value is the same."""
    text = (
        "["
        + " " * shift
        + '{"a":"'
        + unit * (size // len(unit.encode()))
        + '","b":1234567890.125e2},{"c":[[1,2],[3]]}]'
    )
    assert wire.decode_slow(text.encode()) == json.loads(text)


@BOTH_OUT
def test_output_is_compact_utf8(encode: Encode) -> None:
    """No blank is sent, and text stays text."""
    assert encode({"a": [1, 2.5, None, True], "ü": "日本"}) == '{"a":[1,2.5,null,true],"ü":"日本"}'.encode()


@BOTH_OUT
@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": -float("inf")}])
def test_what_is_not_json_is_never_sent(encode: Encode, value: Any) -> None:
    """A number that JSON cannot say is our bug, and must not reach a client as a bare NaN."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(value)


def test_large_results_are_the_same_bytes() -> None:
    """Long strings, many members, wide lists and tuples come out of the pieces as they would in one go."""
    value: dict[str, Any] = {
        "text": '"\\\n日😀' * 10_000,
        "map": {f"key {nth}\n": {"n": nth} for nth in range(5_000)},
        "rows": [(nth, [nth, []], {}) for nth in range(5_000)],
        "empty": [[], {}, "", ()],
    }
    assert wire.encode_slow(value) == wire.encode(value)


# While others run


@pytest.fixture
def collector_off() -> Iterator[None]:
    """The garbage collector's own pauses depend on the whole process and are not the scanner's."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def longest_gap(work: Callable[[], object]) -> tuple[float, float]:
    """How long `work` in another thread took, and the longest time this thread could not run meanwhile; in
    milliseconds."""
    took: list[float] = []
    kept: list[object] = []  # freeing what was made is a pause too, but not one of the work's

    def measured() -> None:
        start = time.perf_counter()
        kept.append(work())
        took.append(time.perf_counter() - start)

    thread = threading.Thread(target=measured)
    longest, last = 0.0, time.perf_counter()
    thread.start()
    while thread.is_alive():
        thread.join(0.0005)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return took[0] * 1000, longest * 1000


def calmest_gap(work: Callable[[], object]) -> tuple[float, float]:
    """Other programs on the machine only ever add to a gap, so the smallest of three is ours."""
    return min((longest_gap(work) for _ in range(3)), key=lambda pair: pair[1])


def compare(capsys: pytest.CaptureFixture[str], plain: Callable[[], object], slow: Callable[[], object]) -> float:
    """The longest gap of `slow` as a part of that of `plain`."""
    (plain_took, plain_gap), (slow_took, slow_gap) = calmest_gap(plain), calmest_gap(slow)
    with capsys.disabled():
        print(f"\n16 MiB in one go: {plain_took:.0f} ms, longest gap {plain_gap:.0f} ms; ", end="")
        print(f"in pieces: {slow_took:.0f} ms, longest gap {slow_gap:.0f} ms")
    return slow_gap / plain_gap


@pytest.mark.usefixtures("collector_off")
def test_reading_16_mib_lets_other_threads_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The other threads' longest wait is a small part of what the C scanner would make of it."""
    body = import_body(limits.MAX_IMPORT_BODY_BYTES)
    assert compare(capsys, lambda: json.loads(body), lambda: wire.decode_slow(body)) < 1 / 3


@pytest.mark.usefixtures("collector_off")
def test_writing_16_mib_lets_other_threads_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The other threads' longest wait is a small part of what the C encoder would make of it."""
    value = json.loads(import_body(limits.MAX_IMPORT_BODY_BYTES))
    assert compare(capsys, lambda: wire.encode(value), lambda: wire.encode_slow(value)) < 1 / 3


@pytest.fixture(scope="module")
def gap_of_one_go() -> float:
    body = import_body(limits.MAX_IMPORT_BODY_BYTES)
    return calmest_gap(lambda: json.loads(body))[1]


@pytest.mark.usefixtures("collector_off")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(lambda: b" " * limits.MAX_IMPORT_BODY_BYTES + b"1", id="blanks"),
        pytest.param(lambda: b'"' + b"x" * limits.MAX_IMPORT_BODY_BYTES, id="string"),
        pytest.param(lambda: b"[" + b'"' + b'\\"' * 400_000 + b'"]', id="escapes"),
        pytest.param(lambda: b"1" * limits.MAX_IMPORT_BODY_BYTES, id="digits"),
        pytest.param(lambda: b"[" * limits.MAX_IMPORT_BODY_BYTES, id="brackets"),
        pytest.param(lambda: b"{" + b",".join(b'"%d":1' % nth for nth in range(200_000)) + b"}", id="keys"),
        pytest.param(lambda: b"[" + b",".join([b"[" + b"[]," * 9_000 + b"[]]"] * 20) + b"]", id="containers"),
    ],
)
def test_no_hostile_message_stops_other_threads(gap_of_one_go: float, body: Callable[[], bytes]) -> None:
    """Whatever the 16 MiB consist of, the longest wait stays far from that of an honest message parsed in one go."""
    hostile = body()
    _, gap = calmest_gap(lambda: outcome(wire.decode_slow, hostile))
    assert gap < gap_of_one_go / 3
