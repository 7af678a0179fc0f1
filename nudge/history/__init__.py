"""History: what agents did, as observations.

Recording:
* `extract` turns a hook's payload (translated by `clients`) into one event; `observations` has the observation types
  and reads tool calls, `git` commits and pushes.
* `redact` removes credentials and private text before anything is stored.
* `event` validates an event, `store` writes it, `sessions` closes and summarizes its session.

Reading:
* `queries` and `search` (with the query language of `fts_query`); `projects` has the names of projects.
* `purge` deletes, by the user's conditions or by retention.

Judging:
* `causes` finds the line of an error that says most; `nudge.learning` reads command lines and says why they failed.

Operations: `ops` (reading, pinning, purging, backups), `record_ops` (events of hooks), `spool_ops` (events that were
written while no server answered). `transcripts` reads earlier sessions on the client's side; `cli` has the verbs.

The other functions take a database connection and plain values; the caller holds the transaction.
"""
