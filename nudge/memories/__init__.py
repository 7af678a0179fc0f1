"""Notes: titled texts with a tier, a kind, tags and links. Attempts are notes of a kind of their own.

* `note` validates and shows a note; `store` has notes and links in SQLite, `archive` those that expired or were
  forgotten, `namespaces` the names of namespaces.
* `retrieval` finds the notes that have the words of a text, `ranking` ranks them and decides which notes a prompt is
  about, `explain` says why.
* `attempts` has the fields and rules of an attempt, `journal` stores attempts.
* `transfer` exchanges notes with another store, `chat_exports` converts exports of chat programs.
"""
