"""What the history answers when there is nothing, or nothing sensible, to answer: the same through every way in."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nudge.storage import spool
from tests.harness import Machine, Stdio, eventually

Ask = Callable[[str, dict[str, Any]], Any]

SESSION = {"session_id": "s-1", "cwd": "/"}
EVENTS = (
    {
        **SESSION,
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": "t1",
        "tool_input": {"command": "make solitude"},
    },
    {"session_id": "s-2", "cwd": "/", "hook_event_name": "SessionStart", "source": "startup"},
)


class Refused(Exception):
    """The error's reason and sentence, however they came."""


@pytest.fixture(scope="module")
def ways() -> Iterator[dict[str, Ask]]:
    machine = Machine()
    try:
        primary = machine.serve()
        primary.initialize()
        machine.ready()
        for event in EVENTS:
            assert machine.cli("record", stdin=json.dumps(event)).returncode == 0
        eventually(lambda: not spool.pending(machine.runtime), "the events are stored")
        proxy = machine.serve()
        proxy.initialize()
        yield {"PRIMARY": _mcp(primary), "PROXY": _mcp(proxy), "HTTP": _http(machine), "CLI": _cli(machine)}
    finally:
        machine.close()


def _mcp(client: Stdio) -> Ask:
    def ask(tool: str, arguments: dict[str, Any]) -> Any:
        result = client.tool(tool, **arguments)
        content = result["structuredContent"]
        if result.get("isError"):
            raise Refused(content["error"]["reason"], content["error"]["message"])
        return content.get("result", content)

    return ask


def _http(machine: Machine) -> Ask:
    token = machine.cli("token").stdout.strip()
    url = f"http://127.0.0.1:{machine.ready().port}/"

    def ask(tool: str, arguments: dict[str, Any]) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": f"nudge.{tool}", "params": arguments}).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:
            answer = json.load(response)
        if "error" in answer:
            raise Refused(answer["error"]["data"]["reason"], answer["error"]["message"])
        return answer["result"]

    return ask


def _cli(machine: Machine) -> Ask:
    verbs: dict[str, Callable[[dict[str, Any]], list[str]]] = {
        "search": lambda given: ["search", given["query"]],
        "get_observations": lambda given: ["show", *map(str, given["ids"])],
        "timeline": lambda given: ["timeline", str(given["anchor"])],
        "session_trace": lambda given: ["trace", given["session_id"]],
        "file_history": lambda given: ["history", given["file_path"]],
    }

    def ask(tool: str, arguments: dict[str, Any]) -> Any:
        done = machine.cli(*verbs[tool](arguments), "--json", cwd="/")
        answer = json.loads(done.stdout)
        if done.returncode:
            raise Refused(answer["error"]["data"]["reason"], answer["error"]["message"])
        return answer

    return ask


EVERYWHERE = ("PRIMARY", "PROXY", "HTTP", "CLI")
PROGRAMS = ("PRIMARY", "PROXY", "HTTP")


@pytest.mark.parametrize("way", EVERYWHERE)
def test_search(ways: dict[str, Ask], way: str) -> None:
    """A malformed query says what is wrong; no result is an empty list; a plain phrase with special characters just
    works."""
    with pytest.raises(Refused) as refused:
        ways[way]("search", {"query": "(unbalanced", "project": None})
    assert refused.value.args[0] == "E_INVALID" and "parenthesis" in refused.value.args[1].lower()
    assert ways[way]("search", {"query": "nowhere-to-be:found/a.b", "project": None}) == []
    assert [row["content_preview"] for row in ways[way]("search", {"query": "solitude", "project": None})] == [
        "make solitude"
    ]


@pytest.mark.parametrize("way", PROGRAMS)
def test_no_ids(ways: dict[str, Ask], way: str) -> None:
    """An empty list of ids is an error (at a terminal, a mistake in the command line)."""
    with pytest.raises(Refused, match="ids array must not be empty"):
        ways[way]("get_observations", {"ids": []})


@pytest.mark.parametrize("way", PROGRAMS)
def test_missing_ids(ways: dict[str, Ask], way: str) -> None:
    """Ids that retention took are left out silently, all of them too."""
    assert ways[way]("get_observations", {"ids": [999_999]}) == []
    assert [row["id"] for row in ways[way]("get_observations", {"ids": [999_999, 1]})] == [1]


@pytest.mark.parametrize("way", EVERYWHERE)
def test_timeline(ways: dict[str, Ask], way: str) -> None:
    """An unknown anchor is an error; a lonely one comes with empty surroundings."""
    with pytest.raises(Refused, match="anchor observation not found"):
        ways[way]("timeline", {"anchor": 999_999})
    result = ways[way]("timeline", {"anchor": 1})
    assert (result["anchor"]["id"], result["before"], result["after"]) == (1, [], [])


@pytest.mark.parametrize("way", PROGRAMS)
def test_session_trace(ways: dict[str, Ask], way: str) -> None:
    """An unknown session is an error that names it; a window without prompts gives none."""
    with pytest.raises(Refused, match="session not found: nobody"):
        ways[way]("session_trace", {"session_id": "nobody"})
    assert ways[way]("session_trace", {"session_id": "s-1", "before": 1})["prompts"] == []


@pytest.mark.parametrize("way", EVERYWHERE)
def test_file_history(ways: dict[str, Ask], way: str) -> None:
    """A file that nobody touched has no sessions, and that is no error."""
    assert ways[way]("file_history", {"file_path": "/nobody/touched/this"})["sessions"] == []


def test_recent_context_of_an_empty_store(machine: Machine) -> None:
    """Nothing recorded: an empty list."""
    client = machine.serve()
    client.initialize()
    assert client.call("recent_context")["result"] == []
