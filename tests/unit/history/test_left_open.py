"""What a session left to do is told only while it is still true, whoever did it since."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nudge.history import git
from nudge.history.causes import error_line
from nudge.history.sessions import SessionRow, latest_sessions
from nudge.history.summary import summarize
from nudge.history.work_tree import WorkTree
from tests.unit.history.stored import NOW, edit, event, filled, prompt

Commit = Callable[[str, int], None]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture
def commit(clone: Path) -> Commit:
    def make(subject: str, timestamp: int) -> None:
        environ = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{timestamp} +0000")
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        git = ["git", "-C", str(clone), *names]
        subprocess.run([*git, "add", "-A"], check=True)
        command = [*git, "commit", "-q", "--allow-empty", "-m", subject]
        subprocess.run(command, check=True, env={**os.environ, **environ})

    return make


def changed(clone: Path, *more: dict[str, object]) -> SessionRow:
    """A session that changed a file and then did more."""
    place = {"clone": str(clone), "cwd": str(clone)}
    events = [prompt("make the parser faster than it is", NOW, "p"), edit(f"{clone}/a.py", NOW + 10, **place)]
    connection = filled(*events, *({**one, **place} for one in more))
    (row,) = latest_sessions(connection, "app", NOW + 1_000, None)
    return row


def test_a_change_is_open_until_anybody_commits(clone: Path, commit: Commit) -> None:
    """A person at a terminal, too, whom no hook reports."""
    (clone / "a.py").write_text("before")
    commit("before", NOW - 100)
    (clone / "a.py").write_text("after the change")
    assert changed(clone).uncommitted == [f"{clone}/a.py"]
    commit("Parser: twice as fast", NOW + 500)
    assert changed(clone).uncommitted == [] and not changed(clone).is_unfinished


@pytest.mark.parametrize(
    "undo",
    [
        ["checkout", "-q", "a.py"],
        ["checkout", "-q", "."],
        ["stash", "-q"],
        ["reset", "-q", "--hard"],
        ["restore", "a.py"],
    ],
)
def test_a_change_that_was_taken_back_is_not_open(clone: Path, commit: Commit, undo: list[str]) -> None:
    """Nothing is left of it, although nobody committed; what is staged is still to be committed."""
    (clone / "sub").mkdir()
    (clone / "sub" / "b.py").write_text("other")
    (clone / "a.py").write_text("before")
    commit("before", NOW - 100)
    (clone / "a.py").write_text("after the change")
    if "restore" not in undo:
        subprocess.run(["git", "-C", str(clone), "add", "a.py"], check=True)
        assert changed(clone).uncommitted == [f"{clone}/a.py"]
        subprocess.run(["git", "-C", str(clone), "reset", "-q"], check=True)
        assert changed(clone).uncommitted == [f"{clone}/a.py"]
        subprocess.run(["git", "-C", str(clone), "read-tree", "HEAD"], check=True)
    names = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(clone), *names, *undo], check=True)
    assert (clone / "a.py").read_text() == "before" and changed(clone).uncommitted == []


@pytest.mark.parametrize(
    ("pattern", "is_open"),
    [("a.py", False), ("*.py", False), ("/a.py", False), ("b.py", True), ("*.py\n!a.py", True), ("# a.py", True)],
)
def test_a_file_that_git_ignores_is_not_open(clone: Path, commit: Commit, pattern: str, is_open: bool) -> None:
    """Nobody will commit it."""
    (clone / ".gitignore").write_text(f"{pattern}\n")
    commit("before", NOW - 100)
    (clone / "a.py").write_text("local")
    assert bool(changed(clone).uncommitted) == is_open


@pytest.mark.parametrize("is_packed", [False, True])
def test_what_was_left_on_a_deleted_branch_is_not_open(clone: Path, commit: Commit, is_packed: bool) -> None:
    """Whoever deleted it has merged it or given it up. One of a clone that is gone is not known to be deleted."""
    commit("before", NOW - 100)
    git = ["git", "-C", str(clone)]
    subprocess.run([*git, "branch", "fix/parser"], check=True)
    if is_packed:
        subprocess.run([*git, "pack-refs", "--all"], check=True)
    failed = {**event("command_error", "make test", NOW + 20), "branch": "fix/parser"}
    assert changed(clone, failed).is_unfinished
    subprocess.run([*git, "branch", "-q", "-D", "fix/parser"], check=True)
    assert not changed(clone, failed).is_unfinished
    (clone / "sub").mkdir()
    assert WorkTree(str(clone / "sub")).has_branch("x") is None and WorkTree(None).has_branch("x") is None


def test_a_branch_without_a_commit_exists(clone: Path) -> None:
    subprocess.run(["git", "-C", str(clone), "switch", "-q", "-c", "first"], check=True)
    assert WorkTree(str(clone)).has_branch("first") and WorkTree(str(clone)).has_branch("other") is False


def test_a_commit_of_other_files_leaves_a_change_open(clone: Path, commit: Commit) -> None:
    """And a file that is gone, with its change taken back, is not open."""
    (clone / "b.py").write_text("b")
    commit("b", NOW + 500)
    (clone / "a.py").write_text("new")
    assert changed(clone).uncommitted == [f"{clone}/a.py"]
    (clone / "a.py").unlink()
    assert changed(clone).uncommitted == []


def test_a_change_that_another_session_committed_is_not_open() -> None:
    """Also where the clone is gone."""
    other = event("git_commit", "git commit -am x", NOW + 50, session_id="s2", metadata={"subject": "x"})
    connection = filled(
        prompt("make the parser faster than it is", NOW, "p", clone="/gone/app"),
        edit("/gone/app/a.py", NOW + 10, clone="/gone/app"),
        edit("/gone/app/a.py", NOW + 40, clone="/gone/app", session_id="s2"),
        {**other, "clone": "/gone/app"},
    )
    rows = {row.id: row for row in latest_sessions(connection, "app", NOW + 1_000, None)}
    assert rows["s1"].uncommitted == []


def test_a_quiet_wip_commit_is_seen(clone: Path, commit: Commit) -> None:
    """`git commit -q` prints nothing: the subject is in the command, or in git's log; the next commit finishes it."""
    quiet = event("git_commit", "git commit -q -F /tmp/message", NOW + 20)
    commit("wip: half of the parser", NOW + 19)
    row = changed(clone, quiet)
    assert row.commit is not None and row.commit.content == "wip: half of the parser" and row.is_unfinished
    commit("Parser: done", NOW + 300)
    assert not changed(clone, quiet).is_unfinished


def test_a_wip_commit_is_open_until_it_is_rewritten(clone: Path, commit: Commit) -> None:
    """A rebase that only moves it leaves it; one that gives it another subject finishes it."""
    commit("before", NOW - 100)
    commit("wip: half of the parser", NOW + 19)
    quiet = event("git_commit", "git commit -q -F /tmp/message", NOW + 20)

    def rebase(todo: str) -> None:
        environ = {**os.environ, "GIT_SEQUENCE_EDITOR": todo, "GIT_EDITOR": "sh -c 'echo Parser: done > $1' --"}
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(clone), *names, "rebase", "-q", "-i", "--force-rebase", "HEAD~1"]
        subprocess.run(command, check=True, env=environ, capture_output=True)
        log = clone / ".git" / "logs" / "HEAD"  # git gives a rebase the time of day
        log.write_text(re.sub(r"\d+ \+0000\trebase", f"{NOW + 300} +0000\trebase", log.read_text()))

    assert changed(clone, quiet).is_unfinished
    rebase("true")
    assert changed(clone, quiet).is_unfinished
    rebase("sed -i s/^pick/reword/")
    assert not changed(clone, quiet).is_unfinished


@pytest.mark.parametrize(
    ("command", "subject"),
    [
        ('git commit -q -m "wip: half of it"', "wip: half of it"),
        ("git add -A && git commit -qam 'wip'", "wip"),
        ('git commit -q --message="say \\"no\\""', 'say "no"'),
        ("git commit -q -F message.txt", None),
    ],
)
def test_the_subject_of_a_quiet_commit_is_in_its_command(command: str, subject: str | None) -> None:
    """What git prints wins; a message from a file has none."""
    action = git.read(command, "", succeeded=True)
    assert action is not None and action.metadata.get("subject") == subject
    printed = git.read(command, "[main 1a2b3c4] as printed\n 1 file changed", succeeded=True)
    assert printed is not None and printed.metadata["subject"] == "as printed"


def test_the_log_of_a_clone_is_read_from_its_end(clone: Path, commit: Commit) -> None:
    """Only commits; what is not git's form is passed by, and a place without a log has none."""
    commit("first", NOW)
    log = clone / ".git" / "logs" / "HEAD"
    text = log.read_text()
    log.write_text("x" * 100_000 + "\n" + text + text.replace("commit (initial)", "reset") + "0 0\n")
    assert [one.subject for one in WorkTree(str(clone)).read_commits()] == ["first"]
    assert WorkTree(None).read_commits() == [] and WorkTree("/nowhere/at/all").read_commits() == []


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (
            "uv run pytest -q tests\nE   ConnectionError: no route\nmake: *** [Makefile:3: test] Error 1",
            "E   ConnectionError: no route",
        ),
        (
            "go vet ./... && echo not found\ninternal/a.go:3: unreachable code\nmake[1]: *** [Makefile:9: vet] Error 2",
            "internal/a.go:3: unreachable code",
        ),
        ("make: *** [Makefile:3: test] Error 1", "make: *** [Makefile:3: test] Error 1"),
        ("task: [test] go test\nFAIL error: boom\ntask: Failed to run task", "FAIL error: boom"),
    ],
)
def test_the_cause_is_not_the_recipe_that_make_prints(error: str, cause: str) -> None:
    """Recipe lines stand before the error."""
    assert error_line(error) == cause


def test_a_slash_command_is_told_as_it_was_typed() -> None:
    """Not as the markup that the client makes of it; a bare one says too little to be told."""
    wrapped = (
        "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>{}</command-args>"
    )
    events = [
        prompt(wrapped.format("the parser of the config"), NOW, "p1"),
        edit("/work/app/a.py", NOW + 1, prompt_id="p1"),
        prompt(wrapped.format(""), NOW + 2, "p2"),
        edit("/work/app/b.py", NOW + 3, prompt_id="p2"),
    ]
    connection = filled(*events)
    (row,) = latest_sessions(connection, "app", NOW + 1_000, None)
    assert (row.intent, row.latest_intent) == ("/fix the parser of the config", "/fix the parser of the config")
    assert summarize(connection, "s1")["intent"] == "/fix the parser of the config"


@pytest.mark.parametrize(
    ("command", "error", "is_failing"),
    [
        ("/usr/bin/python3 -m pytest tests/a.py", "/usr/bin/python3: No module named pytest", False),
        ("pytest tests/a.py", "/bin/bash: line 1: pytest: command not found", False),
        ("pytest tests/x.py::T", "ERROR: file or directory not found: tests/x.py", False),
        ("cargo test --foo=1", "error: unexpected argument '--foo' found", False),
        ("make tests", "make: *** No rule to make target 'tests'.  Stop.", False),
        ("make test", "/bin/sh: 1: eslint: not found\nmake: *** [Makefile:3: test] Error 127", True),
        ("pytest tests/a.py", "E   ModuleNotFoundError: No module named 'app.parser'", True),
        ("pytest tests/a.py", "FAILED tests/a.py::test_a - AssertionError", True),
    ],
)
def test_a_command_that_names_what_is_missing_left_nothing_failing(
    clone: Path, command: str, error: str, is_failing: bool
) -> None:
    """It never ran. What is missing within the job is work that is left."""
    failed = event("command_error", command, NOW + 20, metadata={"exit_code": 1, "error": f"Exit code 1\n{error}"})
    assert (changed(clone, failed).failing is not None) is is_failing


@pytest.mark.parametrize(
    ("failed", "passed", "is_open"),
    [
        ("pytest", "make test", False),
        ("make test", "uv run pytest -q", False),
        ("npm test", "npx vitest run", False),
        ("cargo test --workspace", "make test 2>&1", False),
        ("pytest tests/test_a.py", "make test", False),
        ("make test", "uv run pytest tests/test_a.py", True),
        ("pytest", "ruff check", True),
        ("make lint", "make test", True),
    ],
)
def test_a_job_is_not_left_failing_when_it_passed_with_another_command(failed: str, passed: str, is_open: bool) -> None:
    """In this session or a later one; a part that passes does not clear the whole."""
    error = {"error": "Exit code 1\nFAILED tests/test_a.py::test_x - assert 1 == 2", "exit_code": 1}
    ended_badly = event("command_error", failed, NOW + 10, metadata=error)
    for session in ("s1", "s2"):
        later = event("command", passed, NOW + 20, session_id=session, metadata={"exit_code": 0})
        connection = filled(prompt("make the parser faster", NOW, "p"), edit("/w/a.py", NOW + 5), ended_badly, later)
        rows = {row.id: row for row in latest_sessions(connection, "app", NOW + 1_000, None)}
        assert (rows["s1"].failing is not None) == is_open
