"""Hints and notes that a team shares through a log in its PostgreSQL.

In the order to read: `versions` says which of two versions of a thing counts; `entry` is a row of the log; `sharing`
makes rows of hints and notes, and hints and notes of rows; `address` is where the server is, and whether the way there
is safe; `server_sql` is what the database is asked; `store` keeps what waits and what was received. `notes_ops` and
`hints_ops` take changes from the stores and put rows into them, `server_ops` is the connection, and `sync_ops` runs it
all in the background. Nothing of this is loaded before a team is joined.
"""
