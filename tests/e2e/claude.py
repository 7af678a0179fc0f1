"""Runs of the real Claude Code against a scripted model."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from nudge.core import limits
from tests.e2e.clients import Desk
from tests.harness import ROOT, TIMEOUT, eventually, free_port

API_KEY = "dummy"
Step = Mapping[str, Any]
"""A tool call that the model makes: its name and input."""


def bash(command: str) -> Step:
    return {"name": "Bash", "input": {"command": command, "description": "run"}}


def tool(name: str, **arguments: Any) -> Step:
    """One of Nudge's tools, as `nudge connect` wires the server."""
    return {"name": f"mcp__nudge__{name}", "input": arguments}


class Run:
    """What one run left: the requests that the model was sent, and what Claude Code wrote."""

    def __init__(self, folder: Path, output: str) -> None:
        self.folder, self.output = folder, output

    @property
    def requests(self) -> list[dict[str, Any]]:
        """In order, those of the conversation: Claude Code also asks small things without any tool."""
        count = len(list(self.folder.glob("request-*.json")))
        bodies = [json.loads((self.folder / f"request-{number}.json").read_text()) for number in range(count)]
        return [body for body in bodies if body.get("tools")]

    @property
    def told(self) -> str:
        """Every text that the model read before it did anything."""
        return self.read(0)

    def read(self, number: int) -> str:
        """Every text of a request."""
        return "\n".join(_texts(self.requests[number]["messages"]))

    @property
    def injected(self) -> str:
        """The part of it that begins with the first hook's text."""
        return self.told[self.told.find("hook success:") :][: limits.MAX_INJECTION_CHARS]

    @property
    def results(self) -> list[str]:
        """What each tool call gave the model."""
        blocks = [block for message in self.requests[-1]["messages"] for block in _blocks(message)]
        return ["\n".join(_texts(block["content"])) for block in blocks if block.get("type") == "tool_result"]

    def answer(self, number: int = -1) -> Any:
        """The object that a call of one of Nudge's tools gave the model. Text of a hook may follow it."""
        return json.JSONDecoder().raw_decode(self.results[number])[0]

    @property
    def debug(self) -> str:
        """Claude Code's own log: what it says of hooks and servers."""
        return (self.folder / "debug.log").read_text(errors="replace")

    @property
    def session(self) -> str:
        """The id of the session, as Claude Code and its hooks call it."""
        return str(next(event["session_id"] for event in self.events if "session_id" in event))

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return content if isinstance(content, list) else []


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, list):
        for item in node:
            yield from _texts(item)
    elif isinstance(node, dict):
        for name in ("text", "content"):
            if name in node:
                yield from _texts(node[name])


def write(path: Path, content: str) -> Step:
    return {"name": "Write", "input": {"file_path": str(path), "content": content}}


def run(
    desk: Desk,
    name: str,
    steps: Sequence[Step] = (),
    *,
    cwd: str | None = None,
    settings: Path | None = None,
    prompt: str = "please do it",
    resume: str | None = None,
) -> Run:
    """Ask for something in `cwd`; the model plays the steps, then says that it is done. `resume`: in the session with
    this id, which ended before."""
    with started(desk, name, steps, cwd, settings, prompt, resume) as (process, folder):
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, output[-2_000:] + errors[-2_000:]
    return Run(folder, output)


def converse(
    desk: Desk, name: str, prompts: Sequence[str], steps: Sequence[Step] = (), *, cwd: str | None = None
) -> Run:
    """One process that is asked several things, each after the answer to the one before. The model plays the steps
    when it is asked the first."""
    with started(desk, name, steps, cwd, prompt=None) as (process, folder):
        assert process.stdin is not None and process.stdout is not None
        output = ""
        for prompt in prompts:
            message = {"type": "user", "message": {"role": "user", "content": prompt}}
            process.stdin.write(f"{json.dumps(message)}\n")
            process.stdin.flush()
            output += _read_answer(process.stdout)
        process.stdin.close()
        output += process.stdout.read()
        assert process.wait(TIMEOUT) == 0, output[-2_000:]
    return Run(folder, output)


def _read_answer(stdout: IO[str]) -> str:
    lines = []
    for line in stdout:
        lines.append(line)
        if json.loads(line).get("type") == "result":
            return "".join(lines)
    raise AssertionError(f"Claude Code ended without an answer: {''.join(lines)[-2_000:]}")


def interrupt(desk: Desk, name: str, steps: Sequence[Step], marker: Path, *, cwd: str) -> Run:
    """Press Ctrl-C once a step has made `marker`."""
    with started(desk, name, steps, cwd) as (process, folder):
        eventually(marker.exists, "the agent is at work")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=TIMEOUT)
    return Run(folder, output)


@contextmanager
def started(
    desk: Desk,
    name: str,
    steps: Sequence[Step],
    cwd: str | None = None,
    settings: Path | None = None,
    prompt: str | None = "please do it",
    resume: str | None = None,
) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A run that is under way: its process, and where its requests are. Without a prompt it reads them from stdin."""
    folder = desk.machine.base / name
    with model(folder, steps) as port:
        command = ["claude", "-p", *([prompt] if prompt is not None else ["--input-format", "stream-json"])]
        command += ["--dangerously-skip-permissions"]
        command += ["--output-format", "stream-json", "--verbose", "--include-hook-events"]
        command += ["--debug-file", str(folder / "debug.log")]
        command += ["--settings", str(settings)] if settings else []
        command += ["--resume", resume] if resume else []
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command,
            cwd=cwd or desk.project,
            env={**desk.environ, **environ_for(port)},
            stdin=subprocess.DEVNULL if prompt is not None else pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )
        try:
            yield process, folder
        finally:
            process.kill()
            process.wait()


def environ_for(port: int) -> dict[str, str]:
    """The variables with which it asks the model on a port, and nobody else."""
    return {
        "IS_SANDBOX": "1",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
        "ANTHROPIC_API_KEY": API_KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


@contextmanager
def model(folder: Path, steps: Sequence[Step]) -> Iterator[int]:
    folder.mkdir()
    port = free_port()
    script = folder / "steps.json"
    script.write_text(json.dumps(list(steps)))
    command = [sys.executable, str(ROOT / "tests/e2e/scripted_model.py"), str(port), str(script), str(folder)]
    with subprocess.Popen(command) as process:
        eventually(lambda: _listens(port), "the scripted model listens")
        try:
            yield port
        finally:
            process.kill()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
