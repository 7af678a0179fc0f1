"""In how many sessions a command must have worked before it is told.

A command that one session ran is told in the next one only if the repository or the machine already had what it runs.
What fetches a package by name, or runs a tool that was not there, needs two sessions. What deletes, weakens a
protection, runs text from elsewhere, or names a place that no file of the repository names, is never told.
"""

from __future__ import annotations

import re

from nudge.learning.harm import is_harmful, is_harmful_text
from nudge.learning.origin import fetched_by, is_named, names_known_places, plugins_of
from nudge.security.secrets import find_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from nudge.learning.command import SimpleCommand

NEVER = 0
_ONE, _TWO = 1, 2

_REDACTED = "[REDACTED"
_SUBSTITUTION = re.compile(r"\$\(|`|<\(|>\(|\$\{(?!(?:PWD|HOME|USER)\})|\$(?!(?:PWD|HOME|USER)\b|\{)\w")
_TO_AGENTS = re.compile(
    r"(?i)\b(?:AI|LLM|language model)s?\b[^\n]{0,40}\b(?:agents?|assistants?|tools?|models?|must|should|run)\b"
)
"""Words with which a text speaks to agents, as no tool does."""


def sessions_needed(
    commands: Sequence[SimpleCommand],
    text: str,
    root: str | None,
    printed: str = "",
    failed: SimpleCommand | None = None,
) -> int:
    """Return in how many sessions these commands must have worked before their text is told; NEVER for commands that
    are not told at all. `root` is the clone with the files of the repository, `printed` the output of the failure that
    they cure, `failed` the command that failed: what it fetches is not new."""
    if _REDACTED in text or _SUBSTITUTION.search(text) or "\n" in text or find_secret(text) is not None:
        return NEVER
    if any(is_harmful(command, root) for command in commands) or is_harmful_text(text):
        return NEVER
    known = failed.words if failed is not None else ()
    if not all(names_known_places(command, root, known) for command in commands):
        return NEVER
    if printed and _asks_for_it(commands, text, root, printed, known):
        return NEVER
    before = frozenset(fetched_by(failed)) if failed is not None else frozenset()
    return _ONE if all(is_named(name, root) for name in _fetched_by_any(commands) - before) else _TWO


def _fetched_by_any(commands: Sequence[SimpleCommand]) -> frozenset[str]:
    return frozenset(name for command in commands for name in fetched_by(command))


def _asks_for_it(
    commands: Sequence[SimpleCommand], text: str, root: str | None, printed: str, known: Collection[str]
) -> bool:
    """Whether the output of the failed command asked for these commands, and they fetch what neither the repository nor
    that command names, or the output speaks to agents."""
    if " ".join(text.split()) not in " ".join(printed.split()):
        return False
    fetched = {name for command in commands for name in (*fetched_by(command), *plugins_of(command))}
    fetched.difference_update(known)
    return _TO_AGENTS.search(printed) is not None or any(not is_named(name, root) for name in fetched)
