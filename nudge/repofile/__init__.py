"""Hints in the repository: the file `.nudge.toml` at the top of a clone, which is told only where a person trusted it.

`toml_positions` finds where in the text a value stands, `rules` says what no text in the file may have, `document`
parses and checks the file, `clone` finds and reads it, `evidence` digests what a hint rests on, `trust` keeps what a
person decided, `review` compares the two, and `told` makes hints of what is trusted. `edit` writes a hint into the
file. Nothing in the file is ever run.
"""

FILE = ".nudge.toml"
SOURCE = "repo-file"
"""What `meta.source` of a hint from the file says; nobody can set it."""
SAYS = "the repo's file says"
