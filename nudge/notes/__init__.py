"""Notes: titled texts with a tier, a kind, tags and links.

* `note` validates and shows a note; `store` has notes and links in SQLite, `note_rows` reads rows that may be damaged,
  `archive` has those that expired or were forgotten, `namespaces` the names of repos as notes know them.
* `retrieval` finds the notes that have the words of a text, `ranking` orders them, `explain` says why; `claims` finds
  titles that contradict each other.
* `transfer` exchanges notes with another store, `foreign_notes` reads another database, `chat_exports` converts exports
  of chat programs, and `chat_import` writes them to a file for the import.
* `models` are the parameters and results of the operations: `ops` (storing, finding, changing), `archive_ops`,
  `statistics_ops`, `transfer_ops`, `explain_ops`, `assemble_ops`. `visible_ops` says what of the notes a caller sees,
  `deferred_ops` does what follows an answer. `cli` has the verbs.
"""
