"""The TCP port: ours, a stranger's, or free."""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
from collections.abc import Iterator

from nudge import limits
from nudge.doctor.finding import Finding, Patient, ok, warn
from nudge.ipc import endpoint


def check_port(patient: Patient) -> Iterator[Finding]:
    wanted = patient.settings.port
    listening = None if patient.status is None else patient.status.get("port")
    published = endpoint.read(patient.directory) if patient.silent is not None else None
    if published is not None and published.port is not None:
        yield ok("port", f"{published.port} is held by the server that does not answer (pid {published.pid})")
    elif patient.status is None:
        yield _ahead_of_a_server(wanted)
    elif listening is None:
        yield warn(
            "port", f"the server found no free port from {wanted} on; only the socket is served", _who_has(wanted)
        )
    elif not proves_itself(listening, endpoint.read_token(patient.directory)):
        yield warn("port", f"what answers on {listening} cannot prove that it knows the token", _who_has(listening))
    elif listening == wanted or is_free(wanted):
        yield ok("port", f"{listening} is held by the server")
    else:
        yield warn("port", f"{wanted} is held by another program; the server listens on {listening}", _who_has(wanted))


def _ahead_of_a_server(wanted: int) -> Finding:
    if is_free(wanted):
        return ok("port", f"{wanted} is free")
    return warn("port", f"{wanted} is held by another program; a server will take the next free one", _who_has(wanted))


def _who_has(port: int) -> str:
    return f"lsof -nP -iTCP:{port} -sTCP:LISTEN"


def is_free(port: int) -> bool:
    """Whether a server could bind it; asked of the kernel, so that no stranger hears from us."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def proves_itself(port: int, token: str | None) -> bool:
    """The other side shows that it knows the token; we show nothing but a random number."""
    if not token:
        return False
    nonce = os.urandom(16).hex()
    expected = hmac.new(token.encode(), nonce.encode(), hashlib.sha256).hexdigest()
    return hmac.compare_digest(_answer(port, f"/proof/{nonce}"), expected)


def _answer(port: int, path: str) -> str:
    from http.client import HTTPConnection, HTTPException

    link = HTTPConnection("127.0.0.1", port, timeout=limits.CALL_TIMEOUT)
    try:
        link.request("GET", path)
        return link.getresponse().read(128).decode("ascii", "replace").encode("ascii", "replace").decode()
    except (OSError, HTTPException):
        return ""
    finally:
        link.close()
