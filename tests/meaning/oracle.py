"""Our loader of static models beside the library that defines their format: the same vectors for the same texts."""

from __future__ import annotations

from pathlib import Path

import numpy
from model2vec import StaticModel
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
