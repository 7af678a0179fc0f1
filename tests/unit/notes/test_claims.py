"""What a title claims of what."""

from __future__ import annotations

import random

import pytest

from nudge.notes.claims import claims_of, may_contradict


@pytest.mark.parametrize(
    ("title", "subject", "object_"),
    [
        ("The database is PostgreSQL", {"database"}, {"postgresql"}),
        ("Indent with tabs", {"indent"}, {"tabs"}),
        ("We use tabs for indentation, because of Go", {"indentation"}, {"tabs"}),
        ("Timeout for logins should be 30s", {"timeout", "logins"}, {"30", "s"}),
        ("Max upload size 10 MB", {"max", "upload", "size"}, {"10", "mb"}),
        ("Primary database PostgreSQL", {"primary", "database"}, {"postgresql"}),
        ("Sprint 12", {"sprint", "12"}, set()),
        ("Deployment target", {"deploy", "targets"}, set()),
        ("Flaky test: login redirects badly", {"flaky", "test", "login", "redirects", "badly"}, set()),
        ("", set(), set()),
        ("is", set(), set()),
        ("not", set(), set()),
    ],
)
def test_a_title_has_a_subject_and_mostly_an_object(title: str, subject: set[str], object_: set[str]) -> None:
    """In roots of words, so that forms of one word are one."""
    (claim,) = claims_of(title)
    (wanted,) = claims_of(" ".join(sorted(subject)))
    assert claim.subject == wanted.subject
    assert claim.object == frozenset().union(*(claims_of(word)[0].subject for word in object_))


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("Use tabs", "We use spaces", True),
        ("Use npm", "Use pnpm", True),
        ("Indentation: tabs", "Indentation: 4 spaces", True),
        ("ORM: SQLAlchemy", "ORM: the Django ORM", True),
        ("Use tabs", "Use pytest", False),
        ("Use Redis", "Use Kafka", False),
        ("Flaky test: login", "Flaky test: upload times out", False),
    ],
)
def test_things_that_exclude_each_other_need_no_subject(one: str, other: str, may: bool) -> None:
    """Where a project has one of a few, and where a value has a number or repeats its subject."""
    assert may_contradict(claims_of(one), claims_of(other)) is may
    assert may_contradict(claims_of(other), claims_of(one)) is may


def test_any_title_can_be_read() -> None:
    """A note with a strange title is stored all the same."""
    chance = random.Random(7)
    parts = [
        "is",
        "are the",
        "use",
        "not",
        ":",
        "=",
        "10",
        "MB",
        "in",
        "for",
        "as",
        "Redis",
        "é",
        "\ud83d",
        "%",
        "'",
        "the",
    ]
    for _ in range(3_000):
        title = " ".join(chance.choices(parts, k=chance.randint(0, 7)))
        assert may_contradict(claims_of(title), claims_of(title)) in (True, False)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Sessions are stored in Redis", "Sessions are in Postgres", True),
        ("Sessions are stored in Redis", "Sessions are Redis hashes", False),
        ("Errors are returned as JSON", "Errors are logged to Sentry", False),
        ("PostgreSQL is our database", "The database is MySQL", True),
        ("pytest is required", "ruff is required", False),
        ("Never deploy on Friday", "Deploy on Friday after noon", True),
        ("Never deploy on Friday", "Deploy with docker", False),
        ("Deploys need two approvals", "Deploys need one approval", True),
        ("Deploys need a VPN", "Deploys need two approvals", False),
        ("Tabs, not spaces", "Spaces, not tabs", True),
    ],
)
def test_what_cannot_both_be_right(one: str, other: str, expected: bool) -> None:
    """The same subject in the same relation to another object, or denied; other relations are other facts."""
    assert may_contradict(claims_of(one), claims_of(other)) is expected
    assert may_contradict(claims_of(other), claims_of(one)) is expected
