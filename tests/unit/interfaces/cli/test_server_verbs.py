from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

from nudge import limits
from nudge.errors import RemoteError, Unavailable

from .conftest import Nudge, Server

STATUS = {
    "role": "primary", "pid": 41, "port": 8765, "session": {"id": "s1", "hints": 3}, "members": [], "owner": "client",
    "new": True, "calls": 0,
}  # fmt: skip


def test_status(nudge: Nudge, server: Server) -> None:
    """A small aligned list; a field that this client does not know is shown too."""
    server.answers["nudge.status"] = STATUS
    outcome = nudge("status")
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "role     primary", "pid      41", "port     8765", "session  id s1, hints 3", "members  -", "owner    client",
        "new      yes", "calls    0",
    ]  # fmt: skip
    assert json.loads(nudge("status", "--json").out) == STATUS


def test_status_without_a_server(nudge: Nudge, server: Server) -> None:
    """Exit 4, a remark for people, an object with a null role for programs."""
    server.answers["nudge.status"] = None
    outcome = nudge("status")
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err == "no server runs; one starts with the next command that needs it\n"
    as_json = nudge("status", "--json")
    assert as_json.code == 4 and json.loads(as_json.out)["role"] is None


def test_status_of_a_server_that_hangs(nudge: Nudge, server: Server) -> None:
    """One that is there and does not answer is told from none."""
    server.answers["nudge.status"] = Unavailable("the Nudge server (pid 41) does not answer", pid=41)
    outcome = nudge("status")
    assert outcome.code == 4 and "pid 41" in outcome.err


@pytest.mark.parametrize(
    ("words", "params", "line"),
    [
        ([], {"force": False, "forget": False}, "✔ stopped the server (pid 41); hints stay for the session\n"),
        (["--force"], {"force": True, "forget": False}, "✔ stopped the server (pid 41); hints stay for the session\n"),
        (["--forget"], {"force": False, "forget": True}, "✔ stopped the server (pid 41); the session's hints are forgotten\n"),
    ],
)
def test_stop(
    nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch, words: list[str], params: dict[str, bool], line: str
) -> None:
    """It never starts a server, waits until this one has let go of the lock, and says what becomes of the hints."""
    looks = iter([False, False, True])
    monkeypatch.setattr("nudge.runtime.lock.is_free", lambda _: next(looks))
    server.answers["nudge.stop"] = {"stopping": True, "pid": 41}
    assert nudge("stop", *words).out == line
    assert (server.params, server.started) == (params, [False])


def test_stop_that_takes_long(nudge: Nudge, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that still finishes its calls is not said to be gone."""
    monkeypatch.setattr(limits, "CALL_TIMEOUT", 0.0)
    monkeypatch.setattr("nudge.runtime.lock.is_free", lambda _: False)
    server.answers["nudge.stop"] = {"stopping": True, "pid": 41}
    assert nudge("stop").out.startswith("✔ stopping the server (pid 41)")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RemoteError({"code": 40901, "message": "it lives inside a client", "data": {"reason": "E_CONFLICT"}}), 3),
        (Unavailable("no Nudge server is running"), 4),
    ],
)
def test_stop_refused(nudge: Nudge, server: Server, error: Exception, code: int) -> None:
    """A server inside a client is left alone; without one there is nothing to stop."""
    server.answers["nudge.stop"] = error
    assert nudge("stop").code == code


def test_token(nudge: Nudge, server: Server, somewhere: Path) -> None:
    """The bare token, fit for `$(nudge token)`."""
    runtime = somewhere.parent / "runtime"
    runtime.mkdir()
    (runtime / "token").write_text("t0k3n\n")
    server.answers["nudge.status"] = STATUS
    assert nudge("token").out == "t0k3n\n"
    assert json.loads(nudge("token", "--json").out) == {"token": "t0k3n"}


def test_token_without_a_server(nudge: Nudge, server: Server) -> None:
    """A token that nobody would accept is not printed."""
    server.answers["nudge.status"] = None
    outcome = nudge("token")
    assert (outcome.code, outcome.out) == (4, "")


def served(monkeypatch: pytest.MonkeyPatch) -> list[Namespace]:
    seen: list[Namespace] = []

    def serve(options: Namespace) -> int:
        seen.append(options)
        return 7

    role = SimpleNamespace(serve=serve)
    monkeypatch.setitem(sys.modules, "nudge.runtime.role", role)
    monkeypatch.setattr("nudge.runtime.role", role, raising=False)
    return seen


def test_serve_passes_its_flags(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every flag reaches the role, whose exit code is ours."""
    seen = served(monkeypatch)
    flags = "--http-only --detach --no-auth --tools all --no-secret-guard --successor g1"
    assert nudge("-p", "9000", "serve", *flags.split()).code == 7
    assert vars(seen[0]) == {
        "port": 9000, "json": False, "http_only": True, "detach": True, "no_auth": True, "tools": "all",
        "no_secret_guard": True, "successor": "g1",
    }  # fmt: skip


def test_serve_defaults(nudge: Nudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bare `nudge serve` decides nothing by itself; --port works after the verb as well."""
    seen = served(monkeypatch)
    nudge("serve", "--port", "9001")
    assert seen[0].port == 9001
    assert not any([seen[0].http_only, seen[0].detach, seen[0].no_auth, seen[0].tools, seen[0].no_secret_guard, seen[0].successor])


def test_the_successor_flag_is_hidden(nudge: Nudge) -> None:
    """It is for our own processes; help does not offer it."""
    assert "--successor" not in nudge("serve", "--help").out
