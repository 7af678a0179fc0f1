"""Read a JSON document of any size piece by piece, by the rules of `strict_json`: memory and time of a step depend on
its largest value, not on the document. Standard library only."""

from __future__ import annotations

import codecs
import re

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.core.strict_json import JsonError, decode_at, parse_error, refuse, refuse_depth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any

_BLANKS = re.compile(r"[ \t\n\r]*")
_NUMBER_CHARS = re.compile(r"[-+.eE0-9]*")
_PIECE = 64 * limits.KIB


class JsonReader:
    """A place in a document, which moves forward. `members` and `items` go through an object or a list; after each step
    the caller takes the value there: with `value` a small one whole, with `members` or `items` a large one, or `skip`.

    Raises JsonError for what is not JSON, and OSError when the file cannot be read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text, self._at, self._before = "", 0, 0
        self._is_whole = False
        self._depth = 0

    def kind(self) -> str:
        """Return the first character of the value here; empty at the end of the document."""
        while True:
            self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]  # matches everywhere
            if self._at < len(self._text):
                return self._text[self._at]
            if self._is_whole:
                return ""
            self._read_more(_PIECE)

    def members(self, field: str) -> Iterator[str]:
        """Yield the names of the object here. Raises Invalid, which names `field`, for anything else."""
        if self.kind() != "{":
            raise Invalid("must be an object", field=field)
        self._enter()
        names: set[str] = set()
        while self.kind() != "}" or names:
            if self.kind() != '"':
                raise self._expected("property name enclosed in double quotes")
            name = self.value()
            if name in names:
                refuse("an object has the same key twice")
            names.add(name)
            self._take(":")
            yield name
            if self.kind() == "}":
                break
            self._take(",")
        self._leave()

    def items(self, field: str) -> Iterator[int]:
        """Yield the numbers of the items of the list here. Raises Invalid, which names `field`, for anything else."""
        if self.kind() != "[":
            raise Invalid("must be a list", field=field)
        self._enter()
        number = 0
        while self.kind() != "]" or number:
            yield number
            number += 1
            if self.kind() == "]":
                break
            self._take(",")
        self._leave()

    def value(self) -> Any:
        """Return the value here. Raises Invalid for one of more than MAX_IMPORT_ROW_CHARS."""
        self.kind()
        depth, is_large = limits.MAX_JSON_DEPTH - self._depth, False
        while True:
            try:
                value, end = decode_at(self._text, self._at, depth=depth, before=self._before, is_large=is_large)
                # A number may go on: of `1.5`, the text may end behind `1`, or behind `1.`.
                if self._is_whole or _NUMBER_CHARS.match(self._text, end).end() < len(self._text):  # type: ignore[union-attr]
                    self._at = end
                    return value
            except JsonError:
                if self._is_whole:
                    raise
            held = len(self._text) - self._at
            if held > limits.MAX_IMPORT_ROW_CHARS:
                raise Invalid(f"has a value of more than {limits.MAX_IMPORT_ROW_CHARS // limits.KIB} KiB", field="file")
            is_large = held > limits.SMALL_JSON_BYTES
            self._read_more(max(_PIECE, held))

    def skip(self) -> None:
        """Go past the value here, however large it is."""
        kind = self.kind()
        if kind == "{":
            for _ in self.members(""):
                self.skip()
        elif kind == "[":
            for _ in self.items(""):
                self.skip()
        else:
            self.value()

    def end(self) -> None:
        """Raise JsonError unless the document ends here."""
        if self.kind():
            raise parse_error("Extra data", self._before + self._at)

    def _enter(self) -> None:
        self._at += 1
        self._depth += 1
        if self._depth > limits.MAX_JSON_DEPTH:
            refuse_depth()

    def _leave(self) -> None:
        self._at += 1
        self._depth -= 1

    def _take(self, character: str) -> None:
        if self.kind() != character:
            raise self._expected(f"'{character}' delimiter")
        self._at += 1

    def _expected(self, what: str) -> JsonError:
        return parse_error(f"Expecting {what}", self._before + self._at)

    def _read_more(self, size: int) -> None:
        piece = self._file.read(size)
        self._is_whole = not piece
        try:
            text = self._decoder.decode(piece, final=self._is_whole)
        except UnicodeDecodeError:
            raise parse_error("invalid UTF-8", self._before + len(self._text)) from None
        self._before += self._at
        self._text, self._at = self._text[self._at :] + text, 0
