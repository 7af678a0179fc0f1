"""Meaning: texts that say the same in other words. Optional: it needs `nudge-mcp[semantic]` and a model on the disk.

`embedder` says what a model is, `static` and `onnx` load one, `download` fetches one. `store` keeps the vectors of
passages beside the notes, `index` searches them, `fusion` puts them together with the scores of words. `ops` has the
operations, `search_ops` holds the model in PRIMARY and embeds what is stored. Nothing here imports numpy before a model
is used.
"""
