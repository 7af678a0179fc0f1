"""Lock, endpoint and socket: whether the three tell the same story."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from shlex import quote

from nudge import paths
from nudge.doctor import mending
from nudge.doctor.finding import Finding, Patient, fail, ok, warn
from nudge.ipc import endpoint, holder, lock
from nudge.ipc.endpoint import Endpoint


def check_lock(patient: Patient) -> Iterator[Finding]:
    if _is_free(patient):
        yield ok("lock", "free: no server runs")
        return
    published = endpoint.read(patient.directory)
    if published is None:
        yield warn("lock", "held, but nobody has said who holds it; a server may be starting", "nudge doctor")
    elif (doubt := holder.doubt_about(patient.directory, published)) is not None:
        yield fail("lock", f"held, but not by whom the endpoint names: {doubt}", _who_has(patient))
    else:
        yield ok("lock", f"held by the server (pid {published.pid})")


def check_endpoint(patient: Patient) -> Iterator[Finding]:
    published = endpoint.read(patient.directory)
    path = os.path.join(patient.directory, paths.ENDPOINT)
    if published is None and os.path.lexists(path):
        yield _untrusted(patient, path)
    elif published is None or published.state == endpoint.STOPPED:
        yield ok("endpoint", "names no server")
    elif _is_free(patient):
        yield _stale(patient, published)
    else:
        yield ok("endpoint", f"names pid {published.pid}, {published.state}, generation {published.generation}")


def _untrusted(patient: Patient, path: str) -> Finding:
    """A living server writes it anew within a second; without one it is of no use to anybody."""
    message = f"{path} is damaged, or others may have written it; it is not trusted"
    fix = mending.remove(path) if _is_free(patient) and not os.path.isdir(path) else None
    return warn("endpoint", message, f"rm {quote(path)}", fix)


def _stale(patient: Patient, published: Endpoint) -> Finding:
    """Harmless: nobody trusts a pid. But it would mislead a person."""
    alive = holder.look_at(published.pid) is not None
    now = f"which is another program now (pid {published.pid})" if alive else f"which is gone (pid {published.pid})"
    message = f"stale: it names a server, generation {published.generation}, {now}"
    return warn("endpoint", message, "nudge doctor --fix", mending.clear(patient.directory))


def check_socket(patient: Patient) -> Iterator[Finding]:
    published = endpoint.read(patient.directory)
    if published is None or published.state != endpoint.READY or _is_free(patient):
        return
    if not published.socket:
        yield ok("socket", "none: the directory's path is too long for one; TCP is used")
        return
    yield _socket(published.socket)


def _socket(path: str) -> Finding:
    try:
        status = os.lstat(path)
    except OSError:
        return warn("socket", f"{path} is gone; the server makes it anew within a second", "nudge doctor")
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.getuid():
        return fail("socket", f"{path} is not a socket of yours", f"rm {quote(path)}")
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        return warn(
            "socket", f"{path} is open to others ({mode:04o})", f"chmod 600 {quote(path)}", mending.chmod(path, 0o600)
        )
    return ok("socket", f"{path} is yours alone")


def _is_free(patient: Patient) -> bool:
    return lock.is_free(os.path.join(patient.directory, paths.LOCK))


def _who_has(patient: Patient) -> str:
    return f"lsof {quote(os.path.join(patient.directory, paths.LOCK))}"
