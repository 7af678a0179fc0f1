"""The private wire of a real server: the golden transcript of version 1, and what a person can do by hand."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nudge.core.limits import MAX_LINE_BYTES
from nudge.process import endpoint
from tests.harness import TIMEOUT, Machine, eventually

GOLDEN = Path(__file__).with_name("wire_v1.txt").read_text(encoding="utf-8").splitlines()


class Wire:
    """A connection, and lines on it."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb")

    def send(self, *messages: Any) -> None:
        self.socket.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def receive(self) -> Any:
        return json.loads(self.lines.readline())

    def is_closed(self) -> bool:
        """Whether the next thing that comes is the end; the kernel calls it a reset when lines were left unread."""
        try:
            return self.lines.readline() == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.lines.close()
        self.socket.close()


@pytest.fixture(scope="module")
def served() -> Iterator[Machine]:
    machine = Machine()
    machine.http_only()
    yield machine
    machine.close()


@pytest.fixture
def wire(served: Machine) -> Iterator[Wire]:
    opened = Wire(str(served.ready().socket))
    yield opened
    opened.close()


def holds(expected: Any, actual: Any) -> bool:
    """Whether what the transcript says is there; more may be."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            name in actual and holds(part, actual[name]) for name, part in expected.items()
        )
    if isinstance(expected, str) and expected.startswith("<"):
        kinds = {"<pid>": int, "<number>": int, "<list>": list}
        return isinstance(actual, kinds.get(expected, str))
    return bool(expected == actual and type(expected) is type(actual))


def test_the_golden_transcript(wire: Wire) -> None:
    """Version 1 is frozen: a client of any release can talk to a server of any other."""
    sent = b""
    for line in GOLDEN:
        if line.startswith("> "):
            sent = line[2:].encode() + b"\n"
            wire.socket.sendall(sent)
        elif line.startswith("< "):
            while "retry" in (answer := wire.receive()):
                wire.socket.sendall(sent)
            assert holds(json.loads(line[2:]), answer), (sent, answer)


HELLO_AND_CALL = b'{"hello":1}\n{"id":1,"op":"nudge.list_components","params":{}}\n'


@pytest.mark.skipif(shutil.which("nc") is None, reason="no nc on this machine")
def test_it_can_be_written_with_nc(served: Machine) -> None:
    """`printf '...' | nc -NU socket` gets its answer and an end."""
    done = subprocess.run(
        ["nc", "-NU", str(served.ready().socket)], input=HELLO_AND_CALL, capture_output=True, timeout=20, check=True
    )
    hello, answer = (json.loads(line) for line in done.stdout.splitlines())
    assert hello["hello"] == 1 and answer["result"]["components"] is not None


def test_a_client_that_only_stops_sending_gets_its_answers(wire: Wire) -> None:
    """What `nc` does at the end of its input: all answers come, then the server closes."""
    wire.socket.sendall(HELLO_AND_CALL + b'{"id":2,"op":"nudge.search","params":{"query":"x"}}\n{"id":3')
    wire.socket.shutdown(socket.SHUT_WR)
    hello, *answers = (json.loads(line) for line in wire.lines)
    assert hello["hello"] == 1 and sorted(answer["id"] for answer in answers) == [1, 2]  # in any order


def test_a_call_before_the_hello_ends_the_connection(wire: Wire) -> None:
    """The first line says which protocol is spoken."""
    wire.send({"id": 1, "op": "nudge.status", "params": {}})
    assert "hello" in wire.receive()["error"]["message"]
    assert wire.is_closed()


def test_an_overlong_line_is_answered_and_ends_the_connection(wire: Wire) -> None:
    """Larger imports go through a file; nothing behind the line is read."""
    wire.send({"hello": 1})
    wire.receive()
    try:
        wire.socket.sendall(b'{"id":1,"op":"nudge.status","x":"' + b"y" * MAX_LINE_BYTES + b'"}\n')
    except OSError:
        pass  # it may close while we still write
    answer = wire.receive()
    assert answer["id"] is None and answer["error"]["code"] == -32600
    assert wire.is_closed()


def test_a_call_that_cannot_be_decoded_fails_alone(wire: Wire) -> None:
    """It is answered by its id: an error without one would fail all calls of a client."""
    too_deep = b'{"id":7,"op":"nudge.status","params":' + b"[" * 70 + b"]" * 70 + b"}\n"
    wire.socket.sendall(b'{"hello":1}\n' + too_deep + b'{"id":8,"op":"nudge.list_components","params":{}}\n')
    hello, *answers = (wire.receive() for _ in range(3))
    by_id = {answer["id"]: answer for answer in answers}
    assert hello["hello"] == 1 and by_id[7]["error"]["code"] == -32600 and "result" in by_id[8]


def test_answers_are_matched_by_id(wire: Wire) -> None:
    """Calls sent ahead of their answers, with ids in any order, get each its own."""
    ids = [5, 3, "x", 4, 1]
    wire.send({"hello": 1}, *({"id": n, "op": "nudge.list_components", "params": {"component": str(n)}} for n in ids))
    wire.receive()
    assert sorted(map(str, (wire.receive()["id"] for _ in ids))) == sorted(map(str, ids))


def test_a_hundred_calls_in_one_write(wire: Wire) -> None:
    """More than may be unanswered at once: the rest waits, and none is lost."""
    calls = ({"id": number, "op": "nudge.search", "params": {"query": "x"}} for number in range(100))
    wire.send({"hello": 1}, *calls)
    wire.receive()
    assert sorted(wire.receive()["id"] for _ in range(100)) == list(range(100))


def test_a_member_is_listed_until_its_connection_ends(served: Machine, wire: Wire) -> None:
    """Whatever ended it; by the name of the last hello, and with where its last call came from."""
    wire.send({"hello": 1, "pid": 4242, "client": "first", "version": "9.9", "member": True})
    wire.receive()
    (first,) = served.json("status")["members"]
    assert first == {"client": "first", "pid": 4242, "version": "9.9", "since": first["since"]}
    wire.send({"hello": 1, "pid": 4242, "client": "se\ncond", "version": "9.9", "member": True})
    wire.receive()
    assert served.json("status")["members"] == [{**first, "client": "se?cond"}]
    caller = {"context": {"repo": "git:github.com/acme/shop", "branch": "fix\x1b"}}
    wire.send({"id": 1, "op": "nudge.list_components", "params": {}, "caller": caller})
    wire.receive()
    (placed,) = served.json("status")["members"]
    assert (placed["repo"], placed["branch"], placed["since"]) == ("git:github.com/acme/shop", "fix?", first["since"])
    wire.close()
    eventually(lambda: served.json("status")["members"] == [], "the member is gone")


def test_an_id_is_asked_for_its_environment_once(wire: Wire) -> None:
    """A caller that does not tell what it was asked for gets an answer as if the variable were not set."""
    scope = {"meta": {"scope": {"env_match": {"WIRE_ONCE": "yes"}}}}
    call = {"id": 2, "op": "nudge.get_hint", "params": {"component": "once", "key": "k"}, "caller": {"env": {}}}
    setting = {"component": "once", "key": "k", "value": "v", **scope}
    wire.send({"hello": 1}, {"id": 1, "op": "nudge.set_hint", "params": setting}, call)
    wire.receive(), wire.receive()
    assert wire.receive() == {"id": 2, "need_env": ["WIRE_ONCE"]}
    wire.send(call)
    assert wire.receive()["error"]["data"]["reason"] == "E_NOT_FOUND"
    wire.send({**call, "id": 3})
    assert "need_env" in wire.receive()


def test_a_socket_that_is_removed_is_made_again(served: Machine) -> None:
    """A command that finds the name gone waits for it."""
    path = Path(str(served.ready().socket))
    path.unlink()
    assert served.json("status")["pid"] == served.ready().pid
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_long_path_is_served_over_loopback(tmp_path: Path) -> None:
    """Where a socket's path would be too long for the kernel: the same lines on a port, for CLI, PROXY and members."""
    machine = Machine(NUDGE_RUNTIME_DIR=str(tmp_path / ("long" * 30)))
    machine.runtime = machine.environ["NUDGE_RUNTIME_DIR"]
    try:
        published = machine.http_only()
        assert published.socket is None and published.wire_port is not None
        assert machine.json("set", "a", "b", "over tcp", "--global")["hint"]["version"] == 1
        proxy = machine.serve()
        proxy.initialize()
        assert proxy.call("nudge_get_hint", component="a", key="b")["hint"]["value"] == "over tcp"
        assert [member["client"] for member in machine.json("status")["members"]] == ["test"]
        _refuses_whoever_knows_no_token(published.wire_port, machine)
    finally:
        machine.close()


def _refuses_whoever_knows_no_token(port: int, machine: Machine) -> None:
    token = str(endpoint.read_token(machine.runtime))
    with socket.create_connection(("127.0.0.1", port), TIMEOUT) as link, link.makefile("rb") as lines:
        link.sendall(b'{"nonce":"' + b"0" * 32 + b'"}\n')
        challenge = json.loads(lines.readline())
        assert token not in json.dumps(challenge)
        link.sendall(json.dumps({"proof": challenge["proof"]}).encode() + b"\n" + HELLO_AND_CALL)
        answer = json.loads(lines.readline())
        assert answer["error"]["message"] == "Invalid request: the proof is wrong"
