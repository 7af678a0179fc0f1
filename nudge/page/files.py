"""The files of the page, from the package, and the headers that keep its scripts to themselves."""

from __future__ import annotations

import os
from functools import cache
from hashlib import sha256
from typing import NamedTuple

ROOT = "/"
PREFIX = "/page/"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
    "Server": "nudge",
}


class PageFile(NamedTuple):
    content: bytes
    content_type: str
    tag: str


@cache
def load() -> dict[str, PageFile]:
    """Return the files by the path that they are served under. They are read once, when somebody looks at the page."""
    folder = os.path.join(os.path.dirname(__file__), "static")
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            content_type = _TYPES.get(os.path.splitext(name)[1])
            if content_type is None:
                continue
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                content = file.read()
            below = os.path.relpath(path, folder).replace(os.sep, "/")
            served = ROOT if below == "index.html" else PREFIX + below
            found[served] = PageFile(content, content_type, f'"{sha256(content).hexdigest()[:16]}"')
    return found
