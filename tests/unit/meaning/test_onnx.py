"""The backend for ONNX graphs, with a runtime of the test's in the place of onnxruntime: what it is asked, and what
becomes of its answer. `make meaning` runs real graphs in the real runtime."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy
import pytest

from nudge.meaning.embedder import ModelUnusable, open_embedder
from tests.unit.meaning.service import Service
from tests.unit.meaning.test_recall import fill
from tests.unit.meaning.tiny import make_model

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Runtime:
    """A session whose state for each token is its row in a table, and that of padding is far away from all."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.inputs: tuple[str, ...] = INPUTS
        self.asked: list[dict[str, Any]] = []
        self.options: list[Any] = []
        self.pooled = self.fails = False

    def get_inputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name) for name in self.inputs]

    def run(self, names: None, given: dict[str, Any]) -> list[Any]:
        del names
        if self.fails:
            raise RuntimeError("out of memory")
        self.asked.append(given)
        states = self.table[given["input_ids"]]
        states = numpy.where(given["attention_mask"][:, :, None] == 0, 1e3, states).astype(numpy.float32)
        return [states.mean(axis=1) if self.pooled else states, "another output"]

    def module(self) -> Any:
        module: Any = ModuleType("onnxruntime")
        module.SessionOptions = SimpleNamespace

        def open_session(path: str, options: Any, providers: list[str]) -> Runtime:
            assert Path(path).read_bytes() == b"graph" and providers == ["CPUExecutionProvider"]
            self.options.append(options)
            return self

        module.InferenceSession = open_session
        return module


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with a graph and a tokenizer."""
    model = make_model(tmp_path / "onnx")
    (model / "model.safetensors").unlink()
    (model / "model.onnx").write_bytes(b"graph")
    return model


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    from nudge.meaning.static import map_tensors

    table = numpy.array(map_tensors(str(make_model(tmp_path / "table") / "model.safetensors"))["embeddings"])
    made = Runtime(table)
    monkeypatch.setitem(sys.modules, "onnxruntime", made.module())
    monkeypatch.delitem(sys.modules, "nudge.meaning.onnx", raising=False)
    yield made
    sys.modules.pop("nudge.meaning.onnx", None)


def test_the_mean_of_what_is_no_padding(runtime: Runtime, directory: Path) -> None:
    """A text has the same vector alone and beside a longer one, of length 1: padding counts for nothing."""
    embedder = open_embedder(str(directory))
    short, long = embedder.encode(["cash", "ship vessel boat ship vessel boat"])
    (alone,) = embedder.encode(["cash"])
    assert short == pytest.approx(alone, abs=1e-6) and numpy.linalg.norm(long) == pytest.approx(1)
    assert float(short @ embedder.encode(["price"])[0]) > 0.9 > 0.3 > float(short @ long)
    assert embedder.dimension == runtime.table.shape[1]
    assert set(runtime.asked[-1]) == set(INPUTS) and runtime.asked[-1]["input_ids"].dtype == numpy.int64
    assert (runtime.options[0].intra_op_num_threads, runtime.options[0].inter_op_num_threads) == (1, 1)


def test_a_long_text_is_cut(runtime: Runtime, directory: Path) -> None:
    open_embedder(str(directory)).encode(["ship " * 1_000])
    assert runtime.asked[-1]["input_ids"].shape == (1, 256)


def test_a_graph_without_token_types(runtime: Runtime, directory: Path) -> None:
    """It is given what it asks for."""
    runtime.inputs = INPUTS[:2]
    open_embedder(str(directory)).encode(["cash"])
    assert set(runtime.asked[-1]) == set(INPUTS[:2])


@pytest.mark.parametrize("inputs", [("input_ids",), (*INPUTS, "position_ids"), ("pixels", "attention_mask")])
def test_a_graph_with_other_inputs_is_refused(runtime: Runtime, directory: Path, inputs: tuple[str, ...]) -> None:
    runtime.inputs = inputs
    with pytest.raises(ModelUnusable, match=f"has the inputs {', '.join(inputs)}"):
        open_embedder(str(directory))


def test_a_graph_with_another_output_is_refused(runtime: Runtime, directory: Path) -> None:
    """One vector for a text: how it was made of its tokens is not known."""
    runtime.pooled = True
    with pytest.raises(ModelUnusable, match="a vector for each token"):
        open_embedder(str(directory))


def test_a_runtime_that_fails(runtime: Runtime, directory: Path) -> None:
    runtime.fails = True
    with pytest.raises(ModelUnusable, match="cannot be loaded: out of memory"):
        open_embedder(str(directory))


def test_without_the_runtime(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names the extra that has it."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.delitem(sys.modules, "nudge.meaning.onnx", raising=False)
    with pytest.raises(ModelUnusable, match=r"onnxruntime is not installed; pip install 'nudge-mcp\[semantic-onnx\]'"):
        open_embedder(str(directory))


def test_notes_are_found_by_it(runtime: Runtime, directory: Path, service: Service) -> None:
    """From the operation to the answer; when the runtime fails later, words answer and the reason says so."""
    ids = fill(service)
    service.use(directory)
    assert service.recalled("where is cash counted") == [ids["money"]]
    runtime.fails = True
    assert service.recalled("where is cash counted") == [] and service.recalled("price") == [ids["money"]]
    assert "the model failed (RuntimeError)" in service("memory_capabilities")["semantic"]["reason"]
