"""Recall by meaning as a user has it: real processes, a model from a hub on this machine, and what is left without."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge.core.text import format_size
from tests.harness import ROOT, Machine, eventually
from tests.unit.meaning.hub import COMMIT, NAME, Hub, serving
from tests.unit.meaning.tiny import make_model

OPTIONAL = ("numpy", "tokenizers", "onnxruntime", "nudge.meaning.static", "nudge.meaning.onnx", "nudge.meaning.index")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with serving(make_model(tmp_path / "shared")) as served:
        yield served


def remember(machine: Machine, title: str, content: str) -> int:
    stored: int = machine.json("note", "store", "-T", title, "-c", content, "--kind", "decision")["id"]
    return stored


def recalled(machine: Machine, text: str) -> list[int]:
    return [row["id"] for row in machine.json("note", "recall", text)["memories"]]


def semantic(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = machine.json("semantic", "status")["semantic"]
    return found


def checked(machine: Machine) -> dict[str, Any]:
    """What doctor says about the model; other checks may warn about this machine."""
    findings = json.loads(machine.cli("doctor", "--json").stdout)["findings"]
    return dict(next(one for one in findings if one["check"] == "recall by meaning"))


def wait_until_embedded(machine: Machine) -> None:
    eventually(lambda: semantic(machine)["waiting"] == 0, "every note is embedded")


def test_from_nothing_to_a_paraphrase(machine: Machine, hub: Hub) -> None:
    """One command downloads a model, says first how large it is and where it goes, and a note is found in other words;
    `off` ends it. The second time nothing is downloaded."""
    note = remember(machine, "Vessel registry", "Each vessel has a number on the hull.")
    assert recalled(machine, "where is my ship") == []
    assert "nudge semantic on" in machine.cli("semantic", "status").stdout
    on = machine.cli("semantic", "on", NAME, HF_ENDPOINT=hub.address)
    assert on.returncode == 0, on.stderr
    size = sum(len(raw) for raw in hub.files.values())
    assert f"{NAME} is {format_size(size)}; it goes to " in on.stderr
    wait_until_embedded(machine)
    assert recalled(machine, "where is my ship") == [note]
    shown = machine.cli("semantic", "status").stdout
    assert "their words and their meaning" in shown and NAME in shown and "1 of 1 note" in shown
    assert semantic(machine)["revision"] == COMMIT
    assert "embedded" in next(line for line in machine.cli("status").stdout.splitlines() if line.startswith("meaning"))
    asked = len(hub.asked)
    again = machine.json("semantic", "on", NAME, HF_ENDPOINT=hub.address)
    assert (again["anew"], len(hub.asked)) == (False, asked + 1)
    assert "the model is still in" in machine.cli("semantic", "off").stdout
    assert recalled(machine, "where is my ship") == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("semantic", "on", "no such model"), "neither a directory nor the name of a model"),
        (("semantic", "on", "acme/other"), "there is no such model"),
        (("semantic", "on", "."), "is not a model"),
    ],
)
def test_what_is_no_model(machine: Machine, hub: Hub, arguments: tuple[str, ...], said: str) -> None:
    """A sentence that says so, and nothing is changed."""
    outcome = machine.cli(*arguments, HF_ENDPOINT=hub.address)
    assert outcome.returncode in (2, 3) and said in outcome.stderr
    assert semantic(machine)["model"] is None


def test_killed_while_notes_are_embedded(machine: Machine, tmp_path: Path) -> None:
    """The next server goes on where the killed one stopped; meanwhile words find what has no vector yet."""
    sentence = "A ship waits in the harbor at the cold hour. The price is an amount of money and the vessel is old. "
    notes = [
        {"title": f"note {number}", "content": f"mark{number} " + sentence * 60, "kind": "decision"}
        for number in range(300)
    ]
    file = tmp_path / "notes.json"
    file.write_text(json.dumps({"memories": notes}))
    machine.json("note", "import", str(file))
    machine.json("semantic", "on", str(make_model(tmp_path / "model")))
    eventually(lambda: 0 < semantic(machine)["embedded"] < len(notes), "some notes are embedded")
    os.kill(machine.ready().pid, signal.SIGKILL)
    eventually(machine.lock_is_free, "the server is gone")
    assert recalled(machine, "mark299")
    wait_until_embedded(machine)
    assert semantic(machine)["embedded"] == len(notes)
    assert semantic(machine)["reason"] is None
    assert checked(machine)["level"] == "ok"


def test_the_directory_of_the_model_is_removed(machine: Machine, tmp_path: Path) -> None:
    """Words answer, status and doctor say what to do, and doing it helps."""
    model = make_model(tmp_path / "model")
    note = remember(machine, "Vessel registry", "Each vessel has a number on the hull.")
    machine.json("semantic", "on", str(model))
    wait_until_embedded(machine)
    machine.cli("stop", "--force")
    model.rename(tmp_path / "kept")
    assert recalled(machine, "vessel") == [note]
    assert recalled(machine, "ship") == []
    assert "does not exist" in semantic(machine)["reason"]
    finding = checked(machine)
    assert finding["level"] == "warn" and "nudge semantic on" in finding["fix"]
    machine.json("semantic", "on", str(tmp_path / "kept"))
    assert recalled(machine, "ship") == [note]


def test_another_model_in_the_same_directory(machine: Machine, tmp_path: Path) -> None:
    """Of another dimension, with the server killed: words answer, doctor says what to do, and doing it helps."""
    model = make_model(tmp_path / "model")
    note = remember(machine, "Vessel registry", "Each vessel has a number on the hull.")
    machine.json("semantic", "on", str(model))
    wait_until_embedded(machine)
    os.kill(machine.ready().pid, signal.SIGKILL)
    eventually(machine.lock_is_free, "the server is gone")
    make_model(model, dimension=24, seed=3)
    assert recalled(machine, "vessel") == [note] and recalled(machine, "ship") == []
    finding = checked(machine)
    assert finding["level"] == "warn" and "another model" in finding["message"]
    assert finding["fix"] == f"nudge semantic on {model}"
    assert machine.json("semantic", "on", str(model))["dimension"] == 24
    wait_until_embedded(machine)
    assert recalled(machine, "ship") == [note] and checked(machine)["level"] == "ok"


def by_words(tmp_path: Path, how: str, *model: str) -> dict[str, Any]:
    """What a server of its own answers, and what it has imported."""
    command = [sys.executable, "-m", "tests.contract.answers_by_words", how, str(tmp_path / f"{how}.db"), *model]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_without_the_extra_every_answer_is_the_same(tmp_path: Path) -> None:
    """A server that stores, recalls, explains and tells notes imports the same modules, at its start and later, whether
    or not the libraries of the extra are there, and none of these; so it starts as fast and needs as much memory. Its
    answers are the same, and those of a server that has a model and does not use it."""
    absent, installed = by_words(tmp_path, "absent"), by_words(tmp_path, "installed")
    assert not set(OPTIONAL) & set(installed["imported"])
    assert absent["started"] == installed["started"] and absent["imported"] == installed["imported"]
    assert absent["answers"] == installed["answers"]
    found = absent["answers"][5]
    assert (found["mode"], found["memories"][0]["title"]) == ("keyword", "Vessel registry")
    off = by_words(tmp_path, "off", str(make_model(tmp_path / "model")))
    assert "numpy" in off["imported"], "the model was in use"
    assert off["answers"] == absent["answers"]


def test_another_answer_would_be_seen(tmp_path: Path) -> None:
    """The same notes and questions with a model that is used: the answers differ."""
    words = by_words(tmp_path, "installed")["answers"]
    meaning = by_words(tmp_path, "used", str(make_model(tmp_path / "model")))["answers"]
    differing = [number for number, (one, other) in enumerate(zip(words, meaning, strict=True)) if one != other]
    assert 5 in differing and len(differing) >= 3


def test_a_server_with_a_model_starts_without_loading_it(machine: Machine, tmp_path: Path) -> None:
    """The model is loaded with the first question, and not before."""
    remember(machine, "Vessel registry", "Each vessel has a number on the hull.")
    machine.json("semantic", "on", str(make_model(tmp_path / "model")))
    wait_until_embedded(machine)
    machine.cli("stop", "--force")
    assert semantic(machine)["loaded"] is False
    recalled(machine, "ship")
    assert semantic(machine)["loaded"] is True
