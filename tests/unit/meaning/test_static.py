"""Models in model2vec's format: what a text becomes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest

from nudge.meaning.embedder import ModelUnusable, open_embedder, read_fingerprint
from nudge.meaning.static import map_tensors
from tests.unit.meaning.tiny import make_model, save_tensors


def test_texts_that_mean_the_same_are_close(model: Path) -> None:
    """Vectors have length 1; words of one group point the same way, and unknown words count for nothing."""
    vectors = open_embedder(str(model)).encode(["the cash", "price, amount", "Price zebra amount", "ship", "", "zebra"])
    assert numpy.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 1, 0, 0], abs=1e-5)
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.95 > 0.3 > cosines[0, 3]
    assert vectors[1] == pytest.approx(vectors[2], abs=0.1)


def test_weights_and_mapping(model: Path) -> None:
    """Tokens may share rows of the table, each with a weight of its own: the mean of the weighted rows."""
    embedder = open_embedder(str(model))
    tensors = map_tensors(str(model / "model.safetensors"))
    table = numpy.array(tensors["embeddings"])
    mapping = numpy.arange(len(table))[::-1].copy()
    weights = numpy.linspace(0.5, 2.0, len(table)).astype(numpy.float32)
    save_tensors(
        model / "model.safetensors",
        {"embeddings": table[::-1].astype(numpy.float16), "mapping": mapping, "weights": weights},
    )
    other = open_embedder(str(model))
    assert other.fingerprint != embedder.fingerprint
    ids = [json.loads((model / "tokenizer.json").read_text())["model"]["vocab"][word] for word in ("cash", "ship")]
    expected = (table[ids] * weights[ids][:, None]).mean(axis=0)
    assert other.encode(["cash ship"])[0] == pytest.approx(expected / numpy.linalg.norm(expected), abs=2e-3)


def test_a_long_text_is_cut(tmp_path: Path) -> None:
    """After as many tokens as the configuration says."""
    embedder = open_embedder(str(make_model(tmp_path / "short", max_length=2)))
    one, other = embedder.encode(["cash price ship ship ship", "cash price"])
    assert one == pytest.approx(other, abs=1e-6)


def _cut(model: Path) -> None:
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])


def _no_header(model: Path) -> None:
    (model / "model.safetensors").write_bytes(b"\xff" * 64)


def _other_table(model: Path) -> None:
    save_tensors(model / "model.safetensors", {"embeddings": numpy.zeros((3, 4), numpy.float32)})


def _no_table(model: Path) -> None:
    save_tensors(model / "model.safetensors", {"layer": numpy.zeros((3, 4), numpy.float32)})


def _bad_mapping(model: Path) -> None:
    table = numpy.array(map_tensors(str(model / "model.safetensors"))["embeddings"])
    mapping = numpy.full(len(table), len(table), numpy.int64)
    save_tensors(model / "model.safetensors", {"embeddings": table, "mapping": mapping})


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_cut, "not written to its end"),
        (_no_header, "damaged"),
        (_other_table, "tokens"),
        (_no_table, "no table"),
        (_bad_mapping, "rows that the table does not have"),
        (lambda model: (model / "tokenizer.json").write_text("{"), "cannot be loaded"),
        (lambda model: (model / "config.json").write_text("no"), "cannot be loaded"),
        (lambda model: (model / "tokenizer.json").unlink(), "is not a model"),
    ],
)
def test_what_is_no_model_is_refused(model: Path, spoil: object, said: str) -> None:
    """With a sentence that says what is wrong, whatever is."""
    assert callable(spoil)
    spoil(model)
    with pytest.raises(ModelUnusable, match=said):
        open_embedder(str(model))


def test_the_fingerprint_is_that_of_the_content(model: Path, tmp_path: Path) -> None:
    """The same files in another place are the same model; one changed number makes another."""
    copy = make_model(tmp_path / "copy")
    assert read_fingerprint(str(model)) == read_fingerprint(str(copy))
    raw = bytearray((copy / "model.safetensors").read_bytes())
    raw[-1] ^= 1
    (copy / "model.safetensors").write_bytes(raw)
    assert read_fingerprint(str(model)) != read_fingerprint(str(copy))
