"""Documents that a verb reads or writes: exports and imports of any size, from a file or stdin, to a file or stdout."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, BinaryIO

from nudge.cli import plain
from nudge.cli.output import Usage
from nudge.cli.params import option
from nudge.cli.plain import Invocation
from nudge.cli.prompts import waiting
from nudge.core import context, files, limits, paths, transfer_files
from nudge.core.errors import INVALID_REQUEST, PARSE_ERROR, Invalid, NudgeError, StorageFailed
from nudge.core.visibility import visible_here

output_option = option(
    "-o",
    "--output",
    "target",
    metavar="FILE",
    help="Write to this file, readable by you alone (default: -, which is stdout).",
)


def import_document(
    invocation: Invocation,
    operation: str,
    source: Source,
    fields: dict[str, Any],
    parse: Callable[[Any], dict[str, Any] | None],
) -> Any:
    """Import a document of any size and return the result. `parse` makes parameters of a small one, or returns None for
    one that does not fit into a call; a large one goes through a file, which the server parses."""
    call, directory = call_from_here(invocation), paths.runtime_dir()
    with source.open() as opened:
        beginning = opened.read(limits.PAGE_BYTES + 1)
        is_small = len(beginning) <= limits.PAGE_BYTES
        if is_small and (parsed := parse(source.parse(beginning))) is not None:
            return call(operation, {**parsed, **fields})
        with transfer_files.reserved(directory) as name:
            with transfer_files.created(directory, name) as copy:
                source.copy(beginning, opened, copy)
            with waiting(invocation.console, "importing, seconds"), source.naming_errors():
                return call(operation, {"file": name, **fields})


class Source:
    """The document of an import: in a file, or stdin (`-`). `writer` is the command that writes such documents; `name`
    is what errors call this one."""

    def __init__(self, path: str, writer: str, *, name: str | None = None) -> None:
        self.name = name or ("stdin" if path == "-" else path)
        self._path, self._writer = path, writer

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        try:
            with nullcontext(plain.stdin_bytes()) if self._path == "-" else open(self._path, "rb") as file:
                yield file
        except OSError as error:
            raise Usage(
                f"cannot read {self.name}: {error.strerror}", f"name a file that {self._writer} wrote"
            ) from None

    def parse(self, content: bytes) -> Any:
        try:
            return plain.parse_json(content)
        except ValueError as error:
            raise self._is_not_json(str(error)) from None

    def copy(self, beginning: bytes, source: BinaryIO, target: BinaryIO) -> None:
        """Copy the document. What is no text cannot be JSON, and may never end."""
        if not beginning.lstrip().startswith(b"{"):
            raise self._is_not_json("it must be an object")
        decoder, piece = codecs.getincrementaldecoder("utf-8")(), beginning
        while piece:
            try:
                decoder.decode(piece)
            except UnicodeDecodeError:
                raise self._is_not_json("invalid UTF-8") from None
            target.write(piece)
            piece = source.read(limits.TRANSFER_PIECE)

    @contextmanager
    def naming_errors(self) -> Iterator[None]:
        """Say which document is not JSON, when the server says that it is not."""
        try:
            yield
        except NudgeError as error:
            if error.code in (PARSE_ERROR, INVALID_REQUEST):
                raise self._is_not_json(error.message.removeprefix("Invalid request: ")) from None
            raise

    def _is_not_json(self, why: str) -> Invalid:
        return Invalid(f"{self.name} is not JSON: {why}; it must be the output of {self._writer}")


def export_document(invocation: Invocation, operation: str, fields: dict[str, Any]) -> Any:
    """Return the result of an export of any size."""
    directory = paths.runtime_dir()
    with transfer_files.reserved(directory) as name:
        result = invocation.call(operation, {**fields, "file": name})
        if result.get("file") is None:
            return result
        with transfer_files.open_written(directory, name) as file:
            return json.load(file)


@contextmanager
def open_output(path: str | None) -> Iterator[Callable[[str], object]]:
    """Give the function that writes text to `path`, or to stdout. A regular file is replaced when all is written, and
    stays as it was after an error or Ctrl-C; a device or a pipe is written to as it is."""
    if path in (None, "-"):
        yield sys.stdout.write
        return
    target = os.path.realpath(str(path))
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "w", encoding="utf-8") as device:
                yield device.write
        else:
            with files.Replacement(target) as file:
                yield lambda text: file.write(text.encode())
    except OSError as error:
        raise _cannot_write(path, error.strerror) from None


def _cannot_write(path: str | None, reason: str | None) -> StorageFailed:
    return StorageFailed(f"cannot write {path}: {reason}; choose another file with -o")


def call_from_here(invocation: Invocation) -> Callable[[str, Mapping[str, Any]], Any]:
    """Return the call of an operation whose parameters have no context of their own."""
    return partial(invocation.client().call, context=plain.context_params())


def note_left_out(invocation: Invocation, named: str | None = None) -> None:
    """Name the private repos that an export from here leaves out: a backup without them must not look whole."""
    left_out = [] if named else visible_here(context.resolve()).hidden_names
    if left_out:
        invocation.console.note(f"private repos are left out: {', '.join(left_out)}; export in them, too")
