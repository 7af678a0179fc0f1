"""The verbs: which module implements each, the operations that it calls, and what help says about it.

A verb of a room is registered beside its function (`nudge.cli.app.verb`), the others are in the table. The name of a
verb below another has both words: `note store`.
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
        self.name, self.group, self.summary = name, group, summary
        self.module = module if "." in module else f"nudge.cli.{module}"
        self.operations, self.aliases, self.unlisted, self.hidden = operations, aliases, unlisted, hidden
        self.parent, _, self.word = name.rpartition(" ")


_ROOMS = ("nudge.telling.cli", "nudge.learning.cli")
_TABLE = (
    Verb("set", HINTS, "hints", "save a hint, or replace it", "nudge.set_hint"),
    Verb("get", HINTS, "hints", "show the best hint for this context, and why", "nudge.get_hint"),
    Verb("query", HINTS, "hints", "search hints by component, key, tag or text", "nudge.query"),
    Verb(
        "ls",
        HINTS,
        "hints",
        "list components, or all hints in one",
        "nudge.list_components",
        unlisted=("list-components",),
    ),
    Verb("delete", HINTS, "hints", "delete a hint, or one variant of it", "nudge.delete_hint", aliases=("rm",)),
    Verb("bump", HINTS, "hints", "credit a hint that worked, or lower one that failed", "nudge.bump"),
    Verb(
        "export",
        HINTS,
        "transfer",
        "write hints as JSON (--all: the history)",
        "nudge.export",
        "nudge.export_all",
    ),
    Verb(
        "import",
        HINTS,
        "transfer",
        "read hints from JSON",
        "nudge.import",
    ),
    Verb("scan", HINTS, "hints", "set hints from the manifests of this repo", "nudge.scan"),
    Verb("remember", NOTES, "memories", "store a note: a decision, a lesson, a finding", "nudge.memory_store"),
    Verb(
        "recall", NOTES, "memories", "search notes and hints for any of the words", "nudge.memory_recall", "nudge.query"
    ),
    Verb("explain", NOTES, "memories", "show the scores of notes and hints, part by part", "nudge.memory_explain"),
    Verb("note", NOTES, "memories", "store, find, change, link and tidy up notes", unlisted=("memory",)),
    Verb("note store", NOTES, "memories", "store a note, or update the one with its title", "nudge.memory_store"),
    Verb("note recall", NOTES, "memories", "find notes with any of the words; counts as a use", "nudge.memory_recall"),
    Verb("note search", NOTES, "memories", "find notes with all of the words", "nudge.memory_search"),
    Verb("note get", NOTES, "memories", "show a note in full, with its links", "nudge.memory_get"),
    Verb("note list", NOTES, "memories", "list notes, the most important first", "nudge.memory_list"),
    Verb("note update", NOTES, "memories", "change fields of a note", "nudge.memory_update"),
    Verb("note delete", NOTES, "memories", "delete a note permanently", "nudge.memory_delete"),
    Verb("note promote", NOTES, "memories", "keep a note for good", "nudge.memory_promote"),
    Verb("note pin", NOTES, "memories", "tell a note at every start", "nudge.memory_update"),
    Verb("note unpin", NOTES, "memories", "no longer tell a note at every start", "nudge.memory_update"),
    Verb("note link", NOTES, "memories", "link two notes", "nudge.memory_link"),
    Verb("note unlink", NOTES, "memories", "delete a link between two notes", "nudge.memory_delete_link"),
    Verb("note resolve", NOTES, "memories", "mark which of two contradicting notes is right", "nudge.memory_resolve"),
    Verb("note stats", NOTES, "memories", "count notes by tier and repo", "nudge.memory_stats"),
    Verb(
        "note repos",
        NOTES,
        "memories",
        "list the repos that have notes, and how many",
        "nudge.memory_namespaces",
        unlisted=("namespaces",),
    ),
    Verb("note shell", NOTES, "memories", "browse notes at a prompt"),
    Verb("note forget", NOTES, "upkeep", "move notes to the archive", "nudge.memory_forget"),
    Verb("note consolidate", NOTES, "upkeep", "replace notes with one summary", "nudge.memory_consolidate"),
    Verb(
        "note auto-consolidate",
        NOTES,
        "upkeep",
        "replace each group of notes with the same tag by one",
        "nudge.memory_auto_consolidate",
    ),
    Verb("note gc", NOTES, "upkeep", "move expired notes to the archive now", "nudge.memory_gc"),
    Verb("note archive", NOTES, "upkeep", "list, restore and purge archived notes"),
    Verb("note archive list", NOTES, "upkeep", "list archived notes", "nudge.memory_archive_list"),
    Verb(
        "note archive restore",
        NOTES,
        "upkeep",
        "restore an archived note",
        "nudge.memory_archive_restore",
    ),
    Verb(
        "note archive purge",
        NOTES,
        "upkeep",
        "delete archived notes permanently",
        "nudge.memory_archive_purge",
    ),
    Verb("note archive stats", NOTES, "upkeep", "count archived notes", "nudge.memory_archive_stats"),
    Verb("note export", NOTES, "transfer", "write notes and links as JSON", "nudge.memory_export"),
    Verb("note import", NOTES, "transfer", "read notes and links from JSON", "nudge.memory_import"),
    Verb("note sync", NOTES, "transfer", "exchange notes with another database", "nudge.memory_sync"),
    Verb("note mine", NOTES, "transfer", "make notes from exported chats", "nudge.memory_import"),
    Verb("journal", NOTES, "journal", "list and resolve attempts: what agents tried, expected and got"),
    Verb("journal list", NOTES, "journal", "list attempts", "nudge.list_ghap_entries"),
    Verb("journal show", NOTES, "journal", "show an attempt in full", "nudge.memory_get"),
    Verb("journal start", NOTES, "journal", "start an attempt: what you believe, do and expect", "nudge.start_ghap"),
    Verb("journal update", NOTES, "journal", "record what changed in an open attempt", "nudge.update_ghap"),
    Verb("journal resolve", NOTES, "journal", "record the outcome of an attempt, and its lesson", "nudge.resolve_ghap"),
    Verb("journal adopt", NOTES, "journal", "take over an attempt whose session has ended", "nudge.get_orphaned_ghap"),
    Verb(
        "journal calibration",
        NOTES,
        "journal",
        "compare predicted confidence with actual outcomes",
        "nudge.journal_calibration",
    ),
    Verb("search", HISTORY, "history", "search the history of what agents did", "nudge.search", "nudge.search_explain"),
    Verb("recent", HISTORY, "history", "list recent commits, failures, edits and prompts", "nudge.recent_context"),
    Verb("history", HISTORY, "history", "show which sessions touched a file, and why", "nudge.file_history"),
    Verb("sessions", HISTORY, "history", "list the sessions of agents", "nudge.sessions"),
    Verb("trace", HISTORY, "history", "show a session: each prompt and what it led to", "nudge.session_trace"),
    Verb("timeline", HISTORY, "history", "show what happened around an observation", "nudge.timeline"),
    Verb("show", HISTORY, "history", "show observations in full", "nudge.get_observations"),
    Verb("pin", HISTORY, "upkeep", "keep observations forever", "nudge.pin"),
    Verb("unpin", HISTORY, "upkeep", "let observations expire again", "nudge.pin"),
    Verb("purge", HISTORY, "upkeep", "delete observations permanently", "nudge.purge"),
    Verb("backup", HISTORY, "upkeep", "copy the history to a file", "nudge.backup"),
    Verb("restore", HISTORY, "upkeep", "replace the history with a backup"),
    Verb("backfill", HISTORY, "wiring", "record past sessions from Claude Code transcripts", "nudge.record_many"),
    Verb("off", HISTORY, "switches", "turn off recording and telling in this repo"),
    Verb("on", HISTORY, "switches", "turn on recording and telling in this repo"),
    Verb("serve", SERVER, "server", "serve MCP on stdio, and HTTP"),
    Verb("status", SERVER, "server", "show the running server and its state", "nudge.status"),
    Verb("stop", SERVER, "server", "stop the server; hints are kept for the session", "nudge.stop"),
    Verb("token", SERVER, "server", "print the bearer token for HTTP requests"),
    Verb("doctor", SERVER, "server", "check the installation, and show how to fix it"),
    Verb("connect", SERVER, "wiring", "connect an agent to Nudge: MCP server and hooks"),
    Verb("disconnect", SERVER, "wiring", "remove what nudge connect added"),
    Verb("record", SERVER, "wiring", "record one hook event from stdin", "nudge.record"),
    Verb("completion", SERVER, "man", "print the completion script for a shell"),
    Verb("man", SERVER, "man", "print the manual page of nudge, or of one command"),
    Verb("help", SERVER, "man", "show the help of nudge, of one command, or list all"),
    Verb("version", SERVER, "man", "print the version", hidden=True),
)
_BY_NAME: dict[str, Verb] = {}


def register(entry: Verb) -> None:
    """Make a verb known by its name and its aliases."""
    words = (entry.word, *entry.aliases, *entry.unlisted)
    _BY_NAME.update(dict.fromkeys((f"{entry.parent} {word}".lstrip() for word in words), entry))


for _entry in _TABLE:
    register(_entry)


@cache
def _load_rooms() -> None:
    """Import the modules that register verbs. A verb of the table is found without them."""
    for name in _ROOMS:
        import_module(name)


def all_verbs() -> list[Verb]:
    """Return every verb, in the order in which help lists those of a group."""
    _load_rooms()
    return list(dict.fromkeys(_BY_NAME.values()))


def _find(name: str) -> Verb | None:
    if name not in _BY_NAME:
        _load_rooms()
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
