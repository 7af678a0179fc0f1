"""Hints: pure values in, pure values out. No input or output, no event loop.

`store.HintStore` is what others use: it decides writes (`Decision`, with a `Change` to log and apply) and answers
reads.
`model` has the hint and its parsing, `scope` where it applies, `ranking` the score, `search` queries, `import_export`
payloads and pages, `quotas` the limits and the secret guard, `sync` the hints that a tool such as scan owns.
"""
