"""What is told, and what a new note is compared with, by meaning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nudge.meaning import groups, search_ops
from nudge.telling import closest
from nudge.telling.closest import Signs, is_meant, without_words_of
from tests.unit.meaning.service import Service
from tests.unit.meaning.test_recall import fill


@pytest.fixture
def filled(service: Service, model: Path) -> Service:
    fill(service)
    service.store("Winter", "The freeze is cold.")
    service.store("Remove", "Erase what is old.")
    service.use(model)
    return service


def test_a_prompt_is_told_the_note_that_it_means(filled: Service) -> None:
    """Where no word says so, and with the reason; what is not close is not told."""
    told = filled("inject", prompt="which vessel is it? is it a boat?")["text"]
    assert "Vessel registry" in told
    assert filled("inject", prompt="rename the variable to count")["text"] == ""
    assert filled("inject", prompt="thanks, go on")["text"] == ""


def test_a_note_that_was_replaced_is_not_told(filled: Service) -> None:
    """Nor told by its meaning: the closest note that holds is."""
    old = filled.recalled("vessel")[0]
    new = filled.store("Zebra", "The zebra runs.")
    filled("memory_resolve", winner_id=new, loser_id=old)
    filled.embed()
    assert "Vessel registry" not in filled("inject", prompt="is it a boat? is it a ship?")["text"]


CLEAR = Signs(closest=0.5, next=0.2, without_shared=0.5, everyday=0.2)


@pytest.mark.parametrize(
    ("signs", "told"),
    [
        (CLEAR, True),
        (replace(CLEAR, closest=0.35, without_shared=0.35), False),  # not close enough
        (replace(CLEAR, closest=0.38, without_shared=0.38), True),
        (replace(CLEAR, closest=0.38, without_shared=0.38, next=0.38), False),  # another one is as close
        (replace(CLEAR, closest=0.38, without_shared=0.1), False),  # the words that both have make it close
        (replace(CLEAR, closest=0.38, without_shared=0.38, everyday=0.6), False),  # it is asked of any repository
    ],
)
def test_when_a_note_is_meant(signs: Signs, told: bool) -> None:
    assert is_meant(signs) is told


def test_words_that_a_note_has_too() -> None:
    """They are left out in whatever form, and what says nothing by itself stays."""
    left = without_words_of("give the rating_stars a hover state", "Ratings are a float, not stars.")
    assert left == "give the a hover state"
    assert without_words_of("nothing of it", "Vessels") == "nothing of it"


def test_a_mechanical_edit_means_no_note(filled: Service) -> None:
    """However close: the same words in another prompt are told a note."""
    assert "Vessel registry" in filled("inject", prompt="is it a boat? is it a ship?")["text"]
    assert filled("inject", prompt="rename boat to ship")["text"] == ""


def test_a_path_means_nothing(filled: Service) -> None:
    """When the agent opens the file, it is told what was decided about it."""
    assert filled("inject", prompt="look at boat/ship.py")["text"] == ""


def test_a_prompt_like_any_other_means_no_note(service: Service, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is near the prompts that are asked of any repository is told no note."""
    monkeypatch.setattr(search_ops, "EVERYDAY", ("boat", "the ship", "a vessel"))
    fill(service)
    service.use(model)
    prompt = "is it a boat? is it a ship?"
    assert "Vessel registry" in service("inject", prompt=prompt)["text"]
    monkeypatch.setattr(closest, "_EVERYDAY", 1.0)
    assert service("inject", prompt=prompt)["text"] == ""


def test_a_note_that_says_the_same_is_named(filled: Service) -> None:
    """A new note is compared with those of its repo: what says nearly the same may repeat or contradict it. It is not
    compared with itself."""
    (before,) = filled.recalled("cash")
    stored = filled("memory_store", title="Prices", content="A price is an amount of money.", kind="decision")
    assert stored["potential_contradictions"] == [before]
    again = filled("memory_store", title="Prices", content="A price is an amount of cash.", kind="decision")
    assert again["id"] == stored["id"] and stored["id"] not in again["potential_contradictions"]
    elsewhere = filled("memory_store", title="Prices", content="An amount.", namespace="github.com/acme/web")
    assert elsewhere["potential_contradictions"] == []


def test_groups_to_consolidate(filled: Service) -> None:
    """A dry run names notes that say nearly the same, whatever their tags, and consolidates none of them."""
    one = filled.store("Ships", "A ship is a vessel.")
    filled.embed()
    result = filled("memory_auto_consolidate", dry_run=True)
    boats = next(group["ids"] for group in result["alike"] if one in group["ids"])
    assert len(boats) == 2 and result["consolidated"] == 0
    assert "alike" not in filled("memory_auto_consolidate", dry_run=False)
    assert one in filled.recalled("vessel")


def test_connected_groups() -> None:
    """Pairs that share a note are one group."""
    assert groups.connected([]) == []
    assert groups.connected([(3, 4), (1, 2), (2, 5), (8, 9), (9, 3)]) == [[1, 2, 5], [3, 4, 8, 9]]
    assert groups.connected([(1, 2), (3, 4), (2, 3), (1, 4)]) == [[1, 2, 3, 4]]
