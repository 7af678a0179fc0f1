"""The client of the private wire, against a PRIMARY that answers as a test wants it to."""

from __future__ import annotations

import os
import select
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from nudge import __version__
from nudge.core import limits, locks, paths
from nudge.core.clock import boot_seconds
from nudge.core.errors import Invalid, RemoteError, Unavailable
from nudge.interfaces.operations import OPERATIONS
from nudge.process import endpoint, server_process, spawn
from nudge.process import wire as protocol
from nudge.process.client import CallQueue, Client, Request
from nudge.process.connection import Connection
from nudge.process.endpoint import Endpoint
from tests.unit.process.primaries import HANG_UP, FakePrimary, line

BAD = "a\udcff"  # as Python has a byte of the command line that is no UTF-8


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"component": "a", "key": BAD}, "key"),
        ({"value": {"type": "command", "cmd": BAD}}, "value.cmd"),
        ({"meta": {"tags": ["é", BAD]}}, "meta.tags[1]"),
        ({"value": {"type": "template", "defaults": {"x": "y", BAD: "z"}}}, "value.defaults"),
        ({"value": {"type": "json", "data": [1, None, {"x": [BAD]}]}}, "value.data[2].x[0]"),
    ],
)
def test_what_is_no_text_is_refused_by_its_field(params: dict[str, Any], field: str) -> None:
    """Before anything is started or sent: no server could take it, nor say which of the words it was."""
    with pytest.raises(Invalid, match="is not text in UTF-8") as refused:
        Client(environ={"NUDGE_RUNTIME_DIR": "/nowhere"}).call("nudge.set_hint", params)
    assert refused.value.field == field


# One call, through as many servers as it takes


@pytest.fixture
def directory() -> Iterator[str]:
    made = tempfile.mkdtemp(prefix="nt-", dir="/tmp")
    yield made
    shutil.rmtree(made)


def answering(*answers: bytes | None) -> Callable[[dict[str, Any]], bytes | None]:
    """Each in its turn."""
    coming = iter(answers)
    return lambda _call: next(coming)


def client(directory: str, **env: str) -> Client:
    return Client(environ={"NUDGE_RUNTIME_DIR": directory}, env=env, autostart=False)


def test_a_lost_answer_is_asked_for_again_under_the_same_key(directory: str) -> None:
    """Whether the first call was applied is unknown; the same `once` key makes it one call."""
    with FakePrimary(directory, answering(HANG_UP, line(result="done"))) as primary:
        assert client(directory).call("nudge.bump", {"component": "a"}) == "done"
    first, second = primary.calls
    assert first["once"] == second["once"] and len(first["once"]) == 24
    assert first["params"] == second["params"] == {"component": "a"}


def test_retry_means_that_nothing_was_applied(directory: str) -> None:
    """A server that is leaving sends the call away; it is sent again, on another connection."""
    with FakePrimary(directory, answering(line(retry="leaving"), line(result=1))) as primary:
        assert client(directory).call("nudge.status", {}) == 1
    assert len(primary.hellos) == 2 and len({call["once"] for call in primary.calls}) == 1


def test_only_the_variables_that_are_asked_for_leave_the_process(directory: str) -> None:
    """On the same connection and under the same key."""
    with FakePrimary(directory, answering(line(need_env=["A", "B"]), line(result={}))) as primary:
        client(directory, A="1", C="3").call("nudge.get_hint", {})
    first, second = primary.calls
    assert first["caller"]["env"] == {} and second["caller"]["env"] == {"A": "1", "B": None}
    assert first["once"] == second["once"] and len(primary.hellos) == 1


def test_an_error_is_raised_as_it_was_answered(directory: str) -> None:
    """Code, reason, sentence and what else helps."""
    refusal = {"code": 40401, "message": "none", "data": {"reason": "E_NOT_FOUND", "keys": ["x"]}}
    with FakePrimary(directory, answering(line(error=refusal))), pytest.raises(RemoteError) as raised:
        client(directory).call("nudge.get_hint", {})
    assert raised.value.to_json() == refusal


def test_an_answer_to_another_call_is_not_ours(directory: str) -> None:
    """Answers are matched by id."""
    with FakePrimary(directory, answering(b'{"id":0,"result":"another"}\n' + line(result="ours"))):
        assert client(directory).call("nudge.status", {}) == "ours"


def test_an_established_server_that_does_not_answer_in_time_is_named(directory: str) -> None:
    """By its pid: it can be looked at, or ended."""
    with FakePrimary(directory, answering(b"")) as primary:
        long_ago = time.time() - limits.START_TIMEOUT - 1
        os.utime(os.path.join(directory, paths.ENDPOINT), (long_ago, long_ago))
        with pytest.raises(Unavailable, match="does not answer") as raised:
            client(directory).call("nudge.status", {}, timeout=0.05)
    assert raised.value.data["pid"] == os.getpid() and len(primary.calls) == 1


def test_a_server_that_came_up_moments_ago_is_asked_again(directory: str) -> None:
    """On a busy machine its first answers take longer; the call is the same one, with more time."""
    with FakePrimary(directory, answering(None, line(result="late"))) as primary:
        assert client(directory).call("nudge.status", {}, timeout=0.05) == "late"
    first, second = primary.calls
    assert first["once"] == second["once"] and first["caller"]["deadline"] < second["caller"]["deadline"]


def test_a_call_that_every_server_loses_fails_at_last(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After START_TIMEOUT: a call that ends each server which reads it must not end all that come."""
    monkeypatch.setattr(limits, "START_TIMEOUT", 0.1)
    with FakePrimary(directory, lambda _call: HANG_UP) as primary, pytest.raises(Unavailable, match="keeps going away"):
        client(directory).call("nudge.bump", {})
    assert len(primary.calls) > 1 and len({call["once"] for call in primary.calls}) == 1


def test_one_loss_does_not_end_a_call_that_runs_for_long(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for losses begins with the first one, not with the call: its server was killed during a backup, or this
    process was suspended meanwhile."""
    later = 0.0
    monkeypatch.setattr("nudge.process.client.boot_seconds", lambda: boot_seconds() + later)

    def answer(_call: dict[str, Any]) -> bytes:
        nonlocal later
        if later:
            return line(result="done")
        later = limits.START_TIMEOUT + 1
        return HANG_UP

    with FakePrimary(directory, answer) as primary:
        assert client(directory).call("nudge.backup", {}) == "done"
    assert len(primary.calls) == 2


def test_a_suspended_server_is_reported_during_a_long_operation(
    directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its timeout is an hour away; the call may have been read before the process was suspended."""
    monkeypatch.setattr(limits, "CALL_TIMEOUT", 0.05)
    monkeypatch.setattr(server_process, "is_suspended", lambda _pid: True)
    with FakePrimary(directory, lambda _call: b""), pytest.raises(Unavailable, match="may still be done") as raised:
        client(directory).call("nudge.backup", {})
    assert raised.value.data["pid"] == os.getpid()


def test_an_answer_that_has_arrived_counts_after_the_deadline(directory: str) -> None:
    """The process may have been suspended between its call and the answer; the call was applied."""
    with FakePrimary(directory, lambda _call: line(result="there")) as primary:
        queue = call_queue(directory)
        queue.add(call := Request("nudge.bump", {}, {}))
        assert queue.advance() == []
        wait_for_input(queue)
        call.deadline = 0.0  # long ago on the boot clock
        queue.receive()
        assert queue.advance() == [call] and call.outcome() == "there"
        queue.close()
    assert len(primary.calls) == 1


# Waiting for a server


def test_a_server_that_has_just_taken_the_lock_is_waited_for(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its start took longer than a call may, and the endpoint still names the server that was killed."""
    waited = 0.0
    monkeypatch.setattr(spawn, "boot_seconds", lambda: boot_seconds() + waited)

    def start_slowly(starter: spawn.Starter, _published: Endpoint | None) -> None:
        nonlocal waited
        starter._waiting_since = boot_seconds()
        waited = limits.CALL_TIMEOUT + 0.5

    looks = 0
    with ExitStack() as opened:

        def is_free(_path: str) -> bool:
            nonlocal looks
            looks += 1
            if looks == 3:
                opened.enter_context(FakePrimary(directory, answering(line(result="new"))))
            return looks == 1

        monkeypatch.setattr(spawn.Starter, "poll", start_slowly)
        monkeypatch.setattr(locks, "is_free", is_free)
        killed = Endpoint(os.getpid(), None, os.path.join(directory, "gone"), "", "old", __version__, endpoint.READY)
        endpoint.publish(directory, killed)
        spawn.ensure_primary(directory).close()
    assert looks == 3


def test_a_removed_runtime_directory_is_made_again(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whoever starts the next server: an agent's PROXY outlives the directory."""
    shutil.rmtree(directory)

    def look(*_: object) -> None:
        raise Unavailable(oct(os.stat(directory).st_mode))

    monkeypatch.setattr(spawn.Starter, "poll", look)
    with pytest.raises(Unavailable, match="0o40700"):
        spawn.ensure_primary(directory)


def test_a_start_that_the_system_refuses_is_an_error_of_the_call(
    directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PROXY answers with it and lives on: there is no process or descriptor to be had for now."""

    def refuse(*_: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(spawn.Starter, "poll", refuse)
    with pytest.raises(Unavailable, match="could be started: Resource temporarily unavailable; see: nudge doctor"):
        spawn.ensure_primary(directory)


def test_a_successor_that_the_system_refuses_is_done_without(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The older server still answers, and the start lock is free for the next attempt."""

    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")  # the installation is being replaced

    monkeypatch.setattr(spawn, "spawn_detached", refuse)
    with FakePrimary(directory, answering(line(result="old")), version="0.0.1"):
        spawn.ensure_primary(directory, wait_for_upgrade=True).close()
        start_lock = locks.Flock(os.path.join(directory, paths.START_LOCK))
        assert start_lock.acquire()
        start_lock.release()


# Where there is no Unix socket, another program may have the port of a server that was killed


class Stranger:
    """A program on a loopback port that sends `greeting` to everybody, `times` times."""

    def __init__(self, directory: str, greeting: bytes, times: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._greeting, self._times = greeting, times
        self._thread = threading.Thread(target=self._serve, daemon=True)
        paths.ensure_private_dir(directory)
        endpoint.ensure_token(directory)
        port = self._listener.getsockname()[1]
        published = Endpoint(os.getpid(), None, None, "", "g", __version__, endpoint.READY, wire_port=port)
        endpoint.publish(directory, published)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                link, _ = self._listener.accept()
                with link, suppress(OSError):
                    for _ in range(self._times):
                        link.sendall(self._greeting)
                    link.recv(100)
                    link.recv(100)


STRANGERS = [
    pytest.param(b"", 0, id="silent"),
    pytest.param(bytes(65_536), 10**9, id="endless"),
    pytest.param(rb'{"nonce": "\ud800", "proof": "\ud800"}' + b"\n", 1, id="no-unicode"),
]


@pytest.mark.parametrize(("greeting", "times"), STRANGERS)
def test_a_stranger_on_the_port_of_a_server_that_lives(
    directory: str, monkeypatch: pytest.MonkeyPatch, greeting: bytes, times: int
) -> None:
    """It is not talked to; what it sends is not collected."""
    monkeypatch.setattr(limits, "CALL_TIMEOUT", 0.2)
    lock = locks.Flock(os.path.join(directory, paths.LOCK))
    with Stranger(directory, greeting, times):
        assert lock.acquire()
        with pytest.raises(Unavailable, match="is not this Nudge" if times else "does not answer"):
            spawn.ensure_primary(directory)
    lock.release()


@pytest.mark.parametrize(("greeting", "times"), STRANGERS)
def test_a_stranger_on_the_port_of_a_server_that_was_killed(
    directory: str, monkeypatch: pytest.MonkeyPatch, greeting: bytes, times: int
) -> None:
    """It keeps nobody from starting the next server."""

    def start(*_: object) -> None:
        raise Unavailable("a server is started")

    monkeypatch.setattr(limits, "CALL_TIMEOUT", 0.2)
    monkeypatch.setattr(spawn.Starter, "poll", start)
    with Stranger(directory, greeting, times), pytest.raises(Unavailable, match="a server is started"):
        spawn.ensure_primary(directory)


# Many calls on one connection


def call_queue(directory: str) -> CallQueue:
    def connect() -> Connection:
        published = endpoint.read(directory)
        assert published is not None
        link = Connection(published, None)
        link.queue_hello("test")
        return link

    return CallQueue(directory, {"A": "1"}, connect)


def wait_for_input(queue: CallQueue) -> None:
    assert queue.connection is not None and select.select([queue.connection], [], [], 10.0)[0]


def finish(queue: CallQueue) -> list[Request]:
    """In the order in which they finish."""
    finished = queue.advance()
    while queue:
        queue.receive()
        finished += queue.advance()
    queue.close()
    return finished


def test_unanswered_calls_are_sent_again_in_their_order(directory: str) -> None:
    """Under their own keys, and without those that were answered."""
    lost = iter((line(result=0), line(result=1), HANG_UP))
    with FakePrimary(directory, lambda call: next(lost, None) or line(result=call["params"]["n"])) as primary:
        queue = call_queue(directory)
        calls = [Request("nudge.bump", {"n": number}, {}) for number in range(5)]
        for call in calls:
            queue.add(call)
        assert finish(queue) == calls
    assert [call.result for call in calls] == [0, 1, 2, 3, 4]
    sent_again = [call for call in primary.calls[3:] if call["params"]["n"] >= 2]
    assert [call["once"] for call in sent_again] == [call.request_id for call in calls[2:]]


def test_no_more_calls_are_in_flight_than_a_server_reads(directory: str) -> None:
    """The timeout of the others has not begun."""
    silent = threading.Event()
    with FakePrimary(directory, lambda _call: line(result=1) if silent.wait(10.0) else None):
        queue = call_queue(directory)
        calls = [Request("nudge.status", {}, {}) for _ in range(limits.MAX_CALLS_IN_FLIGHT + 1)]
        for call in calls:
            queue.add(call)
        queue.advance()
        assert [call.is_sent for call in calls] == [True] * limits.MAX_CALLS_IN_FLIGHT + [False]
        silent.set()
        assert finish(queue) == calls


def test_a_connection_that_is_refused_as_a_whole_fails_every_call(directory: str) -> None:
    """PRIMARY answers no call, and says why."""
    refusal = b'{"id": null, "error": {"code": 40101, "message": "not you", "data": {"reason": "E_UNAUTHORIZED"}}}\n'
    with FakePrimary(directory, lambda _call: refusal):
        queue = call_queue(directory)
        calls = [Request("nudge.status", {}, {}) for _ in range(2)]
        for call in calls:
            queue.add(call)
        assert finish(queue) == calls
    assert [call.error and call.error.reason for call in calls] == ["E_UNAUTHORIZED"] * 2


def test_variables_that_were_asked_for_are_remembered_and_cost_no_time(directory: str) -> None:
    """A later call sends them unasked; the repeated one has the deadline of the first."""
    with FakePrimary(directory, answering(line(need_env=["A"]), line(result={}))) as primary:
        queue = call_queue(directory)
        assert queue.call(Request("nudge.get_hint", {}, {})) == {}
        queue.close()
    first, second = (call["caller"] for call in primary.calls)
    assert queue.env_names == {"A"} and second["env"] == {"A": "1"} and first["deadline"] == second["deadline"]


def test_a_long_operation_does_not_keep_others_from_failing(directory: str) -> None:
    """PRIMARY is at work: the call that is late fails alone, and the long one still gets its answer."""
    done = threading.Event()

    def answer(call: dict[str, Any]) -> bytes | None:
        if call["op"] == "nudge.purge":
            return b""
        done.wait(10.0)
        return b'{"id":%d,"result":"purged"}\n' % (call["id"] - 1)

    with FakePrimary(directory, answer):
        long_ago = time.time() - limits.START_TIMEOUT - 1
        os.utime(os.path.join(directory, paths.ENDPOINT), (long_ago, long_ago))
        queue = call_queue(directory)
        purge, late = Request("nudge.purge", {}, {}), Request("nudge.status", {}, {}, timeout=0.05)
        queue.add(purge)
        queue.add(late)
        assert queue.advance() == []
        queue.receive()
        assert queue.advance() == [late] and isinstance(late.error, Unavailable) and list(queue) == [purge]
        done.set()
        assert finish(queue) == [purge] and purge.result == "purged"


def test_long_operations_exist() -> None:
    """Each is in the table of operations, and has more time than the others."""
    assert OPERATIONS.keys() >= protocol.LONG_OPERATIONS
    assert Request("nudge.purge", {}, {}).timeout > Request("nudge.get_hint", {}, {}).timeout
