from __future__ import annotations

import io
import sys

import pytest

from .conftest import NOTE, Nudge, Outcome, Server, Typed


@pytest.fixture(autouse=True)
def answering(server: Server) -> None:
    found = {"memories": [NOTE], "results": [NOTE], "count": 1}
    server.answers = {f"nudge.memory_{name}": found for name in ("recall", "search", "list")}
    server.answers["nudge.memory_get"] = {"memory": NOTE, "links": []}
    server.answers["nudge.memory_delete"] = {"deleted": True, "id": 12}
    server.answers["nudge.memory_namespaces"] = {"namespaces": [{"namespace": "n", "count": 1}]}


def piped(nudge: Nudge, monkeypatch: pytest.MonkeyPatch, text: str, *words: str) -> Outcome:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return nudge(*words, "memory", "shell")


def test_lines_from_a_pipe(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is run as the verb of its name; no prompt is printed, and an apostrophe is no quote."""
    outcome = piped(nudge, monkeypatch, "recall what's new\n\nsearch a b --limit 3\nlist n\nlist\nget m12\nnamespaces")
    assert outcome.code == 0 and "memory>" not in outcome.out and outcome.out.endswith("n  1 note\n")
    assert [(name.removeprefix("nudge.memory_"), fields) for name, fields in server.calls] == [
        ("recall", {"context": "what's new"}),
        ("search", {"query": "a b", "limit": 3}),
        ("list", {"namespace": "n"}),
        ("list", {}),
        ("get", {"id": 12}),
        ("namespaces", {}),
    ]


def test_a_wrong_line_does_not_end_it(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told, and the next one is run; `quit` ends it."""
    outcome = piped(nudge, monkeypatch, "store x\nget x\nhelp\nquit\nnamespaces\n")
    assert outcome.code == 0 and outcome.err.splitlines() == [
        "unknown command 'store'; try: help",
        "nudge memory get: ID: 'x' is not the id of a note, such as m12; see: nudge memory get --help",
    ]
    assert "recall WORDS" in outcome.out and "1 note" not in outcome.out


def test_options_of_the_line_hold_for_all(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """--json and --port."""
    outcome = piped(nudge, monkeypatch, "namespaces\n", "--json", "-p", "9000")
    assert outcome.out == '{"namespaces":[{"namespace":"n","count":1}]}\n' and server.made_with["port"] == 9000


def test_delete_asks_at_a_terminal(nudge: Nudge, server: Server, typed: Typed) -> None:
    """The answer comes from the same keyboard, and the end of it ends the shell."""
    typed.lines += ["delete m12", "n", "delete m12", "y"]
    assert nudge("memory", "shell").code == 0
    assert [name for name, _ in server.calls].count("nudge.memory_delete") == 1
