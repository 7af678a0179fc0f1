"""Recording: once, in the right session, under the right prompt."""

from __future__ import annotations

import itertools
import json
import random
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from nudge.core.errors import Invalid
from nudge.history import queries, sessions, store, traces
from tests.unit.history.stored import NOW, edit, empty, event, filled, prompt, read, rows


def orders(events: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """As they happened, the other way round, and shuffled."""
    yield events
    yield events[::-1]
    chance = random.Random(7)
    yield from (chance.sample(events, len(events)) for _ in range(15))


def test_an_event_is_recorded_once() -> None:
    """A replay, from a spool or from a second hook, changes nothing and says so."""
    connection = empty()
    result = event(event_id="same")
    assert store.insert_event(connection, result) == 1
    assert store.insert_event(connection, {**result, "content": "something else"}) is None
    assert rows(connection, "content") == ["make test"]


def test_every_field_comes_back() -> None:
    """What was told is what is kept, metadata included."""
    connection = empty()
    result = event(
        tool_name="Bash",
        file_path="/a/b.py",
        metadata={"exit_code": 2, "nested": {"é": [1, None]}},
        agent_id="sub-1",
        branch="dev",
        clone="/a",
    )
    identity = store.insert_event(connection, result)
    assert identity is not None
    assert queries.get(connection, [identity]) == [
        {
            "id": identity,
            "timestamp": NOW,
            "session_id": "s1",
            "prompt_id": None,
            "project": "app",
            "obs_type": "command",
            "source_event": "PostToolUse",
            "tool_name": "Bash",
            "content": "make test",
            "file_path": "/a/b.py",
            "metadata": {"exit_code": 2, "nested": {"é": [1, None]}, "agent_id": "sub-1"},
            "is_pinned": False,
            "branch": "dev",
            "clone": "/a",
        }
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("event_id", ""),
        ("event_id", None),
        ("event_id", "x" * 200),
        ("session_id", 7),
        ("timestamp", "soon"),
        ("timestamp", True),
        ("timestamp", -1),
        ("timestamp", float("nan")),
        ("type", "nonsense"),
        ("type", None),
        ("content", ["a"]),
        ("file_path", 3),
        ("metadata", "text"),
        ("metadata", {"a": "x" * 20_000}),
        ("metadata", {"a": float("nan")}),
        ("metadata", {"a": {1, 2}}),
    ],
)
def test_a_malformed_event_is_refused_by_field(field: str, value: Any) -> None:
    """Whoever sends it learns which field is wrong; nothing of it is kept."""
    connection = empty()
    with pytest.raises(Invalid) as refused:
        store.insert_event(connection, {**event(), field: value})
    assert refused.value.field == field
    assert rows(connection, "*", "events") == []


def test_any_text_can_be_stored() -> None:
    """Halves of surrogate pairs and NULs, which JSON can spell, do not break the store."""
    connection = filled(event(content="a\ud800b\0c", metadata={"x": "\udfff"}))
    assert queries.get(connection, [1])[0]["content"] == "a?bc"


def test_long_text_is_cut() -> None:
    """A prompt at 2,000 characters, anything else at its own limit: the history is not a place for files."""
    connection = filled(prompt("p" * 9_000), event(content="c" * 9_000))
    assert rows(connection, "length(content)", "prompts") == [2_000]
    assert rows(connection, "length(content)") == [2_000, 4_096]


# Deduplication


@pytest.mark.parametrize("later", [0, 1, 300, -300])
def test_a_repeated_read_within_five_minutes_is_one(later: int) -> None:
    """Whichever of the two arrives first."""
    connection = filled(read("/a.py"), read("/a.py", NOW + later))
    assert len(rows(connection, "id")) == 1


@pytest.mark.parametrize(
    "other",
    [
        read("/a.py", NOW + 301),
        read("/b.py"),
        read("/a.py", session_id="s2"),
        edit("/a.py"),
    ],
)
def test_a_different_read_is_another(other: dict[str, Any]) -> None:
    """Another file, session, kind, or a time more than five minutes apart."""
    connection = filled(read("/a.py"), other)
    assert len(rows(connection, "id")) == 2


def test_only_reads_and_searches_are_deduplicated() -> None:
    """A command that is run twice happened twice."""
    connection = filled(event(), event(), edit("/a.py"), edit("/a.py"))
    assert len(rows(connection, "id")) == 4


def test_searches_repeat_by_what_they_look_for() -> None:
    """Two patterns in one directory are two searches."""
    twice = [event("search", text, file_path="/src") for text in ("TODO in /src", "FIXME in /src", "TODO in /src")]
    assert rows(filled(*twice), "content") == ["FIXME in /src", "TODO in /src"]


def test_a_repeat_is_known_by_its_id_all_the_same() -> None:
    """Its replay after the window does not become an observation."""
    connection = filled(read("/a.py"), read("/a.py", event_id="again"))
    assert store.insert_event(connection, read("/a.py", NOW + 999, event_id="again")) is None


# Prompts


def linked(*events: dict[str, Any]) -> dict[str, str | None]:
    """Each action's content, and the prompt it belongs to."""
    result = filled(*events).execute(
        "SELECT o.content, p.content FROM observations AS o LEFT JOIN prompts AS p ON p.id = "
        "o.prompt_id WHERE o.obs_type <> 'user_prompt'"
    )
    return dict(result.fetchall())


def test_actions_follow_the_prompt_that_their_client_names() -> None:
    """Whatever the times say, and in whatever order they arrive: a subagent acts on after the next prompt."""
    result = [
        prompt("first", NOW, "p1"),
        prompt("second", NOW + 10, "p2"),
        event(content="late", timestamp=NOW + 20, prompt_id="p1"),
        event(content="own", timestamp=NOW + 21, prompt_id="p2"),
    ]
    for order in orders(result):
        assert linked(*order) == {"late": "first", "own": "second"}


def test_actions_without_a_name_follow_the_latest_prompt_before_them() -> None:
    """By time, never by arrival."""
    result = [
        event(content="before", timestamp=NOW - 1),
        prompt("first", NOW),
        event(content="a", timestamp=NOW + 1),
        prompt("second", NOW + 10),
        event(content="b", timestamp=NOW + 11),
        event(content="c", timestamp=NOW + 99),
    ]
    for order in orders(result):
        assert linked(*order) == {"before": None, "a": "first", "b": "second", "c": "second"}


def test_events_of_one_second_belong_to_the_prompt_before_them() -> None:
    """Times are whole seconds: within one of them, the order of arrival says which prompt came before."""
    result = [prompt("one"), event(content="a"), prompt("two"), event(content="b"), event(content="c")]
    assert linked(*result) == {"a": "one", "b": "two", "c": "two"}
    assert linked(event(content="early"), prompt("one")) == {"early": "one"}


def test_a_name_nobody_knows_falls_back_to_time() -> None:
    """Prompts of the client's own making are not recorded, but what they lead to is."""
    assert linked(prompt("typed", NOW, "p1"), event(content="a", timestamp=NOW + 5, prompt_id="unknown")) == {
        "a": "typed"
    }


def test_events_of_the_session_belong_to_no_prompt() -> None:
    """A start, a compaction or an end is nobody's wish."""
    result = [
        prompt("do it", NOW, "p"),
        *(event(kind, kind, NOW + 1, prompt_id="p") for kind in ("session_compact", "session_end")),
    ]
    assert linked(*result) == {"session_compact": None, "session_end": None}


def test_prompts_of_another_session_are_not_mine() -> None:
    """Two agents at once do not share their prompts."""
    assert linked(prompt("other", NOW, session_id="s2"), event(content="a", timestamp=NOW + 1)) == {"a": None}


def test_a_project_has_one_spelling() -> None:
    """However a client or a script writes it."""
    connection = filled(event(project="PayRoll"), event(project="payroll", session_id="s2"))
    assert rows(connection, "project") == rows(connection, "project", "sessions") == ["payroll", "payroll"]


# Sessions


def session(*events: dict[str, Any], columns: str = "started_at, ended_at") -> Any:
    return rows(filled(*events), columns, "sessions")[0]


def test_a_session_begins_with_its_earliest_event() -> None:
    """Whatever that is, and whenever it arrives."""
    assert session(event(timestamp=NOW), event("session_start", "startup", NOW - 50)) == (NOW - 50, None)


def test_a_session_ends_with_its_end() -> None:
    """Also when events from before the end arrive after it."""
    result = [event(timestamp=NOW), event("session_end", "other", NOW + 9), event(timestamp=NOW + 5)]
    for order in orders(result):
        assert session(*order) == (NOW, NOW + 9)


def test_a_resumed_session_goes_on() -> None:
    """What happens after an end undoes the end, in whatever order the two arrive."""
    end, resumed = event("session_end", "other", NOW + 9), event("session_start", "resume", NOW + 20)
    assert session(event(), end, resumed) == (NOW, None)
    assert session(event(), resumed, end) == (NOW, None)


def test_facts_are_filled_in_by_later_events() -> None:
    """The first to know the repository tells it; nobody overwrites what is known."""
    result = [
        event(project=None, repo=None, cwd=None, client="unknown"),
        event(),
        event(project="other", repo="git:x/y", client="codex"),
    ]
    assert session(*result, columns="project, repo, cwd, client") == ("app", "git:acme/app", "/work/app", "claude-code")


def test_a_session_that_fell_silent_is_closed_when_another_begins() -> None:
    """A kill says no goodbye: twelve hours without an event are an end, at the time of its last event."""
    connection = filled(event(), event(timestamp=NOW + 60), event(timestamp=NOW + 60 + 12 * 3_600, session_id="s2"))
    assert rows(connection, "id, ended_at", "sessions") == [("s1", None), ("s2", None)]
    store.insert_event(connection, event(timestamp=NOW + 61 + 12 * 3_600, session_id="s3"))
    assert rows(connection, "id, ended_at", "sessions") == [("s1", NOW + 60), ("s2", None), ("s3", None)]


# Summaries

A_SESSION = [
    event("session_start", "startup", NOW),
    prompt("hello", NOW + 1, "p0"),
    prompt("fix the\n  login bug", NOW + 2, "p1"),
    edit("/src/auth.py", NOW + 3, prompt_id="p1"),
    event("command_error", "make test", NOW + 4, prompt_id="p1", metadata={"exit_code": 2}),
    event("command_error", "make lint", NOW + 5, prompt_id="p1", metadata={"exit_code": 1}),
    edit("/src/token.py", NOW + 6, prompt_id="p1"),
    event("command", "make test", NOW + 7, prompt_id="p1", metadata={"exit_code": 0}),
    event("command", "make lint", NOW + 8, prompt_id="p1", metadata={"exit_code": None}),
    event("git_commit", "git commit -m fix", NOW + 9, prompt_id="p1", metadata={"commit": "abc1234", "exit_code": 0}),
    event("session_end", "other", NOW + 10),
]
THE_SUMMARY = {
    "intent": "fix the login bug",
    "files": ["/src/auth.py", "/src/token.py"],
    "failed": [{"command": "make test", "id": 5, "passed": 8}, {"command": "make lint", "id": 6, "passed": None}],
    "commits": [{"id": 10, "hash": "abc1234", "command": "git commit -m fix"}],
    "counts": {
        "command": 2,
        "command_error": 2,
        "file_edit": 2,
        "git_commit": 1,
        "session_end": 1,
        "session_start": 1,
        "user_prompt": 2,
    },
}


def test_the_end_sums_a_session_up() -> None:
    """What was wanted, touched, broken, repaired, committed; a prompt without actions is no intent, an unknown outcome
    no repair."""
    connection = filled(*A_SESSION)
    assert json.loads(rows(connection, "summary", "sessions")[0]) == THE_SUMMARY


@pytest.mark.parametrize(
    ("failed", "passed", "is_repaired"),
    [
        ("pytest -q", "uv run pytest -q", True),
        ("python3 -m pytest tests/a.py", "make test", True),
        ("make test", "uv run pytest tests/a.py", False),
        ("pytest", "pytest | tail -1", False),
        ("make lint", "make test", False),
    ],
)
def test_a_job_that_passed_with_another_command_is_repaired(failed: str, passed: str, is_repaired: bool) -> None:
    """As what the next session is told; a pipe that hides a failure repairs nothing."""
    hidden = {"error": "1 failed, 2 passed in 0.12s"} if "|" in passed else {}
    connection = filled(
        prompt("fix it", NOW, "p"),
        event("command_error", failed, NOW + 1, metadata={"exit_code": 1}),
        event("command", passed, NOW + 2, metadata={"exit_code": 0, **hidden}),
    )
    result = traces.trace(connection, "s1")["summary"]["failed"]
    assert result == [{"command": failed, "id": 2, "passed": 3 if is_repaired else None}]


def test_a_living_session_is_summed_up_on_demand() -> None:
    """Whoever asks before the end sees what there is so far."""
    connection = filled(*A_SESSION[:-1])
    assert rows(connection, "summary", "sessions") == [None]
    assert traces.trace(connection, "s1")["summary"]["intent"] == "fix the login bug"


def test_what_arrives_after_the_end_is_summed_up_too() -> None:
    """A late event, out of the spool, makes the summary anew."""
    connection = filled(*A_SESSION)
    store.insert_event(connection, edit("/src/late.py", NOW + 8, prompt_id="p1"))
    assert traces.trace(connection, "s1")["summary"]["files"] == [
        "/src/auth.py",
        "/src/token.py",
        "/src/late.py",
    ]
    assert sessions.close_silent_sessions(connection, NOW) == 1
    assert "/src/late.py" in rows(connection, "summary", "sessions")[0]


def steps(connection: sqlite3.Connection, events: list[dict[str, Any]]) -> int:
    """Of SQLite's machine, to record them: a measure of work that no busy computer disturbs."""
    taken = itertools.count()
    connection.set_progress_handler(lambda: next(taken) and 0, 1)
    for row in events:
        store.insert_event(connection, row)
    connection.set_progress_handler(None, 1)
    return next(taken)


def test_recording_costs_the_same_however_long_the_history_is() -> None:
    """A session from its start to its summary, before and after others have filled the store."""
    kinds = ("command", "command_error", "git_commit", "file_edit", "file_read", "search")
    others = [
        event(kinds[n % 6], f"{n}", NOW - 9_999 + n, session_id=f"o{n // 500}", file_path="/a") for n in range(2_000)
    ]
    few, many = filled(*others[:100]), filled(*others)
    few.execute("UPDATE sessions SET summary = '{}'")
    many.execute("UPDATE sessions SET summary = '{}'")
    assert steps(many, A_SESSION) < 1.2 * steps(few, A_SESSION)


# Pins and injections


def test_pins_are_set_and_taken_back() -> None:
    """What does not exist is not among the answer."""
    connection = filled(event(), event())
    assert store.set_pinned(connection, [2, 99, 2], True) == [2]
    assert [row["is_pinned"] for row in queries.get(connection, [1, 2])] == [False, True]
    assert store.set_pinned(connection, [2], False) == [2]
    assert rows(connection, "is_pinned") == [0, 0]


def test_what_a_session_was_told_is_kept_with_it() -> None:
    """An injection may come before the session's first event."""
    connection = empty()
    store.store_injection(connection, "s1", NOW + 0.7, [{"id": 3, "kind": "observation"}], "# records")
    store.insert_event(connection, event())
    assert traces.trace(connection, "s1")["injections"] == [
        {"id": 1, "timestamp": NOW, "items": [{"id": 3, "kind": "observation"}], "text": "# records"}
    ]
