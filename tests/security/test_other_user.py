"""Another local user, really: a process with another uid tries the files, the socket, the port and the traps it could set."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import Machine

NOBODY = 65_534
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")


@pytest.fixture
def served(machine: Machine) -> Machine:
    """A server with something in it, in a place that everybody may walk to."""
    machine.base.chmod(0o755)
    machine.http_only()
    machine.json("set", "api", "test", "pytest -q", "--global")
    return machine


def as_nobody(work: Callable[[], str]) -> str:
    """What `work` says in a process of another user. Forked: this user's interpreter may be out of the other one's reach."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            os.write(writer, work().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


def _readable(paths: list[str]) -> str:
    found = []
    for path in paths:
        try:
            with open(path, "rb"):
                found.append(path)
        except OSError:
            continue
    return " ".join(found)


def test_no_file_can_be_read(served: Machine) -> None:
    """Neither the directory nor anything in it opens for another user."""
    tried = list(map(str, Path(served.runtime).rglob("*")))
    assert len(tried) > 6 and as_nobody(lambda: "reached") == "reached"
    assert as_nobody(lambda: _readable(tried)) == ""


def _ask(address: str | tuple[str, int]) -> str:
    """The status that a stranger's request gets, or the error that stopped it."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    request = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    with socket.socket(family) as link:
        try:
            link.connect(address)
            link.sendall(request.encode())
            return link.recv(100).split(b" ")[1].decode()
        except OSError as error:
            return type(error).__name__


def test_the_socket_refuses(served: Machine) -> None:
    """The directory is closed; and were it open, the kernel tells us who is at the other end."""
    path = str(served.ready().socket)
    assert as_nobody(lambda: _ask(path)) == "PermissionError"
    for opened in (served.runtime, path):
        os.chmod(opened, 0o777)  # noqa: S103  what must hold even then is the point
    assert as_nobody(lambda: _ask(path)) == "403"


def test_the_port_wants_the_token(served: Machine) -> None:
    """Loopback is everybody's; the token is not."""
    port = served.ready().port
    assert port is not None
    assert as_nobody(lambda: _ask(("127.0.0.1", port))) == "401"


def _foreign(path: Path) -> None:
    path.mkdir(mode=0o700)
    os.chown(path, NOBODY, NOBODY)


def _open_to_all(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def _link(path: Path) -> None:
    elsewhere = path.parent / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    path.symlink_to(elsewhere)


@pytest.mark.parametrize(
    ("trap", "said"), [(_foreign, "belongs to another user"), (_open_to_all, "writable by others"), (_link, "symbolic link")]
)
def test_a_planted_directory_is_refused_by_name(machine: Machine, trap: Callable[[Path], None], said: str) -> None:
    """A directory that somebody else controls is named and left alone; nothing is written into it."""
    place = Path(machine.runtime)
    trap(place)
    refused = machine.cli("set", "a", "b", "c", "--global")
    assert refused.returncode == 3 and said in refused.stderr and machine.runtime in refused.stderr
    assert list(place.iterdir()) == [] and machine.pids() == []


def test_everything_is_the_owners_alone(served: Machine) -> None:
    """After a session with logs, a backup, an export and a previous session: 0700 and 0600 throughout."""
    served.json("backup")
    served.cli("export", "-o", str(Path(served.runtime) / "out.json"))
    served.cli("stop", "--force", "--forget")
    modes = {str(path): stat.S_IMODE(path.lstat().st_mode) for path in [Path(served.runtime), *Path(served.runtime).rglob("*")]}
    assert len(modes) > 8
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}
