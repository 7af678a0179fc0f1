"""The verbs by name: the operations that each calls, and what help says about it.

A verb is registered beside its function (`nudge.cli.app.verb`). The name of a verb below another has both words:
`note store`. Only the module that has the verb that is run is imported: `verb_index`, which `make handshake` writes,
says which that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module

from nudge.cli.verb_index import MODULES_OF

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


MODULES = (
    "nudge.hints.cli",
    "nudge.notes.cli",
    "nudge.journal.cli",
    "nudge.history.cli",
    "nudge.notes.link_cli",
    "nudge.notes.archive_cli",
    "nudge.proposals.cli",
    "nudge.history.purge_cli",
    "nudge.history.backup_cli",
    "nudge.hints.versions_cli",
    "nudge.hints.transfer_cli",
    "nudge.repofile.cli",
    "nudge.repofile.share_cli",
    "nudge.notes.transfer_cli",
    "nudge.notes.shell_cli",
    "nudge.meaning.cli",
    "nudge.cli.switches",
    "nudge.telling.cli",
    "nudge.learning.cli",
    "nudge.page.cli",
    "nudge.team.cli",
    "nudge.cli.server",
    "nudge.cli.connect",
    "nudge.cli.man",
)
"""The modules of verbs, in the order in which help lists theirs."""
_BY_NAME: dict[str, Verb] = {}


def register(entry: Verb) -> None:
    """Make a verb known by its name and its aliases."""
    words = (entry.word, *entry.aliases, *entry.unlisted)
    _BY_NAME.update(dict.fromkeys((f"{entry.parent} {word}".lstrip() for word in words), entry))


@cache
def _load_all() -> None:
    for module in MODULES:
        import_module(module)


def modules_by_name() -> dict[str, str]:
    """Return the names and aliases of all verbs, each with the module that has it: what `verb_index` must be."""
    _load_all()
    return {name: module for module in MODULES for name, entry in _BY_NAME.items() if entry.module == module}


def all_verbs() -> list[Verb]:
    """Return every verb, in the order in which help lists those of a group."""
    entries = list(dict.fromkeys(_BY_NAME[name] for name in modules_by_name()))
    first = {name: place for place, name in reversed([*enumerate(entry.name.split()[0] for entry in entries)])}
    return sorted(entries, key=lambda entry: first[entry.name.split()[0]])


def _find(name: str) -> Verb | None:
    """Return a verb after importing the module that has it; all are imported for an unknown name."""
    if name in MODULES_OF:
        import_module(MODULES_OF[name])
    else:
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
