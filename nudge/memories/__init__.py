"""Notes: titled texts with a tier, a kind, tags and links.

`note` validates and describes one; `store` keeps notes and links in SQLite, `archive` what expires or is forgotten, and
`namespaces` knows what a name for a namespace stands for. `retrieval` takes the words of untrusted text and
finds the notes that have them, `scoring` ranks those, `explain` says why. `transfer` carries notes to another store,
`mine` reads exports of chat programs, `toon` is the compact text form of a list of notes.
"""
