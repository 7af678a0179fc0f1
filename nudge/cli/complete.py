"""`nudge complete`: what the completion scripts ask, at each press of Tab. It starts no server, and nothing makes it
fail."""

from __future__ import annotations

from nudge.cli import exits, verbs
from nudge.cli.parsing import Names
from nudge.cli.runner import parser_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Action, Namespace
    from collections.abc import Iterable, Iterator, Sequence

    from nudge.cli.parsing import Parser

EXAMPLES = ("nudge complete -- get http-proxy b",)


class Line:
    """A command line up to the cursor, taken apart by the verb's own parser."""

    __slots__ = ("awaited", "parser", "port", "positionals")

    def __init__(self, parser: Parser, words: Sequence[str]) -> None:
        self.parser = parser
        self.positionals: list[str] = []
        self.awaited: Action | None = None  # the option whose value the cursor is on
        self.port: str | None = None
        for word in words:
            self._take(word)

    def _take(self, word: str) -> None:
        if self.awaited is not None:
            self.port = word if self.awaited.dest == "port" else self.port
            self.awaited = None
        elif word.startswith("-") and word != "-":
            action = self.parser._option_string_actions.get(word)
            self.awaited = action if action is not None and action.nargs != 0 else None
        else:
            self.positionals.append(word)

    def current(self) -> Action | None:
        """The option or the argument that the word under the cursor is for."""
        if self.awaited is not None:
            return self.awaited
        arguments = self.parser._get_positional_actions()
        return arguments[len(self.positionals)] if len(self.positionals) < len(arguments) else None


def configure(parser: Parser) -> None:
    parser.add_argument(
        "words", metavar="WORD", nargs="*", help="the words after nudge; the last is the unfinished one"
    )


def run(arguments: Namespace) -> int:
    try:
        for candidate, help in _candidates(arguments.words or [""]):
            print(f"{candidate}\t{help}" if help else candidate)
    except Exception:  # whatever is wrong, a shell in the middle of a line is no place to say it
        return exits.DONE
    return exits.DONE


def _candidates(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    *before, last = words
    found = _all_candidates(before, last)
    return ((word, help) for word, help in found if word.startswith(last) and word.isprintable())


def _all_candidates(before: Sequence[str], last: str) -> Iterable[tuple[str, str]]:
    place = verbs.position(before)
    if place is None:
        return _flags(parser_of(verbs.VERBS[-1])) if last.startswith("-") else _verbs()
    verb = verbs.find(before[place])
    if verb is None:
        return ()
    parser = parser_of(verb)
    line = Line(parser, [*before[:place], *before[place + 1 :]])
    return _flags(parser) if last.startswith("-") and line.awaited is None else _values(line, last)


def _verbs() -> Iterator[tuple[str, str]]:
    return ((verb.name, verb.help) for verb in verbs.VERBS if not verb.hidden)


def _flags(parser: Parser) -> Iterator[tuple[str, str]]:
    from argparse import SUPPRESS

    for action in parser._actions:
        if action.help != SUPPRESS:
            yield from ((flag, action.help or "") for flag in action.option_strings if flag.startswith("--"))


def _values(line: Line, last: str) -> Iterable[tuple[str, str]]:
    action = line.current()
    if action is None:
        return ()
    if action.choices is not None:
        return ((str(choice), "") for choice in action.choices)
    if isinstance(action.type, Names):
        *given, _ = last.split(",")
        return ((",".join([*given, name]), "") for name in action.type.known if name not in given)
    if action.dest in ("component", "key"):
        return ((name, "") for name in _names(line, action.dest))
    return ()


def _names(line: Line, what: str) -> Iterable[str]:
    """Names that a running server knows."""
    from nudge.ipc.client import Client

    client = Client(port=int(line.port) if line.port else None, autostart=False)
    if client.endpoint() is None:
        return ()
    if what == "component":
        return [entry["name"] for entry in client.call("nudge.list_components", {}, start=False)["components"]]
    hints = client.call("nudge.list_components", {"component": line.positionals[0]}, start=False)["hints"]
    return dict.fromkeys(entry["key"] for entry in hints)
