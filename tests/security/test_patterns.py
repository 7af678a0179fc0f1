"""Patterns in untrusted requests: whatever they are, the event loop is never held for longer than the budget."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.errors import ScopeInvalid
from nudge.hints.model import Change, Hint
from tests import effort
from tests.security.heartbeat import MOST_HELD, held
from tests.security.served import Reply, Served, post, rpc, served, tool

# Fatal to engines that go back; and what makes one that does not lose its cache of states.
REGEXES = (
    "(a+)+$",
    "(a|aa)+$",
    "(.*)*x",
    "(?:a?){30}a{30}",
    "(x+x+)+y",
    ".*.*.*.*.*.*.*.*=.*",
    r"(?i)(?:[a-z]+[0-9]*)+!",
    r"(\w+\s?)*$",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    "[ab]*a[ab]{12}c",
    " .*a.{20}z",
    "(a|b| ).{40}z",
    "a[ab]{150}z",
    "(?:a?[ab]?){60}[ab]{60}z",
    "(?:a*b*){60}z",
    "(?:.{0,30}a){5}",
    r"\pL{0,20}z",
    "((a{1,9}){1,9}){1,9}b",
)
GLOBS = (
    "**/a*/**/x%d",
    "/*a%d" + "?" * 50,
    "/" + "*a" * 60 + "b%d",
    "**/{a*,*a,[!b]*}/**/x%d",
    "/" + "*/" * 60 + "b%d",
    "/**/[!b]*[!c]*[!d]*/**/x%d",
    "/{*aaa,*bbb,*ccc,*ddd,*eee,*fff,*ggg,*hhh,a*b*c*d*e*f*g*h}%d",
)
REFUSED_GLOBS = (
    "/**/" + "a/**/" * 29 + "b",
    "**/" + "/**/".join(["a*"] * 31),
    "{a,b}" * 50,
    "{1..1000000}",
    "/" + "{a,{b,{c,d}}}" * 15,
    "[" * 200,
    "/" + "[a-" * 60,
)
PATHS = (
    "/a" * limits.MAX_GLOB_TEXT_NAMES,
    "/" + "a" * (limits.MAX_GLOB_TEXT_CHARS - 1),
    ("/" + "aab" * 2 + "a") * limits.MAX_GLOB_TEXT_NAMES,
    "/" + "".join(random.Random(7).choice("ab/") for _ in range(limits.MAX_PATH_CHARS - 1)),
)


def ask(server: Served, body: bytes, path: str = "/") -> Reply:
    """The answer without its body: to copy forty megabytes would hold this process, and with it the loop that is
    measured."""
    with server.tcp() as link:
        link.send(post(path, body))
        return link.reply(keep_body=False)


def answer(server: Served, method: str, **params: Any) -> Any:
    with server.tcp() as link:
        return link.ask(post("/", rpc(method, params))).json


@pytest.fixture(scope="module")
def full() -> Iterator[Served]:
    """5,000 hints of 8 KiB each."""
    letters = bytes(b"ab "[byte % 3] for byte in range(256))
    with served() as server:
        now = server.app.now()
        hints = [
            Hint.of(
                f"c{n // 200}",
                f"k{n}",
                os.urandom(8_000).translate(letters).decode(),
                {},
                created_at=now,
                updated_at=now,
            )
            for n in range(limits.MAX_HINTS)
        ]
        server.on_loop(lambda: server.app.lifetime.store.apply(Change(tuple(hints))))
        yield server


@pytest.fixture(scope="module")
def scoped() -> Iterator[Served]:
    """One key with as many variants as a component may have, each for directories that are dear to compare."""
    with served() as server:
        for number in range(limits.MAX_HINTS_PER_COMPONENT):
            scope = {"cwd_glob": [GLOBS[number % len(GLOBS)] % number]}
            server.call("nudge.set_hint", component="c", key="k", value="v", meta={"scope": scope})
        yield server


@pytest.mark.parametrize("regex", REGEXES)
def test_a_query_by_regex_holds_nobody(full: Served, regex: str) -> None:
    """Over 5,000 hints of 8 KiB: an answer, or a refusal that says how to narrow it, in less time than a caller
    waits."""
    spent: list[float] = []

    def query() -> None:
        began = time.process_time()
        ask(full, rpc("nudge.query", {"regex": regex}))
        spent.append(time.process_time() - began)

    assert held(full, query) < MOST_HELD
    assert min(spent) < limits.CALL_TIMEOUT


def test_a_slow_regex_is_given_up(full: Served) -> None:
    """What would take longer than its caller waits ends before that, and says so."""
    refused = answer(full, "nudge.query", regex=" .*a.{20}z")
    assert refused["error"]["data"]["field"] == "regex"
    assert "component" in refused["error"]["message"]
    assert answer(full, "nudge.query", regex=" .*a.{20}z", component="c1", keys=["k200"])["result"] == {"hints": []}


@pytest.mark.parametrize(
    "method", ["nudge.get_hint", "nudge.bump", "nudge.list_components", "nudge.query", "nudge.delete_hint"]
)
def test_two_hundred_variants_hold_nobody(scoped: Served, method: str) -> None:
    """Each variant has a pattern that takes milliseconds: the others get their turn between two of them."""
    paths = iter(PATHS * 10)
    params: dict[str, Any] = (
        {"component": "c"} if method in ("nudge.list_components", "nudge.query") else {"component": "c", "key": "k"}
    )

    def call() -> Any:
        if method == "nudge.delete_hint":
            return answer(scoped, method, **params, scope={"cwd_glob": ["/nowhere"]})
        return ask(scoped, rpc(method, {**params, "context": {"cwd": next(paths)}}))

    assert held(scoped, call) < MOST_HELD


def test_setting_evil_globs_holds_nobody(server: Served) -> None:
    """What is allowed is compiled in no time, what is not is refused in no time."""
    numbers = iter(range(10_000))

    def call() -> None:
        for glob in (*GLOBS, *REFUSED_GLOBS):
            meta = {"scope": {"cwd_glob": [glob % next(numbers) if "%d" in glob else glob]}}
            assert answer(server, "nudge.set_hint", component="c", key="k", value="v", meta=meta).keys() & {
                "result",
                "error",
            }

    assert held(server, call) < MOST_HELD


def test_a_scope_has_so_many_globs_and_no_more(server: Served) -> None:
    """Twenty patterns, each allowed by itself, are refused together when a check of them all would take too long."""
    globs = [GLOBS[0] % number for number in range(limits.MAX_SCOPE_ITEMS)]
    with pytest.raises(ScopeInvalid, match="too long to match"):
        server.call("nudge.set_hint", component="c", key="k", value="v", meta={"scope": {"cwd_glob": globs}})
    modest = [f"**/service-{number}*/**" for number in range(limits.MAX_SCOPE_ITEMS)]
    assert (
        server.call("nudge.set_hint", component="c", key="k", value="v", meta={"scope": {"cwd_glob": modest}})["hint"][
            "version"
        ]
        == 1
    )


def test_a_scope_has_so_many_characters_and_no_more(server: Served) -> None:
    """A hint is small: so is what it is scoped to, or 5,000 of them would fill the memory."""
    wide = {f"N{number}": [f"{item}" + "x" * 1_000 for item in range(20)] for number in range(20)}
    with pytest.raises(ScopeInvalid, match="characters"):
        server.call("nudge.set_hint", component="c", key="k", value="v", meta={"scope": {"env_match": wide}})
    assert server.call("nudge.list_components") == {"components": []}


def test_importing_evil_globs_holds_nobody(server: Served) -> None:
    """A payload of thousands of scopes, each to be compiled."""
    versions = iter(range(100))

    def call() -> None:
        version = next(versions)
        globs = [
            GLOBS[number % len(GLOBS)] % (number + 1_000 * version) for number in range(limits.MAX_HINTS_PER_COMPONENT)
        ]
        hints = {
            f"k{number}": {"value": "v", "meta": {"scope": {"cwd_glob": [glob]}}} for number, glob in enumerate(globs)
        }
        components = {f"c{number}": {"hints": hints} for number in range(3)}
        payload = {"schema_version": "1.0", "components": components}
        assert ask(server, rpc("nudge.import", {"payload": payload, "mode": "replace"})).status == 200

    assert held(server, call) < MOST_HELD


@pytest.mark.parametrize(
    ("name", "arguments"), [("nudge_list_components", {"component": "c1"}), ("nudge_query", {"limit": 100})]
)
def test_the_largest_answers_to_an_agent_hold_nobody(full: Served, name: str, arguments: dict[str, Any]) -> None:
    """Two megabytes of JSON, which MCP wants twice, once of it as a text."""
    assert held(full, lambda: ask(full, tool(name, arguments), "/mcp")) < MOST_HELD


@pytest.mark.skipif(not effort.is_long(), reason="takes seconds; a part of the long run")
def test_an_export_to_an_agent_holds_nobody(full: Served) -> None:
    """Eighty megabytes, which no agent can want: twice the budget, since to join forty alone takes most of one."""
    assert held(full, lambda: ask(full, tool("nudge_export", {}), "/mcp")) < 2 * MOST_HELD


FLOODS = {"garbage": b"x\n", "pings": rpc("ping", {}) + b"\n", "lines of 50 KB": b'{"a":[' + b"1," * 25_000 + b"1]}\n"}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_on_stdio_holds_nobody(server: Served, kind: str) -> None:
    """PRIMARY's own client can stall nobody but itself, however fast it writes."""
    pipe = server.stdio()
    flood = FLOODS[kind] * min(2_000, 1_500_000 // len(FLOODS[kind]))

    def call() -> None:
        pipe.send(flood)
        pipe.until("end")

    assert held(server, call) < MOST_HELD


def test_tiny_chunks_hold_nobody(server: Served) -> None:
    """A body of a hundred thousand chunks of one byte, sent without the token and with it."""
    body = (
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "nudge.list_components", "params": {}}).ljust(100_000).encode()
    )
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    for token in ("wrong", None):
        head = post("/", b"", **({"Authorization": token} if token else {})).replace(
            b"Content-Length: 0", b"Transfer-Encoding: chunked"
        )

        def call(request: bytes = head + chunks) -> None:
            with server.tcp() as link:
                link.ask(request)

        assert held(server, call) < MOST_HELD
