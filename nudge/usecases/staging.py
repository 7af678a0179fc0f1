"""The state of imports and exports in pages, which PRIMARY keeps between two pages of one transfer."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any, TypeVar

from nudge import limits
from nudge.errors import NotFound, QuotaExceeded, StorageFailed
from nudge.hints.import_export import IncomingHint
from nudge.hints.model import Hint, Identity
from nudge.memories.transfer import IncomingLink, IncomingNote

_now = time.monotonic


@dataclass(eq=False)
class StagedImport:
    """The checked hints of an import's pages, in an unnamed temporary file, which is readable by its owner only and
    disappears with the process. Secrets stay in memory: their values are never written to disk."""

    mode: str
    file: IO[bytes]
    secret_hints: list[IncomingHint] = field(default_factory=list)
    pages: int = 0
    hints: int = 0
    seen: set[Identity] = field(default_factory=set)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    touched: float = field(default_factory=lambda: _now())

    def append(self, incoming: list[IncomingHint]) -> None:
        """Write hints to the file. Blocks: call it on a worker thread."""
        self.file.seek(0, os.SEEK_END)
        self.secret_hints += [one for one in incoming if one.hint.secret]
        try:
            self.file.write(b"".join(_line(one) for one in incoming if not one.hint.secret))
            self.file.flush()
        except OSError as error:
            raise StorageFailed(f"the page was not stored: {error.strerror}; nothing was imported") from None
        self.pages += 1
        self.hints += len(incoming)

    def read(self) -> Iterator[IncomingHint]:
        self.file.seek(0)
        yield from (IncomingHint.from_record(json.loads(line)) for line in self.file)
        yield from self.secret_hints

    def close(self) -> None:
        self.file.close()
        self.secret_hints.clear()


@dataclass(eq=False)
class PinnedExport:
    """The hints as they were when an export began, sorted by identity."""

    header: dict[str, Any]
    hints: list[Hint]
    reveal: bool
    touched: float = field(default_factory=lambda: _now())

    def close(self) -> None:
        self.hints = []


@dataclass(eq=False)
class StagedNotes:
    """The checked notes and links of an import's pages, kept in memory until the last page."""

    id: str = ""
    pages: int = 0
    read: int = 0
    size: int = 0
    notes: list[IncomingNote] = field(default_factory=list)
    links: list[IncomingLink] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    touched: float = field(default_factory=lambda: _now())

    def append(
        self, notes: list[IncomingNote], links: list[IncomingLink], errors: list[dict[str, Any]], read: int
    ) -> None:
        self.size += sum(len(note.draft.content) for note in notes)
        if self.read + read > limits.MAX_STAGED_NOTES or self.size > limits.MAX_STAGED_NOTE_BYTES:
            raise QuotaExceeded(
                f"an import has at most {limits.MAX_STAGED_NOTES} notes of 256 MiB in all",
                limit="staged notes",
                max=limits.MAX_STAGED_NOTES,
            )
        self.notes += notes
        self.links += links
        self.errors += errors
        self.read += read
        self.pages += 1

    def close(self) -> None:
        self.notes, self.links = [], []


_Transfer = TypeVar("_Transfer", StagedImport, StagedNotes, PinnedExport)


class Transfers:
    """The transfers under way, by id. One that gets no page for TRANSFER_KEPT seconds is dropped."""

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._by_id: dict[str, StagedImport | StagedNotes | PinnedExport] = {}

    def begin_import(self, mode: str) -> str:
        import tempfile  # late: 7 ms, and few servers see an import in pages

        try:
            file = tempfile.TemporaryFile(  # noqa: SIM115 - closed with its import
                dir=self._directory, buffering=limits.STAGED_READ_BYTES
            )
        except OSError as error:
            raise StorageFailed(f"the import cannot be staged: {error.strerror}; nothing was imported") from None
        staged = StagedImport(mode, file)
        # Closes the descriptor also when the whole application is dropped with an import under way.
        weakref.finalize(staged, file.close)
        return self._add(staged)

    def begin_notes(self) -> StagedNotes:
        staged = StagedNotes()
        staged.id = self._add(staged)
        return staged

    def begin_export(self, header: dict[str, Any], hints: list[Hint], reveal: bool) -> str:
        return self._add(PinnedExport(header, hints, reveal))

    def staged_import(self, transfer: str) -> StagedImport:
        return self._get(transfer, StagedImport)

    def staged_notes(self, transfer: str) -> StagedNotes:
        return self._get(transfer, StagedNotes)

    def pinned_export(self, transfer: str) -> PinnedExport:
        return self._get(transfer, PinnedExport)

    def drop(self, transfer: str) -> None:
        if (dropped := self._by_id.pop(transfer, None)) is not None:
            dropped.close()

    def close(self) -> None:
        for transfer in list(self._by_id):
            self.drop(transfer)

    def expire(self) -> None:
        oldest = _now() - limits.TRANSFER_KEPT
        for transfer in [name for name, one in self._by_id.items() if one.touched < oldest]:
            self.drop(transfer)

    def _add(self, one: StagedImport | StagedNotes | PinnedExport) -> str:
        self.expire()
        if len(self._by_id) >= limits.MAX_TRANSFERS:
            one.close()
            raise QuotaExceeded(
                f"{limits.MAX_TRANSFERS} imports and exports are under way already; try again in a moment",
                limit="transfers",
                max=limits.MAX_TRANSFERS,
            )
        transfer = secrets.token_hex(12)
        self._by_id[transfer] = one
        return transfer

    def _get(self, transfer: str, kind: type[_Transfer]) -> _Transfer:
        one = self._by_id.get(transfer)
        if not isinstance(one, kind):
            raise NotFound("this transfer is not known, or has expired; start it again")
        one.touched = _now()
        return one


def _line(one: IncomingHint) -> bytes:
    return json.dumps(one.to_record(), separators=(",", ":")).encode() + b"\n"
