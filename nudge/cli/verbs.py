"""The verbs by name: the operations that each calls, and what help says about it.

A verb is registered beside its function (`nudge.cli.app.verb`). The name of a verb below another has both words:
`note store`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module

HINTS, NOTES, HISTORY = "Hints", "Notes and the journal", "History"
TELLING, SERVER = "What agents are told", "Server and clients"
GROUPS = (HINTS, NOTES, HISTORY, TELLING, SERVER)
FIRST = ("set", "get", "query", "remember", "recall", "search", "inject", "status", "connect", "doctor")


class Verb:
    """Where a verb is implemented, and what `nudge help all` says about it.

    `unlisted` names work like aliases, but no help lists them: what a seed calls the verb, or its operation."""

    __slots__ = (
        *("name", "parent", "word", "group", "module", "summary"),
        *("operations", "aliases", "unlisted", "hidden"),
    )

    def __init__(
        self,
        name: str,
        group: str,
        module: str,
        summary: str,
        *operations: str,
        aliases: tuple[str, ...] = (),
        unlisted: tuple[str, ...] = (),
        hidden: bool = False,
    ) -> None:
        self.name, self.group, self.module, self.summary = name, group, module, summary
        self.operations, self.aliases, self.unlisted, self.hidden = operations, aliases, unlisted, hidden
        self.parent, _, self.word = name.rpartition(" ")


_WORDS = {
    "nudge.hints.cli": "set get query ls delete bump scan",
    "nudge.notes.cli": "remember recall explain note",
    "nudge.journal.cli": "journal",
    "nudge.history.cli": "search recent history sessions trace timeline show",
    "nudge.notes.archive_cli": "note",
    "nudge.history.purge_cli": "pin unpin purge",
    "nudge.history.backup_cli": "backup restore",
    "nudge.hints.transfer_cli": "export import",
    "nudge.notes.transfer_cli": "note",
    "nudge.cli.switches": "off on",
    "nudge.telling.cli": "inject told stats statusline replay",
    "nudge.learning.cli": "facts",
    "nudge.page.cli": "known browse watch open",
    "nudge.cli.server": "serve status stop token doctor",
    "nudge.cli.wiring": "backfill connect disconnect record",
    "nudge.cli.man": "completion man help version",
}
"""Each module of verbs, with the first words of its verbs, in the order in which help lists them. Only the modules that
may have the verb that is run are imported. A verb that is missing here is found by importing all, which takes 0.1 s."""
_BY_NAME: dict[str, Verb] = {}


def register(entry: Verb) -> None:
    """Make a verb known by its name and its aliases."""
    words = (entry.word, *entry.aliases, *entry.unlisted)
    _BY_NAME.update(dict.fromkeys((f"{entry.parent} {word}".lstrip() for word in words), entry))


@cache
def _load_all() -> None:
    for module in _WORDS:
        import_module(module)


def all_verbs() -> list[Verb]:
    """Return every verb, in the order in which help lists those of a group."""
    _load_all()
    modules, words = list(_WORDS), " ".join(_WORDS.values()).split()
    return sorted(
        dict.fromkeys(_BY_NAME.values()),
        key=lambda entry: (words.index(entry.name.split()[0]), modules.index(entry.module)),
    )


def _find(name: str) -> Verb | None:
    first = name.split()[0]
    for module, words in _WORDS.items():
        if name not in _BY_NAME and first in words.split():
            import_module(module)
    if name not in _BY_NAME:
        _load_all()
    return _BY_NAME.get(name)


def find_verb(*words: str) -> Verb | None:
    """Return the verb of that name or alias; each word may be an alias."""
    entry = None
    for word in " ".join(words).split():
        entry = _find(word if entry is None else f"{entry.name} {word}")
        if entry is None:
            return None
    return entry


def first_verbs() -> Iterator[Verb]:
    """Return the verbs that a newcomer needs, in the order in which `nudge --help` lists them."""
    return (entry for name in FIRST if (entry := _find(name)) is not None)


def shown_verbs(group: str | None = None, parent: str | None = None) -> Iterator[Verb]:
    """Return the verbs that help lists: all, or those of a group, or those below a verb (empty: the top level)."""
    return (
        entry
        for entry in all_verbs()
        if not entry.hidden and group in (None, entry.group) and parent in (None, entry.parent)
    )
