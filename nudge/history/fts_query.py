"""The query language of full-text search, translated to FTS5.

The language is FTS5's own, except that a word with `-`, `.`, `/` or `:` in it means its parts: FTS5 accepts only
letters and digits in a bare word and reports anything else as a syntax error. So the query is parsed here: operators
stay operators, every word is quoted, and a query that cannot be parsed is refused with the position of the error.
"""

from __future__ import annotations

import re

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.core.words import content_words, distinct_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_INDEXED = ("content", "file_path", "details")
_OPERATORS = ("AND", "OR", "NOT")
_NAMES = "|".join(_INDEXED)
_FILTER = re.compile(rf"(-\s*)?(\{{\s*(?:{_NAMES})(?:\s+(?:{_NAMES}))*\s*\}}|(?:{_NAMES}))\s*:(?!:)")


class FtsQuery:
    """A parsed query. Raises Invalid with what is wrong and at which character."""

    __slots__ = ("corrections", "is_question", "match", "needs_all_words", "text", "words")

    def __init__(self, text: str, corrections: Mapping[str, str] | None = None) -> None:
        tokens = _scan(text)
        self.text = text
        self.corrections = corrections or {}
        """Misspelled words that were typed, each with the one that stands in its place."""
        self.words = [word for token in tokens for word in token.words]
        """Its words in lower case, without prefixes and what stands in quotes."""
        self.match = _QueryParser(tokens).parse() or '""'
        """The FTS5 expression."""
        self.needs_all_words = all(token.kind == "phrase" for token in tokens)
        """Whether it has no operator, so that what it finds has each of its words."""
        self.is_question = len(tokens) >= limits.QUESTION_WORDS and self.needs_all_words
        """Whether it is several words and nothing else, as in `what degree did I graduate with`. With an operator, or
        with a few words, it is meant literally."""

    def any_word(self) -> str:
        """The FTS5 expression for any of its words, without stop words."""
        words = content_words(self.text)[: limits.MAX_QUESTION_WORDS]
        return " OR ".join(f'"{word}"' for word in words) or '""'

    def replace_words(self, corrections: Mapping[str, str]) -> FtsQuery:
        """The same query with other words in place of some."""
        wrong = re.compile(rf"\b(?:{'|'.join(map(re.escape, corrections))})\b", re.IGNORECASE)
        return FtsQuery(wrong.sub(lambda match: corrections[match[0].lower()], self.text), corrections)


def _scan(text: str) -> list[_Token]:
    if len(text) > limits.MAX_SEARCH_CHARS:
        raise Invalid(f"must be at most {limits.MAX_SEARCH_CHARS} characters", field="query")
    text = text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    tokens = _Scanner(text).scan()
    if not tokens:
        raise Invalid("must not be empty", field="query")
    return tokens


def _syntax_error(what: str, at: int) -> Invalid:
    return Invalid(f"{what} at character {at + 1}", field="query", at=at + 1)


class _Token:
    """`kind` is `phrase`, `filter`, `near`, an operator, or the character itself; `sql` is its form in the
    expression."""

    __slots__ = ("at", "kind", "sql", "words", "wordy")

    def __init__(self, kind: str, at: int, sql: str, *, wordy: bool = True, words: Sequence[str] = ()) -> None:
        self.kind, self.at, self.sql, self.wordy, self.words = kind, at, sql, wordy, words


class _Scanner:
    """Splits the text into tokens. A parenthesis groups where a word could begin; in `main()` it is text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open: list[tuple[str, int]] = []
        self._tokens: list[_Token] = []

    def scan(self) -> list[_Token]:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        for kind, at in self._open:
            if kind != "text":
                raise _syntax_error("a parenthesis is never closed: it opens", at)
        return self._tokens

    def _step(self, char: str) -> None:
        named = _FILTER.match(self._text, self._at)
        following = self._text[self._at + 1 : self._at + 2]
        if char.isspace():
            self._at += 1
        elif char == '"':
            self._string()
        elif char == "(":
            self._open_group("(", 1)
        elif char == ")":
            self._close()
        elif named:
            columns = " ".join(re.findall(_NAMES, named[2]))
            self._add("filter", len(named[0]), f"{'- ' if named[1] else ''}{{{columns}}} :")
        elif (char == "," and self._inside() == "near") or (char == "+" and not following.strip()):
            self._add(char, 1, char)
        elif char == "^" and (following.isalnum() or following == '"'):
            self._add("^", 1, "^")
        else:
            self._word()

    def _add(self, kind: str, length: int, sql: str, *, wordy: bool = True, words: Sequence[str] = ()) -> None:
        self._tokens.append(_Token(kind, self._at, sql, wordy=wordy, words=words))
        self._at += length

    def _inside(self) -> str | None:
        return self._open[-1][0] if self._open else None

    def _open_group(self, kind: str, length: int) -> None:
        self._open.append((kind, self._at))
        if len(self._open) > limits.MAX_SEARCH_DEPTH:
            raise _syntax_error("too many open parentheses", self._at)
        self._add(kind, length, kind)

    def _close(self) -> None:
        if not self._open:
            raise _syntax_error("a closing parenthesis has no opening one", self._at)
        if self._open.pop()[0] == "text":
            self._at += 1
        else:
            self._add(")", 1, ")")

    def _string(self) -> None:
        end = self._at + 1
        while (end := self._text.find('"', end)) != -1 and self._text[end + 1 : end + 2] == '"':
            end += 2
        if end == -1:  # text: an inch mark, or a quote that somebody forgot
            self._at += 1
            return
        inner = self._text[self._at + 1 : end].replace('""', '"')
        prefix = self._text[end + 1 : end + 2] == "*"
        self._phrase(inner, end + 1 + prefix - self._at, prefix)

    def _word(self) -> None:
        end = self._at
        while end < len(self._text) and not self._ends_word(end):
            end += 1
        word = self._text[self._at : end]
        if word == "NEAR" and self._text[end : end + 1] == "(":
            self._open_group("near", end + 1 - self._at)
        elif word in _OPERATORS:
            self._add(word, end - self._at, word)
        else:
            prefix = word.endswith("*") and _has_word(word)
            self._phrase(word.rstrip("*") if prefix else word, end - self._at, prefix)

    def _ends_word(self, at: int) -> bool:
        char = self._text[at]
        if char == "(":
            if self._text[self._at : at] == "NEAR":
                return True
            self._open.append(("text", at))
        elif char == ")":
            if self._inside() != "text":
                return True
            self._open.pop()
        return char.isspace() or char == '"' or (char == "," and self._inside() == "near")

    def _phrase(self, text: str, length: int, prefix: bool) -> None:
        quoted = '"' + text.replace('"', '""') + '"'
        is_literal = prefix or self._text[self._at] == '"'
        words = () if is_literal else distinct_words(text)
        self._add("phrase", length, f"{quoted} *" if prefix else quoted, wordy=_has_word(text), words=words)


def _has_word(text: str) -> bool:
    return any(char.isalnum() for char in text)


class _QueryParser:
    """Parses with FTS5's precedence: adjacent words first, then NOT, AND, OR. A token without a letter or digit (`--`,
    `->`) is ignored."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def parse(self) -> str:
        expression = self._or()
        if self._next < len(self._tokens):
            raise self._misplaced()
        return expression

    def _or(self) -> str:
        return self._chain("OR", self._and)

    def _and(self) -> str:
        return self._chain("AND", self._not)

    def _chain(self, operator: str, operand: Callable[[], str]) -> str:
        parts = [operand()]
        while self._takes(operator):
            parts.append(operand())
        parts = [part for part in parts if part]
        return parts[0] if len(parts) == 1 else f" {operator} ".join(f"({part})" for part in parts)

    def _not(self) -> str:
        kept = self._adjacent()
        while self._takes("NOT"):
            excluded = self._adjacent()
            kept = f"({kept}) NOT ({excluded})" if kept and excluded else kept
        return kept

    def _adjacent(self) -> str:
        """Adjacent words, which must all match. FTS5 needs an explicit AND beside a parenthesis."""
        items = [self._item()]
        while (kind := self._kind()) is not None and kind not in (*_OPERATORS, ")", ",", "+"):
            items.append(self._item())
        items = [item for item in items if item]
        grouped = any(item.endswith(")") for item in items)
        return (" AND " if grouped else " ").join(items)

    def _item(self) -> str:
        selected = self._take("filter")
        if self._takes("("):
            inner = self._or()
            self._need(")")
            expression = f"({inner})" if inner else ""
        elif self._kind() == "near":
            expression = self._near()
        else:
            expression = self._words()
        return f"{selected.sql} {expression}" if selected and expression else expression

    def _words(self) -> str:
        first = "^ " if self._takes("^") else ""
        phrases = [self._need("phrase")]
        while self._takes("+"):
            phrases.append(self._need("phrase"))
        joined = " + ".join(phrase.sql for phrase in phrases if phrase.wordy)
        return first + joined if joined else ""

    def _near(self) -> str:
        self._need("near")
        phrases = [self._need("phrase")]
        while self._kind() == "phrase":
            phrases.append(self._need("phrase"))
        distance = f", {self._distance()}" if self._takes(",") else ""
        self._need(")")
        words = " ".join(phrase.sql for phrase in phrases if phrase.wordy)
        return f"NEAR({words}{distance})" if words else ""

    def _distance(self) -> int:
        token = self._need("phrase")
        number = token.sql.strip('"')
        if not number.isascii() or not number.isdigit() or len(number) > 6:
            raise _syntax_error("NEAR needs a whole number after the comma", token.at)
        return int(number)

    def _kind(self) -> str | None:
        return self._tokens[self._next].kind if self._next < len(self._tokens) else None

    def _take(self, kind: str) -> _Token | None:
        if self._kind() != kind:
            return None
        self._next += 1
        return self._tokens[self._next - 1]

    def _takes(self, kind: str) -> bool:
        return self._take(kind) is not None

    def _need(self, kind: str) -> _Token:
        token = self._take(kind)
        if token is None:
            raise self._misplaced()
        return token

    def _misplaced(self) -> Invalid:
        """The error for a missing operand, or for a token where none is allowed."""
        if self._next == len(self._tokens):
            last = self._tokens[-1]
            return _syntax_error(f"a word must follow {last.sql}", last.at)
        token = self._tokens[self._next]
        name = "NEAR" if token.kind == "near" else token.sql
        return _syntax_error(f"{name} cannot stand", token.at)
