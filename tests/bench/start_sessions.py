"""Plays the repositories of `start_sessions.json` against a real PRIMARY: their sessions as hook events, the changes of
their files and the commands of git for real, and the starts in between."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nudge.clients import registry
from nudge.core.context import resolve
from nudge.history.extract import extract, locate
from nudge.process.client import Client
from tests.harness import Machine

DATA = Path(__file__).parent / "data"
_HOUR = 3_600.0
_EDIT_SECONDS = 60  # between a session's prompt and its first step


@dataclass(frozen=True, slots=True)
class Start:
    """What one session was told at its start. `tell`: what a good colleague would have said, one text of each; `never`:
    what must not be said."""

    name: str
    prompt: str
    text: str
    tell: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        return [line.removeprefix("- ") for line in self.text.splitlines() if line.startswith("- ")]


class Reader:
    """A server that takes in sessions, and says what the next one reads."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        machine.http_only()
        self.client = Client(environ=machine.environ)

    def start(self, session: str, cwd: str, source: str = "startup", client: str = "claude-code") -> str:
        params = {
            "session_id": session,
            "source": source,
            "client": client,
            "context": resolve(cwd).to_json(),
        }
        return str(self.client.call("nudge.inject", params)["text"])

    def record(self, payload: Mapping[str, Any], at: float) -> None:
        event = extract(registry.detect(payload, {"CLAUDECODE": "1"}).translate(dict(payload)), now=at)
        if event is not None:
            self.client.call("nudge.record", {"event": locate(event, resolve(str(payload["cwd"])))})

    def cli(self, *words: str, cwd: str) -> None:
        self._machine.json(*words, cwd=cwd)


def play(machine: Machine) -> Iterator[Start]:
    """The starts in all repositories."""
    reader = Reader(machine)
    for repository in json.loads((DATA / "start_sessions.json").read_text(encoding="utf-8")):
        yield from _Repository(reader, Path(machine.runtime) / "repositories", repository).play()


@dataclass(slots=True)
class _Repository:
    reader: Reader
    parent: Path
    data: Mapping[str, Any]
    folder: Path = field(init=False)
    starts: int = 0

    def play(self) -> Iterator[Start]:
        self.folder = self.parent / self.data["repo"]
        self._create(float(max(entry.get("hours_ago", 0) for entry in self.data["timeline"])) + 24)
        for entry in self.data["timeline"]:
            if "start" in entry:
                yield self._start(entry)
            elif "session" in entry:
                self._session(entry)
            elif "note" in entry:
                tags = {"tags": ["pinned"]} if entry.get("pinned") else {}
                self._call("nudge.memory_store", {**entry["note"], **tags, "tier": "long"})
            elif "hint" in entry:
                component, _, key = entry["hint"].partition("/")
                meta = {"scope": {"repo": resolve(self.cwd).repo}, "reason": entry["reason"]}
                hint = {"component": component, "key": key, "value": entry["value"], "meta": meta}
                self.reader.client.call("nudge.set_hint", hint)
            elif "scan" in entry:
                self.reader.cli("scan", cwd=self.cwd)
            else:
                for command in entry["by_hand"]:
                    self._really(command, _ago(entry))

    @property
    def cwd(self) -> str:
        return str(self.folder)

    def _call(self, operation: str, params: Mapping[str, Any]) -> None:
        self.reader.client.call(operation, {**params, "context": resolve(self.cwd).to_json()})

    def _create(self, hours_ago: float) -> None:
        at = time.time() - hours_ago * _HOUR
        for name, content in self.data["files"].items():
            self._write(name, content, at)
        remote = f"git@github.com:acme/{self.data['repo']}.git"
        for command in ("git init -q -b main", f"git remote add origin {remote}", "git add -A", "git commit -qm Begin"):
            self._really(command, at)

    def _write(self, name: str, content: str, at: float) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        file.chmod(0o755)
        os.utime(file, (at, at))

    def _really(self, command: str, at: float) -> None:
        """Run a command of git as it ran then. One that has nothing to commit fails, as it did."""
        date = f"{int(at)} +0000"
        author = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_AUTHOR_DATE": date}
        committer = {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b", "GIT_COMMITTER_DATE": date}
        environ = {**os.environ, **author, **committer}
        subprocess.run(shlex.split(command), check=False, cwd=self.folder, env=environ, stdout=subprocess.DEVNULL)

    # Sessions

    def _session(self, entry: Mapping[str, Any]) -> None:
        at, session = _ago(entry), f"{self.data['repo']}-{entry['session']}"
        event = {"session_id": session, "cwd": self.cwd, "transcript_path": "", "permission_mode": "default"}
        self.reader.record({**event, "hook_event_name": "SessionStart", "source": "startup"}, at)
        self.reader.record({**event, "hook_event_name": "UserPromptSubmit", "prompt": entry["prompt"]}, at)
        for number, step in enumerate(entry["steps"]):
            self._step(step, event, at + _EDIT_SECONDS + number)
        if entry.get("ends", True):
            end = at + _EDIT_SECONDS + len(entry["steps"])
            words = {"last_assistant_message": entry["last_words"], "stop_hook_active": False}
            self.reader.record({**event, "hook_event_name": "Stop", **words}, end)
            self.reader.record({**event, "hook_event_name": "SessionEnd", "reason": "exit"}, end + 1)

    def _step(self, step: Mapping[str, Any], event: Mapping[str, Any], at: float) -> None:
        if "attempt" in step:
            self._call("nudge.start_ghap", {**step["attempt"], "session_id": event["session_id"]})
        elif "edit" in step:
            path = self.folder / step["edit"]
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            self._write(step["edit"], f"{before}{int(at)}\n", at)
            self.reader.record({**event, **edit_payload(str(path))}, at)
        else:
            if step["run"].startswith("git "):
                self._really(step["run"], at)
            payload = command_payload(step["run"], step.get("output", ""), step.get("exit", 0), f"call {at}")
            self.reader.record({**event, **payload}, at)

    def _start(self, entry: Mapping[str, Any]) -> Start:
        self.starts += 1
        name = f"{self.data['repo']} {self.starts}"
        session = f"{self.data['repo']}-{entry['of']}" if "of" in entry else name
        text = self.reader.start(session, self.cwd, entry.get("source", "startup"), entry["client"])
        return Start(name, entry["start"], text, tuple(entry["tell"]), tuple(entry["never"]))


def _ago(entry: Mapping[str, Any]) -> float:
    return time.time() - float(entry["hours_ago"]) * _HOUR


def edit_payload(path: str) -> dict[str, Any]:
    change = {"file_path": path, "old_string": "a", "new_string": "b"}
    used = {"tool_name": "Edit", "tool_use_id": f"edit {path}", "tool_input": change}
    return {**used, "hook_event_name": "PostToolUse", "tool_response": {"filePath": path, "structuredPatch": []}}


def command_payload(command: str, output: str, code: int, call: str) -> dict[str, Any]:
    used = {"tool_name": "Bash", "tool_use_id": call, "tool_input": {"command": command}}
    if code:
        return {**used, "hook_event_name": "PostToolUseFailure", "error": f"Exit code {code}\n{output}"}
    subject = command.partition("-am '")[2].rstrip("'")
    printed = f"[main 1a2b3c4] {subject}\n 2 files changed, 31 insertions(+)" if subject else output
    answer = {"stdout": printed, "stderr": "", "interrupted": False, "isImage": False}
    return {**used, "hook_event_name": "PostToolUse", "tool_response": answer}
