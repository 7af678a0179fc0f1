"""A model of a few words, made by the test: words of one group mean the same, and those of two have nothing in
common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace

GROUPS = (
    ("money", "amount", "price", "cash", "cents"),
    ("clock", "time", "hour", "stamp", "when"),
    ("login", "session", "password", "account"),
    ("boat", "ship", "vessel"),
    ("freeze", "cold", "winter"),
    ("delete", "remove", "erase"),
)
_FILLERS = ("the", "a", "is", "of", "in", "and", "to", "how", "we", "do", ".", ",", "?")
_UNKNOWN = "[UNK]"


def make_model(directory: Path, *, dimension: int = 16, seed: int = 1, **config: Any) -> Path:
    """Write a model in model2vec's format. Fillers and unknown words mean nothing."""
    directory.mkdir(parents=True, exist_ok=True)
    words = [_UNKNOWN, *_FILLERS, *(word for group in GROUPS for word in group)]
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token=_UNKNOWN))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(directory / "tokenizer.json"))
    random = numpy.random.default_rng(seed)
    directions = numpy.linalg.qr(random.normal(size=(dimension, dimension)))[0].astype(numpy.float32)
    table = 0.01 * random.normal(size=(len(words), dimension)).astype(numpy.float32)
    table[: 1 + len(_FILLERS)] = 0
    for number, group in enumerate(GROUPS):
        for word in group:
            table[words.index(word)] += directions[number % dimension]
    save_tensors(directory / "model.safetensors", {"embeddings": table})
    (directory / "config.json").write_text(json.dumps({"normalize": True, **config}))
    return directory


def save_tensors(path: Path, tensors: dict[str, Any]) -> None:
    """Write a safetensors file."""
    kinds = {"float32": "F32", "float16": "F16", "int8": "I8", "int64": "I64", "float64": "F64"}
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": kinds[str(tensor.dtype)], "shape": list(tensor.shape), "data_offsets": offsets}
        data += raw
    encoded = json.dumps(header).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + data)
