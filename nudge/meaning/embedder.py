"""What a model is: it makes a vector of a text, and texts that mean the same get vectors that point the same way.

A model is a directory. `open_embedder` looks which kind of model it has; `read_fingerprint` tells one model from
another, so that vectors of the one are never compared with those of the other.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol, TypeAlias

    import numpy

    Floats: TypeAlias = numpy.ndarray[Any, numpy.dtype[numpy.float32]]

    class Embedder(Protocol):
        """A loaded model. It may be used by several threads at once."""

        dimension: int
        fingerprint: str
        batch: int
        """Texts to encode at once: enough to be fast, few enough to be interrupted soon."""

        def encode(self, texts: Sequence[str]) -> Floats:
            """Return a vector of length 1 for each text, or of zeros for one without a known word."""


STATIC, ONNX = "static", "onnx"
TOKENIZER, WEIGHTS, CONFIG, GRAPH = "tokenizer.json", "model.safetensors", "config.json", "model.onnx"
FILES = {STATIC: (WEIGHTS, TOKENIZER, CONFIG), ONNX: (GRAPH, TOKENIZER)}
"""The files that a model of each kind must have."""
EXTRAS = {STATIC: "semantic", ONNX: "semantic-onnx"}
LIBRARIES = {STATIC: ("numpy", "tokenizers"), ONNX: ("numpy", "tokenizers", "onnxruntime")}
"""What each kind needs, and the extra that installs it."""
_SAMPLES, _SAMPLE = 64, 4096
# A matrix times one vector is faster on one thread, and the other cores belong to somebody else's work.
_QUIET = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


class ModelUnusable(Exception):
    """Why a directory is no model that can be used, as a sentence, and what to do."""


def kind_of(directory: str) -> str:
    """Return which kind of model a directory has; raises ModelUnusable."""
    for kind, files in FILES.items():
        if all(os.path.isfile(os.path.join(directory, name)) for name in files):
            return kind
    if not os.path.isdir(directory):
        raise ModelUnusable(f"the model's directory {directory} does not exist")
    needed = " or ".join(" and ".join(files) for files in FILES.values())
    raise ModelUnusable(f"{directory} is not a model: it needs {needed}")


def open_embedder(directory: str) -> Embedder:
    """Load the model in a directory; raises ModelUnusable."""
    kind = kind_of(directory)
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        if kind == STATIC:
            from nudge.meaning.static import StaticEmbedder

            return StaticEmbedder(directory)
        from nudge.meaning.onnx import OnnxEmbedder

        return OnnxEmbedder(directory)
    except ImportError as error:
        extra = EXTRAS[kind]
        raise ModelUnusable(f"{error.name} is not installed; pip install 'nudge-mcp[{extra}]'") from None
    except ModelUnusable:
        raise
    except Exception as error:  # the tokenizer and the runtime raise what they like for a damaged file
        raise ModelUnusable(f"the model in {directory} cannot be loaded: {str(error)[:200]}") from None


def size_of(directory: str) -> int:
    """Return how many bytes the files of a model take."""
    paths = (os.path.join(directory, name) for name in {name for files in FILES.values() for name in files})
    return sum(os.path.getsize(path) for path in paths if os.path.isfile(path))


def read_fingerprint(directory: str) -> str:
    """Return a hash of a model: of all of its small files, and of samples of the large ones, which take a second to
    read as a whole."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted({name for files in FILES.values() for name in files}):
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            digest.update(name.encode())
            _add_samples(digest, path)
    return digest.hexdigest()


def _add_samples(digest: hashlib.blake2b, path: str) -> None:
    size = os.path.getsize(path)
    digest.update(str(size).encode())
    with open(path, "rb") as file:
        if size <= _SAMPLES * _SAMPLE:
            digest.update(file.read())
            return
        for number in range(_SAMPLES):
            file.seek(number * (size - _SAMPLE) // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE))
