"""Recent context: ranked by recency, type and project, each file once."""

from __future__ import annotations

from typing import Any

import pytest

from nudge.history import views
from nudge.history.recent import recent_observations
from tests.unit.history.stored import DAY, NOW, edit, empty, event, filled, read


def ids(found: list[dict[str, Any]]) -> list[int]:
    return [told["id"] for told in found]


def test_recent_weighs_recency_and_kind() -> None:
    """Without a project: 0.6 recency, 0.4 kind; half after seven days."""
    connection = filled(
        event("command", timestamp=NOW - 7 * DAY), event("mcp_call", timestamp=NOW), edit("/a.py", NOW - 14 * DAY)
    )
    found = recent_observations(connection, project=None, now=NOW)
    assert [(told["obs_type"], told["score"]) for told in found] == [
        ("mcp_call", round(0.6 + 0.4 * 0.33, 6)),
        ("command", round(0.3 + 0.4 * 0.67, 6)),
        ("file_edit", round(0.15 + 0.4, 6)),
    ]


def test_recent_prefers_the_project_and_does_not_exclude_others() -> None:
    """0.5 recency, 0.3 kind, 0.2 project; another project counts 0.3 of that."""
    connection = filled(event(content="theirs", project="other"), event(content="mine", timestamp=NOW - DAY))
    found = recent_observations(connection, project="app", now=NOW)
    assert [told["content"] for told in found] == ["mine", "theirs"]
    assert found[0]["score"] == pytest.approx(0.5 * 2 ** (-1 / 7) + 0.3 * 0.67 + 0.2, abs=1e-6)
    assert found[1]["score"] == pytest.approx(0.5 + 0.3 * 0.67 + 0.06, abs=1e-6)


def test_recent_tells_each_file_once() -> None:
    """By its best row; what has no file is never a duplicate."""
    connection = filled(read("/a.py"), edit("/a.py", NOW - DAY), event(), event())
    found = recent_observations(connection, project="app", now=NOW)
    assert [told["obs_type"] for told in found] == ["file_edit", "command", "command"]


def test_recent_is_what_sorting_everything_would_give() -> None:
    """Reading only what could win loses nothing."""
    kinds = ("file_edit", "command", "search", "session_compact", "mcp_call", "git_commit")
    projects, paths = ("app", "other", None), (None, "/a", "/b", None, "/c")
    told = [
        event(kinds[n % 6], f"{n}", NOW - (n * 7_919) % (40 * DAY), project=projects[n % 3], file_path=paths[n % 5])
        for n in range(300)
    ]
    connection = filled(*told)
    everything = [found for number in range(1, 301) for found in views.get(connection, [number])]
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
