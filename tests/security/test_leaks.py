"""A secret that somebody stored on purpose, and text that was made to be dangerous, turn up nowhere that they should
not."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nudge.process import endpoint
from tests.harness import Machine
from tests.security.served import Closed, Raw, post, rpc

SECRET = "-".join(("xoxb", "1234567890", "abcdefghijklmnop", "Q" * 12))
ESCAPE = "\x1b]0;owned\x07\x1b[31m"
# turns text round, hides in it, ends its line, tags it: no control characters, all allowed
HIDDEN = "\u202e\u2066\u200b\u2028\U000e0041"


@pytest.fixture(scope="module")
def told() -> Iterator[Machine]:
    """A server that logs everything and holds a secret that was allowed."""
    machine = Machine(NUDGE_LOG_LEVEL="debug")
    try:
        machine.prepared_server()
        assert machine.cli("set", "api", "token", "-", "--allow-secret", "--global", stdin=SECRET).returncode == 0
        yield machine
    finally:
        machine.close()


def files_with(text: str, folder: str) -> list[str]:
    return [str(path) for path in Path(folder).rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_rejected_secret_is_not_repeated(told: Machine) -> None:
    """The refusal names the kind and the field, never the value; on a terminal and as JSON."""
    for flags in ([], ["--json"]):
        refused = told.cli("set", "api", "other", "-", "--global", *flags, stdin=SECRET)
        assert refused.returncode == 3 and "E_SECRET_REJECTED" in refused.stdout + refused.stderr
        assert SECRET not in refused.stdout + refused.stderr
    assert SECRET not in told.cli("set", "api", "other", "x", "--reason", SECRET, "--allow-secret").stderr


def test_pretty_output_hides_it(told: Machine) -> None:
    """Nobody who looks over a shoulder sees it; a script that asks for the value gets it."""
    words = (
        ["get", "api", "token"],
        ["get", "api", "token", "--explain"],
        ["ls", "api"],
        ["ls"],
        ["query", "--component", "api"],
        ["query", "--regex", "xox"],
        ["status"],
        ["doctor"],
        ["export"],
        ["bump", "api", "token"],
        ["status", "--json"],
        ["doctor", "--json"],
        ["export", "--json"],
    )
    shown = {" ".join(verb): told.cli(*verb) for verb in words}
    assert [verb for verb, done in shown.items() if SECRET in done.stdout + done.stderr] == []
    assert "[secret]" in shown["get api token"].stdout
    assert told.cli("get", "api", "token", "--value-only").stdout.strip() == SECRET
    assert SECRET in told.cli("export", "--reveal").stdout


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_titles_environments_and_the_last_session_hide_it(make_machine: Callable[..., Machine]) -> None:
    """A server that a command starts has neither the value in its command line nor the caller's variables in its
    environment; when
    the session ends, the value is gone from the disk; that there was one is not."""
    machine = make_machine(NUDGE_LOG_LEVEL="debug", MY_API_TOKEN=SECRET)
    assert machine.cli("set", "api", "token", "-", "--allow-secret", "--global", stdin=SECRET).returncode == 0
    pid = machine.ready().pid
    assert machine.pids() == [pid]
    for name in ("cmdline", "environ", "comm", "status"):
        assert SECRET.encode() not in Path(f"/proc/{pid}/{name}").read_bytes(), name
    assert machine.cli("stop", "--forget").returncode == 0
    assert files_with(SECRET, str(machine.base)) == []
    hint = json.loads((Path(machine.runtime) / "previous.json").read_text())["components"]["api"]["hints"]["token"]
    assert hint["redacted"] is True and "value" not in hint


def hostile_bytes(token: str) -> Iterator[bytes]:
    """Requests that fail in every way while they carry the secret."""
    params: dict[str, Any] = {"component": "c", "key": "k", "value": SECRET}
    yield post("/", rpc("nudge.set_hint", params), token=token)
    yield post("/", rpc("nudge.set_hint", params), token=token, Content_Length="30")
    yield post("/", rpc("nudge.set_hint", params)[:-1], token=token)
    yield post(
        "/", rpc("nudge.import", {"payload": {"schema_version": "1.0", "components": {"c": SECRET}}}), token=token
    )
    yield post("/", rpc("nudge.query", {"regex": SECRET + "("}), token=token)
    yield post("/mcp", rpc("tools/call", {"name": "nudge_set_hint", "arguments": [SECRET]}), token=token)
    yield post("/mcp", rpc("tools/call", {"name": "nudge_set_hint", "arguments": params}), token=token)
    yield post("/mcp", rpc("initialize", {"protocolVersion": SECRET, "clientInfo": SECRET}), token=token)
    yield post("/", b"{}", token=token, Nudge_Context=SECRET)
    yield post("/", b"{}", token=token, Nudge_Env=json.dumps({"A": [SECRET]}))
    yield post("/", rpc("nudge.status", {}), token=SECRET)
    yield f"{SECRET} / HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    yield f"POST / HTTP/1.1\r\nHost: {SECRET} \x01\r\n\r\n".encode()
    yield f"POST / HTTP/1.1\r\nHost: localhost\r\n{SECRET}\r\n\r\n".encode()
    yield f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {SECRET}\r\n\r\n".encode()
    yield f"POST / HTTP/1.1\r\nHost: localhost\r\nX: {SECRET * 2_000}\r\n\r\n".encode()


def test_no_failure_writes_it_down(told: Machine) -> None:
    """Refused, broken off or not even HTTP: what was sent is in no answer, and in no file but the change log, which is
    the store."""
    token = endpoint.read_token(told.runtime)
    assert token is not None
    answers = []
    for request in hostile_bytes(token):
        with Raw(socket.create_connection(("127.0.0.1", told.ready().port or 0), 20)) as link:
            link.send(request)
            with suppress(OSError):  # the server may have refused and closed already
                link.link.shutdown(socket.SHUT_WR)
            try:
                answers.append(link.reply().body)
            except Closed:
                answers.append(b"")
    assert [number for number, body in enumerate(answers) if SECRET.encode() in body] == []
    assert [path for path in files_with(SECRET, told.runtime) if not path.endswith("changes.log")] == []
    assert (Path(told.runtime) / "log/nudge.log").exists()


def event(**fields: Any) -> str:
    return json.dumps({"session_id": "s9", "cwd": "/", "hook_event_name": "PostToolUse", "tool_name": "Bash", **fields})


def test_recorded_secrets_never_touch_the_disk(make_machine: Callable[..., Machine]) -> None:
    """Redacted in the hook: neither the database nor the spool ever has it."""
    machine = make_machine(NUDGE_LOG_LEVEL="debug")
    command = {"command": f"curl -H 'Authorization: Bearer {SECRET}' x"}
    first = event(tool_use_id="t", tool_input=command, tool_response={"stdout": SECRET})
    machine.prepared_server()
    assert machine.cli("record", stdin=first).returncode == 0
    machine.cli("stop", "--force", "--forget")
    assert machine.cli("record", stdin=first.replace('"t"', '"u"')).returncode == 0
    assert any("spool" in path.parts for path in Path(machine.runtime).rglob("*") if path.is_file())
    assert files_with(SECRET, str(machine.base)) == []


def test_stored_text_cannot_steer_a_terminal(told: Machine) -> None:
    """Escapes are refused in hints, and spelled out where they may be: in recorded text, in what a client calls
    itself."""
    assert told.cli("set", "api", "evil", "-", "--global", stdin=ESCAPE).returncode == 3
    assert told.cli("record", stdin=event(tool_use_id="t9", tool_input={"command": f"echo {ESCAPE}"})).returncode == 0
    proxy = told.serve()
    info = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": f"x{ESCAPE}{HIDDEN}", "version": "1"},
    }
    proxy.request("initialize", info)
    proxy.call("nudge_set_hint", component="api", key="named", value="v", meta={"scope": {}})
    verbs = (
        ["recent"],
        ["trace", "s9"],
        ["inject"],
        ["search", "echo"],
        ["status"],
        ["get", "api", "named", "--explain"],
    )
    shown = {" ".join(verb): told.cli(*verb, cwd="/").stdout for verb in verbs}
    assert [verb for verb, text in shown.items() if "\x1b" in text or "\x07" in text or set(HIDDEN) & set(text)] == []
    proxy.quit()


def test_text_that_hides_is_spelt_out(told: Machine) -> None:
    """Characters that turn a line round or hide in it are shown by their numbers, in every place of a hint; --json is
    plain ASCII then."""
    meta = ["--reason", f"r{HIDDEN}", "--tags", f"t{HIDDEN}", "--added-by", HIDDEN]
    assert told.cli("set", f"c{HIDDEN}", f"k{HIDDEN}", f"v{HIDDEN}", "--global", *meta).returncode == 0
    for verb in (
        ["get", f"c{HIDDEN}", f"k{HIDDEN}", "--explain"],
        ["ls"],
        ["ls", f"c{HIDDEN}"],
        ["query", "--component", f"c{HIDDEN}"],
        ["get", f"c{HIDDEN}", "nowhere"],
        ["delete", f"c{HIDDEN}", "nowhere"],
        ["ls", f"c{HIDDEN}", "--json"],
    ):
        done = told.cli(*verb)
        assert not set(HIDDEN) & set(done.stdout + done.stderr), (verb, done)
        assert "202e" in done.stdout + done.stderr, (verb, done)
