"""A server with a language model, through what a user has: the command line, tools, REST, status and doctor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from nudge.interfaces.operations import OPERATIONS
from nudge.interfaces.rest import MODEL_EXAMPLES, REFUSALS
from tests.contract.ways import Http
from tests.harness import Machine, eventually
from tests.unit.proposals.model_server import NAME, ModelServer, Reply, asked, model_server, saying

SAID: dict[str, Any] = {
    "tags": {"tags": ["SQLite", "pinned"]},
    "contradiction": {"contradicts": True},
    "words": {"terms": ["storage"]},
    "groups": {"groups": []},
}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Machine, ModelServer]]:
    with model_server() as model, closing(Machine()) as machine:
        model.answer = lambda request: saying(SAID[asked(request)])
        machine.prepared_server("--tier", "autonomous", "--llm-url", model.url, "--llm-model", NAME)
        yield machine, model


def test_an_agent_stores_a_note_and_a_person_decides(served: tuple[Machine, ModelServer]) -> None:
    """What is proposed in the background is listed, accepted and undone at the terminal, and seen by the agent."""
    machine, _ = served
    agent = machine.serve()
    agent.initialize()
    agent.call("memory_store", title="The router's state is in MySQL", content="x", kind="decision")
    agent.call("memory_store", title="The router's state is in SQLite", content="x", kind="decision")
    rows = eventually(
        lambda: len(found := agent.call("memory_proposals")["proposals"]) == 3 and found, "three proposals"
    )
    assert sorted((row["kind"], row["ids"]) for row in rows) == [
        ("contradiction", [1, 2]),
        ("tags", [1]),
        ("tags", [2]),
    ]
    listed = machine.cli("memory", "review").stdout
    assert "tags: sqlite" in listed and "these contradict each other" in listed
    assert "m1  The router's state is in MySQL" in listed
    ids = [str(row["id"]) for row in rows]
    accepted = machine.cli("note", "review", "accept", *ids)
    assert accepted.returncode == 0 and "m2 contradicts m1" in accepted.stdout
    assert f"nudge note review undo {' '.join(ids)}" in accepted.stderr
    note = agent.call("memory_get", id=2)
    assert note["memory"]["tags"] == ["sqlite"]
    assert [link["relation"] for link in note["links"]] == ["contradicts"]
    undone = machine.json("note", "review", "undo", *ids)["proposals"]
    assert [row["was"] for row in undone] == ["accepted"] * 3
    note = agent.call("memory_get", id=2)
    assert (note["memory"]["tags"], note["links"]) == ([], [])
    assert machine.cli("note", "review", "reject", *ids).returncode == 0
    assert machine.cli("note", "review").stderr.strip() == "nothing is proposed"
    agent.quit()


def test_the_model_is_asked_at_the_terminal(served: tuple[Machine, ModelServer]) -> None:
    machine, _ = served
    note = machine.json("remember", "Backups are made at night")["id"]
    assert machine.cli("note", "expand-query", "database").stdout == "storage\n"
    assert "storage" in machine.json("recall", "unheard", "of")["expanded_terms"]
    assert "also looked for: storage" in machine.cli("recall", "unheard", "of").stderr
    tagged = machine.json("note", "auto-tag", f"m{note}")
    assert tagged["tags"] == [] and set(tagged["proposed_tags"]) <= {"sqlite"}
    other = machine.json("remember", "Nobody makes backups")["id"]
    assert machine.cli("note", "detect-contradiction", str(note), str(other)).stdout == "yes\n"
    proposal = machine.json("note", "detect-contradiction", str(note), str(other))["proposal"]
    some = machine.cli("note", "review", "accept", str(proposal), "999")
    assert some.returncode == 1 and "nudge note review" in some.stderr
    assert f"accepted {proposal}\n" in some.stdout, "what was decided before the error is said"
    assert machine.cli("note", "review", "accept").returncode == 2


# Calls that are refused once the examples ran: operation, parameters, status.
REFUSED: list[tuple[str, dict[str, Any], int]] = [
    ("expand_query", {"query": ""}, 400),
    ("expand_query", {"query": "password: hunter2hunter2"}, 409),
    ("auto_tag", {"id": "x"}, 400),
    ("auto_tag", {"id": 999}, 404),
    ("auto_tag", {"id": 3}, 409),
    ("detect_contradiction", {"id_a": 1, "id_b": 1}, 400),
    ("detect_contradiction", {"id_a": 1, "id_b": 999}, 404),
    ("detect_contradiction", {"id_a": 1, "id_b": 3}, 409),
    *((f"proposal_{decision}", {"id": 0}, 400) for decision in ("accept", "reject", "undo")),
    *((f"proposal_{decision}", {"id": 999}, 404) for decision in ("accept", "reject", "undo")),
    ("proposal_undo", {"id": 2}, 409),
    ("proposal_accept", {"id": 1}, 409),
    ("proposal_reject", {"id": 3}, 409),
]
SILENT: list[tuple[str, dict[str, Any]]] = [
    ("expand_query", {"query": "silence"}),
    ("auto_tag", {"id": 1}),
    ("detect_contradiction", {"id_a": 1, "id_b": 2}),
]


def test_every_documented_status_is_seen() -> None:
    """Each example of the document, and for each operation every refusal that it announces."""
    seen: dict[str, set[int]] = {name: set() for name in MODEL_EXAMPLES}
    with model_server() as model, closing(Machine()) as machine:
        model.answer = lambda request: saying(SAID[asked(request)])
        machine.prepared_server("--tier", "smart", "--llm-url", model.url, "--llm-model", NAME)
        with closing(Http.to(machine)) as http:

            def call(operation: str, params: dict[str, Any]) -> int:
                method, template = OPERATIONS[operation].route
                reply = http.exchange(method, template.format_map(params), params)
                seen.setdefault(operation, set()).add(reply.status)
                return reply.status

            for number in (1, 2):
                call("nudge.memory_store", {"title": f"The port is {number}", "content": "x"})
            call("nudge.memory_store", {"title": "The login", "content": "<private>x</private>"})
            for name, params in MODEL_EXAMPLES.items():
                call(name, params)
            call("nudge.memory_auto_tag", {"id": 2})
            call("nudge.memory_proposal_accept", {"id": 3})
            for name, params, status in REFUSED:
                assert call(f"nudge.memory_{name}", params) == status, (name, params)
            model.answer = lambda _: Reply(b"{}", status=404)
            for name, params in SILENT:
                call(f"nudge.memory_{name}", params)
    documented = {name: {200, *REFUSALS[name]} for name in MODEL_EXAMPLES}
    assert {name: seen[name] for name in MODEL_EXAMPLES} == documented


def test_status_doctor_and_capabilities_say_whether_it_answers(served: tuple[Machine, ModelServer]) -> None:
    """And why not, once it does not."""
    machine, model = served
    agent = machine.serve()
    agent.initialize()
    agent.call("memory_expand_query", query="a database")
    capabilities = agent.call("memory_capabilities")
    assert capabilities["tier"] == "autonomous" and capabilities["features"]["query_expansion"]
    assert capabilities["model"] == {"state": "answers", "url": model.url, "name": NAME}
    assert f"{NAME} at {model.url}: answers" in machine.cli("status").stdout
    assert f"{NAME} answers in" in _checked(machine)
    model.answer = lambda _: Reply(b"{}", status=404)
    failed = agent.tool("memory_expand_query", query="another database")
    assert failed["isError"] and "no model of this name" in failed["structuredContent"]["error"]["message"]
    assert "silent; the server has no such address, or no model of this name" in machine.cli("status").stdout
    assert "no model of this name" in _checked(machine)
    agent.quit()


def _checked(machine: Machine) -> str:
    findings = json.loads(machine.cli("doctor", "--json").stdout)["findings"]
    return next(str(one["message"]) for one in findings if one["check"] == "language model")


def test_the_tools_of_the_model_are_not_listed_by_default() -> None:
    """An agent's list of tools is as long as before."""
    room = {name for name, operation in OPERATIONS.items() if operation.run.__module__.startswith("nudge.proposals")}
    assert len(room) == 7 and not any(OPERATIONS[name].listed for name in room)


def test_a_repository_cannot_point_the_server_at_a_model() -> None:
    """The environment of a client's process, which may come from a repository, does not name a model; a flag does."""
    with model_server() as model:
        flags = ("--tier", "smart", "--llm-url", model.url, "--llm-model", NAME)
        named = {"NUDGE_TIER": "smart", "NUDGE_LLM_URL": model.url, "NUDGE_LLM_MODEL": NAME, "NUDGE_LLM_REMOTE": "1"}
        assert _model_of((), named) == {
            "state": "off",
            "why": "the tier smart has no language model: llm_url is not set",
        }
        assert _model_of(flags, {}) == {"state": "not asked yet", "url": model.url, "name": NAME}


def _model_of(flags: tuple[str, ...], variables: dict[str, str]) -> Any:
    """What a server that a client starts says about its model."""
    with closing(Machine()) as machine:
        agent = machine.serve(*flags, **variables)
        agent.initialize()
        report = agent.call("nudge_status")["model"]
        agent.quit()
        return report
