"""Judge a prediction in words by the outcome of a command: "`make test` passes", "test_login still fails".

A prediction is about a command if it quotes the command, has its words in a row, or names a test that the command runs
by name. Unclear cases are not judged: two expectations in one sentence, a pipe or `||` that hides the exit code, a
command with a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nudge.core.programs import LINTERS, TEST_RUNNERS
from nudge.learning.command import SimpleCommand
from nudge.learning.outcome import SHELL_STATE, Outcome
from nudge.learning.scan import Word
from nudge.learning.shell import parse_commands
from nudge.security.secrets import REDACTED

_QUOTED = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|(?<!\w)'([^'\n]+)'(?!\w)")
_TEST_NAME = re.compile(r"(?<![\w/])(?:[\w./-]+::[\w:\[\]-]+|test_\w+|[\w./-]*test[\w./-]*\.\w+)")
_PUNCTUATION = ".,;:!?()[]{}\"'`"
# Tools whose arguments select what they check. For all others an argument is a different job: `make test`, `make`.
_RUNNERS = TEST_RUNNERS | LINTERS
_CODE = re.compile(r"\b(?:exit(?:s|ed)?|return(?:s|ed)?|code|status)(?: (?:with|code|status|of|is))* (\d{1,3})\b")
_PASSES = re.compile(r"\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|succe(?:ss|ssful|ssfully)|works?|green|clean(?:ly)?)\b")
_FAILS = re.compile(
    r"\b(?:fail(?:s|ed|ing|ures?)?|errors?|raises?|crash(?:es|ed)?|breaks?|broken|red|non-?zero|times? out)\b"
)
_NEGATIONS = frozenset(("no", "not", "never", "without", "longer", "stop", "stops", "stopped", "cannot", "zero", "0"))
_NEGATION_WORDS = 3  # words before a verb in which a negation counts


def judge(prediction: str, outcome: Outcome) -> bool | None:
    """Whether the prediction came true with this command; None when it is about another command, or unclear, or when
    the exit code is not known."""
    exit_code = outcome.exit_code
    if exit_code is None or REDACTED in prediction or REDACTED in outcome.line:
        return None
    expectation = _Expectation(prediction)
    if expectation.is_unclear:
        return None
    for simple in _conclusive(outcome.commands, succeeded=exit_code == 0):
        for predicted, is_quoted in _predicted(prediction, simple):
            if (is_quoted or expectation.is_stated) and _decides(predicted, simple, succeeded=exit_code == 0):
                return expectation.is_met(exit_code)
    return None


def _conclusive(commands: list[SimpleCommand], *, succeeded: bool) -> Iterator[SimpleCommand]:
    """Yield the simple commands whose own outcome follows from the exit code of the line."""
    if not commands or commands[-1].followed_by not in ("", ";") or any(command.within for command in commands):
        return
    if not succeeded and not all(command.tool in SHELL_STATE for command in commands[:-1]):
        return
    yield commands[-1]
    for command in reversed(commands[:-1]) if succeeded else ():
        if command.followed_by != "&&":
            return
        yield command


class _Expectation:
    """The outcome that a prediction expects: success, unless it says something else."""

    def __init__(self, prediction: str) -> None:
        text = _QUOTED.sub(" ", prediction).casefold()
        codes = {int(code) for code in _CODE.findall(text)}
        ends = {not _is_negated(text, match) for match in _PASSES.finditer(text)}
        ends |= {_is_negated(text, match) for match in _FAILS.finditer(text)}
        self.is_stated = bool(codes or ends)
        self.is_unclear = len(codes) > 1 or (not codes and len(ends) > 1)
        self._code = next(iter(codes), None)
        self._ends_well = next(iter(ends), True)

    def is_met(self, exit_code: int) -> bool:
        return exit_code == self._code if self._code is not None else (exit_code == 0) == self._ends_well


def _is_negated(text: str, match: re.Match[str]) -> bool:
    before = [word.strip(_PUNCTUATION) for word in text[: match.start()].split()[-_NEGATION_WORDS:]]
    return any(word in _NEGATIONS or word.endswith(("n't", "n\u2019t")) for word in before)


def _predicted(prediction: str, command: SimpleCommand) -> Iterator[tuple[SimpleCommand, bool]]:
    """Yield the commands that a prediction may mean, each with whether it is quoted there."""
    for match in _QUOTED.finditer(prediction):
        for quoted in parse_commands(next(filter(None, match.groups()))):
            yield quoted, True
    words = [word.strip(_PUNCTUATION) or word for word in prediction.split()]
    for at, word in enumerate(words):
        if word not in (command.tool, command.program):
            continue
        arguments = []
        for argument in words[at + 1 :]:
            if argument not in command.arguments:
                break
            arguments.append(argument)
        if arguments or command.tool in _RUNNERS:
            yield _command(command.tool, *arguments), False
    for name in _TEST_NAME.findall(prediction):
        for argument in command.arguments:
            if argument == name or argument.endswith(f"::{name}"):
                yield _command(command.tool, argument), False


def _command(*words: str) -> SimpleCommand:
    line = " ".join(words)
    return SimpleCommand(line, 0, len(line), words=tuple(map(Word, words)))


def _decides(predicted: SimpleCommand, command: SimpleCommand, *, succeeded: bool) -> bool:
    """Whether the outcome of a command decides that of the predicted one. A test run that covers more decides it by
    success, one that covers less by failure."""
    if predicted.tool != command.tool:
        return False
    options, operands = _split_arguments(predicted)
    observed_options, observed_operands = _split_arguments(command)
    if not options <= observed_options:
        return False
    if operands == observed_operands:
        return True
    if command.tool not in _RUNNERS:
        return False
    covers_more = bool(operands) and operands < observed_operands
    covers_less = not operands and bool(observed_operands)
    return covers_more if succeeded else covers_less


def _split_arguments(command: SimpleCommand) -> tuple[set[str], set[str]]:
    """Return the options, including the variables of `make`, and the other arguments."""
    arguments = set(map(str, command.arguments))
    options = {argument for argument in arguments if argument.startswith("-") or "=" in argument}
    return options, arguments - options
