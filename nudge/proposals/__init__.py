"""A language model that the user runs, and what it proposes. Nothing that it says changes a note: it is a proposal,
which a person or an agent accepts or rejects.

`questions` is what the model is asked, and `answers` how its answer is read; `disclosure` says which text it may see.
`language_model` sends a question. `expansion_ops` finds more for a weak recall, `ops` asks about notes when it is told
to, `background_ops` without being asked, and `review_ops` accepts, rejects and undoes.
"""
