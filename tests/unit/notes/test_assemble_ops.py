"""What `assemble_context` returns for a question."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from nudge.core.call import Call
from nudge.core.context import Context
from tests.unit.service import Service as Operations

HERE = Call(context=Context(project="github.com/acme/shop"))
ELSEWHERE = Call(context=Context(project="github.com/acme/web"))

NOTES = [
    ("Invoices are rendered with WeasyPrint", "wkhtmltopdf lost the page breaks of long tables.", "decision"),
    ("Prices are stored in cents", "Floats rounded a total of 0.30 to 0.29.", "decision"),
    ("The search index is rebuilt at night", "A rebuild takes forty minutes and doubles the load.", "note"),
    ("Stripe sends a webhook twice", "Every handler must be idempotent; the key is the event's id.", "lesson"),
    ("Images go through imgproxy", "Pillow needed 2 GB for one photo of a supplier.", "decision"),
    ("Staging has the data of last Monday", "It is a dump without customers.", "note"),
    ("Flaky: test_checkout_timeout", "It waits for a real clock; freeze the time.", "bugfix"),
    ("Emails are sent by a queue", "SMTP was down for an hour in March.", "decision"),
    ("Feature flags are in flags.toml", "The old table in the database is not read any more.", "change"),
]
QUESTIONS = [
    "which library do we use to turn an invoice into a PDF, and why not the one from before?",
    "I am about to write the code that adds up a basket. Is there anything about rounding or floats I should know?",
    "when can I find new products by searching for them?",
    "how should the handler for payment events deal with duplicates that Stripe might send?",
    "what happens to photos that suppliers upload, and how much memory does that need?",
    "why does staging not have my order of yesterday?",
    "the checkout test sometimes fails in CI, what is known about that?",
    "is it safe to send an email inside of a request, or should that go somewhere else first?",
    "where do I switch on a feature for one customer only?",
]


class Service(Operations):
    caller = HERE

    def ids(self, query: str, **params: Any) -> list[int]:
        markdown = self("assemble_context", query=query, **params)["markdown"]
        return [int(number) for number in re.findall(r"^- m(\d+) ", markdown, re.MULTILINE)]


@pytest.fixture
def service(open_service: Callable[..., Service]) -> Service:
    opened = open_service(private_projects=("payroll",))
    for title, content, kind in NOTES:
        opened("memory_store", title=title, content=content, kind=kind)
    return opened


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("call", [HERE, ELSEWHERE, Call()], ids=["here", "elsewhere", "anywhere"])
def test_a_question_gets_what_recall_finds(service: Service, question: str, call: Call) -> None:
    """All of it while there is room; a hook would tell nothing for most of them."""
    recalled = service("memory_recall", context=question, touch=False, call=call)["memories"]
    assert recalled and set(service.ids(question, call=call)) == {note["id"] for note in recalled}


def test_a_small_budget_gets_the_best_of_each_type(service: Service) -> None:
    """The next best come in while there is room, and nothing is cut."""
    question = "how is data stored, sent and rebuilt?"
    whole = service("assemble_context", query=question)
    assert whole["item_count"] > 2 and whole["truncated"] is False
    for budget in range(10, whole["token_count"] + 1):
        part = service("assemble_context", query=question, max_tokens=budget)
        assert part["token_count"] == len(part["markdown"]) // 4 <= budget
        assert set(part["markdown"].splitlines()) <= set(whole["markdown"].splitlines())
    best = {types: service.ids(question, context_types=[types])[0] for types in ("values", "notes")}
    lines = {int(number): line for line in whole["markdown"].splitlines() for number in re.findall(r"^- m(\d+) ", line)}
    room = sum(len(lines[number]) for number in best.values()) // 4 + 12  # with both headings
    assert service.ids(question, max_tokens=room) == list(best.values())


def test_a_note_of_another_repo_says_whose_it_is(service: Service) -> None:
    """One's own comes first when both have the words."""
    service(
        "memory_store", title="Prices are stored as text", content="Commas were lost.", kind="decision", call=ELSEWHERE
    )
    markdown = service("assemble_context", query="are prices stored in cents?", context_types=["values"])["markdown"]
    own, other = markdown.splitlines()[1:3]
    assert "acme/shop" not in own and "Prices are stored in cents" in own
    assert "github.com/acme/web" in other and "Prices are stored as text" in other


def test_private_notes_are_for_their_project(service: Service) -> None:
    """Elsewhere they are not the best there is, but not there."""
    inside = Call(context=Context(project="github.com/acme/payroll"))
    service("memory_store", title="Salaries are paid on Friday", content="Always.", call=inside)
    ask: dict[str, Any] = {"query": "when are salaries paid?", "context_types": ["notes"]}
    assert "Salaries" in service("assemble_context", **ask, call=inside)["markdown"]
    assert "Salaries" not in service("assemble_context", **ask)["markdown"]
    assert "Salaries" not in service("assemble_context", **ask, call=Call())["markdown"]
    named = service("assemble_context", **ask, context={"project": "github.com/acme/payroll"}, call=Call())
    assert "Salaries" in named["markdown"]


def test_what_was_resolved_is_told_as_what_holds(service: Service) -> None:
    """The note that superseded another takes its place, also where only the old one has the words."""
    new = service("memory_store", title="Money is an integer", content="In the smallest unit.", kind="decision")["id"]
    service("memory_resolve", winner_id=new, loser_id=2)
    ids = service.ids("are prices stored in cents?", context_types=["values"])
    assert new in ids and 2 not in ids


def test_hints_come_with_the_most_shared_words_first(service: Service) -> None:
    """One word is enough; a hint without any is left out."""
    for key, value in (("test", "make test"), ("test-invoices", "pytest tests/invoices"), ("deploy", "make deploy")):
        service("set_hint", component="shop", key=key, value=value)
    ask: dict[str, Any] = {
        "query": "I changed a template: how are the tests of invoices started, and how long do they take?"
    }
    markdown = service("assemble_context", **ask, context_types=["hints"])["markdown"]
    assert [line.split(":")[0] for line in markdown.splitlines()[1:]] == ["- shop/test-invoices", "- shop/test"]


@pytest.mark.parametrize("query", ["?!", "", "kubernetes"])
def test_a_question_that_nothing_answers(service: Service, query: str) -> None:
    """Nothing, and no error."""
    assert service("assemble_context", query=query) == {
        "markdown": "",
        "token_count": 0,
        "item_count": 0,
        "truncated": False,
    }


def test_a_prompt_is_told_few_notes_and_mostly_none(service: Service) -> None:
    """What an agent here gets with a prompt, by the threshold of the hooks."""
    told = service("inject", prompt="Move the rendering of invoices from WeasyPrint to wkhtmltopdf")["text"]
    assert "m1 decision" in told and len(told.splitlines()) == 1
    assert service("inject", prompt="how long do they take?") == {"text": "", "items": []}


@pytest.mark.parametrize(
    ("domain", "told"),
    [({"domain": "debugging"}, "debugging attempt, confirmed, now"), ({}, "attempt, confirmed, now")],
)
def test_an_experience_names_its_domain(service: Service, domain: dict[str, Any], told: str) -> None:
    """With its outcome, unless no domain was given."""
    plan: dict[str, Any] = {"goal": "shrink the photos of suppliers", "prediction": "make photos passes"}
    number = service("start_ghap", session_id="s1", **plan, **domain)["id"]
    service("resolve_ghap", session_id="s1", status="confirmed")
    markdown = service("assemble_context", query="photos of suppliers", context_types=["experiences"])["markdown"]
    assert f"- m{number} {told}: " in markdown
