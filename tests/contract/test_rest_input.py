"""REST takes any bytes and any number: what is no parameter is refused as the caller's mistake, never as a failure of
ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from nudge.core.operation import Operation
from nudge.interfaces.operations import OPERATIONS
from nudge.interfaces.schemas import schema_of
from nudge.storage.database import Database
from tests.contract.ways import Http, Reply, served

HUGE = ("9223372036854775808", "-9223372036854775809", "1" + "0" * 40)
NOT_UTF8 = ("%ed%a0%80", "%ff", "x%c3")


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    path = str(tmp_path_factory.mktemp("rest") / "nudge.db")
    with closing(Database.open(path)) as database, served(database) as running, running.script() as opened:
        yield opened


def _ask(script: Http, operation: Operation, name: str, raw: str) -> Reply:
    """The request with this text as one of its parameters, in the path or in the query string."""
    verb, template = operation.route
    path = template.replace(f"{{{name}}}", raw).replace("{", "").replace("}", "")
    query = "" if f"{{{name}}}" in template else f"?{name}={raw}"
    return script.exchange(verb, path + query, {} if verb in ("POST", "PUT") else None)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_bytes_that_are_no_text_are_refused(script: Http, operation: Operation) -> None:
    """Half of a surrogate pair and other bytes that are not UTF-8, in each parameter, and as a parameter's name."""
    for raw in NOT_UTF8:
        for name in operation.params.model_fields:
            reply = _ask(script, operation, name, raw)
            assert (reply.status, reply.json["data"]) == (400, {"reason": "E_INVALID", "field": name}), (name, raw)
        assert _ask(script, operation, raw, "1").status == 400


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_numbers_have_64_bits(script: Http, operation: Operation) -> None:
    """A number that the database cannot hold is refused, or matches nothing."""
    for name, schema in schema_of(operation.params).get("properties", {}).items():
        kinds = {part.get("type") for part in (schema, *schema.get("anyOf", ()))}
        for raw in HUGE if "integer" in kinds or f"{{{name}}}" in operation.route[1] else ():
            assert _ask(script, operation, name, raw).status in (400, 404), (name, raw)


@pytest.mark.parametrize("header", ["Nudge_Request_Id", "Nudge_Session"])
def test_headers_are_text(script: Http, header: str) -> None:
    """The key of a request and the name of a session are stored: bytes that are not UTF-8 are refused."""
    sent = {header: b"\xff".decode("latin-1")}
    reply = script.exchange("POST", "/api/v1/memories", {"title": "a", "content": "b"}, **sent)
    assert (reply.status, reply.json["data"]["field"]) == (400, header.replace("_", "-"))
