"""Notes: titled texts with a tier, a kind, tags and links. Attempts are notes of a kind of their own.

* `note` validates and describes a note; `store` has notes and links in SQLite, `archive` those that expired or were
  forgotten, `namespaces` the names of namespaces.
* `retrieval` finds the notes that have the words of a text, `scoring` ranks them, `explain` says why, `relevance`
  decides which notes a prompt is about.
* `attempts` has the fields and rules of an attempt, `journal` stores attempts.
* `transfer` exchanges notes with another store, `chat_exports` converts exports of chat programs, `toon` is the compact
  text form of a list of notes.
"""
