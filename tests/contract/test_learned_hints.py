"""What was learned answers for a job that nobody set a hint for, through every interface, and is stored as no hint."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from nudge.core import paths
from nudge.process import endpoint
from nudge.storage import spool
from nudge.storage.changelog import ChangeLog, read_log
from tests.contract.repos import clone
from tests.harness import Machine, eventually

_MISSING = "Exit code 127\nbash: line 1: pytest: command not found"
_REPO = "git:example.com/org/shop"


def ran(
    machine: Machine, cwd: str, session: str, command: str, error: str = "", tool: str = "Bash", **details: Any
) -> str:
    """What the hook of a command prints, once its event is stored: the order decides what is learned."""
    ran.calls += 1  # type: ignore[attr-defined]
    event: dict[str, Any] = {
        "session_id": session,
        "cwd": cwd,
        "tool_name": tool,
        "tool_use_id": f"t{ran.calls}",  # type: ignore[attr-defined]
        "tool_input": {"command": command, **details},
        "hook_event_name": "PostToolUseFailure" if error else "PostToolUse",
        **({"error": error} if error else {"tool_response": {"stdout": "", "stderr": "", "interrupted": False}}),
    }
    done = machine.cli("record", stdin=json.dumps(event))
    assert done.returncode == 0, done.stderr
    eventually(lambda: not spool.pending(machine.runtime), "the event is stored")
    return done.stdout


ran.calls = 0  # type: ignore[attr-defined]


def learned_shop(machine: Machine) -> str:
    """A clone in which one session met a missing program, and what works in its place."""
    machine.prepared_server()
    repo = clone(machine.base / "shop")
    (Path(repo) / ".venv/bin").mkdir(parents=True)
    (Path(repo) / ".venv/bin/pytest").touch(mode=0o755)
    ran(machine, repo, "one", "pytest -q", _MISSING)
    ran(machine, repo, "one", ".venv/bin/pytest -q")
    return repo


def _check(hint: dict[str, Any]) -> None:
    assert hint["value"] == {"type": "command", "cmd": ".venv/bin/pytest"}
    assert (hint["meta"]["source"], hint["meta"]["scope"], hint["version"]) == ("learned", {"repo": _REPO}, 0)
    evidence = hint["evidence"]
    assert (evidence["fact"], evidence["error"]) == ("pytest", "pytest: command not found")
    assert (evidence["sessions"], evidence["exit_codes"]) == (1, [127, 0])
    failed, worked = evidence["ids"]
    assert 0 < failed < worked and evidence["last"].endswith("Z")


def _rest(machine: Machine, path: str, body: dict[str, Any]) -> Any:
    port = endpoint.read(machine.runtime)
    assert port is not None and port.port
    connection = http.client.HTTPConnection("127.0.0.1", port.port, timeout=30)
    token = (Path(machine.runtime) / paths.TOKEN).read_text().strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def test_every_interface_answers_with_what_was_learned(machine: Machine) -> None:
    """`get_hint` and `query` over MCP, HTTP and the command line: the command, `source: learned` and its evidence."""
    repo = learned_shop(machine)
    agent = machine.serve(cwd=repo)
    agent.initialize()
    _check(agent.call("nudge_get_hint", component="shop", key="test")["hint"])
    (hit,) = agent.call("nudge_query", keys=["test"])["hints"]
    assert (hit["component"], hit["key"]) == ("shop", "test")
    _check(hit["hint"])
    assert agent.quit() == 0
    params = {"component": "shop", "key": "test", "context": {"cwd": repo}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "nudge.get_hint", "params": params}
    _check(_rest(machine, "/", call)["result"]["hint"])
    query = {"jsonrpc": "2.0", "id": 1, "method": "nudge.query", "params": {"text": "pytest", "context": {"cwd": repo}}}
    (hit,) = _rest(machine, "/", query)["result"]["hints"]
    _check(hit["hint"])
    _check(machine.json("get", "shop", "test", cwd=repo)["hint"])
    assert machine.cli("get", "shop/test", "--value-only", cwd=repo).stdout == ".venv/bin/pytest\n"
    shown = machine.cli("get", "shop", "test", cwd=repo).stdout
    assert "source: learned (1 session, just now; exit code 127, then 0; #" in shown
    assert 'fact "pytest": it failed (exit code 127, #' in machine.cli("query", "test", cwd=repo).stdout


def test_facts_and_explain_say_what_a_fact_rests_on(machine: Machine) -> None:
    """In how many sessions, when, and with which exit codes; `explain` finds it by what fails and by its job."""
    repo = learned_shop(machine)
    (fact,) = machine.json("facts", cwd=repo)["facts"]
    assert (fact["sessions"], fact["exit_codes"], fact["credit"]) == (1, [127, 0], {"worked": 0, "failed": 0})
    first, second = fact["ids"]
    support = f"1 session, just now; exit code 127, then 0; #{first}, #{second}"
    assert support in machine.cli("facts", cwd=repo).stdout
    assert support in machine.cli("learned", cwd=repo).stdout
    for name in ("pytest", "shop/test"):
        shown = machine.cli("explain", name, cwd=repo).stdout
        assert f"it failed (exit code 127, #{first}), and this worked (exit code 0, #{second})" in shown
        assert f"worked in 1 session, just now #{second}" in shown
    machine.json("bump", "shop", "test", "--delta", "3", cwd=repo)
    assert "; reported since: worked 3 times" in machine.cli("facts", cwd=repo).stdout


def test_nothing_is_stored_as_a_hint(machine: Machine) -> None:
    """`ls` lists it apart, an export and the change log are without it, and a hint that somebody sets is the first
    version and comes instead of it."""
    repo = learned_shop(machine)
    listed = machine.json("ls", "shop", cwd=repo)
    assert listed["hints"] == [] and [(row["key"], row["eligible"]) for row in listed["learned"]] == [("test", True)]
    shown = machine.cli("ls", cwd=repo).stdout
    assert shown.startswith("facts, where no hint is set:\n  ● shop/test  .venv/bin/pytest\n")
    assert machine.json("export", cwd=repo)["payload"]["components"] == {}
    contents = read_log(f"{machine.runtime}/{paths.CHANGE_LOG}")
    assert contents is not None and not any(record.get("puts") for record in contents.records)
    assert machine.cli("set", "shop", "test", "make test", "--if-match-version", "0", cwd=repo).returncode == 0
    assert machine.json("get", "shop", "test", cwd=repo)["hint"]["value"] == "make test"
    (hit,) = machine.json("query", "--keys", "test", cwd=repo)["hints"]
    assert hit["hint"]["value"] == "make test"
    assert "learned" not in machine.json("ls", "shop", cwd=repo)


def test_bump_credits_the_fact(machine: Machine) -> None:
    """A report that it worked counts and is kept; one that it failed as often as it worked ends it, and the why-not
    names the fact. Neither makes a hint."""
    repo = learned_shop(machine)
    assert machine.json("bump", "shop", "test", cwd=repo)["hint"]["use_count"] == 2
    machine.cli("stop", "--force")
    machine.prepared_server()
    hint = machine.json("get", "shop", "test", cwd=repo)["hint"]
    assert hint["use_count"] == 2 and hint["evidence"]["sessions"] == 1
    ran(machine, repo, "one", "pytest -q", _MISSING)
    ran(machine, repo, "one", ".venv/bin/pytest -q")
    assert machine.json("get", "shop", "test", cwd=repo)["hint"]["use_count"] == 2, "the session meets it once more"
    note = machine.json("bump", "shop", "test", "--delta", "-2", cwd=repo)["note"]
    assert note == "it is the answer no more; to forget it: nudge facts --forget pytest"
    done = machine.cli("get", "shop", "test", cwd=repo)
    assert done.returncode == 1
    assert "shop/test has no hint, and the fact about it does not apply here; see: nudge facts" in done.stderr
    assert 'fact "pytest": it failed (exit code 127' in done.stderr and "it failed as often as it worked" in done.stderr
    miss = machine.json("query", "--keys", "test", cwd=repo)
    assert miss["hints"] == [] and miss["why_not"][0]["source"] == "learned"
    assert machine.json("bump", "shop", "test", "--delta", "2", cwd=repo)["hint"]["failure_count"] == 2
    assert machine.json("get", "shop", "test", cwd=repo)["hint"]["use_count"] == 4
    assert machine.json("export", cwd=repo)["payload"]["components"] == {}


def test_a_step_that_helped_is_named_where_nothing_does_the_job(machine: Machine) -> None:
    """It is no answer: it runs before the job. `ls` does not list it under the job."""
    machine.prepared_server()
    repo = clone(machine.base / "shop")
    refused = "Exit code 1\npsycopg.OperationalError: connection to server at localhost failed: Connection refused"
    ran(machine, repo, "one", "pytest tests/db", refused)
    ran(machine, repo, "one", "docker compose up -d db")
    ran(machine, repo, "one", "pytest tests/db")
    done = machine.cli("get", "shop", "test", cwd=repo)
    assert done.returncode == 1
    assert 'fact "pytest": it failed (exit code 1, #1), and this worked (exit code 0, #3)' in done.stderr
    assert 'what helped runs before it: "docker compose up -d db"' in done.stderr
    assert "learned" not in machine.json("ls", cwd=repo)
    assert machine.cli("bump", "shop", "test", cwd=repo).returncode == 1


def test_a_fact_is_forgotten_not_deleted(machine: Machine) -> None:
    """`delete` says how."""
    repo = learned_shop(machine)
    done = machine.cli("delete", "shop", "test", cwd=repo)
    assert done.returncode == 1
    assert "shop/test is no hint but a fact; to forget it: nudge facts --forget pytest" in done.stderr
    assert machine.cli("facts", "--forget", "pytest", cwd=repo).returncode == 0
    assert machine.cli("get", "shop", "test", cwd=repo).returncode == 1


def test_what_a_person_bans_answers_nowhere(machine: Machine) -> None:
    """One ban covers the hook's answer and `get_hint`; it is lifted for both."""
    repo = learned_shop(machine)

    def told() -> str:
        told.sessions += 1  # type: ignore[attr-defined]
        return ran(machine, repo, f"later-{told.sessions}", "pytest -q", _MISSING)  # type: ignore[attr-defined]

    told.sessions = 0  # type: ignore[attr-defined]
    eventually(told, "PRIMARY answers in time")
    eventually(lambda: machine.json("told", cwd=repo)["lines"], "the line is in the ledger")
    assert machine.cli("told", "--never", "fact pytest", cwd=repo).returncode == 0
    done = machine.cli("get", "shop", "test", cwd=repo)
    assert done.returncode == 1 and "nudge told --allow 'fact pytest'" in done.stderr
    assert told() == ""
    assert machine.cli("told", "--allow", "fact pytest", cwd=repo).returncode == 0
    _check_value(machine, repo)


def _check_value(machine: Machine, repo: str) -> None:
    assert machine.cli("get", "shop/test", "--value-only", cwd=repo).stdout == ".venv/bin/pytest\n"


def test_another_repo_learns_nothing_from_it(machine: Machine) -> None:
    """A fact is of its repo; under the name of another component it is only suggested."""
    repo = learned_shop(machine)
    other = clone(machine.base / "api")
    assert machine.cli("get", "shop", "test", cwd=other).returncode == 1
    done = machine.cli("get", "backend", "test", cwd=repo)
    assert done.returncode == 1 and "(did you mean shop/test?)" in done.stderr


def test_without_a_database_hints_are_as_always(machine: Machine) -> None:
    """A miss is a miss, and everything else works."""
    (machine.base / "blocked").write_text("")
    machine.environ["NUDGE_DB"] = str(machine.base / "blocked" / "nudge.db")
    machine.prepared_server()
    repo = clone(machine.base / "shop")
    assert machine.cli("get", "shop", "test", cwd=repo).returncode == 1
    assert machine.json("query", "test", cwd=repo)["hints"] == []
    machine.json("set", "shop", "test", "make test", cwd=repo)
    assert machine.json("get", "shop", "test", cwd=repo)["hint"]["value"] == "make test"
    assert machine.json("bump", "shop", "test", cwd=repo)["hint"]["use_count"] == 1


@pytest.mark.parametrize("author", ["user", "agent:claude-code"])
def test_copies_of_facts_in_an_old_change_log_are_dropped(machine: Machine, author: str) -> None:
    """What an earlier version learned it stored as hints; they are gone when the log is read. Hints of people and
    agents stay. An import takes no copy either."""
    machine.prepared_server()
    repo = clone(machine.base / "shop")
    machine.json("set", "shop", "build", "make all", "--added-by", author, cwd=repo)
    machine.cli("stop", "--force")
    path = f"{machine.runtime}/{paths.CHANGE_LOG}"
    contents = read_log(path)
    assert contents is not None and contents.header is not None
    (put,) = [put for record in contents.records for put in record.get("puts", ())]
    meta = {**put["meta"], "source": "tool-output", "added_by": "nudge:learned"}
    copied = {"puts": [{**put, "key": "test", "meta": meta}], "removals": []}
    ChangeLog.create(path, contents.header, [*contents.records, copied]).close()
    machine.prepared_server()
    assert [row["key"] for row in machine.json("ls", "shop", cwd=repo)["hints"]] == ["build"]
    payload = {"components": {"shop": {"hints": {"test": {"value": "pytest", "meta": meta}}}}}
    done = machine.cli("import", "-", stdin=json.dumps(payload), cwd=repo)
    assert done.returncode == 0 and machine.cli("get", "shop", "test", cwd=repo).returncode == 1


def test_an_answer_says_that_it_is_a_beginning(machine: Machine) -> None:
    """A value can be run, so it has no ellipsis; where something came behind it, the reasons say so."""
    repo = learned_shop(machine)
    shown = machine.cli("get", "shop", "test", cwd=repo).stdout
    assert "value: .venv/bin/pytest  (command)" in shown and "it is the beginning of what worked" in shown
    assert "it is the beginning of what worked" in machine.cli("query", "shop", cwd=repo).stdout
    ran(machine, repo, "two", "mypy src", "Exit code 127\nbash: line 1: mypy: command not found")
    ran(machine, repo, "two", "uv run mypy")
    whole = machine.json("query", "mypy", cwd=repo)["hints"][0]
    assert whole["hint"]["value"]["cmd"] == "uv run mypy"
    assert "beginning" not in " ".join(whole["match_explain"]["reasons"])
