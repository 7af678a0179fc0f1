"""Use cases: what an operation does, across domains and storage. Interfaces call `app`.

* The frame: `app` executes operations, `call` says who calls and in which agent session and has the base models of
  parameters and results, `visibility` says which projects a caller may see.
* Hints: `hints` (with scan), `transfer` (import and export), `freshness` (files that a hint rests on),
  `session` (the session of hints and its change log).
* History: `recording`, `history`, `transcripts` (backfill and replay of earlier sessions).
* Notes: `memories`, `memory_upkeep`, `memory_transfer`, `note_import`, and the `journal` of attempts.
* Across rooms: `assemble` (notes, hints and facts for a question), `explain` (why something is found or told).
* `upkeep`: PRIMARY's background work. `owned_files`: deletion and restore without a server.

What outcomes teach is in `nudge.learning`, what agents are told in `nudge.telling`.

Hooks load `visibility` and `freshness`: these import only the standard library.
"""
