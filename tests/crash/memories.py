"""`kill -9` of PRIMARY while notes are stored, resolved, consolidated, imported and synced: all of a call or nothing,
nothing twice."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.contract.ways import Http
from tests.crash.writers import Figures, rounds_under_kills
from tests.harness import Machine, Stdio

_SEED = 20_261_116
_TOGETHER = 100  # notes of one bulk, and of one consolidation
_TRANSFER = 0.8  # seconds; it takes less on an idle machine
_LATEST = 1.3  # of the time that a call takes: some kills come after it


def killed_while_agents_take_notes(kills: int = 15, agents: int = 3) -> Figures:
    """Agents behind PROXYs store, resolve and consolidate in a loop. No call fails, each is applied once, and every
    round of calls has left exactly what it should."""
    machine = Machine()
    try:
        rounds = rounds_under_kills(machine, _take_notes, agents=agents, kills=kills, seed=_SEED)
        return {"kills": kills, **_check_rounds(machine, rounds)}
    finally:
        machine.close()


def _take_notes(
    number: int, client: Stdio, done: list[tuple[int, int, int, int]], failures: list[Any], stop: threading.Event
) -> None:
    def call(tool: str, **params: Any) -> Any:
        result = client.tool(tool, **params)
        if result.get("isError"):
            failures.append(result["structuredContent"])
            stop.set()
        return result["structuredContent"]

    while not stop.is_set():
        names = [f"agent {number} round {len(done)} note {part}" for part in range(3)]
        ids = [call("memory_store", title=name, content=f"about {name}")["id"] for name in names]
        call("memory_resolve", winner_id=ids[0], loser_id=ids[1])
        whole = call("memory_consolidate", ids=ids[1:], title=f"agent {number} round {len(done)}", summary="both")
        done.append((*ids, whole["id"]))


def _check_rounds(machine: Machine, rounds: list[tuple[int, int, int, int]]) -> Figures:
    """Of each round: the winner, touched once and linked to the whole; the whole; two notes in the archive."""
    winners = {one[0] for one in rounds}
    wholes = {one[3] for one in rounds}
    parts = {part for one in rounds for part in one[1:3]}
    assert {row[0] for row in rows(machine, "SELECT id FROM notes")} == winners | wholes, "a note is lost or twice"
    assert {row[0] for row in rows(machine, "SELECT id FROM archived_notes")} == parts, "a part is not archived"
    touched = dict(rows(machine, "SELECT id, access_count FROM notes"))
    assert all(touched[winner] == 1 for winner in winners), "a resolution was applied twice"
    links = set(rows(machine, "SELECT source_id, target_id, relation FROM note_links"))
    assert links == {(one[0], one[3], "supersedes") for one in rounds}
    return {"rounds": len(rounds), "calls": 5 * len(rounds), "lost": 0, "twice": 0, **check_file(machine)}


def killed_without_a_retry(kills: int = 12) -> Figures:
    """A script sends one large call and PRIMARY is killed in it: a bulk stores all of its notes or none, a
    consolidation archives all and leaves one, or leaves everything; what was acknowledged is there."""
    chance = random.Random(_SEED)
    outcomes: Counter[str] = Counter()
    machine = Machine()
    try:
        bulk, consolidation = _measure(machine)
        for number in range(kills):
            namespace = f"g{number}"
            ids = _bulk_and_kill(machine, namespace, chance.random() * _LATEST * bulk, outcomes)
            if ids:
                _consolidate_and_kill(machine, namespace, ids, chance.random() * _LATEST * consolidation, outcomes)
        return {"kills": kills, **outcomes, **check_file(machine)}
    finally:
        machine.close()


def _measure(machine: Machine) -> tuple[float, float]:
    """Seconds that a bulk and a consolidation take here and now, each as the first call to a server."""
    taken = []
    ids: list[int] = []
    for path in ("/api/v1/memories/bulk", "/api/v1/consolidate"):
        machine.cli("ls")  # starts one
        with closing(Http.to(machine)) as script:
            began = time.monotonic()
            reply = script.post(path, {"ids": ids, "title": "whole", "summary": "all"} if ids else _notes("measured"))
            taken.append(time.monotonic() - began)
        assert reply.status in (200, 201), reply
        ids = reply.json.get("ids", ids)
        os.kill(machine.ready().pid, signal.SIGKILL)
    return taken[0], taken[1]


def _notes(namespace: str) -> list[dict[str, str]]:
    texts = {"content": "word " * 300, "namespace": namespace}
    return [{"title": f"note {number}", **texts} for number in range(_TOGETHER)]


def _bulk_and_kill(machine: Machine, namespace: str, after: float, outcomes: Counter[str]) -> list[int]:
    acknowledged = post_and_kill(machine, "/api/v1/memories/bulk", _notes(namespace), after)
    ids = [row[0] for row in rows(machine, "SELECT id FROM notes WHERE namespace = ?", namespace)]
    assert len(ids) in (0, _TOGETHER), f"{len(ids)} of {_TOGETHER} notes"
    assert ids or not acknowledged, "an acknowledged bulk is lost"
    outcomes["stored" if ids else "not stored"] += 1
    return ids


def _consolidate_and_kill(
    machine: Machine, namespace: str, ids: list[int], after: float, outcomes: Counter[str]
) -> None:
    body = {"ids": ids, "title": "whole", "summary": "all of them"}
    acknowledged = post_and_kill(machine, "/api/v1/consolidate", body, after)
    left = rows(machine, "SELECT title FROM notes WHERE namespace = ?", namespace)
    gone = rows(machine, "SELECT count(*) FROM archived_notes WHERE namespace = ?", namespace)[0][0]
    is_whole = left == [("whole",)] and gone == _TOGETHER
    assert is_whole or (len(left) == _TOGETHER and gone == 0 and not acknowledged), (len(left), gone, acknowledged)
    outcomes["consolidated" if is_whole else "not consolidated"] += 1


def killed_during_an_import_or_sync(kills: int = 12) -> Figures:
    """Imports of notes with links, and both directions of a sync with another database: the receiving database has all
    of them or none, and the links with the notes."""
    chance = random.Random(_SEED)
    outcomes: Counter[str] = Counter()
    machine = Machine()
    own, other = Path(machine.runtime) / "nudge.db", machine.base / "other.db"
    try:
        for number in range(kills):
            arrived = _transfer_and_kill(
                machine, "/api/v1/import", _import_body(f"i{number}"), own, f"i{number}", chance
            )
            outcomes["imported" if arrived else "not imported"] += 1
            machine.cli("ls")
            with closing(Http.to(machine)) as script:
                assert script.post("/api/v1/import", _import_body(f"s{number}")).status == 200
            push = {"path": str(other), "direction": "push"}
            arrived = _transfer_and_kill(machine, "/api/v1/sync", push, other, f"s{number}", chance)
            outcomes["pushed" if arrived else "not pushed"] += 1
        return {"kills": 2 * kills, "half": 0, **outcomes, **check_file(machine)}
    finally:
        machine.close()


def _import_body(namespace: str) -> dict[str, Any]:
    memories = [
        {"id": number, "title": f"note {number}", "content": "word " * 300, "namespace": namespace}
        for number in range(1, _TOGETHER + 1)
    ]
    links = [{"source_id": number, "target_id": number + 1} for number in range(1, _TOGETHER)]
    return {"memories": memories, "links": links}


def _transfer_and_kill(
    machine: Machine, path: str, body: Any, target: Path, namespace: str, chance: random.Random
) -> bool:
    acknowledged = post_and_kill(machine, path, body, chance.random() * _TRANSFER)
    notes = links = 0
    if target.exists() and _rows_of(target, "SELECT 1 FROM sqlite_master WHERE name = 'note_links'"):
        [(notes,)] = _rows_of(target, "SELECT count(*) FROM notes WHERE namespace = ?", namespace)
        [(links,)] = _rows_of(
            target, "SELECT count(*) FROM note_links JOIN notes ON id = source_id WHERE namespace = ?", namespace
        )
    assert (notes, links) in ((0, 0), (_TOGETHER, _TOGETHER - 1)), f"half of it: {notes} notes, {links} links"
    assert notes or not acknowledged, "an acknowledged transfer is lost"
    return notes > 0


def post_and_kill(machine: Machine, path: str, body: Any, after: float) -> bool:
    """Whether the call was answered before PRIMARY was killed."""
    machine.cli("ls")  # starts one
    script, pid = Http.to(machine), machine.ready().pid
    answered = threading.Event()

    def post() -> None:
        with suppress(OSError, HTTPException):
            if script.post(path, body).status in (200, 201):
                answered.set()

    sender = threading.Thread(target=post)
    sender.start()
    time.sleep(after)  # a random point of the call: the fault itself
    os.kill(pid, signal.SIGKILL)
    sender.join(60)
    script.close()
    machine.cli("ls")
    return answered.is_set()


def check_file(machine: Machine) -> Figures:
    assert rows(machine, "PRAGMA integrity_check") == [("ok",)]
    assert rows(machine, "PRAGMA foreign_key_check") == []
    result = rows(machine, "SELECT count(*) FROM notes_fts WHERE notes_fts MATCH 'title : note OR title : whole'")
    expected = rows(machine, "SELECT count(*) FROM notes WHERE title LIKE '%note%' OR title = 'whole'")
    assert result == expected, "the index does not agree with the notes"
    return {"integrity": "ok"}


def rows(machine: Machine, sql: str, *values: str) -> list[Any]:
    return _rows_of(Path(machine.runtime) / "nudge.db", sql, *values)


def _rows_of(path: Path, sql: str, *values: str) -> list[Any]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql, values).fetchall()
