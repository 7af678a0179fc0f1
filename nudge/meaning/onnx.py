"""Models as ONNX graphs, such as MiniLM: better at paraphrases than a table of vectors, and a hundred times slower."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy
import onnxruntime
from tokenizers import Tokenizer

from nudge.meaning.embedder import GRAPH, TOKENIZER, ModelUnusable, read_fingerprint
from nudge.meaning.static import normalized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.meaning.embedder import Floats

_MAX_TOKENS = 256
_INPUTS = frozenset(("input_ids", "attention_mask", "token_type_ids"))
_ERRORS_ONLY = 3


class OnnxEmbedder:
    """A transformer with mean pooling. One thread computes: the machine belongs to somebody else's work."""

    batch = 4

    def __init__(self, directory: str) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        self._session = onnxruntime.InferenceSession(
            os.path.join(directory, GRAPH), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = [one.name for one in self._session.get_inputs()]
        if not {"input_ids", "attention_mask"} <= set(self._inputs) <= _INPUTS:
            inputs = ", ".join(self._inputs)
            raise ModelUnusable(f"{directory}: {GRAPH} has the inputs {inputs}, which is not supported")
        self._tokenizer = Tokenizer.from_file(os.path.join(directory, TOKENIZER))
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._tokenizer.enable_padding()
        self.fingerprint = read_fingerprint(directory)
        self.dimension = int(self.encode(["a"]).shape[1])

    def encode(self, texts: Sequence[str]) -> Floats:
        encodings = self._tokenizer.encode_batch(list(texts))
        mask = numpy.array([encoding.attention_mask for encoding in encodings], dtype=numpy.int64)
        inputs: dict[str, Any] = {
            "input_ids": numpy.array([encoding.ids for encoding in encodings], dtype=numpy.int64),
            "attention_mask": mask,
            "token_type_ids": numpy.zeros_like(mask),
        }
        (states, *_) = self._session.run(None, {name: inputs[name] for name in self._inputs})
        if states.ndim != 3:
            raise ModelUnusable(f"{GRAPH} must return a vector for each token")
        weights = mask[:, :, None].astype(numpy.float32)
        pooled = (states * weights).sum(axis=1) / numpy.maximum(weights.sum(axis=1), 1.0)
        return normalized(pooled.astype(numpy.float32))
