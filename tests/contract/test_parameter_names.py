"""Parameters under the names that agents know from sibling tools."""

from __future__ import annotations

import re
from typing import Any

import pytest

from nudge.core.aliases import ALIASES
from nudge.interfaces.mcp_sdk import INSTRUCTIONS
from nudge.interfaces.operations import OPERATIONS
from nudge.interfaces.schemas import schema_of
from tests.contract.ways import InProcess
from tests.harness import Machine

CALLS = [
    ("nudge_query", "nudge.query", {"query": "docker"}, {"text": "docker"}),
    ("search", "nudge.search", {"text": "docker"}, {"query": "docker"}),
    ("memory_recall", "nudge.memory_recall", {"query": "docker"}, {"context": "docker"}),
    ("memory_recall", "nudge.memory_recall", {"text": "docker"}, {"context": "docker"}),
    ("memory_search", "nudge.memory_search", {"text": "docker"}, {"query": "docker"}),
    ("memory_explain", "nudge.memory_explain", {"text": "docker"}, {"query": "docker"}),
    ("assemble_context", "nudge.assemble_context", {"text": "docker"}, {"query": "docker"}),
    ("file_history", "nudge.file_history", {"path": "/a/b.py"}, {"file_path": "/a/b.py"}),
    ("list_ghap_entries", "nudge.list_ghap_entries", {"status": "open"}, {"outcome": "open"}),
]


@pytest.mark.parametrize(("tool", "operation", "siblings", "own"), CALLS)
def test_a_siblings_name_is_accepted(
    machine: Machine, tool: str, operation: str, siblings: dict[str, Any], own: dict[str, Any]
) -> None:
    """In MCP and JSON-RPC it means the same as the tool's own name."""
    client = machine.serve()
    client.initialize()
    assert client.call(tool, **siblings) == client.call(tool, **own)
    way = InProcess()
    assert way.call(operation, siblings).get("error", {}).get("code") == way.call(operation, own).get("error", {}).get(
        "code"
    )


def test_both_names_at_once_are_refused() -> None:
    """Nobody can know which one is meant."""
    error = InProcess().call("nudge.query", {"text": "a", "query": "b"})["error"]
    assert error["data"]["reason"] == "E_INVALID" and error["data"]["field"] == "query"
    assert error["message"] == "query: is another name of text: give one of them"
    both = InProcess().call("nudge.memory_recall", {"text": "a", "query": "b"})["error"]
    assert both["data"]["reason"] == "E_INVALID"


def test_context_is_an_alias_of_nothing() -> None:
    """Elsewhere it is the object that says where the caller is."""
    assert "context" not in {alias for aliases in ALIASES.values() for alias in aliases}
    error = InProcess().call("nudge.get_hint", {"component": "a", "key": "b", "query": "x"})["error"]
    assert error["message"].startswith("query: is not a parameter")


def test_an_attempt_is_resolved_by_either_name_and_a_lesson_in_either_form(machine: Machine) -> None:
    """`status` or `outcome`; a lesson as a sentence or as an object."""
    client = machine.serve()
    client.initialize()
    for name, lesson in (("status", "read the plan"), ("outcome", {"takeaway": "read the plan"})):
        client.call("start_ghap", goal="g", hypothesis="h", action="a", prediction="p")
        assert client.call("resolve_ghap", **{name: "confirmed"}, lesson=lesson)["status"] == "confirmed"


def test_no_schema_lists_an_alias() -> None:
    """An agent that reads the schema learns one name."""
    for operation in OPERATIONS.values():
        listed = set(schema_of(operation.params)["properties"]) if operation.params.model_fields else set()
        assert listed <= set(operation.params.model_fields)


def test_the_instructions_use_the_names_that_tools_have() -> None:
    """`file_history(file_path)`: what stands in parentheses are parameters."""
    by_tool = {operation.tool: operation.params.model_fields for operation in OPERATIONS.values()}
    mentioned = re.findall(r"(\w+)\((\w+(?:, \w+)*)\)", INSTRUCTIONS)
    assert mentioned
    for tool, names in mentioned:
        assert set(names.split(", ")) <= set(by_tool[tool])


def test_what_agents_are_offered_to_store() -> None:
    """The rest is accepted: times and metadata of an import, who it comes from, how sure it is."""
    listed = schema_of(OPERATIONS["nudge.memory_store"].params, for_tools=True)["properties"]
    assert set(listed) - {"files", "context"} == {"title", "content", "kind", "tags", "tier", "namespace", "expires_at"}
