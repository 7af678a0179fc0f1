"""The notes about a file, in a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from nudge.notes import archive, store
from nudge.notes.fields import Draft, parse_draft
from nudge.notes.note import Lifetimes
from nudge.storage import migrations
from nudge.telling.file_notes import files_of, lines_for_files

NOW = 1_800_000_000.0
REPO = "github.com/acme/api"
PATH = "src/money.ts"


@pytest.fixture
def notes() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrations.migrate(connection)
        yield connection


def _add(
    connection: sqlite3.Connection,
    title: str,
    *files: str,
    content: str = "Because.",
    kind: str = "decision",
    namespace: str = REPO,
    age: float = 0.0,
    **origin: str,
) -> int:
    metadata = {"files": list(files)} if files else {}
    draft = Draft(title, content, namespace, "long", kind, metadata=metadata, origin=origin)
    return store.store(connection, draft, NOW - age, Lifetimes())[0].id


def _told(connection: sqlite3.Connection, path: str = PATH, branch: str | None = "main", now: float = NOW) -> list[int]:
    return [int(line.name[1:]) for line in lines_for_files(connection, [path], REPO, branch, "s1", now)]


def test_notes_about_a_file_are_told(notes: sqlite3.Connection) -> None:
    """At most two, the newest first: those for which the file was given, then those that name it."""
    old = _add(notes, "Money is an integer", PATH, age=9.0)
    _add(notes, "Formatting", content="src/money.ts formats at the edge only.")
    new = _add(notes, "Currencies", PATH, kind="lesson", age=5.0)
    assert _told(notes) == [new, old]
    assert _told(notes, "lib/money.ts") == _told(notes, "src/other.ts") == []


def test_a_short_note_is_told_whole_and_a_second_one_gets_its_share(notes: sqlite3.Connection) -> None:
    """In whole sentences: a note states its decision first, so its first one and the last ones are told."""
    reason = "The reason takes a sentence of its own, which is not short. " * 5
    _add(notes, "Money is an integer", PATH, content=f"Store cents. {reason}Ask the ledger team.")
    (alone,) = lines_for_files(notes, [PATH], REPO, "main", "s1", NOW)
    assert f"Store cents. {reason}Ask the ledger team." in alone.text
    _add(notes, "Currencies", PATH, content=f"Name the currency. {reason}{reason}Ask twice.", age=5.0)
    both = [line.text for line in lines_for_files(notes, [PATH], REPO, "main", "s1", NOW)]
    assert [text.partition(": ")[2][:40] for text in both] == [
        '"Money is an integer": "Store cents. … T',
        '"Currencies": "… The reason takes a sent',
    ]
    assert all(text.endswith(end) for text, end in zip(both, ('Ask the ledger team."', 'Ask twice."'), strict=True))


def test_a_file_that_only_the_text_names_is_found(notes: sqlite3.Connection) -> None:
    """By its path or by its end, also in the title."""
    one = _add(notes, "Rounding in money.ts")
    assert _told(notes) == [one]


def test_what_nobody_decided_about_this_file_is_not_told(notes: sqlite3.Connection) -> None:
    """Notes of other repos, of everywhere, of another branch, of the session itself, and plain notes."""
    _add(notes, "One", PATH, namespace="payroll")
    _add(notes, "Two", PATH, namespace="global")
    _add(notes, "Three", PATH, branch="feature/x")
    _add(notes, "Four", PATH, session="s1")
    _add(notes, "Five", PATH, kind="note")
    assert _told(notes) == [] and _told(notes, branch="feature/x") != []
    assert lines_for_files(notes, [PATH], None, None, None, NOW) == []


def test_a_superseded_note_gives_way_to_the_one_that_holds(notes: sqlite3.Connection) -> None:
    """Also where only the old one is about the file."""
    old, new = _add(notes, "Money is a float", PATH), _add(notes, "Money is an integer")
    store.resolve(notes, new, old, NOW, Lifetimes())
    assert _told(notes) == [new]


def test_updates_archive_and_restore_keep_the_files(notes: sqlite3.Connection) -> None:
    """The index follows the note: what is deleted or changed is not found any more."""
    note_id = _add(notes, "Money is an integer", PATH)
    fields: dict[str, Any] = {"title": "Money is an integer", "content": "New.", "metadata": {"a": 1}}
    note = store.store(notes, parse_draft(fields, now=NOW, namespace=REPO), NOW, Lifetimes())[0]
    assert note.draft.metadata == {"a": 1, "files": [PATH]} and _told(notes) == [note_id]
    archive_notes = [store.get(notes, note_id, NOW)]
    store.archive_notes(notes, archive_notes, "manual", NOW)
    assert _told(notes) == []
    archive.restore(notes, note_id, NOW, Lifetimes())
    assert _told(notes) == [note_id]
    changed = store.update(notes, note_id, {"files": ["src/other.ts"]}, NOW, Lifetimes())
    assert changed.draft.metadata == {"a": 1, "files": ["src/other.ts"]}
    assert _told(notes) == [] and _told(notes, "src/other.ts") == [note_id]
    assert store.update(notes, note_id, {"files": []}, NOW, Lifetimes()).draft.metadata == {"a": 1}
    store.delete(notes, note_id, NOW)
    assert notes.execute("SELECT count(*) FROM note_files").fetchone() == (0,)


def test_a_consolidated_note_is_about_the_files_of_all(notes: sqlite3.Connection) -> None:
    """What replaces notes is told where they were."""
    ids = [_add(notes, "One", PATH), _add(notes, "Two", "src/other.ts")]
    whole = archive.consolidate(notes, ids, Draft("Both", "Text.", REPO, kind="decision"), NOW, Lifetimes())
    assert _told(notes) == _told(notes, "src/other.ts") == [whole.id]


def test_notes_of_an_older_database_are_indexed() -> None:
    """By the paths in their texts; a damaged row does not stop the others."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        before = next(at for at, step in enumerate(migrations.MIGRATIONS) if step is migrations._NOTE_FILES)
        migrations.migrate(connection, migrations.MIGRATIONS[:before])
        connection.executemany(
            "INSERT INTO notes (uid, tier, namespace, kind, title, content, tags, priority, confidence, source,"
            " created_at, updated_at, metadata, origin)"
            " VALUES (?, 'long', ?, 'decision', ?, ?, '[]', 5, 1.0, 'cli', 1.0, 1.0, ?, '{}')",
            [("a" * 24, REPO, "Money", "See src/money.ts.", "{}"), ("b" * 24, REPO, "Bad", b"\x00", "{}")],
        )
        migrations.migrate(connection)
        assert _told(connection) == [1]


def test_files_of_an_event_are_relative_to_its_clone() -> None:
    """Of a patch, all of them; a file elsewhere is none."""
    event = {"type": "file_edit", "clone": "/c", "cwd": "/c/src", "file_path": "/c/src/a.py"}
    assert files_of(event) == ["src/a.py"]
    assert files_of({**event, "metadata": {"files": ["/c/b.py", "/etc/passwd"]}}) == ["src/a.py", "b.py"]
    assert files_of({**event, "clone": None}) == ["a.py"]
    assert files_of({**event, "type": "search"}) == files_of({**event, "file_path": "/other/a.py"}) == []


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("cat a.py ../b.py", ["src/a.py", "b.py"]),
        ("sed -n '1,80p' a.py | head -20", ["src/a.py"]),
        ("head -n 40 'my file.md' && pytest", ["src/my file.md"]),
        ("cat /etc/passwd", []),
        ("cat $HOME/a.py *.py", []),
        ("cat", []),
        ("pytest a.py", []),
        ("cat 'a.py", []),
    ],
)
def test_files_that_a_command_prints_are_read(line: str, files: list[str]) -> None:
    """Codex reads files by commands only. What the shell puts in place of a word is not known."""
    assert files_of({"type": "command", "clone": "/c", "cwd": "/c/src", "content": line}) == files
