"""Storage: bytes on disk.

* `changelog`: the append-only log of hint changes, and its recovery from damage.
* `database`: the SQLite database of one PRIMARY, with its threads in `workers`, its schema in `migrations`, and what
  these change in stored rows in `conversions`.
* `sqlite`: opening, copying and checking SQLite files; `database_files`: access modes, and backups.
* `spool`: events that no PRIMARY could take yet.
"""
