from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.notes import fields
from nudge.notes.cli import first_sentence, recall_hints
from nudge.notes.models import StoreMemory
from nudge.notes.note import Lifetimes
from tests.unit.cli.conftest import NOTE, Nudge, Outcome, Server, Terminal, Typed

HIT = {
    "component": "db",
    "key": "path",
    "score": 0.34,
    "hint": {"value": "/var/db/sqlite"},
    "match_explain": {"reasons": ["text found in value"]},
}
STORED = {"id": 12, "tier": "mid", "namespace": "github.com/org/x", "kind": "note", "title": "Use SQLite"}


def in_future(**span: float) -> str:
    return (datetime.now(UTC) + timedelta(**span)).isoformat(timespec="seconds")


@pytest.fixture(autouse=True)
def answering(server: Server) -> None:
    server.answers = {
        "nudge.memory_store": {**STORED, "expires_at": in_future(days=7), "potential_contradictions": []},
        "nudge.memory_recall": {"memories": [{**NOTE, "score": 10.4}], "count": 1, "mode": "keyword"},
        "nudge.memory_search": {"results": [{**NOTE, "score": 10.4}], "count": 1, "query": "x"},
        "nudge.memory_list": {"memories": [NOTE, {**NOTE, "id": 7, "tier": "mid", "priority": 5}], "count": 2},
        "nudge.memory_get": {"memory": NOTE, "links": []},
        "nudge.memory_update": {"memory": NOTE},
        "nudge.memory_delete": {"deleted": True, "id": 12},
        "nudge.memory_link": {"linked": True, "new": True},
        "nudge.memory_namespaces": {"namespaces": [{"namespace": "n", "count": 1}]},
        "nudge.query": {"hints": [HIT]},
    }


def test_the_lifetimes_in_the_help_are_the_defaults(nudge: Nudge) -> None:
    """In hours and days, and the number of recalls that keep a note for good."""
    lived = Lifetimes()
    assert lived.short is not None and lived.mid is not None
    tiers = f"short ({lived.short / 3_600:.0f} hours), mid ({lived.mid / 86_400:.0f} days) or long (for good)"
    assert tiers in " ".join(nudge("remember", "--help").out.split())
    assert f"after {lived.promote_at} times" in " ".join(nudge("note", "recall", "--help").out.split())


# remember, store


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("we chose X because Y", "we chose X because Y"),
        ("We chose X. It is small.", "We chose X"),
        ("Version 1.2 is out. Update.", "Version 1.2 is out"),
        ("Use e.g. make", "Use e.g. make"),
        ("First line\nsecond line", "First line"),
        ("  spread   out.  ", "spread out"),
        ("Why not? Because.", "Why not?"),
        ("and so on...", "and so on..."),
        ("word " * 40, "word " * 19 + "word..."),
        ("x" * 200, "x" * 100 + "..."),
    ],
)
def test_the_title_is_the_first_sentence(text: str, title: str) -> None:
    """In one line, without its period, cut at a word when it is long."""
    assert first_sentence(text) == title
    assert len(first_sentence(text).encode()) <= limits.MAX_TITLE_BYTES


@pytest.mark.usefixtures("repo")
def test_remember(nudge: Nudge, server: Server) -> None:
    """The words are the note, quoted or not, kept for good unless --tier says otherwise; where the caller is goes
    along, and the answer says how long it is kept."""
    outcome = nudge("remember", "Use", "SQLite.", "--kind", "decision", "--tags", "a,b")
    assert server.params == {
        "title": "Use SQLite",
        "content": "Use SQLite.",
        "kind": "decision",
        "tags": ["a", "b"],
        "tier": "long",
    }
    assert server.context["repo"] == "git:github.com/org/x"
    assert outcome.out.splitlines() == [
        "✔ stored m12 Use SQLite (note, mid)",
        "  repo: github.com/org/x",
        "  kept: 7d, and longer when it is recalled; for good: nudge note promote m12",
    ]


def test_remember_from_stdin(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads the text; what is no text, or too long, is refused here."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Größe\nzwei\n".encode())))
    nudge("remember", "-", "--title", "T")
    assert server.params == {"title": "T", "content": "Größe\nzwei", "tier": "long"}
    for content, code in ((b"\xff", 2), (b"x" * (limits.MAX_NOTE_BYTES + 2), 3)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert nudge("remember", "-").code == code
    assert len(server.calls) == 1


def test_store_says_what_is_alike(nudge: Nudge, server: Server) -> None:
    """Similar titles, with what to do about a wrong one; a note without an end is kept for good."""
    server.answers["nudge.memory_store"] = {**STORED, "potential_contradictions": [3, 5], "previous": NOTE}
    assert nudge("note", "store", "-T", "Use SQLite", "-c", "x").out.splitlines() == [
        "✔ updated m12 Use SQLite (note, mid)",
        "  repo: github.com/org/x",
        "  kept: for good",
        "  similar: m3, m5; if one of them is wrong: nudge note resolve RIGHT WRONG",
    ]


def test_store_takes_every_field(nudge: Nudge, server: Server) -> None:
    """Numbers, times and metadata have their types; a span until it ends counts from now."""
    words = [
        "--priority",
        "9",
        "--confidence",
        "0.5",
        "--source",
        "user",
        "--metadata",
        '{"a": [1]}',
        "--repo",
        "n",
    ]
    nudge("note", "store", "-T", "T", "-c", "C", *words, "--ttl-secs", "60", "--expires-at", "30d")
    left = datetime.fromisoformat(server.params.pop("expires_at")).timestamp() - time.time()
    assert abs(left - 30 * 86_400) < 3_600
    assert server.params == {
        "title": "T",
        "content": "C",
        "priority": 9,
        "confidence": 0.5,
        "source": "user",
        "metadata": {"a": [1]},
        "namespace": "n",
        "ttl_secs": 60,
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["note", "store", "-c", "x"], "nudge note store: "),
        (["note", "store", "-T", "x", "-c", "x", "--metadata", "7"], "--metadata: must be a JSON object"),
        (["note", "store", "-T", "x", "-c", "x", "--metadata", "{"], "--metadata: is not JSON"),
        (["note", "store", "-T", "x", "-c", "x", "--tier", "eternal"], "--tier: 'eternal' is not one of"),
        (["note", "get", "x"], "ID: 'x' is not the id of a note, such as m12"),
        (["note", "get", "m0"], "ID: 'm0' is not the id of a note, such as m12"),
        (["note", "list", "--since", "soon"], "--since: 'soon' is not a time"),
        (["remember"], "nudge remember: missing TEXT...; try: nudge remember "),
        (["note", "consolidate", "m1,x", "-T", "t", "-s", "s"], "'x' is not the id of a note"),
        (["note", "import", "--repo", "."], "missing FILE"),
    ],
)
def test_usage(nudge: Nudge, server: Server, typed: Typed, words: list[str], message: str) -> None:
    """One line that says what to type instead."""
    del typed
    outcome = nudge(*words)
    assert outcome.code == 2 and message in outcome.err and outcome.err.count("\n") == 1
    assert server.calls == []


# Lists


def test_a_list_shows_notes_not_scores(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each note is its title, its kind and age, and its text below; no score, priority or tier."""
    monkeypatch.setattr("time.time", lambda: datetime(2026, 11, 16, 10, tzinfo=UTC).timestamp())
    for words in (["list"], ["recall", "sqlite"], ["search", "sqlite"]):
        assert nudge("note", *words).out.splitlines()[:3] == [
            "m12  Chose SQLite  (decision, 2h ago)",
            "     One writer",
            "     is enough.",
        ]


def test_a_title_is_shown_whole(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the width of the terminal; a hostile one is escaped, a doubtful note is marked, and the repo is named
    where there are several."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    rows = [
        {**NOTE, "title": "evil\x1b[2J\nname " * 9, "content": "x", "namespace": "a", "confidence": 0.1},
        {**NOTE, "namespace": "b"},
    ]
    server.answers["nudge.memory_list"] = {"memories": rows, "count": 2, "more": True}
    outcome = nudge.on(Terminal(), "note", "list", "--offset", "4")
    first = outcome.out.splitlines()[0]
    assert first.count("evil") == 9 and "\x1b" not in outcome.out and "…" not in first
    assert first.endswith(", a, confidence 0.1)") and ", b)" in outcome.out
    assert outcome.err == "there are more: --offset 6\n"


def test_a_long_text_is_cut_in_a_list(nudge: Nudge, server: Server) -> None:
    """At a word, with the command that prints all of it; what says the same as the title is left out."""
    more = {**NOTE, "id": 8, "content": "Chose SQLite\n\nOne writer.\n\nNo more."}
    rows = [{**NOTE, "content": "word " * 500}, {**NOTE, "id": 7, "content": "Chose  SQLite."}, more]
    server.answers["nudge.memory_list"] = {"memories": rows, "count": 3}
    lines = nudge("note", "list").out.splitlines()
    assert lines[4:] == [lines[3].replace("m7", "m8"), "     One writer.", "", "     No more."]
    assert lines[1].endswith("word") and 900 < len(lines[1]) < 1_010
    assert lines[2] == "     ... all of it: nudge note get m12" and lines[3].startswith("m7   Chose SQLite  (")


def test_filters(nudge: Nudge, server: Server, repo: Path) -> None:
    """Words are joined, times become RFC 3339, `.` is the repo that the caller is in."""
    del repo
    nudge("note", "search", "a", "b", "--repo", ".", "--since", "2026-01-01T00:00:00Z", "--min-priority", "3")
    assert server.params == {
        "query": "a b",
        "namespace": "github.com/org/x",
        "since": "2026-01-01T00:00:00.000000Z",
        "min_priority": 3,
    }
    nudge("note", "recall", "a", "--kind", "lesson", "--tags", "x,y", "--budget-tokens", "500", "--no-touch")
    assert server.params == {
        "context": "a",
        "kind": "lesson",
        "tags": ["x", "y"],
        "budget_tokens": 500,
        "touch": False,
    }


@pytest.mark.parametrize("words", [["note", "list"], ["note", "search", "x"], ["note", "recall", "x"]])
def test_nothing_is_an_answer(nudge: Nudge, server: Server, words: list[str]) -> None:
    """Exit 0, nothing on stdout, and what to type on stderr; with --json the bare result."""
    empty: dict[str, Any] = {"memories": [], "results": [], "count": 0}
    server.answers.update({f"nudge.memory_{words[1]}": empty})
    outcome = nudge(*words)
    assert (outcome.code, outcome.out) == (0, "") and "nudge remember" in outcome.err
    assert ("nudge note list" in outcome.err) == (words[1] != "list")
    assert json.loads(nudge(*words, "--json").out) == empty and nudge(*words, "--json").err == ""


# recall


def test_recall_searches_both(nudge: Nudge, server: Server) -> None:
    """A hint is a memory with an address, a note is one without. Each word that tells something is asked for."""
    out = nudge("recall", "where", "is", "the", "sqlite", "file").out
    assert out.splitlines()[:4] == ["hints", "0.34  db/path  /var/db/sqlite", "      text found in value", "notes"]
    assert [fields["text"] for name, fields in server.calls if name == "nudge.query"] == ["sqlite", "file"]
    result = json.loads(nudge("recall", "sqlite", "--json").out)
    assert [entry["id"] for entry in result["memories"]] == [12] and result["hints"] == [HIT]


def test_recall_of_nothing(nudge: Nudge, server: Server) -> None:
    """It says so, and how to keep a note."""
    server.answers["nudge.memory_recall"] = {"memories": [], "count": 0, "mode": "keyword"}
    server.answers["nudge.query"] = {"hints": []}
    outcome = nudge("recall", "sqlite", "--no-touch")
    assert (outcome.code, outcome.out) == (0, "") and "nudge remember" in outcome.err
    assert server.calls[0][1] == {"context": "sqlite", "touch": False}


# explain

EXPLAINED: dict[str, Any] = {
    "items": [
        {
            "id": 12,
            "kind": "decision",
            "title": "Chose SQLite",
            "project": "github.com/org/x",
            "retrieval": {"source": "query", "rank": 1},
            "score": {"total": 10.25, "components": {"base": 10.0, "semantic_boost": None, "priority": 0.25}},
            "matches": {"query_terms": ["sqlite"], "project_match": None},
            "pack_context": {"included": True, "section": "decisions", "tokens": 9, "sessions": ["s1", "s2"]},
        },
        {
            "id": "api/test",
            "kind": "hint",
            "title": "api/test",
            "project": None,
            "retrieval": {"source": "name_lookup", "rank": None},
            "score": {"total": None, "components": {"base": None, "recency": None}},
            "matches": {"query_terms": [], "eligible": False, "reasons": ["os=linux, needs windows"]},
            "pack_context": {"included": False, "section": None, "tokens": None, "sessions": []},
        },
    ],
    "missing_ids": [99],
    "errors": [{"code": "NOT_FOUND", "message": "there is no note m99", "field": "ids"}],
    "metadata": {"query": "sqlite"},
}


@pytest.mark.parametrize(
    ("what", "asked"),
    [
        (["why", "sqlite"], {"query": "why sqlite"}),
        (["m12", "7"], {"ids": [12, 7]}),
        (["12"], {"ids": [12]}),
        (["python", "3"], {"query": "python 3"}),
        (["python", "3", "m4"], {"query": "python 3", "ids": [4]}),
        (["api/test"], {"names": ["api/test"]}),
        (["why and/or"], {"query": "why and/or"}),
        (["api/test", "m4", "sqlite"], {"query": "sqlite", "ids": [4], "names": ["api/test"]}),
    ],
)
def test_explain_tells_ids_names_and_words_apart(
    nudge: Nudge, server: Server, what: list[str], asked: dict[str, Any]
) -> None:
    """A number among words is a word."""
    server.answers["nudge.memory_explain"] = EXPLAINED
    nudge("explain", *what)
    assert server.params == {**asked, "include_pack_context": False}


def test_explain_draws_the_parts(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """As bars on a terminal, as numbers in a pipe; what is null is left out, what is missing is on stderr."""
    monkeypatch.setenv("NO_COLOR", "1")
    server.answers["nudge.memory_explain"] = EXPLAINED
    outcome = nudge.on(Terminal(), "explain", "sqlite", "m99", "api/test", "--pack")
    assert outcome.code == 0 and outcome.err == "nudge explain: there is no note m99\n"
    assert outcome.out.splitlines() == [
        "m12  decision  Chose SQLite  (rank 1)",
        "  score  10.2500",
        "    match     ████████████████████  10.0000",
        "    priority  ▌                     0.2500",
        "  words: sqlite",
        "  repo: github.com/org/x",
        "  injected: in 2 sessions, section decisions, 9 tokens",
        "api/test  hint  (does not apply here)",
        "  - os=linux, needs windows",
        "  injected: never",
    ]
    assert "    match     10.0000" in nudge("explain", "sqlite").out.splitlines()
    assert "    match     ####################  10.0000" in nudge.on(Terminal("ascii"), "explain", "sqlite").out


def test_explain_of_nothing(nudge: Nudge, server: Server) -> None:
    """An empty list is an answer to words; an id or name that does not exist is exit 1."""
    nothing = {"items": [], "missing_ids": [], "errors": [], "metadata": {"query": "x"}}
    server.answers["nudge.memory_explain"] = nothing
    outcome = nudge("explain", "x")
    assert outcome.code == 0 and "nudge note list" in outcome.err
    server.answers["nudge.memory_explain"] = {**nothing, "errors": [{"code": "NOT_FOUND", "message": "no such"}]}
    assert [nudge("explain", *what).code for what in (["m9"], ["9"], ["a/b"], ["x", "m9"])] == [1, 1, 1, 1]


# One note


@pytest.mark.parametrize("word", ["m12", "12"])
def test_get(nudge: Nudge, server: Server, word: str) -> None:
    """The whole text, the facts, and the links in both directions."""
    links = [
        {"source_id": 12, "target_id": 3, "relation": "supersedes"},
        {"source_id": 7, "target_id": 12, "relation": "derived_from"},
    ]
    whole = {**NOTE, "expires_at": in_future(hours=3), "access_count": 2, "metadata": {"ticket": 7}}
    server.answers["nudge.memory_get"] = {"memory": whole, "links": links}
    lines = nudge("note", "get", word).out.splitlines()
    assert server.params == {"id": 12}
    assert lines[:3] == ["m12  Chose SQLite", "  One writer", "  is enough."]
    assert lines[-2:] == ["  link: supersedes m3", "  link: m7 derived from this"]
    assert {
        "  tier: long",
        "  priority: 8",
        "  recalled: 2 times",
        "  expires: in 3h",
        '  metadata: {"ticket": 7}',
    } <= set(lines)


def test_update_sends_what_is_given(nudge: Nudge, server: Server) -> None:
    """And nothing else."""
    outcome = nudge("note", "update", "m12", "-c", "new", "--priority", "9")
    assert server.params == {"id": 12, "content": "new", "priority": 9}
    assert outcome.out.startswith("✔ updated content, priority of m12\n")
    assert nudge("note", "update", "m12").out.startswith("✔ m12 is unchanged: no field was given\n")


def test_links_and_promotion(nudge: Nudge, server: Server) -> None:
    """Each says in one line what is so now."""
    assert nudge("note", "link", "m1", "2").out == "✔ m1 related to m2\n"
    assert server.params == {"source_id": 1, "target_id": 2}
    server.answers["nudge.memory_link"] = {"linked": True, "new": False}
    repeated = nudge("note", "link", "m1", "m2", "--relation", "derived_from").out
    assert repeated == "✔ m1 derived from m2 (it already was)\n"
    server.answers["nudge.memory_delete_link"] = {"deleted": 2}
    assert nudge("note", "unlink", "m1", "2").out == "✔ deleted 2 links from m1 to m2\n"
    assert server.params == {"source_id": 1, "target_id": 2}
    nudge("note", "unlink", "m1", "m2", "--relation", "supersedes")
    assert server.params == {"source_id": 1, "target_id": 2, "relation": "supersedes"}
    server.answers["nudge.memory_promote"] = {"promoted": True, "id": 1}
    assert nudge("note", "promote", "1").out == "✔ m1 is kept for good\n"


def test_a_note_is_pinned_by_a_tag(nudge: Nudge, server: Server) -> None:
    """Its other tags stay, and pinning it twice changes nothing."""
    server.answers["nudge.memory_get"] = {"memory": {"id": 12, "tags": ["db", "pinned"]}, "links": []}
    server.answers["nudge.memory_update"] = {"memory": {}}
    assert nudge("note", "pin", "m12").out == "✔ m12 is told at every start\n"
    assert server.params == {"id": 12, "tags": ["db", "pinned"]}
    assert nudge("note", "unpin", "m12").out == "✔ m12 is no longer told at every start\n"
    assert server.params == {"id": 12, "tags": ["db"]}


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 3)])
def test_delete_asks(nudge: Nudge, server: Server, typed: Typed, answer: str, code: int) -> None:
    """By the title of the note."""
    typed.lines.append(answer)
    outcome = nudge("note", "delete", "m12")
    assert outcome.code == code and "Delete m12 Chose SQLite permanently? [y/N]" in outcome.err
    assert [name for name, _ in server.calls].count("nudge.memory_delete") == (answer == "y")


def test_delete_without_a_terminal_needs_yes(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script must say that it means it."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    outcome = nudge("note", "delete", "m12")
    assert outcome.code == 2 and outcome.err.endswith("add --yes to go ahead\n")
    assert [name for name, _ in server.calls] == ["nudge.memory_get"]
    assert nudge("note", "delete", "m12", "--yes", "--json").out == '{"deleted":true,"id":12}\n'


# What there is


def test_stats(nudge: Nudge, server: Server) -> None:
    """Counts in words."""
    server.answers["nudge.memory_stats"] = {
        "total": 1_203,
        "by_tier": [{"tier": "mid", "count": 1_200}, {"tier": "long", "count": 3}],
        "by_namespace": [{"namespace": "github.com/org/x", "count": 1_203}],
        "expiring_soon": 2,
        "links_count": 4,
        "archived": 5,
        "db_size_bytes": 1_048_576,
    }
    assert nudge("note", "stats").out.splitlines() == [
        "1,203 notes",
        "  mid    1,200",
        "  long   3",
        "repos",
        "  github.com/org/x  1,203",
        "expiring within a day: 2, links: 4",
        "archived: 5, database: 1 MiB",
    ]
    assert "██████████  1,200" in nudge.on(Terminal(), "note", "stats").out


def test_repos(nudge: Nudge, server: Server) -> None:
    """One a line; without any, how to begin."""
    server.answers["nudge.memory_namespaces"] = {"namespaces": [{"namespace": "a/b", "count": 1}]}
    assert nudge("note", "repos").out == "a/b  1 note\n"
    server.answers["nudge.memory_namespaces"] = {"namespaces": []}
    assert "nudge remember" in nudge("note", "repos").err


def test_the_kinds_that_are_offered_are_those_that_are_taken() -> None:
    """An attempt is the journal's to write; every kind can be filtered by."""
    schema = StoreMemory.model_json_schema()["properties"]["kind"]
    assert tuple(schema["anyOf"][0]["enum"]) == fields.STORED_KINDS
    assert set(fields.KINDS) - set(fields.STORED_KINDS) == {fields.ATTEMPT}


# The hints that recall shows

HINTS = {"api/test": ("docker", "tests"), "api/build": ("docker",), "web/lint": ("tests", "docker", "lint")}


def query_hints(operation: str, params: Mapping[str, Any]) -> Any:
    """Hints with the one word that is asked for; the later ones score higher."""
    assert operation == "nudge.query" and params["context"] == {"os": "linux"}
    names = [name.split("/") for name, words in HINTS.items() if params["text"] in words]
    hits = [{"component": component, "key": key, "score": len(key)} for component, key in names]
    return {"hints": hits[: params["limit"]]}


def recalled(text: str, limit: int = 5) -> list[str]:
    return [f"{hit['component']}/{hit['key']}" for hit in recall_hints(query_hints, text, {"os": "linux"}, limit)]


def test_hints_with_the_most_words_come_first_then_the_score() -> None:
    """Each hint once."""
    assert recalled("lint the tests in docker") == ["web/lint", "api/test", "api/build"]
    assert recalled("docker") == ["api/build", "api/test", "web/lint"]


def test_hints_words_that_say_nothing_are_not_asked_for() -> None:
    """Nothing is found where no word is left that a hint has."""
    assert recalled("where is the moon") == []


def test_the_limit_of_hints() -> None:
    """Of all together, not of each word."""
    assert len(recalled("lint tests docker", 2)) == 2


# note shell


def piped(nudge: Nudge, monkeypatch: pytest.MonkeyPatch, text: str, *words: str) -> Outcome:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return nudge(*words, "note", "shell")


def test_shell_lines_from_a_pipe(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is run as the verb of its name; no prompt is printed, and an apostrophe is no quote."""
    outcome = piped(nudge, monkeypatch, "recall what's new\n\nsearch a b --limit 3\nlist n\nlist\nget m12\nrepos")
    assert outcome.code == 0 and "memory>" not in outcome.out and outcome.out.endswith("n  1 note\n")
    assert [(name.removeprefix("nudge.memory_"), fields) for name, fields in server.calls] == [
        ("recall", {"context": "what's new"}),
        ("search", {"query": "a b", "limit": 3}),
        ("list", {"namespace": "n"}),
        ("list", {}),
        ("get", {"id": 12}),
        ("namespaces", {}),
    ]


def test_a_wrong_line_does_not_end_the_shell(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told, and the next one is run; `quit` ends it."""
    outcome = piped(nudge, monkeypatch, "store x\nget x\nhelp\nquit\nrepos\n")
    assert outcome.code == 0 and outcome.err.splitlines() == [
        "unknown command 'store'; try: help",
        "nudge note get: E_INVALID (40001): ID: 'x' is not the id of a note, such as m12; see: nudge note get --help",
    ]
    assert "recall WORDS" in outcome.out and "1 note" not in outcome.out


def test_options_of_the_shell_hold_for_all(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """--json and --port."""
    outcome = piped(nudge, monkeypatch, "repos\n", "--json", "-p", "9000")
    assert outcome.out == '{"namespaces":[{"namespace":"n","count":1}]}\n' and server.made_with["port"] == 9000


def test_shell_delete_asks_at_a_terminal(nudge: Nudge, server: Server, typed: Typed) -> None:
    """The answer comes from the same keyboard, and the end of it ends the shell."""
    typed.lines += ["delete m12", "n", "delete m12", "y"]
    assert nudge("note", "shell").code == 0
    assert [name for name, _ in server.calls].count("nudge.memory_delete") == 1
