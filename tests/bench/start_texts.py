"""`python -m tests.bench.start_texts`: what sessions read at their start, each with its first prompt, to judge by eye.

Ten of the replayed sessions, and one in each of three repositories with a few days of scripted work before it.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from nudge.clients import registry
from nudge.context import resolve
from nudge.history.extract import extract, locate
from nudge.ipc.client import Client
from tests.bench.replay import DATA
from tests.harness import Machine

_SHOWN = (12, 25, 38, 51, 64, 77, 90, 103, 116, 130)  # numbers of replayed sessions
_HOUR = 3_600.0
_PROMPT_CHARS = 600
_CLIENT = {"CLAUDECODE": "1"}


@dataclass
class Work:
    """One session of a scripted repository: its prompts, what it ran with the error it ended in, and its last words."""

    hours_ago: float
    prompt: str
    commands: list[tuple[str, str]] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    last_words: str = ""
    branch: str = "main"
    ends: bool = True


@dataclass
class Repository:
    name: str
    files: dict[str, str]
    work: list[Work]
    notes: list[tuple[str, str, str]]
    """Kind, title and content of each."""
    prompt: str
    hints: list[tuple[str, str, str]] = field(default_factory=list)


SHOP = Repository(
    "shop",
    {"pyproject.toml": "[project]\nname = 'shop'\n", ".venv/bin/pytest": "#!/bin/sh\n", "shop/cart.py": ""},
    [
        Work(
            74,
            "Round the prices of a cart correctly",
            [
                ("python -m pytest tests/test_cart.py -q", "/usr/bin/python: No module named pytest"),
                (".venv/bin/pytest tests/test_cart.py -q", ""),
                ("git commit -am 'Round prices once, at the end'", ""),
            ],
            ["shop/cart.py"],
            "Prices are rounded once, at the end; all tests of the cart pass.",
        ),
        Work(
            50,
            "Send the invoice by mail after checkout",
            [
                ("python -m pytest -q", "/usr/bin/python: No module named pytest"),
                (
                    ".venv/bin/pytest -q",
                    "FAILED tests/test_mail.py::test_smtp - ConnectionRefusedError: [Errno 111] Connection refused",
                ),
                (".venv/bin/pytest tests/test_invoice.py -q", ""),
                ("git commit -am 'Mail the invoice after checkout'", ""),
            ],
            ["shop/invoice.py", "shop/checkout.py"],
            "The invoice is mailed; test_smtp needs a mail server and fails without one.",
        ),
        Work(
            26,
            "Let customers change their address after checkout",
            [
                ("python -m pytest tests -q", "/usr/bin/python: No module named pytest"),
                (
                    ".venv/bin/pytest tests -q",
                    "FAILED tests/test_mail.py::test_smtp - ConnectionRefusedError: [Errno 111] Connection refused",
                ),
                (
                    ".venv/bin/pytest tests/test_checkout.py -q",
                    "FAILED tests/test_checkout.py::test_change - AssertionError: 409 != 200",
                ),
            ],
            ["shop/address.py", "shop/checkout.py"],
            "The endpoint is there, but changing an address after the order was packed still answers 409; test_change"
            " fails.",
        ),
    ],
    [
        (
            "decision",
            "Prices are integers of cents everywhere",
            "Floats lost a cent in invoices; convert at the edge of the API only.",
        )
    ],
    "Finish the change of address: it must work until the order is packed.",
)

KIOSK = Repository(
    "kiosk-ui",
    {
        "package.json": '{"name": "kiosk-ui", "scripts": {"test:unit": "vitest run", "build": "tsc && vite build"}}',
        "pnpm-lock.yaml": "lockfileVersion: '9.0'\n",
        "src/App.tsx": "",
        "src/Hours.tsx": "",
    },
    [
        Work(
            70,
            "Show the opening hours on the start screen",
            [
                ("npm test", 'npm error Missing script: "test"'),
                ("pnpm test:unit", ""),
                ("git commit -am 'Opening hours'", ""),
            ],
            ["src/Hours.tsx"],
            "The opening hours are on the start screen.",
        ),
        Work(
            46,
            "Translate the opening hours",
            [
                ("npm test", 'npm error Missing script: "test"'),
                ("pnpm test:unit src/Hours.test.tsx", ""),
                ("git commit -am 'Opening hours in German'", ""),
            ],
            ["src/i18n/hours.ts"],
            "The opening hours are in German and English.",
        ),
        Work(
            22,
            "Dark mode for the opening hours",
            [
                ("pnpm test:unit", ""),
                (
                    "pnpm run build",
                    "src/Hours.tsx(14,7): error TS2322: Type 'string' is not assignable to type 'Theme'.",
                ),
            ],
            ["src/Hours.tsx", "src/theme.ts"],
            "The colors switch, but the build fails: Theme must take the name of a palette. I left the type as it was.",
        ),
        Work(0.1, "Bigger buttons for gloves", [], ["src/App.tsx"], "", "main", ends=False),
    ],
    [],
    "Get the dark mode to build.",
    [("kiosk-ui", "dev", "pnpm dev --host 0.0.0.0 --port 5174")],
)

RELAY = Repository(
    "relay",
    {
        "go.mod": "module example.com/relay\n",
        "scripts/test": "#!/bin/sh\ngo test ./...\n",
        "internal/metrics/metrics.go": "package metrics\n",
    },
    [
        Work(
            60,
            "Retry when the upstream closes the connection",
            [
                (
                    "go test ./...",
                    "internal/queue/queue_test.go:31: cannot reach redis: run scripts/test, it starts one",
                ),
                ("scripts/test", ""),
                ("git commit -am 'Retry on EOF'", ""),
            ],
            ["internal/relay/relay.go"],
            "A closed connection is tried again twice.",
        ),
        Work(
            30,
            "Expose metrics of the queue",
            [("scripts/test", ""), ("git commit -am 'wip: metrics'", "")],
            ["internal/metrics/metrics.go"],
            "The gauge is there; the histogram of waiting times is still to do.",
        ),
    ],
    [
        (
            "lesson",
            "Never label metrics by customer",
            "The number of series brought the collector down in March; label by plan.",
        )
    ],
    "Add the histogram of waiting times.",
)


class Reader:
    """A server that takes in sessions, and says what the next one reads."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        machine.http_only()
        self._client = Client(environ=machine.environ)

    def start(self, session: str, cwd: str) -> str:
        params = {"session_id": session, "source": "startup", "context": resolve(cwd).to_wire()}
        return str(self._client.call("nudge.inject", params)["text"])

    def record(self, payload: Mapping[str, Any], at: float) -> None:
        event = extract(registry.detect(payload, _CLIENT).translate(dict(payload)), now=at)
        if event is not None:
            self._client.call("nudge.record", {"event": locate(event, resolve(str(payload["cwd"])))})

    def store(self, repository: Repository, folder: str) -> None:
        context = resolve(folder).to_wire()
        for kind, title, content in repository.notes:
            note = {"kind": kind, "title": title, "content": content, "tier": "long", "context": context}
            self._client.call("nudge.memory_store", note)
        for component, key, value in repository.hints:
            meta = {"scope": {"repo": context["repo"]}, "reason": "other ports are blocked by the kiosk's firewall"}
            self._client.call("nudge.set_hint", {"component": component, "key": key, "value": value, "meta": meta})


def replayed(machine: Machine) -> Iterator[tuple[str, str, str]]:
    """Name, first prompt and start text of some replayed sessions, each a few hours after the one before it."""
    reader = Reader(machine)
    with gzip.open(DATA / "replay.jsonl.gz", "rt", encoding="utf-8") as lines:
        runs = groupby(map(json.loads, lines), key=lambda event: event["_bench"]["run"])
        for number, (run, events) in enumerate(runs, 1):
            at, text, prompt = time.time() - 5 * _HOUR, "", ""
            if number > _SHOWN[-1]:
                return
            for payload in events:
                del payload["_bench"]
                if payload["hook_event_name"] == "SessionStart" and number in _SHOWN:
                    text = reader.start(payload["session_id"], payload["cwd"])
                prompt = prompt or payload.get("prompt", "")
                reader.record(payload, at)
            if number in _SHOWN:
                yield f"replayed session {number}: {run}", prompt, text


def scripted(machine: Machine) -> Iterator[tuple[str, str, str]]:
    """The same for a session in each of the three repositories."""
    reader = Reader(machine)
    for repository in (SHOP, KIOSK, RELAY):
        folder = _create(Path(machine.runtime) / "repositories" / repository.name, repository)
        for number, work in enumerate(repository.work):
            _work(reader, work, f"{repository.name}-{number}", folder)
        reader.store(repository, folder)
        machine.cli("scan", folder)
        yield f"repository {repository.name}", repository.prompt, reader.start(f"{repository.name}-next", folder)


def _create(folder: Path, repository: Repository) -> str:
    for name, content in repository.files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        file.chmod(0o755)
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    remote = f"git@github.com:acme/{repository.name}.git"
    subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", remote], check=True)
    return str(folder)


def _work(reader: Reader, work: Work, session: str, folder: str) -> None:
    at = time.time() - work.hours_ago * _HOUR
    event = {"session_id": session, "cwd": folder, "transcript_path": "", "permission_mode": "default"}
    reader.record({**event, "hook_event_name": "SessionStart", "source": "startup"}, at)
    reader.record({**event, "hook_event_name": "UserPromptSubmit", "prompt": work.prompt}, at)
    for name in work.edited:
        path = os.path.join(folder, name)
        reader.record({**event, **_edit(path)}, at + 60)
    for number, (command, error) in enumerate(work.commands):
        reader.record({**event, **_command(command, error, f"{session}-{number}")}, at + 120 + number)
    if work.ends:
        words = {"last_assistant_message": work.last_words, "stop_hook_active": False}
        reader.record({**event, "hook_event_name": "Stop", **words}, at + 300)
        reader.record({**event, "hook_event_name": "SessionEnd", "reason": "exit"}, at + 301)


def _edit(path: str) -> dict[str, Any]:
    change = {"file_path": path, "old_string": "a", "new_string": "b"}
    answer = {"filePath": path, "structuredPatch": []}
    return {
        "hook_event_name": "PostToolUse",
        "tool_name": "Edit",
        "tool_use_id": f"edit {path}",
        "tool_input": change,
        "tool_response": answer,
    }


def _command(command: str, error: str, call: str) -> dict[str, Any]:
    used = {"tool_name": "Bash", "tool_use_id": call, "tool_input": {"command": command}}
    if error:
        return {**used, "hook_event_name": "PostToolUseFailure", "error": f"Exit code 1\n{error}"}
    subject = command.partition("-am '")[2].rstrip("'")
    printed = f"[main 1a2b3c4] {subject}\n 2 files changed, 31 insertions(+)" if subject else ""
    answer = {"stdout": printed, "stderr": "", "interrupted": False, "isImage": False}
    return {**used, "hook_event_name": "PostToolUse", "tool_response": answer}


def main() -> int:
    for source in (scripted, replayed):
        machine = Machine()
        try:
            for name, prompt, text in source(machine):
                print(
                    f"=== {name}\nFIRST PROMPT: {prompt[:_PROMPT_CHARS]}\nSTART TEXT:\n{text or '(nothing)'}\n",
                    flush=True,
                )
        finally:
            machine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
