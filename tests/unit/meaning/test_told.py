"""What is told, and what a new note is compared with, by meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from nudge.meaning import groups
from nudge.telling.closest import is_meant
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


@pytest.mark.parametrize(
    ("cosine", "others", "text", "told"),
    [
        (0.50, [0.1, 0.0, 0.05, 0.1, 0.2], 0.0, True),
        (0.25, [0.1, 0.0, 0.05, 0.1, 0.2], 0.0, False),
        (0.50, [0.1, 0.0, 0.05, 0.1, 0.2], 1.0, False),  # the words that both have make it close
        (0.36, [0.1, 0.0, 0.05, 0.1, 0.2], 0.0, True),  # it stands out
        (0.36, [0.1, 0.0], 0.0, False),  # from few notes nothing stands out
    ],
)
def test_when_a_note_is_meant(cosine: float, others: list[float], text: float, told: bool) -> None:
    assert is_meant(cosine, [cosine, *others], text) is told


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
