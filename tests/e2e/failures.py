"""A second session that meets a failure of a kind other than a missing program is answered: a variable, a service, a
runner. In Claude Code, and in the other clients; and in Claude Code, the decision about a file that is opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nudge.telling.ledger import HEADER
from tests.contract.repos import git
from tests.e2e import claude
from tests.e2e.clients import Desk
from tests.e2e.learning import WITHIN
from tests.e2e.other_clients import Codex, Driver, Gemini, OpenCode
from tests.harness import eventually

_MAKEFILE = """\
migrate:
\t@test -n "$$DATABASE_URL" || { echo "error: DATABASE_URL is not set" >&2; exit 1; }
\t@echo migrated
test:
\t@test -e .db || { echo 'OperationalError: connection to 127.0.0.1:5432 failed: Connection refused' >&2; exit 1; }
\t@echo 5 passed
"""
_COMPOSE = "services:\n  db:\n    image: postgres:16\n"
_DOCKER = '#!/bin/sh\n[ "$*" = "compose up -d db" ] && touch .db && echo "Container db Started"\n'
_GRADLEW = "#!/bin/sh\necho BUILD SUCCESSFUL\n"
_NO_GRADLE = "#!/bin/sh\necho 'bash: line 1: gradle: command not found' >&2; exit 127\n"  # also where there is one


@dataclass(frozen=True)
class Kind:
    """What fails, what a session runs until it works, and what the next one that fails is told."""

    failing: str
    cure: Sequence[str]
    answer: str


NEEDS_VARIABLE = Kind(
    "make migrate", ("DATABASE_URL=sqlite:///dev.db make migrate",), "DATABASE_URL=sqlite:///dev.db make migrate"
)
NEEDS_SERVICE = Kind("make test", ("docker compose up -d db", "make test"), "docker compose up -d db")
OTHER_RUNNER = Kind("gradle -q check", ("./gradlew -q check",), "./gradlew -q check")
KINDS = (NEEDS_VARIABLE, NEEDS_SERVICE, OTHER_RUNNER)


def _prepare(desk: Desk) -> None:
    """A clone with a Makefile, a service and a wrapper of Gradle. Docker starts the service by making a file."""
    git(desk.project, "init", "--quiet", "--initial-branch", "main")
    (desk.project / "Makefile").write_text(_MAKEFILE)
    (desk.project / "compose.yaml").write_text(_COMPOSE)
    (desk.project / "build.gradle").write_text("plugins { id 'java' }\n")
    _program(desk.project / "gradlew", _GRADLEW)
    programs = desk.machine.base / "programs"
    programs.mkdir()
    _program(programs / "docker", _DOCKER)
    _program(programs / "gradle", _NO_GRADLE)
    desk.environ["PATH"] = f"{programs}:{desk.environ['PATH']}"
    (desk.machine.home / ".profile").write_text(f'PATH="{programs}:$PATH"\n')  # Codex starts login shells


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _stop_service(desk: Desk) -> None:
    (desk.project / ".db").unlink(missing_ok=True)


def _learned(desk: Desk) -> bool:
    answers = {fact["answer"] for fact in desk.json("facts")["facts"]}
    return len(answers) >= len(KINDS)


def _all_answered(desk: Desk, run: Callable[[int], str]) -> None:
    """Some of a few sessions is told each answer, once: a hook has little time on a busy machine."""
    answered: set[str] = set()
    for number in range(WITHIN):
        _stop_service(desk)
        lines = [line for line in run(number).splitlines() if HEADER in line]
        answered |= {kind.answer for kind in KINDS if any(f'"{kind.answer}' in line for line in lines)}
        if len(answered) == len(KINDS):
            return
    raise AssertionError(f"answered: {answered}; learned: {desk.json('facts')['facts']}")


def kinds_are_answered(desk: Desk) -> None:
    """In Claude Code: one session finds the variable, the service and the runner; the next that fails is told each."""
    _prepare(desk)
    desk.run("nudge", "connect", "claude-code", "--yes")
    first = [claude.bash(command) for kind in KINDS for command in (kind.failing, *kind.cure)]
    claude.run(desk, "learns", first)
    eventually(partial(_learned, desk), "all three are learned")

    def run(number: int) -> str:
        again = claude.run(desk, f"meets-{number}", [claude.bash(kind.failing) for kind in KINDS])
        return again.read(-1)

    _all_answered(desk, run)


def _kinds_are_answered_in(driver: Driver) -> None:
    desk = driver.desk
    _prepare(desk)
    driver.run(*(driver.shell(command) for kind in KINDS for command in (kind.failing, *kind.cure)))
    eventually(partial(_learned, desk), "all three are learned")
    _all_answered(desk, lambda _: driver.run(*(driver.shell(kind.failing) for kind in KINDS))[-1])


def codex_kinds(desk: Desk) -> None:
    """The same in Codex, whose hooks get no exit code."""
    _kinds_are_answered_in(Codex(desk))


def gemini_kinds(desk: Desk) -> None:
    """The same in Gemini CLI."""
    _kinds_are_answered_in(Gemini(desk))


def opencode_kinds(desk: Desk) -> None:
    """The same in OpenCode."""
    _kinds_are_answered_in(OpenCode(desk))


# A file

_TITLE = "Amounts are whole cents"


def file_decision_is_told(desk: Desk) -> None:
    """A session that reads the file of a decision is told it, once. One that has read the file before there was a
    decision is told it when it edits the file."""
    git(desk.project, "init", "--quiet", "--initial-branch", "main")
    desk.run("nudge", "connect", "claude-code", "--yes")
    money, rates = (desk.project / "src" / name for name in ("money.py", "rates.py"))
    money.parent.mkdir()
    for file in (money, rates):
        file.write_text("alpha = 1\n")
    _decide(desk, _TITLE, "src/money.py")
    read = [_read(money), _edit(money), _read(rates)]
    told = [_count(claude.run(desk, f"reads-{number}", read).read(-1), _TITLE) for number in range(WITHIN)]
    assert max(told) == 1, told
    assert any(_is_told_on_edit(desk, rates, number) for number in range(WITHIN)), "no edit was answered"


def _is_told_on_edit(desk: Desk, path: Path, number: int) -> bool:
    title, decided = f"Rates are read at the start, part {number}", desk.project / f"decided-{number}"
    began = desk.project / f"began-{number}"
    wait = claude.bash(f"touch {began}; while [ ! -e {decided} ]; do sleep 0.1; done")
    with claude.started(desk, f"edits-{number}", [_read(path), wait, _edit(path)]) as (process, folder):
        try:
            eventually(began.exists, "the file was read")
            _decide(desk, title, "src/rates.py")
        finally:
            decided.touch()
        output, _ = process.communicate(timeout=120)
    path.write_text("alpha = 1\n")
    return _count(claude.Run(folder, output).read(-1), title) == 1


def _count(text: str, title: str) -> int:
    """How many answers of hooks have the title."""
    return sum(HEADER in line and title in line for line in text.splitlines())


def _decide(desk: Desk, title: str, file: str) -> None:
    text = ("-T", title, "-c", "It was decided in March.", "--kind", "decision", "--files", file)
    desk.run("nudge", "note", "store", *text)


def _read(path: Path) -> claude.Step:
    return {"name": "Read", "input": {"file_path": str(path)}}


def _edit(path: Path) -> claude.Step:
    return {"name": "Edit", "input": {"file_path": str(path), "old_string": "alpha", "new_string": "beta"}}


CHECKS: tuple[Callable[[Desk], None], ...] = (
    kinds_are_answered,
    file_decision_is_told,
    codex_kinds,
    gemini_kinds,
    opencode_kinds,
)
