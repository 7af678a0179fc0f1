"""The address of a team's server, and the rule that only a local one may be reached without TLS."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Self
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from nudge.core import limits
from nudge.core.errors import Invalid

_SCHEMES = ("postgresql", "postgres")
_OPTIONS = ("sslmode", "sslrootcert", "host")
ENCRYPTED = ("require", "verify-ca", "verify-full")
"""The values of `sslmode` with which nothing is sent in the clear."""
_MODES = ("disable", *ENCRYPTED)
_DEFAULT_PORT = 5432
_FORM = "must be postgresql://ROLE@HOST/DATABASE"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is and as whom to log in; never the password."""

    host: str
    port: int
    user: str
    database: str
    sslmode: str
    sslrootcert: str | None = None

    @classmethod
    def parse(cls, text: str) -> tuple[Self, str | None]:
        """Return the address of a URL, and the password that it has, if any."""
        try:
            parts = urlsplit(text)
            host, port = unquote(parts.hostname or ""), parts.port or _DEFAULT_PORT
        except ValueError:
            raise Invalid(_FORM, field="url") from None
        if parts.scheme not in _SCHEMES or len(text) > limits.TEAM_URL_CHARS:
            raise Invalid(_FORM, field="url")
        options = _parse_options(parts.query)
        host = options.get("host", host) or "localhost"
        user, database = unquote(parts.username or ""), unquote(parts.path.lstrip("/"))
        if not user or not database:
            raise Invalid(f"{_FORM}: {'the role' if database else 'the database'} is missing", field="url")
        mode = options.get("sslmode", "disable" if is_local(host) else "verify-full")
        _check_mode(mode, host)
        password = unquote(parts.password) if parts.password else None
        return cls(host, port, user, database, mode, options.get("sslrootcert")), password

    @property
    def url(self) -> str:
        """The address as text, for the store and for people."""
        if self.host.startswith("/"):
            place = f":{self.port}/{quote(self.database, safe='')}?host={quote(self.host)}&sslmode={self.sslmode}"
        else:
            host = f"[{self.host}]" if ":" in self.host else self.host
            place = f"{host}:{self.port}/{quote(self.database, safe='')}?sslmode={self.sslmode}"
        cert = f"&sslrootcert={quote(self.sslrootcert)}" if self.sslrootcert else ""
        return f"postgresql://{quote(self.user, safe='')}@{place}{cert}"

    @property
    def uses_tls(self) -> bool:
        return self.sslmode in ENCRYPTED


def _parse_options(query: str) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(options.keys() - set(_OPTIONS)):
        raise Invalid(f"has an option that is not known: {unknown[0]}; known: {', '.join(_OPTIONS)}", field="url")
    return options


def _check_mode(mode: str, host: str) -> None:
    if mode not in _MODES:
        raise Invalid(f"sslmode must be one of {', '.join(_MODES)}", field="url")
    if mode not in ENCRYPTED and not is_local(host):
        raise Invalid(f"sslmode={mode} sends notes in the clear to {host}: TLS is required", field="url")


def is_local(host: str) -> bool:
    """Whether the host is this machine: a socket's directory, `localhost`, or a loopback address."""
    if host.startswith("/") or host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
