"""REST: every operation has a route, a route gives what JSON-RPC gives, and the OpenAPI document describes what is
there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from nudge.core import limits
from nudge.core.operation import Operation
from nudge.interfaces.operations import OPERATIONS
from tests.contract.steps import HERE, named, payload, setting
from tests.contract.ways import EMPTY_STORE, MAX_HINTS, Http, Reply, Served, normalized, served

BUILD = "/api/v1/hints/api/build"
FOUND = {"component": "api", "key": "lint", "value": {"type": "command", "cmd": "make lint"}, "reason": "Makefile:9"}


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served() as running:
        running.app.describe = lambda: {"role": "PRIMARY", "pid": 41}
        running.app.request_stop = lambda force, forget: {"stopping": force, "pid": 41 + forget}
        yield running


@pytest.fixture
def script(server: Served) -> Iterator[Http]:
    with server.script() as opened:
        _seed(opened)
        yield opened


def _seed(script: Http) -> None:
    script.call("nudge.import", EMPTY_STORE)
    script.call("nudge.set_hint", setting("build", "make", tags=["b"], scope={"os": ["linux"]}))
    script.call("nudge.set_hint", setting("build", "nmake", tags=["b"]))
    script.call("nudge.set_hint", setting("test", "pytest", tags=["t"], sensitivity="secret"))


def _query(path: str, **params: Any) -> str:
    """Text as it is, anything else as JSON."""
    return (
        path
        + "?"
        + urlencode({name: text if isinstance(text, str) else json.dumps(text) for name, text in params.items()})
    )


ROUTES: dict[str, tuple[str, Any, dict[str, Any]]] = {  # path and query, body, the same as parameters
    "nudge.set_hint": (
        BUILD,
        {"value": "ninja", "meta": {"priority": 3}, "if_match_version": 1},
        named(value="ninja", meta={"priority": 3}, if_match_version=1),
    ),
    "nudge.get_hint": (_query(BUILD, context=HERE), None, named(context=HERE)),
    "nudge.hint_versions": (f"{BUILD}/versions", None, named()),
    "nudge.query": (
        _query("/api/v1/hints", component="api", keys="build,test", tags="b", regex="make", limit=1, context=HERE),
        None,
        {"component": "api", "keys": ["build", "test"], "tags": ["b"], "regex": "make", "limit": 1, "context": HERE},
    ),
    "nudge.repo_files": (_query("/api/v1/repo-files", root="/nowhere"), None, {"root": "/nowhere"}),
    "nudge.bump": (f"{BUILD}/bump", {"delta": 2, "context": HERE}, named(delta=2, context=HERE)),
    "nudge.delete_hint": (_query(BUILD, scope={"os": ["linux"]}), None, named(scope={"os": ["linux"]})),
    "nudge.list_components": (
        _query("/api/v1/components", component="api", context=HERE),
        None,
        {"component": "api", "context": HERE},
    ),
    "nudge.export": (
        _query("/api/v1/hints/export", component="api", reveal=True),
        None,
        {"component": "api", "reveal": True},
    ),
    "nudge.import": (
        "/api/v1/hints/import",
        {"payload": payload(web={"run": {"value": "go"}}), "mode": "skip"},
        {"payload": payload(web={"run": {"value": "go"}}), "mode": "skip"},
    ),
    "nudge.scan": (
        "/api/v1/scan",
        {"repo": "git:org/api", "commands": [FOUND]},
        {"repo": "git:org/api", "commands": [FOUND]},
    ),
    "nudge.status": ("/api/v1/status", None, {}),
    "nudge.settings": ("/api/v1/settings", None, {}),
    "nudge.doctor": ("/api/v1/doctor", None, {}),
    "nudge.stop": ("/api/v1/stop", {"force": True, "forget": True}, {"force": True, "forget": True}),
}


IN_MEMORY = [
    operation
    for operation in OPERATIONS.values()
    if not operation.summary.startswith(("History: ", "Notes: ", "Journal: ", "Team: "))
    and operation.name != "nudge.open_page"  # a new code each time: `test_page`
    and operation.name != "nudge.decide_repo_file"  # only the page: `test_repo_file`
]


@pytest.mark.parametrize("operation", IN_MEMORY, ids=lambda operation: operation.name)
def test_a_route_gives_what_json_rpc_gives(script: Http, operation: Operation) -> None:
    """Path, query string and body together are the operation's parameters; the body of the answer is its bare
    result."""
    path, body, params = ROUTES[operation.name]
    reply = script.exchange(operation.route[0], path, body)
    _seed(script)
    assert reply.status == 200 and reply.headers["content-type"] == "application/json"
    assert {"result": normalized(reply.json)} == normalized(script.call(operation.name, params))


REFUSED: dict[str, tuple[int, str, str, Any, str, dict[str, Any]]] = {
    "not found": (404, "GET", "/api/v1/hints/api/run", None, "nudge.get_hint", named("run")),
    "a conflict": (
        409,
        "PUT",
        BUILD,
        {"value": "x", "if_match_version": 9},
        "nudge.set_hint",
        named(value="x", if_match_version=9),
    ),
    "a quota": (
        429,
        "POST",
        "/api/v1/hints/import",
        {"payload": payload(web={f"k{n}": {"value": "x"} for n in range(MAX_HINTS)})},
        "nudge.import",
        {"payload": payload(web={f"k{n}": {"value": "x"} for n in range(MAX_HINTS)})},
    ),
    "an invalid field": (400, "PUT", BUILD, {"value": 7}, "nudge.set_hint", named(value=7)),
    "an invalid scope": (
        400,
        "DELETE",
        _query(BUILD, scope={"cwd_glob": ["x"]}),
        None,
        "nudge.delete_hint",
        named(scope={"cwd_glob": ["x"]}),
    ),
    "an unknown parameter": (
        400,
        "GET",
        "/api/v1/components?colour=red",
        None,
        "nudge.list_components",
        {"colour": "red"},
    ),
    "a limit that is text": (400, "GET", "/api/v1/hints?limit=0", None, "nudge.query", {"limit": 0}),
}


@pytest.mark.parametrize(("status", "verb", "path", "body", "method", "params"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_has_the_status_of_its_kind(
    script: Http, status: int, verb: str, path: str, body: Any, method: str, params: dict[str, Any]
) -> None:
    """The error object is the one of JSON-RPC, with its sentence as `error` beside it; the HTTP status tells its kind
    to those who look no further."""
    reply = script.exchange(verb, path, body)
    error = script.call(method, params)["error"]
    assert (reply.status, reply.json) == (status, {"error": error["message"], **error})


@pytest.mark.parametrize(
    ("verb", "path", "body", "status"),
    [
        ("PUT", BUILD, b"{", 400),
        ("PUT", BUILD, b"[]", 400),
        ("PUT", BUILD, b'{"value": 1, "value": 2}', 400),
        ("GET", "/api/v1/hints?limit=ten", None, 400),
        ("GET", f"{BUILD}?context=here", None, 400),
        ("GET", "/api/v1/nothing", None, 404),
        ("PATCH", BUILD, b"{}", 405),
        ("POST", "/api/v1/components", b"{}", 405),
        ("GET", "/api/v1/hints/api", None, 404),
    ],
)
def test_what_is_no_request_is_refused(script: Http, verb: str, path: str, body: bytes | None, status: int) -> None:
    """A body that is no JSON object, a query that is not of its type, and a path or verb that is not there: never a
    200, and always the one form of an error."""
    reply = script.exchange(verb, path, body)
    assert reply.status == status
    assert_is_error(reply)


def assert_is_error(reply: Reply) -> None:
    assert reply.headers["content-type"] == "application/json"
    assert list(reply.json) == ["error", "code", "message", "data"], reply
    assert reply.json["error"] == reply.json["message"] and reply.json["data"]["reason"].startswith("E_")


@pytest.mark.parametrize(
    ("status", "reason", "headers", "body"),
    [
        (401, "E_UNAUTHORIZED", {"Authorization": "Bearer wrong"}, None),
        (403, "E_REQUEST", {"Origin": "https://example.com"}, None),
        (413, "E_REQUEST", {}, b" " * (limits.MAX_BODY_BYTES + 1)),
        (415, "E_REQUEST", {"Content_Type": "text/plain"}, b"x"),
        (421, "E_REQUEST", {"Host": "example.com"}, None),
    ],
)
def test_a_refusal_before_the_operation_has_the_same_form(
    script: Http, status: int, reason: str, headers: dict[str, str], body: bytes | None
) -> None:
    """Below /api/v1/ a program reads one form of an error, whichever layer wrote it; the headers stay."""
    reply = script.exchange("PUT", BUILD, body, **headers)
    assert (reply.status, reply.json["data"]["reason"]) == (status, reason)
    assert_is_error(reply)
    assert reply.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)


def test_a_wrong_verb_is_told_the_right_ones(script: Http) -> None:
    """405 lists what the path takes; HEAD wherever GET is."""
    reply = script.exchange("PATCH", BUILD, b"{}")
    assert {*reply.headers["allow"].split(", ")} == {"GET", "HEAD", "PUT", "DELETE"}


@pytest.mark.parametrize("name", ["a/b", "größe", "100%", "a b+c", "..", "x?y#z", "bump"])
def test_a_path_can_name_every_hint(script: Http, name: str) -> None:
    """Percent-encoding carries any name, a slash too."""
    path = f"/api/v1/hints/{quote(name, safe='')}/{quote(name, safe='')}"
    assert script.exchange("PUT", path, {"value": "x"}).status == 200
    assert script.call("nudge.get_hint", {"component": name, "key": name})["result"]["hint"]["value"] == "x"
    assert script.exchange("GET", path).json["hint"]["value"] == "x"


def test_the_path_wins_over_the_body(script: Http) -> None:
    """Who reads a log of paths must know which hint was meant."""
    assert script.exchange("PUT", BUILD, {"value": "x", "component": "other"}).status == 200
    assert script.call("nudge.list_components", {})["result"]["components"] == [{"name": "api", "hint_count": 3}]


@pytest.mark.parametrize("query", ["keys=build,test", "keys=build&keys=test"])
def test_a_list_has_commas_or_is_given_repeatedly(script: Http, query: str) -> None:
    """Both ways in which clients write a list into a query string are understood."""
    result = script.exchange("GET", f"/api/v1/hints?{query}").json["hints"]
    assert {hit["key"] for hit in result} == {"build", "test"}


# The document


@pytest.fixture(scope="module")
def document(server: Served) -> dict[str, Any]:
    with server.script() as opened:
        described: dict[str, Any] = opened.exchange("GET", "/api/v1/openapi.json").json
    return described


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_the_document_describes_every_operation(document: dict[str, Any], operation: Operation) -> None:
    """Each route is there under its verb, with all its parameters, each in one place, and schemas that are JSON
    Schema."""
    verb, template = operation.route
    described = document["paths"][template][verb.lower()]
    assert described["operationId"] == operation.tool and described["summary"] == operation.summary
    places = {parameter["name"]: parameter["in"] for parameter in described["parameters"]}
    in_path = {name for name, place in places.items() if place == "path"}
    assert in_path == set(re.findall(r"{(\w+)}", template))
    body = (
        described.get("requestBody", {})
        .get("content", {})
        .get("application/json", {})
        .get("schema", {"properties": {}})
    )
    body = body.get("anyOf", [body])[0]
    assert sorted(operation.params.model_fields) == sorted([*places, *body["properties"]])
    assert set(body.get("required", ())) <= set(body["properties"])
    for schema in [body, *_schemas(described)]:
        Draft202012Validator.check_schema(schema)


def _schemas(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of the parameters and of the answer; an object in a query string is said to be JSON text, a list to have
    commas."""
    for parameter in described["parameters"]:
        schema = parameter["schema"] if "schema" in parameter else parameter["content"]["application/json"]["schema"]
        assert ("content" in parameter) == (schema.get("type") == "object")
        assert (parameter.get("explode") is False) == (schema.get("type") == "array")
        assert parameter["required"] or parameter["in"] == "query"
        yield schema
    for response in described["responses"].values():
        yield response["content"]["application/json"]["schema"]


def test_the_document_is_whole(document: dict[str, Any]) -> None:
    """OpenAPI 3.1, no operation twice, the token declared, and no reference that leads nowhere."""
    assert document["openapi"].startswith("3.1.") and document["info"]["title"] == "Nudge"
    described = [operation for verbs in document["paths"].values() for operation in verbs.values()]
    also = {"memory_recall_get", "health"}
    assert len(described) == len(OPERATIONS) + len(also)
    assert {operation["operationId"] for operation in described} == {op.tool for op in OPERATIONS.values()} | also
    assert document["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}
    assert document["security"] == [{"token": []}]
    assert "$ref" not in json.dumps(document)
