"""Nudge: the shared memory of the coding agents on one machine."""

__version__ = "0.2.0"
