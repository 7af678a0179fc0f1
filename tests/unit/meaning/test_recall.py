"""Recall by meaning through the operations: what is found, what its score is made of, and what stays as it was."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from nudge.core.errors import Invalid
from nudge.meaning import search_ops
from nudge.notes import retrieval
from tests.unit.meaning.service import HERE, TERMINAL, Service
from tests.unit.meaning.tiny import make_model


def fill(service: Service) -> dict[str, int]:
    return {
        "money": service.store("Amounts are whole cents", "The price is an amount in cents, never a float."),
        "clock": service.store("Stamps are UTC", "A stamp in the local hour gave us rows twice. The clock is UTC."),
        "login": service.store("Session lives for a day", "The account asks for the password in the morning."),
        "boat": service.store("Vessel registry", "Each vessel has a number on the hull."),
    }


def test_a_paraphrase_is_found(service: Service, model: Path) -> None:
    """A note that shares no word with the question is found by its meaning, and the answer says so; without a model it
    is not."""
    ids = fill(service)
    without = service("memory_recall", context="where is cash counted")
    assert (without["memories"], without["mode"]) == ([], "keyword")
    used = service.use(model)
    assert (used["anew"], used["dimension"]) == (True, 16)
    found = service("memory_recall", context="where is cash counted")
    assert [row["id"] for row in found["memories"]] == [ids["money"]]
    assert found["mode"] == "hybrid"


def test_a_note_is_embedded_after_it_was_stored(service: Service, model: Path) -> None:
    """What is stored, and what is changed, is found by its meaning a moment later, and by its former one no longer."""
    service.use(model)
    note = service.store("Harbor", "Ships wait outside. A ship has a berth.")
    service.embed()
    assert service.recalled("vessel") == [note]
    service("memory_update", id=note, content="Erase the rows. Remove the file.")
    service.embed()
    assert service.recalled("vessel") == []
    assert service.recalled("delete") == [note]


def test_the_parts_sum_to_the_total(service: Service, model: Path) -> None:
    """`semantic_boost` is a part of each explained score, positive for what is close and negative for what is not, and
    the parts sum to the total that ranks the note."""
    ids = fill(service)
    service.use(model)
    other = service.store("The price of a winter", "Cold and winter. The freeze is cold in winter.")
    service.embed()
    items = service("memory_explain", query="price", ids=list(ids.values()))["items"]
    recalled = service("memory_recall", context="price")["memories"]
    boosts = {item["id"]: item["score"]["components"]["semantic_boost"] for item in items}
    assert boosts[ids["money"]] > 0 > boosts[other]
    for item in items:
        parts = [part for part in item["score"]["components"].values() if part is not None]
        assert item["score"]["total"] == pytest.approx(sum(parts), abs=1e-6)
    ranked = [(item["id"], item["score"]["total"]) for item in items if item["retrieval"]["rank"]]
    assert ranked == [(row["id"], pytest.approx(row["score"], abs=2e-3)) for row in recalled]


def test_what_is_not_embedded_yet_is_found_by_its_words(service: Service, model: Path) -> None:
    """With vectors of half of the notes, the other half is found by words, and ranks by them."""
    ids = fill(service)
    service.use(model)
    service.change("DELETE FROM passage_vectors WHERE passage >> 24 IN (?, ?)", ids["money"], ids["clock"])
    assert service.recalled("price")[0] == ids["money"]
    assert service.recalled("vessel")[0] == ids["boat"]
    (item,) = service("memory_explain", query="stamp")["items"][:1]
    assert (item["id"], item["score"]["components"]["semantic_boost"]) == (ids["clock"], None)


def test_a_large_store_finds_the_same(service: Service, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the number of notes whose words are all scored, the best by words and the nearest are, with the same
    scores."""
    ids = fill(service)
    for number in range(60):
        service.store(f"Filler {number}", "The price of the freeze is of the hour." if number % 3 else "Nothing.")
    service.use(model)
    questions = ("price of a vessel", "where is cash counted", "password hour", "ship")
    exact = [service("memory_recall", context=text, limit=5)["memories"] for text in questions]
    monkeypatch.setattr(retrieval, "_EXACT_NOTES", 10)
    large = [service("memory_recall", context=text, limit=5)["memories"] for text in questions]
    for one, other in zip(exact, large, strict=True):
        assert [row["id"] for row in one][:1] == [row["id"] for row in other][:1]
        assert one[0]["score"] == pytest.approx(other[0]["score"], abs=0.6)
    assert large[1][0]["id"] == ids["money"]


def test_filters_hold_for_what_is_near(service: Service, model: Path) -> None:
    """Namespace, kind, tags and time exclude a note that is found by its meaning as well."""
    service.use(model)
    here = service.store("Berth", "A ship waits.", tags=["sea"])
    there = service.store("Berth", "A ship waits.", namespace="github.com/acme/web", kind="lesson")
    service.embed()
    assert set(service.recalled("vessel")) == {here, there}
    assert service.recalled("vessel", namespace="github.com/acme/web") == [there]
    assert service.recalled("vessel", kind="lesson") == [there]
    assert service.recalled("vessel", tags=["sea"]) == [here]
    assert service.recalled("vessel", until="2001-01-01T00:00:00Z") == []


def test_an_expired_note_is_not_found(service: Service, model: Path) -> None:
    service.use(model)
    note = service.store("Berth", "A ship waits.", tier="short", kind="note")
    service.embed()
    assert service.recalled("vessel") == [note]
    service.change("UPDATE notes SET expires_at = 1.0")
    assert service.recalled("vessel") == []


def test_nothing_near_is_nothing(service: Service, model: Path) -> None:
    """A question that no note is near gets no note: the nearest one is not good enough."""
    fill(service)
    service.use(model)
    assert service.recalled("winter") == []


def test_tier_keyword_uses_no_model(tmp_path: Path, model: Path) -> None:
    """With the tier `keyword` nothing is loaded or embedded, and the answer is that of words."""
    service = Service(tmp_path / "keyword.db", tier="keyword")
    try:
        fill(service)
        service.use(model)
        assert service.recalled("where is cash counted") == []
        assert service.sql("SELECT count(*) FROM passage_vectors") == [(0,)]
        shown = service("memory_capabilities")
        assert (shown["tier"], shown["features"]["semantic_search"]) == ("keyword", False)
        assert "--tier semantic" in shown["semantic"]["reason"]
    finally:
        service.close()


def test_capabilities_say_what_is_active(service: Service, model: Path) -> None:
    """Without a model the reason says how to get one; with one, which it is and how many notes are embedded."""
    shown = service("memory_capabilities")
    assert shown["features"]["semantic_search"] is False and shown["semantic"]["model"] is None
    assert "nudge semantic on" in shown["semantic"]["reason"]
    fill(service)
    service.use(model)
    shown = service("memory_capabilities")
    assert (shown["features"]["semantic_search"], shown["semantic"]["reason"]) == (True, None)
    assert (shown["semantic"]["model"], shown["semantic"]["search"]) == ("model", "exact")
    assert [shown["semantic"][name] for name in ("notes", "embedded", "waiting")] == [4, 4, 0]


def test_another_model_embeds_anew(service: Service, model: Path, tmp_path: Path) -> None:
    """Vectors of one model are never compared with those of another: of another dimension, or with the same."""
    ids = fill(service)
    service.use(model)
    for name, dimension in (("wide", 24), ("other", 16)):
        used = service.use(make_model(tmp_path / name, dimension=dimension, seed=5))
        assert (used["anew"], used["dimension"]) == (True, dimension)
        assert service.recalled("where is cash counted") == [ids["money"]]
        rows = service.sql("SELECT DISTINCT length(vector) FROM passage_vectors")
        assert rows == [(dimension,)]
    assert service.use(tmp_path / "other")["anew"] is False


def test_a_model_that_was_replaced_in_its_directory(
    service: Service, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another model in the same place is not used with the old vectors: words answer, and the reason says what to
    do."""
    ids = fill(service)
    service.use(model)
    make_model(model, dimension=24, seed=9)
    service.app.meaning.forget()  # as a new server
    assert service.recalled("where is cash counted") == []
    assert service.recalled("price") == [ids["money"]]
    assert f"nudge semantic on {model}" in service("memory_capabilities")["semantic"]["reason"]
    monkeypatch.setattr(search_ops, "_RETRY", 0.0)
    service.use(model)
    assert service.recalled("where is cash counted") == [ids["money"]]


def test_a_model_that_is_gone(service: Service, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its directory words answer; when it is back, so is the meaning."""
    ids = fill(service)
    service.use(model)
    service.app.meaning.forget()
    kept = model.with_name("kept")
    os.rename(model, kept)
    assert service.recalled("price") == [ids["money"]]
    assert service.recalled("where is cash counted") == []
    assert "does not exist" in service("memory_capabilities")["semantic"]["reason"]
    monkeypatch.setattr(search_ops, "_RETRY", 0.0)
    shutil.move(kept, model)
    assert service.recalled("where is cash counted") == [ids["money"]]
    assert service("memory_capabilities")["semantic"]["reason"] is None


def test_a_note_that_the_model_fails_at(service: Service, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One note that the model fails at does not keep the others from being embedded."""
    from nudge.meaning.static import StaticEmbedder

    encode = StaticEmbedder.encode
    service.store("Poison", "No vessel.")
    ids = fill(service)

    def failing(self: StaticEmbedder, texts: list[str]) -> object:
        if any("Poison" in text for text in texts):
            raise ValueError("no")
        return encode(self, texts)

    monkeypatch.setattr(StaticEmbedder, "encode", failing)
    service.use(model)
    assert service("memory_capabilities")["semantic"]["waiting"] == 0
    assert service.recalled("ship") == [ids["boat"]]


def test_off_deletes_every_vector(service: Service, model: Path) -> None:
    fill(service)
    service.use(model)
    assert service("semantic_off", call=TERMINAL) == {"removed": True, "directory": str(model)}
    for table in ("passage_vectors", "notes_to_embed", "embedding_model"):
        assert service.sql(f"SELECT count(*) FROM {table}") == [(0,)]  # noqa: S608 - constants
    assert service.recalled("where is cash counted") == []
    service.store("Later", "A ship.")
    assert service.sql("SELECT count(*) FROM notes_to_embed") == [(0,)]


@pytest.mark.parametrize(
    ("params", "field"),
    [({"directory": "model"}, "directory"), ({"directory": "/nonexistent/model"}, "directory")],
)
def test_what_is_no_model_is_refused(service: Service, params: dict[str, str], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        service("semantic_use", call=TERMINAL, **params)
    assert refused.value.data["field"] == field


def test_an_agent_does_not_choose_the_model(service: Service, model: Path) -> None:
    """Native code loads a model: an agent, or a page, cannot say which."""
    for name, params in (("semantic_use", {"directory": str(model)}), ("semantic_off", {})):
        with pytest.raises(Invalid):
            service(name, call=HERE, **params)
    assert service.sql("SELECT count(*) FROM embedding_model") == [(0,)]
