"""What no model ever sees, on every path that leads to one: credentials, redacted text, passages marked as private, and
whatever belongs to a private repo. The server here is on this machine; it makes no difference."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nudge.core.call import OWN_VARIABLES, Call
from nudge.core.context import Context
from nudge.core.errors import Conflict, NudgeError
from nudge.interfaces.operations import OPERATIONS
from tests.unit.proposals.model_server import ModelServer, asked, saying
from tests.unit.proposals.test_review_ops import HERE, Service
from tests.unit.test_imports import imports, modules

PRIVATE = Call(context=Context(project="github.com/acme/payroll"))
OWN_PRIVATE = replace(HERE, env={**dict.fromkeys(OWN_VARIABLES), "NUDGE_PRIVATE_PROJECTS": "api"})
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
MARK = "zebra"
WITHHELD = {
    "a credential": f"The {MARK} logs in with {TOKEN}",
    "a probable password": f"The {MARK} has the database password: hunter2hunter2",
    "something redacted": f"The {MARK} logs in with [REDACTED:github-token]",
    "a private passage": f"The router <private>is a {MARK}</private>",
    "an open private passage": f"The router <PRIVATE reason='x'>is a {MARK}",
    "a private passage that was removed": f"[private] The {MARK} has stripes",
}


@pytest.fixture
def service(tmp_path: Path, server: ModelServer) -> Iterator[Service]:
    """Without the guard, which would refuse most of these notes: it can be turned off."""
    answers: dict[str, Any] = {
        "tags": {"tags": ["router"]},
        "contradiction": {"contradicts": True},
        "words": {"terms": ["router"]},
        "groups": {"groups": [{"notes": [1, 2, 3, 4], "tag": "router"}]},
    }
    server.answer = lambda request: saying(answers[asked(request)])
    opened = Service(
        tmp_path / "nudge.db", server, tier="autonomous", private_projects=("payroll",), secret_guard=False
    )
    yield opened
    opened.database.close()


def walk(service: Service, call: Call, withheld: int, open_note: int, query: str) -> list[str]:
    """Take every path to the model with a note and a query; return the refusals."""
    refused = []
    paths: list[tuple[str, dict[str, Any]]] = [
        ("auto_tag", {"id": withheld}),
        ("detect_contradiction", {"id_a": withheld, "id_b": open_note}),
        ("detect_contradiction", {"id_a": open_note, "id_b": withheld}),
        ("expand_query", {"query": query}),
        ("recall", {"context": query}),
    ]
    for name, params in paths:
        try:
            service(name, call=call, **params)
        except NudgeError as error:
            refused.append(error.message)
    return refused


def test_the_walk_has_every_path() -> None:
    """Whatever asks a question makes it by one module; who imports that is walked here and, for what happens without
    being asked, in `test_background_ops`. The check of `nudge doctor` asks about a word of its own."""
    asking = {name for name, source in modules().items() if "nudge.proposals.questions" in imports(source)}
    room = {f"nudge.proposals.{name}" for name in ("ops", "expansion_ops", "background_ops", "language_model")}
    assert asking == {*room, "nudge.doctor.language_model"}
    operations = {name for name, one in OPERATIONS.items() if one.run.__module__ == "nudge.proposals.ops"}
    walked = {"nudge.memory_auto_tag", "nudge.memory_detect_contradiction", "nudge.memory_expand_query"}
    assert operations == walked, "and recall"


@pytest.mark.parametrize("case", WITHHELD)
def test_a_text_that_is_withheld_is_not_sent(service: Service, server: ModelServer, case: str) -> None:
    """Nor the note that it would be compared with; the refusal says why, and not what the text is."""
    withheld, open_note = service.store("A router", WITHHELD[case]), service.store("Another router", "is a proxy")
    refused = walk(service, HERE, withheld, open_note, f"{WITHHELD[case]} unheard of")
    assert len(refused) == 4 and all("the language model may not see" in text for text in refused)
    assert server.requests == [] and not any(MARK in text for text in refused)


def test_nothing_of_a_private_repo_is_sent(service: Service, server: ModelServer) -> None:
    """Not for a caller in it, and not its notes that are kept elsewhere."""
    inside = service.store(f"The {MARK} of payroll", call=PRIVATE)
    elsewhere = service.store(f"A global {MARK}", namespace="global", call=PRIVATE)
    open_note = service.store("Another router", "is a proxy", namespace="global")
    for note in (inside, elsewhere):
        assert len(walk(service, PRIVATE, note, open_note, f"striped {MARK} unheard of")) == 4
    service("recall", context="unheard of stripes", namespace="payroll")
    service("recall", context="unheard of stripes", namespace="github.com/acme/payroll")
    assert server.requests == []


def test_a_caller_makes_its_own_repo_private(service: Service, server: ModelServer) -> None:
    """By its own variable, which the server's settings do not have."""
    note, other = service.store("A router"), service.store("Another router")
    assert len(walk(service, OWN_PRIVATE, note, other, "striped unheard of")) == 4
    assert server.requests == []


def test_what_may_be_seen_is_sent(service: Service, server: ModelServer) -> None:
    """The same walk with nothing to withhold: each path does ask the model."""
    note, other = service.store("A router"), service.store("Another router")
    assert walk(service, HERE, note, other, "striped unheard of") == []
    assert [asked(request) for request in server.requests] == ["tags", "contradiction", "contradiction", "words"]
    kept = ("github.com", "acme", "api")
    assert not any(word in server.seen for word in kept), "no repo is named"


def test_a_rejected_question_does_not_reach_the_log(
    service: Service, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    """What was to be asked is written nowhere."""
    server.answer = lambda request: saying({"wrong": request["messages"][1]["content"]})

    async def recall() -> None:
        await service.app.execute("nudge.memory_recall", {"context": f"{MARK} unheard of"}, HERE)

    asyncio.run(recall())
    assert len(server.requests) == 1 and MARK not in caplog.text


def test_a_damaged_note_is_not_sent(service: Service, server: ModelServer) -> None:
    """What can be read of its row may be anything."""
    note, other = service.store("A router"), service.store("Another router")
    damage = "UPDATE notes SET tags = 'router' WHERE id = ?"
    asyncio.run(service.database.write(lambda connection: connection.execute(damage, (note,)).rowcount))
    with pytest.raises(Conflict, match="it is damaged"):
        service("auto_tag", id=note)
    with pytest.raises(Conflict, match="it is damaged"):
        service("detect_contradiction", id_a=other, id_b=note)
    assert server.requests == []


def test_a_refusal_is_no_failure_of_the_model(service: Service) -> None:
    withheld = service.store("A router", WITHHELD["a credential"])
    for _ in range(5):
        with pytest.raises(Conflict):
            service("auto_tag", id=withheld)
    assert service.app.model.is_ready
