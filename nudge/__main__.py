"""The console script. It finds the verb before it imports anything: each verb pays only for what it uses."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None and words == ["record"]:
        _record()
    try:
        return _dispatch(words)
    except KeyboardInterrupt:
        from nudge.cli import exits

        return exits.INTERRUPTED


def _record() -> None:
    """Every tool call of every agent comes this way: no verbs, no parser, no collector, no tear-down of the
    interpreter."""
    import gc

    gc.disable()
    from nudge import hook as record

    record.run()


def _dispatch(words: list[str]) -> int:
    from nudge.cli import verbs

    place = verbs.position(words)
    if place is None or words[place] == "help":
        from nudge.cli import front

        return front.without_verb(words, place)
    verb = verbs.find(words[place])
    if verb is None:
        from nudge.cli import front

        return front.unknown_verb(words, place)
    from nudge.cli import runner

    return runner.run(verb, words[:place] + words[place + 1 :])


if __name__ == "__main__":
    sys.exit(main())
