"""Notes through every interface: the same call gives the same result and the same error, and every documented status is
real."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from nudge.interfaces import rest
from nudge.interfaces.operations import OPERATIONS
from nudge.interfaces.rest import MODEL_EXAMPLES, NOTE_EXAMPLES, REFUSALS
from nudge.storage.database import Database
from tests import toon_parser
from tests.contract.repos import clone
from tests.contract.ways import Http, InProcess, Mcp, Outcome, Params, Rest, Way, connected, served
from tests.harness import Machine

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
OF_THE_INTERFACE = ("origin", "source", "uid", "bytes", "db_size_bytes")
NOTES = [name for name, operation in OPERATIONS.items() if operation.group == "memories"]
NEED_MORE = {"nudge.memory_sync", *MODEL_EXAMPLES}  # another database, a language model
HEX = "9f86d081884c7d659a2feaa0c55ad015"

# Calls that are refused after the examples ran: operation, parameters, reason, and the field that is named.
REFUSED: list[tuple[str, dict[str, Any], str, str | None]] = [
    ("store", {"content": "x", "namespace": "n"}, "E_INVALID", "title"),
    ("store", {"title": "x", "content": " ", "namespace": "n"}, "E_INVALID", "content"),
    ("store", {"title": "x", "content": "y" * 70_000, "namespace": "n"}, "E_INVALID", "content"),
    ("store", {"title": "x", "content": "y", "tier": "forever"}, "E_INVALID", "tier"),
    ("store", {"title": "x", "content": "y", "kind": "idea"}, "E_INVALID", "kind"),
    ("store", {"title": "x", "content": "y", "expires_at": "2001-01-01T00:00:00Z"}, "E_INVALID", "expires_at"),
    ("store", {"title": "x", "content": "y", "colour": "red"}, "E_INVALID", "colour"),
    ("store", {"title": "x", "content": f"password = {HEX}"}, "E_SECRET_REJECTED", "content"),
    ("store", {"title": "x", "content": "y", "metadata": {"password": HEX}}, "E_SECRET_REJECTED", "metadata"),
    ("bulk", {"memories": 7}, "E_INVALID", "memories"),
    ("recall", {"context": "?!"}, "E_INVALID", "context"),
    ("recall", {"context": "x", "limit": 201}, "E_INVALID", "limit"),
    ("recall", {"context": "x", "since": "yesterday"}, "E_INVALID", "since"),
    ("explain", {"ids": ["x"]}, "E_INVALID", "ids[0]"),
    ("explain", {"query": "x", "limit": 0}, "E_INVALID", "limit"),
    ("search", {"query": "..."}, "E_INVALID", "query"),
    ("list", {"offset": -1}, "E_INVALID", "offset"),
    ("get", {"id": "x"}, "E_INVALID", "id"),
    ("get", {"id": 999}, "E_NOT_FOUND", None),
    ("update", {"id": 3, "priority": 11}, "E_INVALID", "priority"),
    ("update", {"id": 999, "priority": 1}, "E_NOT_FOUND", None),
    ("update", {"id": 3, "title": "The server"}, "E_CONFLICT", None),
    ("update", {"id": 3, "content": f"api_key: {HEX}"}, "E_SECRET_REJECTED", "content"),
    ("link", {"source_id": 3, "target_id": 3}, "E_INVALID", "target_id"),
    ("link", {"source_id": 3, "target_id": 999}, "E_NOT_FOUND", None),
    ("get_links", {"id": 0}, "E_INVALID", "id"),
    ("delete_link", {"source_id": 3}, "E_INVALID", "target_id"),
    ("delete_link", {"source_id": 3, "target_id": 71, "relation": "knows"}, "E_INVALID", "relation"),
    ("delete_link", {"source_id": 3, "target_id": 999}, "E_NOT_FOUND", None),
    ("get_links", {"id": 999}, "E_NOT_FOUND", None),
    ("resolve", {"winner_id": 3, "loser_id": "m"}, "E_INVALID", "loser_id"),
    ("resolve", {"winner_id": 3, "loser_id": 999}, "E_NOT_FOUND", None),
    ("resolve", {"winner_id": 3, "loser_id": "m3"}, "E_INVALID", "loser_id"),
    ("promote", {"id": "m0"}, "E_INVALID", "id"),
    ("promote", {"id": 999}, "E_NOT_FOUND", None),
    ("auto_consolidate", {"min_count": 1}, "E_INVALID", "min_count"),
    ("consolidate", {"ids": [3], "title": "t", "summary": "s"}, "E_INVALID", "ids"),
    ("consolidate", {"ids": [3, "m3"], "title": "t", "summary": "s"}, "E_INVALID", "ids"),
    ("consolidate", {"ids": [3, 999], "title": "t", "summary": "s"}, "E_NOT_FOUND", None),
    ("archive_list", {"limit": 0}, "E_INVALID", "limit"),
    ("archive_restore", {"id": "y"}, "E_INVALID", "id"),
    ("archive_restore", {"id": 999}, "E_NOT_FOUND", None),
    ("forget", {"dry_run": True}, "E_INVALID", None),
    ("forget", {"tags": []}, "E_INVALID", None),
    ("delete", {"id": "-1"}, "E_INVALID", "id"),
    ("delete", {"id": 999}, "E_NOT_FOUND", None),
    ("archive_purge", {"older_than_days": -1}, "E_INVALID", "older_than_days"),
    ("import", {"memories": 7}, "E_INVALID", "memories"),
    ("import", {"memories": [], "page": 3}, "E_INVALID", "page"),
    ("export", {"after": -1}, "E_INVALID", "after"),
    ("proposals", {"state": "maybe"}, "E_INVALID", "state"),
]


def comparable(node: Any) -> Any:
    """Without the time of day, and without what tells the interfaces apart."""
    if isinstance(node, dict):
        return {name: comparable(value) for name, value in node.items() if name not in OF_THE_INTERFACE}
    if isinstance(node, list):
        return [comparable(item) for item in node]
    if isinstance(node, float):
        return round(node, 2)
    return "<time>" if isinstance(node, str) and TIME.fullmatch(node) else node


@contextmanager
def in_process() -> Iterator[Way]:
    with closing(Machine()) as machine, closing(Database.open(str(machine.base / "notes.db"))) as database:
        yield InProcess(database)


@contextmanager
def mcp_primary() -> Iterator[Way]:
    with closing(Machine()) as machine:
        yield Mcp(connected(machine))


@contextmanager
def mcp_proxy() -> Iterator[Way]:
    with closing(Machine()) as machine:
        machine.prepared_server()
        yield Mcp(connected(machine))


@contextmanager
def json_rpc() -> Iterator[Way]:
    with closing(Machine()) as machine:
        machine.prepared_server()
        with closing(Http.to(machine)) as http:
            yield http


@contextmanager
def by_rest() -> Iterator[Way]:
    with closing(Machine()) as machine:
        machine.prepared_server()
        with closing(Http.to(machine)) as http:
            yield Rest(http)


def run(way: Way) -> list[tuple[str, Outcome]]:
    """Every example, then every refusal."""
    calls = [*NOTE_EXAMPLES.items(), *((f"nudge.memory_{name}", params) for name, params, *_ in REFUSED)]
    return [(operation, comparable(way.call(operation, params))) for operation, params in calls]


@pytest.fixture(scope="module")
def expected() -> list[tuple[str, Outcome]]:
    with in_process() as way:
        return run(way)


def test_every_operation_on_notes_has_an_example_that_works(expected: list[tuple[str, Outcome]]) -> None:
    """In the order of the examples, on an empty store."""
    assert set(NOTE_EXAMPLES) == set(NOTES) - NEED_MORE
    assert [(name, outcome) for name, outcome in expected[: len(NOTE_EXAMPLES)] if "result" not in outcome] == []


def test_what_an_operation_on_notes_answers_is_declared(expected: list[tuple[str, Outcome]]) -> None:
    """A client that reads the schema of a result knows every field of it."""
    answered = [(name, outcome["result"]) for name, outcome in expected[: len(NOTE_EXAMPLES)]]
    declared = {name: operation.result.model_fields for name, operation in OPERATIONS.items()}
    undeclared = {(name, field) for name, result in answered for field in result.keys() - declared[name]}
    assert undeclared == set()


def test_every_refusal_has_its_reason_and_its_field(expected: list[tuple[str, Outcome]]) -> None:
    """What is wrong is named, and nothing of it is stored."""
    for (name, params, reason, field), (_, outcome) in zip(REFUSED, expected[len(NOTE_EXAMPLES) :], strict=True):
        data = outcome.get("error", {}).get("data", {})
        assert (data.get("reason"), data.get("field")) == (reason, field), (name, params, outcome)


@pytest.mark.parametrize("interface", [mcp_primary, mcp_proxy, json_rpc, by_rest])
def test_notes_are_the_same_through_every_interface(interface: Any, expected: list[tuple[str, Outcome]]) -> None:
    """Result and error, to the last field; the text block of a list is its TOON."""
    with interface() as way:
        for answered, wanted in zip(run(way), expected, strict=True):
            assert answered == wanted


# REST


@pytest.fixture
def http(tmp_path: Path) -> Iterator[Http]:
    with (
        closing(Database.open(str(tmp_path / "notes.db"))) as database,
        served(database) as server,
        server.script() as opened,
    ):
        yield opened


def test_every_documented_status_is_seen(http: Http) -> None:
    """Each success, and for each operation every refusal that the document announces."""
    way = Rest(http)
    seen: dict[str, set[int]] = {}
    for name, params in NOTE_EXAMPLES.items():
        seen.setdefault(name, set()).add(_status(http, name, params))
    zebra = {"title": "Zebra", "content": "x", "namespace": "my-app"}
    archived = way.call("nudge.memory_store", zebra)["result"]["id"]
    way.call("nudge.memory_forget", {"pattern": "zebra"})
    stored = way.call("nudge.memory_store", zebra)["result"]["id"]
    conflicts = [
        ("archive_restore", {"id": archived}, "", None),
        ("consolidate", {"ids": [3, stored], "title": "The server", "summary": "s"}, "", None),
    ]
    for name, params, *_ in [*REFUSED, *conflicts]:
        seen[f"nudge.memory_{name}"].add(_status(http, f"nudge.memory_{name}", params))
    documented = {name: {rest.success_of(OPERATIONS[name]), *REFUSALS[name]} for name in NOTE_EXAMPLES}
    assert seen == documented


def _status(http: Http, operation: str, params: Params) -> int:
    statuses: list[int] = []
    exchange = http.exchange

    def noted(*args: Any, **kwargs: Any) -> Any:
        reply = exchange(*args, **kwargs)
        statuses.append(reply.status)
        return reply

    http.exchange = noted  # type: ignore[method-assign]
    try:
        Rest(http).call(operation, params)
    finally:
        http.exchange = exchange  # type: ignore[method-assign]
    return statuses[0]


# The 24 endpoints of the guide, and the operation that stands for each.
ENDPOINTS = {
    ("GET", "/health"): "health",
    ("POST", "/memories"): "memory_store",
    ("POST", "/memories/bulk"): "memory_bulk",
    ("GET", "/memories/1"): "memory_get",
    ("PUT", "/memories/1"): "memory_update",
    ("DELETE", "/memories/1"): "memory_delete",
    ("POST", "/memories/1/promote"): "memory_promote",
    ("GET", "/memories"): "memory_list",
    ("GET", "/search"): "memory_search",
    ("GET", "/recall"): "memory_recall",
    ("POST", "/recall"): "memory_recall",
    ("POST", "/forget"): "memory_forget",
    ("POST", "/consolidate"): "memory_consolidate",
    ("POST", "/links"): "memory_link",
    ("GET", "/links/1"): "memory_get_links",
    ("GET", "/namespaces"): "memory_namespaces",
    ("GET", "/stats"): "memory_stats",
    ("POST", "/gc"): "memory_gc",
    ("GET", "/export"): "memory_export",
    ("POST", "/import"): "memory_import",
    ("GET", "/archive"): "memory_archive_list",
    ("POST", "/archive/1/restore"): "memory_archive_restore",
    ("DELETE", "/archive"): "memory_archive_purge",
    ("GET", "/archive/stats"): "memory_archive_stats",
}


def test_the_guide_has_24_endpoints() -> None:
    """Each of them is in the table."""
    assert len(ENDPOINTS) == 24


@pytest.mark.parametrize(("verb", "path"), ENDPOINTS)
def test_every_endpoint_of_the_guide_is_there(http: Http, verb: str, path: str) -> None:
    """At its path, served by the operation that stands for it."""
    operation = rest.match(f"/api/v1{path}").get(verb)
    assert (operation[0].tool if operation else "health") == ENDPOINTS[verb, path]
    reply = http.exchange(verb, f"/api/v1{path}", None if verb in ("GET", "DELETE") else {})
    assert reply.status in (200, 201, 400, 404) and reply.headers["content-type"] == "application/json"


def test_the_requests_of_the_guide(http: Http) -> None:
    """A query string for recall, `q` for search, a list as the body of a bulk, `m12` in a path."""
    body = [{"title": "Memory 1", "content": "auth flow"}, {"title": "Memory 2", "content": "jwt", "tags": ["auth"]}]
    assert http.post("/api/v1/memories/bulk", body).json | {"ids": []} == {
        "created": 2,
        "updated": 0,
        "ids": [],
        "errors": [],
    }
    recalled = http.exchange("GET", "/api/v1/recall?context=auth+flow+jwt&limit=10&tags=auth").json
    assert [note["title"] for note in recalled["memories"]] == ["Memory 2"] and recalled["count"] == 1
    assert http.exchange("GET", "/api/v1/search?q=auth+flow&limit=10").json["query"] == "auth flow"
    assert http.exchange("GET", "/api/v1/memories/m1").json["memory"]["namespace"] == "global"
    missing = http.exchange("GET", "/api/v1/memories/99")
    assert (missing.status, missing.json["error"], missing.json["code"]) == (404, "there is no note m99", 40401)


def test_health_looks_at_the_database(tmp_path: Path) -> None:
    """`ok` when notes and index can be read, 503 when not; neither needs the token, and /health tells no more than that
    the server is up."""
    with (
        closing(Database.open(str(tmp_path / "notes.db"))) as database,
        served(database) as server,
        server.script(authorized=False) as anonymous,
    ):
        well = anonymous.exchange("GET", "/api/v1/health")
        assert (well.status, well.json) == (200, {"status": "ok", "service": "nudge"})
        database.close()
        ill = anonymous.exchange("GET", "/api/v1/health")
        assert (ill.status, ill.json) == (503, {"status": "error", "service": "nudge"})
        assert anonymous.exchange("GET", "/health").json["status"] == "healthy"


# MCP


def test_the_text_of_a_list_is_toon_and_json_on_request(machine: Machine) -> None:
    """Compact by default, full or JSON as the call says; what the structure says the text says."""
    agent = connected(machine)
    agent.call("memory_store", title="A|B", content="pipes", tags=["x", "y"])
    compact = agent.tool("memory_recall", context="pipes")["content"][0]["text"]
    assert toon_parser.parse(compact)["memories"][0]["title"] == "A|B" and "created_at" not in compact
    full = agent.tool("memory_list", format="toon")["content"][0]["text"]
    assert toon_parser.parse(full)["memories"][0]["tags"] == "x,y" and "created_at" in full
    assert agent.tool("memory_search", query="pipes", format="json")["content"][0]["text"].startswith('{"results":[{')
    agent.quit()


def test_a_note_belongs_to_the_repo_and_says_where_it_comes_from(machine: Machine) -> None:
    """The whole identity is the namespace, its short name means the same; client, session, repo and branch are kept."""
    api = clone(machine.base / "api")
    agent = connected(machine, cwd=api, CLAUDE_CODE_SESSION_ID="s-1")
    stored = agent.call("memory_store", title="Deploys", content="by hand")
    assert stored["namespace"] == "example.com/org/api"
    again = agent.call("memory_store", title="Deploys", content="by script", namespace="api")
    assert again["id"] == stored["id"] and again["previous"]["content"] == "by hand"
    note = agent.call("memory_get", id=f"m{stored['id']}")["memory"]
    origin = {"client": "test", "session": "s-1", "repo": "example.com/org/api", "branch": "main"}
    assert note["origin"] == origin
    assert note["source"] == "agent"
    assert agent.call("memory_recall", context="deploys", namespace="API")["count"] == 1
    agent.quit()


def test_private_notes_stay_private(machine: Machine) -> None:
    """Elsewhere they are neither recalled nor listed, counted, explained or got, unless the caller names them."""
    payroll, api = clone(machine.base / "payroll"), clone(machine.base / "api")
    inside = connected(machine, cwd=payroll, NUDGE_PRIVATE_PROJECTS="payroll")
    note_id = inside.call("memory_store", title="Salaries", content="are paid on Friday")["id"]
    outside = connected(machine, cwd=api)
    for tool, params in (
        ("memory_recall", {"context": "friday"}),
        ("memory_list", {}),
        ("memory_search", {"query": "friday"}),
    ):
        assert outside.call(tool, **params)["count"] == 0
        assert inside.call(tool, **params)["count"] == 1
    assert outside.call("memory_namespaces") == {"namespaces": []}
    assert outside.call("memory_forget", pattern="friday")["deleted"] == 0
    assert outside.call("memory_recall", context="friday", namespace="payroll")["count"] == 1
    explained = outside.call("memory_explain", ids=[note_id])
    assert explained["items"] == [] and [error["code"] for error in explained["errors"]] == ["NOT_FOUND"]
    assert "payroll" not in str(outside.call("memory_explain", ids=[note_id], project="api"))
    refusal = outside.request("tools/call", {"name": "memory_get", "arguments": {"id": note_id}})
    assert "E_NOT_FOUND" in str(refusal) and "payroll" not in str(refusal)
    assert outside.call("memory_get", id=note_id, namespace="payroll")["memory"]["title"] == "Salaries"
    assert outside.call("memory_explain", ids=[note_id], project="payroll")["items"]
    outside.quit()
    inside.quit()


def test_the_prompts_say_how_to_use_notes(machine: Machine) -> None:
    """`recall-first` has eight rules, for one namespace on request; `memory-workflow` names every tool for notes. A
    prompt or an argument that there is none of is refused."""
    agent = connected(machine)
    prompts = agent.request("prompts/list")["result"]["prompts"]
    assert [prompt["name"] for prompt in prompts] == ["recall-first", "memory-workflow"]

    def text(name: str, **arguments: str) -> str:
        result = agent.request("prompts/get", {"name": name, "arguments": arguments})["result"]
        return str(result["messages"][0]["content"]["text"])

    assert re.findall(r"^\d", text("recall-first"), re.MULTILINE) == list("12345678")
    assert "`namespace` 'api'" in text("recall-first", namespace="api") and "namespace" not in text("recall-first")
    assert all(f"- {OPERATIONS[name].tool}(" in text("memory-workflow") for name in NOTES)
    for params in ({"name": "nope"}, {"name": "recall-first", "arguments": {"colour": "red"}}):
        assert agent.request("prompts/get", params)["error"]["code"] == -32602
    agent.quit()
