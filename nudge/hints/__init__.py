"""Hints, in memory: no input or output, no event loop.

Other packages use `store.HintStore`: it decides writes (`Decision`, with a `Change` to log and apply), and reads.

* `model` has the hint and its parsing, with `fields` (the value among them) and `scope` (where a hint applies).
* `index` looks hints up, `ranking` scores and orders them; `search` answers queries, and explains why there is none.
* `quotas` has the limits and the secret guard, `import_export` the payloads and pages, `sync` the hints that a tool
  such as scan owns.
"""
