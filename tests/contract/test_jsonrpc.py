"""JSON-RPC 2.0 on `POST /`: single, batch and notification, and what is answered to nonsense."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge import __version__
from nudge.core import limits
from nudge.core.clock import boot_seconds
from tests.contract.repos import clone
from tests.contract.steps import named, setting
from tests.contract.ways import EMPTY_STORE, Http, Reply, Served, served


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def script(server: Served) -> Iterator[Http]:
    with server.script() as opened:
        opened.call("nudge.import", EMPTY_STORE)
        yield opened


@pytest.fixture
def anonymous(server: Served) -> Iterator[Http]:
    """Without a token."""
    with server.script(authorized=False) as opened:
        yield opened


def request(method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": f"nudge.{method}", "params": params}


def notification(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": f"nudge.{method}", "params": params}


@pytest.mark.parametrize("request_id", ["text", "", 0, -7, 1.5, None])
def test_an_answer_carries_the_id_of_its_request(script: Http, request_id: Any) -> None:
    """The id comes back as it was sent, whatever JSON-RPC allows it to be."""
    answer = script.post("/", request("list_components", request_id)).json
    assert answer == {"jsonrpc": "2.0", "id": request_id, "result": {"components": []}}


@pytest.mark.parametrize("params", [{}, {"params": {}}])
def test_params_may_be_left_out(script: Http, params: dict[str, Any]) -> None:
    """An operation without required parameters needs no params object."""
    assert script.post("/", {"jsonrpc": "2.0", "id": 1, "method": "nudge.list_components", **params}).json[
        "result"
    ] == {"components": []}


def test_a_batch_is_answered_in_order(script: Http) -> None:
    """One hundred calls in one request: each has its own answer, a failed one too, in the order of the calls."""
    calls = [request("set_hint", "first", **setting())]
    calls += [request("bump", number, **named()) for number in range(limits.MAX_BATCH - 2)]
    calls += [request("get_hint", "last", **named("nothing"))]
    answers = script.post("/", calls).json
    assert [answer["id"] for answer in answers] == [call["id"] for call in calls]
    assert [answer["result"]["hint"]["use_count"] for answer in answers[1:-1]] == list(range(1, limits.MAX_BATCH - 1))
    assert answers[-1]["error"]["data"]["reason"] == "E_NOT_FOUND"


@pytest.mark.parametrize(
    "calls", [[], [request("list_components")] * (limits.MAX_BATCH + 1)], ids=["empty", "one too many"]
)
def test_a_batch_has_one_to_a_hundred_calls(script: Http, calls: list[Any]) -> None:
    """An empty batch and one of 101 calls are refused as a whole, and nothing in them is done."""
    answer = script.post("/", calls).json
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


def test_nonsense_in_a_batch_spoils_only_itself(script: Http) -> None:
    """Each item of a batch is judged alone."""
    answers = script.post("/", [1, request("nothing"), request("list_components")]).json
    assert [answer.get("error", {}).get("code") for answer in answers] == [-32600, -32601, None]


def test_a_notification_is_done_and_not_answered(script: Http) -> None:
    """No id, no answer: 204 with no body, whether it worked or not; in a batch the others are answered."""
    assert _is_silent(script.post("/", notification("set_hint", **setting("a"))))
    assert _is_silent(script.post("/", notification("get_hint", component=7)))
    assert _is_silent(script.post("/", [notification("set_hint", **setting("b")), notification("nothing")]))
    mixed = script.post("/", [notification("set_hint", **setting("c")), request("list_components", 5)]).json
    assert mixed == [{"jsonrpc": "2.0", "id": 5, "result": {"components": [{"name": "api", "hint_count": 3}]}}]


def _is_silent(reply: Reply) -> bool:
    return (reply.status, reply.body) == (204, b"")


NONSENSE: dict[str, tuple[bytes, int]] = {
    "nothing at all": (b"", -32700),
    "no JSON": (b'{"jsonrpc": "2.0", ', -32700),
    "bytes that are no text": (b'{"jsonrpc": "\xff"}', -32700),
    "NaN": (b'{"jsonrpc": "2.0", "id": 1, "method": "nudge.status", "params": {"x": NaN}}', -32700),
    "a number": (b"7", -32600),
    "no version": (b'{"id": 1, "method": "nudge.status"}', -32600),
    "another version": (b'{"jsonrpc": "1.0", "id": 1, "method": "nudge.status"}', -32600),
    "no method": (b'{"jsonrpc": "2.0", "id": 1}', -32600),
    "a method that is a number": (b'{"jsonrpc": "2.0", "id": 1, "method": 1}', -32600),
    "an id that is true": (b'{"jsonrpc": "2.0", "id": true, "method": "nudge.status"}', -32600),
    "an id that is a list": (b'{"jsonrpc": "2.0", "id": [], "method": "nudge.status"}', -32600),
    "a name twice": (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "nudge.status"}', -32600),
    "too much nesting": (b"[" * 65 + b"]" * 65, -32600),
    "an unknown method": (b'{"jsonrpc": "2.0", "id": 1, "method": "nudge.fly"}', -32601),
    "an MCP method": (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}', -32601),
    "params that are a list": (b'{"jsonrpc": "2.0", "id": 1, "method": "nudge.query", "params": []}', -32602),
    "params that are null": (b'{"jsonrpc": "2.0", "id": 1, "method": "nudge.query", "params": null}', -32602),
    "params that are text": (b'{"jsonrpc": "2.0", "id": 1, "method": "nudge.query", "params": "x"}', -32602),
}


@pytest.mark.parametrize(("body", "code"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_called_by_its_number(script: Http, body: bytes, code: int) -> None:
    """-32700 is no JSON, -32600 no request, -32601 no such method, -32602 params that are no object; all with reason
    and sentence."""
    reply = script.post("/", body)
    error = reply.json["error"]
    assert (reply.status, error["code"], error["data"]) == (200, code, {"reason": REASONS[code]}) and error["message"]


REASONS = {-32700: "E_PARSE", -32600: "E_REQUEST", -32601: "E_METHOD", -32602: "E_PARAMS"}


@pytest.mark.parametrize(
    ("wrong", "request_id"),
    [
        ({"jsonrpc": "1.0", "id": 7, "method": "nudge.status"}, 7),
        ({"jsonrpc": "2.0", "id": "x"}, "x"),
        ({"jsonrpc": "2.0", "id": 1.5, "method": 1}, 1.5),
        ({"jsonrpc": "2.0", "id": True, "method": "nudge.status"}, None),
        ({"jsonrpc": "2.0", "id": [], "method": "nudge.status"}, None),
        ({"method": "nudge.status"}, None),
    ],
)
def test_a_refused_request_is_answered_by_its_id(script: Http, wrong: dict[str, Any], request_id: Any) -> None:
    """Whoever sent it may be waiting for that id; in a batch it is the only way to tell which one was refused."""
    assert script.post("/", wrong).json["id"] == request_id
    assert [answer["id"] for answer in script.post("/", [wrong, request("list_components", 2)]).json] == [request_id, 2]


def test_a_body_has_a_mebibyte(script: Http) -> None:
    """A larger body is refused with 413, an import too, with the commands that take more."""
    for call in (request("get_hint", **named()), request("import", **EMPTY_STORE)):
        body = json.dumps(call).encode()
        assert script.post("/", body.ljust(limits.MAX_BODY_BYTES)).status == 200
        refused = script.post("/", body.ljust(limits.MAX_BODY_BYTES + 1))
        assert refused.status == 413
        assert (refused.json["error"]["code"], refused.json["error"]["data"]) == (-32600, {"reason": "E_REQUEST"})


def test_a_repeated_request_is_answered_again_and_not_done_again(script: Http) -> None:
    """The same request id gives the first answer, also for each call of a batch; another id is another request."""
    script.call("nudge.set_hint", setting())
    first, again, other = (
        script.post("/", request("bump", **named()), Nudge_Request_Id=name).body for name in ("one", "one", "two")
    )
    assert first == again != other
    batch = [request("bump", 1, **named()), request("bump", 2, **named())]
    assert (
        script.post("/", batch, Nudge_Request_Id="three").body == script.post("/", batch, Nudge_Request_Id="three").body
    )
    assert script.call("nudge.get_hint", named())["result"]["hint"]["use_count"] == 4


def test_what_comes_too_late_is_not_done(script: Http) -> None:
    """A write past its deadline is refused retryably; its client has given up on it."""
    late = script.post("/", request("set_hint", **setting()), Nudge_Deadline=str(boot_seconds() - 1)).json
    assert late["error"]["data"] == {"reason": "E_UNAVAILABLE", "retryable": True}
    assert script.call("nudge.list_components", {}) == {"result": {"components": []}}


def test_a_context_with_a_cwd_of_this_machine_gets_its_repo_and_branch(script: Http, tmp_path: Path) -> None:
    """What was scoped to a repo is found by a script that says only where it stands."""
    repo = clone(tmp_path / "shop", branch="dev")
    scope = {"repo": "git:org/shop", "branch": ["dev"]}
    script.call("nudge.set_hint", {"component": "shop", "key": "test", "value": "make", "meta": {"scope": scope}})
    hint = {"component": "shop", "key": "test"}
    assert script.call("nudge.get_hint", {**hint, "context": {"cwd": repo}})["result"]["hint"]["value"] == "make"
    assert script.call("nudge.get_hint", {**hint, "context": {"cwd": str(tmp_path)}})["error"]["code"] == 40401


def test_json_rpc_queries_by_text(script: Http) -> None:
    """Words in any order; `regex` stays as it was."""
    script.call("nudge.set_hint", {"component": "shop", "key": "test", "value": "docker compose run tests"})
    assert len(script.call("nudge.query", {"text": "tests docker"})["result"]["hints"]) == 1
    assert script.call("nudge.query", {"regex": "tests docker"})["result"]["hints"] == []


def test_json_rpc_adds_no_scope_and_no_source(script: Http) -> None:
    """What a script sets is what it said, everywhere."""
    hint = script.call("nudge.set_hint", {"component": "api", "key": "build", "value": "make"})["result"]
    assert hint["hint"]["meta"] == {} and "note" not in hint


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/"),
        ("POST", "/mcp"),
        ("GET", "/nothing"),
        ("GET", "/api/v1/hints"),
        ("GET", "/api/v1/openapi.json"),
        ("POST", "/api/v1/stop"),
        ("GET", "/health/more"),
    ],
)
def test_without_the_token_there_is_only_the_health(server: Served, anonymous: Http, method: str, path: str) -> None:
    """Every path but /health, /sse and the page wants the bearer token, and says where to get it; a wrong one is no
    better."""
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {server.token}"}):
        reply = anonymous.exchange(method, path, b"{}" if method == "POST" else None, **headers)
        assert reply.status == 401 and b"nudge token" in reply.body


def test_anybody_may_ask_for_the_health(anonymous: Http) -> None:
    """/health says that it is up, its name, version and role, and nothing else."""
    expected = {"status": "healthy", "name": "nudge", "version": __version__, "role": "PRIMARY"}
    assert anonymous.exchange("GET", "/health").json == expected


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_obsolete_transport_names_its_successor(anonymous: Http, method: str) -> None:
    """/sse is answered with 410 and what to use in its place, also to a client that has no token yet."""
    reply = anonymous.exchange(method, "/sse", {} if method == "POST" else None)
    error = reply.json
    assert (reply.status, error["code"], error["data"]) == (410, 40401, {"reason": "E_NOT_FOUND", "use": "/mcp"})
    assert "POST /mcp" in error["message"] and error["error"] == error["message"]


def test_a_failure_inside_shows_nothing_of_the_inside(
    server: Served, script: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected exception reaches the wire as an internal error: no traceback, no path, no SQL; the next call
    works."""

    def fail(*_: Any) -> None:
        raise RuntimeError("SELECT secret FROM /var/lib/nudge")

    call = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "nudge_get_hint", "arguments": named()},
    }
    with monkeypatch.context() as broken:
        broken.setattr(server.app.lifetime.store, "get", fail)
        single = script.post("/", request("get_hint", 3, **named()))
        tool = script.post("/mcp", call)
        path = script.exchange("GET", "/api/v1/hints/api/build")
    for reply, status in ((single, 200), (tool, 200), (path, 500)):
        assert reply.status == status
        assert not [
            word for word in (b"SELECT", b"/var", b"RuntimeError", b"Traceback", b".py") if word in reply.body
        ], reply.body
    assert [(reply.json["id"], reply.json["error"]["code"]) for reply in (single, tool)] == [(3, -32603), (3, -32603)]
    assert script.call("nudge.get_hint", named())["error"]["code"] == 40401
