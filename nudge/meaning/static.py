"""Models in model2vec's format: a table with a vector for each token, whose mean is the vector of a text.

The table is mapped into memory and only the rows of tokens that occur are read: a table of 130 MB takes some MB, and
loading it takes no time. To import model2vec itself takes 134 MB.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy
from tokenizers import Tokenizer

from nudge.meaning.embedder import CONFIG, TOKENIZER, WEIGHTS, ModelUnusable, read_fingerprint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.meaning.embedder import Floats

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I8": "<i1", "I32": "<i4", "I64": "<i8"}
_MAX_HEADER = 1 << 24
_MAX_TOKENS = 512  # where the configuration names no other number


class StaticEmbedder:
    """A table of vectors; `weights` and `mapping` are there where tokens share a row."""

    batch = 64

    def __init__(self, directory: str) -> None:
        tensors = map_tensors(os.path.join(directory, WEIGHTS))
        table = tensors.get("embeddings", tensors.get("embedding.weight"))
        if table is None or table.ndim != 2:
            raise ModelUnusable(f"{directory}: {WEIGHTS} has no table of embeddings")
        self._table, self._weights, self._mapping = table, tensors.get("weights"), tensors.get("mapping")
        self.dimension = int(table.shape[1])
        self.fingerprint = read_fingerprint(directory)
        self._tokenizer = Tokenizer.from_file(os.path.join(directory, TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_max_tokens(directory))
        self._unknown = _unknown_token(self._tokenizer)
        self._check_rows(directory)

    def _check_rows(self, directory: str) -> None:
        tokens = self._tokenizer.get_vocab_size()
        of_tokens = len(self._table) if self._mapping is None else len(self._mapping)
        if of_tokens < tokens or (self._weights is not None and len(self._weights) < tokens):
            raise ModelUnusable(f"{directory}: the tokenizer has {tokens} tokens, the table {of_tokens}")
        if self._mapping is not None and len(self._mapping) and int(self._mapping.max()) >= len(self._table):
            raise ModelUnusable(f"{directory}: the mapping names rows that the table does not have")

    def encode(self, texts: Sequence[str]) -> Floats:
        vectors = numpy.zeros((len(texts), self.dimension), dtype=numpy.float32)
        for at, encoding in enumerate(self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)):
            if tokens := [token for token in encoding.ids if token != self._unknown]:
                vectors[at] = self._mean(numpy.asarray(tokens))
        return normalized(vectors)

    def _mean(self, tokens: numpy.ndarray[Any, Any]) -> Floats:
        rows = self._table[tokens if self._mapping is None else self._mapping[tokens]].astype(numpy.float32)
        if self._weights is not None:
            rows = rows * self._weights[tokens].astype(numpy.float32)[:, None]
        mean: Floats = rows.mean(axis=0)
        return mean


def normalized(vectors: Floats) -> Floats:
    """The vectors with length 1; zeros stay zeros."""
    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    result: Floats = (vectors / numpy.maximum(lengths, 1e-12)).astype(numpy.float32)
    return result


def map_tensors(path: str) -> dict[str, numpy.ndarray[Any, Any]]:
    """The tensors of a safetensors file, mapped into memory."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(size - 8, _MAX_HEADER):
            raise ModelUnusable(f"{path} is damaged")
        header = json.loads(file.read(length))
    return {
        name: _map_tensor(path, 8 + length, size, entry) for name, entry in header.items() if name != "__metadata__"
    }


def _map_tensor(path: str, start: int, size: int, entry: dict[str, Any]) -> numpy.ndarray[Any, Any]:
    kind, shape = _TYPES.get(entry["dtype"]), tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    if kind is None:
        raise ModelUnusable(f"{path} has numbers of type {entry['dtype']}, which is not supported")
    if numpy.dtype(kind).itemsize * int(numpy.prod(shape)) != end - begin or start + end > size:
        raise ModelUnusable(f"{path} is damaged: it was not written to its end")
    return numpy.memmap(path, numpy.dtype(kind), "r", start + begin, shape)


def _max_tokens(directory: str) -> int:
    with open(os.path.join(directory, CONFIG), encoding="utf-8") as file:
        config = json.load(file)
    limit = config.get("max_length", _MAX_TOKENS) if isinstance(config, dict) else _MAX_TOKENS
    return limit if isinstance(limit, int) and limit > 0 else 1 << 20


def _unknown_token(tokenizer: Tokenizer) -> int | None:
    """The token for what the tokenizer does not know: it means nothing."""
    model = tokenizer.model
    if hasattr(model, "unk_token"):
        token: int | None = None if model.unk_token is None else tokenizer.token_to_id(model.unk_token)
        return token
    unknown = json.loads(tokenizer.to_str())["model"].get("unk_id")
    return unknown if isinstance(unknown, int) else None
