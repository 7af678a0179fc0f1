"""The store of observations: every question and every change, each a function of a connection. Transactions are the
caller's."""

from __future__ import annotations

from nudge.history.forgetting import Purge, count, purge, sweep
from nudge.history.reading import export, file_history, get, sessions, stats, timeline, trace
from nudge.history.recent import recent
from nudge.history.search import search
from nudge.history.summary import settle, summarise
from nudge.history.writing import is_new_event, note_injection, record, set_pinned

__all__ = [
    "Purge",
    "count",
    "export",
    "file_history",
    "get",
    "is_new_event",
    "note_injection",
    "purge",
    "recent",
    "record",
    "search",
    "sessions",
    "set_pinned",
    "settle",
    "stats",
    "summarise",
    "sweep",
    "timeline",
    "trace",
]
