"""How long 50,000 notes and 5,000 hints take: to join, to catch up after a week, from one machine to another. Beside
them plain COPY of the same rows. And what 1,000 members and 100 origins a repo cost the server."""

# ruff: noqa: S608 - of this run's own names
from __future__ import annotations

import contextlib
import json
import random
import shutil
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from nudge.core import limits
from nudge.team import server_sql
from nudge.team.entry import Body
from nudge.team.sharing import hint_name
from tests.harness import eventually
from tests.team.machines import REPO, Member
from tests.team.postgres import Postgres
from tests.team.together import team

_WORDS = ("deploy", "staging", "cache", "retry", "index", "queue", "schema", "build", "test", "branch", "worker")
_CLOCK = "(extract(epoch FROM now()) * 1000)::bigint"


def _rows(notes: int, hints: int, when: float) -> Iterator[tuple[str, str, str]]:
    """Kind, key and body of generated changes; a note has about 600 bytes."""
    chance = random.Random(7)
    for number in range(notes):
        fields = {
            "content": " ".join(chance.choice(_WORDS) for _ in range(80)),
            "kind": "decision",
            "tier": "long",
            "priority": 5,
            "confidence": 1.0,
            "tags": ["load"],
            "metadata": {},
            "created_at": when,
            "updated_at": when,
        }
        yield "note", f"Decision {number} about {chance.choice(_WORDS)}", Body(0, fields).to_text()
    scope = {"repo": f"git:{REPO}"}
    key = json.dumps(scope, sort_keys=True, separators=(",", ":"))
    for number in range(hints):
        name = hint_name(REPO, (f"component{number // 200}", f"key{number % 200}", key))
        fields = {"value": f"make target-{number}", "meta": {"scope": scope}, "created_at": when, "updated_at": when}
        yield "hint", name.key, Body(0, fields).to_text()


def _fill(postgres: Postgres, role: str, rows: Iterator[tuple[str, str, str]], origins: int, file: Path) -> float:
    """Copy changes into the log, spread over origins of a role; return the seconds that COPY took."""
    names = [str(uuid.uuid4()) for _ in range(origins)]
    postgres.psql(
        "INSERT INTO nudge_team.origins (origin) VALUES " + ", ".join(f"('{name}')" for name in names),
        role=role,
        database="team",
    )
    numbers = dict.fromkeys(names, 0)
    clock = int(time.time() * 1_000) << 16
    with file.open("w") as target:
        for index, (kind, key, body) in enumerate(rows):
            origin = names[index % origins]
            numbers[origin] += 1
            columns = (REPO, origin, str(numbers[origin]), str(clock), kind, _quoted(key), _quoted(body), "1")
            target.write("\t".join(columns) + "\n")
    began = time.monotonic()
    postgres.psql(f"\\copy nudge_team.ops FROM '{file}'", database="team")  # members may not, with row policies
    return time.monotonic() - began


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def _received(member: Member, number: int) -> float:
    """Wait until the machine has so many changes; return the seconds."""
    began = time.monotonic()
    eventually(lambda: member.repo()["received"] >= number, f"{number} changes", timeout=1_500)
    return time.monotonic() - began


def first_join(postgres: Postgres, notes: int, hints: int) -> str:
    """A fresh machine, then a week that it missed (a hundredth of the log), then single changes, both ways."""
    folder = Path(tempfile.mkdtemp(prefix="nudge-team-load-"))
    try:
        return _first_join(postgres, notes, hints, folder)
    finally:
        shutil.rmtree(folder)


def _first_join(postgres: Postgres, notes: int, hints: int, folder: Path) -> str:
    copied = _fill(postgres, "dave", _rows(notes, hints, time.time() - 60), 20, folder / "rows")
    size = (folder / "rows").stat().st_size
    began = time.monotonic()
    postgres.psql(f"\\copy nudge_team.ops TO '{folder / 'out'}'", role="alice", database="team")
    read = time.monotonic() - began
    number = notes + hints
    with team("alice", "bob") as (alice, bob):
        alice.join(postgres.url("alice"))
        join = _received(alice, number)
        slowest = _hint_calls(alice)
        bob.join(postgres.url("bob"))
        _received(bob, number)
        with contextlib.closing(sqlite3.connect(f"file:{alice.database}?mode=ro", uri=True)) as connection:
            assert connection.execute("SELECT count(*) FROM notes").fetchone() == (notes,)
        assert alice.status()["problem"] is None, alice.status()
        bob.stop()
        week = number // 100
        later = ((kind, f"later {key}", body) for kind, key, body in _rows(week, 0, time.time()))
        _fill(postgres, "dave", later, 1, folder / "week")
        bob.start()
        caught_up = _received(bob, number + week)
        steady = sorted(_one_change(alice, bob, index) for index in range(20))
        database = Path(alice.database).stat().st_size
    return (
        f"{notes:,} notes and {hints:,} hints, {size / 1e6:.1f} MB: COPY in {copied:.1f} s, COPY out {read:.1f} s;"
        f" first join {join:.1f} s ({number / join:,.0f} rows/s), hint calls meanwhile at most {slowest * 1e3:.0f} ms;"
        f" catch-up of {week:,} changes with the start of the server {caught_up:.1f} s; one change from machine to"
        f" machine {steady[len(steady) // 2] * 1e3:.0f} ms at the median; database {database / 1e6:.0f} MB"
    )


def _hint_calls(member: Member) -> float:
    slowest = 0.0
    for _ in range(20):
        began = time.monotonic()
        member.call("nudge.get_hint", component="component0", key="key1", context={"repo": f"git:{REPO}"})
        slowest = max(slowest, time.monotonic() - began)
    return slowest


def _one_change(sender: Member, receiver: Member, index: int) -> float:
    began = time.monotonic()
    sender.note(f"Steady {index}", "one change")

    def arrived() -> bool:
        with contextlib.closing(sqlite3.connect(f"file:{receiver.database}?mode=ro", uri=True)) as connection:
            sql = "SELECT 1 FROM notes WHERE title = ? AND namespace = ?"
            return connection.execute(sql, (f"Steady {index}", REPO)).fetchone() is not None

    eventually(arrived, "the change arrives")
    return time.monotonic() - began


def scale(postgres: Postgres, rows: int, repos: int, origins: int) -> str:
    """A log of many repos: its size, what a look of a member costs the server when nothing happens, what a fresh member
    reads."""
    names = ", ".join(f"('github.com/acme/repo-{number}', 'repo_0')" for number in range(repos))
    postgres.psql(f"INSERT INTO nudge_team.repos VALUES {names}", database="team")
    postgres.psql(
        "INSERT INTO nudge_team.origins (origin, role) SELECT gen_random_uuid(), 'alice'"
        f" FROM generate_series(1, {origins})",
        database="team",
    )
    per_log = max(rows // (repos * origins), 1)
    began = time.monotonic()
    postgres.psql("ALTER TABLE nudge_team.ops DISABLE TRIGGER no_gaps", database="team")
    for repo in range(repos):
        postgres.psql(
            f"INSERT INTO nudge_team.ops SELECT 'github.com/acme/repo-{repo}', o.origin, n, ({_CLOCK}) << 16, 'note',"
            f" 'Decision ' || n || ' of {repo}', repeat('x', 600), 1"
            f" FROM nudge_team.origins o, generate_series(1, {per_log}) n",
            database="team",
        )
    postgres.psql("ALTER TABLE nudge_team.ops ENABLE TRIGGER no_gaps; VACUUM ANALYZE nudge_team.ops", database="team")
    filled = time.monotonic() - began
    ((total, table, index),) = postgres.rows(
        "SELECT count(*), pg_table_size('nudge_team.ops'), pg_indexes_size('nudge_team.ops') FROM nudge_team.ops"
    )
    shared = ", ".join(f"'github.com/acme/repo-{number}'" for number in range(min(repos, 10)))
    heads = server_sql.HEADS.replace("$1::text[]", f"ARRAY[{shared}]")
    looks = sorted(_timed(postgres, heads) for _ in range(9))
    hello = sorted(_timed(postgres, server_sql.HELLO) for _ in range(9))
    look = looks[4] + hello[4]
    first = _first_page(postgres)
    members, size = 1_000, int(table) + int(index)
    share = members * look / 1_000 / limits.TEAM_POLL
    return (
        f"{int(total):,} rows in {repos} repos by {origins} origins (filled in {filled:.0f} s): table"
        f" {int(table) / 1e6:,.0f} MB, index {int(index) / 1e6:,.0f} MB, {size / int(total):.0f} bytes a row; a look at"
        f" {min(repos, 10)} repos when nothing happened {look:.2f} ms on the server, so that {members:,} members that"
        f" look every {limits.TEAM_POLL:.0f} s take {share:.0%} of a core; {first}"
    )


def _first_page(postgres: Postgres) -> str:
    """What a fresh member of one repo reads, and what a page of it costs the server."""
    repo = "github.com/acme/repo-0"
    ((rows, size),) = postgres.rows(
        f"SELECT count(*), sum(octet_length(body) + octet_length(key)) FROM nudge_team.ops WHERE project = '{repo}'"
    )
    ((origin,),) = postgres.rows(f"SELECT origin FROM nudge_team.ops WHERE project = '{repo}' LIMIT 1")
    cursors = {
        "$1::text[]": f"ARRAY['{repo}']",
        "$2::uuid[]": f"ARRAY['{origin}'::uuid]",
        "$3::bigint[]": "ARRAY[0::bigint]",
        "$4": str(limits.TEAM_ROWS),
    }
    page = server_sql.ROWS
    for parameter, value in cursors.items():
        page = page.replace(parameter, value)
    times = sorted(_timed(postgres, page) for _ in range(9))
    return (
        f"a fresh member of one repo reads {int(rows):,} rows ({int(size) / 1e6:,.0f} MB), a page of"
        f" {limits.TEAM_ROWS} in {times[4]:.1f} ms on the server"
    )


def _timed(postgres: Postgres, sql: str) -> float:
    """Milliseconds that the server needs for a statement of a member."""
    lines = postgres.rows(f"EXPLAIN (ANALYZE, TIMING OFF, SUMMARY ON) {sql}", role="alice")
    times = [line[0] for line in lines if "Planning Time" in line[0] or "Execution Time" in line[0]]
    return sum(float(line.split(":")[1].removesuffix("ms")) for line in times)
