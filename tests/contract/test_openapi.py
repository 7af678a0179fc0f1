"""schemathesis reads the OpenAPI document and sends what it allows, and what it does not: never a 5xx, and every answer
to what is allowed is as documented."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode, checks

from nudge.interfaces import rest
from nudge.storage.database import Database
from tests import effort
from tests.contract.ways import Served, served

# One ends the server, two write a file wherever they are told, one needs a runtime directory, and one has nothing that
# could be wrong.
NOT_SENT = ("nudge_stop", "backup", "memory_sync", "open_page", "health")
AS_DOCUMENTED = (
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
)
SCHEMA = schemathesis.openapi.from_dict(rest.openapi())
OPERATIONS: dict[str, Any] = {
    operation.definition.raw["operationId"]: operation
    for operation in (cast(Any, result).ok() for result in SCHEMA.get_all_operations())
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path: Path = tmp_path_factory.mktemp("openapi") / "nudge.db"
    with closing(Database.open(str(path))) as database, served(database) as running:
        running.app.describe = lambda: {"role": "PRIMARY", "pid": 41}
        yield running


def send(server: Served, operation: Any, mode: GenerationMode, count: int, wanted: tuple[Any, ...]) -> None:
    @settings(
        max_examples=effort.times(count),
        deadline=None,
        database=None,
        derandomize=not effort.is_long(),
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def exchange(case: Any) -> None:
        base = f"http://127.0.0.1:{server.port}"
        response = case.call(base_url=base, headers={"Authorization": f"Bearer {server.token}"})
        case.validate_response(response, checks=wanted)
        answered.append(response.status_code)

    answered: list[int] = []
    exchange()
    assert answered, "nothing was sent"


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in NOT_SENT])
def test_what_the_document_allows_is_answered_as_documented(server: Served, name: str) -> None:
    """Status, content type and body; a value that only the server can judge may be refused."""
    send(server, OPERATIONS[name], GenerationMode.POSITIVE, 2, AS_DOCUMENTED)


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in NOT_SENT])
def test_what_the_document_does_not_allow_is_never_the_servers_fault(server: Served, name: str) -> None:
    """Wrong types, missing fields, no token: refused, without a 5xx."""
    send(server, OPERATIONS[name], GenerationMode.NEGATIVE, 1, (checks.not_a_server_error,))


def test_the_document_has_examples_for_notes() -> None:
    """schemathesis takes them from there, as readers do."""
    described = {name: operation.definition.raw for name, operation in OPERATIONS.items()}
    body = described["memory_store"]["requestBody"]["content"]["application/json"]["example"]
    assert body["title"] == "The API uses Axum"
    assert {parameter["name"]: parameter.get("example") for parameter in described["memory_get"]["parameters"]} == {
        "id": 1,
        "namespace": None,
        "archived": None,
        "context": None,
    }
