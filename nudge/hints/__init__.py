"""Hints: facts with an address and a scope.

* `model` has the hint and its parsing, with `fields` (the value among them) and `scope` (where a hint applies).
* `store.HintStore` holds them in memory: it decides writes (`Decision`, with a `Change` to log and apply), and reads.
  `index` looks hints up, `ranking` scores and orders them, `search` answers queries and explains why there is none.
* `admission` has the limits and the secret guard, `transfer` the payloads of exports, `reconcile` the hints that a tool
  such as scan owns, `freshness` whether the files that a hint rests on have changed.
* `lifetime` begins, continues and ends the time for which hints are kept, whose state is the change log; `offline`
  reads that log without a server.
* `ops` and `transfer_ops` have the operations; `commit_ops` logs and applies what they decided. `cli` has the verbs.
"""
