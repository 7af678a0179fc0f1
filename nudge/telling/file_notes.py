"""The notes about a file that a session reads or edits, as a hook tells them: at most two, and mostly none."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nudge.core import limits
from nudge.core.note_files import relative_to
from nudge.history.observations import FILE_TYPES
from nudge.learning.shell import parse_commands
from nudge.notes.note import Note
from nudge.notes.store import SqlConnection, find_winners, get_many, placeholders
from nudge.telling.file import TOLD_KINDS, Candidate, choose, possible_names
from nudge.telling.ledger import Line
from nudge.telling.prompt_notes import as_whole_as_fits, is_of_branch, note_text_line

_READ = 50  # rows of the index for one file
_SCRIPTED = frozenset(("sed", "awk"))
_PRINTERS = frozenset(("cat", "head", "tail", "less", "more", "nl", "bat")) | _SCRIPTED


def files_of(event: Mapping[str, Any]) -> list[str]:
    """The files that an event reads or changes, relative to the top of their clone; none that are elsewhere."""
    if event.get("type") in FILE_TYPES:
        metadata = event.get("metadata")
        more = metadata.get("files") if isinstance(metadata, dict) else None
        paths = [event.get("file_path"), *(more[: limits.MAX_PATCHED_FILES] if isinstance(more, list) else ())]
    elif event.get("type") == "command":
        paths = list(_printed_files(str(event.get("content") or ""), str(event.get("cwd") or "")))
    else:
        return []
    top = event.get("clone") or event.get("cwd")
    relative = (relative_to(path, top) for path in dict.fromkeys(paths) if isinstance(path, str) and path and top)
    return [path for path in relative if path is not None]


def _printed_files(line: str, cwd: str) -> Iterator[str]:
    """The files that a command line prints: some clients, Codex for one, read files by commands only."""
    program = line.partition(" ")[0]
    if program not in _PRINTERS or not cwd:
        return
    command = next(iter(parse_commands(line)), None)
    words = command.words if command is not None else ()
    is_behind_script = program not in _SCRIPTED
    for word in words[1:]:
        if word.startswith("-") or word.is_expanded or word.isdecimal():
            continue
        if not is_behind_script:  # `sed -n 1,80p src/a.ts`
            is_behind_script = True
        else:
            yield posixpath.normpath(posixpath.join(cwd, word))


def lines_for_files(
    connection: SqlConnection,
    paths: Sequence[str],
    namespace: str | None,
    branch: str | None,
    session: str | None,
    now: float,
) -> list[Line]:
    """Lines about the notes of the namespace about these files: none of another branch, and none that the session
    stored itself. A note that was resolved in favor of another is replaced by that one."""
    found: list[Candidate] = []
    notes: dict[int, Note] = {}
    for path in paths if namespace else ():
        rows = _indexed(connection, path)
        loaded = _holding(connection, list(rows), now)
        for note_id, note in loaded.items():
            if _is_told(note, namespace, branch, session):
                notes[note.id] = note
                found.append(Candidate(note.id, rows[note_id], note.updated_at))
    chosen = [notes[note_id] for note_id in choose(found, limits.FILE_LINES)]
    return as_whole_as_fits(
        lambda most: [note_text_line(note, now, namespace, most, "it is about this file") for note in chosen]
    )


def _indexed(connection: SqlConnection, path: str) -> dict[int, bool]:
    """The notes about a file, each with whether the file was given for it; the newest notes when there are many."""
    names = possible_names(path)
    rows = connection.execute(
        "SELECT note_id, max(is_given) FROM note_files"  # noqa: S608 - only placeholders are put into the SQL
        f" WHERE path IN ({placeholders(names)}) AND (path = ? OR NOT is_given)"
        " GROUP BY note_id ORDER BY max(is_given) DESC, note_id DESC LIMIT ?",
        (*names, path, _READ),
    )
    return {note_id: bool(is_given) for note_id, is_given in rows}


def _holding(connection: SqlConnection, ids: Sequence[int], now: float) -> dict[int, Note]:
    """The notes that hold now, by the id of the note that was found."""
    if not ids:
        return {}
    winners = find_winners(connection, ids, now)
    notes = get_many(connection, [note_id for note_id in ids if note_id not in winners], now)
    return {**notes, **{loser: winner for loser, winner in winners.items() if winner is not None}}


def _is_told(note: Note, namespace: str | None, branch: str | None, session: str | None) -> bool:
    if note.draft.namespace != namespace or note.draft.kind not in TOLD_KINDS or note.damage is not None:
        return False
    is_own = session is not None and note.draft.origin.get("session") == session
    return not is_own and note.draft.confidence >= limits.DOUBTFUL_CONFIDENCE and is_of_branch(note, branch)
