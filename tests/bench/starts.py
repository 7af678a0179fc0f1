"""How long a process takes from its start to what it was started for."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from statistics import median

from tests.bench import budgets, installation
from tests.bench.installation import Installation
from tests.bench.report import Row, milliseconds
from tests.bench.timing import Samples, ratio, resident_mb, seconds_of, take_turns
from tests.harness import Machine, Stdio

_COMMANDS = {
    "get": ("get", "api", "test"),
    "set": ("set", "api", "test", "pytest -q", "--global"),
    "bump": ("bump", "api", "test"),
    "ls": ("ls", "api"),
    "recent": ("recent", "--limit", "5"),
    "status": ("status",),
}
_PLAIN = ("get", "set", "bump")
_COMMAND_ROUNDS, _PROXY_ROUNDS, _PRIMARY_ROUNDS = 25, 15, 9


def commands(machine: Machine) -> Iterator[Row]:
    """`nudge get`, `set` and `bump` as plain lines, and verbs on click, with a PRIMARY up."""
    machine.http_only()
    machine.json(*_COMMANDS["set"])
    for installed in _installations(machine):
        samples = _command_samples(machine, installed)
        for verb in _COMMANDS:
            budget = budgets.COMMAND if verb in _PLAIN else budgets.CLICK_COMMAND
            yield _start_row("get", f"nudge {verb}, {installed.label}", samples, verb, budget)


def _installations(machine: Machine) -> tuple[Installation, Installation]:
    return installation.running(), installation.plain(machine.base / "plain")


def _command_samples(machine: Machine, installed: Installation) -> Samples:
    lines: dict[str, list[str]] = {verb: [installed.nudge, *words] for verb, words in _COMMANDS.items()}
    lines["bare"] = installed.bare
    return take_turns({name: _Command(machine, line) for name, line in lines.items()}, _COMMAND_ROUNDS)


class _Command:
    """One command line, to be measured again and again."""

    def __init__(self, machine: Machine, command: Sequence[str]) -> None:
        self._machine, self._command = machine, command

    def __call__(self) -> float:
        return seconds_of(self._command, self._machine.environ, str(self._machine.base))


class StdioServer:
    """A stdio server, started and ended again and again; notes its memory once it has answered."""

    def __init__(self, machine: Machine, command: Sequence[str]) -> None:
        self._machine, self._command = machine, command
        self.megabytes: list[float] = []

    def __call__(self) -> float:
        began = time.perf_counter()
        client = self._start()
        client.initialize()
        answer = client.request("tools/list")
        seconds = time.perf_counter() - began
        assert len(answer["result"]["tools"]) >= 8, answer
        self._note_memory(client)
        self._end(client)
        return seconds

    def _note_memory(self, client: Stdio) -> None:
        self.megabytes.append(resident_mb(client.pid))

    def _start(self) -> Stdio:
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._machine.environ,
            cwd=str(self._machine.base),
            start_new_session=True,
        )
        self._machine.processes.append(process)
        return Stdio(process)

    def _end(self, client: Stdio) -> None:
        client.quit()
        assert client.process.stdout is not None
        client.process.stdout.close()
        self._machine.processes.remove(client.process)


def proxy(machine: Machine) -> Iterator[Row]:
    """PROXY, beside a PRIMARY that is up."""
    machine.http_only()
    for installed in _installations(machine):
        server = StdioServer(machine, [installed.nudge, "serve"])
        samples = take_turns({"bare": _Command(machine, installed.bare), "proxy": server}, _PROXY_ROUNDS)
        yield _start_row(
            "proxy", f"PROXY to first tools/list, {installed.label}", samples, "proxy", budgets.PROXY_START
        )
        yield Row("proxy", f"PROXY memory, {installed.label}", max(server.megabytes), budgets.PROXY_MEMORY, "MB")


def primary(machine: Machine) -> Iterator[Row]:
    """PRIMARY, in a directory that has no other process. Its memory with both ports open and the MCP SDK loaded."""
    for installed in _installations(machine):
        server = _PrimaryServer(machine, [installed.nudge, "serve"])
        samples = take_turns({"bare": _Command(machine, installed.bare), "primary": server}, _PRIMARY_ROUNDS)
        what = f"PRIMARY to first tools/list, {installed.label}"
        yield _start_row("primary", what, samples, "primary", budgets.PRIMARY_START)
        yield Row("primary", f"PRIMARY memory, {installed.label}", max(server.megabytes), budgets.PRIMARY_MEMORY, "MB")


class _PrimaryServer(StdioServer):
    def _note_memory(self, client: Stdio) -> None:
        client.request("resources/list")  # answered by the SDK
        self._machine.ready()
        super()._note_memory(client)


def _start_row(group: str, what: str, samples: Samples, subject: str, budget: float) -> Row:
    bare = f"python -c pass {milliseconds(median(samples['bare']))}"
    return Row(group, what, ratio(samples, subject, "bare"), budget, "x", bare, milliseconds(median(samples[subject])))
