"""The journal: what an agent tried, what it predicted, and what came of it. An attempt is a note of a kind of its own.

`attempts` has the fields and rules of an attempt, `predictions` judges one by the outcome of a command, `store` has
attempts in SQLite, `ops` the operations, `cli` the verbs.
"""
