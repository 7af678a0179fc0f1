"""Use cases: what an operation does, across domains and storage. Interfaces call `app`.

* `app` executes operations, `call` is who calls, `agent_sessions` whose session a call belongs to, `session` the hints'
session, `visibility` which projects a caller sees.
* `hints`, `scan`, `transfer` (with `staging`): hints. `history`, `recording`, `backfill`: observations.
* `credit`: a command's outcome credits hints. `inject`, `inject_offline` (with `offline_hints`): a session's first
text.
* `upkeep`: PRIMARY's background work. `admin`: status and stop. `owned_files`: without a server.
"""
