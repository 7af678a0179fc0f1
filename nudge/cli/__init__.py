"""The command line for people. `app.main` runs a line with click; `plain` has get, set and bump without it.

`verbs` is the table of all commands and the module of each: `hints`, `memories` (notes), `journal`, `history`, `told`
(what agents are told), `upkeep` (forgetting, purging, backups), `transfer` (import and export), `server`, `wiring`
(connecting clients) and `man`. They share `params` (options), `output` (the console), `prompts`, `completion`, and
`result_lines`, which turns results into lines.
"""
