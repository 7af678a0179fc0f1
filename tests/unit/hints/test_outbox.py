"""The changes of hints that are numbered in the change log."""

from __future__ import annotations

import json
from typing import Any

from nudge.hints.model import Change, Hint
from nudge.hints.outbox import HintOutbox


def _hint(key: str, value: str) -> Hint:
    return Hint.of("api", key, value, {}, created_at=1.0, updated_at=2.0)


def _record(change: Change) -> dict[str, Any]:
    return {**change.to_record(), "t": 3.0}


def _log(outbox: HintOutbox, *changes: Change) -> list[dict[str, Any]]:
    """Number changes and take them over, as a change log that is written and read again."""
    records = []
    for change in changes:
        record = json.loads(json.dumps(outbox.number(_record(change))))
        outbox.replay(record)
        records.append(record)
    return records


def test_nothing_is_numbered_without_a_team() -> None:
    outbox = HintOutbox()
    (record,) = _log(outbox, Change(puts=(_hint("a", "1"),)))
    assert "n" not in record and outbox.waiting(0, 9) == [] and list(outbox.records()) == []


def test_each_hint_of_a_change_has_a_number() -> None:
    outbox = HintOutbox("log")
    gone = _hint("gone", "x").identity
    _log(outbox, Change(puts=(_hint("a", "1"), _hint("b", "2")), removals=(gone,)), Change())
    waiting = outbox.waiting(0, 9)
    assert [n for n, _ in waiting] == [1, 2, 3]
    assert [(change.identity[1], change.put and change.put["value"]) for _, change in waiting] == [
        ("gone", None),
        ("a", "1"),
        ("b", "2"),
    ]


def test_numbers_survive_a_compaction() -> None:
    """What waits, and the last number even when nothing does: no number is given twice."""
    outbox = HintOutbox("log")
    _log(outbox, Change(puts=(_hint("a", "1"),)), Change(puts=(_hint("b", "2"),)))
    assert [n for n, _ in outbox.waiting(1, 9)] == [2]
    again = HintOutbox()
    for record in json.loads(json.dumps(list(outbox.records()))):
        again.replay(record)
    assert again.waiting(1, 9) == outbox.waiting(1, 9)
    assert outbox.waiting(2, 9) == []
    empty = HintOutbox()
    for record in outbox.records():
        empty.replay(record)
    assert (empty.log, empty.last, empty.waiting(0, 9)) == ("log", 2, [])


def test_what_came_from_the_team_is_not_numbered() -> None:
    outbox = HintOutbox("log")
    outbox.replay(_record(Change(puts=(_hint("a", "1"),))))
    assert outbox.waiting(0, 9) == []


def test_another_log_begins_anew() -> None:
    outbox = HintOutbox("log")
    _log(outbox, Change(puts=(_hint("a", "1"),)))
    outbox.replay({"n": ["", 1]})
    assert (outbox.log, outbox.last, outbox.waiting(0, 9)) == ("", 0, [])
