"""What an agent's context pays for the tools, and that people can do what agents can."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from nudge.cli.verbs import all_verbs
from nudge.core import strict_json
from nudge.core.call import Call
from nudge.interfaces.mcp_server import McpCaller, McpServer
from nudge.interfaces.operations import OPERATIONS
from tests.contract.ways import InProcess

MOST_CHARACTERS = 12_000
NOUN = re.compile(r"[A-Z][a-z]+: ")
AGENT_ONLY = frozenset(  # operations without a verb
    (
        *("nudge.memory_bulk", "nudge.memory_get_links", "nudge.assemble_context"),
        *("nudge.get_active_ghap", "nudge.start_session", "nudge.should_check_in"),
        *("nudge.increment_tool_count", "nudge.reset_tool_count"),
        *("nudge.repo_files", "nudge.decide_repo_file"),  # the page's; the verb asks a person by itself
        "nudge.doctor",  # the verb of this name checks by itself, from outside of the server
    )
)


def _listed(choice: str, params: dict[str, Any]) -> list[dict[str, Any]]:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
    answer = asyncio.run(McpServer(InProcess().app).answer(asked, McpCaller(Call(), tools=choice)))
    assert answer is not None
    tools: list[dict[str, Any]] = answer["result"]["tools"]
    return tools


@pytest.mark.parametrize(
    "params",
    [
        {},
        {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        },
    ],
    ids=["2025-11-25", "2026-07-28"],
)
def test_the_default_list_of_tools_is_affordable(params: dict[str, Any]) -> None:
    """A client that loads every tool reads at most 12,000 characters of JSON, output schemas included, in either
    protocol."""
    tools = _listed("default", params)
    assert all(tool["inputSchema"] and tool["outputSchema"] for tool in tools)
    assert len(strict_json.encode(tools).decode()) <= MOST_CHARACTERS


def test_null_is_allowed_where_it_means_all_projects() -> None:
    """A client that checks arguments against the schema must be able to say it; elsewhere null says nothing, and is not
    offered."""
    types = {
        tool["name"]: [option["type"] for option in tool["inputSchema"]["properties"]["project"]["oneOf"]]
        for tool in _listed("default", {})
        if "oneOf" in tool["inputSchema"]["properties"].get("project", {})
    }
    assert types == {"search": ["string", "null"], "recent_context": ["string", "null"]}


def _schemas(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield from node.get("properties", {}).values() if isinstance(node.get("properties"), dict) else ()
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from _schemas(part)


def test_every_field_has_one_type_or_named_choices() -> None:
    """The inspector's `--strict` warns about fields without a type and about lists of types: parameters of every tool,
    and results of those that are listed by default."""
    nodes = [tool["inputSchema"] for tool in _listed("all", {})] + [
        tool["outputSchema"] for tool in _listed("default", {})
    ]
    for schema in _schemas(nodes):
        assert isinstance(schema.get("type"), str) or schema.keys() & {"anyOf", "oneOf", "enum", "const"}, schema


def test_every_tool_starts_with_its_noun() -> None:
    """A long list is read by its first words."""
    assert [tool["name"] for tool in _listed("all", {}) if not NOUN.match(tool["description"])] == []


def test_every_operation_is_a_tool_under_its_own_name() -> None:
    """One table, no second spelling, and no dot, which some clients cannot say."""
    names = [tool["name"] for tool in _listed("all", {})]
    assert names == [operation.tool for operation in OPERATIONS.values()] and "." not in "".join(names)


def test_every_operation_has_a_verb() -> None:
    """What an agent can do a person can do too, unless it is marked as the agent's own; a verb calls only what there
    is."""
    called = {operation for verb in all_verbs() for operation in verb.operations}
    assert set(OPERATIONS) - called == AGENT_ONLY
    assert called <= set(OPERATIONS)


def test_no_schema_has_a_list_of_types() -> None:
    """Some clients read one type only: what may be null says so in branches."""

    def lists(node: Any) -> Iterator[Any]:
        if isinstance(node, dict):
            if isinstance(node.get("type"), list):
                yield node
            node = list(node.values())
        if isinstance(node, list):
            for part in node:
                yield from lists(part)

    tools = _listed("all", {})
    assert len(tools) > 30 and list(lists(tools)) == []
