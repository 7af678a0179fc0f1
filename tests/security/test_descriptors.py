"""Connections that never show a token, or never say who they are."""

from __future__ import annotations

from tests.crash import descriptors


def test_idle_strangers_shut_nobody_out() -> None:
    """364 of them against a server that may have 256 file descriptors: what the scenario's docstring says holds."""
    assert descriptors.idle_connections()["answered"] == 20


def test_silent_connections_to_the_socket_shut_nobody_out() -> None:
    """400 of them by the same user, with the same descriptors."""
    assert descriptors.silent_connections()["answered"] == 20
