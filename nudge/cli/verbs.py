"""The table of verbs. It is read on every start, so it imports nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

HINTS, HISTORY, SERVER, PLUMBING = "Hints", "History", "Server", "Plumbing"
GROUPS = (HINTS, HISTORY, SERVER, PLUMBING)

PORT_FLAGS = ("-p", "--port")
GLOBAL_FLAGS = ("--json", "--version", "-h", "--help", *PORT_FLAGS)


class Verb:
    """One row: the module below this package that knows the verb, and what the help says of it."""

    __slots__ = ("aliases", "group", "help", "hidden", "module", "name", "operation")

    def __init__(
        self,
        name: str,
        group: str,
        help: str,
        *,
        operation: str | None = None,
        module: str | None = None,
        aliases: tuple[str, ...] = (),
        hidden: bool = False,
    ) -> None:
        self.name, self.group, self.help, self.operation = name, group, help, operation
        self.module = "nudge.cli." + (module or name)
        self.aliases, self.hidden = aliases, hidden


VERBS = (
    Verb("set", HINTS, "store a hint, or replace it", operation="nudge.set_hint"),
    Verb("get", HINTS, "show the hint that fits here best, and why", operation="nudge.get_hint"),
    Verb("query", HINTS, "search hints by component, key, tag or text", operation="nudge.query"),
    Verb(
        "ls",
        HINTS,
        "list components, or everything in one",
        operation="nudge.list_components",
        aliases=("list-components",),
    ),
    Verb("delete", HINTS, "remove a hint, or one variant of it", operation="nudge.delete_hint", aliases=("rm",)),
    Verb("bump", HINTS, "credit a hint that worked (or take credit back)", operation="nudge.bump"),
    Verb("export", HINTS, "write all hints (--all: the history) as JSON", operation="nudge.export"),
    Verb("import", HINTS, "read hints from JSON", operation="nudge.import", module="import_"),
    Verb("scan", HINTS, "set hints from this repo's manifests", operation="nudge.scan"),
    Verb("search", HISTORY, "search what agents did", operation="nudge.search"),
    Verb("recent", HISTORY, "what mattered most of late", operation="nudge.recent_context"),
    Verb("history", HISTORY, "who touched a file, and why; or files touched lately", operation="nudge.file_history"),
    Verb("sessions", HISTORY, "list sessions", operation="nudge.sessions"),
    Verb("trace", HISTORY, "show a session: prompts, and what each led to", operation="nudge.session_trace"),
    Verb("timeline", HISTORY, "what happened around an observation", operation="nudge.timeline"),
    Verb("show", HISTORY, "show observations in full", operation="nudge.get_observations"),
    Verb("pin", HISTORY, "keep observations for good", operation="nudge.pin"),
    Verb("unpin", HISTORY, "let retention have them again"),
    Verb("inject", HISTORY, "print what an agent starting here would be told", operation="nudge.inject"),
    Verb("purge", HISTORY, "delete observations for good", operation="nudge.purge"),
    Verb("backup", HISTORY, "copy the history to a file", operation="nudge.backup"),
    Verb("restore", HISTORY, "put a backup in the place of the history"),
    Verb("backfill", HISTORY, "read in the transcripts that Claude Code kept", operation="nudge.record_many"),
    Verb("on", HISTORY, "record in this project again"),
    Verb("off", HISTORY, "record nothing in this project"),
    Verb("serve", SERVER, "serve MCP on stdio, and HTTP"),
    Verb("status", SERVER, "say which server runs, and how it is", operation="nudge.status"),
    Verb("stop", SERVER, "end the server; hints stay for the session", operation="nudge.stop"),
    Verb("token", SERVER, "print the bearer token for HTTP"),
    Verb("connect", SERVER, "wire an agent to Nudge: MCP server and hooks"),
    Verb("disconnect", SERVER, "take the wiring out again"),
    Verb("doctor", SERVER, "check everything around the server; say what mends it"),
    Verb("record", PLUMBING, "record one hook event from stdin", operation="nudge.record"),
    Verb("completion", PLUMBING, "print the completion script of a shell"),
    Verb("complete", PLUMBING, "print what could come next on a command line", hidden=True),
)


def find(word: str) -> Verb | None:
    """The verb of that name or alias."""
    return next((verb for verb in VERBS if word == verb.name or word in verb.aliases), None)


def position(words: Sequence[str]) -> int | None:
    """Where the verb stands: the first word that is neither a flag nor a port's number."""
    index = 0
    while index < len(words):
        word = words[index]
        if not word.startswith("-"):
            return index
        index += 2 if word in PORT_FLAGS else 1
    return None
