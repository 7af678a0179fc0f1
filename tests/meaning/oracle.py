"""Our loader of static models beside the library that defines their format, and our use of the ONNX runtime beside what
a graph computes: the same vectors for the same texts."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy
import onnx
from model2vec import StaticModel
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from nudge.meaning.embedder import open_embedder
from nudge.meaning.static import map_tensors

_TEXTS = (
    "Money is integer minor units",
    "a",
    "naïve café, 東京 and Ελλάδα",
    "def encode(texts: Sequence[str]) -> Floats: ...",
    "one two three " * 400,
)


def largest_difference(directory: Path, scratch: Path) -> float:
    """The largest difference of a number in the vectors of some texts: of a plain table, and of one whose tokens share
    rows, with weights, in half precision."""
    plain = StaticModel.from_pretrained(str(directory), normalize=True)
    table = numpy.array(map_tensors(str(directory / "model.safetensors"))["embeddings"])
    random = numpy.random.default_rng(3)
    shared = StaticModel(
        table[:1_000].astype(numpy.float16),
        Tokenizer.from_file(str(directory / "tokenizer.json")),
        config={"normalize": True},
        normalize=True,
        weights=random.uniform(0.1, 2.0, len(table)),
        token_mapping=random.integers(0, 1_000, len(table)),
    )
    shared.save_pretrained(str(scratch))
    return max(_difference(plain, directory), _difference(shared, scratch))


def _difference(model: StaticModel, directory: Path) -> float:
    ours = open_embedder(str(directory)).encode(_TEXTS)
    theirs = numpy.asarray(model.encode(list(_TEXTS)), numpy.float32)
    return float(numpy.abs(ours - theirs).max())


def largest_difference_of_onnx(directory: Path, scratch: Path) -> float:
    """Of a graph that looks up the vector of each token, whose mean is known: the static model itself."""
    scratch.mkdir()
    table = numpy.array(map_tensors(str(directory / "model.safetensors"))["embeddings"], numpy.float32)
    names = ("input_ids", "attention_mask")
    made = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "table",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in names],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", table.shape[1]])],
        [numpy_helper.from_array(table, "table")],
    )
    graph = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(graph)
    onnx.save(graph, scratch / "model.onnx")
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.post_processor = None
    tokenizer.save(str(scratch / "tokenizer.json"))
    shutil.copy(directory / "config.json", scratch)
    short = [text for text in _TEXTS if len(text) < 200]  # the static model takes more tokens of a text
    ours = open_embedder(str(scratch)).encode(short)
    return float(numpy.abs(ours - open_embedder(str(directory)).encode(short)).max())
