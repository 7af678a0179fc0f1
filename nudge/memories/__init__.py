"""Notes: titled texts with a tier, a kind, tags and links.

`note` validates and describes one, `query` builds FTS5 queries from untrusted words, `scoring` ranks, `store` keeps
notes and links in SQLite, `archive` keeps what expires or is forgotten and consolidates, `toon` is their compact text
form, `explain` says why a note ranked where it did.
"""
