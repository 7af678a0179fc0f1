"""Who may come in: the same user on the socket; on TCP a loopback name, no foreign page, and the token."""

from __future__ import annotations

import hmac
import os
import re
import socket
import struct
import sys

from nudge.server.http_messages import Request

# ASCII: a `\u017f` is an `s` to a pattern that ignores case, and not to whoever resolves the name.
_LOOPBACK = re.compile(r"(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?", re.IGNORECASE | re.ASCII)
Refusal = tuple[int, str]


def check_browser(request: Request) -> Refusal | None:
    """A page in a browser can make the browser talk to loopback: its Host gives away rebinding, its Origin where it
    comes from."""
    if not _LOOPBACK.fullmatch(request.headers.get("host", "")):
        return 421, "this server answers to localhost only"
    origin = request.headers.get("origin")
    if origin is not None and not _is_local_origin(origin):
        return 403, "requests from other origins are refused"
    return None


def _is_local_origin(origin: str) -> bool:
    scheme, separator, host = origin.partition("://")
    return bool(separator) and scheme in ("http", "https") and _LOOPBACK.fullmatch(host) is not None


def check_token(request: Request, token: str) -> Refusal | None:
    scheme, _, shown = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and hmac.compare_digest(
        shown.strip().encode("utf-8", "surrogateescape"), token.encode()
    ):
        return None
    return 401, "the bearer token is missing or wrong; get it with: nudge token"


def is_json(request: Request) -> bool:
    """Plain JSON: a compressed kilobyte can hold a gigabyte."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" and request.headers.get("content-encoding", "identity") == "identity"


def is_same_user(transport: object) -> bool:
    """The kernel says who is at the other end. The directory is owner-only already; this holds when somebody opened it
    up."""
    link = transport.get_extra_info("socket") if hasattr(transport, "get_extra_info") else None
    if link is None:
        return False
    if sys.platform == "linux":
        raw = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return bool(struct.unpack("3i", raw)[1] == os.getuid())
    if sys.platform == "darwin":  # pragma: no cover
        raw = link.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: version, uid, groups
        return bool(struct.unpack_from("=II", raw)[1] == os.getuid())
    return True
