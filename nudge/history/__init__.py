"""History: what agents did, as observations.

* `extract`: a hook event (translated by `clients`) becomes one event; `event_paths`: the paths in it.
* `observations`: the observation types, and how a tool call becomes one; `git`: commits and pushes.
* `redact`: credentials and private text never reach the disk.
* `event`: the validated event; `store` writes it, `views`, `search` and `recent` read.
* `summary`: what a session came to; `digest`: the text that a session gets at its start, from `sessions`,
`facts` and the hints that `hint_selection` leaves.
* `purge`: deleting, by the user's conditions or by retention.

Functions take a database connection and plain values; the caller holds the transaction.
"""
