"""Where the caller stands: always the client's own place and environment, never PRIMARY's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.interfaces.operations import OPERATIONS
from tests.contract.repos import clone, git
from tests.contract.ways import Http, connected
from tests.harness import Machine, Stdio

MARK = "CONTRACT_CI_MARK"
ENV_ONLY = {"env_required": [MARK], "repo": []}
DEFAULT = [operation.tool for operation in OPERATIONS.values() if operation.listed]
HERE, PROJECT, WORKSPACE, NAMED = "standing", "project", "workspace", "named"


@dataclass(frozen=True)
class Places:
    """Four clones; a client stands in the first, and is told of the others in one way each."""

    root: Path

    def at(self, name: str) -> str:
        return str(self.root / name)

    def turn(self, **more: Any) -> dict[str, Any]:
        """What Codex sends with a call."""
        return {"x-codex-turn-metadata": {"workspaces": {self.at(WORKSPACE): {"associated_remote_urls": {}}}, **more}}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    root = tmp_path_factory.mktemp("places")
    for name in (HERE, PROJECT, WORKSPACE, NAMED):
        clone(root / name, branch=f"{name}-branch")
    return Places(root)


@dataclass(frozen=True)
class Pair:
    """PRIMARY and a PROXY of one machine, both standing in the same clone; only PRIMARY has the mark in its
    environment."""

    machine: Machine
    primary: Stdio
    proxy: Stdio


@pytest.fixture(scope="module")
def pair(places: Places) -> Iterator[Pair]:
    machine = Machine()
    standing = {"cwd": places.at(HERE), "CLAUDE_PROJECT_DIR": places.at(PROJECT)}
    primary = connected(machine, "--tools", "nudge_query, nudge.bump", **standing, **{MARK: "1"})
    machine.ready()
    yield Pair(machine, primary, connected(machine, **standing))
    machine.close()


@pytest.fixture(params=["primary", "proxy"])
def agent(request: pytest.FixtureRequest, pair: Pair) -> Stdio:
    stdio: Stdio = getattr(pair, request.param)
    return stdio


def called(agent: Stdio, tool: str, turn: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    """The structured content; `turn` is what the client says beside the arguments."""
    params = {"name": f"nudge_{tool}", "arguments": arguments, **({"_meta": turn} if turn else {})}
    result: dict[str, Any] = agent.request("tools/call", params)["result"]["structuredContent"]
    return result


def scope_taken(agent: Stdio, turn: dict[str, Any] | None = None) -> Any:
    """The repo that a hint without a scope is given tells where the caller was found to be."""
    return called(agent, "set_hint", turn, component="scope", key="k", value="v")["hint"]["meta"]["scope"]


# Precedence


def test_the_turns_workspace_comes_before_the_project_directory(agent: Stdio, places: Places) -> None:
    """What a client says of this one call wins over what it said when it started us."""
    assert scope_taken(agent, places.turn(session_id="s")) == {"repo": "git:example.com/org/workspace"}
    as_text = {name: json.dumps(turn) for name, turn in places.turn().items()}
    assert scope_taken(agent, as_text) == {"repo": "git:example.com/org/workspace"}


def test_the_project_directory_comes_before_the_directory_we_stand_in(agent: Stdio) -> None:
    """CLAUDE_PROJECT_DIR is the project; the directory that a client starts its servers in may be any."""
    assert scope_taken(agent) == {"repo": "git:example.com/org/project"}


def test_without_a_word_it_is_the_directory_we_stand_in(pair: Pair, places: Places) -> None:
    """A client that says nothing is where its server was started."""
    quiet = connected(pair.machine, cwd=places.at(HERE))
    assert scope_taken(quiet) == {"repo": "git:example.com/org/standing"}


def test_an_argument_comes_before_everything(agent: Stdio, places: Places) -> None:
    """An explicit directory brings its own repo and branch; each explicit field wins by itself."""
    named = {"repo": "git:org/named", "branch": ["named-branch"]}
    called(agent, "set_hint", component="where", key="k", value="v", meta={"scope": named})
    result = called(agent, "get_hint", places.turn(), component="where", key="k", context={"cwd": places.at(NAMED)})
    assert result["match_explain"]["reasons"][:2] == [
        "repo git:example.com/org/named matched",
        "branch=named-branch allowed",
    ]
    missed = called(agent, "get_hint", places.turn(), component="where", key="k", context={"branch": "named-branch"})
    assert missed["error"]["why_not"][0]["reasons"] == ["repo=git:example.com/org/workspace, needs git:org/named"]


def test_the_branch_is_read_anew_for_each_call(agent: Stdio, places: Places) -> None:
    """Branches change under a living process."""
    called(agent, "delete_hint", component="branch", key="k")
    called(agent, "set_hint", component="branch", key="k", value="v", meta={"scope": {"branch": ["hotfix/*"]}})
    assert "error" in called(agent, "get_hint", component="branch", key="k")
    git(places.root / PROJECT, "symbolic-ref", "HEAD", "refs/heads/hotfix/1")
    assert called(agent, "get_hint", component="branch", key="k")["match_explain"]["reasons"] == [
        "repo git:example.com/org/project matched",
        "branch=hotfix/1 allowed",
    ]
    git(places.root / PROJECT, "symbolic-ref", "HEAD", "refs/heads/project-branch")


# The default scope


def test_a_hint_without_a_scope_belongs_to_the_repo_and_says_so(agent: Stdio) -> None:
    """Agents in two repos must not overwrite each other's hints; the note tells how to widen it."""
    result = called(agent, "set_hint", component="default", key="k", value="v", meta={"tags": ["a"]})
    assert result["hint"]["meta"]["scope"] == {"repo": "git:example.com/org/project"}
    assert "git:example.com/org/project" in result["note"] and "meta.scope {}" in result["note"]


def test_an_empty_scope_means_everywhere(agent: Stdio) -> None:
    """Said explicitly, nothing is added; the note says so, and how long the hint lives."""
    result = called(agent, "set_hint", component="everywhere", key="k", value="v", meta={"scope": {}})
    assert "scope" not in result["hint"]["meta"]
    assert result["note"] == "scope: everywhere; kept until it is not used for 30 days"


def test_outside_any_repo_nothing_is_added(pair: Pair, tmp_path: Path) -> None:
    """Where there is no repo, a hint is for everywhere."""
    outside = connected(pair.machine, cwd=str(tmp_path))
    result = called(outside, "set_hint", component="outside", key="k", value="v")
    assert "scope" not in result["hint"]["meta"] and result["note"].startswith("scope: everywhere;")


def test_a_script_gets_no_scope_added(pair: Pair) -> None:
    """JSON-RPC, and a POST to /mcp without a caller's context, set what they say and nothing more."""
    script = Http.to(pair.machine)
    plain = script.call("nudge.set_hint", {"component": "script", "key": "k", "value": "v"})["result"]
    bare = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "nudge_set_hint", "arguments": {"component": "script", "key": "b", "value": "v"}},
    }
    posted = script.post("/mcp", bare).json["result"]["structuredContent"]
    script.close()
    for row in (plain, posted):
        assert "scope" not in row["hint"]["meta"]
    assert "note" not in plain


# The environment


@pytest.fixture
def marked(pair: Pair) -> dict[str, Any]:
    """A hint that only those see who have the mark."""
    called(pair.primary, "set_hint", component="env", key="k", value="v", meta={"scope": ENV_ONLY})
    return {"component": "env", "key": "k"}


def test_a_proxys_environment_counts_and_primarys_does_not(pair: Pair, marked: dict[str, Any]) -> None:
    """A hint that needs a variable is seen by the PROXY whose process has it; that PRIMARY has it helps nobody else."""
    assert called(pair.primary, "get_hint", **marked)["match_explain"]["reasons"] == [f"env {MARK} set"]
    assert called(pair.proxy, "get_hint", **marked)["error"]["why_not"][0]["reasons"] == [f"env {MARK} not set"]
    other = connected(pair.machine, **{MARK: ""})
    assert called(other, "get_hint", **marked)["match_explain"]["reasons"] == [f"env {MARK} set"]
    assert called(other, "query", component="env")["hints"][0]["key"] == "k"
    assert called(other, "bump", **marked)["hint"]["use_count"] == 1


def test_a_caller_over_http_cannot_be_asked(pair: Pair, marked: dict[str, Any]) -> None:
    """A hint that asks for a variable is not eligible when nobody can tell its value, and the reason says so."""
    params = {"name": "nudge_get_hint", "arguments": marked}
    script = Http.to(pair.machine)
    unknown = script.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).json
    script.close()
    assert unknown["result"]["isError"]
    assert unknown["result"]["structuredContent"]["error"]["why_not"][0]["reasons"] == [f"env unknown, needs {MARK}"]


def test_an_explicit_environment_is_taken_as_it_is(agent: Stdio, marked: dict[str, Any]) -> None:
    """A caller that names its environment is not asked for more."""
    assert called(agent, "get_hint", **marked, context={"env": {MARK: "1"}})["hint"]["value"] == "v"
    assert "error" in called(agent, "get_hint", **marked, context={"env": {}})


def test_an_environment_of_any_size_can_be_told(pair: Pair) -> None:
    """A value longer than a header, and hints that ask for hundreds of names, keep nobody from being answered, nor hide
    a hint."""
    called(
        pair.primary,
        "set_hint",
        component="big",
        key="k",
        value="v",
        meta={"scope": {"env_required": ["CONTRACT_BIG"], "repo": []}},
    )
    for number in range(30):
        names = [f"CONTRACT_{number}_{nth}_{'X' * 100}" for nth in range(20)]
        called(
            pair.primary,
            "set_hint",
            component="crowd",
            key=f"k{number}",
            value="v",
            meta={"scope": {"env_required": names, "repo": []}},
        )
    called(
        pair.primary,
        "set_hint",
        component="crowd",
        key="last",
        value="v",
        meta={"scope": {"env_match": {"CONTRACT_Z": "1"}, "repo": []}},
    )
    loud = connected(pair.machine, CONTRACT_BIG="x" * 100_000, CONTRACT_Z="1")
    assert called(loud, "get_hint", component="big", key="k")["hint"]["value"] == "v"
    assert [hit["key"] for hit in called(loud, "query", component="crowd")["hints"]] == ["last"]
    assert "last" in [hit["key"] for hit in called(loud, "query", limit=limits.MAX_QUERY_LIMIT)["hints"]]
    assert [hint["eligible"] for hint in called(loud, "list_components", component="crowd")["hints"]] == [
        False
    ] * 30 + [True]
    typed = pair.machine.json("query", "--component", "crowd", CONTRACT_Z="1")
    assert [hit["key"] for hit in typed["hints"]] == ["last"]
    assert called(loud, "get_hint", component="big", key="k")["hint"]["value"] == "v"


# The choice of tools


def _listed(agent: Stdio) -> list[str]:
    return [tool["name"] for tool in agent.request("tools/list")["result"]["tools"]]


def test_each_client_chooses_what_is_listed(pair: Pair) -> None:
    """`--tools` and NUDGE_TOOLS choose for their own client, PRIMARY's or a PROXY's; the flag wins, with or without the
    prefix."""
    assert _listed(pair.primary) == ["nudge_query", "nudge_bump"]
    assert _listed(pair.proxy) == DEFAULT
    assert "nudge_status" in _listed(connected(pair.machine, NUDGE_TOOLS="all"))
    chosen = connected(pair.machine, "--tools", "nudge_export,get_hint,nudge.search,search", NUDGE_TOOLS="all")
    assert _listed(chosen) == ["nudge_export", "nudge_get_hint", "search"]
    assert _listed(connected(pair.machine, NUDGE_TOOLS="")) == DEFAULT


def test_a_tool_that_does_not_exist_cannot_be_chosen(pair: Pair, machine: Machine) -> None:
    """A name that is none is refused with the names there are: a list without the tool would tell nobody. What is right
    works on."""
    wrong = connected(pair.machine, "--tools", "get_hint,größe")
    error = wrong.request("tools/list")["error"]
    assert error["data"] == {"reason": "E_INVALID", "field": "tools"} and "get_hint, set_hint" in error["message"]
    assert called(wrong, "status")["role"] == "PRIMARY"
    alone = machine.cli("serve", "--tools", "nope")
    assert (
        alone.returncode == 3
        and "there is no 'nope'; groups: admin, hints, history, journal, memories; tools: get_hint" in alone.stderr
    )
    assert machine.cli("ls", NUDGE_TOOLS="nope").returncode == 0, "a server without a client lists nothing to anybody"


@pytest.mark.parametrize(
    ("line", "request_id", "code", "reason"),
    [
        (b"{", None, -32700, "E_PARSE"),
        (b"[]", None, -32600, "E_REQUEST"),
        (b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}', 7, -32600, "E_REQUEST"),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "fly"}', 7, -32601, "E_METHOD"),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": []}', 7, -32602, "E_PARAMS"),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {}}', 7, -32602, "E_PARAMS"),
    ],
)
def test_wire_errors_have_a_reason(agent: Stdio, line: bytes, request_id: int | None, code: int, reason: str) -> None:
    """The same from PRIMARY and from a PROXY, which reads its lines by itself."""
    agent.send(line)
    answer = agent.receive()
    assert (answer["id"], answer["error"]["code"], answer["error"]["data"]["reason"]) == (request_id, code, reason)


def test_what_is_not_listed_can_still_be_called(pair: Pair) -> None:
    """The list is what a model reads, not what it may do."""
    assert called(pair.primary, "status")["role"] == "PRIMARY"
    assert called(pair.primary, "list_components")["components"] is not None
    assert called(pair.proxy, "scan", repo="git:org/x", commands=[])["unchanged"] == 0


def test_any_name_of_a_client_can_be_carried(pair: Pair) -> None:
    """A client may be called anything, in any alphabet and with any control character: its PROXY works, and adds no
    header to its words."""
    odd = pair.machine.serve(AI_AGENT="größe-模型")
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "模型\r\nNudge-Tools: all", "version": "1"},
    }
    assert odd.request("initialize", hello)["result"]["serverInfo"]["name"] == "nudge"
    assert _listed(odd) == DEFAULT
    assert "模型??Nudge-Tools: all" in [member["client"] for member in called(odd, "status")["members"]]
    hint = called(odd, "set_hint", component="odd", key="k", value="v", meta={"scope": {}})["hint"]
    assert hint["meta"]["added_by"] == "agent:模型??Nudge-Tools: all"
