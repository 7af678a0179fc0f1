"""Deleting: what a person asks to be gone is gone, and what has outlived its retention."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.history import queries, store, traces
from nudge.history.observations import RETENTION_DAYS, TYPES
from nudge.history.purge import Conditions, count_observations, purge_observations, sweep_observations
from nudge.storage import migrations
from nudge.storage.sqlite import check, match_texts, open_writable, scrub
from tests.unit.history.stored import DAY, NOW, edit, event, filled, prompt, rows

MARKER = "xyzzyplugh"


def purged(connection: sqlite3.Connection, **conditions: Any) -> dict[str, Any]:
    return purge_observations(connection, Conditions(now=NOW, **conditions), NOW, match_texts)


def varied() -> sqlite3.Connection:
    return filled(
        event(content="one", timestamp=NOW - 9 * DAY),
        event("search", "two", NOW - 5 * DAY),
        event(content="three", project="other", session_id="s2"),
        edit("/four", NOW),
    )


@pytest.mark.parametrize(
    ("conditions", "left"),
    [
        ({"before": NOW - 5 * DAY}, [2, 3, 4]),
        ({"project": "other"}, [1, 2, 4]),
        ({"session": "s1"}, [3]),
        ({"ids": [1, 4, 99]}, [2, 3]),
        ({"ids": []}, [1, 2, 3, 4]),
        ({"obs_type": "command"}, [2, 4]),
        ({"obs_type": "command", "older_than": 7}, [2, 3, 4]),
        ({"older_than": 4}, [3, 4]),
        ({"search": "two OR three"}, [1, 4]),
        ({"search": "two OR three", "project": "app"}, [1, 3, 4]),
        ({"search": "one", "obs_type": "search"}, [1, 2, 3, 4]),
    ],
)
def test_a_purge_takes_what_meets_all_conditions(conditions: dict[str, Any], left: list[int]) -> None:
    """Counted first, in the same words."""
    connection = varied()
    counted = count_observations(connection, Conditions(now=NOW, **conditions), match_texts)
    assert rows(connection, "id") == [1, 2, 3, 4]
    assert purged(connection, **conditions) == counted
    assert counted["total"] == 4 - len(left) == sum(counted["counts"].values())
    assert rows(connection, "id") == left
    assert check(connection) == []


def test_a_purge_without_a_condition_is_refused() -> None:
    """It would mean everything."""
    with pytest.raises(Invalid, match="at least one of"):
        Conditions(now=NOW)


def test_a_purge_counts_pins_and_takes_them() -> None:
    """Whoever asks by name means it; the count says so before."""
    connection = varied()
    store.set_pinned(connection, [1], True)
    assert purged(connection, obs_type="command") == {
        "total": 2,
        "counts": {"command": 2},
        "pinned": 1,
        "prompts": 0,
        "injections": 0,
    }
    assert rows(connection, "id") == [2, 4]


def test_a_prompt_goes_with_its_observation() -> None:
    """What it led to stays, and belongs to nobody."""
    connection = filled(prompt(f"say {MARKER}", NOW, "p"), event(content="act", timestamp=NOW + 1, prompt_id="p"))
    purged(connection, search=MARKER)
    assert rows(connection, "id", "prompts") == []
    assert rows(connection, "content, prompt_id") == [("act", None)]


def test_a_summary_forgets_too() -> None:
    """It is made anew from what is left."""
    connection = filled(
        prompt(f"say {MARKER}", NOW, "p"),
        edit(f"/{MARKER}", NOW + 1, prompt_id="p"),
        edit("/kept", NOW + 2, prompt_id="p"),
        event("session_end", "other", NOW + 3),
    )
    assert MARKER in rows(connection, "summary", "sessions")[0]
    purged(connection, search=MARKER)
    assert json.loads(rows(connection, "summary", "sessions")[0])["files"] == ["/kept"]
    assert MARKER not in rows(connection, "summary", "sessions")[0]


def test_what_sessions_were_told_of_it_goes_too() -> None:
    """Whether it is named among the items or by its number in the text."""
    connection = filled(event(), event(), event())
    for items, text in (([{"id": 1}], ""), ([2], ""), ([{"id": "api/test"}], "- #3 now"), ([{"id": 4}], "#44")):
        store.store_injection(connection, "s2", NOW, items, text)
    purged(connection, ids=[1, 2, 3])
    assert rows(connection, "text", "injections") == ["#44"]


@pytest.mark.parametrize("query", [MARKER, f'"say {MARKER}"', f"nothing OR {MARKER.upper()}", f"{MARKER[:4]}*"])
def test_a_purge_by_words_finds_every_copy(query: str) -> None:
    """The text of an error, a subject or a description, however deep; and copies that outlived their observation."""
    connection = filled(
        event("command_error", "make", metadata={"error": f"line one\nsay {MARKER} (again)", "exit_code": 2}),
        event("git_commit", "git commit", metadata={"subject": f"say {MARKER}"}),
        event("mcp_call", "a/b", metadata={"x": [{"y": f"say {MARKER}"}]}),
        event(content="kept", metadata={"error": "other"}),
        prompt(f"say {MARKER}", NOW, session_id="s2"),
        edit("/a", NOW + 1, session_id="s2"),
        event("session_end", "other", NOW + 2, session_id="s2"),
    )
    store.store_injection(connection, "s3", NOW, [{"id": "api/test"}], f"- api/test: say {MARKER}")
    store.store_injection(connection, "s3", NOW, [], "other words")
    connection.execute("DELETE FROM observations WHERE obs_type = 'user_prompt'")
    counted = count_observations(connection, Conditions(now=NOW, search=query), match_texts)
    assert counted == {
        "total": 3,
        "counts": {"command_error": 1, "git_commit": 1, "mcp_call": 1},
        "pinned": 0,
        "prompts": 1,
        "injections": 1,
    }
    assert purged(connection, search=query) == counted
    assert rows(connection, "content") == ["/a", "kept", "other"] and rows(connection, "text", "injections") == [
        "other words"
    ]
    assert json.loads(rows(connection, "summary", "sessions")[1])["intent"] is None
    assert MARKER not in "".join(connection.iterdump())


def test_a_purge_by_words_heeds_its_other_conditions() -> None:
    """Copies belong to a session, and so to its project and time; whoever names a type or ids means observations."""
    connection = filled(
        prompt(f"say {MARKER}", NOW, project="app"), prompt(f"say {MARKER}", NOW + 9, session_id="s2", project="web")
    )
    connection.execute("DELETE FROM observations")

    def prompts(**conditions: Any) -> int:
        counted: int = count_observations(connection, Conditions(now=NOW, search=MARKER, **conditions), match_texts)[
            "prompts"
        ]
        return counted

    assert [prompts(), prompts(project="web"), prompts(session="s1"), prompts(before=NOW + 5)] == [2, 1, 1, 1]
    assert [prompts(obs_type="command"), prompts(ids=[1]), prompts(older_than=3)] == [0, 0, 0]


def test_what_is_no_word_of_anybody_is_not_searched() -> None:
    """Names of fields and numbers are in every observation: a purge of `error` or `2` must not take them all."""
    connection = filled(event(metadata={"error": "broken", "exit_code": 2, "arguments": {"path": "x"}}))
    assert [
        count_observations(connection, Conditions(now=NOW, search=word), match_texts)["total"]
        for word in ("error", "2", "path", "broken")
    ] == [
        0,
        0,
        0,
        1,
    ]


def test_a_session_of_which_nothing_is_left_goes() -> None:
    """With all that it was told."""
    connection = varied()
    store.store_injection(connection, "s2", NOW, [], "told")
    purged(connection, session="s2")
    assert rows(connection, "id", "sessions") == ["s1"]
    assert rows(connection, "id", "injections") == []


def test_what_was_purged_does_not_come_back() -> None:
    """The event's id stays known: a replay out of a spool or a transcript brings nothing back."""
    result = event()
    connection = filled(result)
    purged(connection, ids=[1])
    assert store.insert_event(connection, result) is None
    assert rows(connection, "id") == []


@pytest.mark.parametrize("rewritten", [True, False])
def test_what_was_purged_is_gone_from_the_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rewritten: bool
) -> None:
    """Not in the file, its log or its index: not the text, and not a word of it. Also where the file is too large to be
    rewritten."""
    monkeypatch.setattr(limits, "VACUUM_BYTES", limits.VACUUM_BYTES if rewritten else 0)
    path = tmp_path / "nudge.db"
    connection = open_writable(str(path))
    migrations.migrate(connection)
    fillers = [
        event(content=f"filler {number} " + "w" * 300, timestamp=NOW + number, session_id=f"s{number % 7}")
        for number in range(300)
    ]
    secret = [
        prompt(f"remember {MARKER}", NOW, "p", session_id="s1"),
        edit(f"/home/{MARKER}/a", NOW + 1, session_id="s1", prompt_id="p"),
        event(content=f"echo {MARKER}", session_id="s2", metadata={"note": MARKER}),
        event("session_end", "x", NOW + 999, session_id="s1"),
    ]
    for row in [*fillers[:150], *secret, *fillers[150:]]:
        store.insert_event(connection, row)
    store.store_injection(connection, "s9", NOW, [{"id": 153}], f"#153 {MARKER}")
    assert any(MARKER.encode() in file.read_bytes() for file in tmp_path.iterdir())
    purged(connection, search=MARKER)
    assert scrub(connection)
    assert [file.name for file in tmp_path.iterdir() if MARKER.encode() in file.read_bytes()] == []
    assert len(rows(connection, "id")) == 301
    assert check(connection) == []
    connection.close()


# Retention


def test_every_type_has_a_retention() -> None:
    """Commits two years, edits, writes and session events one, commands half of one, the rest 90 days."""
    assert set(RETENTION_DAYS) == set(TYPES)
    kinds = ("git_commit", "file_edit", "file_write", "session_end", "command", "command_error", "file_read")
    assert [RETENTION_DAYS[kind] for kind in kinds] == [730, 365, 365, 365, 180, 180, 90]


@pytest.mark.parametrize(("kind", "days"), RETENTION_DAYS.items())
def test_a_sweep_takes_what_has_had_its_time(kind: str, days: int) -> None:
    """A second older than its days, and not before; never what is pinned."""
    old, young, pinned = (
        event(kind, f"{n}", NOW - days * DAY - older, session_id=f"{n}") for n, older in enumerate((1, 0, 1))
    )
    connection = filled(old, young, pinned)
    store.set_pinned(connection, [3], True)
    assert sweep_observations(connection, NOW, RETENTION_DAYS) == {kind: 1}
    assert rows(connection, "id") == [2, 3]
    assert sweep_observations(connection, NOW, RETENTION_DAYS) == {}


def test_a_sweep_is_done_in_portions() -> None:
    """So that nobody waits long for the writer; the last portion is smaller than asked for."""
    connection = filled(*(event(timestamp=NOW - 999 * DAY) for _ in range(5)))
    assert [sweep_observations(connection, NOW, RETENTION_DAYS, 2) for _ in range(3)] == [
        {"command": 2},
        {"command": 2},
        {"command": 1},
    ]
    assert rows(connection, "id", "sessions") == []


def test_a_prompt_keeps_its_words_as_long_as_its_observation() -> None:
    """An edit of last summer stays, in its place in the order; what was wanted then is told nowhere any more."""
    then = NOW - 100 * DAY
    connection = filled(
        prompt("wish", then, "p"),
        edit("/a", then + 1, prompt_id="p"),
        prompt("idle", then + 2, "q"),
        prompt("pinned", then + 3, "r"),
        edit("/b", then + 4, prompt_id="r"),
        event("session_end", "other", then + 5),
    )
    store.set_pinned(connection, [4], True)
    assert json.loads(rows(connection, "summary", "sessions")[0])["intent"] == "wish"
    assert sweep_observations(connection, NOW, RETENTION_DAYS) == {"user_prompt": 2}
    assert rows(connection, "content", "prompts") == ["", "pinned"]
    (result,) = queries.file_history(connection, "/a")["sessions"]
    assert (result["touches"][0]["prompt_content"], result["summary_intent"]) == (None, "pinned")
    traced = traces.trace(connection, "s1")
    assert [(row["content"], row["observation_count"]) for row in traced["prompts"]] == [
        ("", 1),
        ("pinned", 1),
        ("", 1),
    ]
    assert "wish" not in json.dumps(traced) and sweep_observations(connection, NOW, RETENTION_DAYS) == {}


def test_a_summary_counts_what_is_there() -> None:
    """After a sweep too: neither a number nor a name of what is gone."""
    then = NOW - 200 * DAY
    connection = filled(
        event("command_error", "make test", then),
        edit("/kept", then + 1),
        event("file_read", "/r", then + 2, file_path="/r"),
        event("session_end", "other", then + 3),
    )
    sweep_observations(connection, NOW, RETENTION_DAYS, 1)
    assert json.loads(rows(connection, "summary", "sessions")[0])["counts"] == {
        "file_edit": 1,
        "file_read": 1,
        "session_end": 1,
    }
    sweep_observations(connection, NOW, RETENTION_DAYS)
    summary = json.loads(rows(connection, "summary", "sessions")[0])
    assert (summary["counts"], summary["failed"], summary["files"]) == (
        {"file_edit": 1, "session_end": 1},
        [],
        ["/kept"],
    )
    assert rows(connection, "ended_at", "sessions") == [then + 3]


def test_a_sweep_closes_sessions_that_fell_silent() -> None:
    """Also when no new one begins."""
    connection = filled(event(timestamp=NOW - DAY))
    sweep_observations(connection, NOW, RETENTION_DAYS)
    assert rows(connection, "ended_at", "sessions") == [NOW - DAY]
