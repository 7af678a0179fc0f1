"""The endpoint file, in which PRIMARY publishes how to reach it, and the token. The file does not prove that a server
runs: only the lock does.

A PRIMARY publishes in two steps. `ready` means that the private socket answers; `port` is null until the HTTP server is
open as well.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

from nudge import __version__
from nudge.core import files, paths, thin_json
from nudge.core.errors import StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STARTING, READY, STOPPED = "starting", "ready", "stopped"

_SOCKET = r"s-[0-9a-f]+\.sock"
_REPLACED = (paths.ENDPOINT, paths.TOKEN, paths.PREVIOUS, paths.SETTINGS, paths.DIRECTORIES, paths.PAGE, paths.TRUST)
_TOKEN_CACHED = 0.05  # seconds
_SHORTEST_TOKEN = 32  # characters: a shorter one could be guessed
_TEMPORARY = r"\.\d+\.[0-9a-f]{8}"
_OPENER = r"open-[0-9a-f]{16}\.html"  # of `nudge open`, with a one-time code


class Endpoint:
    """The content of the endpoint file `server.pid`."""

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
        """`executable` is the Python of the server's installation, `wire_port` the port of the private wire on systems
        without Unix sockets."""
        self.pid, self.port, self.socket, self.started = pid, port, socket, started
        self.generation, self.version, self.state = generation, version, state
        self.executable, self.wire_port = executable, wire_port

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def read(directory: str) -> Endpoint | None:
    """Return the published endpoint; None when there is none, or the file could have been written by another user."""
    path = os.path.join(directory, paths.ENDPOINT)
    raw = files.read_owned(path)
    if raw is None:
        return _read_link(path)
    try:
        fields = thin_json.loads(raw or b"null")
    except ValueError:
        return None
    if not isinstance(fields, dict) or not isinstance(fields.get("pid"), int):
        return None
    values: dict[str, Any] = {name: fields.get(name) for name in Endpoint.__slots__}
    return Endpoint(**values)


def read_older(directory: str) -> Endpoint | None:
    """Return the published endpoint if that server is ready and older than this code, else None."""
    published = read(directory)
    is_older = published is not None and published.state == READY and is_newer(__version__, published.version or "")
    return published if is_older else None


def publish(directory: str, endpoint: Endpoint) -> None:
    """Write the endpoint file; on a full disk a link instead, which needs no room. Raises StorageFailed."""
    path = os.path.join(directory, paths.ENDPOINT)
    try:
        files.replace(path, thin_json.dumps(endpoint.to_json()).encode())
    except StorageFailed as error:
        try:
            _write_link(path, endpoint)
        except OSError:
            raise error from None


def is_complete(directory: str) -> bool:
    """Whether the endpoint is in the file with all of its fields, not in a link."""
    return not os.path.islink(os.path.join(directory, paths.ENDPOINT))


# A full disk has no room for a file's content, but file systems keep the target of a short link beside its name:
# up to 59 bytes on ext4, 127 on tmpfs. The target names no file; it is the essence of an endpoint.


def _write_link(path: str, endpoint: Endpoint) -> None:
    fields = (endpoint.pid, endpoint.port, endpoint.wire_port, endpoint.generation, endpoint.version, endpoint.state)
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    os.symlink(",".join("" if field is None else str(field) for field in fields), temporary)
    try:
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def _read_link(path: str) -> Endpoint | None:
    try:
        if sys.platform != "win32" and os.lstat(path).st_uid != os.getuid():
            return None
        pid, port, wire_port, generation, version, state = os.readlink(path).split(",")
        ports = [int(number) if number else None for number in (port, wire_port)]
        socket = socket_path(os.path.dirname(path), generation) if state == READY and not wire_port else None
        return Endpoint(int(pid), ports[0], socket, "", generation, version, state, wire_port=ports[1])
    except (OSError, ValueError):
        return None


def socket_path(directory: str, generation: str) -> str:
    """Return the path of the private socket of the server of this generation."""
    return os.path.join(directory, f"s-{generation}.sock")


def announce(started: str, version: str, *, port: int | None = None) -> Endpoint:
    """Return the endpoint of this process while it starts, with a new generation; `port` is the last server's."""
    generation = os.urandom(6).hex()
    return Endpoint(os.getpid(), port, None, started, generation, version, STARTING, sys.executable)


def withdraw(directory: str, published: Endpoint) -> None:
    """Mark the endpoint as stopped, unless another server has published since; the port stays, for the next one."""
    current = read(directory)
    if current is not None and current.generation == published.generation:
        stopped = Endpoint(
            published.pid,
            published.port,
            None,
            published.started,
            published.generation,
            published.version,
            STOPPED,
            published.executable,
        )
        publish(directory, stopped)


def is_newer(version: str, other: str) -> bool:
    """Whether `version` is a later release than `other`."""
    return _release(version) > _release(other)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+")[0].split(".") if part.isdecimal())


# The token


def read_token(directory: str) -> str | None:
    """Return the bearer token on disk; None when there is no file, others could have written it, or it holds no token
    (a full disk or a power cut leaves an empty or shortened one)."""
    raw = files.read_owned(os.path.join(directory, paths.TOKEN))
    token = raw.decode("ascii", "replace").strip() if raw else ""
    is_valid = len(token) >= _SHORTEST_TOKEN and token.isascii() and token.isprintable() and " " not in token
    return token if is_valid else None


def ensure_token(directory: str) -> str:
    """Return the bearer token on disk, and create one when there is none. It outlives a PRIMARY."""
    token = read_token(directory)
    if token is None:
        token = os.urandom(32).hex()
        files.replace(os.path.join(directory, paths.TOKEN), token.encode())
    return token


class TokenFile:
    """The current token: calling it returns the one on disk, and creates a new one when the file was removed or
    holds none."""

    __slots__ = ("_directory", "_last", "_looked_at", "_path", "_signature", "_token")

    def __init__(self, directory: str) -> None:
        self._directory, self._path = directory, os.path.join(directory, paths.TOKEN)
        self._signature: tuple[int, int] | None = None
        self._token = self._last = ""
        self._looked_at = 0.0

    def recent(self) -> str:
        """Return the token as it was at most `_TOKEN_CACHED` seconds ago; cheap enough for every HTTP request."""
        return self._token if self._token and monotonic() - self._looked_at < _TOKEN_CACHED else self()

    def __call__(self) -> str:
        """Return the token; empty when there is none and none can be written."""
        self._looked_at = monotonic()
        try:
            status = os.lstat(self._path)
            signature = status.st_ino, status.st_ctime_ns
        except OSError:
            signature = None
        if signature is None or signature != self._signature:  # reading takes ten times as long as `lstat`
            self._signature = signature
            try:
                # A file that others could have written is not used and not replaced: `nudge doctor` names it.
                is_ours = signature is None or files.read_owned(self._path) is not None
                token = ensure_token(self._directory) if is_ours else None
            except (OSError, StorageFailed):
                token = None
            self._token, self._last = token or "", token or self._last
        return self._token

    def restore(self) -> None:
        """Write the last token again when its file was removed, so that scripts can go on using it. Raises
        StorageFailed."""
        if self._last and not os.path.lexists(self._path):
            files.replace(self._path, self._last.encode())
        self()


# Files that a killed server leaves behind


def leftovers(directory: str) -> list[str]:
    """Return the names of sockets and unfinished files; while a server holds the lock they belong to it."""
    import re  # late: 7 ms, and a client needs none of this

    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    replaced = "|".join(map(re.escape, _REPLACED))
    pages = rf"{_OPENER}(?:{_TEMPORARY})?"
    pattern = rf"{_SOCKET}|{pages}|(?:{replaced}){_TEMPORARY}|{re.escape(paths.CHANGE_LOG)}\.[0-9a-f]{{16}}\.tmp"
    return [name for name in names if re.fullmatch(pattern, name)]


def clear_leftovers(directory: str) -> list[str]:
    """Remove the leftovers, withdraw a stale endpoint, and return the names. Raises StorageFailed while a server holds
    the lock."""
    from nudge.core import locks

    held = locks.OwnerLock(os.path.join(directory, paths.LOCK))
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


def is_port_free(port: int) -> bool:
    """Whether a server could bind the port. Tries to bind it: connecting would disturb the program that listens
    there."""
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
