"""`kill -9` of PRIMARY while attempts are started, updated, adopted and resolved: none is lost, none is adopted or
resolved twice, and a lesson is there exactly when its attempt has its outcome."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from contextlib import closing
from statistics import median
from typing import Any

from tests.contract.ways import Http
from tests.crash.memories import check_file, post_and_kill, rows
from tests.crash.writers import Figures, rounds_under_kills
from tests.harness import Machine, Stdio
from tests.unit.history.stored import event

_SEED = 20_261_117
_LATEST = 1.3  # of the time that a call takes: some kills come after it
_PLAN = {"hypothesis": "the cache is cold", "action": "warm it", "prediction": "make bench exits 0"}
_ATTEMPTS = "SELECT id, attempt_session, attempt_outcome, metadata FROM notes WHERE kind = 'attempt'"


def killed_while_agents_keep_the_journal(kills: int = 15, agents: int = 3) -> Figures:
    """Agents behind PROXYs start an attempt in a session that ends, adopt it, update it and resolve it, in a loop, and
    a rival tries to adopt each. No call fails, and every attempt went through each step once."""
    machine = Machine()
    try:
        rounds = rounds_under_kills(machine, _keep_journal, agents=agents, kills=kills, seed=_SEED)
        return {"kills": kills, **_check_attempts(machine, rounds)}
    finally:
        machine.close()


def _keep_journal(number: int, client: Stdio, done: list[int], failures: list[Any], stop: threading.Event) -> None:
    def call(tool: str, expected: str | None = None, **params: Any) -> Any:
        result = client.tool(tool, **params)
        payload = result["structuredContent"]
        if payload.get("error", {}).get("reason") != expected:
            failures.append((tool, payload))
            stop.set()
        return payload

    while not stop.is_set():
        name = f"{number}-{len(done)}"
        lost, own, rival = f"lost-{name}", f"own-{name}", f"rival-{name}"
        attempt = call("start_ghap", session_id=lost, goal=f"goal {name}", **_PLAN).get("id", 0)
        call("record", event=_end_of(lost))
        call("get_orphaned_ghap", session_id=own, adopt=attempt)
        refused = call("get_orphaned_ghap", "E_CONFLICT", session_id=rival, adopt=attempt)
        if refused.get("error", {}).get("session_id") != own:
            failures.append(("the loser is not told who", refused))
        call("update_ghap", session_id=own, note="still at it")
        call("resolve_ghap", session_id=own, status="confirmed", lesson=f"lesson {name}")
        call("resolve_ghap", "E_CONFLICT", session_id=own, status="falsified")
        done.append(attempt)


def _end_of(session: str) -> dict[str, Any]:
    return event("session_end", "", int(time.time()), session_id=session, event_id=f"end of {session}")


def _check_attempts(machine: Machine, ids: list[int]) -> Figures:
    """Each once, confirmed, adopted once and updated once, with one lesson."""
    result = {row[0]: row for row in rows(machine, _ATTEMPTS)}
    assert sorted(result) == sorted(ids), "an attempt is lost or twice"
    for _, owner, outcome, stored in result.values():
        metadata = json.loads(stored)
        steps = ["adopted_by" if "adopted_by" in one else one["note"] for one in metadata["iterations"]]
        assert (outcome, steps, metadata["iteration_count"]) == ("confirmed", ["adopted_by", "still at it"], 2), stored
        assert owner.startswith("own-"), stored
    lessons = rows(machine, "SELECT id FROM notes WHERE kind = 'lesson'")
    links = rows(machine, "SELECT target_id FROM note_links WHERE relation = 'derived_from'")
    assert len(lessons) == len(ids) and sorted(row[0] for row in links) == sorted(ids), "a lesson is lost or twice"
    return {"attempts": len(ids), "calls": 7 * len(ids), "lost": 0, "twice": 0, **check_file(machine)}


def killed_at_a_step_of_an_attempt(kills: int = 6) -> Figures:
    """A script sends each step once, and PRIMARY is killed in it: the step is there whole or not at all, what was
    acknowledged is there, and the attempt can still be resolved exactly once."""
    chance = random.Random(_SEED)
    outcomes: Counter[str] = Counter()
    machine = Machine()
    try:
        span = _measure(machine)
        for number in range(kills):
            for step in ("start", "update", "adopt", "resolve"):
                _kill_in(machine, step, f"{step}-{number}", chance.random() * _LATEST * span, outcomes)
        return {"kills": 4 * kills, **dict(sorted(outcomes.items())), **check_file(machine)}
    finally:
        machine.close()


def _measure(machine: Machine) -> float:
    """Seconds that a call takes here and now, on a new connection to a server that was called before."""
    machine.cli("ls")  # starts one
    seconds = []
    for number in range(9):
        with closing(Http.to(machine)) as script:
            began = time.monotonic()
            _post(script, "/api/v1/journal", {"session_id": f"measured {number}", "goal": "measured", **_PLAN})
            seconds.append(time.monotonic() - began)
    return median(seconds)


def _kill_in(machine: Machine, step: str, name: str, after: float, outcomes: Counter[str]) -> None:
    lost, own = f"lost-{name}", f"own-{name}"
    starting = {"session_id": lost, "goal": name, **_PLAN}
    attempt = None
    with closing(Http.to(machine)) as script:
        script.exchange("GET", "/health")
        if step != "start":
            attempt = _post(script, "/api/v1/journal", starting)["id"]
            _post(script, "/api/v1/events", {"event": _end_of(lost)})
    bodies: dict[str, tuple[str, dict[str, Any]]] = {
        "start": ("", starting),
        "update": ("/update", {"session_id": lost, "id": attempt, "note": "still at it"}),
        "adopt": ("/orphaned", {"session_id": own, "adopt": attempt}),
        "resolve": ("/resolve", {"session_id": lost, "id": attempt, "status": "confirmed", "lesson": f"lesson {name}"}),
    }
    path, body = bodies[step]
    acknowledged = post_and_kill(machine, f"/api/v1/journal{path}", body, after)
    is_done = _state(machine, step, name)
    assert is_done or not acknowledged, f"an acknowledged {step} is lost"
    outcomes[step if is_done else f"no {step}"] += 1
    if step != "start" or is_done:
        _resolve_once(machine, name, resolved_before=step == "resolve" and is_done)


def _state(machine: Machine, step: str, name: str) -> bool:
    """Whether the step was made; it must be whole."""
    result = rows(machine, f"{_ATTEMPTS} AND title = ?", name)
    if step == "start":
        assert len(result) <= 1, "started twice"
        return bool(result)
    [(attempt, owner, outcome, stored)] = result  # an attempt is never lost
    if step == "update":
        return int(json.loads(stored)["iteration_count"]) == 2
    if step == "adopt":
        return bool(owner == f"own-{name}")
    links = rows(machine, f"SELECT count(*) FROM note_links WHERE target_id = {int(attempt)}")[0][0]  # noqa: S608
    assert (outcome is None) == (links == 0), "half a resolution"
    return outcome is not None


def _resolve_once(machine: Machine, name: str, *, resolved_before: bool) -> None:
    [(attempt, owner, _, _)] = rows(machine, f"{_ATTEMPTS} AND title = ?", name)
    body = {"session_id": owner, "id": attempt, "status": "abandoned"}
    with closing(Http.to(machine)) as script:
        statuses = [script.post("/api/v1/journal/resolve", body).status for _ in range(2)]
    assert statuses == [409 if resolved_before else 200, 409], statuses
    [(outcome,)] = rows(machine, "SELECT attempt_outcome FROM notes WHERE title = ? AND kind = 'attempt'", name)
    assert outcome == ("confirmed" if resolved_before else "abandoned")


def _post(script: Http, path: str, body: Any) -> Any:
    reply = script.post(path, body)
    assert reply.status in (200, 201), reply
    return reply.json
