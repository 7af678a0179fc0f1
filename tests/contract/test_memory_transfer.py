"""Notes that leave a store and come into another: export, import, sync. All or nothing, and nothing twice."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.notes.fields import rfc3339
from nudge.storage.database import Database
from tests.contract.ways import InProcess, Outcome

NAMESPACE = "github.com/acme/api"
HEX = "9f86d081884c7d659a2feaa0c55ad015"


class Store(InProcess):
    """A server with a database of its own, whose calls must succeed."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.path = database.path

    def result(self, operation: str, **params: Any) -> Any:
        outcome = self.call(f"nudge.memory_{operation}", params)
        assert "result" in outcome, outcome
        return outcome["result"]

    def refused(self, operation: str, **params: Any) -> Outcome:
        outcome: Outcome = self.call(f"nudge.memory_{operation}", params)["error"]
        return outcome

    def add(self, title: str, content: str = "text", **fields: Any) -> int:
        params = {"title": title, "content": content, "namespace": NAMESPACE, **fields}
        return int(self.result("store", **params)["id"])

    def exported(self) -> dict[str, Any]:
        whole: dict[str, Any] = self.result("export")
        return {name: whole[name] for name in ("memories", "links")}

    def titles(self) -> dict[str, str]:
        return {note["title"]: note["content"] for note in self.exported()["memories"]}

    def links(self) -> set[tuple[str, str, str]]:
        whole = self.exported()
        titles = {note["id"]: note["title"] for note in whole["memories"]}
        return {(titles[link["source_id"]], titles[link["target_id"]], link["relation"]) for link in whole["links"]}


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[Store]]:
    with ExitStack() as stack:
        yield [Store(stack.enter_context(closing(Database.open(str(tmp_path / f"{name}.db"))))) for name in "ab"]


def without_ids(whole: dict[str, Any]) -> list[dict[str, Any]]:
    return [{name: value for name, value in note.items() if name != "id"} for note in whole["memories"]]


# Export and import


def test_an_export_round_trips_with_metadata_and_links(stores: list[Store]) -> None:
    """Everything but the ids, which the other store gives; links follow them."""
    here, there = stores
    there.add("Takes the first id")
    first = here.add(
        "A", "one", tier="long", kind="decision", tags=["x", "y"], priority=8, metadata={"a": [1, {"b": 2}]}
    )
    second = here.add("B", "two", tier="short", confidence=0.25)
    here.result("recall", context="one")
    here.result("link", source_id=first, target_id=second, relation="supersedes")
    whole = here.exported()
    outcome = there.result("import", **whole)
    assert (outcome["imported"], outcome["created"], outcome["links"], outcome["errors"]) == (2, 2, 1, [])
    there.result("delete", id=1)
    assert without_ids(there.exported()) == without_ids(whole)
    assert there.links() == {("A", "B", "supersedes")}


def test_a_second_import_changes_nothing(stores: list[Store]) -> None:
    """Notes are known by their uid, whatever their ids are."""
    here, there = stores
    here.add("A"), here.add("B")
    whole = here.exported()
    there.result("import", **whole)
    before = there.exported()
    outcome = there.result("import", **whole)
    assert [outcome[name] for name in ("imported", "created", "updated", "unchanged")] == [0, 0, 0, 2]
    assert there.exported() == before


def test_a_renamed_note_stays_the_same_note(stores: list[Store]) -> None:
    """The uid is stronger than the title; the newer version wins, and lowers neither tier nor priority."""
    here, there = stores
    note = here.add("Old name", "old", tier="long", priority=9)
    there.result("import", **here.exported())
    changed = {**here.exported()["memories"][0], "title": "New name", "content": "new", "tier": "mid", "priority": 2}
    changed["updated_at"] = "2099-01-01T00:00:00+00:00"
    assert there.result("import", memories=[changed])["updated"] == 1
    [stored] = there.exported()["memories"]
    assert (stored["title"], stored["content"], stored["tier"], stored["priority"]) == ("New name", "new", "long", 9)
    assert here.result("get", id=note)["memory"]["title"] == "Old name"
    older = {**changed, "content": "older", "updated_at": "2001-01-01T00:00:00+00:00"}
    assert there.result("import", memories=[older])["unchanged"] == 1


def test_a_time_in_the_future_counts_as_now(stores: list[Store]) -> None:
    """It fails no import, and the version of a clock that is ahead does not win over later changes."""
    here, there = stores
    ahead = {"title": "A", "content": "old", "namespace": NAMESPACE, "uid": "a" * 24, "id": 1}
    ahead |= {"updated_at": "2150-01-01T00:00:00Z", "created_at": "2150-01-01T00:00:00Z"}
    assert here.result("import", memories=[ahead, {"title": "B", "content": "x"}])["created"] == 2
    [stored, _] = here.exported()["memories"]
    assert max(stored["updated_at"], stored["created_at"]) < "2150"
    there.result("import", memories=[stored])
    here.add("A", "new")
    assert sync(here, there)["pushed"]["updated"] == 1 and there.titles()["A"] == "new"
    changed = {**stored, "content": "newer", "updated_at": rfc3339(time.time() + 1)}
    assert here.result("import", memories=[changed])["updated"] == 1 and here.titles()["A"] == "newer"


@pytest.mark.parametrize("updated_at", ["2001-01-01T00:00:00Z", None], ids=["older", "equal"])
@pytest.mark.parametrize("way", ["import", "sync"])
def test_a_version_that_is_not_newer_still_raises(stores: list[Store], updated_at: str | None, way: str) -> None:
    """Tier and priority keep their maximum and the expiry its latest, whichever version wins; once."""
    here, there = stores
    here.add("A", "text", tier="mid", priority=3)
    there.add("B", "text", tier="mid")
    [stored] = here.exported()["memories"]
    raised = {
        **stored,
        "tier": "long",
        "priority": 9,
        "content": "other",
        "updated_at": updated_at or stored["updated_at"],
    }
    del raised["expires_at"]
    extended = {**there.exported()["memories"][0], "expires_at": "2150-01-01T00:00:00+00:00"}
    if way == "import":
        counts = [here.result("import", memories=[raised, extended])["updated"] for _ in range(2)]
    else:
        there.result("import", memories=[raised, extended])
        here.result("import", memories=[{**extended, "expires_at": "2140-01-01T00:00:00+00:00"}])
        counts = [sync(here, there, "pull")["pulled"]["updated"] for _ in range(2)]
    notes = {note["title"]: note for note in here.exported()["memories"]}
    assert (notes["A"]["tier"], notes["A"]["priority"], notes["A"]["content"]) == ("long", 9, "text")
    assert "expires_at" not in notes["A"] and notes["B"]["expires_at"] == "2150-01-01T00:00:00+00:00"
    assert counts[1] == 0 < counts[0]


def test_a_title_that_another_note_has_is_a_conflict(stores: list[Store]) -> None:
    """It is counted and left out; nothing is overwritten."""
    here, there = stores
    here.add("A", "mine")
    there.result("import", **here.exported())
    there.add("Taken", "theirs")
    renamed = {**here.exported()["memories"][0], "title": "Taken", "updated_at": "2099-01-01T00:00:00+00:00"}
    assert there.result("import", memories=[renamed])["conflicts"] == 1
    assert there.titles() == {"A": "mine", "Taken": "theirs"}


def test_bad_notes_are_named_and_the_others_imported(stores: list[Store]) -> None:
    """By their place in the import: one without content, one with a secret, a link that is none."""
    here, _ = stores
    notes = [
        {"title": "No content"},
        {"title": "Good", "content": "x"},
        {"title": "Secret", "content": f"password = {HEX}"},
        {"title": "Bad uid", "content": "x", "uid": "../.."},
        {"title": "Over", "content": "x", "expires_at": "2001-01-01T00:00:00Z"},
    ]
    outcome = here.result("import", memories=notes, links=[{"source_id": 1}])
    assert (outcome["imported"], outcome["expired"]) == (1, 1)
    assert [error.get("index") for error in outcome["errors"]] == [0, 2, 3, None]
    assert here.titles() == {"Good": "x"}


def test_a_dry_run_says_what_would_be_done(stores: list[Store]) -> None:
    """And does nothing."""
    here, there = stores
    first, second = here.add("A"), here.add("B")
    here.result("link", source_id=first, target_id=second)
    outcome = there.result("import", **here.exported(), dry_run=True)
    assert (outcome["created"], outcome["links"], outcome["dry_run"]) == (2, 1, True)
    assert there.exported() == {"memories": [], "links": []}


def test_what_was_forgotten_comes_back_from_an_export(stores: list[Store]) -> None:
    """An export is a way back, unlike a sync."""
    here, _ = stores
    here.add("A")
    whole = here.exported()
    here.result("forget", namespace=NAMESPACE)
    assert here.result("import", **whole)["created"] == 1


# Sync


def sync(store: Store, other: Store, direction: str = "merge", **more: Any) -> dict[str, Any]:
    """`other` is closed for the time being: its file is locked while a server has it."""
    assert other.app.database is not None
    other.app.database.close()
    try:
        result: dict[str, Any] = store.result("sync", path=other.path, direction=direction, **more)
        return result
    finally:
        other.app.database = Database.open(other.path)


def test_a_merge_gives_both_databases_everything(stores: list[Store]) -> None:
    """Ids may clash: each side keeps its own, and links follow."""
    here, there = stores
    first, second = here.add("A", "of here"), here.add("B", "of here")
    here.result("link", source_id=first, target_id=second, relation="derived_from")
    other, third = there.add("X", "of there"), there.add("B", "of there")
    there.result("link", source_id=other, target_id=third, relation="contradicts")
    outcome = sync(here, there)
    assert outcome["pulled"]["created"] == 1 and outcome["pushed"]["created"] == 1
    assert here.titles() == there.titles() == {"A": "of here", "B": "of there", "X": "of there"}
    assert here.links() == there.links() == {("A", "B", "derived_from"), ("X", "B", "contradicts")}
    again = sync(here, there)
    assert all(
        part[name] == 0 for part in (again["pulled"], again["pushed"]) for name in ("created", "updated", "links")
    )


@pytest.mark.parametrize(("direction", "here_has", "there_has"), [("pull", "AX", "X"), ("push", "A", "AX")])
def test_a_sync_may_go_one_way(stores: list[Store], direction: str, here_has: str, there_has: str) -> None:
    """The other side stays as it is."""
    here, there = stores
    here.add("A"), there.add("X")
    sync(here, there, direction)
    assert (sorted(here.titles()), sorted(there.titles())) == (list(here_has), list(there_has))


def test_a_dry_run_of_a_sync_counts_both_ways(stores: list[Store]) -> None:
    """And changes neither side."""
    here, there = stores
    here.add("A"), there.add("X")
    outcome = sync(here, there, dry_run=True)
    assert outcome["pulled"]["created"] == outcome["pushed"]["created"] == 1
    assert (list(here.titles()), list(there.titles())) == (["A"], ["X"])


def test_what_was_forgotten_here_does_not_come_back_by_a_sync(stores: list[Store]) -> None:
    """A user's decision; deletions do not travel either."""
    here, there = stores
    here.add("A")
    sync(here, there)
    here.result("forget", namespace=NAMESPACE)
    assert sync(here, there)["pulled"]["forgotten"] == 1
    assert here.titles() == {} and list(there.titles()) == ["A"]


def test_a_push_makes_a_new_file(stores: list[Store], tmp_path: Path) -> None:
    """Which is a database like any other."""
    here, _ = stores
    here.add("A")
    assert here.result("sync", path=str(tmp_path / "new.db"), direction="push")["pushed"]["created"] == 1
    with closing(sqlite3.connect(tmp_path / "new.db")) as new:
        assert new.execute("SELECT title FROM notes").fetchall() == [("A",)]


_BAD_ROWS = {
    "title = x'00'": "title: must not be empty",
    "priority = 99": "priority: must be 1 to 10",
    "tags = '{}'": "tags: must be a list of strings",
    "metadata = '[]'": "metadata: must be an object",
    "content = printf('%.*c', 2000000, 'x')": "is too large",
    "content = CAST(x'c328' AS TEXT)": "content: is not text in UTF-8",
    "uid = 'x'": "uid: must be 24 hexadecimal digits",
    "updated_at = 'soon'": "updated_at: must be a number",
    "kind = 'rumor'": "kind: must be one of",
    "namespace = 7": None,
}


def test_bad_rows_of_another_database_are_left_out_and_named(stores: list[Store]) -> None:
    """Each row goes through the validation of an import, whichever way it is copied; the sound ones are copied."""
    here, there = stores
    numbers = [there.add(f"note {number}") for number in range(len(_BAD_ROWS) + 1)]
    there.result("link", source_id=numbers[-1], target_id=numbers[0])
    assert there.app.database is not None
    for number, bad in zip(numbers, _BAD_ROWS, strict=False):
        with closing(sqlite3.connect(there.path, isolation_level=None)) as connection:
            connection.execute(f"UPDATE notes SET {bad} WHERE id = {number}")  # noqa: S608 - constants
    outcome = sync(here, there)
    errors = {error["id"]: error["error"] for error in outcome["errors"] if error["from"] == "b.db"}
    expected = {number: error for number, error in zip(numbers, _BAD_ROWS.values(), strict=False) if error}
    assert errors.keys() == expected.keys() and outcome["pulled"]["invalid"] == len(expected)
    assert all(errors[number].startswith(error) for number, error in expected.items()), errors
    assert sorted(here.titles()) == sorted((f"note {len(_BAD_ROWS) - 1}", f"note {len(_BAD_ROWS)}"))


def test_a_note_with_a_secret_is_named_by_a_sync(stores: list[Store]) -> None:
    """By its number and the field, without the secret."""
    here, there = stores
    there.add("Good")
    number = there.add("Secret")
    assert there.app.database is not None
    with closing(sqlite3.connect(there.path, isolation_level=None)) as connection:
        connection.execute("UPDATE notes SET content = ? WHERE id = ?", (f"password = {HEX}", number))
    outcome = sync(here, there)
    assert outcome["pulled"]["refused"] == 1
    (error,) = [one for one in outcome["errors"] if one["from"] == "b.db"]
    assert error["id"] == number and error["error"].startswith("content: looks like a secret (")
    assert list(here.titles()) == ["Good"]


_FOREIGN = (
    "CREATE TRIGGER evil AFTER INSERT ON notes BEGIN DELETE FROM notes; END",
    "ALTER TABLE note_links RENAME TO links; CREATE VIEW note_links AS WITH RECURSIVE n(i) AS"
    " (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS source_id, i AS target_id, 'x' AS relation, i AS created_at"
    " FROM n WHERE i < 0",
)


@pytest.mark.parametrize("direction", ["pull", "push"])
@pytest.mark.parametrize("objects", _FOREIGN)
def test_a_database_with_objects_of_others_is_not_synced(stores: list[Store], direction: str, objects: str) -> None:
    """Its triggers and views would run with our statements, and a view may be an endless query."""
    here, there = stores
    here.add("A"), there.add("B")
    assert there.app.database is not None
    there.app.database.close()
    with closing(sqlite3.connect(there.path)) as connection:
        connection.executescript(objects)
    refused = here.refused("sync", path=there.path, direction=direction)
    assert refused["data"] == {"reason": "E_INVALID", "field": "path"}, refused
    here.add("C")
    assert sorted(here.titles()) == ["A", "C"]


def test_what_cannot_be_synced_is_refused(stores: list[Store], tmp_path: Path) -> None:
    """Its own database, a file that is none, one that does not exist, one that a server has open, a pipe."""
    here, there = stores
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("no database" * 500)
    cases = [
        (here.path, "pull", "E_INVALID"),
        (str(tmp_path / "text"), "pull", "E_STORAGE"),
        (str(tmp_path / "absent.db"), "pull", "E_INVALID"),
        ("relative.db", "pull", "E_INVALID"),
        (there.path, "push", "E_STORAGE"),
        *((str(tmp_path / "pipe"), direction, "E_INVALID") for direction in ("push", "pull")),
        (str(tmp_path), "push", "E_INVALID"),
    ]
    for path, direction, reason in cases:
        assert here.refused("sync", path=path, direction=direction)["data"]["reason"] == reason, path


def test_an_import_in_one_message_has_a_limit(stores: list[Store]) -> None:
    """A thousand notes in one message of MCP or JSON-RPC; more go through a file."""
    notes = [{"title": f"N{number}", "content": "x"} for number in range(limits.MAX_BULK_NOTES + 1)]
    assert stores[0].refused("import", memories=notes)["data"]["field"] == "memories"
