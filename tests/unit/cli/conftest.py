"""A server that answers what a test told it to, and a terminal that remembers what was shown."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from nudge.__main__ import main

HINT: dict[str, Any] = {
    "value": "docker compose build router",
    "meta": {"priority": 7, "tags": ["build", "docker"], "ttl": "session", "scope": {"cwd_glob": ["**/http-proxy*"]}},
    "version": 3,
    "created_at": "2026-11-16T08:00:00.000000Z",
    "updated_at": "2026-11-16T08:30:00.000000Z",
    "use_count": 4,
}
EXPLAIN: dict[str, Any] = {
    "matched": True,
    "score": 0.9183,
    "components": {"frecency": 0.3, "priority": 0.14},
    "reasons": ["cwd matched **/http-proxy*", "recently used (5m ago)"],
}

NOTE: dict[str, Any] = {
    "id": 12,
    "tier": "long",
    "namespace": "github.com/org/x",
    "kind": "decision",
    "title": "Chose SQLite",
    "content": "One writer\nis enough.",
    "tags": ["database"],
    "priority": 8,
    "confidence": 1.0,
    "source": "cli",
    "access_count": 0,
    "created_at": "2026-11-16T08:00:00+00:00",
    "updated_at": "2026-11-16T08:00:00+00:00",
}


class Endpoint:
    pid, port, socket, version, generation, state = 41, 8765, "/run/x.sock", "0.1.0", "g1", "ready"


class Server:
    """Stands where the client stands: what was asked of it, and what it answers."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.started: list[bool] = []
        self.context: Any = None  # of the last call's envelope
        self.made_with: dict[str, Any] = {}
        self.endpoints: list[Endpoint | None] = [Endpoint()]

    def client(
        self,
        *,
        env: Mapping[str, str] | None = None,
        port: int | None = None,
        autostart: bool = True,
        context: Mapping[str, Any] | None = None,
    ) -> Server:
        self.context = context
        self.made_with = {"env": env, "port": port, "autostart": autostart}
        return self

    def call(self, method: str, params: dict[str, Any], *, start: bool = True, context: Any = None, **_: Any) -> Any:
        self.calls.append((method, params))
        self.context = context
        self.started.append(start)
        answer = self.answers[method]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def status(self) -> Any:
        answer = self.answers.get("nudge.status")
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def endpoint(self) -> Endpoint | None:
        return self.endpoints.pop(0) if len(self.endpoints) > 1 else self.endpoints[0]

    @property
    def params(self) -> dict[str, Any]:
        """Of the last call."""
        return self.calls[-1][1]


class Terminal(io.TextIOWrapper):
    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding, newline="")

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)  # type: ignore[attr-defined,no-any-return]


class Typed:
    closed = False

    def __init__(self) -> None:
        self.lines: list[str] = []

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return f"{self.lines.pop(0)}\n" if self.lines else ""


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


class Nudge:
    """The program, run in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> Outcome:
        self._capsys.readouterr()
        code = main(words)
        captured = self._capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    def on(self, screen: Terminal, *words: str) -> Outcome:
        """The same with `screen` as stdout."""
        with redirect_stdout(screen):
            outcome = self(*words)
        return Outcome(outcome.code, screen.text(), outcome.err)


@pytest.fixture(autouse=True)
def somewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A directory outside any repository, and none of this machine's settings."""
    for name in ("NO_COLOR", "TERM", "COLUMNS", "NUDGE_AUTOSTART", "NUDGE_PORT", "_NUDGE_COMPLETE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NUDGE_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("NUDGE_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture
def repo(somewhere: Path) -> Path:
    """A repository named git:github.com/org/x, on branch dev."""
    git = somewhere / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/dev\n")
    (git / "config").write_text('[remote "origin"]\n\turl = git@github.com:org/x.git\n')
    return somewhere


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    fake = Server()
    monkeypatch.setattr("nudge.process.client.Client", fake.client)
    return fake


@pytest.fixture
def nudge(capsys: pytest.CaptureFixture[str]) -> Nudge:
    return Nudge(capsys)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Typed:
    """What somebody at a terminal will type."""
    keyboard = Typed()
    monkeypatch.setattr("sys.stdin", keyboard)
    return keyboard
