"""The simple commands of a shell line or script, each with its place in it. Nothing is expanded or run."""

from __future__ import annotations

import re
from collections.abc import Container
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

from nudge.learning.command import SimpleCommand
from nudge.learning.scan import Redirection, Scanner, Unparsable, Word

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^][]*\])?\+?=")
# Commands that run the words behind them, and their options with a value of their own.
_WRAPPERS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("nohup", "command"), frozenset()),
    "env": frozenset(("-u", "--unset", "-C", "--chdir")),
    "exec": frozenset(("-a",)),
    "nice": frozenset(("-n", "--adjustment")),
    "stdbuf": frozenset(("-i", "-o", "-e")),
    "sudo": frozenset(("-u", "--user", "-g", "--group", "-h", "-p", "-C", "-D", "-R", "-T")),
    "time": frozenset(("-f", "--format", "-o", "--output")),
    "timeout": frozenset(("-s", "--signal", "-k", "--kill-after")),
}
# Options with which a wrapper runs something else than the words behind it, or nothing.
_NO_WRAPPER = frozenset((("command", "-v"), ("command", "-V"), ("env", "-S"), ("env", "--split-string")))
_OPEN_INDEX = re.compile(r"[A-Za-z_]\w*\[[^]]*")
_DECLARATIONS = frozenset(("declare", "export", "local", "readonly", "typeset"))
_KEYWORD = re.compile(r"(?P<word>[!{}]|\[\[|[a-z]++)(?:(?=[ \t\r\n;|&()<>]|\Z)|(?P<goes_on>\\\r?\n))")
_KEYWORDS = frozenset(
    (
        *("!", "{", "[[", "if", "while", "until", "for", "select", "case", "function"),
        *("}", "then", "elif", "else", "fi", "do", "done", "esac", "coproc"),  # cannot begin a command
    )
)


def parse_commands(line: str) -> list[SimpleCommand]:
    """Return the simple commands of a line or script, first to last. What cannot be read exactly is left out, together
    with the rest of the script; the lines before it are returned, as the shell runs them before it reads on."""
    parser = _Parser(line)
    with suppress(Unparsable):
        parser.parse_script()
    return parser.complete


@lru_cache(4_096)
def parse_known(line: str) -> tuple[SimpleCommand, ...]:
    """`parse_commands` of a line that is compared again and again, as the commands of facts are."""
    return tuple(parse_commands(line))


class _Parser(Scanner):
    """Recursive descent over the grammar of the shell."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.complete: list[SimpleCommand] = []
        """The commands of the lines that were read to their end."""
        self._commands: list[SimpleCommand] = []
        self._within: tuple[str, ...] = ()
        self._operator = ""
        """The last operator."""

    def parse_script(self) -> None:
        self.skip_lines()
        while not self.is_at_end():
            self._parse_line()
            self.complete += self._commands
            self._commands.clear()
            self.skip_lines()
            self._operator = "" if self.is_at_end() else self._operator

    def parse_until_parenthesis(self) -> None:
        """Drop the commands of a substitution: their exit code and output go elsewhere."""
        kept, operator = len(self._commands), self._operator
        self._parse_group("$(", (")",))
        del self._commands[kept:]
        self._operator = operator

    # Lists

    def _parse_line(self) -> None:
        """Parse one line, with the lines that its last operator continues."""
        while True:
            self._parse_command()
            operator = self._end_command()
            if operator in ("\n", ""):
                return
            if operator in (")", ";;", ";&", ";;&"):
                raise Unparsable("an end without a beginning")
            if operator in ("&&", "||", "|", "|&"):
                self.skip_lines()
                continue
            self.skip_blanks()
            if self.is_at_end() or self.peek_operator() == "\n":
                self.take_operator()
                return

    def _end_command(self) -> str:
        """Go past the operator behind a command, and note it in the command before."""
        self.skip_blanks()
        operator = self.take_operator()
        if not operator and not self.is_at_end():
            raise Unparsable("an operator is missing")
        self._note_operator(operator)
        return operator

    def _note_operator(self, operator: str) -> None:
        self._operator = ";" if operator == "\n" else operator
        if self._commands and not self._commands[-1].followed_by:
            self._commands[-1] = replace(self._commands[-1], followed_by=self._operator)

    def _parse_group(self, name: str, closers: tuple[str, ...]) -> str:
        """Parse commands up to a closing operator or word, go past it and return it."""
        outer, self._within = self._within, (*self._within, name)
        self._operator = name
        while True:
            self.skip_lines()
            closer = self._take_closer(closers)
            if closer:
                break
            self._parse_command()
            self.skip_blanks()
            if self.peek_operator() in closers:
                continue
            if self._end_command() == "" or self._operator in ("(", ")"):
                raise Unparsable("an open group")
        self._within = outer
        return closer

    def _take_closer(self, closers: tuple[str, ...]) -> str:
        operator = self.peek_operator()
        if operator in closers and operator:
            self._note_operator(operator)
            self.take_operator()
            return operator
        return self._take_keyword(closers)

    # Commands

    def _parse_command(self) -> None:
        self.enter()
        self.skip_blanks()
        start = self.at
        if self.take_operator(("(",)):
            self._parse_parenthesis(start)
        else:
            keyword = self._take_keyword(_KEYWORDS)
            if not keyword:
                self._parse_simple()
            elif keyword == "!":
                outer, self._within = self._within, (*self._within, "!")
                self._parse_pipeline()
                self._within = outer
            elif keyword == "[[":
                self._parse_condition(start)
            else:
                self._parse_compound(keyword)
                self._parse_redirections()
        self.leave()

    def _parse_parenthesis(self, start: int) -> None:
        if self.source.startswith("(", self.at):
            self.at += 1
            self.skip_arithmetic()
            self._add([], [Word(self.source[start : self.at], start, self.at, is_expanded=True)], ())
        else:
            self._parse_group("(", (")",))
        self._parse_redirections()

    def _parse_pipeline(self) -> None:
        self._parse_command()
        self.skip_blanks()
        while self.peek_operator() in ("|", "|&"):
            self._end_command()
            self.skip_lines()
            self._parse_command()
            self.skip_blanks()

    def _take_keyword(self, wanted: Container[str]) -> str:
        """Go past the next word if it is one of these, unquoted, and return it."""
        match = _KEYWORD.match(self.source, self.at)
        if match is None or match["word"] not in wanted:
            return ""
        if match["goes_on"]:
            raise Unparsable("a keyword that may go on")
        self.take_step()
        self.at = match.end()
        return match[0]

    def _parse_compound(self, keyword: str) -> None:
        if keyword == "{":
            self._parse_group("{", ("}",))
        elif keyword == "if":
            self._parse_group("if", ("then",))
            while (closer := self._parse_group("if", ("elif", "else", "fi"))) != "fi":
                if closer == "elif":
                    self._parse_group("if", ("then",))
        elif keyword in ("while", "until"):
            self._parse_group(keyword, ("do",))
            self._parse_group(keyword, ("done",))
        elif keyword in ("for", "select"):
            self._skip_loop_head()
            self._parse_group(keyword, ("done",))
        elif keyword == "case":
            self._parse_case()
        elif keyword == "function":
            self.skip_blanks()
            self.take_word()
            self._parse_function()
        else:
            raise Unparsable(keyword)

    def _skip_loop_head(self) -> None:
        self.skip_blanks()
        if self.source.startswith("((", self.at):
            self.at += 2
            self.skip_arithmetic()
        elif self.take_word() is None:
            raise Unparsable("a loop without a name")
        self.skip_lines()
        if self._take_keyword(("in",)):
            self.skip_blanks()
            while self.take_word() is not None:
                self.skip_blanks()
        self.take_operator((";",))
        self.skip_lines()
        if not self._take_keyword(("do",)):
            raise Unparsable("a loop without commands")

    def _parse_case(self) -> None:
        self.skip_blanks()
        word = self.take_word()
        self.skip_lines()
        if word is None or not self._take_keyword(("in",)):
            raise Unparsable("a case without a word")
        while True:
            self.skip_lines()
            if self._take_keyword(("esac",)):
                return
            self.take_operator(("(",))
            self.skip_blanks()
            while self.take_word() is not None:
                self.skip_blanks()
                self.take_operator(("|",))
                self.skip_blanks()
            if not self.take_operator((")",)):
                raise Unparsable("a case without a pattern")
            if self._parse_group("case", (";;", ";&", ";;&", "esac")) == "esac":
                return

    def _parse_function(self) -> None:
        """Parse the body of a function, behind its name."""
        self.skip_blanks()
        if self.take_operator(("(",)):
            self.skip_blanks()
            if not self.take_operator((")",)):
                raise Unparsable("a function with parameters")
        self.skip_lines()
        outer, self._within = self._within, (*self._within, "function")
        self._parse_command()
        self._within = outer

    def _parse_condition(self, start: int) -> None:
        """Parse `[[ ... ]]` as one word: operators have another meaning in it."""
        word: Word | None = None
        while word != "]]":
            self.skip_lines()
            word = self.take_word()
            if word is None and not self.take_operator():
                if not self.source.startswith(("<", ">"), self.at):
                    raise Unparsable("an open condition")
                self.at += 1
        self._add([], [Word(self.source[start : self.at], start, self.at, is_expanded=True)], ())
        self._parse_redirections()

    def _parse_redirections(self) -> None:
        """Take the redirections behind a group as a command without words."""
        redirections = []
        self.skip_blanks()
        while (redirection := self.take_redirection()) is not None:
            redirections.append(redirection)
            self.skip_blanks()
        if any(redirection.writes_file for redirection in redirections):
            self._add([], [], tuple(redirections))

    def _parse_simple(self) -> None:
        variables: list[Word] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        while True:
            self.skip_blanks()
            if (redirection := self.take_redirection()) is not None:
                redirections.append(redirection)
            elif (word := self.take_word(may_be_array=not words or words[0] in _DECLARATIONS)) is None:
                break
            elif not words and _is_assignment(word, self.source):
                variables.append(word)
            elif not words and _OPEN_INDEX.fullmatch(word):
                raise Unparsable("an index with blanks")
            else:
                words.append(word)
        if self.peek_operator() == "(":
            if len(words) != 1 or variables or redirections:
                raise Unparsable("a parenthesis behind words")
            self._parse_function()
            return
        if not variables and not words and not redirections:
            raise Unparsable("an operator without a command")
        self._add(variables, words, tuple(redirections))

    def _add(self, variables: list[Word], words: list[Word], redirections: tuple[Redirection, ...]) -> None:
        typed = [*variables, *words]
        start = min((*(word.start for word in typed), *(part.start for part in redirections)))
        ends = (*(word.end for word in typed), *(part.end for part in redirections if part.is_input))
        wrapper: list[Word] = []
        while (length := _wrapper_length(words)) > 0:
            wrapper += words[:length]
            words = words[length:]
            while words and wrapper[-1] != "--" and _is_assignment(words[0], self.source):
                variables.append(words.pop(0))
        self._commands.append(
            SimpleCommand(
                self.source,
                start,
                max(ends, default=start),
                tuple(variables),
                tuple(words),
                tuple(wrapper),
                redirections,
                preceded_by=self._operator,
                within=self._within,
            )
        )


def _is_assignment(word: Word, source: str) -> bool:
    match = _ASSIGNMENT.match(source, word.start, word.end)
    return match is not None and word.startswith(match[0])


def _wrapper_length(words: list[Word]) -> int:
    """How many words a wrapper has with its options; 0 when the first word is none."""
    if not words or words[0] not in _WRAPPERS or words[1:] == []:
        return 0
    name, at = words[0], 1
    while at < len(words) and words[at].startswith("-"):
        if (name, words[at]) in _NO_WRAPPER:
            return 0
        at += 2 if words[at] in _WRAPPERS[name] else 1
    if name == "timeout" and at < len(words) and words[at][:1].isdigit():
        at += 1
    return at if at < len(words) else 0
