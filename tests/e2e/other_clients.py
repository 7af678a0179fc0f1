"""What the real Codex, Gemini CLI and OpenCode record and are told, each with a scripted model on the loopback.

Each has the home of its desk, and a proxy that refuses every connection: none of them reaches the network.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nudge.telling.ledger import HEADER
from tests.e2e import learning
from tests.e2e.clients import Desk
from tests.e2e.connecting import keep_opencode_offline
from tests.e2e.stub_model import LAST_WORDS, Call, StubModel

_PROMPT = "please do it"
_CODEX_MODEL = "gpt-5.5"  # one that it knows: others are not offered apply_patch


class Driver(ABC):
    """How one client is configured and started, and how its model asks for a command."""

    client: str
    shows_prompt_as = _PROMPT
    other_kinds: Sequence[str] = ()  # what is recorded of `other_calls`

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.configure(desk.machine.home)
        desk.run("nudge", "connect", self.client, "--yes")

    def run(self, *calls: Call, prompt: str = _PROMPT) -> list[str]:
        """Ask for something; the model plays the calls, then says its last words. What it read, request by request."""
        desk = self.desk
        with StubModel(calls) as model:
            command, environ = self.command(model)
            desk.environ |= model.environ | environ
            done = desk.execute(*command, prompt)
        printed = done.stdout[-2_000:] + done.stderr[-2_000:]
        assert done.returncode == 0, printed
        assert len(model.conversation) == len(calls) + 1, printed
        return ["\n".join(_texts(request)) for request in model.conversation]

    def trace(self) -> dict[str, Any]:
        """The last session, as it was recorded."""
        trace: dict[str, Any] = json.loads(self.desk.run("nudge", "trace", "last", "--json"))
        return trace

    @abstractmethod
    def configure(self, home: Path) -> None:
        """What its user has set up before `nudge connect`."""

    @abstractmethod
    def command(self, model: StubModel) -> tuple[Sequence[str], dict[str, str]]:
        """The words before the prompt that start it with this model, and variables for it."""

    @abstractmethod
    def shell(self, command: str) -> Call: ...

    def other_calls(self) -> Sequence[Call]:
        return ()


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list):
        for item in node.values() if isinstance(node, dict) else node:
            yield from _texts(item)


class Codex(Driver):
    client = "codex"
    other_kinds = ("file_write",)
    trust: Sequence[str] = ("--dangerously-bypass-hook-trust",)  # stands for the review under /hooks

    def configure(self, home: Path) -> None:
        (home / ".codex").mkdir()

    def command(self, model: StubModel) -> tuple[Sequence[str], dict[str, str]]:
        provider = f'{{name = "stub", base_url = "{model.url}/v1", wire_api = "responses", env_key = "STUB_KEY"}}'
        settings = ("-c", 'model_provider="stub"', "-c", f"model_providers.stub={provider}", "-m", _CODEX_MODEL)
        unattended = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        return ("codex", "exec", *unattended, *self.trust, *settings), {"STUB_KEY": "x"}

    def shell(self, command: str) -> Call:
        return "exec_command", {"cmd": command}

    def other_calls(self) -> Sequence[Call]:
        return (("apply_patch", "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch\n"),)


class Gemini(Driver):
    client = "gemini"
    other_kinds = ("file_write", "tool_other", "mcp_call")

    def configure(self, home: Path) -> None:
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        (home / ".gemini").mkdir()
        (home / ".gemini/settings.json").write_text(json.dumps(settings, indent=2))

    def command(self, model: StubModel) -> tuple[Sequence[str], dict[str, str]]:
        environ = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": model.url}
        # A model by name: without one it first asks a model which model to ask.
        return ("gemini", "-m", "gemini-2.5-pro", "--yolo", "-p"), environ

    def shell(self, command: str) -> Call:
        return "run_shell_command", {"command": command}

    def other_calls(self) -> Sequence[Call]:
        written, missing = (str(self.desk.project / name) for name in ("new.txt", "missing.txt"))
        return (
            ("write_file", {"file_path": written, "content": "x\n"}),
            ("read_file", {"file_path": missing}),
            ("mcp_nudge_nudge_query", {"text": "test"}),
        )


class OpenCode(Driver):
    client = "opencode"
    shows_prompt_as = f'"{_PROMPT}"'  # `opencode run` quotes an argument that has spaces
    other_kinds = ("file_write", "tool_other", "mcp_call")

    def configure(self, home: Path) -> None:
        keep_opencode_offline(home)

    def command(self, model: StubModel) -> tuple[Sequence[str], dict[str, str]]:
        options = {"baseURL": f"{model.url}/v1", "apiKey": "x"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": {"name": "m"}}}
        permission = {"bash": "allow", "edit": "allow"}
        settings = {"provider": {"stub": provider}, "model": "stub/m", "permission": permission}
        off = (f"OPENCODE_DISABLE_{name}" for name in ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD"))
        return ("opencode", "run"), {"OPENCODE_CONFIG_CONTENT": json.dumps(settings), **dict.fromkeys(off, "1")}

    def shell(self, command: str) -> Call:
        return "bash", {"command": command, "description": "try"}

    def other_calls(self) -> Sequence[Call]:
        written, missing = (str(self.desk.project / name) for name in ("new.txt", "missing.txt"))
        return (
            ("write", {"filePath": written, "content": "x\n"}),
            ("read", {"filePath": missing}),
            ("nudge_nudge_query", {"text": "test"}),
        )


def codex_learns(desk: Desk) -> None:
    """Hooks that were not reviewed are not run, and it does not say so. With them it is told what it learned."""
    codex = Codex(desk)
    codex.trust = ()
    codex.run(codex.shell("true"))
    assert desk.json("sessions") == [], "its advice and the README say that it runs none"
    codex.trust = Codex.trust
    _learns(codex)


def gemini_learns(desk: Desk) -> None:
    """It is told what it learned, and its prompts are recorded without the text that its hooks add to them."""
    _learns(Gemini(desk))


def opencode_learns(desk: Desk) -> None:
    """It is told what it learned, by the plugin."""
    _learns(OpenCode(desk))


def _learns(driver: Driver) -> None:
    """Two sessions fail and succeed in another way. The next one reads the working command, whole, and how that
    session ended before it does anything; one that fails alike reads it beside the error, and one that asks about a
    decision reads that."""
    desk = driver.desk
    learning.write_programs(desk)
    for _ in range(2):
        driver.run(driver.shell(learning.BROKEN), driver.shell(learning.WORKING), *driver.other_calls())
    summary = driver.trace()["summary"]
    kinds = ["session_start", "user_prompt", "command_error", "command", *driver.other_kinds, "session_end"]
    assert summary["counts"] == Counter(kinds), summary
    assert summary["last_words"] == LAST_WORDS, summary

    learning.decide_about_redis(desk)
    (start,) = driver.run()
    line = next(line for line in start.splitlines() if "env/python3 -m pytest" in line)
    assert re.search(learning.TOLD_AT_START, line), line
    assert f'last words: "{LAST_WORDS}"' in start, start
    prompts = [prompt["content"] for prompt in driver.trace()["prompts"] if prompt["source"] == "user"]
    assert prompts == [driver.shows_prompt_as], prompts

    expected_answers, answered = {"prompt", "failure"}, set[str]()
    for _ in range(learning.WITHIN):
        if answered != expected_answers:
            answered |= _answers(driver)
    assert answered == expected_answers, answered


def _answers(driver: Driver) -> set[str]:
    """What a session was answered that asks about the decision and then fails alike, twice."""
    broken = driver.shell(learning.BROKEN)
    asked, _, failed_again = driver.run(broken, broken, prompt=learning.ABOUT_REDIS)
    on_prompt, on_failure = _count(asked, "Session tokens live in Redis"), _count(failed_again, '"bin/pytest')
    assert on_prompt <= 1 and on_failure <= 1, failed_again  # once in a session
    return {name for name, count in (("prompt", on_prompt), ("failure", on_failure)) if count}


def _count(text: str, part: str) -> int:
    """The answers of hooks that contain it."""
    return sum(HEADER in line and part in line for line in text.splitlines())


CHECKS: tuple[Callable[[Desk], None], ...] = (codex_learns, gemini_learns, opencode_learns)
