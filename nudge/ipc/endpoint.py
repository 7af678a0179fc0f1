"""The endpoint file, where PRIMARY publishes how it is reached, and the token. It is a hint, never a proof: only the
lock proves that a server lives.

A PRIMARY publishes in two steps. `ready` means that the private socket answers; `port` is null until the HTTP server is
open as well.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

from nudge import __version__, files, paths, thin_json
from nudge.errors import StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STARTING, READY, STOPPED = "starting", "ready", "stopped"

_SOCKET = r"s-[0-9a-f]+\.sock"
_REPLACED = (paths.ENDPOINT, paths.TOKEN, paths.PREVIOUS, paths.SETTINGS, paths.DIRECTORIES)
_LOOK_AGAIN = 0.05
_TEMPORARY = r"\.\d+\.[0-9a-f]{8}"


class Endpoint:
    """What `server.pid` says."""

    __slots__ = ("executable", "generation", "pid", "port", "socket", "started", "state", "version", "wire_port")

    def __init__(
        self,
        pid: int,
        port: int | None,
        socket: str | None,
        started: str,
        generation: str,
        version: str,
        state: str,
        executable: str | None = None,
        wire_port: int | None = None,
    ) -> None:
        """`executable`: the Python of its installation. `wire_port`: the private wire where there is no socket."""
        self.pid, self.port, self.socket, self.started = pid, port, socket, started
        self.generation, self.version, self.state = generation, version, state
        self.executable, self.wire_port = executable, wire_port

    def to_wire(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def read(directory: str) -> Endpoint | None:
    """The published endpoint; None when there is none, or none that we would trust."""
    raw = files.read_owned(os.path.join(directory, paths.ENDPOINT))
    try:
        fields = thin_json.loads(raw or b"null")
    except ValueError:
        return None
    if not isinstance(fields, dict) or not isinstance(fields.get("pid"), int):
        return None
    values: dict[str, Any] = {name: fields.get(name) for name in Endpoint.__slots__}
    return Endpoint(**values)


def read_older(directory: str) -> Endpoint | None:
    """The published endpoint, if that server is ready and of an older version than this code."""
    published = read(directory)
    is_older = published is not None and published.state == READY and is_newer(__version__, published.version or "")
    return published if is_older else None


def publish(directory: str, endpoint: Endpoint) -> None:
    files.replace(os.path.join(directory, paths.ENDPOINT), thin_json.dumps(endpoint.to_wire()).encode())


def announce(started: str, version: str, *, port: int | None = None) -> Endpoint:
    """The endpoint of this process while it starts, with a new generation; `port` is the last server's."""
    generation = os.urandom(6).hex()
    return Endpoint(os.getpid(), port, None, started, generation, version, STARTING, sys.executable)


def withdraw(directory: str, ours: Endpoint) -> None:
    """Mark the endpoint as stopped, unless another server has published since; the port stays, for the next one."""
    current = read(directory)
    if current is not None and current.generation == ours.generation:
        stopped = Endpoint(ours.pid, ours.port, None, ours.started, ours.generation, ours.version, STOPPED)
        stopped.executable = ours.executable
        publish(directory, stopped)


def is_newer(version: str, other: str) -> bool:
    """Whether `version` is a later release than `other`."""
    return _release(version) > _release(other)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+")[0].split(".") if part.isdecimal())


# The token


def read_token(directory: str) -> str | None:
    raw = files.read_owned(os.path.join(directory, paths.TOKEN))
    return raw.decode("ascii", "replace").strip() if raw else None


def ensure_token(directory: str) -> str:
    """The bearer token in force, which is the one on disk; made when there is none. It outlives a PRIMARY."""
    token = read_token(directory)
    if not token:
        token = os.urandom(32).hex()
        files.replace(os.path.join(directory, paths.TOKEN), token.encode())
    return token


class TokenFile:
    """Returns the token in force, which is the one on disk; makes a new one when somebody removed the file."""

    __slots__ = ("_directory", "_last", "_looked_at", "_path", "_signature", "_token")

    def __init__(self, directory: str) -> None:
        self._directory, self._path = directory, os.path.join(directory, paths.TOKEN)
        self._signature: tuple[int, int] | None = None
        self._token = self._last = ""
        self._looked_at = 0.0

    def recent(self) -> str:
        """The same, for every request of HTTP: as it was at most `_LOOK_AGAIN` seconds ago."""
        return self._token if self._token and monotonic() - self._looked_at < _LOOK_AGAIN else self()

    def __call__(self) -> str:
        """Empty when there is none and none can be written."""
        self._looked_at = monotonic()
        try:
            status = os.lstat(self._path)
            signature = status.st_ino, status.st_ctime_ns
        except OSError:
            signature = None
        if signature is None or signature != self._signature:  # reading it takes ten times as long as the look
            self._signature = signature
            try:
                # A file that others could have written is nobody's token, and is not replaced: `nudge doctor` names it.
                token = ensure_token(self._directory) if signature is None else read_token(self._directory)
            except (OSError, StorageFailed):
                token = None
            self._token, self._last = token or "", token or self._last
        return self._token

    def restore(self) -> None:
        """Write the last token again when the whole directory was removed: scripts go on with it. Raises
        StorageFailed."""
        if self._last and not os.path.lexists(self._path):
            files.replace(self._path, self._last.encode())
        self()


# What a killed server leaves behind


def leftovers(directory: str) -> list[str]:
    """Names of sockets and unfinished files; while a server holds the lock they are its own."""
    import re  # late: 7 ms, and a client needs none of this

    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    replaced = "|".join(map(re.escape, _REPLACED))
    pattern = rf"{_SOCKET}|(?:{replaced}){_TEMPORARY}|{re.escape(paths.CHANGE_LOG)}\.[0-9a-f]{{16}}\.tmp"
    return [name for name in names if re.fullmatch(pattern, name)]


def clear_leftovers(directory: str) -> list[str]:
    """Remove them, withdraw a stale endpoint, and return the names. Raises while a server holds the lock."""
    from nudge.ipc import lock

    held = lock.OwnerLock(os.path.join(directory, paths.LOCK))
    if not held.acquire():
        raise StorageFailed("a server holds the lock; its files are not touched")
    try:
        names = leftovers(directory)
        for name in names:
            os.unlink(os.path.join(directory, name))
        published = read(directory)
        if published is not None and published.state != STOPPED:
            withdraw(directory, published)
            names.append(paths.ENDPOINT)
        return names
    finally:
        held.release()
