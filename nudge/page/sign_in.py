"""Who may use the page: a one-time code, traded for a secret that the browser tab keeps.

The code is in the fragment of the address that `nudge open` opens, which no browser sends anywhere; it is traded once,
within a minute. Kept are only hashes, in a file of the runtime directory: a server that is replaced on the same port
goes on accepting the secret. It ends after hours without use, with `nudge stop --forget`, and when a server had to take
another port, since another program may have the old one. Standard library only.
"""

from __future__ import annotations

import hmac
import os
from contextlib import suppress
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Any

from nudge.core import files, limits, paths, thin_json
from nudge.core.errors import StorageFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

CODE, SECRET = "code", "secret"
_HEX = 64  # characters of a code and of a secret
_OPENER = "open-{}.html"
_REDIRECT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Nudge</title>
<meta http-equiv="refresh" content="0; url={address}"></head>
<body><p><a href="{address}">Open Nudge</a></p></body></html>
"""


class SignIn:
    """The codes and secrets of one runtime directory. `port` is where the page is served; a secret of another port is
    none."""

    def __init__(self, directory: str, port: int | None) -> None:
        self._directory, self._port = directory, port
        self._path = os.path.join(directory, paths.PAGE)
        self._signature: tuple[int, int] | None = None
        self._entries: list[dict[str, Any]] = []

    def make_code(self, now: float, *, is_person: bool = False) -> tuple[str, str]:
        """Return the address of the page with a new code, and the path of the file that redirects to it, which only its
        owner can read. `is_person`: a person at a terminal asked for it. Raises StorageFailed."""
        self.remove_openers(now)
        code = os.urandom(_HEX // 2).hex()
        opener = _OPENER.format(os.urandom(8).hex())
        address = f"http://127.0.0.1:{self._port}/#code={code}"
        self._write(
            [*self._read(now), {"kind": CODE, "hash": _hash(code), "at": now, "opener": opener, "person": is_person}]
        )
        path = os.path.join(self._directory, opener)
        files.replace(path, _REDIRECT.format(address=escape(address)).encode())
        return address, path

    def trade(self, code: str, now: float) -> str | None:
        """Return a new secret for a code, and forget the code; None for one that is unknown, used or late."""
        entries = self._read(now)
        used = next((entry for entry in entries if _is(entry, CODE, code)), None)
        if used is None:
            return None
        secret = os.urandom(_HEX // 2).hex()
        kept = [entry for entry in entries if entry is not used]
        latest = sorted((entry for entry in kept if entry["kind"] == SECRET), key=lambda entry: float(entry["at"]))
        for oldest in latest[: max(len(latest) + 1 - limits.MAX_PAGE_SECRETS, 0)]:
            kept.remove(oldest)
        is_person = used.get("person") is True
        entry = {"kind": SECRET, "hash": _hash(secret), "at": now, "port": self._port, "person": is_person}
        self._write([*kept, entry])
        self._remove(used["opener"])
        return secret

    def accepts(self, authorization: str, now: float) -> bool:
        """Whether the header has a secret that is in force. Its use is written down now and then."""
        entries = self._read(now)
        found = self._find(entries, authorization)
        if found and now - found[0]["at"] > limits.PAGE_SECRET_NOTED:
            found[0]["at"] = now
            with suppress(StorageFailed):
                self._write(entries)
        return bool(found)

    def is_person(self, authorization: str, now: float) -> bool:
        """Whether the secret in the header comes from a code that a person at a terminal asked for."""
        return any(entry.get("person") is True for entry in self._find(self._read(now), authorization))

    def _find(self, entries: list[dict[str, Any]], authorization: str) -> list[dict[str, Any]]:
        scheme, _, shown = authorization.partition(" ")
        if scheme.lower() != "bearer" or len(shown) != _HEX or not shown.isascii():
            return []
        return [entry for entry in entries if _is(entry, SECRET, shown) and entry.get("port") == self._port]

    def remove_openers(self, now: float) -> None:
        """Remove the files of codes that are no longer good."""
        good = {entry["opener"] for entry in self._read(now) if entry["kind"] == CODE}
        with suppress(OSError):
            for name in os.listdir(self._directory):
                if name.startswith("open-") and name.endswith(".html") and name not in good:
                    self._remove(name)

    def _remove(self, opener: str) -> None:
        with suppress(OSError):
            os.unlink(os.path.join(self._directory, os.path.basename(opener)))

    def _read(self, now: float) -> list[dict[str, Any]]:
        """Return the codes and secrets that are in force; the file is read again when it changed."""
        try:
            status = os.lstat(self._path)
            signature = (status.st_ino, status.st_mtime_ns)
        except OSError:
            self._signature, self._entries = None, []
            return []
        if signature != self._signature:
            self._entries, self._signature = list(_parse(files.read_owned(self._path))), signature
        return [entry for entry in self._entries if 0 <= now - entry["at"] < _LASTS[entry["kind"]]]

    def _write(self, entries: list[dict[str, Any]]) -> None:
        files.replace(self._path, thin_json.dumps({"entries": entries}).encode())
        self._signature = None


_LASTS = {CODE: limits.PAGE_CODE_SECONDS, SECRET: limits.PAGE_SECRET_SECONDS}


def _parse(raw: bytes | None) -> Iterator[dict[str, Any]]:
    """Yield what can be read: a damaged file only means to sign in again."""
    try:
        content = thin_json.loads(raw or b"{}")
        for entry in content["entries"]:
            is_entry = entry["kind"] in _LASTS and isinstance(entry["at"], int | float)
            if is_entry and isinstance(entry["hash"], str) and (entry["kind"] == SECRET or entry["opener"]):
                yield entry
    except (ValueError, TypeError, KeyError):
        return


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _is(entry: dict[str, Any], kind: str, shown: str) -> bool:
    return entry["kind"] == kind and hmac.compare_digest(entry["hash"], _hash(shown))
