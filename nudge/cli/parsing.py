"""argparse with our manners: one line for a mistake, with what to type instead; no abbreviations; nothing costly
imported."""

from __future__ import annotations

import argparse
import os

from nudge import __version__, context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from nudge.cli.verbs import Verb

# `error` below reads these messages, so they stay English; and looking for a translation costs each start 1 ms.
argparse._ = str  # type: ignore[attr-defined]

_REQUIRED = "the following arguments are required: "
_UNKNOWN = "unrecognized arguments: "
_WIDEST_HELP = 110


class Usage(Exception):
    """A command line that cannot be meant. Without `advice` the verb's first example is offered."""

    def __init__(self, message: str, advice: str | None = None) -> None:
        super().__init__(message)
        self.message, self.advice = message, advice


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """argparse asks for a formatter at each argument; left to itself it imports `shutil` (8 ms) to learn the width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=_terminal_width())


class Parser(argparse.ArgumentParser):
    def __init__(self, verb: Verb, examples: Sequence[str]) -> None:
        super().__init__(
            prog=f"nudge {verb.name}",
            description=verb.help[0].upper() + verb.help[1:] + ".",
            epilog="\n".join(["examples:", *(f"  {example}" for example in examples)]),
            formatter_class=_Formatter,
            allow_abbrev=False,
            add_help=False,
        )
        self._words: list[str] = []

    def format_usage(self) -> str:
        """Without the list of flags: each has its own line below."""
        return f"usage: {' '.join([self.prog, *(_usage_of(action) for action in self._get_positional_actions())])} [options]\n"

    def format_help(self) -> str:
        self.usage = self.format_usage().removeprefix("usage: ").rstrip()
        return super().format_help()

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """What follows the verb. A `--` with nothing behind it says nothing, which argparse does not know."""
        self._words = list(words)
        if self._words[-1:] == ["--"] == [word for word in self._words if word == "--"]:
            self._words.pop()
        return self.parse_args(self._words)

    def error(self, message: str) -> NoReturn:
        if message.startswith(_REQUIRED):
            if stray := self._stray():
                raise Usage(*self._unknown(stray, "what starts with - and is no option goes after --"))
            raise Usage(f"missing {message.removeprefix(_REQUIRED)}")
        if message.startswith(_UNKNOWN):
            raise Usage(*self._unknown(message.removeprefix(_UNKNOWN)))
        raise Usage(message.removeprefix("argument "), f"see: {self.prog} --help")

    def _stray(self) -> str | None:
        """The first option that is none of ours: argparse counts arguments before it looks at options."""
        options = self._words[: self._words.index("--")] if "--" in self._words else self._words
        return next((word for word in options if word[:1] == "-" and not self._is_ours(word)), None)

    def _is_ours(self, word: str) -> bool:
        known = self._option_string_actions
        return (
            word == "-"
            or word.partition("=")[0] in known
            or word[:2] in known
            or self._negative_number_matcher.match(word) is not None
        )

    def _unknown(self, words: str, advice: str | None = None) -> tuple[str, str]:
        words = words.removeprefix("-- ")
        if not words.startswith("-"):
            return f"one argument too many: {words!a}", "quote a value that has spaces"
        from difflib import get_close_matches

        flag = words.split()[0].partition("=")[0]
        near = get_close_matches(flag, list(self._option_string_actions), n=1)
        return f"unknown option {flag!a}", f"did you mean: {near[0]}" if near else advice or f"try: {self.prog} --help"


def add_global_flags(parser: Parser) -> None:
    common = parser.add_argument_group("anywhere on the line")
    common.add_argument(
        "-p", "--port", type=port, metavar="PORT", help="the server's port, when it is not the usual one"
    )
    common.add_argument("--json", action="store_true", help="print the exact result object")
    common.add_argument("-h", "--help", action="help", help="show this help")
    common.add_argument("--version", action="version", version=f"nudge {__version__}", help="print the version")


def whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!a} is not a whole number") from None


def port(text: str) -> int:
    number = whole(text)
    if not 1 <= number <= 65_535:
        raise argparse.ArgumentTypeError(f"{number} is not a port (1 to 65535)")
    return number


def fraction(text: str) -> float:
    """A number that JSON can carry: `nan` and `inf` are none."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if number - number != 0:
        raise argparse.ArgumentTypeError(f"{text!a} is not a number")
    return number


def pair(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!a} is not NAME=VALUE")
    return name, value


def items(text: str) -> list[str]:
    """`a,b` as a list. Nothing at all is refused: an unset variable in a script must not widen what was asked for."""
    found = [item.strip() for item in text.split(",") if item.strip()]
    if not found:
        raise argparse.ArgumentTypeError("needs a value")
    return found


class Names:
    """Like `items`, of names that are known, so that a shell can offer them; whether another may be meant, the server
    says."""

    __slots__ = ("known",)

    def __init__(self, known: tuple[str, ...]) -> None:
        self.known = known

    def __call__(self, text: str) -> list[str]:
        return items(text)


OS_NAMES = Names(context.OS_NAMES)


def globs(text: str) -> list[str]:
    """Like `items`, but a comma inside braces belongs to the pattern."""
    found, depth = [""], 0
    for char in text:
        depth = max(0, depth + (char == "{") - (char == "}"))
        if char == "," and depth == 0:
            found.append("")
        else:
            found[-1] += char
    return [pattern.strip() for pattern in found if pattern.strip()] or items("")


def _usage_of(positional: argparse.Action) -> str:
    return f"[{positional.metavar}]" if positional.nargs == "?" else str(positional.metavar)


def _terminal_width() -> int:
    try:
        columns = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (ValueError, OSError):
        columns = 80
    return max(40, min(columns - 2, _WIDEST_HELP))
