"""What an agent is told, and when.

* At a start: `start` composes the text, `wording` words its lines; `start_rows` and `hint_selection` choose what it may
  be about, `offline` reads that without a server.
* At a prompt: `prompt` decides which note it is about (`common_words` says what a shared word is worth), `prompt_notes`
  words it.
* At a file: `file` and `file_notes` for notes about it, `edits` for two sessions that edit it.
* About an open attempt: `predictions` judges its prediction by the outcome of a command, `attempt` words it.
* `ledger` records every line that was told, and whether it was used; `comparison` compares sessions that
  were told with those that were not.
* `hook_answers` answers the hooks of a session that works; `ops` has the operations.
"""
