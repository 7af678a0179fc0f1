"""Where the server is, and whether the way there is safe."""

from __future__ import annotations

import pytest

from nudge.core.errors import Invalid
from nudge.team.address import Address


def test_the_password_is_no_part_of_the_address() -> None:
    """Neither of what is stored and shown nor of what is printed for debugging."""
    address, password = Address.parse("postgresql://alice:s%40cret@db.example.com:6432/team")
    assert password == "s@cret"
    assert address.url == "postgresql://alice@db.example.com:6432/team?sslmode=verify-full"
    assert "cret" not in repr(address)
    assert Address.parse(address.url) == (address, None)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", ""])
def test_this_machine_needs_no_tls(host: str) -> None:
    address, _ = Address.parse(f"postgresql://alice@{host}/team")
    assert not address.uses_tls
    assert Address.parse(address.url)[0] == address


def test_a_socket_is_this_machine() -> None:
    address, _ = Address.parse("postgresql://alice@/team?host=/run/postgresql")
    assert (address.host, address.uses_tls) == ("/run/postgresql", False)
    assert Address.parse(address.url)[0] == address


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_another_machine_is_reached_by_tls(mode: str) -> None:
    address, _ = Address.parse(f"postgresql://alice@10.0.0.1/team?sslmode={mode}")
    assert address.uses_tls


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://alice@db.example.com/team?sslmode=disable", "TLS is required"),
        ("postgresql://alice@localhost.example.com/team?sslmode=disable", "TLS is required"),
        ("postgresql://alice@db/team?sslmode=prefer", "sslmode must be one of"),
        ("postgresql://alice@db/team?options=-csearch_path", "an option that is not known: options"),
        ("postgresql://db/team", "the role is missing"),
        ("postgresql://alice@db", "the database is missing"),
        ("mysql://alice@db/team", "must be postgresql://"),
        ("postgresql://alice@db:port/team", "must be postgresql://"),
    ],
)
def test_what_is_refused(url: str, sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        Address.parse(url)
