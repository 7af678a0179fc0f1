"""The client of the private wire, against a PRIMARY that answers as a test wants it to."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nudge import limits, paths
from nudge.errors import Invalid, RemoteError, Unavailable
from nudge.ipc.client import Client
from tests.unit.hook.primaries import HANG_UP, FakePrimary, line

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
    assert raised.value.to_wire() == refusal


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
