"""The store of observations: every question and every change, each a function of a connection. Transactions are the caller's."""

from __future__ import annotations

from nudge.observations.forgetting import Purge, count, purge, sweep
from nudge.observations.reading import export, file_history, get, sessions, stats, timeline, trace
from nudge.observations.recent import recent
from nudge.observations.search import search
from nudge.observations.summary import settle, summarise
from nudge.observations.writing import is_new_event, note_injection, record, set_pinned

__all__ = [
    "Purge", "count", "export", "file_history", "get", "is_new_event", "note_injection", "purge", "recent", "record", "search", "sessions",
    "set_pinned", "settle", "stats", "summarise", "sweep", "timeline", "trace",
]  # fmt: skip
