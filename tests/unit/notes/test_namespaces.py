"""What a name for a namespace stands for, and who sees which."""

from __future__ import annotations

import sqlite3

import pytest

from nudge.core.errors import Invalid
from nudge.core.visibility import Visibility
from nudge.notes import namespaces, ranking
from nudge.notes.store import NoteFilter
from tests.unit.notes.stored import NOW, add


def test_a_short_name_is_a_namespace_while_it_is_unambiguous(notes: sqlite3.Connection) -> None:
    """The namespace of that very name comes first; of two repos with one name the error names both."""
    add(notes, "one", namespace="github.com/acme/api")
    assert namespaces.find(notes, "API") == "github.com/acme/api" == namespaces.find(notes, "acme/api")
    assert namespaces.find(notes, "web") == "web"
    add(notes, "two", namespace="gitlab.com/other/api")
    with pytest.raises(Invalid) as refused:
        namespaces.find(notes, "api")
    assert "github.com/acme/api, gitlab.com/other/api" in refused.value.message
    add(notes, "three", namespace="api")
    assert namespaces.find(notes, "api") == "api"


def test_private_namespaces_are_hidden(notes: sqlite3.Connection) -> None:
    """By the names of private projects, but for where the caller is or what it names."""
    for namespace in ("github.com/acme/api", "github.com/acme/secret", "secret"):
        add(notes, "note", "word", namespace=namespace)
    hidden = namespaces.find_hidden(notes, Visibility(["secret"]))
    assert hidden == ("github.com/acme/secret", "secret")
    assert namespaces.find_hidden(notes, Visibility(["secret"], "github.com/acme/secret")) == ("secret",)
    matches = ranking.recall(notes, "word", NoteFilter(hidden=hidden), 10, NOW)
    assert [match.note.draft.namespace for match in matches] == ["github.com/acme/api"]
    assert namespaces.counts(notes, NOW, hidden) == [{"namespace": "github.com/acme/api", "count": 1}]
