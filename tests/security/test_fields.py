"""Fields of the wrong type, texts that no terminal should see, headers and query strings full of junk."""

from __future__ import annotations

import itertools
from typing import Any
from urllib.parse import quote

import pytest

from nudge.core.errors import INTERNAL_ERROR
from nudge.interfaces.operations import OPERATIONS
from tests import effort
from tests.security.examples import CALLS, places, renamed, replaced
from tests.security.interfaces import INTERFACES, refusal_of
from tests.security.served import TOKEN, Served, post, rpc, tool

WRONG: list[Any] = [
    None,
    True,
    0,
    -1,
    10**29,
    0.5,
    "",
    "x",
    "x" * 70_000,
    [],
    ["x"],
    [None],
    [[]],
    {},
    {"x": 1},
    {"": {}},
]
REFUSED = (40001, 40002, 40003, 40401, 40901, 42901, 50701)
CONTROL = ("\0", "a\0b", "\x1b[31m", "\x7f", "\x9b1m", "a\rb")


@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda number: CALLS[number][0])
def test_wrong_types_everywhere(server: Served, number: int) -> None:
    """Any value in a call exchanged for one of another type: a result, or a refusal that says why; and then no
    change."""
    operation, good = CALLS[number]
    server.call("nudge.set_hint", component="c", key="k", value="v")
    with server.tcp() as link:
        for place, _ in places(good):
            for wrong in WRONG:
                before = server.mark()
                answer = link.ask(post("/", rpc(operation, replaced(good, place, wrong)))).json
                code = refusal_of(answer)
                assert code is None or code in REFUSED or (not place and code == -32602), (place, wrong, answer)
                assert code is None or server.mark() == before, (place, wrong)


@pytest.mark.parametrize("text", CONTROL)
def test_control_characters_are_stored_nowhere(server: Served, text: str) -> None:
    """NUL, escapes and their like in any string of a write, or in any name: refused, whichever interface it came by."""
    tcp, stdio = INTERFACES["tcp"](server), INTERFACES["stdio"](server)
    before = server.state()
    for operation, good in CALLS:
        if OPERATIONS[operation].effect == "read":
            continue
        for place, value in places(good):
            hostile = [replaced(good, place, text)] if isinstance(value, str) else []
            if place and isinstance(place[-1], str):
                hostile.append(renamed(good, place, text))
            for params in hostile:
                if place[:1] == ("context",) and "env" in place:
                    continue  # compared, never kept
                assert refusal_of(tcp.ask(rpc(operation, params))) in REFUSED, (operation, place)
                assert refusal_of(stdio.ask(tool(OPERATIONS[operation].tool, params))) in REFUSED, (operation, place)
    assert server.state() == before


JUNK = [
    "",
    " ",
    "x",
    "\udcff",
    "\udc80\udc81",
    "²",
    "9" * 5_000,
    "-1",
    "1e999",
    "nan",
    "{",
    "[]",
    "{}",
    "null",
    "[" * 9_000,
    '{"a":NaN}',
    '{"cwd":"' + "x" * 9_000 + '"}',
    '{"cwd":"/a\\u0000"}',
    '{"cwd":1}',
    '{"A":1}',
    '{"A":"\\ud800"}',
    "ask",
    "x" * 31_000,
]
HEADERS = (
    "Nudge-Request-Id",
    "Nudge-Deadline",
    "Nudge-Tools",
    "MCP-Protocol-Version",
    "Content-Type",
    "Accept",
    "Connection",
    "Upgrade",
    "Expect",
)


@pytest.mark.parametrize("path", ["/", "/mcp", "/api/v1/scan"])
def test_junk_in_headers(server: Served, path: str) -> None:
    """Whatever a header holds, the answer is not a failure of ours, and the server still says how it is."""
    bodies = {
        "/": rpc("nudge.get_hint", {"component": "c", "key": "k"}),
        "/mcp": tool("nudge_set_hint", {"component": "c", "key": "k"}),
    }
    for header in HEADERS:
        for junk in JUNK:
            with server.tcp() as link:
                reply = link.ask(post(path, bodies.get(path, b"{}"), **{header.replace("-", "_"): junk}))
                assert reply.status in (200, 202, 400, 408, 409, 415), (header, junk, reply)
                assert reply.code != INTERNAL_ERROR, (header, junk, reply)
    with server.tcp() as link:
        assert link.ask(post("/", rpc("nudge.status", {}))).status == 200


def test_junk_in_query_strings(server: Served) -> None:
    """REST parameters of any kind: a result or a refusal, never a failure. Each is tried with a third of the junk, the
    next with the next third; in a soak with all of it."""
    before, turns = server.state(), itertools.count()
    with server.tcp() as link:
        for operation in OPERATIONS.values():
            verb, route = operation.route
            for name in operation.params.model_fields:
                every = [*JUNK[:-1], "%ff", "%00", "%ed%a0%80", "1&" + name + "=[2]", "[1]&" + name + "=2"]
                for junk in every if effort.is_long() else every[next(turns) % 3 :: 3]:
                    asked = quote(junk.encode("utf-8", "surrogateescape"), safe="%&=[]")[:7_000]
                    path = route.replace("{", "").replace("}", "") + f"?{name}={asked}"
                    body = b"" if verb in ("GET", "DELETE") else b"{}"
                    request = post(path, body).replace(b"POST", verb.encode(), 1)
                    reply = link.ask(request)
                    assert 200 <= reply.status < 500 or reply.code in (50301, 50701), (path[:200], reply)
    assert server.state() == before


@pytest.mark.parametrize("name", ["%ff", "%ed%a0%80", "%00", "%1b", "%20", "a" * 129, "%0a", "..%2f%00"])
def test_hostile_names_in_paths(server: Served, name: str) -> None:
    """A name that is no text, or no name, is refused and aliases no other one."""
    before = server.state()
    with server.tcp() as link:
        head = (
            f"Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: "
            "application/json\r\nContent-Length: 13\r\n\r\n"
        )
        reply = link.ask(f"PUT /api/v1/hints/{name}/k HTTP/1.1\r\n{head}".encode() + b'{"value":"x"}')
    assert (reply.status, reply.code) == (400, 40001)
    assert server.state() == before


def test_no_answer_shows_our_insides(server: Served) -> None:
    """Not a path, a class, a traceback or a library's name reaches the wire, whatever is wrong."""
    said = []
    with server.tcp() as link:
        for operation, good in CALLS:
            for place, _ in places(good):
                said.append(link.ask(post("/", rpc(operation, replaced(good, place, [None])))).body)
        said.append(link.ask(post("/mcp", tool("nudge_set_hint", ["x"]))).body)
        said.append(link.ask(post("/mcp", rpc("initialize", {"protocolVersion": [], "clientInfo": 7}))).body)
    with server.tcp() as link:
        said.append(link.ask(b"NONSENSE\r\n\r\n").body)
    text = b"\n".join(said).lower()
    for word in (
        b"traceback",
        b"pydantic",
        b"aiohttp",
        b"llhttp",
        b"/nudge/",
        b".py",
        b"site-packages",
        b"foundcommand",
        b"valueerror",
        b"<class",
    ):
        assert word not in text, word
