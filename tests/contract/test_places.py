"""Where a caller stands means the same through every interface: the repo that a hint is given, the repo and branch of a
directory, and what comes first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from nudge.core.call import InContext
from nudge.interfaces.operations import OPERATIONS
from nudge.notes.models import Recall
from tests.contract.repos import clone, git
from tests.contract.ways import Http, Mcp, Outcome, Params, Rest, Way, command_line, connected, outcome_of
from tests.harness import Machine

HERE, OTHER = "here", "other"
REPO = "git:example.com/org/here"
ELSEWHERE = "git:x/elsewhere"


class McpOverHttp:
    """An agent that posts MCP messages: nothing is known about where it is."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def call(self, operation: str, params: Params) -> Outcome:
        tool = {"name": OPERATIONS[operation].tool, "arguments": params}
        reply = self._http.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}).json
        content = reply["result"]["structuredContent"]
        return {"result": content} if not reply["result"].get("isError") else {"error": content["error"]}


class CliIn:
    """A person at a terminal in a directory."""

    def __init__(self, machine: Machine, folder: str) -> None:
        self._machine, self._folder = machine, folder

    def call(self, operation: str, params: Params) -> Outcome:
        words, stdin = command_line(operation, params)
        done = self._machine.cli(*words, stdin=stdin, cwd=self._folder)
        return outcome_of(done.returncode, done.stdout, done.stderr)


class Naming:
    """A script that says with each call where it stands, as a directory and nothing else."""

    def __init__(self, way: Way, folder: str) -> None:
        self._way, self._folder = way, folder

    def call(self, operation: str, params: Params) -> Outcome:
        name = "where" if OPERATIONS[operation].params is Recall else "context"
        named = {"cwd": self._folder, **params.get(name, {})}
        return self._way.call(operation, {**params, name: named})


class Town:
    """A server and two clones; `at(way, folder)` is a caller who stands in one of them."""

    def __init__(self, machine: Machine, root: Path) -> None:
        self.machine, self._root = machine, root
        self.http = Http.to(machine)
        self.opened: dict[tuple[str, str], Way] = {}
        self._open: dict[str, Callable[[str], Way]] = {
            "mcp-primary": self._stdio,
            "mcp-proxy": self._stdio,
            "mcp-http": lambda folder: Naming(McpOverHttp(self.http), folder),
            "json-rpc": lambda folder: Naming(self.http, folder),
            "rest": lambda folder: Naming(Rest(self.http), folder),
            "cli": lambda folder: CliIn(machine, folder),
        }

    def folder(self, name: str) -> str:
        return str(self._root / name)

    def at(self, way: str, name: str) -> Way:
        if (way, name) not in self.opened:
            self.opened[way, name] = self._open[way](self.folder(name))
        return self.opened[way, name]

    def without_place(self, way: str) -> Way:
        ways: dict[str, Way] = {"mcp-http": McpOverHttp(self.http), "json-rpc": self.http, "rest": Rest(self.http)}
        return ways[way]

    def _stdio(self, folder: str) -> Way:
        return Mcp(connected(self.machine, cwd=folder))


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Town]]:
    """One with a server of its own, and one whose server serves the client on its stdin."""
    root = tmp_path_factory.mktemp("clones")
    for name in (HERE, OTHER):
        clone(root / name, branch=f"{name}-branch")
    served, alone = Machine(), Machine()
    opened: list[Town] = []
    try:
        served.prepared_server()
        primary = Mcp(connected(alone, cwd=str(root / HERE)))
        opened += Town(alone, root), Town(served, root)
        opened[0].opened["mcp-primary", HERE] = primary
        yield dict(zip(("mcp-primary", ""), opened, strict=True))
    finally:
        for town in opened:
            town.http.close()
        served.close()
        alone.close()


WAYS = ("mcp-primary", "mcp-proxy", "mcp-http", "json-rpc", "rest", "cli")
SCRIPTS = ("mcp-http", "json-rpc", "rest")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def town(towns: Mapping[str, Town], way: str) -> Town:
    return towns.get(way, towns[""])


def named(key: str, **more: Any) -> dict[str, Any]:
    return {"component": "place", "key": key, **more}


def setting(key: str, value: str, scope: Any) -> dict[str, Any]:
    return named(key, value=value, meta={} if scope is None else {"scope": scope})


# The default scope

SCOPES: list[tuple[Any, dict[str, Any]]] = [
    (None, {"repo": REPO}),
    ({}, {}),
    ({"os": ["linux"]}, {"repo": REPO, "os": ["linux"]}),
    ({"branch": ["main"]}, {"repo": REPO, "branch": ["main"]}),
    ({"cwd_glob": ["**/src"]}, {"cwd_glob": ["**/src"], "repo": REPO}),
    ({"env_required": ["CI"]}, {"repo": REPO, "env_required": ["CI"]}),
    ({"env_match": {"CI": "1"}}, {"repo": REPO, "env_match": {"CI": "1"}}),
    ({"os": ["linux"], "repo": []}, {"os": ["linux"]}),
    ({"os": ["linux"], "repo": ELSEWHERE}, {"repo": ELSEWHERE, "os": ["linux"]}),
]


@pytest.mark.parametrize(("given", "expected"), SCOPES, ids=[json.dumps(given) for given, _ in SCOPES])
def test_a_scope_without_a_repo_gets_the_callers(
    town: Town, way: str, given: dict[str, Any] | None, expected: dict[str, Any]
) -> None:
    """Whatever else it asks for; an empty one means everywhere, and `repo: []` any repo."""
    answer = town.at(way, HERE).call("nudge.set_hint", setting(f"{way}-scope", "v", given))
    assert answer["result"]["hint"]["meta"].get("scope", {}) == expected


@pytest.mark.parametrize("scope", [None, {"os": ["linux"]}, {"branch": ["*"]}], ids=json.dumps)
def test_two_repos_do_not_overwrite_each_other(town: Town, way: str, scope: dict[str, Any] | None) -> None:
    """Each gets, credits and deletes its own, with the scope that it set it with."""
    key = f"{way}-two"
    for name in (HERE, OTHER):
        town.at(way, name).call("nudge.set_hint", setting(key, name, scope))
    context = {"os": "linux"}
    for name in (HERE, OTHER):
        found = town.at(way, name).call("nudge.get_hint", named(key, context=context))
        assert found["result"]["hint"]["value"] == name
    given = {} if scope is None else {"scope": scope}
    if way != "cli" and given:
        credited = town.at(way, HERE).call("nudge.bump", named(key, **given))
        assert credited["result"]["hint"]["value"] == HERE
    own = given or {"scope": {"repo": REPO}}
    assert town.at(way, HERE).call("nudge.delete_hint", named(key, **own))["result"]["previous"]["value"] == HERE
    assert town.at(way, OTHER).call("nudge.get_hint", named(key, context=context))["result"]["hint"]["value"] == OTHER


def test_a_variant_without_a_repo_can_still_be_named(town: Town, way: str) -> None:
    """By its scope as it is listed, where there is no variant for the repo with the same conditions."""
    caller = town.at(way, HERE)
    caller.call("nudge.set_hint", setting(f"{way}-bare", "v", {"os": ["linux"], "repo": []}))
    deleted = caller.call("nudge.delete_hint", named(f"{way}-bare", scope={"os": ["linux"]}))["result"]
    assert deleted["previous"]["meta"]["scope"] == {"os": ["linux"]}


@pytest.mark.parametrize("way", SCRIPTS, indirect=True)
def test_a_script_that_does_not_say_where_it_is_gets_nothing_added(town: Town, way: str) -> None:
    """Nobody knows its repo."""
    answer = town.without_place(way).call("nudge.set_hint", setting(f"{way}-plain", "v", {"os": ["linux"]}))
    assert answer["result"]["hint"]["meta"]["scope"] == {"os": ["linux"]}


def test_the_note_says_how_to_widen_a_default(towns: Mapping[str, Town]) -> None:
    """To an agent, and to a script whose directory brought the repo."""
    town = towns[""]
    for way in ("mcp-proxy", *SCRIPTS):
        for scope, widen in ((None, "pass meta.scope {} for everywhere"), ({"os": ["linux"]}, "pass repo: []")):
            answer = town.at(way, HERE).call("nudge.set_hint", setting(f"{way}-note", "v", scope))["result"]
            assert REPO in answer["note"] and widen in answer["note"]


# The repo and branch of a directory


def test_a_directory_brings_its_repo_and_branch(town: Town, way: str) -> None:
    """Each of them where it is missing, whatever else is given; the caller's own are those of another directory."""
    scope = {"repo": REPO, "branch": [f"{HERE}-branch"]}
    town.at(way, OTHER).call("nudge.set_hint", setting(f"{way}-there", "v", scope))
    there = town.folder(HERE)
    for more in ({}, {"os": "linux"}, {"branch": f"{HERE}-branch", "os": "linux"}, {"repo": REPO}):
        asked = named(f"{way}-there", context={"cwd": there, **more})
        found = town.at(way, OTHER).call("nudge.get_hint", asked)
        assert found["result"]["match_explain"]["reasons"] == [
            f"repo {REPO} matched",
            f"branch={HERE}-branch allowed",
        ]
    missed = town.at(way, OTHER).call("nudge.get_hint", named(f"{way}-there"))
    assert "git:example.com/org/other" in json.dumps(missed["error"])


def test_a_branch_is_that_of_the_directory(town: Town, way: str, tmp_path: Path) -> None:
    """Also when the repo is named: nobody knows it better."""
    folder = clone(tmp_path / HERE, branch="hotfix/1")
    caller = town.at(way, OTHER)
    caller.call("nudge.set_hint", setting(f"{way}-branch", "v", {"repo": REPO, "branch": ["hotfix/*"]}))
    asked = named(f"{way}-branch", context={"cwd": folder, "repo": REPO})
    assert caller.call("nudge.get_hint", asked)["result"]["hint"]["value"] == "v"
    git(tmp_path / HERE, "symbolic-ref", "HEAD", "refs/heads/main")
    assert caller.call("nudge.get_hint", asked)["error"]


def test_hooks_tell_what_was_set_for_their_repo(town: Town, way: str) -> None:
    """A hint that was set through any interface is told at the start of a session there, and nowhere else."""
    value = f"make {way}-told"
    town.at(way, HERE).call("nudge.set_hint", setting(f"{way}-told", value, {"branch": [f"{HERE}-branch"]}))
    for name, is_told in ((HERE, True), (OTHER, False)):
        event = {"hook_event_name": "SessionStart", "source": "startup", "cwd": town.folder(name)}
        done = town.machine.cli("record", stdin=json.dumps({**event, "session_id": f"{way} {name}"}))
        assert (value in done.stdout) is is_told


# What comes first


NOTES = (HERE, OTHER)


@pytest.fixture(scope="module")
def notes(towns: Mapping[str, Town]) -> Mapping[str, int]:
    """One note of each repo, with the same words; their ids."""
    ids: dict[str, int] = {}
    for town in towns.values():
        for name in NOTES:
            note = {"title": f"Sessions are in redis, says {name}", "content": "redis on port 6379", "kind": "decision"}
            ids[name] = town.at("json-rpc", name).call("nudge.memory_store", note)["result"]["id"]
    return ids


@pytest.mark.parametrize(
    ("operation", "params", "rows"),
    [
        ("nudge.memory_recall", {"context": "redis sessions"}, "memories"),
        ("nudge.memory_search", {"query": "redis"}, "results"),
        ("nudge.memory_explain", {"query": "redis sessions"}, "items"),
    ],
)
@pytest.mark.parametrize("name", NOTES)
@pytest.mark.parametrize("way", ["mcp-primary", "mcp-proxy", *SCRIPTS], indirect=True)
def test_notes_of_the_callers_repo_come_first(
    town: Town, way: str, name: str, notes: Mapping[str, int], operation: str, params: dict[str, Any], rows: str
) -> None:
    """In the same order for whoever stands in the same place, and also where the caller says so with this one call."""
    asked = {**params, **({"touch": False} if rows == "memories" else {})}
    place = {"where" if rows == "memories" else "context": {"cwd": town.folder(name)}}
    for caller, named_place in ((name, {}), (OTHER if name == HERE else HERE, place)):
        found = town.at(way, caller).call(operation, {**asked, **named_place})["result"][rows]
        ids = [row["id"] for row in found if row["kind"] == "decision"]
        assert [int(str(one).removeprefix("m")) for one in ids][:1] == [notes[name]]


@pytest.mark.parametrize(
    ("words", "rows"), [(("recall", "redis sessions"), "memories"), (("explain", "redis sessions"), "items")]
)
def test_the_command_line_agrees(towns: Mapping[str, Town], notes: Mapping[str, int], words: Any, rows: str) -> None:
    """A person in a clone sees its notes first as well."""
    town = towns[""]
    for name in NOTES:
        found = town.machine.json(*words, cwd=town.folder(name))[rows]
        ids = [int(str(row["id"]).removeprefix("m")) for row in found if row["kind"] == "decision"]
        assert ids[:1] == [notes[name]]


# Of the server, of one thing wherever it is asked for, or with a repo of its own; the hooks' events name a directory.
NO_PLACE = frozenset(
    f"nudge.{name}"
    for name in (
        *("status", "stop", "doctor", "settings", "open_page", "start_session", "backup", "record", "record_many"),
        *("scan", "forget_learned", "export", "import", "semantic_use", "semantic_off"),
        *("repo_files", "decide_repo_file", "team_join", "team_share", "team_leave", "team_doctor"),
    )
)


def test_every_operation_that_depends_on_a_place_takes_it() -> None:
    """As `context`; `memory_recall` as `where`."""
    takes = {name for name, operation in OPERATIONS.items() if issubclass(operation.params, InContext | Recall)}
    assert OPERATIONS.keys() - takes == NO_PLACE
