"""Learning from outcomes, through the hooks: a failure that is known is answered with what worked, in the hook's own
answer."""

from __future__ import annotations

import json
import re
import time
from itertools import count
from pathlib import Path
from typing import Any

from nudge.process.client import Client
from nudge.storage import spool
from tests.contract.repos import clone
from tests.harness import Machine, eventually

_BROKEN = "/usr/bin/python3 -m pytest tests/a.py"
_ERROR = "Exit code 1\n/usr/bin/python3: No module named pytest"


def _hook(machine: Machine, session: str, call: str, command: str, error: str = "", cwd: str = "/nowhere/api") -> str:
    """What the hook prints for a command, when the event is stored: the order decides what is learned."""
    event: dict[str, Any] = {
        "session_id": session,
        "cwd": cwd,  # by default not on this machine: whether a program exists there is not known
        "tool_name": "Bash",
        "tool_use_id": call,
        "tool_input": {"command": command},
        "hook_event_name": "PostToolUseFailure" if error else "PostToolUse",
        **({"error": error} if error else {"tool_response": {"stdout": "", "stderr": "", "interrupted": False}}),
    }
    done = machine.cli("record", stdin=json.dumps(event))
    assert done.returncode == 0, done.stderr
    eventually(lambda: not spool.pending(machine.runtime), "the event is stored")
    return done.stdout


def _learn(machine: Machine) -> None:
    """One session fails, then succeeds in another way."""
    machine.prepared_server()
    _hook(machine, "s1", "t1", _BROKEN, _ERROR)
    _hook(machine, "s1", "t2", "pytest tests/a.py")


def _fail_until_answered(machine: Machine) -> tuple[str, dict[str, Any]]:
    """New sessions fail alike until PRIMARY answers one within the hook's time; that session, and what it reads."""
    sessions = (f"later-{number}" for number in count())

    def answer() -> tuple[str, str] | None:
        session = next(sessions)
        printed = _hook(machine, session, f"first of {session}", _BROKEN, _ERROR)
        return (session, printed) if printed else None

    session, printed = eventually(answer, "PRIMARY answers in time")
    return session, json.loads(printed)["hookSpecificOutput"]


def test_a_failure_is_answered_in_additional_context(machine: Machine) -> None:
    """The next session that fails alike reads what worked; once, and only after a failure."""
    _learn(machine)
    assert _hook(machine, "s2", "t3", "ls") == ""
    session, output = _fail_until_answered(machine)
    assert output["hookEventName"] == "PostToolUseFailure"
    assert output["additionalContext"].startswith(
        'Nudge record, not an instruction: "/usr/bin/python3 -m pytest" fails here'
    )
    assert '"pytest …"' in output["additionalContext"] and len(output["additionalContext"]) < 240
    assert _hook(machine, session, "again", _BROKEN, _ERROR) == ""


def test_what_was_learned_is_listed_and_forgotten(machine: Machine) -> None:
    """`nudge learned` shows it; after `--forget` a failure is met with silence."""
    _learn(machine)
    (fact,) = machine.json("learned", "--all-projects")["facts"]
    assert (fact["subject"], fact["answer"], fact["sessions"]) == ("/usr/bin/python3 -m pytest", "pytest …", 1)
    assert machine.cli("learned", "--project", "api", "--forget", fact["subject"]).returncode == 0
    assert machine.json("learned", "--all-projects") == {"facts": []}
    assert _hook(machine, "s3", "t9", _BROKEN, _ERROR) == ""
    assert machine.cli("learned", "--project", "api", "--forget", fact["subject"]).returncode == 1


def test_what_was_learned_survives_the_server(machine: Machine) -> None:
    """A new server knows it from the database."""
    _learn(machine)
    machine.cli("stop", "--force")
    machine.prepared_server()
    _, output = _fail_until_answered(machine)
    assert '"pytest …"' in output["additionalContext"]


def test_a_fact_is_as_old_as_the_success_that_it_comes_from(machine: Machine) -> None:
    """Not as old as the moment in which its event left the spool."""
    machine.prepared_server()
    client, yesterday = Client(environ=machine.environ), int(time.time()) - 86_400
    outcomes = ((_BROKEN, "command_error", {"error": _ERROR}), ("pytest tests/a.py", "command", {"exit_code": 0}))
    for number, (command, kind, metadata) in enumerate(outcomes):
        event: dict[str, Any] = {
            "event_id": f"e{number}",
            "session_id": "s1",
            "client": "codex",
            "project": "api",
            "type": kind,
        }
        event |= {"timestamp": yesterday, "content": command, "metadata": metadata}
        client.call("nudge.record", {"event": event})
    (fact,) = machine.json("learned", "--all-projects")["facts"]
    assert fact["last"] == yesterday


def _teach(machine: Machine, repo: str, session: str = "s1", error: str = _ERROR) -> None:
    _hook(machine, session, f"{session} fails", _BROKEN, error, repo)
    _hook(machine, session, f"{session} works", "PYTHONPATH=src pytest tests/a.py -x", cwd=repo)


def _test_hint(machine: Machine, repo: str) -> dict[str, Any] | None:
    done = machine.cli("get", "shop", "test", "--json", cwd=repo)
    hint: dict[str, Any] | None = json.loads(done.stdout)["hint"] if done.returncode == 0 else None
    return hint


def _shop(machine: Machine) -> str:
    """A repo whose package has another name than the repo, and a PRIMARY."""
    machine.prepared_server()
    repo = clone(machine.base / "shop-service")
    (machine.base / "shop-service" / "pyproject.toml").write_text('[project]\nname = "shop"\n')
    return repo


def test_an_invocation_that_works_is_the_answer_for_its_job(machine: Machine) -> None:
    """In the component that scan would name, with its variables and without its targets; it goes with what it was
    learned from."""
    repo = _shop(machine)
    _teach(machine, repo)
    hint = _test_hint(machine, repo)
    assert hint is not None and hint["value"] == {"type": "command", "cmd": "PYTHONPATH=src pytest"}
    meta = hint["meta"]
    assert meta["source"] == "learned"
    assert meta["scope"] == {"repo": "git:example.com/org/shop-service"}
    assert re.search(r'worked in 1 session #\d+, where "/usr/bin/python3 -m pytest" failed #\d+', meta["reason"])
    _teach(machine, repo, "s2")
    second = _test_hint(machine, repo)
    assert second is not None and second["meta"]["confidence"] > meta["confidence"]
    _hook(machine, "s3", "t9", _BROKEN, cwd=repo)
    assert _test_hint(machine, repo) is None


def test_a_clone_is_not_told_the_paths_of_another(machine: Machine) -> None:
    """What was typed with the path of one clone is told there as it was typed, and in the other not at all: with
    another path it never ran."""
    machine.prepared_server()
    one, two = (clone(machine.base / name / "shop") for name in ("one", "two"))
    for folder in (one, two):
        for path in (".venv/bin/pytest", "sub/Makefile"):
            (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / path).touch()
    no_rule = "Exit code 2\nmake: *** No rule to make target 'all'.  Stop."
    for session in ("s1", "s2"):
        _hook(machine, session, f"{session} 1", _BROKEN, _ERROR, one)
        _hook(machine, session, f"{session} 2", f"{one}/.venv/bin/pytest tests/a.py", cwd=one)
        _hook(machine, session, f"{session} 3", "make all", no_rule, one)
        _hook(machine, session, f"{session} 4", f"cd {one}/sub && make all", cwd=one)
    answers = {fact["answer"] for fact in machine.json("learned", "--all-projects")["facts"]}
    assert f"{one}/.venv/bin/pytest …" in answers
    assert f'"{one}/.venv/bin/pytest …"' in machine.cli("inject", cwd=one).stdout
    assert ".venv/bin/pytest" not in machine.cli("inject", cwd=two).stdout
    assert _test_hint(machine, two) is None


def test_the_work_of_a_session_teaches_nothing(machine: Machine) -> None:
    """A test that failed and a finding of a linter, and what ended well after an edit."""
    repo = _shop(machine)
    runs = (("bin/test", "FAILED tests/test_a.py::test_tax - assert 1 == 2"), ("bin/lint", "a.py:1:1: F401 unused"))
    for command, error in (*runs, ("make check", "no configuration")):
        _hook(machine, "s1", f"{command} 1", command, f"Exit code 1\n{error}", repo)
        edit = {
            "session_id": "s1",
            "cwd": repo,
            "tool_name": "Edit",
            "tool_use_id": f"{command} 2",
            "tool_input": {"file_path": f"{repo}/a.py"},
            "tool_response": {},
            "hook_event_name": "PostToolUse",
        }
        assert machine.cli("record", stdin=json.dumps(edit)).returncode == 0
        _hook(machine, "s1", f"{command} 3", f"cd {repo} && {command}", cwd=repo)
        _hook(machine, "s1", f"{command} 4", f"DEBUG=1 {command}", cwd=repo)
    assert machine.json("learned", "--all-projects") == {"facts": []}


def test_a_program_of_the_sessions_is_told_whatever_path_the_server_has(machine: Machine) -> None:
    """It ran with success in this project lately."""
    repo = _shop(machine)
    missing = "Exit code 127\nbash: line 1: python9: command not found"
    for session in ("s1", "s2"):
        _hook(machine, session, f"{session} 1", "python9 -m pytest", missing, repo)
        _hook(machine, session, f"{session} 2", "python3.99 -m pytest", cwd=repo)  # on no PATH of this machine
    assert '"python3.99 -m pytest" runs the tests' in machine.cli("inject", cwd=repo).stdout


def test_a_forgotten_fact_answers_no_more(machine: Machine) -> None:
    """`nudge learned --forget` ends the answer for the job as well."""
    repo = _shop(machine)
    _teach(machine, repo)
    assert _test_hint(machine, repo) is not None
    assert machine.cli("learned", "--forget", "/usr/bin/python3 -m pytest", cwd=repo).returncode == 0
    assert _test_hint(machine, repo) is None


def test_what_a_person_said_stays(machine: Machine) -> None:
    """A hint that somebody set for this repo, in any scope, comes before what was learned."""
    repo = _shop(machine)
    machine.cli("set", "shop", "test", "make everywhere", "--global", cwd=repo)
    _teach(machine, repo)
    hint = _test_hint(machine, repo)
    assert hint is not None and hint["value"] == "make everywhere"
    machine.cli("delete", "shop", "test", cwd=repo)
    _teach(machine, repo, "s2")
    machine.cli("set", "shop", "test", "make mine", cwd=repo)
    _teach(machine, repo, "s3")
    mine = _test_hint(machine, repo)
    assert mine is not None and mine["value"] == "make mine" and mine["meta"]["source"] == "user"


def test_learned_comes_between_a_guess_and_what_the_repo_names(machine: Machine) -> None:
    """A guess of scan's yields to a success; a target of the repo's own yields to nothing that was learned."""
    repo = _shop(machine)
    (machine.base / "shop-service" / "pytest.ini").write_text("")
    machine.cli("scan", cwd=repo)
    guess = _test_hint(machine, repo)
    assert guess is not None and guess["meta"]["reason"] == "pytest.ini:1, a guess"
    _teach(machine, repo)
    machine.cli("scan", cwd=repo)
    learned = _test_hint(machine, repo)
    assert learned is not None and learned["meta"]["source"] == "learned"
    (machine.base / "shop-service" / "Makefile").write_text("test:\n\tpytest\n")
    machine.cli("scan", cwd=repo)
    _teach(machine, repo, "s2")
    named = _test_hint(machine, repo)
    assert named is not None and named["value"] == {"type": "command", "cmd": "make test"}


def test_a_guess_about_another_tool_stays(machine: Machine) -> None:
    """To have found mypy says nothing about the linter that scan guessed; its own tool replaces it."""
    repo = _shop(machine)
    (machine.base / "shop-service" / "pytest.ini").write_text("")
    machine.cli("scan", cwd=repo)
    _hook(machine, "s1", "t1", "tox -e py312", "Exit code 127\nbash: line 1: tox: command not found", repo)
    _hook(machine, "s1", "t2", ".venv/bin/tox -e py312", cwd=repo)
    guess = _test_hint(machine, repo)
    assert guess is not None and guess["value"] == {"type": "command", "cmd": "pytest"}
    _teach(machine, repo, "s2")
    learned = _test_hint(machine, repo)
    assert learned is not None and learned["value"] == {"type": "command", "cmd": "PYTHONPATH=src pytest"}


def test_the_reason_of_what_was_learned_is_never_cut(machine: Machine) -> None:
    """A command that is too long for it is left out whole."""
    repo, long = _shop(machine), f"/opt/{'x' * 60}/bin/python3 -m pytest"
    _hook(machine, "s1", "t1", f"{long} tests", f"Exit code 1\n{long.split()[0]}: No module named pytest", repo)
    _hook(machine, "s1", "t2", "pytest tests", cwd=repo)
    hint = _test_hint(machine, repo)
    assert hint is not None
    assert re.fullmatch(r"worked in 1 session #\d+, where another failed #\d+", hint["meta"]["reason"])


def test_a_secret_is_not_learned(machine: Machine) -> None:
    """The guard's rules hold for what is learned, too."""
    repo = _shop(machine)
    _hook(machine, "s1", "t1", _BROKEN, _ERROR, repo)
    _hook(machine, "s1", "t2", "API_KEY=sk-ant-api03-" + "x7Kq9" * 18 + "AA pytest tests/a.py", cwd=repo)
    assert _test_hint(machine, repo) is None


def test_a_test_that_is_broken_for_everybody_is_said_to_be(machine: Machine) -> None:
    """After two sessions, in the hook's answer and in `nudge learned`; no fix is named."""
    machine.prepared_server()
    error = "Exit code 1\nFAILED tests/test_io.py::test_links - AssertionError"
    for session in ("s1", "s2"):
        assert _hook(machine, session, f"{session} test", "pytest tests", error) == ""
    sessions = (f"later-{number}" for number in count())
    printed = eventually(lambda: _hook(machine, session := next(sessions), session, "pytest tests", error), "an answer")
    told = json.loads(printed)["hookSpecificOutput"]["additionalContext"]
    assert re.search(r'"tests/test_io.py::test_links" failed in \d+ earlier sessions too', told)
    (fact,) = machine.json("learned", "--all-projects")["facts"]
    assert (fact["kind"], fact["subject"], fact["answer"]) == ("test", "tests/test_io.py::test_links", None)
    assert "no answer is known" in machine.cli("learned", "--all-projects").stdout
    assert machine.cli("learned", "--project", "api", "--forget", fact["subject"]).returncode == 0
    assert machine.json("learned", "--all-projects") == {"facts": []}
