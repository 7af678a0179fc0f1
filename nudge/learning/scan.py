"""Words, redirections and operators of a shell line, each with its place in the line. Nothing is expanded or run.

What the shell would read in another way than this scanner is `Unparsable`, never a guess. Work is bounded by MAX_STEPS,
whatever the line holds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_STEPS = 2_000  # words, parts of words and operators of one line: about 10 ms
MAX_DEPTH = 20  # commands, parameters and arithmetic in each other

_BLANKS = re.compile(r"(?:[ \t]|\\\r?\n)*+(?:#[^\n]*+)?")
_CONTINUATION = re.compile(r"\\\r?\n")
_PLAIN = re.compile(r"[^ \t\r\n|&;()<>'\"\\$`]++")
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*+)'", re.DOTALL)
_DOUBLE_PART = re.compile(r"(?:[^\"\\$`]|\\.|\$(?![({]))++", re.DOTALL)
_BACKQUOTED = re.compile(r"`(?:[^`\\]|\\.)*+`", re.DOTALL)
_VARIABLE = re.compile(r"\$[\w@*#?$!-]")  # the first character of the name is enough
_PARAMETER_PART = re.compile(r"(?:[^\"'\\$`{}]|\\.|\$(?![({]))++", re.DOTALL)
_ARITHMETIC_PART = re.compile(r"(?:[^\"'\\$`()]|\$(?![({]))++")
_ESCAPED_IN_DOUBLE = re.compile(r"\\(?:([$`\"\\])|\r?\n)")
_OPERATOR = re.compile(r"\r?\n|&&|\|\||\|&|;;&|;;|;&|&(?!>)|[;|()]")
_REDIRECTION = re.compile(r"(?:\d++|\{\w++\})?(?P<operator>&>>|&>|<<<|<<-|<<|<&|<>|>>|>&|>\||<(?!\()|>(?!\())")
_ARRAY = re.compile(r"[A-Za-z_]\w*(?:\[[^][]*\])?\+?=")

HERE_DOCUMENTS = frozenset(("<<", "<<-"))


class Unparsable(ValueError):
    """The line is no shell, or more than this scanner reads exactly."""


class Word(str):
    """A word after quote removal, and where it stands: `source[start:end]` is what was typed.

    It equals the plain string, so that words can be looked up in sets and tables.
    """

    start: int
    end: int
    is_expanded: bool
    """Whether the shell puts something else in its place: a variable, a substitution, the names that a pattern fits.
    The text then holds that part as it was typed."""
    is_quoted: bool
    """Whether any part of it is quoted or escaped."""
    __slots__ = ("end", "is_expanded", "is_quoted", "start")

    def __new__(
        cls, text: str, start: int = -1, end: int = -1, *, is_expanded: bool = False, is_quoted: bool = False
    ) -> Word:
        word = super().__new__(cls, text)
        word.start, word.end, word.is_expanded, word.is_quoted = start, end, is_expanded, is_quoted
        return word


@dataclass(frozen=True, slots=True)
class Redirection:
    operator: str
    """Without the number of the descriptor: `>` for `2>`."""
    target: Word
    start: int
    end: int

    @property
    def is_input(self) -> bool:
        """Whether it reads what is named beside it; the text of a here-document stands elsewhere."""
        return self.operator.startswith("<") and self.operator not in HERE_DOCUMENTS

    @property
    def writes_file(self) -> bool:
        """Whether it writes a file, not a descriptor."""
        is_file = not (self.operator == ">&" and (self.target.isdigit() or self.target == "-"))
        return ">" in self.operator and is_file


class Scanner:
    """Reads a line from left to right. `at` is the place of the next character."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self._left = MAX_STEPS
        self._depth = 0
        self._awaited: list[tuple[str, str]] = []
        """Operator and delimiter of the here-documents whose text begins on the next line."""

    # Tokens

    def skip_blanks(self) -> None:
        """Go to the next token, past blanks, continued lines and a comment."""
        match = _BLANKS.match(self.source, self.at)
        self.at = match.end() if match else self.at

    def skip_lines(self) -> None:
        """Go to the next command, past line ends as well."""
        self.skip_blanks()
        while self.take_operator(("\n",)):
            self.skip_blanks()

    def is_at_end(self) -> bool:
        return self.at >= len(self.source)

    def peek_operator(self) -> str:
        """The operator that comes next, `\\n` at the end of a line; empty before anything else."""
        match = _OPERATOR.match(self.source, self.at)
        return match[0].lstrip("\r") if match else ""

    def take_operator(self, wanted: tuple[str, ...] = ()) -> str:
        """Go past the next operator, if it is a wanted one, and return it."""
        operator = self.peek_operator()
        if not operator or (wanted and operator not in wanted):
            return ""
        self.take_step()
        self.at += len(operator) + self.source.startswith("\r", self.at)
        if operator == "\n":
            self._skip_here_documents()
        return operator

    def take_redirection(self) -> Redirection | None:
        match = _REDIRECTION.match(self.source, self.at)
        if match is None:
            return None
        start, self.at = self.at, match.end()
        operator = match["operator"]
        self.skip_blanks()
        target = self.take_word() if _REDIRECTION.match(self.source, self.at) is None else None
        if target is None:
            raise Unparsable("a redirection without a file")
        if operator in ("<&", ">&") and target.startswith("-") and target != "-":
            raise Unparsable("a word behind a closed descriptor")
        if operator in HERE_DOCUMENTS:
            self._awaited.append((operator, target))
        return Redirection(operator, target, start, self.at)

    def _skip_here_documents(self) -> None:
        awaited, self._awaited = self._awaited, []
        for operator, delimiter in awaited:
            line = None
            while line != delimiter and not self.is_at_end():
                self.take_step()
                end = self.source.find("\n", self.at)
                end = len(self.source) if end < 0 else end
                line = self.source[self.at : end].removesuffix("\r")
                line = line.lstrip("\t") if operator == "<<-" else line
                self.at = min(end + 1, len(self.source))

    # Words

    def take_word(self, *, may_be_array: bool = False) -> Word | None:
        """Go past the next word and return it; None before an operator, a redirection or the end."""
        start = end = self.at
        texts, unquoted = [], []
        is_expanded = is_quoted = False
        while (part := self._word_part(start, may_be_array=may_be_array)) is not None:
            text, expanded, quoted = part
            texts.append(text)
            unquoted.append("" if quoted or expanded else text)
            is_expanded, is_quoted = is_expanded or expanded, is_quoted or quoted
            end = self.at if text or quoted else end  # a continued line at its end is no part of a word
        if end == start:
            return None
        is_expanded = is_expanded or _is_pattern("".join(unquoted))
        return Word("".join(texts), start, end, is_expanded=is_expanded, is_quoted=is_quoted)

    def _word_part(self, start: int, *, may_be_array: bool) -> tuple[str, bool, bool] | None:
        """Go past one part of a word; return its text, whether it is expanded, and whether it is quoted."""
        if self.is_at_end():
            return None
        self.take_step()
        if match := _PLAIN.match(self.source, self.at):
            self.at = match.end()
            return match[0], False, False
        char = self.source[self.at]
        if char == "'":
            return self._single_quoted()
        if char == '"':
            return self._double_quoted()
        if char == "\\":
            return self._escaped()
        if char in "$`":
            return self._expansion()
        is_array = may_be_array and char == "(" and _ARRAY.fullmatch(self.source, start, self.at)
        return self._array() if is_array else self._substituted_file()

    def _expansion(self) -> tuple[str, bool, bool]:
        begin = self.at
        is_quoted = self._skip_expansion()
        text = self.source[begin : self.at]
        if is_quoted and text.startswith("$'") and "\\" not in text:
            return text[2:-1], False, True
        return text, text != "$", is_quoted

    def _array(self) -> tuple[str, bool, bool]:
        """Go past the words of `A=(...)`."""
        begin = self.at
        self.enter()
        self.at += 1
        self.skip_lines()
        while not self.take_operator((")",)):
            if self.take_word() is None:
                raise Unparsable("an array with an operator")
            self.skip_lines()
        self.leave()
        return self.source[begin : self.at], True, False

    def _substituted_file(self) -> tuple[str, bool, bool] | None:
        """Go past `<(...)`, or a carriage return that ends no line."""
        begin = self.at
        if self.source.startswith(("<(", ">("), begin):
            self.at += 2
            self._skip_commands()
        elif self.source.startswith("\r", begin) and not self.source.startswith("\n", begin + 1):
            self.at += 1
        else:
            return None
        return self.source[begin : self.at], True, False

    def _single_quoted(self) -> tuple[str, bool, bool]:
        end = self.source.find("'", self.at + 1)
        if end < 0:
            raise Unparsable("an open quote")
        text, self.at = self.source[self.at + 1 : end], end + 1
        return text, False, True

    def _double_quoted(self) -> tuple[str, bool, bool]:
        begin, is_expanded = self.at, False
        self.at += 1
        while not self.source.startswith('"', self.at):
            if match := _DOUBLE_PART.match(self.source, self.at):
                self.at = match.end()
                is_expanded = is_expanded or _has_variable(match[0])
            else:
                self._skip_expansion(is_double_quoted=True)
                is_expanded = True
            self.take_step()
        self.at += 1
        inner = self.source[begin + 1 : self.at - 1]
        return inner if is_expanded else _ESCAPED_IN_DOUBLE.sub(r"\1", inner), is_expanded, True

    def _escaped(self) -> tuple[str, bool, bool]:
        if match := _CONTINUATION.match(self.source, self.at):
            self.at = match.end()
            return "", False, False
        if self.at + 1 >= len(self.source):
            raise Unparsable("nothing behind a backslash")
        self.at += 2
        return self.source[self.at - 1], False, True

    # Expansions

    def _skip_expansion(self, *, is_double_quoted: bool = False) -> bool:
        """Go past what begins with `$` or a backquote; return whether it is a quoted text."""
        if match := _BACKQUOTED.match(self.source, self.at):
            self.at = match.end()
        elif self.source.startswith("`", self.at) or self.is_at_end():
            raise Unparsable("an open quote")
        elif self.source.startswith("$((", self.at):
            self.at += 3
            self.skip_arithmetic()
        elif self.source.startswith("$(", self.at):
            self.at += 2
            self._skip_commands()
        elif self.source.startswith("${", self.at):
            self.at += 2
            self._skip_parameter(is_double_quoted=is_double_quoted)
        elif match := _ANSI.match(self.source, self.at):
            self.at = match.end()
            return True
        elif self.source.startswith('$"', self.at):
            self.at += 1
            self._double_quoted()
            return True
        elif self.source.startswith("$'", self.at):
            raise Unparsable("an open quote")
        elif self.source.startswith("$[", self.at):
            raise Unparsable("arithmetic of old")
        else:
            match = _VARIABLE.match(self.source, self.at)
            self.at = match.end() if match else self.at + 1
        return False

    def _skip_parameter(self, *, is_double_quoted: bool) -> None:
        self.enter()
        while not self.source.startswith("}", self.at):
            self.take_step()
            if match := _PARAMETER_PART.match(self.source, self.at):
                self.at = match.end()
            elif is_double_quoted and self.source.startswith(("'", '"'), self.at):
                raise Unparsable("a quote in a parameter in quotes")  # the shell decides by the operator before it
            else:
                self._skip_nested()
        self.at += 1
        self.leave()

    def skip_arithmetic(self) -> None:
        """Go past the rest of `((...))`."""
        self.enter()
        depth = 2
        while depth:
            self.take_step()
            if match := _ARITHMETIC_PART.match(self.source, self.at):
                self.at = match.end()
            elif self.source.startswith("(", self.at):
                depth, self.at = depth + 1, self.at + 1
            elif self.source.startswith(")", self.at):
                if depth == 2 and not self.source.startswith("))", self.at):
                    raise Unparsable("commands that begin like arithmetic")
                depth, self.at = depth - 1, self.at + 1
            else:
                self._skip_nested()
        self.leave()

    def _skip_nested(self) -> None:
        if self.is_at_end():
            raise Unparsable("an open expansion")
        char = self.source[self.at]
        if char == "'":
            self._single_quoted()
        elif char == '"':
            self._double_quoted()
        elif char == "\\":
            self._escaped()
        elif char in "$`":
            self._skip_expansion()
        else:
            raise Unparsable("a brace in a parameter")

    def _skip_commands(self) -> None:
        """Go past the rest of `$(...)`."""
        awaited, self._awaited = self._awaited, []
        self.parse_until_parenthesis()
        if self._awaited:
            raise Unparsable("a here-document without text")
        self._awaited = awaited

    def parse_until_parenthesis(self) -> None:
        """Go past commands and the parenthesis behind them."""
        raise NotImplementedError

    # Limits

    def take_step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Unparsable("too long")

    def enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unparsable("too deep")

    def leave(self) -> None:
        self._depth -= 1


def _has_variable(text: str) -> bool:
    return "$" in text and _VARIABLE.search(re.sub(r"\\.", "", text, flags=re.DOTALL)) is not None


def _is_pattern(text: str) -> bool:
    """Whether the shell expands an unquoted text: to the names of files, to a list, to a home directory."""
    is_list = "{" in text and "}" in text and ("," in text or ".." in text)
    return is_list or "*" in text or "?" in text or ("[" in text and "]" in text) or text[:1] == "~" or "=~" in text
