"""The command line for people. `app.main` runs a line with click; `plain` has get, set and bump without it.

The verbs of a room are in its `cli`, and in what ends in `_cli`. Here are those of no room: `server`, `connect`
(connecting clients), `switches` and `man`. `verbs` is the list of all; they share `params` (options), `output` (the
console), `prompts`, `completion`, `documents` (exports and imports) and
`render` (times, tables, explanations). The `render` of a room turns its results into lines.
"""
