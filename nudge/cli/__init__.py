"""The command line for people. `app.main` runs a line with click; `plain` has get, set and bump without it.

The verbs of a room are in its `cli`. Here are those of no room: `upkeep` (forgetting, purging, backups), `transfer`
(import and export), `server`, `wiring` (connecting clients), `switches` and `man`. `verbs` is the list of all; they
share `params` (options), `output` (the console), `prompts`, `completion`, and
`result_lines`, which turns results into lines.
"""
