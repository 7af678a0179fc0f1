"""`nudge journal`: tables on a terminal and in a pipe, and what is sent for each verb."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from nudge.cli import render
from nudge.core.errors import Conflict, NotFound
from tests.unit.cli.conftest import NOTE, Nudge, Server, Terminal

MOMENT = datetime(2026, 11, 16, 8, tzinfo=UTC)
NOW = MOMENT.isoformat()
ENTRY = {
    "id": 12,
    "status": "open",
    "session_id": "s1",
    "domain": "debugging",
    "namespace": "github.com/org/x",
    "goal": "find\nthe leak",
    "created_at": NOW,
    "updated_at": NOW,
}
DONE = {**ENTRY, "id": 7, "status": "falsified", "confidence_tier": "bronze", "goal": "guess \x1b[31mit"}
ATTEMPT: dict[str, Any] = {
    **NOTE,
    "kind": "attempt",
    "title": "find the leak",
    "metadata": {
        "session_id": "s1",
        "domain": "debugging",
        "strategy": "read-the-error",
        "hypothesis": "the pool",
        "action": "count",
        "prediction": "make leak exits 0",
        "confidence": 0.8,
        "iterations": [
            {"at": NOW, "adopted_by": "s1", "from": "s0"},
            {"at": NOW, "note": "no leak there", "was": {"hypothesis": "the cache"}},
        ],
        "outcome": "falsified",
        "captured": True,
        "observed": {"outcome": "falsified", "observation": 41, "exit_code": 1, "at": NOW},
        "confidence_tier": "gold",
        "result": "make leak exited with 1",
        "root_cause": {"category": "wrong_assumption", "description": "nobody looked"},
        "lesson": {"takeaway": "look first"},
        "resolved_at": NOW,
    },
}
CALIBRATION = {
    "domains": [
        {"domain": "debugging", "open": 1, "confirmed": 2, "falsified": 1, "abandoned": 0, "observed": 0.667},
        {"domain": "testing", "open": 0, "confirmed": 1, "falsified": 0, "abandoned": 0, "observed": 1, "predicted": 1},
    ],
    "total": {"open": 1, "confirmed": 3, "falsified": 1, "abandoned": 0, "observed": 0.75, "predicted": 0.5},
}


@pytest.fixture(autouse=True)
def at_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ages are counted from here, however long the tests take."""
    monkeypatch.setattr(render, "time", SimpleNamespace(time=MOMENT.timestamp))


@pytest.fixture(autouse=True)
def answering(server: Server) -> None:
    server.answers = {
        "nudge.list_ghap_entries": {"entries": [ENTRY, DONE], "count": 2},
        "nudge.memory_get": {
            "memory": ATTEMPT,
            "links": [{"source_id": 13, "target_id": 12, "relation": "derived_from"}],
        },
        "nudge.start_ghap": {"id": 12, "session_id": "s1", "status": "open"},
        "nudge.update_ghap": {"id": 12, "session_id": "s1", "status": "open", "iteration_count": 2},
        "nudge.resolve_ghap": {"id": 12, "status": "confirmed", "confidence_tier": "silver", "lesson_id": 13},
        "nudge.get_orphaned_ghap": {"has_orphan": False, "adopted": True, "id": 12, "session_id": "s2"},
        "nudge.journal_calibration": CALIBRATION,
    }


@pytest.mark.usefixtures("repo")
def test_alone_it_lists_what_there_is_here(nudge: Nudge, server: Server) -> None:
    """Plain in a pipe, each attempt in a line of its own whatever is in its goal."""
    outcome = nudge("journal")
    assert outcome.out.splitlines() == [
        "m12  open       now  debugging  find the leak",
        "m7   falsified  now  debugging  guess \\x1b[31mit",
    ]
    assert server.params == {"project": "github.com/org/x"} and nudge("journal", "list").out == outcome.out


def test_a_terminal_gets_color_and_its_width(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The status is painted, and a long goal is cut."""
    monkeypatch.setenv("COLUMNS", "60")
    server.answers["nudge.list_ghap_entries"] = {"entries": [{**ENTRY, "goal": "g" * 200}], "count": 1}
    [line] = nudge.on(Terminal(), "journal").out.splitlines()
    assert "\x1b[33mopen\x1b[0m" in line and line.endswith("…") and line.count("g") < 60


def test_several_projects_are_told_apart(nudge: Nudge, server: Server) -> None:
    """The namespace is a column where there is more than one."""
    server.answers["nudge.list_ghap_entries"]["entries"][1] = {**DONE, "namespace": "github.com/org/y"}
    assert "github.com/org/y" in nudge("journal", "list", "--all-repos", "--outcome", "falsified").out
    assert server.params["project"] is None and server.params["outcome"] == "falsified"


def test_an_orphan_is_shown_as_one(nudge: Nudge, server: Server) -> None:
    """It waits for somebody to adopt or to resolve it."""
    server.answers["nudge.list_ghap_entries"]["entries"][0] = {**ENTRY, "is_orphan": True}
    assert nudge("journal").out.splitlines()[0] == "m12  orphan     now  debugging  find the leak"


def test_json_is_the_exact_result(nudge: Nudge, server: Server) -> None:
    """Of every verb."""
    lines = [
        ("journal", "--json"),
        ("journal", "show", "m12", "--json"),
        ("journal", "resolve", "12", "--outcome", "confirmed", "--json"),
        ("journal", "adopt", "m12", "--json"),
        ("journal", "calibration", "--json"),
    ]
    for words in lines:
        outcome = nudge(*words)
        assert outcome.code == 0 and json.loads(outcome.out) == server.answers[server.calls[-1][0]]


def test_nothing_here_says_how_it_begins(nudge: Nudge, server: Server) -> None:
    """On stderr: a pipe gets nothing."""
    server.answers["nudge.list_ghap_entries"] = {"entries": [], "count": 0}
    server.answers["nudge.journal_calibration"] = {"domains": [], "total": {}}
    for words in (("journal",), ("journal", "calibration")):
        outcome = nudge(*words)
        assert (outcome.code, outcome.out) == (0, "") and "start_ghap" in outcome.err


def test_show_names_what_was_observed_without_its_command(nudge: Nudge, server: Server) -> None:
    """A purged observation has none any more."""
    server.answers["nudge.get_observations"] = []
    assert "observed: #41 exited with 1: falsified" in nudge("journal", "show", "m12").out


def test_show_has_all_of_an_attempt(nudge: Nudge, server: Server) -> None:
    """What was believed, what changed, what came of it and who owned it."""
    server.answers["nudge.get_observations"] = [{"id": 41, "content": "make leak"}]
    out = nudge("journal", "show", "m12").out
    for line in (
        "m12  find the leak",
        "status: falsified (gold)",
        "prediction: make leak exits 0",
        "confidence: 80 %",
        "observed: #41 make leak exited with 1: falsified",
        "root cause: wrong_assumption: nobody looked",
        "lesson: look first",
        "lesson note: m13",
        "domain: debugging, read-the-error",
        "now: adopted by session s1 from s0",
        "now: no leak there; hypothesis was: the cache",
    ):
        assert line in out, line


def test_show_leaves_out_a_category_that_says_nothing(nudge: Nudge, server: Server) -> None:
    """A root cause that was given without a category is stored under `other`."""
    metadata = server.answers["nudge.memory_get"]["memory"]["metadata"]
    note = {**server.answers["nudge.memory_get"]["memory"]}
    note["metadata"] = {**metadata, "root_cause": {"category": "other", "description": "the router"}}
    server.answers["nudge.memory_get"] = {"memory": note, "links": []}
    server.answers["nudge.get_observations"] = []
    assert "root cause: the router\n" in nudge("journal", "show", "m12").out


def test_show_of_another_note_is_refused(nudge: Nudge, server: Server) -> None:
    """With where attempts are."""
    server.answers["nudge.memory_get"] = {"memory": NOTE, "links": []}
    outcome = nudge("journal", "show", "m12")
    assert outcome.code == 1 and "there is no attempt m12;" in outcome.err and "nudge journal list" in outcome.err


@pytest.mark.usefixtures("repo")
def test_start_and_update_send_what_was_said(nudge: Nudge, server: Server) -> None:
    """And nothing that was not."""
    plan = ("--hypothesis", "h", "--action", "a", "--prediction", "p")
    assert "m12 is open" in nudge("journal", "start", "the goal", *plan, "--confidence", "0.5", "--parallel").out
    assert server.params == {
        "goal": "the goal",
        "hypothesis": "h",
        "action": "a",
        "prediction": "p",
        "confidence": 0.5,
        "parallel": True,
    }
    assert server.context["repo"] == "git:github.com/org/x"
    assert "m12 is in iteration 2" in nudge("journal", "update", "m12", "--note", "n").out
    assert server.params == {"id": 12, "note": "n"}
    assert nudge("journal", "start", "the goal").code == 2


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize("option", ["--predict", "--prediction"])
def test_a_goal_and_a_prediction_start_an_attempt(nudge: Nudge, server: Server, option: str) -> None:
    """Under either name of the option; what was not given is not sent, and shown as such."""
    assert "m12 is open" in nudge("journal", "start", "the goal", option, "make test passes").out
    assert server.params == {"goal": "the goal", "prediction": "make test passes"}
    note = {**NOTE, "kind": "attempt", "metadata": {"prediction": "make test passes"}}
    server.answers["nudge.memory_get"] = {"memory": note, "links": []}
    out = nudge("journal", "show", "m12").out
    assert "hypothesis: not given\n" in out and "action: not given\n" in out and "prediction: make test passes" in out


def test_resolve_says_what_became_of_the_lesson(nudge: Nudge, server: Server) -> None:
    """Its note, which agents are told."""
    words = ("--outcome", "confirmed", "--lesson", "l", "--root-cause", "c")
    assert nudge("journal", "resolve", "m12", *words).out.splitlines() == [
        "✔ m12 is confirmed (silver)",
        "  lesson: m13, told when a prompt or a file is about it",
    ]
    assert server.params == {"id": 12, "status": "confirmed", "lesson": "l", "root_cause": "c"}
    assert nudge("journal", "resolve", "m12").code == 2
    server.answers["nudge.resolve_ghap"] = Conflict("m12 was resolved before: falsified", id=12)
    assert nudge("journal", "resolve", "m12", "--outcome", "confirmed").code == 3


def test_adopt_names_the_new_owner(nudge: Nudge, server: Server) -> None:
    """A loser is told who has it, and exits with 3."""
    assert nudge("journal", "adopt", "m12", "--session", "s2").out == "✔ m12 belongs to session s2\n"
    assert server.params == {"adopt": 12, "session_id": "s2"}
    server.answers["nudge.get_orphaned_ghap"] = Conflict("m12 belongs to session s3", id=12)
    refused = nudge("journal", "adopt", "m12")
    assert refused.code == 3 and "s3" in refused.err
    server.answers["nudge.get_orphaned_ghap"] = NotFound("there is no attempt m12", id=12)
    assert nudge("journal", "adopt", "m12").code == 1


def test_the_calibration_table(nudge: Nudge, server: Server) -> None:
    """One row for each domain and one for all; a dash where nobody said how sure they were."""
    assert nudge("journal", "calibration", "--since", "2026-01-01").out.splitlines() == [
        "domain     predicted  observed  confirmed  falsified  abandoned  open",
        "debugging          -      67 %          2          1          0     1",
        "testing        100 %     100 %          1          0          0     0",
        "all             50 %      75 %          3          1          0     1",
    ]
    assert server.params["since"].startswith("202")
    shown = nudge.on(Terminal(), "journal", "calibration").out
    assert "\x1b[32m" in shown and "\x1b[33m" in shown, "close to what was predicted, and not"
