"""The journal: one open attempt a session, orphans and their adoption, outcomes, lessons, and what leaves an open
attempt alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.call import Call, EnvNeeded
from nudge.core.context import Context
from nudge.core.errors import Conflict, Invalid, NotFound, SecretRejected
from nudge.core.visibility import VARIABLES
from nudge.journal import store as journal
from nudge.journal.attempts import Resolution
from nudge.journal.ops import resolve_attempt
from nudge.notes.note import Lifetimes
from tests.unit.history.stored import event
from tests.unit.service import Service as Operations

PROJECT = "github.com/acme/api"
HERE = Call(context=Context(project=PROJECT))
PLAN: dict[str, Any] = {
    "goal": "make login fast",
    "hypothesis": "the session lookup has no index",
    "action": "add an index on sessions.user_id",
    "prediction": "make bench passes below 50 ms",
}
CHANGES: list[tuple[str, dict[str, Any]]] = [("update_ghap", {"note": "x"}), ("resolve_ghap", {"status": "abandoned"})]
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Service(Operations):
    caller = HERE

    def start(self, session: str, **fields: Any) -> int:
        return int(self("start_ghap", session_id=session, **{**PLAN, **fields})["id"])

    def resolve(self, session: str, status: str = "confirmed", **fields: Any) -> Any:
        return self("resolve_ghap", session_id=session, status=status, **fields)

    def note(self, note_id: int) -> dict[str, Any]:
        memory: dict[str, Any] = self("memory_get", id=note_id)["memory"]
        return memory

    def record(self, kind: str, session: str, ago: int = 0) -> None:
        happened = event(kind, session_id=session, timestamp=int(self.app.now()) - ago, project=PROJECT)
        self("record", event=happened)


# Starting and updating


def test_an_attempt_is_a_note_that_recall_finds(service: Service) -> None:
    """Its goal is the title, its other texts the content; it belongs to the caller's repo and is kept for good."""
    number = service.start("s1", domain="optimization", confidence=0.8)
    note = service.note(number)
    assert (note["kind"], note["title"], note["namespace"], note["tier"]) == ("attempt", PLAN["goal"], PROJECT, "long")
    assert "expires_at" not in note and "Prediction: make bench passes" in note["content"]
    assert note["metadata"]["confidence"] == 0.8 and note["origin"]["session"] == "s1"
    assert [row["id"] for row in service("memory_recall", context="session lookup index")["memories"]] == [number]


def test_a_second_attempt_in_a_session_is_refused_unless_parallel(service: Service) -> None:
    """The refusal names the open one. Subagents share the session's id and say `parallel`."""
    first = service.start("s1")
    with pytest.raises(Conflict, match=f"m{first} is open") as refused:
        service.start("s1", goal="another")
    assert refused.value.data["id"] == first
    second = service.start("s1", goal="another", parallel=True)
    assert service("get_active_ghap", session_id="s1")["open"] == [second, first]
    assert service.start("s2") not in (first, second), "another session is not concerned"


def test_callers_without_a_session_have_one_open_attempt_in_each_repo(service: Service) -> None:
    """They share one session, whose attempts elsewhere are not the caller's: neither in the way nor changed. A caller
    in no known place sees them all."""
    one, two = (Call(context=Context(project=f"github.com/acme/{name}")) for name in ("one", "two"))
    first, second = (service("start_ghap", call=call, **PLAN)["id"] for call in (one, two))
    with pytest.raises(Conflict, match=rf'm{second} is open in this session \("make login fast"\)'):
        service("start_ghap", call=two, **PLAN)
    assert service("get_active_ghap", call=one)["id"] == first
    assert "open" not in service("get_active_ghap", call=two)
    with pytest.raises(Invalid, match=f"m{second}, m{first}"):
        service("update_ghap", call=Call(), note="which?")
    assert service("update_ghap", call=one, note="x")["id"] == first
    assert service("resolve_ghap", call=one, status="abandoned")["id"] == first
    with pytest.raises(Conflict, match=f"m{first} was resolved before"):
        service("resolve_ghap", call=one, status="abandoned")
    assert service("get_active_ghap", call=two)["id"] == second


def test_the_refusal_names_another_repo(service: Service) -> None:
    """A session of its own has one open attempt, wherever it goes."""
    first = service.start("s1")
    with pytest.raises(Conflict, match=rf"m{first} is open in this session, for {PROJECT} \(\"make login"):
        service("start_ghap", call=Call(context=Context(project="github.com/acme/web")), session_id="s1", **PLAN)


def test_update_and_resolve_need_an_id_when_several_are_open(service: Service) -> None:
    """The refusal names them."""
    first, second = service.start("s1"), service.start("s1", parallel=True)
    for tool, fields in CHANGES:
        with pytest.raises(Invalid, match=f"m{second}, m{first}") as refused:
            service(tool, session_id="s1", **fields)
        assert refused.value.field == "id"
        assert service(tool, session_id="s1", id=f"m{first}", **fields)["id"] == first


def test_updates_keep_what_was_believed_before(service: Service) -> None:
    """Each update is an iteration with the former values; the content has the new ones."""
    number = service.start("s1")
    result = service("update_ghap", session_id="s1", hypothesis="the pool is too small", note="the index was there")
    assert result == {"id": number, "session_id": "s1", "status": "open", "iteration_count": 2}
    active = service("get_active_ghap", session_id="s1")
    assert active["hypothesis"] == "the pool is too small" and active["goal"] == PLAN["goal"]
    [iteration] = active["iterations"]
    assert iteration["was"] == {"hypothesis": PLAN["hypothesis"]} and iteration["note"] == "the index was there"
    assert "pool is too small" in service.note(number)["content"]


def test_many_long_updates_fit_into_the_note(service: Service) -> None:
    """The oldest iterations go when there is no room; the count stays true, and the note can be exported."""
    number = service.start("s1")
    for turn in range(40):
        service("update_ghap", session_id="s1", hypothesis=f"{turn} " + "h" * 900, note="n" * 900)
    metadata = service.note(number)["metadata"]
    assert metadata["iteration_count"] == 41 and 0 < len(metadata["iterations"]) < 40
    assert metadata["iterations"][-1]["was"]["hypothesis"].startswith("38 ")
    assert service("get_active_ghap", session_id="s1")["iterations"] == metadata["iterations"][-5:]
    [row] = service("memory_recall", context="session lookup index make bench")["memories"]
    assert row["metadata"] == {"domain": "other"}, "an agent that recalls does not read all of that"
    exported = service("memory_export")["memories"]
    service.resolve("s1")
    assert service("memory_import", memories=exported)["conflicts"] == 0


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"goal": " "}, "goal"),
        ({"goal": "g" * 513}, "goal"),
        ({"hypothesis": ""}, "hypothesis"),
        ({"prediction": "p" * 1_001}, "prediction"),
        ({"domain": "cooking"}, "domain"),
        ({"strategy": "hope"}, "strategy"),
        ({"confidence": 1.5}, "confidence"),
        ({"session_id": ""}, "session_id"),
        ({"session_id": "s" * 257}, "session_id"),
        ({"wish": "x"}, "wish"),
    ],
)
def test_a_wrong_field_is_named(service: Service, fields: dict[str, Any], field: str) -> None:
    """And nothing is stored."""
    with pytest.raises(Invalid) as refused:
        service("start_ghap", **{**PLAN, "session_id": "s1", **fields})
    assert refused.value.field == field
    assert service("list_ghap_entries")["entries"] == []


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"status": "open"}, "status"),
        ({"result": "r" * 2_001}, "result"),
        ({"lesson": {}}, "lesson"),
        ({"lesson": 7}, "lesson"),
        ({"lesson": {"moral": "x"}}, "lesson.moral"),
        ({"root_cause": {"category": "gremlins", "description": "x"}}, "root_cause.category"),
        ({"root_cause": {"category": "other"}}, "root_cause.description"),
    ],
)
def test_a_wrong_resolution_is_named(service: Service, fields: dict[str, Any], field: str) -> None:
    """And the attempt stays open."""
    service.start("s1")
    with pytest.raises(Invalid) as refused:
        service("resolve_ghap", **{"session_id": "s1", "status": "confirmed", **fields})
    assert refused.value.field == field
    assert service("get_active_ghap", session_id="s1")["has_active"]


def test_a_goal_and_a_prediction_are_enough_to_start(service: Service) -> None:
    """What was not given is answered as `not given`; nothing is stored for it, and nobody is told that it was given."""
    few = {name: PLAN[name] for name in ("goal", "prediction")}
    number = service("start_ghap", session_id="s1", **few)["id"]
    active = service("get_active_ghap", session_id="s1")
    assert {name: active[name] for name in PLAN} == {**few, "hypothesis": "not given", "action": "not given"}
    note = service.note(number)
    assert note["content"] == f"Prediction: {few['prediction']}"
    assert "hypothesis" not in note["metadata"] and "action" not in note["metadata"]
    service("update_ghap", session_id="s1", hypothesis="the pool is too small")
    assert service("get_active_ghap", session_id="s1")["hypothesis"] == "the pool is too small"
    for missing in few:
        with pytest.raises(Invalid) as refused:
            service("start_ghap", session_id="s2", **{name: text for name, text in few.items() if name != missing})
        assert refused.value.field == missing


@pytest.mark.parametrize("field", ["result", "lesson", "surprise", "root_cause"])
def test_an_outcome_and_a_sentence_are_enough_to_resolve(service: Service, field: str) -> None:
    """In whichever field; recall finds it."""
    service("start_ghap", session_id="s1", goal="make login fast", prediction="make bench passes")
    number = service.resolve("s1", "falsified", **{field: "the certificate is checked twice"})["id"]
    assert "certificate is checked twice" in service.note(number)["content"]


def test_secrets_are_refused(service: Service) -> None:
    """In a plan, an update and a lesson alike, by the name of the field."""
    for name in ("goal", "action"):
        with pytest.raises(SecretRejected) as refused:
            service.start("s1", **{name: f"use {TOKEN}"})
        assert refused.value.field == name
    service.start("s1")
    with pytest.raises(SecretRejected) as refused:
        service("update_ghap", session_id="s1", note=f"use {TOKEN}")
    assert refused.value.field == "note"
    with pytest.raises(SecretRejected) as refused:
        service.resolve("s1", lesson=f"use {TOKEN}")
    assert refused.value.field == "lesson.takeaway"


# Resolving


def test_a_lesson_becomes_a_note_derived_from_its_attempt(service: Service) -> None:
    """The takeaway is its title, its tag the domain; it is told at the next start, since it is kept for good."""
    number = service.start("s1", domain="debugging")
    result = service.resolve("s1", lesson={"what_worked": "EXPLAIN", "takeaway": "look at the plan first"})
    lesson = service.note(result["lesson_id"])
    assert (lesson["kind"], lesson["title"], lesson["tier"]) == ("lesson", "look at the plan first", "long")
    takeaway, worked, learned = lesson["content"].splitlines()
    assert (lesson["tags"], takeaway, worked) == (["debugging"], "look at the plan first", "(what worked: EXPLAIN)")
    assert learned.startswith(f"(from attempt m{number}, confirmed: ")
    links = service("memory_get", id=number)["links"]
    assert [(link["source_id"], link["relation"]) for link in links] == [(lesson["id"], "derived_from")]


def test_a_lesson_never_overwrites_a_note_of_another_kind(service: Service) -> None:
    """The same lesson, learned again, updates the one that is there."""
    decision = service("memory_store", title="look first", content="said so", kind="decision")["id"]
    service.start("s1")
    first = service.resolve("s1", lesson="look first")["lesson_id"]
    assert service.note(decision)["content"] == "said so" and service.note(first)["title"].startswith("look first (m")
    service.start("s1")
    again = service.resolve("s1", lesson="measure")["lesson_id"]
    service.start("s1")
    assert service.resolve("s1", lesson={"what_worked": "measure"})["lesson_id"] == again


@pytest.mark.parametrize(
    ("plan", "resolution", "tier"),
    [
        ({}, {"status": "confirmed"}, "silver"),
        ({}, {"status": "falsified"}, "bronze"),
        ({}, {"status": "falsified", "surprise": "it was the network"}, "silver"),
        ({}, {"status": "falsified", "root_cause": "the wrong host"}, "silver"),
        ({}, {"status": "abandoned", "result": "no time"}, "abandoned"),
        ({"prediction": "The index has no lookup"}, {"status": "confirmed"}, "bronze"),
    ],
)
def test_the_tier_says_how_much_an_outcome_is_worth(
    service: Service, plan: dict[str, Any], resolution: dict[str, Any], tier: str
) -> None:
    """Silver for a stated outcome; bronze for a falsified one without surprise or cause, or when the prediction repeats
    the hypothesis."""
    service.start("s1", **plan)
    assert service.resolve("s1", **resolution)["confidence_tier"] == tier


def test_an_observed_outcome_is_gold(service: Service) -> None:
    """A captured resolution has the tier gold."""
    number = service.start("s1")

    def write(connection: Any) -> dict[str, Any]:
        captured = Resolution("falsified", "make bench exited with 2", is_captured=True)
        return resolve_attempt(connection, journal.get(connection, number), captured, service.app.now(), Lifetimes())

    assert asyncio.run(service.database.write(write))["confidence_tier"] == "gold"
    assert service.note(number)["metadata"]["captured"] is True


def test_an_attempt_is_resolved_once(service: Service) -> None:
    """The second time it is a conflict with the outcome it has, with and without an id."""
    number = service.start("s1")
    service.resolve("s1", "falsified")
    for fields in (dict[str, Any](), {"id": number}):
        with pytest.raises(Conflict, match="resolved before: falsified") as refused:
            service.resolve("s1", **fields)
        assert refused.value.data == {"id": number, "status": "falsified", "session_id": "s1"}
    assert service.note(number)["metadata"]["outcome"] == "falsified"
    with pytest.raises(NotFound, match="start_ghap"):
        service.resolve("s2")
    with pytest.raises(NotFound):
        service.resolve("s2", id=999)


def test_a_repeated_call_gets_the_first_answer(service: Service) -> None:
    """A lost answer is asked for again with the same key: one attempt, one resolution, one lesson."""
    once = Call(context=HERE.context, request_id="k1")
    again = [service("start_ghap", call=once, session_id="s1", **PLAN) for _ in range(2)]
    assert again[0] == again[1]
    end = Call(context=HERE.context, request_id="k2")
    ended = [service("resolve_ghap", call=end, session_id="s1", status="confirmed", lesson="l") for _ in range(2)]
    assert ended[0] == ended[1] and len(service("list_ghap_entries")["entries"]) == 1


def test_a_resolved_attempt_is_an_experience(service: Service) -> None:
    """An open one is nobody's experience yet; its lesson is a value."""
    service.start("s1")
    ask: dict[str, Any] = {"query": "is login slow because the session lookup has no index on user_id?"}
    assert service("assemble_context", **ask, context_types=["experiences"])["item_count"] == 0
    service.resolve("s1", lesson="an index on the session lookup")
    result = service("assemble_context", **ask, context_types=["experiences", "values"])["markdown"]
    assert "attempt, confirmed" in result and "## Learned Values" in result


# Whose it is


def test_another_sessions_attempt_is_left_alone_while_that_is_there(service: Service) -> None:
    """The refusal names the owner; a person at a terminal may end any."""
    number = service.start("s1")
    for tool, fields in CHANGES:
        with pytest.raises(Conflict, match="belongs to session s1"):
            service(tool, session_id="s2", id=number, **fields)
    with pytest.raises(Conflict, match="belongs to session s1"):
        service("get_orphaned_ghap", session_id="s2", adopt=number)
    terminal = Call(interface="cli", context=HERE.context)
    assert service("resolve_ghap", call=terminal, id=number, status="abandoned")["status"] == "abandoned"


def test_an_orphan_is_offered_in_its_repo_when_its_session_ended(service: Service) -> None:
    """To every other session of this repo, and to none elsewhere."""
    service.record("session_start", "s1")
    number = service.start("s1")
    assert service("get_orphaned_ghap", session_id="s2") == {"has_orphan": False}
    service.record("session_end", "s1")
    assert [row.get("is_orphan") for row in service("list_ghap_entries")["entries"]] == [True]
    result = service("get_orphaned_ghap", session_id="s2")
    assert result["has_orphan"] and result["id"] == number and result["hypothesis"] == PLAN["hypothesis"]
    assert service("get_orphaned_ghap", session_id="s1") == {"has_orphan": False}, "its own"
    other = Call(context=Context(project="github.com/acme/web"))
    assert service("get_orphaned_ghap", call=other, session_id="s3") == {"has_orphan": False}
    with pytest.raises(NotFound, match="another repo"):
        service("get_orphaned_ghap", call=other, session_id="s3", adopt=number)


def test_a_session_ends_whatever_its_clock_says(service: Service) -> None:
    """Hooks have the wall clock, which may have been set back since the server's clock began. What is seen of the
    session afterwards says that it goes on."""
    number = service.start("s1")
    service.record("session_end", "s1", ago=3_600)
    assert service("get_orphaned_ghap", session_id="s2")["id"] == number
    service("update_ghap", session_id="s1", note="resumed")
    assert not service("get_orphaned_ghap", session_id="s2")["has_orphan"]


def test_a_silent_session_is_gone_after_half_an_hour(service: Service) -> None:
    """Its events, its calls and its counted actions are signs of life."""
    number = service.start("s1")
    service.ahead += limits.ORPHANED_AFTER - 60
    assert not service("get_orphaned_ghap", session_id="s2")["has_orphan"]
    service("increment_tool_count", session_id="s1")
    service.ahead += limits.ORPHANED_AFTER - 60
    service.record("command", "s1")
    assert not service("get_orphaned_ghap", session_id="s2")["has_orphan"]
    service.ahead += limits.ORPHANED_AFTER + 60
    assert service("get_orphaned_ghap", session_id="s2")["id"] == number


def test_of_two_that_adopt_one_wins_and_the_other_is_told_who(service: Service) -> None:
    """Also when the winner's session is as old as the loser's; adopting what one has is no error."""
    number = service.start("s1")
    service.ahead += limits.ORPHANED_AFTER + 60
    adopted = service("get_orphaned_ghap", session_id="s2", adopt=number)
    assert adopted["adopted"] and adopted["session_id"] == "s2"
    with pytest.raises(Conflict, match="belongs to session s2, which adopted it at") as refused:
        service("get_orphaned_ghap", session_id="s3", adopt=f"m{number}")
    assert refused.value.data["session_id"] == "s2"
    assert service("get_orphaned_ghap", session_id="s2", adopt=number)["adopted"]
    assert service.resolve("s2")["id"] == number
    with pytest.raises(Conflict, match="resolved before: confirmed"):
        service("get_orphaned_ghap", session_id="s3", adopt=number)


def test_a_change_after_an_adoption_is_refused_by_the_row_itself(service: Service) -> None:
    """Owner and outcome are compared in the statement that writes: what was read before is not trusted."""
    number = service.start("s1")

    def write(connection: Any) -> None:
        stale = journal.get(connection, number)
        journal.adopt(connection, stale, "s2", service.app.now())
        journal.resolve(connection, stale, Resolution("confirmed"), service.app.now(), Lifetimes())

    with pytest.raises(Conflict, match="belongs to session s2"):
        asyncio.run(service.database.write(write))


def test_adopting_beside_an_open_attempt_needs_parallel(service: Service) -> None:
    """As starting does."""
    orphan = service.start("s1")
    service.ahead += limits.ORPHANED_AFTER + 60
    own = service.start("s2")
    with pytest.raises(Conflict, match=f"m{own} is open"):
        service("get_orphaned_ghap", session_id="s2", adopt=orphan)
    service("get_orphaned_ghap", session_id="s2", adopt=orphan, parallel=True)
    assert service("get_active_ghap", session_id="s2")["open"] == [own, orphan]


def test_the_environment_says_whose_session_it_is(service: Service) -> None:
    """A caller that can be asked is asked; one that cannot, and says nothing, is the anonymous session."""
    with pytest.raises(EnvNeeded):
        service("get_active_ghap", call=Call(interface="mcp", context=HERE.context, env={}))
    named = Call(
        interface="mcp", context=HERE.context, env={**dict.fromkeys(VARIABLES), "CLAUDE_CODE_SESSION_ID": "s9"}
    )
    assert service("start_ghap", call=named, **PLAN)["session_id"] == "s9"
    assert service("start_ghap", **PLAN)["session_id"] == "anonymous"


# What leaves an open attempt alone


def test_nothing_but_the_journal_changes_an_open_attempt(service: Service) -> None:
    """Neither a note of the same title, recall, forget, consolidation, expiry nor an update."""
    number = service.start("s1", domain="testing")
    before = service.note(number)
    service("memory_store", title=PLAN["goal"], content="a note")
    service("memory_recall", context="session lookup index", touch=True)
    assert service("memory_forget", namespace=PROJECT)["deleted"] == 1
    other = service("memory_store", title="other", content="x")["id"]
    with pytest.raises(Conflict, match="open attempt"):
        service("memory_consolidate", ids=[number, other], title="both", summary="s")
    with pytest.raises(Conflict, match="open attempt"):
        service("memory_update", id=number, metadata={})
    service.ahead += 400 * 86_400
    service("memory_gc")
    assert service.note(number) == before
    service.resolve("s1")
    assert service("memory_forget", namespace=PROJECT, kind="attempt")["deleted"] == 1, "a resolved one is a note"


def test_an_attempt_is_no_contradiction_of_a_note(service: Service) -> None:
    """A goal is what somebody wanted; a note of the same words is what somebody knows."""
    service.start("s1")
    assert service("memory_store", title=PLAN["goal"], content="x")["potential_contradictions"] == []


def test_open_attempts_do_not_stand_before_experiences(service: Service) -> None:
    """Those that are about the prompt best may be the ones at work on it."""
    service.start("s1")
    service.resolve("s1")
    for number in range(5):
        service.start(f"at work {number}")
    ask = {"query": "is login slow because the session lookup has no index on user_id?"}
    assert "m1 attempt, confirmed" in service("assemble_context", call=HERE, **ask)["markdown"]


def test_only_the_journal_makes_attempts(service: Service) -> None:
    """A note of that kind without a plan would be nobody's."""
    with pytest.raises(Invalid) as refused:
        service("memory_store", title="t", content="c", kind="attempt")
    assert refused.value.field == "kind"


# Reading


def test_the_list_has_the_open_ones_first(service: Service) -> None:
    """By domain, outcome and project; null means all projects."""
    first = service.start("s1", domain="testing")
    service.ahead += 10
    second = service.start("s2", domain="debugging")
    service.resolve("s2", "falsified")
    other = Call(context=Context(project="github.com/acme/web"))
    third = service("start_ghap", call=other, session_id="s3", **PLAN)["id"]

    def ids(**filters: Any) -> list[int]:
        return [row["id"] for row in service("list_ghap_entries", **filters)["entries"]]

    assert ids() == [first, second] and ids(outcome="open") == [first] and ids(domain="debugging") == [second]
    assert ids(outcome="falsified") == [second] and sorted(ids(project=None)) == [first, second, third]
    assert ids(session_id="s2") == [second] and ids(project=None, session_id="s3") == [third]
    assert ids(project="web") == [third] and ids(since="2100-01-01T00:00:00Z") == []
    assert service("list_ghap_entries", limit=1)["more"] is True


def test_calibration_compares_what_was_predicted_with_what_came(service: Service) -> None:
    """Abandoned and open attempts count in neither share; the stated confidence is that of the settled ones."""
    for number, (status, confidence) in enumerate([("confirmed", 0.9), ("confirmed", 0.7), ("falsified", 0.8)]):
        service.start(f"s{number}", domain="debugging", confidence=confidence)
        service.resolve(f"s{number}", status)
    service.start("s4", domain="debugging", confidence=0.1)
    service.start("s5", domain="testing")
    service.resolve("s5", "abandoned")
    result = service("journal_calibration")
    assert result["domains"] == [
        {
            "domain": "debugging",
            "open": 1,
            "confirmed": 2,
            "falsified": 1,
            "abandoned": 0,
            "observed": 0.667,
            "predicted": 0.8,
        },
        {"domain": "testing", "open": 0, "confirmed": 0, "falsified": 0, "abandoned": 1},
    ]
    assert result["total"]["observed"] == 0.667 and result["total"]["abandoned"] == 1


# Sessions at work


def test_a_check_in_is_due_after_ten_actions_without_an_update(service: Service) -> None:
    """Only while an attempt is open; each session has its own count, and an update begins a new one."""
    for _ in range(12):
        count = service("increment_tool_count", session_id="s1")["tool_count"]
    assert count == 12 and not service("should_check_in", session_id="s1")["should_check_in"]
    number = service.start("s1")
    assert service("should_check_in", session_id="s1") == {"should_check_in": False, "tool_count": 0}
    for _ in range(10):
        service("increment_tool_count", session_id="s1")
    assert service("should_check_in", session_id="s1") == {"should_check_in": True, "tool_count": 10, "id": number}
    assert not service("should_check_in", session_id="s1", frequency=11)["should_check_in"]
    assert not service("should_check_in", session_id="s2")["should_check_in"]
    service("update_ghap", session_id="s1", note="still at it")
    assert not service("should_check_in", session_id="s1")["should_check_in"]
    assert service("increment_tool_count", session_id="s1")["tool_count"] == 1
    assert service("reset_tool_count", session_id="s1") == {"tool_count": 0}


def test_start_session_changes_nobody_elses(service: Service) -> None:
    """It returns a new id and changes nothing else."""
    service.start("s1")
    ids = {service("start_session")["session_id"] for _ in range(3)}
    assert len(ids) == 3 and all(len(one) == 36 for one in ids)
    assert service("get_active_ghap", session_id="s1")["has_active"]
