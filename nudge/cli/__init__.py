"""The human's interface: one file a verb, found through `verbs`; a word that a person reads lives here."""
