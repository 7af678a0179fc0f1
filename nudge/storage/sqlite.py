"""SQLite files: opening, copying, checking, and searching texts as the history's index would.

No thread and no event loop: a hook opens the database with it too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import sys
from functools import partial
from itertools import islice

from nudge.core import limits
from nudge.core.errors import Invalid, NudgeError, StorageFailed, Unavailable
from nudge.storage.migrations import TOKENIZER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

JOURNALS = ("-wal", "-shm", "-journal")

_NETWORK = ("nfs", "cifs", "smb", "afs", "ceph", "lustre", "gluster", "fuse.sshfs", "fuse.rclone", "ncpfs", "beegfs")
_CREATE = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_MAGIC, _HEADER_BYTES = b"SQLite format 3\0", 20  # the last two: the formats for writing and for reading, 1 or 2
_TEXTS_AT_ONCE = 5_000  # documents in one in-memory index

STATEMENT_ERRORS = (sqlite3.Error, UnicodeDecodeError, MemoryError)
"""What a statement raises. The second: SQLite quotes names of a damaged schema, whose bytes need not be text."""

_UNEXPECTED = "a statement was refused; the server's log has the details"
# Of the environment, of what the caller gave, or of ours, each with a sentence: SQLite's own may quote a statement or
# name a table. `SQLITE_ERROR` is not one: our statements fit our schema.
_NOT_DAMAGE = {
    "SQLITE_FULL": "database or disk is full",
    "SQLITE_IOERR": "disk I/O error",
    "SQLITE_READONLY": "attempt to write a readonly database",
    "SQLITE_CANTOPEN": "unable to open database file",
    **dict.fromkeys(("SQLITE_PERM", "SQLITE_AUTH"), "access was refused"),
    **dict.fromkeys(("SQLITE_INTERRUPT", "SQLITE_ABORT"), "it was interrupted"),
    "SQLITE_NOMEM": "not enough memory",
    "SQLITE_NOLFS": "its file is too large for this system",
    "SQLITE_PROTOCOL": "its file cannot be locked",
    "SQLITE_TOOBIG": "a value is too large",
    **dict.fromkeys(("SQLITE_CONSTRAINT", "SQLITE_MISUSE", "SQLITE_RANGE"), _UNEXPECTED),
}
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
_UNDECODABLE = "Could not decode to UTF-8"  # what Python says
_QUERY_ERROR = "fts5: syntax error"
_DETAILS = ("file is not a database", "database disk image is malformed")


class DatabaseDamaged(StorageFailed):
    """The database cannot be read completely."""


class TextDamaged(DatabaseDamaged):
    """A text in the database is not UTF-8."""


def read_any_text(connection: sqlite3.Connection) -> None:
    """Have the connection read text that is not UTF-8, with a mark for each wrong byte; it reads all text slower."""
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")


def to_nudge_error(error: BaseException) -> NudgeError:
    """Return one of `STATEMENT_ERRORS` as a NudgeError: damage, unless it is known to be something else. The message
    names no path and no SQL."""
    name, text = error_name(error), str(error)
    if name.startswith(_BUSY):
        return Unavailable("another process is writing to the history; try again")
    if name == "SQLITE_ERROR" and text.startswith(_QUERY_ERROR):
        return Invalid(text.removeprefix("fts5: "), field="query")
    if isinstance(error, MemoryError):
        name = "SQLITE_NOMEM"
    sentence = next((sentence for kind, sentence in _NOT_DAMAGE.items() if name.startswith(kind)), None)
    if sentence is None and isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
        sentence = _UNEXPECTED
    if not name and text.startswith(_UNDECODABLE):
        return TextDamaged(damaged(describe_damage(error)).message)
    return damaged(describe_damage(error)) if sentence is None else StorageFailed(f"the database failed: {sentence}")


def describe_damage(error: BaseException) -> str:
    """Say what is damaged, without path and SQL."""
    return str(error) if str(error) in _DETAILS else "its schema or a row cannot be read"


def damaged(problem: str) -> DatabaseDamaged:
    return DatabaseDamaged(f"the database is damaged ({problem})")


def open_readonly(path: str, timeout: float = limits.OFFLINE_READ_TIMEOUT) -> sqlite3.Connection:
    """Open the database for reading beside its writer. Raises StorageFailed when there is none or it cannot be read."""
    _check_header(path)
    try:
        connection = sqlite3.connect(
            _uri(path, "ro"), uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise to_nudge_error(error) from None
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except STATEMENT_ERRORS as error:
        connection.close()
        raise to_nudge_error(error) from None
    return connection


def open_backup(path: str) -> sqlite3.Connection:
    """Open a database that no process writes to. No journal is created beside it."""
    immutable = "" if os.path.exists(f"{path}-wal") else "&immutable=1"
    connection = sqlite3.connect(_uri(path, "ro") + immutable, uri=True, isolation_level=None)
    connection.execute("PRAGMA query_only = ON")
    return connection


def open_writable(path: str) -> sqlite3.Connection:
    """Open the one writer's connection. A new file is created owner-only before anything is in it; a symbolic link is
    refused with OSError."""
    _check_header(path)
    _forget_removed(path)
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    if os.path.islink(path):  # O_NOFOLLOW refuses it too, as "Too many levels of symbolic links"
        raise OSError(errno.ELOOP, "its path is a symbolic link")
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
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # takes effect only in an empty file
    connection.execute(f"PRAGMA journal_mode = {'TRUNCATE' if on_network(path) else 'WAL'}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{limits.WRITER_CACHE_BYTES // limits.KIB}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")


def _uri(path: str, mode: str) -> str:
    """A `file:` URI. By hand: importing `urllib.parse` costs a hook 10 ms."""
    escaped = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{escaped}?mode={mode}"


# A database that was emptied


def leave_mark(path: str) -> None:
    """Leave a mark beside a database that has content: with it, an empty file is known to have lost its content."""
    with contextlib.suppress(OSError):  # on a full disk, for example: then an empty file counts as a new one
        os.close(os.open(_mark(path), _CREATE, 0o600))


def _check_header(path: str) -> None:
    """Raise DatabaseDamaged for what SQLite takes for something else: a file of 0 bytes that had content for a new
    database (it would delete the old one's write-ahead log), and unknown format numbers for a read-only one."""
    try:
        with open(os.open(path, _READ), "rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError:
        return
    if not header and os.path.exists(_mark(path)):
        raise damaged("the file is empty")
    if header.startswith(_MAGIC) and not set(header[18:]) <= {1, 2}:
        raise damaged("its header")


def _forget_removed(path: str) -> None:
    """Remove the mark of a database that is gone: a process that is killed while it creates the next one leaves an
    empty file, too."""
    with contextlib.suppress(FileNotFoundError):
        if not os.path.exists(path):
            os.unlink(_mark(path))


def _mark(path: str) -> str:
    return f"{path}.created"


def error_name(error: BaseException) -> str:
    """`SQLITE_BUSY` and the like; empty for an error that Python itself raised."""
    return getattr(error, "sqlite_errorname", None) or ""


def on_network(path: str, mounts: str = "/proc/self/mounts") -> bool:
    """Whether the file is on a network filesystem. WAL needs shared memory, which two machines do not have."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.split(" ") for line in file]
    except OSError:
        return False
    return _kind_of(os.path.realpath(path), rows).startswith(_NETWORK)


def _kind_of(path: str, rows: list[list[str]]) -> str:
    """The type of the innermost mount above the path; of two mounts on one point the later one counts."""
    best, kind = "", ""
    for row in rows:
        if len(row) < 3:
            continue
        point = row[1].replace("\\040", " ")
        if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, row[2]
    return kind


def copy_to(connection: sqlite3.Connection, target: str) -> None:
    """Write a consistent copy into a new owner-only file. Raises FileExistsError rather than overwrite one."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with contextlib.closing(sqlite3.connect(target)) as copy:
            connection.backup(copy)
    except BaseException:
        os.unlink(target)
        raise


def scrub(connection: sqlite3.Connection) -> bool:
    """Remove every trace of deleted rows from the file and its log; False when a reader kept the log from being
    emptied.

    `secure_delete` zeroes deleted content, but a page that was split keeps stale copies of the cells that moved. A
    small file is rewritten, which leaves none; a large one only gives back its free pages.
    """
    size = connection.execute("PRAGMA page_count").fetchone()[0] * connection.execute("PRAGMA page_size").fetchone()[0]
    if size <= limits.VACUUM_BYTES:
        connection.execute("VACUUM")
    else:
        connection.execute("PRAGMA incremental_vacuum").fetchall()
    return bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)


def check(connection: sqlite3.Connection) -> list[str]:
    """Return what is wrong with the file: its schema, pages, foreign keys and full-text indexes. Empty when it is
    sound."""
    from nudge.storage.schema import find_differences  # late: a hook that reads the database needs no check

    try:
        problems = find_differences(connection)
        problems += [str(row[0]) for row in connection.execute("PRAGMA quick_check(20)") if row[0] != "ok"]
        problems += [
            f"{row[0]}: row {row[1]} refers to a missing row of {row[2]}"
            for row in connection.execute("PRAGMA foreign_key_check")
        ]
        return problems + _check_index(connection)
    except STATEMENT_ERRORS as error:
        return [describe_damage(error)]


def _check_index(connection: sqlite3.Connection) -> list[str]:
    """Compare each full-text index with its rows (rank 1). FTS5 does that only through a connection that may write;
    through another one, every word of the index must be readable."""
    look = _read_words if connection.execute("PRAGMA query_only").fetchone()[0] else _compare_with_rows
    problems = []
    names = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'")
    for (index,) in names.fetchall():
        try:
            look(connection, index)
        except STATEMENT_ERRORS as error:
            table = index.removesuffix("_fts")
            problems.append(f"the full-text index does not agree with the {table}: {describe_damage(error)}")
    return problems


def _compare_with_rows(connection: sqlite3.Connection, index: str) -> None:
    connection.execute(f"INSERT INTO {index}({index}, rank) VALUES ('integrity-check', 1)")  # noqa: S608 - our name


def _read_words(connection: sqlite3.Connection, index: str) -> None:
    """Through a table of the connection's own, which it may make for the moment; the file is not written to."""
    connection.execute("PRAGMA query_only = OFF")
    try:
        connection.execute(f"CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, {index}, row)")
        connection.execute("SELECT count(*), sum(cnt) FROM temp.words").fetchone()
    finally:
        connection.execute("DROP TABLE IF EXISTS temp.words")
        connection.execute("PRAGMA query_only = ON")


def match_texts(expression: str, documents: Iterable[tuple[int, str, str | None]]) -> Iterator[int]:
    """The numbers of the documents (number, content, file_path) that an FTS5 expression matches, with the tokenizer of
    the history's own index. In memory: purged text must not be written anywhere."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(
            f"CREATE VIRTUAL TABLE texts USING fts5(content, file_path, details, content='', tokenize='{TOKENIZER}')"
        )
        remaining = iter(documents)
        while part := list(islice(remaining, _TEXTS_AT_ONCE)):
            connection.executemany("INSERT INTO texts(rowid, content, file_path) VALUES (?, ?, ?)", part)
            matches = connection.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (expression,))
            yield from [row[0] for row in matches]
            connection.execute("INSERT INTO texts(texts) VALUES ('delete-all')")
