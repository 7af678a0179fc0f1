"""The endpoint file: where the PRIMARY is, published by the PRIMARY itself. It is a sign-post, never a proof: only the
lock is."""

from __future__ import annotations

import json
import os

from nudge import files, paths

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
        return {
            name: getattr(self, name) for name in ("pid", "port", "socket", "started", "generation", "version", "state")
        }


def read(directory: str) -> Endpoint | None:
    """The published endpoint; None when there is none, or none that we would trust."""
    raw = files.read_owned(os.path.join(directory, paths.ENDPOINT))
    try:
        fields = json.loads(raw or b"null")
    except ValueError:
        return None
    if not isinstance(fields, dict) or not isinstance(fields.get("pid"), int):
        return None
    values: dict[str, Any] = {name: fields.get(name) for name in Endpoint.__slots__}
    return Endpoint(**values)


def publish(directory: str, endpoint: Endpoint) -> None:
    files.replace(os.path.join(directory, paths.ENDPOINT), json.dumps(endpoint.to_wire()).encode())


def withdraw(directory: str, ours: Endpoint) -> None:
    """Say that we are gone, if the sign-post is still ours; the port stays written there for the next one."""
    current = read(directory)
    if current is not None and current.generation == ours.generation:
        publish(directory, Endpoint(ours.pid, ours.port, None, ours.started, ours.generation, ours.version, STOPPED))


def read_token(directory: str) -> str | None:
    raw = files.read_owned(os.path.join(directory, paths.TOKEN))
    return raw.decode("ascii", "replace").strip() if raw else None


def ensure_token(directory: str) -> str:
    """The bearer token of this machine's server; it outlives a PRIMARY so that scripts go on working."""
    token = read_token(directory)
    if not token:
        token = os.urandom(32).hex()
        files.replace(os.path.join(directory, paths.TOKEN), token.encode())
    return token
