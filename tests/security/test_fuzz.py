"""Calls and bytes at random: nothing but an answer, a refusal, or silence where silence is the rule."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nudge.core import paths, strict_json
from nudge.core.app import App
from nudge.core.call import Call, EnvNeeded
from nudge.core.context import Context
from nudge.core.errors import NudgeError
from nudge.hints.lifetime import open_lifetime
from nudge.interfaces.operations import OPERATIONS
from nudge.settings.config import Sources
from nudge.storage.changelog import read_log
from tests import effort
from tests.security.served import Line, Served, rpc, served
from tests.security.strategies import CALL, GOOD_CALLS, SECRET

_CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


def fuzzed(examples: int) -> settings:
    return settings(max_examples=effort.times(examples), suppress_health_check=_CHECKS, database=None)


# Through the application


class Bench:
    """An application on a log of its own, thrown away after each run."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.app = App(open_lifetime(directory, Sources(directory)), OPERATIONS)

    async def call(self, operation: str, params: Any, number: int) -> dict[str, Any]:
        """The result, or the error as it would go out; whatever else is raised fails the test."""
        call = Call(request_id=f"r{number}", context=Context(), env={} if number % 2 else None)
        try:
            return {"result": await self.app.execute(operation, params, call)}
        except NudgeError as error:
            return {"error": error.to_json()}
        except EnvNeeded as asked:
            return {"asked": asked.names}

    async def stored(self) -> str:
        return json.dumps(await self.app.execute("nudge.export", {"reveal": True}, Call()), sort_keys=True)

    async def stored_again(self) -> str:
        """What a process that starts now would find."""
        assert self.app.lifetime.log is not None
        self.app.lifetime.log.close()
        contents = read_log(os.path.join(self._directory, paths.CHANGE_LOG))
        assert contents is not None and not contents.torn
        again = Bench(self._directory)
        stored = await again.stored()
        assert again.app.lifetime.log is not None
        again.app.lifetime.log.close()
        return stored


@contextmanager
def bench() -> Iterator[Bench]:
    directory = tempfile.mkdtemp(prefix="nf-", dir="/tmp")
    try:
        yield Bench(directory)
    finally:
        shutil.rmtree(directory)


@given(st.lists(CALL, min_size=1, max_size=8))
@fuzzed(80)
def test_any_call_is_answered_or_refused(calls: list[tuple[str, Any]]) -> None:
    """Well- and ill-typed parameters of every operation: a result or a NudgeError that can be sent; a refused call
    changes nothing;
    and after any sequence of calls the log tells the same story as the store."""

    async def run(one: Bench) -> None:
        for number, (operation, params) in enumerate(calls):
            before = await one.stored()
            answer = await one.call(operation, params, number)
            if "error" in answer:
                json.dumps(answer)
                assert await one.stored() == before, answer
        assert await one.stored() == await one.stored_again()

    with bench() as one:
        asyncio.run(run(one))


@given(st.lists(GOOD_CALLS | CALL, min_size=1, max_size=6))
@fuzzed(80)
def test_a_refusal_never_repeats_a_secret(calls: list[tuple[str, Any]]) -> None:
    """A credential that was refused stands in no error, in no field of it, and in no log."""
    heard: list[str] = []
    listener = _Listener(heard)
    logging.getLogger().addHandler(listener)
    previous = logging.getLogger().level
    logging.getLogger().setLevel(logging.DEBUG)

    async def run(one: Bench) -> None:
        for number, (operation, params) in enumerate(calls):
            answer = await one.call(operation, params, number)
            assert "error" not in answer or SECRET not in json.dumps(answer)

    try:
        with bench() as one:
            asyncio.run(run(one))
    finally:
        logging.getLogger().removeHandler(listener)
        logging.getLogger().setLevel(previous)
    assert not [line for line in heard if SECRET in line]


class _Listener(logging.Handler):
    def __init__(self, heard: list[str]) -> None:
        super().__init__()
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self._heard.append(self.format(record))


# Through the line reader

GARBAGE = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=100).map(str.encode),
    st.sampled_from(
        [
            b"",
            b" ",
            b"\r",
            b"\t\t",
            b"\x00",
            b"null",
            b"[]",
            b"{}",
            b"[[[[",
            b'{"jsonrpc":"2.0"',
            b'"',
            b"\\",
            b"\xff\xfe{",
            b"NaN",
            b'{"jsonrpc":"2.0","method":"initialize"}',
            b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
            b'{"jsonrpc":"2.0","id":9,"result":{}}',
            b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
            b'{"id":1}',
            b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"nudge_set_hint"}}',
            b"Content-Length: 5",
            b"GET / HTTP/1.1",
            b"[" * 5_000,
            b'{"a":' * 5_000,
            b"7" * 5_000,
            b'{"a":1,"a":2}',
            b'"\\ud800"',
        ]
    ),
).map(lambda data: data.replace(b"\n", b""))

REQUESTS = st.one_of(
    st.tuples(st.just("ping"), st.just({})),
    st.tuples(st.just("tools/list"), st.just({})),
    st.tuples(
        st.just("initialize"),
        st.fixed_dictionaries(
            {},
            optional={
                "protocolVersion": st.sampled_from(["2025-11-25", "1", ""]) | st.integers(),
                "capabilities": st.just({}),
                "clientInfo": st.fixed_dictionaries({"name": st.text(max_size=70), "version": st.just("1")})
                | st.integers(),
            },
        ),
    ),
    st.tuples(
        st.text(max_size=10),
        st.dictionaries(st.text(max_size=5), st.integers(), max_size=3) | st.lists(st.integers(), max_size=3),
    ),
    CALL.map(lambda call: ("tools/call", {"name": call[0].replace(".", "_"), "arguments": call[1]})),
)


def line_of(number: int, request: tuple[str, Any]) -> bytes | None:
    """None for what cannot be written as JSON, or is refused before anybody looks at its id."""
    message = {"jsonrpc": "2.0", "id": number, "method": request[0], "params": request[1]}
    try:
        line = json.dumps(message, allow_nan=False, ensure_ascii=False).encode()
        strict_json.decode(line)
    except (ValueError, strict_json.JsonError):
        return None
    return line


def pieces(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    at = 0
    for cut in sorted(cut % (len(data) + 1) for cut in cuts):
        yield data[at:cut]
        at = cut
    yield data[at:]


class Wire:
    """A long-lived line under fuzz: each round ends with a good request, which must be answered."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._rounds = self._sent = self._answered = 0

    def check(self, messages: list[bytes | tuple[str, Any]], cuts: list[int]) -> None:
        self._rounds += 1
        base = 1_000 * self._rounds
        lines = [item if isinstance(item, bytes) else line_of(base + n, item) for n, item in enumerate(messages)]
        asked = [base + n for n, item in enumerate(messages) if not isinstance(item, bytes) and lines[n] is not None]
        stream = b"".join(line + b"\n" for line in lines if line is not None)
        for piece in pieces(stream, cuts):
            self._line.send(piece)
        end = f"end of round {self._rounds}"
        answers = [answer for answer in self._line.until(end, *asked) if answer["id"] != end]
        assert all(answer["jsonrpc"] == "2.0" and ("result" in answer) != ("error" in answer) for answer in answers)
        assert sorted(answer["id"] for answer in answers if answer["id"] in asked) == asked
        assert not [answer for answer in answers if answer.get("error", {}).get("code") == -32603]
        self._sent += len([line for line in lines if line is not None and line.strip()])
        self._answered += len(answers)
        assert self._answered <= self._sent


@pytest.fixture(scope="module")
def wires() -> Iterator[dict[str, Wire]]:
    with served() as primary, served() as behind:
        yield {"primary": Wire(primary.stdio()), "proxy": Wire(behind.proxy())}


@pytest.mark.parametrize("role", ["primary", "proxy"])
@given(messages=st.lists(GARBAGE | REQUESTS, max_size=12), cuts=st.lists(st.integers(0, 10_000), max_size=5))
@fuzzed(80)
def test_any_bytes_on_a_line(wires: dict[str, Wire], role: str, messages: list[Any], cuts: list[int]) -> None:
    """Garbage between requests, cut anywhere: every request is answered once under its id, garbage by an error at most,
    and the next
    good request is served."""
    wires[role].check(messages, cuts)


@pytest.mark.parametrize("role", ["primary", "proxy"])
@given(st.binary(max_size=3_000))
@fuzzed(60)
def test_raw_bytes_on_a_line(wires: dict[str, Wire], role: str, data: bytes) -> None:
    """Newlines wherever they fall: still there afterwards."""
    wires[role].check([*data.split(b"\n")], [])


@pytest.mark.parametrize("interface", ["stdio", "proxy"])
def test_a_flood_is_answered_to_the_last(server: Served, interface: str) -> None:
    """Thousands of requests sent in one go, before any answer is taken: none is lost, none is answered with a
    failure."""
    count = 400
    line: Line = getattr(server, interface)()
    line.send(b"".join(rpc("tools/list", {}, n) + b"\n" for n in range(count)))
    answers = line.until("last", *range(count))
    assert sorted(answer["id"] for answer in answers if "result" in answer and answer["id"] != "last") == list(
        range(count)
    )


@pytest.mark.parametrize("interface", ["stdio", "proxy"])
def test_large_questions_and_large_answers_cross(server: Served, interface: str) -> None:
    """Requests that fill every buffer on their way in, while answers fill those on their way out: nobody waits for
    ever."""
    for number in range(100):
        server.call("nudge.set_hint", component="c", key=f"k{number}", value="v" * 8_000)
    line: Line = getattr(server, interface)()
    padding = {"name": "nudge_list_components", "arguments": {"component": "c"}, "_meta": {"padding": "x" * 900_000}}
    small = {"name": "nudge_list_components", "arguments": {"component": "c"}}
    for number in range(6):
        line.send(rpc("tools/call", padding if number % 2 else small, number) + b"\n")
    answers = line.until("last", *range(6))
    assert sorted(answer["id"] for answer in answers if "result" in answer and answer["id"] != "last") == list(range(6))


@pytest.mark.parametrize("interface", ["stdio", "proxy"])
def test_a_line_that_never_ends(server: Served, interface: str) -> None:
    """A line is forgotten as it comes once it is too long; a last one without a newline is still read."""
    line: Line = getattr(server, interface)()
    for _ in range(5):
        line.send(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"' + b"x" * 2_500_000)
    line.send(b'"}}\n')
    first, second = line.until("after")
    assert (first["id"], first["error"]["code"], second["id"]) == (1, -32600, "after")
    line.finish_with(rpc("ping", {}, "unended"))
    assert line.receive()["id"] == "unended"
