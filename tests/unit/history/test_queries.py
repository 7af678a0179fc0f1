"""Reading observations: by id, around one of them, by session, by file."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.errors import Invalid, NotFound
from nudge.history import queries, store, traces
from nudge.history.purge import Conditions, purge_observations
from nudge.history.summary import summarize
from nudge.storage.sqlite import match_texts
from tests.unit.history.stored import NOW, edit, empty, event, filled, prompt, read, rows


def ids(found: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in found]


# get


def test_observations_come_in_the_order_of_asking() -> None:
    """Those that are missing, retention may have deleted them, are left out."""
    connection = filled(event(), event(), event())
    assert ids(queries.get(connection, [3, 99, 1])) == [3, 1]
    assert queries.get(connection, [98, 99]) == []


def test_no_ids_are_an_error() -> None:
    """Whoever asks for nothing made a mistake."""
    with pytest.raises(Invalid) as refused:
        queries.get(empty(), [])
    assert refused.value.message == "ids array must not be empty"


def test_fifty_ids_are_the_most() -> None:
    """More are asked for in several calls."""
    assert queries.get(empty(), list(range(50))) == []
    with pytest.raises(Invalid, match="ids: must have at most 50 items"):
        queries.get(empty(), list(range(51)))


# timeline


def test_a_timeline_is_in_the_order_of_time() -> None:
    """Of the anchor's session only, and not in the order of arrival."""
    connection = filled(
        *(event(content=f"{number}", timestamp=NOW + number) for number in (3, 1, 5, 2, 4)),
        event(content="x", timestamp=NOW + 2, session_id="s2"),
    )
    around = queries.timeline(connection, 1, 1, 5)
    assert around["anchor"]["content"] == "3"
    assert [row["content"] for row in around["before"]] == ["2"]
    assert [row["content"] for row in around["after"]] == ["4", "5"]


def test_an_anchor_alone_has_nothing_around_it() -> None:
    """Empty lists, not an error."""
    around = queries.timeline(filled(event()), 1)
    assert (around["anchor"]["id"], around["before"], around["after"]) == (1, [], [])


def test_an_anchor_that_does_not_exist_is_an_error() -> None:
    """There is nothing to look around."""
    with pytest.raises(NotFound) as missing:
        queries.timeline(empty(), 7)
    assert missing.value.message == "anchor observation not found: 7"


# trace


def traced() -> sqlite3.Connection:
    return filled(
        event("session_start", "startup", NOW),
        prompt("Fix the login bug", NOW + 10, "p1"),
        read("/src/auth.py", NOW + 20, prompt_id="p1"),
        edit("/src/auth.py", NOW + 30, prompt_id="p1"),
        prompt("thanks", NOW + 40, "p2"),
        event("session_end", "other", NOW + 50),
    )


def test_a_trace_tells_each_prompt_with_its_actions() -> None:
    """What belongs to no prompt stands where it happened, under the system's name."""
    result = traces.trace(traced(), "s1")
    about = [result[name] for name in ("session_id", "project", "started_at", "ended_at")]
    assert about == ["s1", "app", NOW, NOW + 50]
    shape = [
        (entry["source"], entry["prompt_id"], entry["content"], entry["observation_count"])
        for entry in result["prompts"]
    ]
    assert shape == [
        ("system", None, "", 1),
        ("user", 1, "Fix the login bug", 2),
        ("user", 2, "thanks", 0),
        ("system", None, "", 1),
    ]
    assert result["prompts"][1]["observations"][0] == {
        "id": 3,
        "timestamp": NOW + 20,
        "obs_type": "file_read",
        "file_path": "/src/auth.py",
        "content_preview": "/src/auth.py",
        "is_pinned": False,
    }


def test_a_trace_is_in_order_within_a_second() -> None:
    """A session begins before its first prompt, also when both came at once; what followed the prompt follows it."""
    connection = filled(
        event("session_start", "startup", NOW), prompt("now", NOW, "p"), event("session_end", "other", NOW)
    )
    assert [entry["source"] for entry in traces.trace(connection, "s1")["prompts"]] == [
        "system",
        "user",
        "system",
    ]


def test_a_window_holds_for_prompts_and_observations_alike() -> None:
    """A prompt inside stays, without the observations outside."""
    result = traces.trace(traced(), "s1", before=NOW + 30, after=NOW)
    assert [(entry["content"], entry["observation_count"]) for entry in result["prompts"]] == [("Fix the login bug", 1)]


def test_a_long_trace_comes_in_parts() -> None:
    """`more` says that there is a rest; what is after the latest time shown is all of it, in the prompts it belongs
    to. A second is not cut, unless it alone has more than the limit."""
    events = [prompt("go", NOW, "p"), *(event("command", f"c{n}", NOW + 1 + n // 3, prompt_id="p") for n in range(30))]
    connection = filled(*events)
    shown: list[str] = []
    after, more = None, True
    while more:
        trace = traces.trace(connection, "s1", after=after, limit=7)
        [entry] = trace["prompts"]
        assert entry["content"] == "go" and len(entry["observations"]) <= 7
        shown += [row["content_preview"] for row in entry["observations"]]
        after, more = entry["observations"][-1]["timestamp"], trace.get("more", False)
    assert shown == [f"c{n}" for n in range(30)]
    assert "more" not in traces.trace(connection, "s1", limit=31)
    crowded = filled(*(event("command", f"c{n}", NOW) for n in range(9)))
    trace = traces.trace(crowded, "s1", limit=4)
    assert trace["more"] and trace["prompts"][0]["observation_count"] == 4


def test_a_trace_has_a_default_limit() -> None:
    """Twenty thousand commands would be megabytes in one answer."""
    connection = filled(*(event("command", f"c{n}", NOW + n) for n in range(limits.DEFAULT_TRACE_LIMIT + 1)))
    trace = traces.trace(connection, "s1")
    assert trace["more"] and trace["prompts"][0]["observation_count"] == limits.DEFAULT_TRACE_LIMIT


def test_an_empty_window_has_no_prompts() -> None:
    """The session exists all the same."""
    assert traces.trace(traced(), "s1", after=NOW + 999)["prompts"] == []


def test_an_unknown_session_is_an_error() -> None:
    """It is named in the sentence."""
    with pytest.raises(NotFound) as missing:
        traces.trace(empty(), "nope")
    assert missing.value.message == "session not found: nope"


# file_history


def test_a_file_has_a_biography() -> None:
    """By session, the latest first, each touch with the human wish behind it."""
    connection = traced()
    store.insert_event(connection, edit("/src/auth.py", NOW + 500, session_id="s2", project="other"))
    result = queries.file_history(connection, "/src/auth.py")
    assert [(row["session_id"], row["project"], row["summary_intent"]) for row in result["sessions"]] == [
        ("s2", "other", None),
        ("s1", "app", "Fix the login bug"),
    ]
    assert result["sessions"][1]["started_at"] == NOW
    assert result["sessions"][1]["touches"][1] == {
        "observation_id": 4,
        "timestamp": NOW + 30,
        "obs_type": "file_edit",
        "content_preview": "/src/auth.py",
        "prompt_content": "Fix the login bug",
        "is_pinned": False,
    }


def test_a_biography_is_bounded() -> None:
    """The latest touches count; both ends of the window are outside it."""
    connection = filled(*(edit("/a.py", NOW + number) for number in range(5)))
    latest = queries.file_history(connection, "/a.py", limit=2)["sessions"][0]["touches"]
    assert [touch["timestamp"] for touch in latest] == [NOW + 3, NOW + 4]
    inside = queries.file_history(connection, "/a.py", before=NOW + 3, after=NOW)["sessions"][0]["touches"]
    assert [touch["timestamp"] for touch in inside] == [NOW + 1, NOW + 2]


def test_a_change_of_several_files_is_in_the_biography_of_each() -> None:
    """And in the summary of its session; each once, also when a change names one twice."""
    files = ["/a.py", "/b.py", "/b.py", "/c.py"]
    connection = filled(edit("/a.py", NOW, metadata={"files": files}), edit("/b.py", NOW + 1), event(timestamp=NOW + 2))
    result = {
        path: queries.file_history(connection, path)["sessions"][0]["touches"] for path in ("/a.py", "/b.py", "/c.py")
    }
    assert {path: [touch["observation_id"] for touch in touches] for path, touches in result.items()} == {
        "/a.py": [1],
        "/b.py": [1, 2],
        "/c.py": [1],
    }
    assert queries.file_history(connection, "/c.py", after=NOW)["sessions"] == []
    assert len(queries.file_history(connection, "/b.py", limit=1)["sessions"][0]["touches"]) == 1
    assert summarize(connection, "s1")["files"] == ["/a.py", "/b.py", "/c.py"]
    purge_observations(connection, Conditions(now=NOW, ids=[1]), NOW, match_texts)
    assert (
        queries.file_history(connection, "/c.py")["sessions"] == []
        and rows(connection, "file_path", "touched_files") == []
    )


def test_an_unknown_file_has_no_sessions() -> None:
    """Not an error: nobody touched it."""
    assert queries.file_history(traced(), "/nowhere") == {"file_path": "/nowhere", "sessions": []}


# sessions, stats, export


def test_sessions_are_listed_latest_first() -> None:
    """All projects unless one is named; the beginning of an id is enough to find one."""
    connection = filled(
        event(session_id="abc"), event(session_id="abd", timestamp=NOW + 9, project="other"), event(session_id="abc")
    )
    result = queries.sessions(connection)
    assert [row["session_id"] for row in result] == ["abd", "abc"]
    assert (result[1]["observation_count"], result[1]["last_event_at"], result[1]["client"]) == (2, NOW, "claude-code")
    assert [row["session_id"] for row in queries.sessions(connection, project="app")] == ["abc"]
    assert [row["session_id"] for row in queries.sessions(connection, prefix="abd")] == ["abd"]
    assert queries.sessions(connection, prefix="ab_") == []
    assert [row["session_id"] for row in queries.sessions(connection, limit=1, offset=1)] == ["abc"]


def test_an_export_page_by_page_holds_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row of every kind, whatever the size of a page."""
    monkeypatch.setattr(limits, "EXPORT_PAGE", 2)
    connection = traced()
    store.store_injection(connection, "s1", NOW, [1], "told")
    result: list[dict[str, Any]] = []
    place: str | None = None
    while True:
        page = queries.export(connection, place)
        result += page["rows"]
        place = page["next"]
        if place is None:
            break
    kinds = [row["kind"] for row in result]
    assert kinds == ["session"] + ["prompt"] * 2 + ["observation"] * 6 + ["injection"]
    assert [row["id"] for row in result if row["kind"] == "observation"] == [1, 2, 3, 4, 5, 6]
    assert result[0]["summary"]["intent"] == "Fix the login bug"


def test_an_export_page_stays_below_what_a_call_may_carry() -> None:
    """However large the rows are, and at least one row a page."""
    connection = empty()
    for number in range(300):
        error = "e" * 15_000
        store.insert_event(connection, event("command_error", f"{number} " + "x" * 4_000, metadata={"error": error}))
    ids: list[int] = []
    place: str | None = "observation:0"
    while place is not None and place.startswith("observation"):
        page = queries.export(connection, place)
        assert 0 < len(json.dumps(page)) < limits.MAX_BODY_BYTES
        ids += [row["id"] for row in page["rows"]]
        place = page["next"]
    assert ids == list(range(1, 301))


@pytest.mark.parametrize("place", ["nonsense", "observation:", "observation:x", "observation:" + "9" * 30])
def test_an_export_goes_on_only_from_a_place_it_named(place: str) -> None:
    """Anything else is an error, not a page."""
    with pytest.raises(Invalid, match="after: "):
        queries.export(empty(), place)
