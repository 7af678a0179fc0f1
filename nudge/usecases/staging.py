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
from typing import IO, Any, ClassVar, TypeVar

from nudge import limits
from nudge.errors import Invalid, NotFound, QuotaExceeded, StorageFailed
from nudge.hints.import_export import IncomingHint
from nudge.hints.model import Hint, Identity

_now = time.monotonic


@dataclass(eq=False)
class _StagedPages:
    """The checked pages of an import, in an unnamed temporary file, which is readable by its owner only and disappears
    with the process."""

    file: IO[bytes]
    pages: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    touched: float = field(default_factory=lambda: _now())

    @property
    def is_busy(self) -> bool:
        """Whether a page or the whole import is being worked on."""
        return self.lock.locked()

    def is_new(self, page: int) -> bool:
        """Whether the page is the next to stage; False for the last one, which is sent again when its answer was
        lost. Raises Invalid for any other number."""
        if page not in (self.pages, self.pages - 1):
            raise Invalid(f"must be {self.pages}, the number of the next page", field="page")
        return page == self.pages

    def close(self) -> None:
        self.file.close()


@dataclass(eq=False)
class StagedImport(_StagedPages):
    """Hints. Secrets stay in memory: their values are never written to disk."""

    mode: str = "merge"
    secret_hints: list[IncomingHint] = field(default_factory=list)
    hints: int = 0
    seen: set[Identity] = field(default_factory=set)

    def append(self, incoming: list[IncomingHint]) -> None:
        """Write hints to the file. Blocks: call it on a worker thread."""
        self.file.seek(0, os.SEEK_END)
        self.secret_hints += [one for one in incoming if one.hint.secret]
        _write(self.file, b"".join(_line(one.to_record()) for one in incoming if not one.hint.secret))
        self.pages += 1
        self.hints += len(incoming)

    def read(self) -> Iterator[IncomingHint]:
        self.file.seek(0)
        yield from (IncomingHint.from_record(json.loads(line)) for line in self.file)
        yield from self.secret_hints

    def close(self) -> None:
        super().close()
        self.secret_hints.clear()


@dataclass(eq=False)
class StagedNotes(_StagedPages):
    """Notes and links, as they were sent, each note with the namespace of one that names none."""

    id: str = ""
    read: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)

    def append(
        self,
        notes: list[dict[str, Any]],
        links: list[dict[str, Any]],
        namespace: str,
        errors: list[dict[str, Any]],
        *,
        read: int,
    ) -> None:
        """Write a page to the file; `read` is the number of its notes, valid or not. Blocks: call it on a worker
        thread."""
        rows: list[dict[str, Any]] = [
            *({"note": note, "namespace": namespace} for note in notes),
            *({"link": link} for link in links),
        ]
        lines = b"".join(map(_line, rows))
        size = self.file.seek(0, os.SEEK_END) + len(lines)
        if self.read + read > limits.MAX_STAGED_NOTES or size > limits.MAX_STAGED_NOTE_BYTES:
            raise QuotaExceeded(
                f"an import may have at most {limits.MAX_STAGED_NOTES} notes, and "
                f"{limits.MAX_STAGED_NOTE_BYTES // limits.MIB} MiB of them",
                limit="staged notes",
                max=limits.MAX_STAGED_NOTES,
            )
        _write(self.file, lines)
        self.errors += errors
        self.read += read
        self.pages += 1

    def notes(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the fields of each note, and its default namespace."""
        return ((row["note"], row["namespace"]) for row in self._rows() if "note" in row)

    def links(self) -> Iterator[dict[str, Any]]:
        return (row["link"] for row in self._rows() if "link" in row)

    def _rows(self) -> Iterator[dict[str, Any]]:
        self.file.seek(0)
        yield from map(json.loads, self.file)


@dataclass(eq=False)
class PinnedExport:
    """The hints as they were when an export began, sorted by identity."""

    header: dict[str, Any]
    hints: list[Hint]
    reveal: bool
    touched: float = field(default_factory=lambda: _now())
    is_busy: ClassVar[bool] = False

    def close(self) -> None:
        self.hints = []


_Transfer = TypeVar("_Transfer", StagedImport, StagedNotes, PinnedExport)


class Transfers:
    """The transfers under way, by id. One that gets no page for TRANSFER_KEPT seconds is dropped."""

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._by_id: dict[str, StagedImport | StagedNotes | PinnedExport] = {}

    def begin_import(self, mode: str) -> str:
        return self._add(StagedImport(self._open_file(), mode=mode))

    def begin_notes(self) -> StagedNotes:
        staged = StagedNotes(self._open_file())
        staged.id = self._add(staged)
        return staged

    def _open_file(self) -> IO[bytes]:
        import tempfile  # late: 7 ms, and few servers see an import in pages

        try:
            return tempfile.TemporaryFile(dir=self._directory, buffering=limits.STAGED_READ_BYTES)
        except OSError as error:
            raise StorageFailed(f"the import cannot be staged: {error.strerror}; nothing was imported") from None

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

    def expire(self) -> None:
        oldest = _now() - limits.TRANSFER_KEPT
        for transfer in [name for name, one in self._by_id.items() if one.touched < oldest]:
            self.drop(transfer)

    def _add(self, one: StagedImport | StagedNotes | PinnedExport) -> str:
        self.expire()
        if len(self._by_id) >= limits.MAX_TRANSFERS and not self._drop_idle():
            one.close()
            raise QuotaExceeded(
                f"{limits.MAX_TRANSFERS} imports and exports are under way already; try again in a moment",
                limit="transfers",
                max=limits.MAX_TRANSFERS,
            )
        if not isinstance(one, PinnedExport):
            # Closes the descriptor also when the whole application is dropped with an import under way.
            weakref.finalize(one, one.file.close)
        transfer = secrets.token_hex(12)
        self._by_id[transfer] = one
        return transfer

    def _drop_idle(self) -> bool:
        """Drop the transfer that was used least recently, if its client was probably interrupted; return whether there
        was one."""
        latest = _now() - limits.TRANSFER_IDLE
        idle = {name: one.touched for name, one in self._by_id.items() if one.touched < latest and not one.is_busy}
        if not idle:
            return False
        self.drop(min(idle, key=idle.__getitem__))
        return True

    def _get(self, transfer: str, kind: type[_Transfer]) -> _Transfer:
        one = self._by_id.get(transfer)
        if not isinstance(one, kind):
            raise NotFound("this transfer is not known, or has expired; start it again")
        one.touched = _now()
        return one


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _write(file: IO[bytes], lines: bytes) -> None:
    try:
        file.write(lines)
        file.flush()
    except OSError as error:
        raise StorageFailed(f"the page was not stored: {error.strerror}; nothing was imported") from None
