"""History belongs to its repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.repos import git
from tests.harness import Machine, eventually


def _clone(folder: Path, origin: str, branch: str = "main") -> str:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch", branch)
    git(folder, "remote", "add", "origin", origin)
    return str(folder)


def _record(machine: Machine, cwd: str, session: str, event: str = "PostToolUse", **fields: Any) -> None:
    payload = {"session_id": session, "cwd": cwd, "hook_event_name": event, **fields}
    assert machine.cli("record", stdin=json.dumps(payload)).returncode == 0


def _ran(machine: Machine, cwd: str, command: str) -> None:
    fields: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_response": {"stdout": ""}}
    _record(machine, cwd, f"{command} session", **fields)


def _left_failing(machine: Machine, cwd: str, work: str) -> None:
    """A session that changes a file, and ends with a job that fails."""
    session, tool = f"{work} session", {"tool_name": "Bash", "tool_input": {"command": f"make test JOB={work}"}}
    _record(machine, cwd, session, "UserPromptSubmit", prompt=f"Please make the {work} work again")
    _record(machine, cwd, session, tool_name="Edit", tool_input={"file_path": f"{cwd}/a.py"}, tool_response={})
    _record(machine, cwd, session, "PostToolUseFailure", error="Exit code 2\nFAILED tests/a.py::test_a", **tool)
    _record(machine, cwd, session, "SessionEnd", reason="other")


def _wait_until_stored(machine: Machine, number: int) -> None:
    eventually(
        lambda: sum(row["observation_count"] for row in machine.json("sessions")) == number, "the events are stored"
    )


def test_two_repos_with_one_short_name_are_two_projects(machine: Machine) -> None:
    """`x/api` and `y/api`: neither is told the other's commands as its own, and a purge takes one of them."""
    x = _clone(machine.base / "one" / "api", "git@example.com:x/api.git")
    y = _clone(machine.base / "two" / "api", "https://example.com/y/api")
    machine.json("ls")
    _left_failing(machine, x, "deploy-x")
    _wait_until_stored(machine, 4)
    assert [row["project"] for row in machine.json("sessions")] == ["api"]
    _left_failing(machine, y, "deploy-y")
    _wait_until_stored(machine, 8)
    assert {row["project"] for row in machine.json("sessions")} == {"x/api", "y/api"}
    result = machine.cli("inject", cwd=x).stdout
    assert "deploy-x" in result and "deploy-y" not in result
    ambiguous = machine.cli("search", "deploy", "--project", "api")
    assert ambiguous.returncode == 3 and "name one of x/api, y/api" in ambiguous.stderr
    assert machine.cli("purge", "--project", "api").returncode == 3
    assert len(machine.json("search", "deploy")) == 4
    assert len(machine.json("search", "deploy", "--project", "y/api")) == 2
    assert machine.json("purge", "--project", "y/api", "--confirm")["total"] == 4
    assert {row["project"] for row in machine.json("recent", cwd=x)} == {"api"}


def test_a_hint_belongs_to_the_repo_on_its_host(machine: Machine) -> None:
    """The default scope has the host: `x/api` on two hosts are two. A scope or caller that names `git:x/api` means any
    host."""
    one = _clone(machine.base / "one" / "api", "git@one.example:x/api.git")
    two = _clone(machine.base / "two" / "api", "https://two.example/x/api")
    assert "  scope: repo git:one.example/x/api (this repo;" in machine.cli("set", "api", "deploy", "1", cwd=one).stdout
    assert machine.cli("get", "api", "deploy", cwd=two).returncode == 1
    machine.json("set", "api", "deploy", "2", cwd=two)
    assert [machine.json("get", "api", "deploy", cwd=tree)["hint"]["value"] for tree in (one, two)] == ["1", "2"]
    machine.json("set", "api", "any", "3", "--scope-repo", "git:x/api")
    assert [machine.json("get", "api", "any", cwd=tree)["hint"]["value"] for tree in (one, two)] == ["3", "3"]
    machine.json("set", "api", "mine", "4", cwd=one)
    assert machine.json("get", "api", "mine", "--repo", "git:x/api")["hint"]["value"] == "4"
    assert machine.cli("get", "api", "mine", "--repo", "git:two.example/x/api").returncode == 1


def test_a_directory_of_a_clone_does_not_act_in_the_name_of_another_repo(machine: Machine) -> None:
    """An agent that does `cd docs` in a clone whose `docs` looks like a bare repository of another repo is told,
    records and scans for the repo that it is in."""
    victim = _clone(machine.base / "victim", "git@example.com:x/victim.git")
    (machine.base / "victim" / "Makefile").write_text("test:\n\ttrue\n")
    clone = _clone(machine.base / "clone", "git@example.com:x/clone.git")
    docs = machine.base / "clone" / "docs"
    git(machine.base, "clone", "--quiet", "--bare", victim, str(docs))
    git(docs, "remote", "set-url", "origin", "git@example.com:x/victim.git")
    machine.json("scan", cwd=victim)
    machine.json("set", "api", "secret", "1", cwd=victim)
    assert machine.cli("get", "api", "secret", cwd=str(docs)).returncode == 1
    scanned = machine.json("scan", cwd=str(docs))
    assert scanned["removed"] == [] and machine.json("ls", "victim", cwd=victim)["hints"]
    assert machine.json("set", "api", "own", "2", cwd=str(docs))["hint"]["meta"]["scope"] == {
        "repo": "git:example.com/x/clone"
    }
    _ran(machine, str(docs), "make there")
    _wait_until_stored(machine, 1)
    (there,) = machine.json("search", "there", "--project", "clone", cwd=clone)
    assert there["content_preview"] == "make there"
    assert machine.json("search", "there", "--project", "victim", cwd=victim) == []


def test_a_bump_credits_what_applies_here_else_the_only_one_there_is(machine: Machine) -> None:
    """Without a context that is named. With two, none of which applies here, it is refused and names their scopes."""
    here = _clone(machine.base / "here", "git@example.com:x/here.git")
    there = _clone(machine.base / "there", "git@example.com:x/there.git")
    machine.json("set", "shop", "test", "make", cwd=here)
    assert machine.json("bump", "shop", "test", cwd=there)["hint"]["use_count"] == 1
    assert machine.cli("bump", "shop", "test", "--repo", "git:x/there", cwd=there).returncode == 1
    machine.json("set", "shop", "test", "tox", "--scope-repo", "git:x/other")
    assert machine.json("bump", "shop", "test", cwd=here)["hint"]["use_count"] == 2
    refused = machine.cli("bump", "shop", "test", cwd=there)
    assert refused.returncode == 3 and "E_INVALID" in refused.stderr
    assert "there is one for repo git:example.com/x/here" in refused.stderr
    assert "there is one for repo git:x/other" in refused.stderr


def test_an_error_is_searchable_text_and_purge_agrees(machine: Machine) -> None:
    """`nudge search 'No module named'` finds the failure; `purge --search` takes what the search found."""
    machine.json("ls")
    error = "Exit code 1\nModuleNotFoundError: No module named 'flask'"
    fields: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "make test"}, "error": error}
    _record(machine, str(machine.base), "s1", "PostToolUseFailure", **fields)
    _ran(machine, str(machine.base), "make build")
    _wait_until_stored(machine, 2)
    (result,) = machine.json("search", "No module named")
    assert (result["obs_type"], result["content_preview"]) == ("command_error", "make test")
    (whole,) = machine.json("show", str(result["id"]))
    assert whole["metadata"]["command"] == "make test" and whole["metadata"]["error"] == error
    assert machine.json("purge", "--search", "No module named", "--confirm")["total"] == 1
    assert machine.json("search", "No module named") == [] and len(machine.json("search", "make")) == 1


@pytest.mark.parametrize("error", [" " * 20_000 + "boom", "boom" + "\n" * 20_000, "boom".center(40_000)])
def test_an_error_with_blanks_at_its_ends_is_recorded(machine: Machine, error: str) -> None:
    """However many: the event is not lost, and its text is found."""
    machine.json("ls")
    fields: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "make test"}, "error": error}
    _record(machine, str(machine.base), "s1", "PostToolUseFailure", **fields)
    _wait_until_stored(machine, 1)
    assert [row["obs_type"] for row in machine.json("search", "boom")] == ["command_error"]


def test_results_say_when_there_are_more(machine: Machine) -> None:
    """To a person in a line, with the command; to an agent as `more`. And count in plain words."""
    machine.json("ls")
    for number in range(2):
        fields: dict[str, Any] = {
            "tool_name": "Bash",
            "tool_input": {"command": f"make {number}"},
            "error": "Exit code 2",
        }
        _record(machine, str(machine.base), f"s{number}", "PostToolUseFailure", **fields)
    _wait_until_stored(machine, 2)
    more = "more observations match; add words or use --limit 2\n"
    assert machine.cli("search", "make", "--limit", "1").stderr == f'nudge: 1 result for "make"; {more}'
    assert 'nudge: 2 results for "make"\n' in machine.cli("search", "make", "--limit", "2").stderr
    assert len(machine.json("search", "make", "--limit", "1")) == 1
    agent = machine.serve()
    agent.initialize()
    calls: dict[str, dict[str, Any]] = {"search": {"query": "make"}, "recent_context": {}, "sessions": {}}
    listed = ("there are more observations; use --limit 2\n", "there are more sessions; use --limit 2\n")
    remarks = zip(("search", "recent", "sessions"), (more, *listed), calls.items(), strict=True)
    for verb, remark, (tool, fields) in remarks:
        words = ["make"] if verb == "search" else ["--all-projects"] if verb == "recent" else []
        assert machine.cli(verb, *words, "--limit", "1").stderr.endswith(remark)
        assert remark not in machine.cli(verb, *words, "--limit", "2").stderr
        cut = agent.call(tool, **fields, project=None, limit=1)
        assert (len(cut["result"]), cut["more"]) == (1, True)
        assert "more" not in agent.call(tool, **fields, project=None, limit=2)
    _edited(machine, str(machine.base), f"{machine.base}/a.py")
    _edited(machine, str(machine.base), f"{machine.base}/a.py")
    _wait_until_stored(machine, 4)
    assert agent.call("file_history", file_path=f"{machine.base}/a.py", limit=1)["more"] is True
    assert "more" not in agent.call("file_history", file_path=f"{machine.base}/a.py", limit=2)
    assert (
        machine.cli("history", f"{machine.base}/a.py", "--limit", "1").stderr
        == "there are more touches; use --limit 2\n"
    )


@pytest.mark.parametrize("verb", ["search make", "recent", "sessions", "trace last", "history", "history a.py"])
def test_a_limit_of_the_history_is_clamped(machine: Machine, verb: str) -> None:
    """At the terminal as through every other interface: 0 and less are 1, and no number is too large."""
    machine.json("ls")
    for number in range(3):
        _edited(machine, str(machine.base), f"{machine.base}/a.py")
        _edited(machine, str(machine.base), f"{machine.base}/{number}.py")
        _ran(machine, str(machine.base), f"make {number}")
    _wait_until_stored(machine, 9)

    def count(limit: str) -> int:
        result = machine.json(*verb.split(), "--limit", limit)
        rows = result if isinstance(result, list) else result.get("prompts") or result["sessions"]
        return sum(len(row.get("touches") or row.get("observations") or [row]) for row in rows)

    assert count("0") == count("-7") == count("1") == 1
    assert count("100000") == count("10")


def test_trace_last_is_this_projects_last_session_with_something_in_it(machine: Machine) -> None:
    """A session that only began, and one of another project, are passed over."""
    here = _clone(machine.base / "here", "git@example.com:x/here.git")
    machine.json("ls")
    _ran(machine, here, "make here")
    _wait_until_stored(machine, 1)
    _ran(machine, str(machine.base), "make elsewhere")
    _record(machine, here, "only begun", "SessionStart", source="startup")
    _wait_until_stored(machine, 3)
    assert machine.json("trace", "last", cwd=here)["session_id"] == "make here session"


def _edited(machine: Machine, cwd: str, path: str) -> None:
    fields: dict[str, Any] = {"tool_name": "Edit", "tool_input": {"file_path": path}, "tool_response": {}}
    _record(machine, cwd, f"edit of {path}", **fields)


def test_a_file_has_one_history_in_all_clones_and_worktrees(machine: Machine) -> None:
    """Files by their path in the repo; a file outside any repo by its absolute path. Clone and branch of an observation
    are shown when they differ from here."""
    first = _clone(machine.base / "first", "git@example.com:x/api.git")
    second = _clone(machine.base / "second", "https://example.com/x/api", branch="dev")
    git(Path(first), "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "x")
    git(Path(first), "worktree", "add", "--quiet", "-b", "topic", str(machine.base / "tree"))
    other = _clone(machine.base / "other", "https://example.com/y/api")
    machine.json("ls")
    trees = {first: "main", second: "dev", str(machine.base / "tree"): "topic"}
    for tree in trees:
        _edited(machine, tree, f"{tree}/src/a.py")
    for directory in (other, str(machine.base)):
        _edited(machine, directory, f"{directory}/src/a.py")
    _wait_until_stored(machine, 5)
    for tree in trees:
        result = machine.json("history", "src/a.py", cwd=tree)
        touches = [touch for session in result["sessions"] for touch in session["touches"]]
        assert {(touch["clone"], touch["branch"]) for touch in touches} == set(trees.items())
    outside = machine.json("history", "src/a.py", cwd=str(machine.base))
    assert [session["session_id"] for session in outside["sessions"]] == [f"edit of {machine.base}/src/a.py"]
    shown = machine.cli("recent", cwd=second).stdout
    assert f"(on main, in {first})" in shown and f"in {second}" not in shown
    answer = [line for line in machine.cli("inject", cwd=second).stdout.splitlines() if line.startswith("- ")]
    assert len(answer) == 3 and all(line.endswith("changed src/a.py") for line in answer)
    places = [line.partition("(")[2].partition(")")[0] for line in answer if "(" in line]
    assert sorted(place.partition(",")[0] for place in places) == ["branch main", "branch topic"]
    assert all(", in " in place for place in places)
