"""What doctor says about the model: nothing without one, and what to do where it cannot be used."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nudge.doctor import meaning
from nudge.doctor.model import OK, WARN, Finding
from tests.unit.doctor.conftest import Make, make, run
from tests.unit.meaning.service import Service
from tests.unit.meaning.tiny import make_model

__all__ = ["make", "run"]


def found(make: Make, service: Service, **settings: str) -> list[Finding]:
    environ = {"NUDGE_DB": service.database.path, **settings}
    return list(meaning.check_meaning(make(environ=environ)))


def test_nothing_without_a_model(service: Service, make: Make) -> None:
    service.store("Berth", "A ship waits.")
    assert found(make, service) == []


def test_how_far_it_is(service: Service, make: Make, model: Path) -> None:
    """Every note embedded; or how many, and that the next server goes on."""
    service.store("Berth", "A ship waits.")
    service.use(model)
    (finding,) = found(make, service)
    assert (finding.level, finding.message) == (OK, "model, 1 notes embedded")
    service.change("INSERT INTO notes_to_embed (note_id) SELECT id FROM notes")
    (finding,) = found(make, service)
    assert finding.level == WARN and "0 of 1 notes" in finding.message and "goes on" in str(finding.fix)


def test_vectors_that_were_lost(service: Service, make: Make, model: Path) -> None:
    """Of half of the notes: doctor says how many and what to do, and doing it helps."""
    notes = [service.store(f"Berth {number}", "A ship waits.") for number in range(4)]
    service.use(model)
    service.change("DELETE FROM passage_vectors WHERE passage >> 24 IN (?, ?)", *notes[:2])
    assert set(service.recalled("vessel")) == set(notes[2:])
    assert set(service.recalled("ship")) == set(notes)
    (finding,) = found(make, service)
    assert finding.level == WARN and "2 of 4 notes have no vectors" in finding.message
    assert finding.fix == f"nudge semantic on {model}"
    assert service.use(model)["anew"] is False
    assert set(service.recalled("vessel")) == set(notes)
    assert found(make, service)[0].level == OK


@pytest.mark.parametrize(
    ("spoil", "said", "fix"),
    [
        (shutil.rmtree, "does not exist", "nudge semantic on"),
        (lambda model: (model / "tokenizer.json").unlink(), "is not a model", "nudge semantic on"),
        (lambda model: make_model(model, dimension=24), "has another model", "nudge semantic on"),
    ],
)
def test_what_to_do(service: Service, make: Make, model: Path, spoil: object, said: str, fix: str) -> None:
    """The model's directory is gone, is none, or has another model, maybe of another dimension."""
    service.use(model)
    assert callable(spoil)
    spoil(model)
    (finding,) = found(make, service)
    assert (finding.level, said in finding.message) == (WARN, True)
    assert fix in str(finding.fix) and str(model) in str(finding.fix)


def test_a_library_that_is_missing(service: Service, make: Make, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after an upgrade without the extra."""
    service.use(model)
    monkeypatch.setattr(meaning, "find_spec", lambda name: None if name == "tokenizers" else object())
    (finding,) = found(make, service)
    assert "tokenizers is not installed" in finding.message
    assert finding.fix == "pip install 'nudge-mcp[semantic]'"
