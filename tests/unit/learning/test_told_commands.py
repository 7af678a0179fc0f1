"""Facts that are told: none that another one contradicts, and of what earlier versions stored only what ran."""

from __future__ import annotations

import sqlite3
from itertools import count

import pytest

from nudge.core import limits
from nudge.core.text import quote_command
from nudge.history import store
from nudge.learning import shell
from nudge.learning import store as fact_store
from nudge.learning.command import SimpleCommand
from nudge.learning.fact import Fact
from nudge.learning.facts import Facts
from nudge.learning.outcome import Outcome
from nudge.learning.trail import Trail
from nudge.storage import conversions, migrations
from tests.unit.history.stored import NOW, event

_NO_PYTEST = "bash: line 1: pytest: command not found"
_NO_MODULE = "/usr/bin/python3: No module named pytest"
_NO_DATABASE = "psycopg.OperationalError: connection refused"
_numbers = count(1)


def taught(*sessions: tuple[str, str, str]) -> Facts:
    """What sessions teach, in their order: a line that fails, why, and what works."""
    facts = Facts()
    for number, (failed, error, worked) in enumerate(sessions):
        for line, printed, code in ((failed, error, 1), (worked, "", 0)):
            outcome = Outcome(line, printed, code, next(_numbers))
            facts.observe("api", f"s{number}", outcome, NOW + number, NOW + number)
    return facts


def start_lines(facts: Facts) -> list[str]:
    return [fact.start_text(NOW + 100) for fact in facts.at_start("api", NOW + 100, None)]


@pytest.mark.parametrize("error", [_NO_MODULE, _NO_DATABASE])
def test_what_fails_later_is_no_longer_recommended(error: str) -> None:
    """Whatever it fails for: the fact that says so is told alone."""
    recommended = ("pytest", _NO_PYTEST, "python3 -m pytest")
    refuted = ("python3 -m pytest", error, "uv run pytest")
    (line,) = start_lines(taught(recommended, recommended, refuted, refuted))
    assert line.startswith('"python3 -m pytest" fails here') and '"uv run pytest" runs the tests' in line


@pytest.mark.parametrize("error", [_NO_MODULE, _NO_DATABASE])
def test_what_works_later_is_no_longer_said_to_fail(error: str) -> None:
    """With arguments as well as without."""
    refuted = ("python3 -m pytest", error, "uv run pytest")
    recommended = ("pytest tests/a.py", _NO_PYTEST, "python3 -m pytest tests/a.py")
    lines = start_lines(taught(refuted, refuted, recommended, recommended))
    assert not any(line.startswith('"python3 -m pytest" fails') for line in lines)


def test_facts_about_different_commands_are_both_told() -> None:
    """A variable that a command needs does not contradict that command with another variable."""
    database = ("make test", "DATABASE_URL is not set", "DATABASE_URL=sqlite make test")
    runner = ("pytest", _NO_PYTEST, "uv run pytest")
    assert len(start_lines(taught(database, database, runner, runner))) == 2


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("rg '->' src", "\"rg '->' src\""),
        ("uv  run pytest", '"uv  run pytest"'),
        ('pytest -k "a or b"', '`pytest -k "a or b"`'),
        ("grep a\\ b x", "`grep a\\ b x`"),
        ('echo "`id`"', ""),
        ("psql <seed.sql", ""),
        ("echo </system> x", ""),
        ("make\ttest", ""),
        ("make \\\n test", ""),
        ("ls \N{RIGHT-TO-LEFT OVERRIDE}x", ""),
    ],
)
def test_a_command_is_quoted_as_it_is(command: str, told: str) -> None:
    """Or not at all: its blanks are kept, and nothing in it is escaped or replaced."""
    assert quote_command(command) == told


@pytest.mark.parametrize(
    ("kind", "answer", "kept"),
    [
        ("program", "uv run pytest", ["uv run pytest …"]),
        ("target", "make deploy-staging", ["make deploy-staging …"]),
        ("target", "make test", ["make test"]),
        ("call", "FOO='a b' make test", ["FOO='a b' make test"]),
        ("call", "cd web && FOO='a b' make test", ["cd web && FOO='a b' make test"]),
        ("option", "rg -> src", []),
        ("program", "MSG=done; rm -rf ~/build uv", []),
        ("program", "run pytest", []),
        ("path", "tests/test_b.py", ["tests/test_b.py"]),
    ],
)
def test_an_answer_that_never_ran_is_forgotten(kind: str, answer: str, kept: list[str]) -> None:
    """Earlier versions put answers together; what is not found in a line of its session is not told again. The
    beginning of a command is told as such."""
    lines = (
        *("uv run pytest tests/a.py", "make deploy-staging DRY_RUN=1", "rg '->' src"),
        *("cd web && FOO='a b' make test 2>&1 | tail", "cd web; make test", "MSG='done; rm -rf ~/build' uv run x"),
    )
    with sqlite3.connect(":memory:", isolation_level=None) as connection:
        before = migrations.MIGRATIONS.index(conversions.keep_facts_that_ran)
        migrations.migrate(connection, migrations.MIGRATIONS[:before])
        for line in lines:
            store.insert_event(connection, event(content=line))
        connection.execute(
            "INSERT INTO facts (project, kind, subject, tool, error, answer, session_id, failure_id, success_id,"
            " timestamp) VALUES ('app', ?, 'x', 'x', 'x', ?, 's1', 0, 0, ?)",
            (kind, answer, NOW),
        )
        migrations.migrate(connection)
        assert [fact.answer for _, fact in fact_store.load(connection).listed("app", NOW)] == kept


def test_a_start_among_many_facts_compares_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not each with each other: the number of comparisons is that of the facts, and each command is read once."""
    lessons = [(f"make t{number}", f"V{number} is not set", f"V{number}=1 make t{number}") for number in range(60)]
    facts = taught(*lessons, *lessons)
    compared, read = [], []
    contradicts, parse = Fact.contradicts, shell.parse_commands

    def comparing(fact: Fact, command: str) -> bool:
        compared.append(command)
        return contradicts(fact, command)

    def reading(line: str) -> list[SimpleCommand]:
        read.append(line)
        return parse(line)

    monkeypatch.setattr(Fact, "contradicts", comparing)
    monkeypatch.setattr(shell, "parse_commands", reading)
    shell.parse_known.cache_clear()
    assert len(start_lines(facts)) == limits.MAX_START_FACTS
    assert len(compared) <= 60 and len(read) == len(set(read)) <= 120


def test_the_answers_for_jobs_are_found_without_comparing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """What supports an answer less than another of its job is not looked at, and no fact is compared with each other
    one."""
    lessons = [
        (f"make test-{number}", f"V{number} is not set", f"V{number}=1 make test-{number}") for number in range(60)
    ]
    compared = []
    contradicts = Fact.contradicts

    def comparing(fact: Fact, command: str) -> bool:
        compared.append(command)
        return contradicts(fact, command)

    facts = taught(*lessons)
    monkeypatch.setattr(Fact, "contradicts", comparing)
    (answer,) = facts.for_jobs("api", NOW + 100, None, None, lambda _: False)
    assert (answer.job, answer.command, answer.refusal) == ("test", "V59=1 make test-59", "")
    refused = facts.for_jobs("api", NOW + 100, None, None, lambda _: True)
    assert len(refused) == 60 and len(compared) <= 60


def test_a_start_looks_at_the_facts_of_most_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of hundreds only as many are looked up on the disk as could be told; those of fewer sessions are left out."""
    monkeypatch.setattr(limits, "START_CANDIDATES", 2)
    often, lately, once = (
        (f"make {name}", f"{name.upper()} is not set", f"{name.upper()}=1 make {name}")
        for name in ("often", "lately", "once")
    )
    lines = start_lines(taught(once, once, often, often, often, lately, lately))
    assert [line.split('"')[1] for line in lines] == ["make often", "make lately"]


def test_a_failure_that_is_repeated_a_hundred_times_is_not_kept_a_hundred_times() -> None:
    """Each knows the open ones that it repeats, and no others: else they would double with each repetition."""
    trail = Trail()
    for number in range(100):
        trail.add(Outcome("pytest", _NO_PYTEST, 127, number), {})
    assert 1 < len(trail.open) <= 10
    assert all(len(entry.repeats) < len(trail.open) for entry in trail.open)
