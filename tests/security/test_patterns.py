"""Patterns that strangers write: whatever they ask for, the event loop is never held for longer than the budget."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from nudge import limits
from nudge.errors import ScopeInvalid
from tests.security import effort
from tests.security.heartbeat import MOST_HELD, held
from tests.security.served import Reply, Served, post, rpc, served, tool

# Fatal to engines that go back; and what makes one that does not lose its cache of states.
REGEXES = (
    "(a+)+$", "(a|aa)+$", "(.*)*x", "(?:a?){30}a{30}", "(x+x+)+y", ".*.*.*.*.*.*.*.*=.*", r"(?i)(?:[a-z]+[0-9]*)+!", r"(\w+\s?)*$",
    r"^(([a-z])+.)+[A-Z]([a-z])+$", "[ab]*a[ab]{12}c", " .*a.{20}z", "(a|b| ).{40}z", "a[ab]{150}z", "(?:a?[ab]?){60}[ab]{60}z",
    "(?:a*b*){60}z", "(?:.{0,30}a){5}", r"\pL{0,20}z", "((a{1,9}){1,9}){1,9}b",
)  # fmt: skip
GLOBS = (
    "/**/" + "a/**/" * 29 + "b%d", "/*a%d" + "?" * 50, "/" + "*a" * 60 + "b%d", "**/" + "/**/".join(["a*"] * 31) + "%d",
    "/**/a/" + "/".join("*" * 60) + "/b%d", "/{%s}%%d" % ",".join("*" + letter * 3 for letter in "abcdefghijklmnop"), "/**/[!b]*[!c]*[!d]*/**/x%d",
)  # fmt: skip
LONGEST = limits.MAX_PATH_CHARS
PATHS = ("/a" * (LONGEST // 2 - 1), "/" + "a" * (LONGEST - 1), "/" + "".join(random.Random(7).choice("ab") for _ in range(LONGEST - 1)))


def ask(server: Served, body: bytes, path: str = "/") -> Reply:
    """The answer without its body: to copy forty megabytes would hold this process, and with it the loop that is measured."""
    with server.tcp() as link:
        link.send(post(path, body))
        return link.reply(keep_body=False)


def answer(server: Served, method: str, **params: Any) -> Any:
    with server.tcp() as link:
        return link.ask(post("/", rpc(method, params))).json


@pytest.fixture(scope="module")
def full() -> Iterator[Served]:
    """5,000 hints of 8 KiB each."""
    texts = ["".join(random.Random(seed).choice("ab ") for _ in range(8_000)) for seed in range(20)]
    with served() as server:
        for start in range(0, limits.MAX_HINTS, 1_000):
            components = {f"c{n // 200}": {"hints": {f"k{m}": {"value": texts[m % 20]} for m in range(n, n + 200)}}
                          for n in range(start, start + 1_000, 200)}  # fmt: skip
            server.call("nudge.import", payload={"schema_version": "1.0", "components": components})
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
    """Over 5,000 hints of 8 KiB: an answer, or a refusal that says how to narrow it, in less time than a caller waits."""
    began = time.monotonic()
    assert held(full, lambda: ask(full, rpc("nudge.query", {"regex": regex})), rounds=2) < MOST_HELD
    assert time.monotonic() - began < 2 * (limits.CALL_TIMEOUT + 2)


def test_a_slow_regex_is_given_up(full: Served) -> None:
    """What would take longer than its caller waits ends before that, and says so."""
    refused = answer(full, "nudge.query", regex="(a|b| ).{40}z")
    assert refused["error"]["data"]["field"] == "regex"
    assert "component" in refused["error"]["message"]
    assert answer(full, "nudge.query", regex="(a|b| ).{40}z", component="c1", keys=["k200"]) ["result"] == {"hints": []}


@pytest.mark.parametrize("method", ["nudge.get_hint", "nudge.bump", "nudge.list_components", "nudge.query", "nudge.delete_hint"])
def test_two_hundred_variants_hold_nobody(scoped: Served, method: str) -> None:
    """Each variant has a pattern that takes milliseconds: the others get their turn between two of them."""
    paths = iter(PATHS * 10)
    params: dict[str, Any] = {"component": "c"} if method in ("nudge.list_components", "nudge.query") else {"component": "c", "key": "k"}

    def call() -> Any:
        if method == "nudge.delete_hint":
            return answer(scoped, method, **params, scope={"cwd_glob": ["/nowhere"]})
        return ask(scoped, rpc(method, {**params, "context": {"cwd": next(paths)}}))

    assert held(scoped, call) < MOST_HELD


def test_setting_evil_globs_holds_nobody(server: Served) -> None:
    """What is allowed is compiled in no time, what is not is refused in no time."""
    numbers = iter(range(10_000))

    def call() -> None:
        for glob in (*GLOBS, "{a,b}" * 50, "{1..1000000}", "/" + "{a,{b,{c,d}}}" * 15, "[" * 200, "/" + "[a-" * 60, "/" + "**/" * 80):
            meta = {"scope": {"cwd_glob": [glob % next(numbers) if "%d" in glob else glob]}}
            assert answer(server, "nudge.set_hint", component="c", key="k", value="v", meta=meta).keys() & {"result", "error"}

    assert held(server, call) < MOST_HELD


def test_a_scope_has_so_many_wildcards_and_no_more(server: Served) -> None:
    """Twenty patterns, each allowed by itself, are refused together when a check of them all would take too long."""
    globs = [GLOBS[0] % number for number in range(limits.MAX_SCOPE_ITEMS)]
    with pytest.raises(ScopeInvalid, match="wildcards"):
        server.call("nudge.set_hint", component="c", key="k", value="v", meta={"scope": {"cwd_glob": globs}})
    modest = [f"**/service-{number}*/**" for number in range(limits.MAX_SCOPE_ITEMS)]
    assert server.call("nudge.set_hint", component="c", key="k", value="v", meta={"scope": {"cwd_glob": modest}})["hint"]["version"] == 1


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
        hints = {f"k{n}": {"value": "v", "meta": {"scope": {"cwd_glob": [GLOBS[n % len(GLOBS)] % (n + 1_000 * version)]}}} for n in range(200)}
        components = {f"c{n}": {"hints": hints} for n in range(effort.times(3) % 20)}
        payload = {"schema_version": "1.0", "components": components}
        assert ask(server, rpc("nudge.import", {"payload": payload, "mode": "replace"})).status == 200

    assert held(server, call) < MOST_HELD


@pytest.mark.parametrize("path", ["/", "/mcp"])
def test_the_largest_export_holds_nobody(full: Served, path: str) -> None:
    """Forty megabytes on their way out, by JSON-RPC and by MCP."""
    body = rpc("nudge.export", {}) if path == "/" else tool("nudge_export", {})
    assert held(full, lambda: ask(full, body, path), rounds=2) < (MOST_HELD if path == "/" else 2 * MOST_HELD)


@pytest.mark.parametrize("line", [b"x\n", rpc("ping", {}) + b"\n", b'{"a":[' + b"1," * 25_000 + b"1]}\n"], ids=["garbage", "pings", "50 KB"])
def test_a_flood_on_stdio_holds_nobody(server: Served, line: bytes) -> None:
    """PRIMARY's own client can stall nobody but itself, however fast it writes."""
    pipe = server.stdio()
    flood = line * min(2_000, 3_000_000 // len(line))

    def call() -> None:
        pipe.send(flood)
        pipe.until("end")

    assert held(server, call) < MOST_HELD


def test_tiny_chunks_hold_nobody(server: Served) -> None:
    """A body of a hundred thousand chunks of one byte, by a stranger and by somebody with the token."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "nudge.list_components", "params": {}}).ljust(100_000).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    for token in ("wrong", None):
        head = post("/", b"", **({"Authorization": token} if token else {})).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")

        def call(request: bytes = head + chunks) -> None:
            with server.tcp() as link:
                link.ask(request)

        assert held(server, call) < MOST_HELD
