"""The database: who may write, what is answered when, and what a disk may hold."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.errors import Invalid, StorageFailed, Unavailable
from nudge.core.locks import Flock
from nudge.storage import migrations, sqlite
from nudge.storage.database import Database
from nudge.storage.sqlite import DatabaseDamaged, check, copy_to, on_network, open_readonly


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "data" / "nudge.db")


@pytest.fixture
def opened(path: str) -> Iterator[Callable[[], Database]]:
    made: list[Database] = []

    def make() -> Database:
        made.append(Database.open(path))
        return made[-1]

    yield make
    for database in made:
        database.close()


def add(name: str) -> Callable[[sqlite3.Connection], None]:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO events VALUES (?, 0)", (name,))

    return work


def names(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT event_id FROM events ORDER BY 1")]


def run(work: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await work

    return asyncio.run(main())


# Opening


def test_a_new_database_is_ready_and_private(opened: Callable[[], Database], path: str) -> None:
    """Of the latest format, readable by its owner only, in a directory that is."""
    database = opened()
    run(database.write(add("a")))
    assert (database.reason, database.readable, run(database.read(names))) == (None, True, ["a"])
    assert run(database.read(migrations.read_version)) == migrations.LATEST
    assert {stat.S_IMODE(os.stat(file).st_mode) for file in Path(path).parent.iterdir()} == {0o600}
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


def test_the_writer_is_set_up_to_lose_nothing(opened: Callable[[], Database]) -> None:
    """Write-ahead log, full synchronization, foreign keys, and deleted content overwritten."""

    def settings(connection: sqlite3.Connection) -> list[Any]:
        pragmas = ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "busy_timeout", "auto_vacuum")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]

    assert run(opened().maintain(settings)) == ["wal", 2, 1, 1, 5_000, 2]


def test_no_write_ahead_log_on_a_network_filesystem(
    opened: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shared memory would not be shared."""
    monkeypatch.setattr(sqlite, "on_network", lambda _: True)
    database = opened()
    run(database.write(add("a")))
    assert (
        run(database.maintain(lambda connection: connection.execute("PRAGMA journal_mode").fetchone()[0])) == "truncate"
    )
    assert run(database.read(names)) == ["a"]


@pytest.mark.skipif(sys.platform != "linux", reason="mounts are read from /proc")
def test_the_innermost_mount_tells_the_filesystem(tmp_path: Path) -> None:
    """A local disk below a network mount is local, and the other way round; of two on one point the later one
    counts."""
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "a / ext4 rw\nb /home nfs4 rw\nc /home/me ext4 rw\nd /with\\040blank cifs rw\n"
        "e /twice ext4 rw\nf /twice nfs rw\n"
    )
    result = {
        place: on_network(place, str(mounts))
        for place in ("/x", "/home/a", "/home/me/a", "/homeless", "/with blank/a", "/twice/a")
    }
    assert result == {
        "/x": False,
        "/home/a": True,
        "/home/me/a": False,
        "/homeless": False,
        "/with blank/a": True,
        "/twice/a": True,
    }


def test_whoever_comes_second_reads(opened: Callable[[], Database]) -> None:
    """The lock is refused: writing is not possible and says why, reading is; once the first is gone, the next write
    succeeds."""
    first, second = opened(), opened()
    run(first.write(add("a")))
    assert (second.reason, second.readable) == ("another server holds the database", True)
    assert run(second.read(names)) == ["a"]
    with pytest.raises(StorageFailed, match="another server holds the database"):
        run(second.write(add("b")))
    first.close()
    run(second.write(add("b")))
    assert (second.reason, run(second.read(names))) == (None, ["a", "b"])


def test_closing_lets_go_of_the_lock(opened: Callable[[], Database], path: str) -> None:
    """Held for life, released at its end; nothing works after it."""
    database = opened()
    lock = Flock(f"{path}.lock")
    assert not lock.acquire()
    database.close()
    assert lock.acquire()
    lock.release()
    for work in (database.read(names), database.write(add("a"))):
        with pytest.raises(StorageFailed, match="closed"):
            run(work)


def test_a_newer_format_is_read_and_not_touched(opened: Callable[[], Database], path: str) -> None:
    """Whoever wrote it knows more than we do."""
    opened().close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {migrations.LATEST + 1}")
    connection.close()
    before = Path(path).read_bytes()
    database = opened()
    assert database.reason is not None
    assert "newer Nudge" in database.reason
    assert run(database.read(names)) == []
    with pytest.raises(StorageFailed, match="newer Nudge"):
        run(database.write(add("a")))
    database.close()
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\0" + b"\xff" * 4_000])
def test_a_file_that_is_no_database_is_a_reason(path: str, opened: Callable[[], Database], content: bytes) -> None:
    """The server starts without it, and leaves it as it is."""
    os.makedirs(os.path.dirname(path))
    Path(path).write_bytes(content)
    database = opened()
    assert database.reason is not None
    assert not database.readable
    for work in (database.read(names), database.write(add("a"))):
        with pytest.raises(StorageFailed):
            run(work)
    assert Path(path).read_bytes() == content


def test_a_database_of_0_bytes_is_damage_where_one_was(path: str, opened: Callable[[], Database]) -> None:
    """It is not taken for a new one, for reading or writing; its write-ahead log stays."""
    database = opened()
    run(database.write(add("a")))
    database.close()
    os.truncate(path, 0)
    log = Path(f"{path}-wal")
    log.write_bytes(b"kept")
    emptied = opened()
    assert (emptied.reason, emptied.readable) == ("the database is damaged (the file is empty)", False)
    for work in (emptied.read(names), emptied.write(add("b"))):
        with pytest.raises(DatabaseDamaged):
            run(work)
    assert (os.path.getsize(path), log.read_bytes()) == (0, b"kept")


@pytest.mark.parametrize("was_removed", [False, True])
def test_an_empty_file_is_a_new_database_where_none_was(
    path: str, opened: Callable[[], Database], was_removed: bool
) -> None:
    """One that the user made, or that a process left that was killed while it created the database; also where an
    earlier one was removed."""
    if was_removed:
        opened().close()
        os.unlink(path)
        with pytest.raises(sqlite3.OperationalError), contextlib.closing(_killed_while_creating(path)):
            pass
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).touch(mode=0o600)
    database = opened()
    run(database.write(add("a")))
    assert database.reason is None


def _killed_while_creating(path: str) -> sqlite3.Connection:
    """Open the database as a process does that is killed before the first page is written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "_prepare", _fail_to_prepare)
        return sqlite.open_writable(path)


def _fail_to_prepare(*_: object) -> None:
    raise sqlite3.OperationalError("killed")


def test_a_link_in_the_place_of_the_database_is_refused(
    path: str, opened: Callable[[], Database], tmp_path: Path
) -> None:
    """It could lead anywhere."""
    os.makedirs(os.path.dirname(path))
    os.symlink(tmp_path / "elsewhere.db", path)
    assert opened().reason is not None
    assert not (tmp_path / "elsewhere.db").exists()


# What a caller is told


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM nowhere",
        "SELECT nothing FROM events",
        "SELECT broken syntax here",
        "INSERT INTO events VALUES ('a', NULL)",
        "INSERT INTO events VALUES ('twice', 0), ('twice', 0)",
        "INSERT INTO events VALUES (1, 2, 3)",
        "INSERT INTO prompts (session_id, timestamp, source, content) VALUES ('none', 0, 'user', 'x')",
        "SELECT ?, ?",
        "SELECT zeroblob(2000000000)",
        "SELECT load_extension('/tmp/x')",
        "ATTACH '/nowhere/x.db' AS other",
        "SELECT 1; SELECT 2",
    ],
)
@pytest.mark.parametrize("interface", ["read", "write", "maintain"])
def test_an_error_of_a_statement_names_no_path_and_no_sql(
    opened: Callable[[], Database], statement: str, interface: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One sentence of ours; SQLite's own is in the log."""
    with pytest.raises(StorageFailed) as failed:
        run(getattr(opened(), interface)(lambda connection: connection.execute(statement).fetchall()))
    result = str(failed.value.to_json())
    words = set(re.findall(r"[a-z_]{4,}", statement.lower())) - {"extension", "here", "source", "content"}
    assert not words & set(re.findall(r"[a-z_]+", result.lower())), result
    assert not re.search(r"/|SQLITE|syntax|constraint|no such|bind", result), result
    assert "a statement failed: " in caplog.text


# Migrations


def older(path: str, *statements: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in (*statements, "PRAGMA user_version = 1"):
        connection.execute(statement)
    connection.close()


def test_an_older_format_is_backed_up_and_brought_up_to_date(
    path: str, opened: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is of the old format and as private as the original; what was in it is still there."""
    older(path, "CREATE TABLE events (event_id TEXT)", "INSERT INTO events VALUES ('kept')")
    painted = ["ALTER TABLE events ADD COLUMN colour TEXT"]
    steps = (
        migrations.MIGRATIONS[0],
        painted,
        lambda connection: connection.execute("UPDATE events SET colour = 'red'"),
    )
    monkeypatch.setattr(migrations, "MIGRATIONS", steps)
    monkeypatch.setattr(migrations, "LATEST", 3)
    database = opened()
    assert database.reason is None
    assert run(database.read(lambda connection: connection.execute("SELECT * FROM events").fetchall())) == [
        ("kept", "red")
    ]
    assert run(database.read(migrations.read_version)) == 3
    kept = f"{path}.v1.backup"
    assert stat.S_IMODE(os.stat(kept).st_mode) == 0o600
    copy = sqlite3.connect(kept)
    assert (migrations.read_version(copy), copy.execute("SELECT * FROM events").fetchall()) == (1, [("kept",)])
    copy.close()


def test_a_migration_is_whole_or_not_at_all(
    path: str, opened: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that fails undoes those before it; the old history can still be read."""
    older(path, "CREATE TABLE events (event_id TEXT)")
    steps = (migrations.MIGRATIONS[0], ["CREATE TABLE half (a)"], ["nonsense"])
    monkeypatch.setattr(migrations, "MIGRATIONS", steps)
    monkeypatch.setattr(migrations, "LATEST", 3)
    database = opened()
    assert database.reason is not None
    assert run(database.read(migrations.read_version)) == 1
    assert run(database.read(lambda c: [row[0] for row in c.execute("SELECT name FROM sqlite_master")])) == ["events"]


def test_live_notes_that_are_kept_for_good_now_no_longer_expire(path: str, opened: Callable[[], Database]) -> None:
    """Decisions and their like had the tier `mid` by default. Those that have expired stay expired; other kinds and
    other tiers stay as they are."""
    before = migrations.MIGRATIONS.index(migrations._KEPT_KINDS)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    later, earlier = time.time() + 1_000, time.time() - 1_000
    rows = [
        ("decision", "mid", later),
        ("lesson", "mid", later),
        ("decision", "mid", earlier),
        ("decision", "short", later),
        ("note", "mid", later),
        ("change", "mid", later),
        ("session_summary", "mid", later),
    ]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrations.migrate(connection, migrations.MIGRATIONS[:before])
        for number, (kind, tier, expires_at) in enumerate(rows):
            connection.execute(
                "INSERT INTO notes (uid, tier, namespace, kind, title, content, tags, priority, confidence, source,"
                " created_at, updated_at, expires_at, metadata, origin)"
                " VALUES (?, ?, 'global', ?, ?, 'x', '[]', 5, 1, 'cli', 1, 1, ?, '{}', '{}')",
                (f"{number:024x}", tier, kind, f"title {number}", expires_at),
            )
    kept = run(opened().read(lambda c: c.execute("SELECT kind, tier, expires_at FROM notes ORDER BY uid").fetchall()))
    assert kept == [("decision", "long", None), ("lesson", "long", None), *rows[2:]]


def test_a_new_database_needs_no_backup(opened: Callable[[], Database], path: str) -> None:
    """There is nothing to lose."""
    opened()
    assert not [name for name in os.listdir(os.path.dirname(path)) if "backup" in name]


# Writing


def test_waiting_writes_are_committed_together(opened: Callable[[], Database]) -> None:
    """Forty at once take far fewer commits, and each is answered after its own."""
    database = opened()
    commits: list[int] = []
    begun, held = threading.Event(), threading.Event()

    def hold(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(lambda statement: commits.append(1) if statement == "COMMIT" else None)
        begun.set()
        held.wait(20)

    async def main() -> list[list[str]]:
        first = asyncio.ensure_future(database.maintain(hold))
        assert await asyncio.to_thread(begun.wait, 20)

        async def one(number: int) -> list[str]:
            await database.write(add(f"{number}"))
            return await database.read(names)

        tasks = [asyncio.ensure_future(one(number)) for number in range(40)]
        await asyncio.sleep(0)
        held.set()
        await first
        return await asyncio.gather(*tasks)

    seen = run(main())
    assert all(f"{number}" in row for number, row in enumerate(seen))
    assert len(commits) == 1


def test_a_write_that_fails_takes_no_other_with_it(opened: Callable[[], Database]) -> None:
    """Its own changes are undone; those that waited beside it are kept."""
    database = opened()

    def spoiled(connection: sqlite3.Connection) -> None:
        add("spoiled")(connection)
        raise Invalid("on purpose")

    async def main() -> list[Any]:
        works = [add("a"), spoiled, add("b"), add("a")]
        return await asyncio.gather(*(database.write(work) for work in works), return_exceptions=True)

    first, second, third, fourth = run(main())
    assert (first, third) == (None, None)
    assert isinstance(second, Invalid)
    assert isinstance(fourth, StorageFailed)
    assert run(database.read(names)) == ["a", "b"]


def test_a_full_disk_stops_writing_and_not_reading(opened: Callable[[], Database]) -> None:
    """E_STORAGE until there is room again; what was acknowledged stays."""
    database = opened()
    run(database.write(add("a")))
    size = run(database.maintain(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0]))
    run(database.maintain(lambda connection: connection.execute(f"PRAGMA max_page_count = {size}").fetchone()))

    def much(connection: sqlite3.Connection) -> None:
        for number in range(2_000):
            add(f"{number}-{'x' * 500}")(connection)

    async def main() -> list[Any]:
        works = [add("b"), much, add("c")]
        return await asyncio.gather(*(database.write(work) for work in works), return_exceptions=True)

    outcomes = run(main())
    assert isinstance(outcomes[1], StorageFailed)
    assert "full" in outcomes[1].message
    for outcome, name in ((outcomes[0], "b"), (outcomes[2], "c")):
        assert (outcome is None) == (name in run(database.read(names)))
    run(database.maintain(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchone()))
    run(database.write(add("d")))
    assert {"a", "d"} <= set(run(database.read(names)))


def test_readers_cannot_write(opened: Callable[[], Database]) -> None:
    """There is one writer."""
    with pytest.raises(StorageFailed, match="readonly"):
        run(opened().read(add("a")))


def test_a_read_sees_one_state_of_the_database(opened: Callable[[], Database]) -> None:
    """What is written between two queries of one read is in neither, and in the next read."""
    database = opened()
    run(database.write(add("a")))

    async def read_while_writing() -> tuple[list[str], list[str]]:
        loop = asyncio.get_running_loop()

        def read(connection: sqlite3.Connection) -> tuple[list[str], list[str]]:
            before = names(connection)
            asyncio.run_coroutine_threadsafe(database.write(add("b")), loop).result()
            return before, names(connection)

        return await database.read(read)

    assert run(read_while_writing()) == (["a"], ["a"])
    assert run(database.read(names)) == ["a", "b"]


def test_a_read_that_takes_too_long_is_stopped(opened: Callable[[], Database]) -> None:
    """The caller has given up by then; the thread is free for the next one."""
    database = opened()
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(StorageFailed, match="took too long"):
        run(database.read(lambda connection: connection.execute(endless).fetchone(), timeout=0.05))
    assert run(database.read(names)) == []


def test_a_read_that_never_gets_its_turn_is_retryable(opened: Callable[[], Database]) -> None:
    """All readers are busy: nothing is wrong with the question."""
    database = opened()
    held = threading.Event()

    async def main() -> None:
        busy = [asyncio.ensure_future(database.read(lambda _: held.wait(20))) for _ in range(limits.READERS)]
        await asyncio.sleep(0)
        try:
            await database.read(names, timeout=0.05)
        finally:
            held.set()
            await asyncio.gather(*busy)

    with pytest.raises(Unavailable, match="busy"):
        run(main())


def test_closing_interrupts_what_takes_too_long(opened: Callable[[], Database]) -> None:
    """A server that leaves has a second, not an hour; what was interrupted never happened."""
    database = opened()
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    begun = threading.Event()

    def work(connection: sqlite3.Connection) -> None:
        add("a")(connection)
        begun.set()
        connection.execute(endless).fetchone()

    async def main() -> Any:
        task = asyncio.ensure_future(database.write(work))
        await asyncio.to_thread(begun.wait, 20)
        await asyncio.to_thread(database.close)
        return (await asyncio.gather(task, return_exceptions=True))[0]

    assert isinstance(run(main()), Unavailable)
    assert run(opened().read(names)) == []


def test_a_kill_loses_no_acknowledged_write(opened: Callable[[], Database], path: str) -> None:
    """And a hook can look at what it left, before anybody opens it for writing."""
    code = (
        "import asyncio, os, sys\nfrom nudge.storage.database import Database\nasync def main():\n"
        " d = Database.open(sys.argv[1])\n"
        " await d.write(lambda c: c.execute(\"INSERT INTO events VALUES ('a', 0)\") and None)\n"
        " os.kill(os.getpid(), 9)\nasyncio.run(main())"
    )
    done = subprocess.run([sys.executable, "-c", code, path], check=False, timeout=30)
    assert done.returncode == -9
    connection = open_readonly(path)
    assert names(connection) == ["a"]
    connection.close()
    assert run(opened().read(names)) == ["a"]


# Beside


def test_a_look_at_nothing_is_an_error_of_ours(path: str) -> None:
    """And does not make a file."""
    with pytest.raises(StorageFailed):
        open_readonly(path)
    assert not os.path.exists(path)


def test_a_path_may_hold_anything(tmp_path: Path) -> None:
    """Characters that mean something in a URI are part of the name."""
    path = str(tmp_path / "a?b#c%20d" / "nudge.db")
    database = Database.open(path)
    run(database.write(add("a")))
    database.close()
    assert os.path.exists(path)


def test_a_copy_is_whole_and_overwrites_nothing(opened: Callable[[], Database], tmp_path: Path) -> None:
    """Owner-only, and the same rows, while the original is in use."""
    database = opened()
    run(database.write(add("a")))
    target = str(tmp_path / "copy.db")
    run(database.read(lambda connection: copy_to(connection, target)))
    assert stat.S_IMODE(os.stat(target).st_mode) == 0o600
    copy = open_readonly(target)
    assert names(copy) == ["a"]
    copy.close()
    with pytest.raises(FileExistsError):
        run(database.read(lambda connection: copy_to(connection, target)))


def test_a_check_finds_what_is_wrong(opened: Callable[[], Database]) -> None:
    """Nothing in a whole file; an index that says other than the rows, or a row that refers to nothing, is found."""
    database = opened()
    assert run(database.maintain(check)) == []
    assert run(database.read(check)) == []

    def spoil(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(
            "INSERT INTO prompts (session_id, timestamp, source, content) VALUES ('gone', 0, 'user', '')"
        )
        connection.execute("INSERT INTO observations_fts(rowid, content, file_path) VALUES (77, 'ghost', '')")

    run(database.maintain(spoil))
    result = run(database.maintain(check))
    assert len(result) == 2
    assert "missing row of sessions" in result[0]
    assert "full-text index" in result[1]


# A file that is removed or replaced while it is open


def remove_file(path: str) -> None:
    os.unlink(path)


def remove_all(path: str) -> None:
    for name in os.listdir(os.path.dirname(path)):
        os.unlink(os.path.join(os.path.dirname(path), name))


def remove_wal(path: str) -> None:
    os.unlink(f"{path}-wal")


def remove_folder(path: str) -> None:
    shutil.rmtree(os.path.dirname(path))


@pytest.mark.parametrize("lose", [remove_file, remove_all, remove_folder, remove_wal])
def test_a_removed_file_is_written_again(
    opened: Callable[[], Database], path: str, lose: Callable[[str], None]
) -> None:
    """With everything that was acknowledged; a kill right after the next write would lose nothing either."""
    database = opened()
    run(database.write(add("a")))
    assert run(database.read(names)) == ["a"]
    lose(path)
    run(database.write(add("b")))
    assert database.warning is not None and "removed" in database.warning and database.reason is None
    assert run(database.read(names)) == ["a", "b"]
    with contextlib.closing(open_readonly(path)) as beside:
        assert names(beside) == ["a", "b"]
    assert run(database.maintain(check)) == []
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert not Flock(f"{path}.lock").acquire()
    database.close()
    assert run(opened().read(names)) == ["a", "b"]


@pytest.mark.parametrize("lose", [remove_file, remove_wal])
def test_a_removed_file_is_noticed_without_a_write(
    opened: Callable[[], Database], path: str, lose: Callable[[str], None]
) -> None:
    """Whoever looks after the database asks now and then. Also when it was there before."""
    opened().close()
    database = opened()
    run(database.write(add("a")))
    run(database.check_path())
    assert database.warning is None
    lose(path)
    run(database.check_path())
    assert database.warning is not None
    with contextlib.closing(open_readonly(path)) as beside:
        assert names(beside) == ["a"]


def test_a_file_in_the_databases_place_is_used(opened: Callable[[], Database], path: str, tmp_path: Path) -> None:
    """The user put it there; what was recorded until then is kept as a backup."""
    other = Database.open(str(tmp_path / "other.db"))
    run(other.write(add("other")))
    other.close()
    database = opened()
    run(database.write(add("a")))
    assert run(database.read(names)) == ["a"]
    os.replace(tmp_path / "other.db", path)
    run(database.write(add("b")))
    assert run(database.read(names)) == ["b", "other"]
    assert run(database.maintain(check)) == []
    assert database.warning is not None and "replaced" in database.warning
    (kept,) = (Path(path).parent / "backups").iterdir()
    assert str(kept) in database.warning
    with contextlib.closing(open_readonly(str(kept))) as backup:
        assert names(backup) == ["a"]


def test_a_file_that_is_no_database_takes_no_writes(opened: Callable[[], Database], path: str) -> None:
    """Writing is refused while it is there, nothing is copied again and again, and the history goes on afterwards."""
    database = opened()
    run(database.write(add("a")))
    os.unlink(path)
    Path(path).write_bytes(b"this is no database" * 100)
    for _ in range(3):
        with pytest.raises(StorageFailed):
            run(database.write(add("b")))
    assert "not a database" in (database.reason or "")
    assert not (Path(path).parent / "backups").exists()
    os.unlink(path)
    run(database.write(add("c")))
    assert run(database.read(names)) == ["a", "c"]


def test_no_room_to_write_it_again(opened: Callable[[], Database], path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write is refused, nothing that was acknowledged is lost, and the next write tries again."""
    database = opened()
    run(database.write(add("a")))
    os.unlink(path)

    def refuse(_connection: sqlite3.Connection, _target: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("nudge.storage.database.copy_to", refuse)
        with pytest.raises(StorageFailed, match="No space left"):
            run(database.write(add("b")))
    run(database.write(add("c")))
    assert run(database.read(names)) == ["a", "c"]


def test_another_server_took_the_lock_of_a_removed_directory(opened: Callable[[], Database], path: str) -> None:
    """Then this one writes no more."""
    database = opened()
    run(database.write(add("a")))
    shutil.rmtree(os.path.dirname(path))
    os.makedirs(os.path.dirname(path))
    other = Database.open(path)
    with pytest.raises(StorageFailed, match="another server"):
        run(database.write(add("b")))
    other.close()
