"""What is said when no verb is: the grouped help, the version, the nearest verb to a misspelt one."""

from __future__ import annotations

import sys
from itertools import pairwise

from nudge import __version__
from nudge.cli import exits, verbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nudge.cli.verbs import Verb

_HEAD = """\
Nudge: the shared memory of the coding agents on one machine.

usage: nudge [-p PORT] [--json] VERB ...
"""
_TAIL = """\
Anywhere on the line:
  -p, --port PORT  the server's port, when it is not the usual one
  --json           print the exact result object
  -h, --help       help, also for one verb: nudge get --help
  --version        print the version

Examples:
  nudge set http-proxy build "docker compose build router" --tags build,docker
  nudge get http-proxy build
  eval "$(nudge get http-proxy build --value-only)"
"""


def without_verb(words: Sequence[str], place: int | None) -> int:
    """`nudge`, `nudge --help`, `nudge help get`, `nudge --version`; a flag that only a verb knows is refused."""
    if place is not None and (verb := _named(words[place + 1 :])) is not None:
        from nudge.cli import runner

        return runner.run(verb, ["--help"])
    wrong = _wrong_flag(words) if place is None else None
    if wrong is not None:
        return _refuse(wrong)
    print(f"nudge {__version__}" if "--version" in words else grouped_help(), end="\n" if "--version" in words else "")
    return exits.DONE


def unknown_verb(words: Sequence[str], place: int) -> int:
    wrong = _wrong_flag(words[:place])
    if wrong is not None:
        return _refuse(wrong)
    from difflib import get_close_matches

    known = [name for verb in verbs.VERBS if not verb.hidden for name in (verb.name, *verb.aliases)]
    word = words[place]
    near = get_close_matches(word, known, n=1, cutoff=0.5)
    advice = f"did you mean: nudge {near[0]}" if near else "try: nudge --help"
    return _refuse(f"there is no verb {word!a}; {advice}")


def grouped_help() -> str:
    return "\n".join([_HEAD, *(_section(group) for group in verbs.GROUPS), _TAIL])


def _section(group: str) -> str:
    rows = [
        f"  {verb.name:<11}{_with_aliases(verb)}" for verb in verbs.VERBS if verb.group == group and not verb.hidden
    ]
    return "\n".join([f"{group}:", *rows, ""])


def _with_aliases(verb: Verb) -> str:
    return f"{verb.help} (also: {', '.join(verb.aliases)})" if verb.aliases else verb.help


def _named(words: Sequence[str]) -> Verb | None:
    return next((verb for word in words if (verb := verbs.find(word)) is not None), None)


def _wrong_flag(words: Sequence[str]) -> str | None:
    """What is wrong before the verb, or without one: a flag that only a verb knows, or a port that is none."""
    stray = next((flag for flag in _flags(words) if flag not in verbs.GLOBAL_FLAGS and flag != "--"), None)
    if stray is not None:
        return f"{stray} needs a verb before it; try: nudge --help"
    lone = next(
        (flag for flag, port in pairwise([*words, ""]) if flag in verbs.PORT_FLAGS and not port.isdecimal()), None
    )
    return None if lone is None else f"{lone} needs a port; try: nudge {lone} 9000 status"


def _flags(words: Sequence[str]) -> Iterator[str]:
    after_port = False
    for word in words:
        if not after_port:
            yield "-p" if word.startswith("-p") else word.partition("=")[0]
        after_port = word in verbs.PORT_FLAGS


def _refuse(message: str) -> int:
    print(f"nudge: {message}", file=sys.stderr)
    return exits.USAGE
