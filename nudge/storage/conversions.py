"""What a migration of the database changes in rows that are there already, where SQL alone cannot."""

from __future__ import annotations

import json

from nudge.core.note_files import index_files
from nudge.core.passages import index_passages

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

_OPERATORS = (";", "&", "|", "\n", "(", ")")
_FACT_KEY = "project = ? AND kind = ? AND subject = ? AND answer = ? AND session_id = ?"


def index_stored_passages(connection: sqlite3.Connection) -> None:
    for note_id, title, content in connection.execute("SELECT id, title, content FROM notes"):
        if isinstance(title, str) and isinstance(content, str):  # a damaged row must not stop the others
            index_passages(connection, note_id, title, content)


def index_stored_files(connection: sqlite3.Connection) -> None:
    for note_id, title, content, metadata in connection.execute("SELECT id, title, content, metadata FROM notes"):
        if not isinstance(title, str) or not isinstance(content, str):  # a damaged row must not stop the others
            continue
        try:
            fields = json.loads(metadata)
        except (TypeError, ValueError, RecursionError):
            fields = {}
        index_files(connection, note_id, fields if isinstance(fields, dict) else {}, title, content)


def keep_facts_that_ran(connection: sqlite3.Connection) -> None:
    """Earlier versions put answers together from words, without their quotes. Keep those that a session ran as they
    stand; one that goes on behind them ends in an ellipsis from now on."""
    stored = connection.execute(
        "SELECT project, kind, subject, answer, session_id FROM facts"
        " WHERE details = '{}' AND kind IN ('program', 'module', 'option', 'target', 'call')"
    ).fetchall()
    for *key, answer, session in stored:
        rows = connection.execute(
            "SELECT content FROM observations WHERE session_id = ? AND instr(content, ?)", (session, answer)
        )
        row = (*key, answer, session)
        whole = {_is_whole_command(answer, line) for (line,) in rows} - {None}
        if not whole:
            connection.execute(f"DELETE FROM facts WHERE {_FACT_KEY}", row)  # noqa: S608 - constants
        elif True not in whole:
            connection.execute(f"UPDATE facts SET answer = answer || ' …' WHERE {_FACT_KEY}", row)  # noqa: S608


def _is_whole_command(text: str, line: str) -> bool | None:
    """Whether a text is a command of the line, from operator to operator; False for the beginning of a command, None
    for any other part."""
    before, _, behind = line.partition(text)
    if before.rstrip(" ")[-1:] not in ("", *_OPERATORS):
        return None
    rest = behind.lstrip(" ")
    if not rest or rest[0] in _OPERATORS or rest.lstrip("0123456789")[:1] == ">":
        return True
    return False if behind[0] == " " else None
