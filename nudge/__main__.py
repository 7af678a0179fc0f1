"""The console script. It finds the verb before it imports anything: each verb pays only for what it uses."""

from __future__ import annotations

import sys

from nudge.interfaces.cli import exits, verbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(words)
    except KeyboardInterrupt:
        return exits.INTERRUPTED


def _dispatch(words: list[str]) -> int:
    place = verbs.position(words)
    if place is None or words[place] == "help":
        from nudge.interfaces.cli import front

        return front.without_verb(words, place)
    verb = verbs.find(words[place])
    if verb is None:
        from nudge.interfaces.cli import front

        return front.unknown_verb(words, place)
    from nudge.interfaces.cli import runner

    return runner.run(verb, words[:place] + words[place + 1 :])


if __name__ == "__main__":
    sys.exit(main())
