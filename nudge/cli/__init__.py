"""The command line for people. `app.main` runs a line with click; `plain` has get, set and bump without it.

`verbs` is the table of all commands and the module of each: `hints`, `memories` and `memory_upkeep` (notes), `journal`,
`history` and `history_upkeep`, `transfer` (import and export), `server`, `wiring` (connecting clients) and `man`. They
share `params` (options), `output` (the console), `prompts`, `completion`, and `note_lines` and `history_lines`, which
turn results into lines.
"""
