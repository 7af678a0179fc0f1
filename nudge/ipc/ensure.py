"""Whoever needs a PRIMARY and finds none starts one. PROXY and CLI both come here."""

from __future__ import annotations

import os
import sys
import time

from nudge import limits, paths
from nudge.clock import boot_seconds
from nudge.errors import Unavailable
from nudge.ipc import endpoint, lock
from nudge.ipc.connection import Connection, Lost, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

    from nudge.ipc.endpoint import Endpoint

_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.025

# What a server needs of its starter's environment. The rest stays behind: a detached process would keep it for hours.
_PASSED_ON = ("HOME", "LANG", "LOGNAME", "PATH", "SYSTEMROOT", "TZ", "USER", "USERPROFILE", "VIRTUAL_ENV")
_PASSED_ON_PREFIXES = ("LC_", "NUDGE_", "PYTHON")


def connect(
    directory: str, *, start: bool = True, patience: float = limits.START_TIMEOUT, port: int | None = None
) -> Connection:
    """An open connection to the PRIMARY. With `start`, one is started when the lock is free, on `port` if that is
    given.

    An established PRIMARY that does not accept fails fast, with its pid; one that is starting, or handing over, is
    waited for.
    """
    began = boot_seconds()
    pause = _FIRST_PAUSE
    child: subprocess.Popen[bytes] | None = None
    while True:
        published = endpoint.read(directory)
        link = _try_link(directory, published)
        if link is not None:
            return link
        if lock.is_free(os.path.join(directory, paths.LOCK)):
            if not start:
                raise Unavailable("no Nudge server is running; start one with: nudge serve")
            if child is None or child.poll() is not None:
                _fail_if_child_failed(child, directory)
                _refuse_if_taken(port)
                child = spawn_detached(directory, port=port)
        _check_patience(boot_seconds() - began, patience, published, starting=child is not None)
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def _refuse_if_taken(port: int | None) -> None:
    """Who asks for one port has no use for a server on the next."""
    if port is None:
        return
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise Unavailable(f"port {port} is held by another program; leave out -p, or name another") from None


def _try_link(directory: str, published: Endpoint | None) -> Connection | None:
    if published is None or published.state != endpoint.READY:
        return None
    try:
        return Connection(published, endpoint.read_token(directory))
    except Lost:
        return None
    except TimedOut:
        raise not_answering(published) from None


def not_answering(published: Endpoint) -> Unavailable:
    return Unavailable(
        f"the Nudge server (pid {published.pid}) does not answer; look at it with: nudge status, or end it with: nudge stop --force",
        pid=published.pid,
    )


def _check_patience(waited: float, patience: float, published: Endpoint | None, *, starting: bool) -> None:
    starting = starting or published is None or published.state != endpoint.READY
    if waited < (patience if starting else min(patience, limits.CALL_TIMEOUT)):
        return
    if published is not None and not starting:
        raise not_answering(published)
    raise Unavailable(f"no Nudge server came up within {waited:.0f} s; see why with: nudge serve --http-only")


def spawn_detached(
    directory: str, *, successor_of: str | None = None, port: int | None = None, auth: bool = True
) -> subprocess.Popen[bytes]:
    """Start `nudge serve --detach` on its own: own session, no descriptor of ours, root as directory, a bare
    environment.

    Our settings travel in that environment."""
    import subprocess

    command = [sys.executable, "-P", "-m", "nudge", "serve", "--detach"]
    command += [] if port is None else ["--port", str(port)]
    command += [] if auth else ["--no-auth"]
    command += [] if successor_of is None else ["--successor", successor_of]
    with open(os.devnull, "rb") as nothing, _start_report(directory) as report:
        child = subprocess.Popen(
            command,
            cwd="/",
            stdin=nothing,
            stdout=nothing,
            stderr=report,
            env=_passed_on(os.environ),
            close_fds=True,
            start_new_session=True,
        )
    _reap_later(child)
    return child


def _start_report(directory: str):  # type: ignore[no-untyped-def]
    """Where a server that cannot start says why."""
    fd = os.open(
        os.path.join(directory, paths.START_REPORT), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, 0o600
    )
    return open(fd, "wb")


def _fail_if_child_failed(child: subprocess.Popen[bytes] | None, directory: str) -> None:
    """A start that was lost, or killed, is tried again; one that failed by itself would fail again."""
    if child is None or child.returncode is None or child.returncode <= 0:
        return
    with open(os.path.join(directory, paths.START_REPORT), "rb") as file:
        last = file.read()[-2_000:].decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
    raise Unavailable(f"the Nudge server could not start: {last or f'exit code {child.returncode}'}")


def _passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in environ.items() if name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIXES)
    }


def _reap_later(child: subprocess.Popen[bytes]) -> None:
    """A PROXY lives for days: a server that it started and that has ended must not stay behind as a zombie."""
    import threading

    threading.Thread(target=child.wait, daemon=True).start()
