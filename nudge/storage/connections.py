"""Connections to the database file: who may open it how. Cheap to import, since a hook looks into it too."""

from __future__ import annotations

import os
import sqlite3
import sys

from nudge import limits
from nudge.errors import StorageFailed

_NETWORK = ("nfs", "cifs", "smb", "afs", "ceph", "lustre", "gluster", "fuse.sshfs", "fuse.rclone", "ncpfs", "beegfs")
_CREATE = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def open_readonly(path: str, patience: float = limits.LOOK_TIMEOUT) -> sqlite3.Connection:
    """A look at the history beside whoever writes it. StorageFailed when there is none, or when it cannot be read."""
    try:
        connection = sqlite3.connect(
            _uri(path, "ro"), uri=True, timeout=patience, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise StorageFailed(f"the history cannot be opened: {error}") from None
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        raise StorageFailed(f"the history cannot be read: {error}") from None
    return connection


def open_backup(path: str) -> sqlite3.Connection:
    """One that nobody writes: without a journal beside it none is made there either."""
    still = "" if os.path.exists(f"{path}-wal") else "&immutable=1"
    connection = sqlite3.connect(_uri(path, "ro") + still, uri=True, isolation_level=None)
    connection.execute("PRAGMA query_only = ON")
    return connection


def open_writable(path: str) -> sqlite3.Connection:
    """The one writer's connection; the file is made owner-only before anything is in it."""
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    os.close(os.open(path, _CREATE, 0o600))
    connection = sqlite3.connect(
        _uri(path, "rw"),
        uri=True,
        timeout=limits.BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # heeded only while the file is empty
    connection.execute(f"PRAGMA journal_mode = {'TRUNCATE' if on_network(path) else 'WAL'}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{limits.WRITER_CACHE_BYTES // limits.KIB}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")


def _uri(path: str, mode: str) -> str:
    """Spelled out here, since the library that quotes URIs costs a hook 10 ms."""
    escaped = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{escaped}?mode={mode}"


def on_network(path: str, mounts: str = "/proc/self/mounts") -> bool:
    """Whether the file lies on a network filesystem, whose shared memory, which WAL needs, machines do not share."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.split(" ") for line in file]
    except OSError:
        return False
    return _kind_of(os.path.realpath(path), rows).startswith(_NETWORK)


def _kind_of(path: str, rows: list[list[str]]) -> str:
    """The type of the innermost mount above the path; of two on one point, the later covers the earlier."""
    best, kind = "", ""
    for row in rows:
        if len(row) < 3:
            continue
        point = row[1].replace("\\040", " ")
        if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, row[2]
    return kind
