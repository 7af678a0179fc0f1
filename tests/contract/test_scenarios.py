"""What Nudge is for, told as stories: people at terminals and agents on stdio, all of them real processes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.clock import Clock
from nudge.core.errors import NotFound
from nudge.hints.lifetime import open_in_memory
from nudge.interfaces.operations import OPERATIONS
from nudge.settings.config import Settings
from tests.contract.repos import clone, git
from tests.contract.steps import TOKEN
from tests.contract.ways import connected
from tests.harness import Machine, Stdio, eventually

ROUTER = "docker compose build router"
BUILD_META = (
    "--tags",
    "build,docker",
    "--priority",
    "7",
    "--confidence",
    "0.8",
    "--ttl",
    "session",
    "--scope-cwd-glob",
    "**/http-proxy*",
    "--scope-branch",
    "dev,main",
    "--scope-os",
    "linux,darwin",
    "--global",
)
HTTP_PROXY = {"component": "http-proxy", "key": "build"}


@pytest.fixture(scope="module")
def shared() -> Iterator[Machine]:
    machine = Machine()
    machine.http_only()
    yield machine
    machine.close()


@pytest.fixture
def desk(shared: Machine) -> Machine:
    """A machine on which a server runs and nothing is known yet."""
    shared.json("import", "-", "--mode", "replace", stdin='{"schema_version": "1.0", "components": {}}')
    return shared


@pytest.fixture
def repo(tmp_path: Path) -> str:
    """A clone of `git:example.com/org/http-proxy`, on dev."""
    return clone(tmp_path / "minerva" / "http-proxy", branch="dev")


def test_export_piped_into_import_prints_one_line(desk: Machine) -> None:
    """`nudge export | nudge import -`: what is here already is only counted, and nothing changes."""
    for key in ("build", "test"):
        desk.json("set", "--global", "api", key, f"make {key}")
    before = desk.json("export")
    done = desk.cli("import", "-", stdin=desk.cli("export").stdout)
    assert done.stdout == "✔ imported 0 hints, skipped 2 (already here)\n" and not done.stderr
    assert desk.json("export")["payload"]["components"] == before["payload"]["components"]


def test_a_warm_start(make_machine: Callable[..., Machine], repo: str) -> None:
    """An agent that opens a repo finds the command that a person left there, with why; it runs it and credits it."""
    machine = make_machine()
    agent = connected(machine, cwd=repo)
    machine.json("set", "http-proxy", "build", ROUTER, *BUILD_META, cwd=repo)
    found = agent.call("nudge_get_hint", **HTTP_PROXY)
    assert found["hint"]["value"] == ROUTER and found["match_explain"]["matched"]
    assert found["match_explain"]["reasons"] == [
        "cwd matched **/http-proxy*",
        "branch=dev allowed",
        "os=linux allowed",
        "priority 7",
    ]
    told = agent.call(
        "nudge_get_hint", **HTTP_PROXY, context={"cwd": "/work/minerva/http-proxy", "branch": "dev", "os": "linux"}
    )
    assert told["match_explain"] == found["match_explain"]
    assert agent.call("nudge_bump", **HTTP_PROXY)["hint"]["use_count"] == 1
    again = agent.call("nudge_get_hint", **HTTP_PROXY)["match_explain"]
    assert again["score"] > found["match_explain"]["score"] and "recently used (now)" in again["reasons"]
    git(Path(repo), "symbolic-ref", "HEAD", "refs/heads/experiment")
    missed = agent.tool("nudge_get_hint", **HTTP_PROXY)["structuredContent"]["error"]
    assert missed["why_not"][0]["reasons"] == ["branch=experiment, needs dev or main"]


def test_a_build_error_is_fixed(desk: Machine, repo: str) -> None:
    """After a failure an agent asks by tag, gets a ranked list, and what helped ranks higher the next time."""
    agent = connected(desk, cwd=repo)
    desk.json("set", "http-proxy", "build-all", "docker compose build", "--tags", "build", cwd=repo)
    desk.json("set", "http-proxy", "build", ROUTER, *BUILD_META, "--reason", "service router not found", cwd=repo)
    desk.json("set", "http-proxy", "test", "pytest", "--tags", "test", "--priority", "10", cwd=repo)
    asked = {"component": "http-proxy", "tags": ["build"], "limit": 3}
    found = agent.call("nudge_query", **asked)["hints"]
    assert [hit["hint"]["value"] for hit in found] == [ROUTER, "docker compose build"]
    for _ in range(12):
        agent.call("nudge_bump", component="http-proxy", key="build-all")
    assert [hit["key"] for hit in agent.call("nudge_query", **asked)["hints"]] == ["build-all", "build"]
    assert agent.call("nudge_query", regex="router not found")["hints"][0]["hint"]["value"] == ROUTER


def test_each_system_gets_its_own_path(desk: Machine) -> None:
    """One key, three systems: whoever asks gets the directory of the system it is on."""
    directories = {
        "windows": "c:\\code\\http-proxy",
        "darwin": "/Users/dev/code/http-proxy",
        "linux": "/home/dev/code/http-proxy",
    }
    for system, directory in directories.items():
        desk.json("set", "http-proxy", "directory", directory, "--scope-os", system)
    agent = connected(desk)
    for system, directory in directories.items():
        asked = agent.call("nudge_get_hint", component="http-proxy", key="directory", context={"os": system})
        typed = desk.cli("get", "http-proxy", "directory", "--os", system, "--value-only")
        assert asked["hint"]["value"] == typed.stdout.removesuffix("\n") == directory
    here = {"linux": "linux", "darwin": "darwin"}[sys.platform]
    assert agent.call("nudge_get_hint", component="http-proxy", key="directory")["hint"]["value"] == directories[here]
    desk.json("delete", "http-proxy", "directory", "--scope-os", "windows")
    gone = desk.cli("get", "http-proxy", "directory", "--os", "windows")
    assert gone.returncode == 1 and "linux" in gone.stderr


# A toggle for two hours

FEATURE = {"component": "api", "key": "env.FEATURE_X"}
TOGGLE = {**FEATURE, "value": "1", "meta": {"ttl": "PT2H", "tags": ["env", "test"], "scope": {"branch": ["hotfix/*"]}}}
ON_HOTFIX = {"branch": "hotfix/42"}
HOUR = 3_600.0


class Watched:
    """An application whose time a test turns."""

    def __init__(self) -> None:
        self.passed = 0.0
        session = open_in_memory(Settings({}))
        session.clock = Clock(1_700_000_000.0, boot=lambda: self.passed)
        self.app = App(session, OPERATIONS)

    def call(self, method: str, **params: Any) -> Any:
        return asyncio.run(self.app.execute(f"nudge.{method}", params, Call()))

    def sees(self) -> bool:
        try:
            return bool(self.call("get_hint", **FEATURE, context=ON_HOTFIX)["hint"])
        except NotFound:
            return False


def test_a_toggle_goes_when_its_time_is_over() -> None:
    """Visible until the last moment of its two hours; from then on nothing shows it, and a sweep frees it."""
    watched = Watched()
    watched.call("set_hint", **TOGGLE)
    watched.passed = 2 * HOUR - 0.001
    assert watched.sees()
    watched.passed = 2 * HOUR
    assert not watched.sees()
    assert watched.call("query", context=ON_HOTFIX) == {"hints": []}
    assert watched.call("list_components", component="api") == {"components": [], "hints": []}
    assert watched.call("export")["payload"]["components"] == {}
    asyncio.run(watched.app.tick())
    assert len(watched.app.lifetime.store) == 0


def test_a_toggles_time_starts_at_its_last_set() -> None:
    """Setting it again gives it two more hours; using it does not. Once expired, it starts over at version 1."""
    watched = Watched()
    watched.call("set_hint", **TOGGLE)
    watched.passed = HOUR
    watched.call("set_hint", **TOGGLE)
    watched.passed = 2.5 * HOUR
    watched.call("bump", **FEATURE, context=ON_HOTFIX)
    assert watched.sees()
    watched.passed = 3 * HOUR
    assert not watched.sees()
    assert watched.call("set_hint", **TOGGLE, if_match_version=0)["hint"]["version"] == 1


def test_a_toggle_goes_from_every_real_client(desk: Machine) -> None:
    """A hint with a TTL of a second is there, and then is gone for the agent and for the person."""
    agent = connected(desk)
    assert desk.json("set", "api", "env.FEATURE_X", "1", "--ttl", "PT1S")["hint"]["meta"]["ttl"] == "PT1S"
    eventually(lambda: _is_seen_when_set(agent), "the hint is there")
    eventually(lambda: agent.tool("nudge_get_hint", **FEATURE)["isError"], "the hint expires")
    assert desk.cli("get", "api", "env.FEATURE_X").returncode == 1
    assert desk.json("ls") == {"components": []}


def _is_seen_when_set(agent: Stdio) -> bool:
    """Asked again when the machine was so busy that the second passed in between."""
    agent.call("nudge_set_hint", **FEATURE, value="2", meta={"ttl": "PT1S", "scope": {}})
    return not agent.tool("nudge_get_hint", **FEATURE)["isError"]


# Hints that somebody prepared


def test_a_person_seeds_and_an_agent_benefits(desk: Machine, repo: str) -> None:
    """`nudge import` of a prepared file is seen at once by agents that already run, and nothing is written into the
    work tree."""
    agent = connected(desk, cwd=repo)
    directories = [
        {"value": "/srv/a", "meta": {"scope": {"os": ["linux"]}}},
        {"value": "C:\\a", "meta": {"scope": {"os": ["windows"]}}},
    ]
    hints = {
        "build": {"value": {"type": "command", "cmd": ROUTER}, "meta": {"tags": ["build"]}},
        "directory": directories,
    }
    Path(repo, "nudge-seed.json").write_text(
        json.dumps({"schema_version": "1.0", "components": {"http-proxy": {"hints": hints}}})
    )
    before = _files(repo)
    assert desk.json("import", "./nudge-seed.json", cwd=repo) == {
        "imported": 3,
        "skipped": 0,
        "removed": 0,
        "reasons": [],
    }
    assert agent.call("nudge_get_hint", **HTTP_PROXY)["hint"]["value"]["cmd"] == ROUTER
    assert agent.call("nudge_list_components", component="http-proxy")["components"] == [
        {"name": "http-proxy", "hint_count": 3}
    ]
    desk.json("export", "-o", str(desk.base / "session.json"), cwd=repo)
    desk.json("delete", "http-proxy", "build", cwd=repo)
    assert desk.json("import", str(desk.base / "session.json"), "--mode", "skip", cwd=repo)["imported"] == 1
    assert agent.call("nudge_get_hint", **HTTP_PROXY)["hint"]["value"]["cmd"] == ROUTER
    assert _files(repo) == before


def _files(folder: str) -> set[Path]:
    return set(Path(folder).rglob("*"))


# What a person sees


def test_two_agents_in_two_repos_do_not_meet(desk: Machine, repo: str, tmp_path: Path) -> None:
    """The same component and key in another repo is another hint, unless somebody says that it is for everywhere."""
    ours, theirs = connected(desk, cwd=repo), connected(desk, cwd=clone(tmp_path / "other"))
    for agent, value in ((ours, "pytest -q"), (theirs, "npm test")):
        agent.call("nudge_set_hint", component="api", key="test", value=value)
    assert [_value(agent, "api", "test") for agent in (ours, theirs)] == ["pytest -q", "npm test"]
    assert desk.cli("get", "api", "test").returncode == 1
    desk.json("set", "api", "lint", "ruff check", "--global", cwd=repo)
    assert [_value(agent, "api", "lint") for agent in (ours, theirs)] == ["ruff check", "ruff check"]


def _value(agent: Stdio, component: str, key: str) -> Any:
    return agent.call("nudge_get_hint", component=component, key=key)["hint"]["value"]


def test_the_command_line_knows_where_it_is(desk: Machine, repo: str) -> None:
    """Directory, repo and branch come from where a person stands, in a folder below the root too; flags say
    otherwise."""
    below = Path(repo, "src", "router")
    below.mkdir(parents=True)
    set_here = desk.json("set", "http-proxy", "build", ROUTER, cwd=str(below))
    assert set_here["hint"]["meta"] == {"scope": {"repo": "git:example.com/org/http-proxy"}, "source": "user"}
    desk.json("set", "http-proxy", "run", "make run", "--scope-branch", "dev", "--scope-repo", ".", cwd=repo)
    assert desk.json("get", "http-proxy", "run", cwd=str(below))["match_explain"]["reasons"] == [
        "repo git:example.com/org/http-proxy matched",
        "branch=dev allowed",
    ]
    assert desk.cli("get", "http-proxy", "run", "--branch", "main", cwd=repo).returncode == 1
    assert desk.json("get", "http-proxy", "run", "--cwd", repo)["hint"]["value"] == "make run"


def test_pretty_and_json_say_the_same(desk: Machine) -> None:
    """Pretty output is for people and names value, score and reasons; `--json` anywhere on the line is the exact
    result."""
    desk.json("set", "http-proxy", "build", ROUTER, "--priority", "7", "--global")
    exact = json.loads(desk.cli("--json", "get", "http-proxy", "build").stdout)
    pretty = desk.cli("get", "http-proxy", "build").stdout
    assert exact == desk.json("get", "http-proxy", "build")
    assert f"value: {ROUTER}" in pretty and f"{exact['match_explain']['score']:.2f}" in pretty
    assert [reason for reason in exact["match_explain"]["reasons"] if reason not in pretty] == []


def test_a_secret_is_kept_only_on_purpose_and_never_shown(desk: Machine) -> None:
    """A value that looks like a credential is refused; with --allow-secret it is stored, hidden in pretty output, left
    out of exports."""
    refused = desk.cli("set", "api", "token", TOKEN, "--global")
    assert refused.returncode == 3 and "E_SECRET_REJECTED" in refused.stderr and TOKEN not in refused.stderr
    assert desk.cli("set", "api", "token", TOKEN, "--global", "--allow-secret").returncode == 0
    for words in (("get", "api", "token"), ("ls", "api"), ("query", "token"), ("export",)):
        shown = desk.cli(*words)
        assert shown.returncode == 0 and TOKEN not in shown.stdout + shown.stderr
    assert desk.cli("get", "api", "token", "--value-only").stdout == f"{TOKEN}\n"


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"priority": 6}, {}),
        ({"confidence": 0.6}, {}),
        ({"confidence": 0.1}, {"confidence": 0}),
        ({"scope": {"os": ["linux", "darwin"]}}, {}),
    ],
)
def test_of_two_hints_the_better_comes_first(desk: Machine, better: dict[str, Any], worse: dict[str, Any]) -> None:
    """Priority, confidence and how specific a scope is each decide alone, whichever is newer; use outweighs them."""
    agent = connected(desk)
    for key, meta in (("z-better", better), ("a-worse", worse)):
        agent.call("nudge_set_hint", component="rank", key=key, value="v", meta={"scope": {}, **meta})
    assert [hit["key"] for hit in agent.call("nudge_query", component="rank")["hints"]] == ["z-better", "a-worse"]
    agent.call("nudge_bump", component="rank", key="a-worse", delta=20)
    assert [hit["key"] for hit in agent.call("nudge_query", component="rank")["hints"]] == ["a-worse", "z-better"]
