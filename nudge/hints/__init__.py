"""Hints, in memory: no input or output, no event loop.

Other packages use `store.HintStore`: it decides writes (`Decision`, with a `Change` to log and apply), and reads.

* `model` has the hint and its parsing, with `fields`, `value` and `scope` (where a hint applies).
* `index` looks hints up, `text_index` by words; `search` answers queries, `ranking` scores hints, `not_found` explains
  why there is none.
* `quotas` has the limits and the secret guard, `import_export` the payloads and pages, `sync` the hints that a tool
  such as scan owns.
"""
