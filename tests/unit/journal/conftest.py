"""Attempts are kept in the database of notes."""

from tests.unit.notes.conftest import notes

__all__ = ["notes"]
