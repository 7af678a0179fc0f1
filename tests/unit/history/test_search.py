"""Search: what is found, and in which order; recent context: ranked by recency, type and project, each file once."""

from __future__ import annotations

import sqlite3
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

from nudge.core.errors import Invalid
from nudge.history import queries
from nudge.history.search import add_found_texts, recent_observations, recent_work, search_observations
from tests.unit.history.stored import DAY, NOW, edit, empty, event, filled, read

HISTORY = [
    event("command", "cargo test -- auth::tests", NOW),
    event("command_error", "npm run build-all failed", NOW + 1),
    edit("/src/auth/mod.rs", NOW + 2),
    event("command", "curl http://localhost:8080/health", NOW + 3, project="other"),
    event("command", "main() raises ValueError: bad-input", NOW + 4),
    event("command", "running the tests of the parser", NOW + 5),
]


def ids_found(query: str, **options: Any) -> set[int]:
    """Those with everything that was asked for."""
    rows = search_observations(filled(*HISTORY), query, **options)
    return {row["id"] for row in rows if "partial" not in row}


def test_nothing_found_is_not_an_error() -> None:
    """An empty list."""
    assert search_observations(filled(*HISTORY), "zebra") == []


def test_no_word_is_looked_up_that_something_was_found_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has all the words shows that none is misspelled; with an operator it does not."""
    looked_up: list[str] = []

    def find(_: Any, __: Any, words: list[str]) -> dict[str, str]:
        looked_up.extend(words)
        return {}

    monkeypatch.setattr("nudge.history.search.find_corrections", find)
    assert ids_found("running parser") and looked_up == []
    assert not ids_found("running zebras") and looked_up == ["running", "zebras"]
    looked_up.clear()
    assert ids_found("running OR zebras") and set(looked_up) == {"running", "zebras"}


def test_a_misspelled_word_is_found() -> None:
    """By the nearest word that an observation has; one in quotes, or with an operator for prefixes, is meant so."""
    assert ids_found("curl loaclhost health") == {4}
    assert ids_found('"loaclhost"') == set() and ids_found("loaclhos*") == set()


def test_an_entry_is_enough_to_judge_by() -> None:
    """Six fields, of the content its first 120 characters."""
    connection = filled(event(content="cargo " + "x" * 500, file_path="/a"))
    assert search_observations(connection, "cargo") == [
        {
            "id": 1,
            "timestamp": NOW,
            "obs_type": "command",
            "content_preview": "cargo " + "x" * 114,
            "file_path": "/a",
            "session_id": "s1",
        }
    ]
    assert search_observations(connection, "cargo", full=True) == queries.get(connection, [1])


def test_filters_narrow_together() -> None:
    """Project, type and time; the bounds are outside."""
    assert ids_found("tests OR build OR health", project="app") == {1, 2, 6}
    assert ids_found("tests OR build OR health", project="app", obs_type="command") == {1, 6}
    assert ids_found("tests OR build OR health", after=NOW, before=NOW + 5) == {2, 4}
    assert ids_found("tests", project="nobody") == set()


def test_an_unknown_type_is_refused() -> None:
    """With the types that there are."""
    with pytest.raises(Invalid, match="obs_type: must be one of file_read"):
        search_observations(empty(), "a", obs_type="file_reed")


def test_pages_follow_each_other() -> None:
    """Limit and offset go through all matches once, in both orders."""
    connection = filled(*(event(content=f"cargo {'x ' * number}", timestamp=NOW - number * DAY) for number in range(9)))
    for order in ("relevance", "blended"):
        pages = [
            search_observations(connection, "cargo", limit=4, offset=start, order_by=order, now=NOW)
            for start in (0, 4, 8, 12)
        ]
        assert [len(page) for page in pages] == [4, 4, 1, 0]
        assert {row["id"] for page in pages for row in page} == set(range(1, 10))


def test_relevance_does_not_mind_age() -> None:
    """The denser match comes first."""
    connection = filled(
        event(content="cargo and very many other words", timestamp=NOW),
        event(content="cargo", timestamp=NOW - 99 * DAY),
    )
    assert [row["id"] for row in search_observations(connection, "cargo")] == [2, 1]


def test_blended_prefers_the_newer_of_two_alike() -> None:
    """0.7 of relevance, 0.3 of recency with a half-life of seven days: among equals the newest, but a much better match
    still wins."""
    connection = filled(
        event(content="cargo test", timestamp=NOW - 30 * DAY),
        event(content="cargo test", timestamp=NOW - DAY),
        event(content="cargo " + "word " * 200, timestamp=NOW),
        event(content="unrelated", timestamp=NOW),
    )
    assert [row["id"] for row in search_observations(connection, "cargo", order_by="blended", now=NOW)] == [2, 1, 3]


def many(rows: int) -> sqlite3.Connection:
    """As many as a busy month brings, four of five in one project."""
    connection = filled(event())
    facts = ((f"cargo test word{n % 997} part{n % 31}", NOW + n, "app" if n % 5 else "other") for n in range(rows))
    connection.execute("BEGIN")
    connection.executemany(
        (
            "INSERT INTO observations (session_id, obs_type, content, timestamp, "
            "project) VALUES ('s1', 'command', ?, ?, ?)"
        ),
        facts,
    )
    connection.execute("COMMIT")
    return connection


def median(work: Callable[[str], object]) -> float:
    times = []
    for number in range(15):
        began = time.thread_time()
        work(f"part{number}")
        times.append(time.thread_time() - began)
    return statistics.median(times)


def test_search_costs_little_more_than_the_index_alone() -> None:
    """At 50,000 rows, with the caller's project as a filter, the median stays near that of the bare full-text query."""
    connection = many(50_000)
    bare = "SELECT rowid FROM observations_fts WHERE observations_fts MATCH ? ORDER BY rank LIMIT 20"
    ratios = (
        median(lambda word: search_observations(connection, word, project="app"))
        / median(lambda word: connection.execute(bare, (word,)).fetchall())
        for _ in range(3)
    )
    assert any(ratio <= 1.5 for ratio in ratios)


def test_a_question_finds_what_has_some_of_its_words() -> None:
    """Nothing has all of them: the best by any telling word, marked; whoever writes an operator means it."""
    connection = filled(*HISTORY)
    rows = search_observations(connection, "how did we fix the cargo zebra?")
    assert rows and all(row["partial"] is True and "cargo" in row["content_preview"] for row in rows)
    assert search_observations(connection, "cargo AND zebra") == []
    assert search_observations(connection, '"cargo zebra"') == []
    assert search_observations(connection, "the cargo zebra") == []
    assert not any("partial" in row for row in search_observations(connection, "cargo"))
    assert search_observations(connection, "a cargo zebra fox", order_by="blended", now=0.0)[0]["partial"] is True


def test_pages_of_a_question_follow_each_other() -> None:
    """What has all the words comes first; page by page nothing is missing or twice."""
    connection = filled(*(event("command", text, NOW + place) for place, text in enumerate(PAGED)))
    query = "alpha beta gamma delta"
    whole = search_observations(connection, query, limit=50)
    assert [row.get("partial", False) for row in whole] == [False] * 2 + [True] * 5
    pages = [row for offset in range(0, 9, 2) for row in search_observations(connection, query, limit=2, offset=offset)]
    assert pages == whole


PAGED = ["alpha beta gamma delta", "delta gamma beta alpha", *(f"alpha number{number}" for number in range(5))]


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


def test_recent_weighs_recency_and_kind() -> None:
    """Without a project: 0.6 recency, 0.4 kind; half after seven days."""
    connection = filled(
        event("command", timestamp=NOW - 7 * DAY), event("mcp_call", timestamp=NOW), edit("/a.py", NOW - 14 * DAY)
    )
    rows = recent_observations(connection, project=None, now=NOW)
    assert [(row["obs_type"], row["score"]) for row in rows] == [
        ("mcp_call", round(0.6 + 0.4 * 0.33, 6)),
        ("command", round(0.3 + 0.4 * 0.67, 6)),
        ("file_edit", round(0.15 + 0.4, 6)),
    ]


def test_recent_prefers_the_project_and_does_not_exclude_others() -> None:
    """0.5 recency, 0.3 kind, 0.2 project; another project counts 0.3 of that."""
    connection = filled(event(content="theirs", project="other"), event(content="mine", timestamp=NOW - DAY))
    rows = recent_observations(connection, project="app", now=NOW)
    assert [row["content"] for row in rows] == ["mine", "theirs"]
    assert rows[0]["score"] == pytest.approx(0.5 * 2 ** (-1 / 7) + 0.3 * 0.67 + 0.2, abs=1e-6)
    assert rows[1]["score"] == pytest.approx(0.5 + 0.3 * 0.67 + 0.06, abs=1e-6)


def test_recent_tells_each_file_once() -> None:
    """By its best row; what has no file is never a duplicate."""
    connection = filled(read("/a.py"), edit("/a.py", NOW - DAY), event(), event())
    rows = recent_observations(connection, project="app", now=NOW)
    assert [row["obs_type"] for row in rows] == ["file_edit", "command", "command"]


def test_recent_is_what_sorting_everything_would_give() -> None:
    """Reading only what could win loses nothing."""
    kinds = ("file_edit", "command", "search", "session_compact", "mcp_call", "git_commit")
    projects, paths = ("app", "other", None), (None, "/a", "/b", None, "/c")
    result = [
        event(kinds[n % 6], f"{n}", NOW - (n * 7_919) % (40 * DAY), project=projects[n % 3], file_path=paths[n % 5])
        for n in range(300)
    ]
    connection = filled(*result)
    everything = [found for number in range(1, 301) for found in queries.get(connection, [number])]
    everything.sort(key=lambda row: (-_score(row), -row["timestamp"], -row["id"]))
    best = {row["file_path"] or row["id"]: row for row in reversed(everything)}
    expected = [row for row in everything if best[row["file_path"] or row["id"]] is row]
    assert ids(recent_observations(connection, project="app", now=NOW, limit=50)) == ids(expected[:50])


def _score(row: dict[str, Any]) -> float:
    weight = {"file_edit": 1.0, "command": 0.67, "session_compact": 0.5, "mcp_call": 0.33}.get(row["obs_type"], 0.17)
    recency: float = 2 ** (-(NOW - row["timestamp"]) / (7 * DAY))
    return 0.5 * recency + 0.3 * weight + 0.2 * (1.0 if row["project"] == "app" else 0.3)


def test_a_project_without_observations_has_no_recent_context() -> None:
    """Nothing, rather than what happened elsewhere."""
    assert recent_observations(filled(event()), project="unheard-of", now=NOW) == []
    assert recent_observations(empty(), project=None, now=NOW) == []


def test_search_leaves_out_calls_of_nudge() -> None:
    """Its tools by whatever name a client has for the server, lines that run only its command, and ends of a turn
    without words. A line that does something else too is found, and so is a call when calls are asked for."""
    connection = filled(
        event("mcp_call", "nudge/memory_recall query=cargo", NOW),
        event("mcp_call", "plugin_nudge_nudge/search query=cargo", NOW + 1),
        event("mcp_call", "github/search query=cargo", NOW + 2),
        event("command", "nudge search cargo", NOW + 3),
        event("command_error", "nudge get api cargo | head", NOW + 4),
        event("command", "nudge get api cargo && cargo test", NOW + 5),
        event("session_stop", "stop cargo", NOW + 6),
        event("session_stop", "stop", NOW + 7, metadata={"last_words": "cargo is green"}, session_id="s2"),
    )
    assert {row["id"] for row in search_observations(connection, "cargo")} == {3, 6, 8}
    blended = search_observations(connection, "cargo", order_by="blended", now=NOW)
    assert {row["id"] for row in blended} == {3, 6, 8}
    assert {row["id"] for row in search_observations(connection, "cargo", obs_type="mcp_call")} == {1, 2, 3}


@pytest.mark.parametrize(
    "line",
    [
        "cd /repo && nudge search cargo",
        'nudge set api test "cd api && cargo test"',
        "NUDGE_PORT=9000 .venv/bin/nudge search cargo 2>&1 | tail -5",
        "uv run nudge remember 'cargo is slow; use sccache'",
        "nudge recall cargo || true",
    ],
)
def test_search_leaves_out_every_line_that_only_asks_nudge(line: str) -> None:
    """Wherever it stands in the line, by whatever path; what is quoted is no command."""
    assert search_observations(filled(event("command", line, NOW)), "cargo") == []


@pytest.mark.parametrize("line", ["eval $(nudge get api cargo)", "cargo run --bin nudge", "grep nudge cargo.toml"])
def test_search_finds_lines_that_do_something_else(line: str) -> None:
    """Naming Nudge is no call of it."""
    assert len(search_observations(filled(event("command", line, NOW)), "cargo")) == 1


def test_a_hit_in_the_error_has_its_text() -> None:
    """Where the words are in the error and not in the command; a hit in the command has none."""
    error = f"{'noise ' * 80}ModuleNotFoundError: No module named yaml {'more ' * 80}"
    connection = filled(
        event("command_error", "make test", NOW, metadata={"error": error}),
        event("command", "pip install yaml", NOW + 1),
        event("session_stop", "stop", NOW + 2, metadata={"last_words": "yaml is installed"}),
    )
    rows = search_observations(connection, "yaml")
    add_found_texts(connection, "yaml", rows)
    texts = {row["id"]: row.get("found_text") for row in rows}
    assert "No module named yaml" in str(texts[1]) and len(str(texts[1])) < 300
    assert texts[2] is None and texts[3] == "yaml is installed"


def test_recent_work() -> None:
    """Commits, failures, edits and prompts of the project, newest first, each file once; no `echo`, `ls`, `sleep`."""
    connection = filled(
        event("command", "make test", NOW),
        event("command_error", "make lint", NOW + 1),
        event("command_error", "ls /nowhere", NOW + 2),
        event("command_error", "cd /nowhere && ls -l 2>&1 | head", NOW + 3),
        edit("/a.py", NOW + 4),
        edit("/a.py", NOW + 5),
        event("git_commit", "git commit -m x", NOW + 6),
        event("user_prompt", "go on", NOW + 7),
        event("git_commit", "git commit -m y", NOW + 8, project="other"),
        read("/b.py", NOW + 9),
        event("session_start", "startup", NOW + 10),
    )
    rows = recent_work(connection, project="app", now=NOW, limit=10)
    assert [row["id"] for row in rows] == [8, 7, 6, 2] and all("score" in row for row in rows)
    assert [row["id"] for row in recent_work(connection, project="app", now=NOW, limit=2)] == [8, 7]
    everywhere = recent_work(connection, project=None, now=NOW, limit=10, hidden=frozenset({"app"}))
    assert [row["id"] for row in everywhere] == [9]
