"""The endpoint file: where the PRIMARY is, published by the PRIMARY itself. It is a sign-post, never a proof: only the lock is."""

from __future__ import annotations

import json
import os
import stat
import sys

from nudge.errors import StorageFailed
from nudge.runtime import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STARTING, READY, STOPPED = "starting", "ready", "stopped"


class Endpoint:
    """What `server.pid` says."""

    __slots__ = ("generation", "pid", "port", "socket", "started", "state", "version")

    def __init__(
        self, pid: int, port: int | None, socket: str | None, started: str, generation: str, version: str, state: str
    ) -> None:
        self.pid, self.port, self.socket, self.started = pid, port, socket, started
        self.generation, self.version, self.state = generation, version, state

    def to_wire(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("pid", "port", "socket", "started", "generation", "version", "state")}


def read(directory: str) -> Endpoint | None:
    """The published endpoint; None when there is none, or none that we would trust."""
    raw = _read_owned(os.path.join(directory, paths.ENDPOINT))
    try:
        fields = json.loads(raw or b"null")
    except ValueError:
        return None
    if not isinstance(fields, dict) or not isinstance(fields.get("pid"), int):
        return None
    values: dict[str, Any] = {name: fields.get(name) for name in Endpoint.__slots__}
    return Endpoint(**values)


def publish(directory: str, endpoint: Endpoint) -> None:
    replace_file(os.path.join(directory, paths.ENDPOINT), json.dumps(endpoint.to_wire()).encode())


def withdraw(directory: str, ours: Endpoint) -> None:
    """Say that we are gone, if the sign-post is still ours; the port stays written there for the next one."""
    current = read(directory)
    if current is not None and current.generation == ours.generation:
        publish(directory, Endpoint(ours.pid, ours.port, None, ours.started, ours.generation, ours.version, STOPPED))


def read_token(directory: str) -> str | None:
    raw = _read_owned(os.path.join(directory, paths.TOKEN))
    return raw.decode("ascii", "replace").strip() if raw else None


def ensure_token(directory: str) -> str:
    """The bearer token of this machine's server; it outlives a PRIMARY so that scripts go on working."""
    token = read_token(directory)
    if not token:
        token = os.urandom(32).hex()
        replace_file(os.path.join(directory, paths.TOKEN), token.encode())
    return token


def _read_owned(path: str) -> bytes | None:
    """Content of a file that is ours alone; a link, or a file that others could have written, is nobody's word."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        ours = sys.platform == "win32" or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
        return file.read(65_536) if ours and stat.S_ISREG(status.st_mode) else None


def replace_file(path: str, content: bytes) -> None:
    """Write beside and rename over: a reader sees the old file or the new one, never half of one."""
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        with open(fd, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError as error:
        _discard(temporary)
        raise StorageFailed(f"cannot write {os.path.basename(path)}: {error.strerror}") from None


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
