from __future__ import annotations

import os
from pathlib import Path

import pytest

from nudge.core import paths
from nudge.core.errors import StorageFailed
from nudge.core.locks import Flock
from nudge.process import endpoint
from nudge.process.endpoint import Endpoint

LEFT = ("changes.log.0123456789abcdef.tmp", "s-0a1b2c.sock", "server.pid.4242.0a1b2c3d", "token.7.0a1b2c3d")
KEPT = ("changes.log", "previous.json", "s-mine.sock", "server.pid.bak", "token", "token.old", "notes.tmp")


def publish(directory: Path, state: str) -> None:
    endpoint.publish(
        str(directory), Endpoint(4242, 8765, "/x.sock", "2026-11-16T08:30:00.000000Z", "g1", "0.1.0", state)
    )


def test_what_is_a_leftover(tmp_path: Path) -> None:
    """Only sockets and unfinished files with Nudge's exact names are removed, never a user's file."""
    for name in (*LEFT, *KEPT):
        (tmp_path / name).touch()
    assert endpoint.leftovers(str(tmp_path)) == sorted(LEFT)
    assert endpoint.clear_leftovers(str(tmp_path)) == sorted(LEFT)
    locks = {name for name in os.listdir(tmp_path) if name.startswith(paths.LOCK)}
    assert sorted(set(os.listdir(tmp_path)) - locks) == sorted(KEPT)


@pytest.mark.parametrize(("state", "stale"), [("starting", True), ("ready", True), ("stopped", False)])
def test_a_stale_endpoint_is_withdrawn(tmp_path: Path, state: str, stale: bool) -> None:
    """An endpoint that names a dead server is marked as stopped; its port stays for the next server."""
    publish(tmp_path, state)
    assert endpoint.clear_leftovers(str(tmp_path)) == ([paths.ENDPOINT] if stale else [])
    current = endpoint.read(str(tmp_path))
    assert current is not None and (current.state, current.port) == ("stopped", 8765)


def test_a_servers_files_are_not_touched(tmp_path: Path) -> None:
    """While a server holds the lock, its files are not touched."""
    (tmp_path / "s-0a1b2c.sock").touch()
    publish(tmp_path, "ready")
    held = Flock(str(tmp_path / paths.LOCK))
    assert held.acquire()
    with pytest.raises(StorageFailed):
        endpoint.clear_leftovers(str(tmp_path))
    current = endpoint.read(str(tmp_path))
    assert current is not None and current.state == "ready" and (tmp_path / "s-0a1b2c.sock").exists()
    held.release()


def test_no_directory_has_no_leftovers(tmp_path: Path) -> None:
    """Before the first server there is nothing."""
    assert endpoint.leftovers(str(tmp_path / "none")) == []


# A full disk


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, _content: bytes) -> None:
        raise StorageFailed(f"cannot write {path}: No space left on device")

    monkeypatch.setattr("nudge.core.files.replace", refuse)


@pytest.mark.usefixtures("full")
def test_an_endpoint_for_which_there_is_no_room(tmp_path: Path) -> None:
    """What a client needs is in the target of a link, which file systems keep without a block; it is withdrawn like a
    file, and replaced by one later."""
    directory = str(tmp_path)
    generation = os.urandom(6).hex()
    announced = Endpoint(2**22, 65_535, "/x.sock", "2026-11-16T08:30:00Z", generation, "10.20.30", "starting")
    endpoint.publish(directory, announced)
    announced.state = endpoint.READY
    endpoint.publish(directory, announced)
    assert len(os.readlink(tmp_path / paths.ENDPOINT)) < 60 and os.listdir(tmp_path) == [paths.ENDPOINT]
    result = endpoint.read(directory)
    assert result is not None and not endpoint.is_complete(directory)
    assert (result.pid, result.port, result.generation, result.version) == (2**22, 65_535, generation, "10.20.30")
    assert result.socket == endpoint.socket_path(directory, generation)
    endpoint.withdraw(directory, announced)
    result = endpoint.read(directory)
    assert result is not None and (result.state, result.port, result.socket) == (endpoint.STOPPED, 65_535, None)


def test_a_file_takes_the_place_of_the_link(tmp_path: Path) -> None:
    """As soon as there is room."""
    os.symlink("1,,,g0,0.1.0,ready", tmp_path / paths.ENDPOINT)
    publish(tmp_path, "ready")
    assert endpoint.is_complete(str(tmp_path))
    result = endpoint.read(str(tmp_path))
    assert result is not None and (result.generation, result.started) == ("g1", "2026-11-16T08:30:00.000000Z")


@pytest.mark.parametrize("target", ["/etc/passwd", "1,2,3", "x,,,g,0.1.0,ready", "1,x,,g,0.1.0,ready"])
def test_another_link_is_no_endpoint(tmp_path: Path, target: str) -> None:
    """Nothing behind it is read."""
    os.symlink(target, tmp_path / paths.ENDPOINT)
    assert endpoint.read(str(tmp_path)) is None
