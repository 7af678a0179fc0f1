"""What the operations of notes add to the store: at most once, touching, budgets, who may see what, and the archive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from nudge.clients.claude_code import CLIENT as CLAUDE
from nudge.core import limits
from nudge.core.call import Call, EnvNeeded
from nudge.core.context import Context
from nudge.core.errors import Invalid, NotFound, SecretRejected, StorageFailed, Unavailable
from nudge.core.visibility import VARIABLES
from nudge.notes import models as memory_models
from nudge.notes.toon import COMPACT_TOON_FIELDS, dump_toon
from tests.unit.history.stored import event
from tests.unit.service import Service as Operations

HERE = Call(context=Context(project="github.com/acme/api"))
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
Open = Callable[..., "Service"]


class Service(Operations):
    prefix, caller = "nudge.memory_", HERE

    def note(self, note_id: int) -> dict[str, Any]:
        memory: dict[str, Any] = self("get", id=note_id)["memory"]
        return memory


# Writing


def test_a_title_that_is_known_keeps_what_is_not_given(service: Service) -> None:
    """Kind, tags, tier, priority, confidence, metadata and expiry stay; a bulk does the same."""
    fields: dict[str, Any] = {"kind": "decision", "tags": ["db"], "tier": "mid", "priority": 3, "confidence": 0.4}
    fields["metadata"] = {"a": 1}
    stored = service("store", title="Database", content="PostgreSQL", expires_at="2199-01-01T00:00:00Z", **fields)
    for operation, again in (
        ("store", {"title": "Database", "content": "SQLite"}),
        ("bulk", {"memories": [{"title": "Database", "content": "SQLite"}]}),
    ):
        service(operation, **again)
        note = service.note(stored["id"])
        assert {name: note[name] for name in fields} == fields
        assert (note["content"], note["expires_at"]) == ("SQLite", "2199-01-01T00:00:00+00:00")


def test_a_title_that_is_known_takes_what_is_given(service: Service) -> None:
    """Also an empty list, which is something else than none."""
    stored = service("store", title="Database", content="x", kind="decision", tags=["db"], metadata={"a": 1})
    service("store", title="Database", content="x", kind="lesson", tags=[], metadata={}, confidence=0.5)
    note = service.note(stored["id"])
    assert (note["kind"], note["tags"], note["confidence"], "metadata" in note) == ("lesson", [], 0.5, False)


def test_a_lifetime_that_the_tier_gave_starts_anew_with_an_update(service: Service) -> None:
    """What was given an end of its own keeps it."""
    service("store", title="by its tier", content="x", tier="mid")
    service("store", title="by its end", content="x", tier="mid", ttl_secs=86_400)
    service.ahead = 3_600.0
    again = [service("store", title=title, content="y") for title in ("by its tier", "by its end")]
    ends = [datetime.fromisoformat(one["expires_at"]).timestamp() - service.app.now() for one in again]
    assert ends == [pytest.approx(limits.MID_NOTE_TTL, abs=60), pytest.approx(86_400 - 3_600, abs=60)]


def test_a_repeated_call_is_answered_and_not_repeated(service: Service) -> None:
    """Also by the next server: the answer is in the database. The same key with another call is refused."""
    call = Call(request_id="r1", context=HERE.context)
    first = service("store", call=call, title="one", content="text")
    service("update", id=first["id"], content="changed since")
    assert service("store", call=call, title="one", content="text") == first
    assert service.note(first["id"])["content"] == "changed since"
    with pytest.raises(Invalid) as refused:
        service("store", call=call, title="two", content="text")
    assert refused.value.field == "once"
    gone = Call(request_id="r2", context=HERE.context)
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

    service("store", call=Call(request_id="r1"), title="one", content="text")
    service.ahead = limits.REQUEST_ID_KEPT + 1
    service("store", call=Call(request_id="r2"), title="two", content="text")
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


def test_a_short_name_means_the_same_in_every_write(service: Service) -> None:
    """The caller's repo, else the one namespace that is called so; what is read by that name is what was written."""
    ids = [service("store", title=title, content="word")["id"] for title in "abc"]
    web = Call(context=Context(project="github.com/acme/web"))
    service("store", call=web, title="x", content="word")
    service("consolidate", ids=ids[:2], title="ab", summary="word", namespace="api")
    service("store", title="s", content="word", namespace="web")
    service("bulk", memories=[{"title": "m", "content": "word", "namespace": "acme/web"}])
    service("update", id=ids[2], namespace="WEB")
    service("import", memories=[{"title": "i", "content": "word"}], namespace="api")
    service("import", memories=[{"title": "j", "content": "word"}], namespace="web")
    counts = {row["namespace"]: row["count"] for row in service("namespaces")["namespaces"]}
    assert counts == {"github.com/acme/api": 2, "github.com/acme/web": 5}
    assert (service("list", namespace="api")["count"], service("list", namespace="web")["count"]) == (2, 5)


def test_an_ambiguous_name_is_refused_for_a_write(service: Service) -> None:
    """In a bulk only for the note that has it; without a context `global` is itself, whatever repos there are."""
    for namespace in ("github.com/one/web", "github.com/two/web", "github.com/one/global"):
        service("store", title="t", content="x", namespace=namespace)
    with pytest.raises(Invalid) as refused:
        service("store", title="t", content="x", namespace="web")
    assert refused.value.field == "namespace"
    items = [{"title": "a", "content": "x", "namespace": "web"}, {"title": "b", "content": "x"}]
    result = service("bulk", memories=items)
    assert (result["created"], [error["index"] for error in result["errors"]]) == (1, [0])
    assert service("store", call=Call(), title="t", content="x")["namespace"] == "global"


@pytest.mark.parametrize("name", ["a b", " a", "a ", "a\tb", "a\nb"])
def test_a_namespace_has_no_blanks(service: Service, name: str) -> None:
    """Through every write; only a directory that has some may stand for itself."""
    note_id = service("store", title="t", content="x")["id"]
    other = service("store", title="u", content="x")["id"]
    for operation, params in (
        ("store", {"title": "t", "content": "x"}),
        ("update", {"id": note_id}),
        ("consolidate", {"ids": [note_id, other], "title": "t", "summary": "x"}),
        ("import", {"memories": []}),
    ):
        with pytest.raises(Invalid) as refused:
            service(operation, **params, namespace=name)
        assert refused.value.field == "namespace"
    folder = Call(context=Context(project="/home/me/my project"))
    assert service("store", call=folder, title="t", content="x")["namespace"] == "/home/me/my project"
    assert service("store", title="t", content="x", namespace="/home/me/my project")["previous"]


def test_a_note_knows_its_session_and_prompt(service: Service) -> None:
    """A caller that can be asked is asked for its session; the prompt is the last one that history knows of it."""
    recorded = event("user_prompt", "fix the build", session_id="s-1")
    prompt = asyncio.run(service.app.execute("nudge.record", {"event": recorded}, Call()))
    assert prompt["id"] is not None
    with pytest.raises(EnvNeeded):
        service("store", call=Call(interface="mcp", env={}), title="t", content="x")
    call = Call(interface="mcp", client="claude-code", env={**dict.fromkeys(VARIABLES), CLAUDE.session_variable: "s-1"})
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
        assert TOKEN not in str(refused.value.to_json())
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
    call = Call(request_id="r1")
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


def test_notes_of_the_own_repo_come_first_among_near_equals(service: Service) -> None:
    """A note of another repo comes first only when its text matches better; the explanation has the part as its own."""
    there = Call(context=Context(project="github.com/acme/web"))
    service("store", title="Deploys", content="deploy with make ship", priority=1)
    service("store", call=there, title="Deploys", content="deploy with make ship", priority=10, tier="long")
    service("store", call=there, title="Deploys to staging", content="deploy to staging with the canary first")

    def order(call: Call, query: str) -> list[int]:
        return [row["id"] for row in service("recall", call=call, context=query, touch=False)["memories"]]

    assert order(HERE, "deploy make ship")[:2] == [1, 2] and order(there, "deploy make ship")[:2] == [2, 1]
    assert order(HERE, "deploy staging canary")[0] == 3
    items = service("explain", query="deploy make ship", limit=2)["items"]
    assert [item["score"]["components"]["namespace"] for item in items] == [1.0, 0.0]


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
    assert (service("archive_stats")["count"], service("archive_stats", call=inside)["count"]) == (0, 3)
    assert service("archive_stats")["by_reason"] == []
    with pytest.raises(NotFound):
        service("archive_restore", id=1)
    assert service("archive_restore", call=inside, id=1)["restored"]
    assert (service("archive_purge")["purged"], service("archive_purge", call=inside)["purged"]) == (0, 2)


def test_a_private_note_is_not_there_for_a_caller_elsewhere(open_service: Open) -> None:
    """By its id it can be neither read nor changed; in the words of a note that does not exist."""
    service = open_service(private_projects=("payroll",))
    inside = Call(context=Context(project="github.com/acme/payroll"))
    secret = service("store", call=inside, title="t", content="salary")["id"]
    other = service("store", title="u", content="public")["id"]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("get", {"id": secret}),
        ("get", {"id": secret, "namespace": "api"}),
        ("get_links", {"id": secret}),
        ("update", {"id": secret, "priority": 9}),
        ("delete", {"id": secret}),
        ("promote", {"id": secret}),
        ("link", {"source_id": other, "target_id": secret}),
        ("resolve", {"winner_id": other, "loser_id": secret}),
        ("consolidate", {"ids": [other, secret], "title": "both", "summary": "x"}),
    ]
    for name, params in calls:
        with pytest.raises(NotFound) as refused:
            service(name, **params)
        assert refused.value.message == f"there is no note m{secret}", name
    assert service("get", id=secret, namespace="payroll")["memory"]["content"] == "salary"
    assert service("explain", ids=[secret, other])["missing_ids"] == [secret]
    [error] = service("explain", ids=[secret], project="github.com/acme/api")["errors"]
    assert error["code"] == "NOT_FOUND" and "payroll" not in error["message"]
    assert service("explain", ids=[secret], project="payroll")["missing_ids"] == []


def test_a_push_leaves_private_notes_here(open_service: Open, tmp_path: Path) -> None:
    """As an export does; a caller in the project sends them."""
    service = open_service(private_projects=("payroll",))
    inside = Call(context=Context(project="github.com/acme/payroll"))
    service("store", call=inside, title="t", content="salary")
    service("store", title="u", content="public")
    sync: dict[str, Any] = {"path": str(tmp_path / "other.db"), "direction": "push"}
    assert service("sync", **sync)["pushed"]["created"] == 1
    assert service("sync", call=inside, **sync)["pushed"]["created"] == 1


def test_an_ambiguous_name_does_not_tell_private_ones(open_service: Open) -> None:
    """It is the only one that the caller may see, or the candidates are only those."""
    service = open_service(private_projects=("secret/web",))
    for number, owner in enumerate(("secret", "one", "two")):
        namespace = f"github.com/{owner}/web"
        service("store", title="t", content="word", namespace=namespace)
        if number == 1:
            assert service("list", namespace="web")["memories"][0]["namespace"] == namespace
    with pytest.raises(Invalid) as refused:
        service("list", namespace="web")
    assert refused.value.message == (
        "namespace: web matches 2 repos; name one of github.com/one/web, github.com/two/web"
    )
    assert service("list", namespace="secret/web")["count"] == 1


# Tidying up


@pytest.mark.parametrize("ids", [["1"], [1, "m1"]])
def test_a_consolidation_needs_two_notes(service: Service, ids: list[Any]) -> None:
    """One is not `empty`, and one that is named twice is one."""
    service("store", title="t", content="x")
    with pytest.raises(Invalid) as refused:
        service("consolidate", ids=ids, title="t", summary="s")
    assert refused.value.field == "ids" and "at least 2" in refused.value.rule


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
    """TOON as the caller's `format` says; for JSON the interface makes it."""
    result = {"memories": [{"id": 1, "title": "a", "created_at": "now"}], "count": 1}
    assert memory_models.as_text({"format": "json"}, result) is None
    assert memory_models.as_text({}, result) == dump_toon(result, COMPACT_TOON_FIELDS)
    assert "created_at" in str(memory_models.as_text({"format": "toon"}, result))


# Requests that ask for little


def test_an_update_of_nothing_is_the_note_as_it_is(service: Service) -> None:
    """Every field is optional: it is no error, and changes nothing, not even the time."""
    service("store", title="a", content="x")
    before = service.note(1)
    service.ahead = 3_600.0
    assert service("update", id=1)["memory"] == before == service.note(1)
    with pytest.raises(NotFound):
        service("update", id=2)


def test_an_id_that_no_note_can_have_is_one_that_is_missing(service: Service) -> None:
    """The others are explained, in the order of the request."""
    service("store", title="a", content="x")
    explained = service("explain", ids=[0, 1, -7, "m0", 2**80, "m1"])
    assert [item["id"] for item in explained["items"]] == [1]
    assert explained["missing_ids"] == [0, -7, 2**80]
    assert [error["code"] for error in explained["errors"]] == ["NOT_FOUND"] * 3
    with pytest.raises(Invalid):
        service("explain", ids=["x"])


# Lifetimes


@pytest.mark.parametrize("kind", ["decision", "bugfix", "feature", "refactor", "discovery", "lesson"])
def test_what_was_decided_or_learned_is_kept_for_good(service: Service, kind: str) -> None:
    """Unless a tier or an expiry is given."""
    kept = service("store", title="kept", content="x", kind=kind)
    assert (kept["tier"], "expires_at" in kept) == ("long", False)
    tiered = service("store", title="for a week", content="x", kind=kind, tier="mid")
    ended = service("store", title="for a day", content="x", kind=kind, ttl_secs=86_400)
    assert (tiered["tier"], ended["tier"]) == ("mid", "mid")
    assert "expires_at" in tiered and "expires_at" in ended


@pytest.mark.parametrize("kind", ["note", "change", "session_summary"])
def test_what_is_about_these_days_lives_for_seven(service: Service, kind: str) -> None:
    """The tier of seed 003, unless another one is given."""
    stored = service("store", title="these days", content="x", kind=kind)
    assert (stored["tier"], "expires_at" in stored) == ("mid", True)


def test_a_note_that_becomes_a_decision_is_kept_for_good(service: Service) -> None:
    """By an update as well as by storing its title again; a tier that is given with it counts."""
    for title in ("by id", "by title", "with a tier"):
        service("store", title=title, content="x")
    by_id = service("update", id=1, kind="decision")["memory"]
    by_title = service("store", title="by title", content="x", kind="decision")
    assert [(note["tier"], "expires_at" in note) for note in (by_id, by_title)] == [("long", False)] * 2
    assert service("update", id=3, kind="decision", tier="mid")["memory"]["tier"] == "mid"


def test_a_search_that_finds_nothing_says_what_is_in_the_archive(service: Service) -> None:
    """How many archived notes a recall or a list would have found, and the command that lists them."""
    service("store", title="Deploying to staging", content="needs the VPN", tags=["ops"], kind="decision", priority=7)
    service("store", title="Größe", content="zwei", tags=["ops"])
    service("forget", tags=["ops"])
    recalled = service("recall", context="how do we deploy to prod?", min_priority=3)
    assert (recalled["archived"], recalled["show_archived"]) == (
        1,
        "nudge note archive list deploy prod --min-priority 3",
    )
    assert (
        service("archive_list", query="deploy prod", min_priority=3)["memories"][0]["title"] == "Deploying to staging"
    )
    assert service("recall", context="GRÖSSE grosse größen groß")["archived"] == 1
    listed = service("list", kind="decision", namespace="api", tags=["ops"])
    assert (listed["archived"], listed["show_archived"]) == (
        1,
        "nudge note archive list --repo github.com/acme/api --kind decision --tags ops",
    )
    searched = service("search", query="staging")
    assert (searched["archived"], searched["show_archived"]) == (1, "nudge note archive list staging")
    assert "archived" not in service("search", query="kubernetes")
    assert "archived" not in service("recall", context="kubernetes")
    assert "archived" not in service("list", offset=1)
    service("store", title="Deploys", content="are done")
    assert "archived" not in service("recall", context="deploy")


def test_the_archive_of_a_private_project_is_not_counted_elsewhere(open_service: Open) -> None:
    """A number would tell that there is something."""
    service = open_service(private_projects=("payroll",))
    inside = Call(context=Context(project="github.com/acme/payroll"))
    service("store", title="Salaries", content="are paid on Friday", call=inside)
    service("forget", pattern="friday", call=inside)
    assert "archived" not in service("recall", context="friday")
    assert "archived" not in service("list")
    assert service("recall", context="friday", call=inside)["archived"] == 1
