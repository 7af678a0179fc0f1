"""Whatever lines fail and work: what is learned and told is a part of a line that ran."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nudge.learning.command import CUT_OFF
from nudge.learning.fact import Fact
from nudge.learning.facts import Facts
from nudge.learning.outcome import Outcome
from nudge.learning.shell import parse_commands
from tests import effort
from tests.property.test_shell_spans import DATA, LINES

_NOW = 1_790_000_000.0
_ROOT = "/nowhere/api"
_FAILURES = (
    ("pytest tests/a.py", "bash: line 1: pytest: command not found"),
    ("/usr/bin/python3 -m pytest tests/a.py", "/usr/bin/python3: No module named pytest"),
    ("make check", "make: *** No rule to make target 'check'.  Stop."),
    ("make test", "psycopg.OperationalError: connection refused"),
    ("make test", "DATABASE_URL is not set"),
    ("make deploy", "make: *** No rule to make target 'deploy'.  Stop."),
    ("npm run tests", 'npm error Missing script: "tests"'),
    ("uv run pytest tests/a.py", "ERROR: file or directory not found: tests/a.py"),
    ("rg --hiden x src", "rg: unrecognized flag --hiden"),
    ("cargo build", "error: could not find `Cargo.toml` in `/nowhere/api` or any parent directory"),
)
_WORKED = (
    "make test",
    "pytest tests/a.py",
    "make -f x.mk check",
    "uv run pytest 'tests/a b.py'",
    "npm run test",
    "rg x src",
    "make deploy-staging DRY_RUN=1",
    "make test DRY_RUN=1 tests/a.py",
)
_VALUES = ("1", "'a b'", '"x; y"', "'->'", "$HOME", "`id`", "$(id)", "src:lib", "'<b>'", '"\\$x"', "a\\ b", "é", "…")
_BEFORE = (
    *(
        "",
        "cd web && ",
        f"cd {_ROOT}/web && ",
        "export A='b c'; ",
        "docker compose up -d db && ",
        "npm ci\n",
        "{ ls; }; ",
    ),
    *("{ ls; }; ", "source env.sh && ", "(cd web; ", "ls | "),
)
_LAUNCHERS = ("", "", f"{_ROOT}/.venv/bin/", "./", "uv run ", "python3 -m ", "docker compose run  app ")
_BEHIND = (
    *("", " 2>&1 | tail -3", " > out.txt", " < in.sql", " <<E\ntext\nE", " <<< 'a b'", " -k 'x or y'", " && ls"),
    *(" -x \\\n -q", " 'a\nb'", ")", " # why", "  -v  "),
)


@st.composite
def lines(draw: st.DrawFn) -> str:
    """A line that does the same as one of the failures, in another way."""
    names = draw(st.lists(st.sampled_from(("A", "MSG", "PYTHONPATH", "DATABASE_URL")), unique=True, max_size=2))
    variables = "".join(f"{name}={draw(st.sampled_from(_VALUES))} " for name in names)
    wrapper = draw(st.sampled_from(("", "", "env ", "timeout 60 ", "sudo -E ", "time  ")))
    launcher = draw(
        st.sampled_from(("", "", f"{_ROOT}/.venv/bin/", "./", "uv run ", "python3 -m ", "docker compose run  app "))
    )
    words = draw(st.sampled_from(_WORKED)) + draw(st.sampled_from(("", f" {draw(st.sampled_from(_VALUES))}")))
    before, behind = draw(st.sampled_from(_BEFORE)), draw(st.sampled_from(_BEHIND))
    return before + variables + wrapper + launcher + words + behind


def learned(failed: str, error: str, worked: list[str]) -> list[Fact]:
    """What two sessions teach in which one line fails and others work."""
    facts, number = Facts(), itertools.count(1)
    for session in ("s1", "s2"):
        for line, printed, code in ((failed, error, 1), *((line, "", 0) for line in worked)):
            outcome = Outcome(line, printed, code, next(number), _ROOT, _ROOT, "main")
            facts.observe("api", session, outcome, _NOW, _NOW)
    return [fact for _, fact in facts.listed("api", _NOW)]


def words_of(line: str) -> list[tuple[str, ...]]:
    return [(*command.variables, *command.words) for command in parse_commands(line)]


def is_part(told: str, line: str) -> bool:
    """Whether what is told stands in the line, and is one of its commands, several that follow each other, or the
    beginning of one, which ends in an ellipsis."""
    text = told.removesuffix(CUT_OFF)
    if text not in line:
        return False
    commands, whole = words_of(text), words_of(line)
    *first, last = commands or [()]
    for at in range(len(whole) - len(first)):
        if whole[at : at + len(first)] == first and whole[at + len(first)][: len(last)] == last:
            return whole[at + len(first)] == last or told.endswith(CUT_OFF)
    return False


def leaves_out_a_setting(told: str, line: str) -> bool:
    """Whether what is left out at the end of every command that begins so has an argument such as `DRY_RUN=1`."""
    last = words_of(told.removesuffix(CUT_OFF))[-1]
    rests = [words[len(last) :] for words in words_of(line) if words[: len(last)] == last]
    return bool(rests) and all("DRY_RUN=1" in rest for rest in rests)


def check_told(fact: Fact, failed: str, worked: list[str]) -> None:
    if fact.cure.kind != "path":
        assert any(is_part(fact.answer, line) for line in worked), (fact.answer, worked)
        assert not any(leaves_out_a_setting(fact.answer, line) for line in worked), (fact.answer, worked)
        assert is_part(fact.subject, failed) or is_part(fact.subject + CUT_OFF, failed), (fact.subject, failed)
    for text in (fact.text(_NOW), fact.start_text(_NOW)):
        assert not text or (fact.answer in text and fact.subject in text and text.isprintable() and "<b>" not in text)


@settings(max_examples=effort.times(300))
@given(failure=st.sampled_from(_FAILURES), line=lines() | LINES)
def test_what_is_told_is_a_part_of_what_ran(failure: tuple[str, str], line: str) -> None:
    """Byte for byte, and the same simple command or its beginning."""
    for fact in learned(*failure, [line]):
        check_told(fact, failure[0], [line])


@pytest.mark.parametrize("name", sorted(path.name for path in Path(DATA).glob("*failure_pairs.jsonl")))
def test_what_the_benchmarks_teach_is_a_part_of_what_ran(name: str) -> None:
    """Every failure of a case, with all that worked in its session."""
    taught = 0
    for case in map(json.loads, (DATA / name).read_text(encoding="utf-8").splitlines()):
        for session in case["sessions"]:
            steps = [step for step in session if "command" in step]
            for at, step in enumerate(steps):
                if step["exit"]:
                    later = [other["command"] for other in steps[at + 1 :] if not other["exit"]]
                    for fact in learned(step["command"], f"Exit code {step['exit']}\n{step['output']}", later):
                        check_told(fact, step["command"], later)
                        taught += 1
    assert taught > 20
