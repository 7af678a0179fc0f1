"""The history: what recording costs an agent, and whether finding things gets slower as there is more to find."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from nudge.core import limits
from nudge.core.context import project_name
from nudge.history import store
from nudge.history.extract import event_id
from nudge.history.search import recent_observations, search_observations
from nudge.process.client import Client
from nudge.storage import migrations, spool
from nudge.storage.sqlite import open_readonly, open_writable
from tests.bench import histories, installation
from tests.bench.installation import Installation
from tests.bench.report import Row, milliseconds
from tests.bench.timing import ratio, seconds_of, take_turns
from tests.harness import Machine

RECORD = 2.5  # x a bare interpreter
STOPPED = 2.5  # x the same, beside the time that it waits for an answer
INJECTION = 150.0  # ms
INSERTS = 1.3  # x what it takes among few
SEARCH = 1.5  # x the raw FTS5 query
SEARCH_FEW = 3.0  # x the same among so few that it takes 50 us, to which a call adds about as much
RECENT = 1.5  # x what it takes among few

SIZES, LARGE = (10_000, 100_000), 1_000_000

_RECORDS, _STOPPED_RECORDS, _STARTS = 25, 9, 15
_INSERTS, _TOGETHER, _INSERT_ROUNDS = 2_000, 50, 31  # with 7 rounds the ratio varied from 1.2 to 1.6
_ROUNDS, _QUERIES, _SEARCHES = 7, 5, 60
_RAW = (
    f"SELECT o.id, o.timestamp, o.obs_type, substr(o.content, 1, {limits.PREVIEW_CHARS}), o.file_path, o.session_id"  # noqa: S608
    " FROM observations AS o JOIN observations_fts AS f ON o.id = f.rowid WHERE observations_fts MATCH ?"
    " ORDER BY f.rank LIMIT 20"
)


# `nudge record`, from its start to its end


class _Hook:
    """One event after the other, each new, as a client runs its hook."""

    def __init__(self, machine: Machine, installed: Installation, verb: str = "record", **environ: str) -> None:
        self._machine, self._command = machine, [installed.nudge, verb]
        self._environ = {**machine.environ, **environ}
        self._number = itertools.count()

    def __call__(self) -> float:
        return self.run(_command_payload(str(self._machine.base), f"{id(self)}-{next(self._number)}"))[0]

    def run(self, payload: Mapping[str, Any]) -> tuple[float, str]:
        began = time.perf_counter()
        done = subprocess.run(
            self._command,
            input=json.dumps(payload),
            env=self._environ,
            cwd=str(self._machine.base),
            capture_output=True,
            text=True,
            check=True,
        )
        return time.perf_counter() - began, done.stdout


def _command_payload(cwd: str, identity: str) -> dict[str, Any]:
    response = {"stdout": "47 passed in 1.2 s\n" * 20, "stderr": "", "interrupted": False, "isImage": False}
    return {
        "session_id": "bench",
        "transcript_path": "/home/dev/.claude/projects/x/bench.jsonl",
        "cwd": cwd,
        "hook_event_name": "PostToolUse",
        "prompt_id": "p-1",
        "tool_name": "Bash",
        "tool_input": {"command": "pytest -q tests/unit", "description": "Run the unit tests"},
        "tool_response": response,
        "tool_use_id": identity,
        "duration_ms": 1_234,
    }


def recording(machine: Machine) -> Iterator[Row]:
    """With a PRIMARY that answers, with none, and with one that holds still."""
    for installed in (installation.running(), installation.plain(machine.base / "plain")):
        yield _recorded(machine, installed, "PRIMARY down")
    primary = machine.http_only()
    machine.json("status")
    for installed in (installation.running(), installation.plain(machine.base / "plain")):
        yield _recorded(machine, installed, "PRIMARY up")
        yield _status_line(machine, installed)
    os.kill(primary.pid, signal.SIGSTOP)
    try:
        yield _recorded_beside_a_stopped(machine, installation.plain(machine.base / "plain"))
    finally:
        os.kill(primary.pid, signal.SIGCONT)


def _status_line(machine: Machine, installed: Installation) -> Row:
    """Claude Code runs it several times a minute: it has the budget of a hook."""
    workspace = {"current_dir": str(machine.base), "project_dir": str(machine.base)}
    payload = {"hook_event_name": "Status", "session_id": "another", "cwd": str(machine.base), "workspace": workspace}
    hook = _Hook(machine, installed, verb="statusline")
    subjects = {"bare": lambda: _bare(machine, installed), "line": lambda: hook.run(payload)[0]}
    samples = take_turns(subjects, _RECORDS)
    bare = f"python -c pass {milliseconds(median(samples['bare']))}"
    note = f"{milliseconds(median(samples['line']))}; it prints {hook.run(payload)[1].strip() or 'nothing'}"
    return Row(
        "record", f"nudge statusline, {installed.label}", ratio(samples, "line", "bare"), RECORD, "x", bare, note
    )


def _recorded_beside_a_stopped(machine: Machine, installed: Installation) -> Row:
    hook = _Hook(machine, installed)
    subjects = {"bare": lambda: _bare(machine, installed), "record": lambda: hook() - limits.HOOK_TIMEOUT}
    samples = take_turns(subjects, _STOPPED_RECORDS)
    bare = f"python -c pass {milliseconds(median(samples['bare']))}"
    total = milliseconds(median(samples["record"]) + limits.HOOK_TIMEOUT)
    note = f"{total}, of which {limits.HOOK_TIMEOUT * 1000:.0f} ms waiting"
    return Row(
        "record",
        f"nudge record, PRIMARY stopped, {installed.label}",
        ratio(samples, "record", "bare"),
        STOPPED,
        "x",
        bare,
        note,
    )


def _recorded(machine: Machine, installed: Installation, state: str) -> Row:
    samples = take_turns({"bare": lambda: _bare(machine, installed), "record": _Hook(machine, installed)}, _RECORDS)
    waiting = spool.counts(machine.runtime)["files"]
    note = f"{milliseconds(median(samples['record']))}; {waiting} wait in the spool"
    bare = f"python -c pass {milliseconds(median(samples['bare']))}"
    return Row(
        "record", f"nudge record, {state}, {installed.label}", ratio(samples, "record", "bare"), RECORD, "x", bare, note
    )


def _bare(machine: Machine, installed: Installation) -> float:
    return seconds_of(installed.bare, machine.environ, str(machine.base))


# A session's start


def injection(machine: Machine) -> Iterator[Row]:
    """What a session is told, when no PRIMARY runs: the hook looks into the database itself."""
    os.makedirs(machine.runtime, mode=0o700)
    project = _clone(machine, histories.PROJECTS[0])
    installed = installation.plain(machine.base / "plain")
    for size in SIZES:
        database = f"{machine.base}/{size}.db"
        histories.generate(database, size, seed=size)
        hook = _Hook(machine, installed, NUDGE_DB=database, NUDGE_AUTOSTART="0")
        yield _injected(hook, lambda: _bare(machine, installed), str(project), size)


def _clone(machine: Machine, project: str) -> Path:
    folder = machine.base / project_name(project)
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = https://{project}.git\n')
    return folder


def _injected(hook: _Hook, bare: Callable[[], float], cwd: str, size: int) -> Row:
    """The budget is no ratio, so the baseline says what the machine was like."""
    number, told = itertools.count(), [""]

    def start() -> float:
        identity = f"start-{size}-{next(number)}"
        payload = {
            "session_id": identity,
            "cwd": cwd,
            "hook_event_name": "SessionStart",
            "source": "startup",
            "client": "claude-code",
        }
        seconds, told[0] = hook.run(payload)
        return seconds

    samples = take_turns({"bare": bare, "start": start}, _STARTS)
    own, _, _ = told[0].partition("## Other repos")
    assert project_name(histories.PROJECTS[0]) in own, told[0]
    note, idle = f"{len(told[0]):,} characters", f"python -c pass {milliseconds(median(samples['bare']))}"
    what = f"SessionStart, no PRIMARY, {size:,} observations"
    return Row("injection", what, median(samples["start"]) * 1000, INJECTION, "ms", idle, note)


# Inserting


def inserting(machine: Machine) -> Iterator[Row]:
    """Into a history that begins empty, in turns with ones that are large already; each through the connection that a
    server keeps."""
    number = itertools.count()
    with contextlib.ExitStack() as stack:

        def opened(name: str) -> sqlite3.Connection:
            connection = stack.enter_context(contextlib.closing(open_writable(f"{machine.base}/{name}.db")))
            migrations.migrate(connection)
            return connection

        subjects: dict[str, Callable[[], float]] = {"few": lambda: _insert(opened(f"new-{next(number)}"))}
        for size in SIZES:
            histories.generate(f"{machine.base}/{size}.db", size, seed=size)
            subjects[f"{size:,}"] = partial(_insert, opened(str(size)))
        samples = take_turns(subjects, _INSERT_ROUNDS)
    for size in SIZES:
        few, many = median(samples["few"]), median(samples[f"{size:,}"])
        yield Row(
            "insert",
            f"among {size:,} against among few",
            ratio(samples, f"{size:,}", "few"),
            INSERTS,
            "x",
            _rate(few),
            _rate(many),
        )


def _insert(connection: sqlite3.Connection) -> float:
    """Seconds that one takes, by transactions of a few; one commit waits for the disk as long as any other."""
    chance = random.Random()
    word, run = histories.Zipf(histories.words(), chance), f"{chance.getrandbits(32):x}"
    seconds = []
    for start in range(0, _INSERTS, _TOGETHER):
        events = [_event(run, number, word, chance) for number in range(start, start + _TOGETHER)]
        began = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        for event in events:
            store.insert_event(connection, event)
        connection.execute("COMMIT")
        seconds.append((time.perf_counter() - began) / _TOGETHER)
    return median(seconds)


def _event(run: str, number: int, word: histories.Zipf, chance: random.Random) -> dict[str, Any]:
    """Mostly commands, some reads and prompts, a new session now and then."""
    kind = "user_prompt" if number % 10 == 0 else chance.choice(("command", "command", "file_edit", "file_read"))
    session = f"{run}-{number // 500}"
    return {
        "event_id": event_id(session, [str(number)]),
        "session_id": session,
        "client": "claude-code",
        "cwd": "/home/dev/x",
        "repo": "git:acme/x",
        "project": "x",
        "timestamp": int(time.time()) - 1_000_000 + number,
        "source_event": "PostToolUse",
        "prompt_id": f"p-{number // 10}",
        "agent_id": None,
        "type": kind,
        "tool_name": "Bash",
        "file_path": f"/home/dev/x/{word()}.py" if kind.startswith("file_") else None,
        "content": f"make {word()} {word()}",
        "metadata": {"exit_code": 0},
        "start_source": None,
    }


def _rate(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us each, {1 / seconds:,.0f}/s"


# Finding


def finding(machine: Machine) -> Iterator[Row]:
    """Among ten thousand observations, and among ten times as many."""
    yield from _found(machine, SIZES, searched=SIZES)


def finding_large(machine: Machine) -> Iterator[Row]:
    """Among a million; half a minute of it goes into making them."""
    yield from _found(machine, (SIZES[0], LARGE), searched=(LARGE,))


def _found(machine: Machine, sizes: Sequence[int], searched: Sequence[int]) -> Iterator[Row]:
    with contextlib.ExitStack() as open_ones:
        connections = {size: open_ones.enter_context(contextlib.closing(_made(machine, size))) for size in sizes}
        for size in searched:
            yield from _searched(connections[size], size)
        yield from _lately(connections)
    yield _through_a_server(machine, sizes[-1])


def _searched(connection: sqlite3.Connection, size: int) -> Iterator[Row]:
    samples = take_turns(_subjects(connection), _ROUNDS)
    budget = SEARCH if size > SIZES[0] else SEARCH_FEW
    for what in ("search", "search in a project"):
        note = f"{_short(samples[what])}; blended {_short(samples['blended'])}"
        raw = f"raw FTS5 query {_short(samples['raw'])}"
        yield Row("find", f"{what}, {size:,} observations", ratio(samples, what, "raw"), budget, "x", raw, note)


def _short(seconds: Sequence[float]) -> str:
    return f"{median(seconds) * 1e6:,.0f} us"


def _made(machine: Machine, size: int) -> sqlite3.Connection:
    path = f"{machine.base}/{size}.db"
    histories.generate(path, size, seed=size)
    return open_readonly(path)


def _queries() -> list[str]:
    """What people look for: mostly two words together, now and then one that is everywhere, or one that is rare."""
    chance, known = random.Random(1), histories.words()
    common = [chance.choice(known[:15]) for _ in range(_QUERIES)]
    rare = [chance.choice(known[200:4_000]) for _ in range(_QUERIES)]
    return [" ".join(chance.sample(known[:60], 2)) for _ in range(6 * _QUERIES)] + common + rare


def _subjects(connection: sqlite3.Connection) -> dict[str, Callable[[], float]]:
    """Each answers with the middle of what the queries took."""
    project, now = histories.PROJECTS[3], time.time()
    return {
        "raw": _Middle(lambda query: connection.execute(_RAW, (query,)).fetchall()),
        "search": _Middle(lambda query: search_observations(connection, query)),
        "search in a project": _Middle(lambda query: search_observations(connection, query, project=project)),
        "blended": _Middle(lambda query: search_observations(connection, query, order_by="blended", now=now)),
    }


class _Middle:
    def __init__(self, ask: Callable[[str], Any]) -> None:
        self._ask, self._queries = ask, _queries()

    def __call__(self) -> float:
        return median(_seconds(self._ask, query) for query in self._queries)


def _seconds(ask: Callable[..., Any], *arguments: Any) -> float:
    began = time.perf_counter()
    ask(*arguments)
    return time.perf_counter() - began


def _lately(connections: Mapping[int, sqlite3.Connection]) -> Iterator[Row]:
    """It reads only what could be among the answers, so the rest may be as much as it likes."""
    small, large = connections
    for words, project in (("of a project", histories.PROJECTS[0]), ("of all projects", None)):
        asked = {str(size): _Recent(connection, project) for size, connection in connections.items()}
        samples = take_turns(asked, _SEARCHES)
        rare = min(_Recent(connections[large], histories.PROJECTS[-1])() for _ in range(_ROUNDS))
        yield Row(
            "find",
            f"recent_context {words}, {large:,} against {small:,}",
            ratio(samples, str(large), str(small)),
            RECENT,
            "x",
            _short(samples[str(small)]),
            f"{_short(samples[str(large)])}; of the rarest project {_short([rare])}",
        )


class _Recent:
    def __init__(self, connection: sqlite3.Connection, project: str | None) -> None:
        self._connection, self._project = connection, project

    def __call__(self) -> float:
        return _seconds(lambda: recent_observations(self._connection, project=self._project, now=time.time()))


def _through_a_server(machine: Machine, size: int) -> Row:
    """As an agent asks: the whole way, and the slowest of the queries."""
    environ = {**machine.environ, "NUDGE_DB": f"{machine.base}/{size}.db"}
    machine.http_only(NUDGE_DB=environ["NUDGE_DB"])
    client = Client(environ=environ)
    seconds = sorted(_seconds(client.call, "nudge.search", {"query": query, "project": None}) for query in _queries())
    note = f"median {milliseconds(seconds[len(seconds) // 2])} of {len(seconds)}"
    return Row(
        "find", f"nudge.search over the socket, worst, {size:,}", seconds[-1], limits.CALL_TIMEOUT, "s", note=note
    )
