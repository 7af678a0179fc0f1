"""The description of one agent client: where its configuration is, what its hooks send and read, how it is recognized.

A hook imports this module and the one of the client that it runs for, so both load nothing heavy: what only `nudge
connect` needs is imported inside the methods that use it.
"""

from __future__ import annotations

import os

from nudge.core import limits, paths, thin_json
from nudge.core.thin_json import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from nudge.clients.config_files import ConfigEntry, ConfigFile
    from nudge.clients.executable import Executable
    from nudge.clients.plan import Command, FileChange

NAME = "nudge"  # of our server in every client's configuration

# What a tool does, under the names of Claude Code, which other clients share in part. `history` knows these kinds only.
TOOLS = {
    "bash": "command",
    "powershell": "command",
    "read": "read",
    "notebookread": "read",
    "write": "write",
    "edit": "edit",
    "multiedit": "edit",
    "notebookedit": "edit",
    "grep": "search",
    "glob": "find",
    "ls": "find",
    "task": "task",
    "agent": "task",
    "webfetch": "web_fetch",
    "websearch": "web_search",
}


class Home:
    """A user's home directory, and the environment, whose variables can move a client's files."""

    __slots__ = ("environ", "path")

    def __init__(self, path: str | None = None, environ: Mapping[str, str] | None = None) -> None:
        self.path = path or paths.home()
        self.environ = os.environ if environ is None else environ

    def variable(self, name: str) -> str | None:
        """Return the directory in an environment variable; None when it is not set."""
        value = self.environ.get(name) if name else None
        return os.path.abspath(value) if value else None


_PLAIN_OUTPUT = frozenset(("SessionStart", "UserPromptSubmit"))  # for which plain text reaches the model


class AgentClient:
    """One client. A subclass sets what differs from Claude Code, whose names for hook events are used everywhere."""

    name = "unknown"
    title = "unknown"
    command = ""  # the client's own command on PATH
    advice = ""  # what its user has to do after connecting
    by_hand = False  # whether its user edits the files: `nudge connect` only prints what to write

    # Its files
    instructions: Sequence[Sequence[str]] = ()  # of a repo, which it reads by itself; the first of each group
    folder = ""  # of its configuration, below the home directory
    home_variable = ""  # the variable that names another place for it
    remove_server = ""  # its own command that removes the server {name}

    # The caller of a tool
    project_variable = ""  # in which it names the directory of the project to the processes that it starts
    session_variable = ""  # the same for the session
    note_source = "agent"  # of the notes that it stores

    # What shows that it runs a command
    shell_variables: Sequence[str] = ()  # that it sets for the commands of its agent
    processes: Sequence[str] = ()  # its own ones, where they are not called as `command`

    # Its hooks
    connected_events: Sequence[str] = ()  # that `nudge connect` adds a hook for
    events: Mapping[str, str] = {}  # its names for events, with those of Claude Code
    tools: Mapping[str, str] = TOOLS  # its names for tools in lower case, with what they do
    arguments: Mapping[str, str] = {}  # its names for the arguments of these tools, with those of Claude Code
    prompt_blocks: Sequence[str] = ("system-reminder", "task-notification")  # that it adds to the user's prompt
    shows_exit_2: Sequence[str] = ()  # events for which it only shows stderr of exit code 2, and blocks nothing
    assistant_mark = b""  # in every line of its transcripts that the assistant says something in
    action_marks: Sequence[bytes] = ()  # of which one is in every line of its transcripts with a call of a tool

    # Configuration

    def directory(self, home: Home) -> str:
        """Return the directory of its configuration."""
        return home.variable(self.home_variable) or os.path.join(home.path, self.folder)

    def config_files(self, home: Home, executable: Executable) -> list[ConfigFile]:
        """Return the configuration files that connect it, each with the entries to add."""
        raise NotImplementedError

    def own_commands(self, change: FileChange, home: Home, executable: Executable) -> Sequence[Command]:
        """Return the client's own commands that make a change; empty when Nudge writes the file."""
        del change, home, executable
        return ()

    def entries(self, home: Home, cwd: str) -> Iterator[ConfigEntry]:
        """Yield all servers, hooks and plugins in its configuration that apply in the directory `cwd`."""
        del cwd
        from nudge.clients import config_files
        from nudge.clients.executable import Executable

        for file in self.config_files(home, Executable(NAME)):
            document = config_files.read_document(file.path)
            servers = config_files.table(document, file.servers_key) if file.servers_key else {}
            yield from config_files.server_entries(file.path, servers, self.remove_server)
            yield from config_files.hook_entries(file.path, document)

    def hook_handlers(self, executable: Executable) -> dict[str, dict[str, Any]]:
        """Return the entry in its configuration for each event."""
        command = self.hook_command(executable)
        return {
            event: {"type": "command", **command, "timeout": self.hook_timeout(event)}
            for event in self.connected_events
        }

    def hook_command(self, executable: Executable) -> dict[str, Any]:
        """Return the command as a shell line that sh, zsh and fish understand: Codex uses the user's own shell."""
        from shlex import join

        return {"command": join(executable.hook)}

    def hook_timeout(self, event: str) -> int:
        """Return the seconds that a hook may take; less for the last one, for which clients wait before they exit."""
        is_end = event.lower() == "sessionend"
        return limits.CLIENT_SESSION_END_TIMEOUT if is_end else limits.CLIENT_HOOK_TIMEOUT

    def is_installed(self, home: Home, files: Sequence[ConfigFile]) -> bool:
        """Whether its command is on PATH, or a directory of its configuration exists."""
        import shutil

        folders = {os.path.dirname(file.path) for file in files} - {home.path}
        return shutil.which(self.command) is not None or any(map(os.path.isdir, folders))

    # The caller of a tool

    def call_directory(self, meta: Mapping[str, Any]) -> str | None:
        """Return the absolute path of the project that it names in the `_meta` of a call."""
        del meta
        return None

    def call_session(self, meta: Mapping[str, Any]) -> str | None:
        """Return the session that it names in the `_meta` of a call."""
        del meta
        return None

    # Hook events

    def recognizes(self, payload: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
        """Whether the payload is this client's: it keeps its transcript among its own files, or uses names of its own.

        The rest of the environment does not count here: an agent that another agent started inherits it.
        """
        transcript = text_of(payload, "transcript_path").replace("\\", "/")
        return (
            bool(self.folder)
            and (f"/{self.folder}/" in transcript or transcript.startswith(f"{self.directory(Home(environ=environ))}/"))
        ) or text_of(payload, "hook_event_name") in self.events

    def process_id(self, environ: Mapping[str, str]) -> int | None:
        """Return the pid of the client, if it passes that to its hooks."""
        del environ
        return None

    def recognizes_environ(self, environ: Mapping[str, str]) -> bool:
        """Whether the environment says that this client started the process."""
        del environ
        return False

    def translate(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload in Claude Code's terms, with `client`, `source_event` and `tool_kind` added, and to a
        prompt `prompt_blocks`; not to the events of a session, whose whole payload identifies them."""
        name = text_of(payload, "hook_event_name")
        event = {
            **payload,
            "client": self.name,
            "source_event": name,
            "hook_event_name": self.events.get(name, name),
            "tool_kind": None,
        }
        self.adapt(event)
        if event["hook_event_name"] == "UserPromptSubmit":
            event["prompt_blocks"] = self.prompt_blocks
        if event["hook_event_name"] == "SessionEnd" and self.assistant_mark:
            event["last_assistant_message"] = self._last_words(text_of(event, "transcript_path"))
        tool = text_of(event, "tool_name")
        if tool and event["tool_kind"] is None:
            event["tool_kind"] = "mcp" if tool.startswith("mcp__") else self.tools.get(tool.lower())
        arguments = event.get("tool_input")
        if self.arguments and event["tool_kind"] not in (None, "mcp") and isinstance(arguments, dict):
            renamed = {self.arguments[name]: value for name, value in arguments.items() if name in self.arguments}
            kept = {name: value for name, value in arguments.items() if name not in self.arguments}
            event["tool_input"] = {**renamed, **kept}
        return event

    def adapt(self, event: dict[str, Any]) -> None:
        """Change an event in place, where the client's payload differs from Claude Code's in more than names."""

    def assistant_text(self, entry: Mapping[str, Any]) -> str:
        """Return the text of the session's own assistant in one line of a transcript; empty for any other line. Raises
        KeyError, TypeError or AttributeError for a line of another shape."""
        del entry
        return ""

    def _last_words(self, transcript: str) -> str:
        """Return the assistant's text after its last tool call, from the end of the transcript, which is complete when
        a session ends. Later texts, such as an answer to thanks, count only where there was no tool call."""
        words = latest = ""
        for line in reversed(transcript_end(transcript)):
            if words and any(mark in line for mark in self.action_marks):
                return words
            if self.assistant_mark in line:
                try:
                    words = self.assistant_text(thin_json.loads(line)) or words
                except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
                    continue
                latest = latest or words
        return latest

    def hook_output(self, text: str, event: str) -> str:
        """Return what a hook prints so that the model reads `text`; `event` is the client's name for the event."""
        if event in _PLAIN_OUTPUT:
            return text
        import json

        return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


def transcript_end(path: str) -> list[bytes]:
    """Return the last lines of a transcript; none when there is no such file."""
    try:
        with open(path, "rb") as file:
            file.seek(max(os.path.getsize(path) - limits.TRANSCRIPT_END_BYTES, 0))
            return file.read(limits.TRANSCRIPT_END_BYTES).splitlines()
    except (OSError, ValueError):
        return []
