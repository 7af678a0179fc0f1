"""One verb, from words to exit code."""

from __future__ import annotations

import importlib
import os
import sys

from nudge.cli import exits
from nudge.cli.parsing import Parser, Usage, add_global_flags
from nudge.errors import NudgeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from nudge.cli.verbs import Verb


def run(verb: Verb, words: Sequence[str]) -> int:
    try:
        code = _parsed_and_run(verb, words)
        _flush()
    except SystemExit as leaving:  # argparse, after --help and --version
        return int(leaving.code or 0)
    except BrokenPipeError:
        return _quietly()
    return code


def parser_of(verb: Verb) -> Parser:
    module = importlib.import_module(verb.module)
    parser = Parser(verb, module.EXAMPLES)
    module.configure(parser)
    add_global_flags(parser)
    return parser


def _parsed_and_run(verb: Verb, words: Sequence[str]) -> int:
    module = importlib.import_module(verb.module)
    try:
        arguments = parser_of(verb).parse(words)
        return int(module.run(arguments))
    except Usage as error:
        return _refuse(verb, error, module.EXAMPLES[0])
    except NudgeError as error:
        from nudge.cli import failures

        return failures.report(error, verb=verb.name, as_json=arguments.json)


def _refuse(verb: Verb, error: Usage, example: str) -> int:
    from nudge.cli.render import visible

    print(visible(f"nudge {verb.name}: {error.message}; {error.advice or f'try: {example}'}"), file=sys.stderr)
    return exits.USAGE


def _flush() -> None:
    """Now, while a reader that has gone away can still be told from a crash."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def _quietly() -> int:
    """The interpreter flushes once more at exit, and would complain about the same pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exits.BROKEN_PIPE
