"""Connections that never show a token."""

from __future__ import annotations

from tests.crash import descriptors


def test_idle_strangers_shut_nobody_out() -> None:
    """364 of them against a server that may have 256 file descriptors: what the scenario's docstring says holds."""
    assert descriptors.idle_connections()["answered"] == 20
