"""What the use cases of notes add to the store: at most once, touching, budgets, who may see what, and the archive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge import limits
from nudge.config import Settings
from nudge.context import Context
from nudge.errors import Invalid, NotFound, SecretRejected, StorageFailed, Unavailable
from nudge.memories import toon
from nudge.server.operations import OPERATIONS
from nudge.storage.database import Database
from nudge.usecases import agent_sessions, memories
from nudge.usecases.app import App
from nudge.usecases.call import Call, EnvNeeded
from nudge.usecases.session import open_in_memory
from tests.unit.history.stored import event

HERE = Call(context=Context(project="github.com/acme/api"))
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
Open = Callable[..., "Service"]


class Service:
    """The operations of one PRIMARY, by the part of their name after `nudge.`."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.app = App(open_in_memory(Settings(settings)), OPERATIONS)
        self.database = self.app.history = Database.open(str(path))
        self.ahead = 0.0
        clock = self.app.session.clock.now
        self.app.now = lambda: clock() + self.ahead  # type: ignore[method-assign]

    def __call__(self, name: str, *, call: Call = HERE, **params: Any) -> Any:
        return asyncio.run(self.app.execute(f"nudge.memory_{name}", params, call))

    def note(self, note_id: int) -> dict[str, Any]:
        memory: dict[str, Any] = self("get", id=note_id)["memory"]
        return memory


@pytest.fixture
def open_service(tmp_path: Path) -> Iterator[Open]:
    opened: list[Service] = []

    def make(**settings: Any) -> Service:
        opened.append(Service(tmp_path / "nudge.db", **settings))
        return opened[-1]

    yield make
    for service in opened:
        service.database.close()


@pytest.fixture
def service(open_service: Open) -> Service:
    return open_service()


# Writing


def test_a_repeated_call_is_answered_and_not_repeated(service: Service) -> None:
    """Also by the next server: the answer is in the database. The same key with another call is refused."""
    call = Call(once="r1", context=HERE.context)
    first = service("store", call=call, title="one", content="text")
    service("update", id=first["id"], content="changed since")
    assert service("store", call=call, title="one", content="text") == first
    assert service.note(first["id"])["content"] == "changed since"
    with pytest.raises(Invalid) as refused:
        service("store", call=call, title="two", content="text")
    assert refused.value.field == "once"
    gone = Call(once="r2", context=HERE.context)
    assert service("delete", call=gone, id=first["id"]) == service("delete", call=gone, id=first["id"])


def test_a_call_after_its_deadline_changes_nothing(service: Service) -> None:
    """Its caller has given up and may have sent another."""
    with pytest.raises(Unavailable):
        service("store", call=Call(deadline=0.0), title="late", content="text")
    assert service("list")["count"] == 0


def test_answers_are_forgotten_after_a_while(service: Service) -> None:
    """A note that was deleted is not kept as an answer: the next write and every sweep removes old ones."""

    def kept() -> list[str]:
        work = service.app.read(lambda connection: connection.execute("SELECT once FROM answers").fetchall())
        return [row[0] for row in asyncio.run(work)]

    service("store", call=Call(once="r1"), title="one", content="text")
    service.ahead = limits.REQUEST_ID_KEPT + 1
    service("store", call=Call(once="r2"), title="two", content="text")
    assert kept() == ["r2"]
    service.ahead *= 2
    service("gc")
    assert kept() == []


def test_a_note_belongs_to_where_the_caller_is(service: Service) -> None:
    """By default to its repo; a short name of it means it, any other name is a namespace; without a context: global."""
    namespaces = [
        service("store", title="a", content="x")["namespace"],
        service("store", title="b", content="x", namespace="acme/API")["namespace"],
        service("store", title="c", content="x", namespace="web")["namespace"],
        service("store", call=Call(), title="d", content="x")["namespace"],
        service("store", call=Call(), title="e", content="x", context={"repo": "git:github.com/acme/web"})["namespace"],
    ]
    assert namespaces == [
        "github.com/acme/api",
        "github.com/acme/api",
        "web",
        "global",
        "github.com/acme/web",
    ]


def test_a_note_knows_its_session_and_prompt(service: Service) -> None:
    """A caller that can be asked is asked for its session; the prompt is the last one that history knows of it."""
    recorded = event("user_prompt", "fix the build", session_id="s-1")
    prompt = asyncio.run(service.app.execute("nudge.record", {"event": recorded}, Call()))
    assert prompt["id"] is not None
    with pytest.raises(EnvNeeded):
        service("store", call=Call(door="mcp", env={}), title="t", content="x")
    call = Call(door="mcp", client="claude-code", env={agent_sessions.SESSION_VARIABLE: "s-1"})
    note = service.note(service("store", call=call, title="t", content="x")["id"])
    assert note["origin"] == {"client": "claude-code", "session": "s-1", "prompt": 1} and note["source"] == "claude"


def test_secrets_are_refused_wherever_they_are(service: Service, open_service: Open) -> None:
    """In title, content, tag or metadata, long or short, new or changed; not when the guard is off."""
    known = service("store", title="t", content="x")["id"]
    for fields in (
        {"title": TOKEN, "content": "x"},
        {"title": "t", "content": f"{'word ' * 2_000}{TOKEN}"},
        {"title": "t", "content": "x", "tags": [TOKEN]},
        {"title": "t", "content": "x", "metadata": {"deep": [{"token": TOKEN}]}},
    ):
        with pytest.raises(SecretRejected) as refused:
            service("store", **fields)
        assert TOKEN not in str(refused.value.to_wire())
        with pytest.raises(SecretRejected):
            service("update", id=known, **fields)
    with pytest.raises(SecretRejected):
        service("consolidate", ids=[known, 99], title="t", summary=TOKEN)
    assert service.note(known)["content"] == "x"
    service.database.close()
    assert open_service(secret_guard=False)("store", title="t", content=TOKEN)["id"] == known


def test_a_bulk_stores_what_is_valid(service: Service) -> None:
    """All of it in one transaction; what is wrong is named by its place."""
    items: list[dict[str, Any]] = [
        {"title": f"n{number}", "content": "x"} for number in range(limits.MAX_BULK_NOTES - 3)
    ]
    wrong = [{"title": "no content"}, {"title": "t", "content": TOKEN}, {"title": "t", "content": "x", "colour": 1}]
    service("store", title="n0", content="before")
    result = service("bulk", memories=[*items, *wrong])
    assert (result["created"], result["updated"], len(result["ids"])) == (len(items) - 1, 1, len(items))
    assert [error["index"] for error in result["errors"]] == [len(items), len(items) + 1, len(items) + 2]
    assert result["errors"][0]["error"] == "content: is required"
    with pytest.raises(Invalid):
        service("bulk", memories=[*items, *wrong, {}])


# Reading


def test_a_recall_touches_only_what_it_returns(service: Service) -> None:
    """And nothing at all on request; a search or a look touches nothing."""
    ids = [service("store", title=f"deploy {number}", content="word", priority=number)["id"] for number in (1, 9)]
    service("recall", context="deploy", touch=False)
    service("search", query="deploy")
    service("list")
    assert [service.note(note_id)["access_count"] for note_id in ids] == [0, 0]
    returned = service("recall", context="deploy", limit=1)["memories"]
    assert [note["id"] for note in returned] == [ids[1]]
    assert [service.note(note_id)["access_count"] for note_id in ids] == [0, 1]


def test_a_repeated_recall_touches_once(service: Service) -> None:
    """A retry of the client's is no second use."""
    note_id = service("store", title="deploy", content="word")["id"]
    call = Call(once="r1")
    assert service("recall", call=call, context="deploy")["count"] == 1
    assert service("recall", call=call, context="deploy")["count"] == 1
    assert service.note(note_id)["access_count"] == 1


def test_five_recalls_keep_a_note_for_good(service: Service) -> None:
    """Unless it was resolved against: then its weight is gone."""
    note_id = service("store", title="deploy", content="word")["id"]
    for _ in range(5):
        service("recall", context="deploy")
    assert service.note(note_id)["tier"] == "long" and "expires_at" not in service.note(note_id)
    better = service("store", title="release", content="other")["id"]
    service("resolve", winner_id=better, loser_id=note_id)
    assert (service.note(note_id)["priority"], service.note(note_id)["confidence"]) == (1, 0.1)


def test_a_recall_works_where_nothing_can_be_written(service: Service) -> None:
    """What is known is told, though it cannot be touched."""
    service("store", title="deploy", content="word")

    async def refused(_call: Call, _work: Any) -> Any:
        raise StorageFailed("the disk is full")

    service.app.write = refused  # type: ignore[assignment,method-assign]
    assert service("recall", context="deploy")["count"] == 1


def test_a_budget_is_filled_with_the_best(service: Service) -> None:
    """At least one note, however long; a long one does not keep out a shorter one behind it."""
    service("store", title="deploy deploy deploy", content="deploy " * 100)
    service("store", title="long deploy", content="deploy " + "filler " * 400)
    service("store", title="short deploy", content="a deploy, briefly said among other things of little interest here")
    everything = service("recall", context="deploy")["memories"]
    assert len(everything) == 3
    one = service("recall", context="deploy", budget_tokens=1)
    assert [note["id"] for note in one["memories"]] == [everything[0]["id"]]
    some = service("recall", context="deploy", budget_tokens=250)
    assert some["tokens"] <= 250 and "long deploy" not in [note["title"] for note in some["memories"]]
    assert some["count"] == 2


def test_an_answer_is_never_larger_than_a_message(service: Service) -> None:
    """Of many long notes as many are returned as fit, and the answer says that there are more."""
    long = ['"' * 30_000 + f" {number}" for number in range(30)]
    for number in range(0, 30, 10):
        service("bulk", memories=[{"title": f"t{n}", "content": long[n]} for n in range(number, number + 10)])
    result = service("list", limit=200)
    assert result["more"] is True and 0 < result["count"] < 30
    assert len(json.dumps(result)) < limits.MAX_BODY_BYTES
    following = service("list", limit=200, offset=result["count"])
    assert following["count"] == 30 - result["count"] and "more" not in following


def test_private_namespaces_are_hidden_elsewhere(open_service: Open) -> None:
    """From lists, counts, groups and the archive; whoever is there or names them sees them."""
    service = open_service(private_projects=("payroll",))
    inside = Call(context=Context(project="github.com/acme/payroll"))
    for number in range(3):
        service("store", call=inside, title=f"t{number}", content="salary", tags=["pay"])
    for call, seen in ((HERE, 0), (inside, 3)):
        assert service("list", call=call)["count"] == seen
        assert sum(row["count"] for row in service("namespaces", call=call)["namespaces"]) == seen
        assert service("forget", call=call, pattern="salary", dry_run=True)["deleted"] == seen
        assert len(service("auto_consolidate", call=call, dry_run=True)["groups"]) == bool(seen)
    assert service("recall", context="salary", namespace="payroll")["count"] == 3
    service("forget", call=inside, pattern="salary")
    assert (service("archive_list")["count"], service("archive_list", call=inside)["count"]) == (0, 3)


# Tidying up


def test_a_dry_run_changes_nothing(service: Service) -> None:
    """It names what would go."""
    for number in range(3):
        service("store", title=f"t{number}", content="word", tags=["x"])
    assert service("forget", tags=["x"], dry_run=True)["deleted"] == 3
    (group,) = service("auto_consolidate", dry_run=True)["groups"]
    assert (group["tag"], group["count"], service("stats")["total"]) == ("x", 3, 3)
    done = service("auto_consolidate")
    assert done["consolidated"] == 3 and service("stats")["total"] == 1
    whole = service.note(done["groups"][0]["id"])
    assert whole["tier"] == "long" and "## t2\nword" in whole["content"] and whole["metadata"]["consolidated_from"]


@pytest.mark.parametrize("kept", [True, False])
def test_what_expires_is_archived_unless_told_otherwise(open_service: Open, kept: bool) -> None:
    """`archive_on_gc = 0` deletes it; the lifetimes are those of `[memories]`."""
    service = open_service(memories={"short_ttl_secs": 60.0, "archive_on_gc": float(kept)})
    note_id = service("store", title="t", content="word", tier="short")["id"]
    service.ahead = 61
    assert service("gc") == {"expired_deleted": 1}
    assert service("archive_stats")["count"] == kept
    if not kept:
        with pytest.raises(NotFound):
            service("archive_restore", id=note_id)
        return
    restored = service("archive_restore", id=f"m{note_id}")["memory"]
    assert restored["tier"] == "short" and restored["expires_at"]
    assert service("gc") == {"expired_deleted": 0}


def test_stats_leave_out_what_is_private(open_service: Open) -> None:
    """The total and every list of it agree."""
    service = open_service(private_projects=("payroll",))
    service("store", call=Call(), title="t", content="x", namespace="github.com/acme/payroll", tier="short")
    service("store", call=Call(), title="t", content="x", tier="long")
    shown = service("stats")
    assert shown["total"] == 1 == sum(row["count"] for row in shown["by_namespace"])
    assert shown["by_tier"] == [{"tier": "long", "count": 1}] and shown["expiring_soon"] == 0


def test_the_text_of_a_list() -> None:
    """TOON as the caller's `format` says; for JSON the door makes it."""
    result = {"memories": [{"id": 1, "title": "a", "created_at": "now"}], "count": 1}
    assert memories.as_text({"format": "json"}, result) is None
    assert memories.as_text({}, result) == toon.dump(result, toon.COMPACT)
    assert "created_at" in str(memories.as_text({"format": "toon"}, result))
