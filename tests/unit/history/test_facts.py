"""Facts: which are told, when they are withdrawn, and that the tables keep them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from nudge import limits
from nudge.history import availability, facts
from nudge.history.facts import FactChanges, Facts
from nudge.history.problems import Outcome
from nudge.storage.migrations import migrate

NOW = 1_700_000_000.0
PROJECT = "github.com/x/api"
BROKEN = Outcome("/usr/bin/python3 -m pytest tests/a.py", "/usr/bin/python3: No module named pytest", 1)
WORKING = Outcome("pytest tests/a.py", "", 2)
NO_FILE = Outcome("pytest tests/test_ab.py", "ERROR: file or directory not found: tests/test_ab.py", 3)
FILE = Outcome("pytest tests/test_abc.py", "", 4)


def observe(
    known: Facts, session: str, *outcomes: Outcome, project: str = PROJECT, now: float = NOW
) -> list[FactChanges]:
    return [known.observe(project, session, outcome, now) for outcome in outcomes]


def told(known: Facts, session: str, outcome: Outcome, *, project: str = PROJECT, now: float = NOW) -> str | None:
    offer = known.offer(project, session, outcome, now, None)
    return offer.text(now) if offer else None


def test_once_in_a_session() -> None:
    """The same failure again in one session is met with silence."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING)
    assert told(known, "s2", BROKEN)
    assert told(known, "s2", BROKEN) is None
    assert told(known, "s3", BROKEN)


def test_a_fact_belongs_to_its_project() -> None:
    """Another project is not told."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING)
    assert told(known, "s2", BROKEN, project="github.com/y/api") is None


def test_one_later_failure_of_the_answer_withdraws_it() -> None:
    """What was recommended and is missing itself is not recommended again."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING)
    (learned,) = observe(known, "s2", Outcome("pytest tests", "bash: line 1: pytest: command not found", 9))
    assert learned.withdrawn == [
        (PROJECT, "module", "/usr/bin/python3 -m pytest", answer) for answer in ("pytest", None)
    ]
    assert told(known, "s3", BROKEN) is None


def test_what_works_again_is_no_fact() -> None:
    """The invocation that was broken ends well: the fact is gone."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING)
    observe(known, "s2", Outcome(BROKEN.command, "", 9))
    assert told(known, "s3", BROKEN) is None


def test_a_fact_that_nobody_confirms_ages_out() -> None:
    """After 90 days it is neither told nor kept."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING)
    assert told(known, "s2", BROKEN, now=NOW + limits.FACT_SECONDS + 1) is None


def test_at_the_start_a_path_needs_two_sessions() -> None:
    """A missing module is told after one session, a path after two; at most three, the most confirmed first."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING, NO_FILE, FILE)
    assert [offer.answer for offer in known.at_start(PROJECT, NOW, None)] == ["pytest"]
    observe(known, "s2", NO_FILE, FILE)
    assert [offer.answer for offer in known.at_start(PROJECT, NOW, None)] == ["tests/test_abc.py", "pytest"]
    assert len(known.at_start(PROJECT, NOW, None)) <= limits.MAX_START_FACTS


def test_why_a_start_is_not_told_a_fact(tmp_path: Path) -> None:
    """Too few sessions, an answer that cannot run there, or a failure that hardly any session meets; a fact that is
    told, alone or joined with another, has no reason."""
    known = Facts()

    def reasons(cwd: str | None = None) -> dict[str, str]:
        found = known.why_not_at_start(PROJECT, NOW, cwd, lambda _subject: 0)
        return {subject: reason for (_, subject), reason in found.items()}

    observe(known, "s1", BROKEN, WORKING, NO_FILE, FILE)
    assert list(reasons().values()) == ["needs 2 sessions"]
    observe(known, "s2", NO_FILE, FILE)
    assert reasons() == {}
    (reason,) = reasons(str(tmp_path)).values()
    assert reason == "the answer does not run here, or what failed works here now"
    for number in range(3, 20):
        observe(known, f"s{number}", WORKING)
    assert reasons() == {"/usr/bin/python3 -m pytest": "fewer than 1 session in 12 tries it"}
    joined = Facts()
    missing = Outcome("pytest", "bash: pytest: command not found", 2)
    observe(joined, "s1", BROKEN, missing, Outcome(".venv/bin/pytest"))
    assert joined.why_not_at_start(PROJECT, NOW, None, lambda _subject: 0) == {}


def test_facts_with_the_same_answer_are_one_line() -> None:
    """So that another fact has its place."""
    known = Facts()
    observe(known, "s1", BROKEN, Outcome("pytest", "bash: pytest: command not found", 2), Outcome(".venv/bin/pytest"))
    observe(known, "s2", Outcome("ruff check", "bash: ruff: command not found", 3), Outcome(".venv/bin/ruff check"))
    first, second = known.at_start(PROJECT, NOW, None)
    assert (first.start_text(NOW), second.start_text(NOW)) == (
        '"/usr/bin/python3 -m pytest" and "pytest" fail here '
        '("No module named pytest"); '
        '".venv/bin/pytest" runs the tests (just now)',
        '"ruff" fails here ("ruff: command not found"); ".venv/bin/ruff" works (just now)',
    )


def test_a_module_that_is_there_now_is_not_said_to_be_missing(tmp_path: Path) -> None:
    """The environment of the interpreter has it. A module with a similar name, or a program, is something else."""
    known = Facts()
    missing = Outcome(".venv/bin/python -m mypy", "/a/.venv/bin/python: No module named mypy", 1)
    observe(known, "s1", missing, Outcome("tools/mypy", "", 2))
    packages = tmp_path / ".venv/lib/python3.12/site-packages"
    for folder in (packages / "mypy_extensions", tmp_path / ".venv/bin", tmp_path / "tools"):
        folder.mkdir(parents=True)
    for program in ("tools/mypy", ".venv/bin/mypy"):
        (tmp_path / program).touch()
    assert [offer.answer for offer in known.at_start(PROJECT, NOW, str(tmp_path))] == ["tools/mypy"]
    (packages / "mypy").mkdir()
    assert known.at_start(PROJECT, NOW, str(tmp_path)) == []


def test_the_usual_invocation_is_recommended() -> None:
    """Of several that worked, the one that ran in most sessions."""
    known = Facts()
    observe(known, "s1", BROKEN, Outcome("python3 -m pytest tests", "", 5))
    for session in ("s2", "s3"):
        observe(known, session, WORKING)
    offer = known.offer(PROJECT, "s4", BROKEN, NOW, None)
    assert offer is not None and offer.answer == "pytest"


def test_a_path_is_told_only_where_it_exists(tmp_path: Path) -> None:
    """The recommended path exists here and the other does not; elsewhere there is silence."""
    known = Facts()
    observe(known, "s1", NO_FILE, FILE)
    assert known.offer(PROJECT, "s2", NO_FILE, NOW, str(tmp_path)) is None
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_abc.py").touch()
    assert known.offer(PROJECT, "s2", NO_FILE, NOW, str(tmp_path)) is not None
    (tmp_path / "tests/test_ab.py").touch()
    assert known.offer(PROJECT, "s3", NO_FILE, NOW, str(tmp_path)) is None


def test_a_program_is_told_only_where_it_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On PATH, or in an environment of the project, when nobody ran it lately."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING, now=NOW - limits.TRUSTED_RUN_SECONDS - 1)
    monkeypatch.setattr(availability.can_run, "__defaults__", (lambda _: None,))
    assert known.offer(PROJECT, "s2", BROKEN, NOW, str(tmp_path)) is None
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/pytest").touch()
    assert known.offer(PROJECT, "s2", BROKEN, NOW, str(tmp_path)) is not None


def test_a_call_that_needs_a_variable() -> None:
    """Told when the same words fail again; gone when they end well without it."""
    known, failing = Facts(), Outcome("make test", "Exit code 2\nno docker", 1)
    observe(known, "s1", failing, Outcome("DOCKER=1 make test", "", 2))
    text = told(known, "s2", failing)
    assert text == '"make test" fails here ("no docker"); what worked in 1 session, just now: "DOCKER=1 make test" #2'
    observe(known, "s3", Outcome("DOCKER=1 make test", "", 3))
    assert told(known, "s4", failing)
    observe(known, "s3", Outcome("make test", "", 4))
    assert told(known, "s5", failing) is None


def test_the_tables_keep_what_was_learned() -> None:
    """What is loaded says the same; what is withdrawn or purged is gone."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    known = Facts()
    for learned in (*observe(known, "s1", BROKEN, WORKING), *observe(known, "s2", BROKEN, WORKING)):
        facts.store(connection, learned)
    loaded = facts.load(connection, PROJECT)
    assert told(loaded, "s3", BROKEN) == told(known, "s3", BROKEN)
    connection.execute("INSERT INTO sessions (id, client, started_at) VALUES ('s1', 'x', 0)")
    connection.execute(
        "INSERT INTO observations (id, session_id, timestamp, obs_type, content) VALUES (2, 's1', 0, 'command', '')"
    )
    connection.execute("DELETE FROM observations WHERE id = 2")
    assert told(facts.load(connection), "s3", BROKEN) is None
    for learned in observe(known, "s4", BROKEN, WORKING):
        facts.store(connection, learned)
    assert facts.delete_old(connection, NOW + limits.FACT_SECONDS + 1) == 1
    assert told(facts.load(connection), "s3", BROKEN) is None


# Withdrawals


@pytest.mark.parametrize(
    "line",
    [
        "/usr/bin/python3 -m pytest -q || .venv/bin/pytest -q",
        "/usr/bin/python3 -m pytest -q; echo done",
        "/usr/bin/python3 -m pytest -q | tail -5",
        "ls tests/test_ab.py 2>/dev/null || ls tests",
        "git log --oneline -- tests/test_ab.py",
        "grep -rn tests/test_ab.py .",
        "rm -f tests/test_ab.py",
        "test -f tests/test_ab.py; echo $?",
        "cat tests/test_ab.py; true",
    ],
)
def test_a_mere_mention_withdraws_nothing(line: str) -> None:
    """Only a command whose own exit code is 0 shows that it works, and only one that opens a file that it is there."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING, NO_FILE, FILE)
    (learned,) = observe(known, "s2", Outcome(line, "", 9))
    assert learned.withdrawn == []


@pytest.mark.parametrize(
    ("line", "subject"),
    [
        ("cd . && /usr/bin/python3 -m pytest -q && echo done", "/usr/bin/python3 -m pytest"),
        ("cat tests/test_ab.py && ls", "tests/test_ab.py"),
        ("pytest tests/test_ab.py", "tests/test_ab.py"),
    ],
)
def test_a_command_that_must_have_ended_well_withdraws(line: str, subject: str) -> None:
    """The last of a line, and those that `&&` joins to it; not when the client reports no exit code."""
    known = Facts()
    observe(known, "s1", BROKEN, WORKING, NO_FILE, FILE)
    (unknown,) = observe(known, "s2", Outcome(line, "", 9, exit_code=None))
    (learned,) = observe(known, "s2", Outcome(line, "", 9))
    assert unknown.withdrawn == [] and [row[2] for row in learned.withdrawn] == [subject]


def test_a_path_that_exists_now_is_not_missing(tmp_path: Path) -> None:
    """Whatever was done with it."""
    known = Facts()
    observe(known, "s1", NO_FILE, FILE)
    (tmp_path / "tests").mkdir()
    touched = Outcome("git add tests/test_ab.py", "", 9, cwd=str(tmp_path))
    assert not observe(known, "s2", touched)[0].withdrawn
    (tmp_path / "tests/test_ab.py").touch()
    assert observe(known, "s2", touched)[0].withdrawn


NO_DATABASE = Outcome("go test ./...", "Exit code 1\ndial tcp 127.0.0.1:5432: connection refused\nFAIL\tx\t0.1s", 1)


@pytest.mark.parametrize(
    ("error", "is_withdrawn"),
    [
        (NO_DATABASE.error, True),
        ("Exit code 1\ndial tcp 127.0.0.1:40112: connection refused\n--- FAIL: TestX (0.1s)", True),
        ("Exit code 2\npanic: no database", True),
        ("Exit code 1\n--- FAIL: TestTax (0.00s)\nFAIL\tx\t0.1s", False),
    ],
)
def test_a_call_that_fails_itself_is_no_answer(error: str, is_withdrawn: bool) -> None:
    """Unless what failed were tests: those are no matter of the call."""
    known = Facts()
    observe(known, "s1", NO_DATABASE, Outcome("DB_URL=x go test ./...", "", 2))
    observe(known, "s2", Outcome("DB_URL=x go test ./... 2>&1 | tail -5", error, 3))
    assert (told(known, "s3", NO_DATABASE) is None) is is_withdrawn


def test_an_option_or_install_that_fails_is_no_answer() -> None:
    """So is an install after which the program is still missing."""
    no_option = Outcome("pytest -n 4 tests", "pytest: error: unrecognized arguments: -n 4", 1)
    no_tox = Outcome("tox -e py", "bash: line 1: tox: command not found", 3)
    installs = (no_tox, Outcome("pip install tox", "", 4), Outcome("tox -e py", "", 5))
    known = Facts()
    observe(known, "s1", no_option, Outcome("pytest tests", "", 2), *installs)
    assert told(known, "s2", no_option) and told(known, "s2", no_tox)
    observe(known, "s3", Outcome("pytest tests", "INTERNALERROR> no plugin", 6))
    observe(known, "s3", Outcome("pip install tox", "error: externally-managed-environment", 7))
    assert told(known, "s4", no_option) is None and told(known, "s4", no_tox) is None
    observe(known, "s5", *installs)
    assert told(known, "s6", no_tox)
    observe(known, "s7", no_tox, Outcome("pip install tox", "", 8), no_tox)
    assert told(known, "s8", no_tox) is None


def test_an_install_that_helps_again_is_confirmed() -> None:
    """That the command works after it is no contradiction."""
    no_tox = Outcome("tox -e py", "bash: line 1: tox: command not found", 3)
    known = Facts()
    for session in ("s1", "s2"):
        observe(known, session, no_tox, Outcome("pip install tox", "", 4), Outcome("tox -e py", "", 5))
    assert "what worked in 2 sessions" in (told(known, "s3", no_tox) or "")
    observe(known, "s4", Outcome("tox -e py", "", 6))
    assert told(known, "s5", no_tox) is None


def test_a_call_answers_its_own_error_only() -> None:
    """Numbers and directories may differ; another error is met with silence, and replaces what was learned."""
    known = Facts()
    failing = Outcome("make e2e", "Exit code 2\ncannot reach /a/b/sock after 12 s\nmake: *** [e2e] Error 1", 1)
    observe(known, "s1", failing, Outcome("CI=1 make e2e", "", 2))
    again = "Exit code 2\ncannot reach /c/sock after 3 s\nmake: *** [e2e] Error 1"
    assert told(known, "s2", Outcome("make e2e", again, 3))
    boom = Outcome("make e2e", "Exit code 2\nboom", 3)
    assert told(known, "s2", boom) is None
    observe(known, "s3", boom, Outcome("HOST=x make e2e", "", 4))
    assert told(known, "s4", failing) is None
    assert '"HOST=x make e2e"' in (told(known, "s4", boom) or "")


# Clones


def repository(folder: Path) -> str:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git/config").write_text('[remote "origin"]\n\turl = git@github.com:x/api.git\n')
    return str(folder)


def test_what_is_learned_in_one_clone_is_told_in_another(tmp_path: Path) -> None:
    """Paths are relative to the clone: nobody is told a path of another one."""
    one, two = repository(tmp_path / "one"), repository(tmp_path / "two")
    missing = "Exit code 1\n/usr/bin/python3: No module named pytest"
    call = "Exit code 2\nno configuration"
    known = Facts()
    for program in (".venv/bin/pytest", "sub/Makefile"):
        for clone in (one, two):
            Path(clone, program).parent.mkdir(parents=True, exist_ok=True)
            Path(clone, program).touch()
    observe(
        known,
        "s1",
        Outcome("/usr/bin/python3 -m pytest", missing, 1, one, one),
        Outcome(f"{one}/.venv/bin/pytest -q", "", 2, one, one),
        Outcome("make all", call, 3, one, one),
        Outcome(f"cd {one}/sub && make all", "", 4, f"{one}/sub", one),
    )
    offers = [
        known.offer(PROJECT, "s2", Outcome(command, error, 5, two, two), NOW, two)
        for command, error in (("/usr/bin/python3 -m pytest", missing), ("make all", call))
    ]
    assert [offer and offer.answer for offer in offers] == [".venv/bin/pytest", "cd sub && make all"]


def test_a_path_of_another_clone_is_never_told(tmp_path: Path) -> None:
    """Not even one that an earlier version kept; in its own clone it is."""
    one, two = repository(tmp_path / "one"), repository(tmp_path / "two")
    program = tmp_path / "one/.venv/bin/pytest"
    program.parent.mkdir(parents=True)
    program.touch()
    known = Facts()
    known.add_row((PROJECT, "module", "python -m pytest", "pytest", "No module", str(program), "s1", 1, 2, NOW))
    assert known.at_start(PROJECT, NOW, two) == []
    assert len(known.at_start(PROJECT, NOW, one)) == 1


def test_a_program_that_ran_lately_is_on_the_path_of_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever PATH the server has; one that is named by its path must exist."""
    monkeypatch.setenv("PATH", "/nonexistent")
    known = Facts()
    no_python = Outcome("python9 -m pytest", "bash: line 1: python9: command not found", 1)
    observe(known, "s1", no_python, Outcome("python3 -m pytest", "", 2))
    observe(known, "s1", Outcome("ruff check", "bash: ruff: command not found", 3), Outcome("bin/ruff check", "", 4))
    assert [offer.answer for offer in known.at_start(PROJECT, NOW, str(tmp_path))] == ["python3 -m pytest"]
    assert known.offer(PROJECT, "s2", no_python, NOW, str(tmp_path))
    assert known.at_start(PROJECT, NOW + limits.TRUSTED_RUN_SECONDS + 1, str(tmp_path)) == []
