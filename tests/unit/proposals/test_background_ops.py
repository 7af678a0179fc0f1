"""The tier `autonomous`: what is proposed without being asked, and that it is nothing but proposals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.proposals.background_ops import Proposer
from tests.unit.proposals.model_server import ModelServer, Reply, asked, saying
from tests.unit.proposals.test_disclosure import MARK, PRIVATE, WITHHELD
from tests.unit.proposals.test_review_ops import HERE, Service

SAID: dict[str, Any] = {
    "tags": {"tags": ["router"]},
    "contradiction": {"contradicts": True},
    "words": {"terms": ["router"]},
    "groups": {"groups": [{"notes": [1, 2, 3], "tag": "router"}]},
}


class Background:
    """A server that proposes by itself; `work` does all that is due, as the server does it second by second."""

    def __init__(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        self.service, self._patch = service, monkeypatch
        self._ahead = 0.0
        self.proposer = Proposer(service.app)

    def work(self, *, is_quiet: bool = False) -> None:
        if is_quiet:
            self.work()
            self._ahead += 2 * limits.QUIET_SECONDS
            now = self._ahead + 10**9
            self._patch.setattr("nudge.proposals.background_ops.boot_seconds", lambda: now)

        async def until_idle() -> None:
            while True:
                self.proposer.look()
                running = self.service.app._background
                if not running:
                    return
                await asyncio.wait(set(running))

        asyncio.run(until_idle())


@pytest.fixture
def background(tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Background]:
    server.answer = lambda request: saying(SAID[asked(request)])
    service = Service(
        tmp_path / "nudge.db", server, tier="autonomous", private_projects=("payroll",), secret_guard=False
    )
    yield Background(service, monkeypatch)
    service.database.close()


def kinds(service: Service) -> list[tuple[str, list[int]]]:
    return [(row["kind"], row["ids"]) for row in reversed(service.proposals())]


def test_a_new_note_gets_proposals(background: Background, server: ModelServer) -> None:
    """Tags, and a contradiction with the note that its title may contradict; the notes stay as they are."""
    service = background.service
    old = service.store("The database is MySQL")
    background.work()
    new = service.store("The database is PostgreSQL")
    before = [service.note(old), service.note(new)]
    background.work()
    assert kinds(service) == [("tags", [old]), ("tags", [new]), ("contradiction", [old, new])]
    assert [service.note(old), service.note(new)] == before
    sent = len(server.requests)
    background.work()
    assert len(server.requests) == sent, "a note is examined once"


def test_what_was_decided_is_not_asked_again(background: Background, server: ModelServer) -> None:
    """Accepting changes the note, but not its text; a new text is examined anew."""
    service = background.service
    note = service.store("The database is MySQL")
    background.work()
    service("proposal_accept", id=service.proposals()[0]["id"])
    sent = len(server.requests)
    background.work()
    assert len(server.requests) == sent
    service("update", id=note, content="since May")
    background.work()
    assert len(server.requests) == sent + 1 and service.proposals() == [], "it has that tag by now"


def test_groups_are_proposed_on_a_quiet_server(background: Background, server: ModelServer) -> None:
    """Not before; an accepted one becomes a note with the texts of all, and undo brings them back."""
    service = background.service
    ids = [service.store(title, f"text {title}") for title in ("Router timeouts", "Proxy ports", "Cache sizes")]
    background.work()
    assert "group" not in [kind for kind, _ in kinds(service)]
    background.work(is_quiet=True)
    (group,) = service.proposals(kind="group")
    assert (group["ids"], group["tag"]) == (ids, "router")
    before = [service.note(note) for note in ids]
    whole = service("proposal_accept", id=group["id"])["changed"]["note"]
    assert all(f"text {note['title']}" in service.note(whole)["content"] for note in before)
    assert [row["id"] for row in service("list")["memories"]] == [whole]
    service("proposal_undo", id=group["id"])
    assert [service.note(note) for note in ids] == before
    assert {row["id"] for row in service("list")["memories"]} == {*ids}
    sent = len(server.requests)
    service("proposal_reject", id=group["id"])
    background.work(is_quiet=True)
    assert len(server.requests) == sent, "the notes of a group that was rejected are not asked about again"


def test_nothing_withheld_is_sent(background: Background, server: ModelServer) -> None:
    """No credential, redacted text or private passage, and no note of a private repo: neither as the note that is
    new, nor as one that it is compared with, nor as a title for groups."""
    service = background.service
    for number, text in enumerate(WITHHELD.values()):
        service.store(f"The database is number {number}", text)
        service.store(f"{text} titled {number}", "The database is MySQL")
    for number in range(3):
        service.store(f"The {MARK} database is {number}", call=PRIVATE)
        service.store(f"A {MARK} database is {number}", namespace="global", call=PRIVATE)
    for number in range(3):
        service.store(f"The database is {number}", "MySQL")
    background.work()
    background.work(is_quiet=True)
    background.work(is_quiet=True)
    assert {asked(request) for request in server.requests} == {"tags", "contradiction", "groups"}
    assert MARK not in server.seen and "ghp_" not in server.seen and "hunter2" not in server.seen


def test_no_call_waits_for_it(background: Background, server: ModelServer) -> None:
    """While the model is silent, notes are stored, recalled and read as ever."""
    service = background.service
    server.answer = lambda _: Reply(b"", is_silent=True)
    service.store("The database is MySQL")

    async def work_beside() -> list[Any]:
        background.proposer.look()
        while not server.requests:
            await asyncio.sleep(0.01)
        names = {"store": {"title": "The cache is Redis", "content": "x"}, "recall": {"context": "unheard of"}}
        calls = [service.app.execute(f"nudge.memory_{name}", params, HERE) for name, params in names.items()]
        return await asyncio.wait_for(asyncio.gather(*calls), limits.EXPANSION_WAIT)

    stored, recalled = asyncio.run(work_beside())
    assert stored["id"] == 2 and recalled["count"] == 0


def test_a_model_that_fails_is_asked_again_later(background: Background, server: ModelServer) -> None:
    """What was stored meanwhile is not forgotten, and nothing is stored of what failed."""
    service = background.service
    server.answer = lambda _: Reply(b"nonsense")
    note = service.store("The database is MySQL")
    background.work()
    assert len(server.requests) == limits.MODEL_FAILURES and service.stored() == 0
    server.answer = lambda request: saying(SAID[asked(request)])
    service.app.model._rest_until = 0.0
    background.work()
    assert kinds(service) == [("tags", [note])]


def test_a_note_that_changes_meanwhile_is_examined_again(background: Background, server: ModelServer) -> None:
    service = background.service
    note = service.store("The database is MySQL")

    def change(_: dict[str, Any]) -> Reply:
        asyncio.run(service.app.execute("nudge.memory_update", {"id": note, "content": "no, SQLite"}, HERE))
        server.answer = lambda request: saying(SAID[asked(request)])
        return saying({"tags": ["mysql"]})

    server.answer = change
    background.work()
    assert [row["tags"] for row in service.proposals()] == [["router"]]


def test_damaged_notes_keep_no_one_busy(background: Background, server: ModelServer) -> None:
    """However many there are, the others get their proposals, and the work ends."""
    service = background.service
    ids = [service.store(f"The database is number {number}") for number in range(2 * limits.EXAMINED_AT_ONCE)]
    damage = "UPDATE notes SET updated_at = 'soon', tags = 7 WHERE id < ?"
    asyncio.run(service.database.write(lambda connection: connection.execute(damage, (ids[-1],)).rowcount))
    background.work()
    assert kinds(service) == [("tags", [ids[-1]])] and len(server.requests) == 1


@pytest.mark.parametrize("tier", ["keyword", "semantic", "smart"])
def test_other_tiers_propose_nothing_by_themselves(
    tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch, tier: str
) -> None:
    service = Service(tmp_path / "nudge.db", server, tier=tier)
    service.store("The database is MySQL")
    Background(service, monkeypatch).work(is_quiet=True)
    assert server.requests == []
    service.database.close()
