"""Keeping the garbage collector off objects that stay for good."""

from __future__ import annotations

import gc
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def freeze_imports() -> Iterator[None]:
    """Import inside of it. The imports of a server make some hundred thousand objects, all of which stay: a collector
    that looked through them would take a tenth of the start, and hold the event loop for 60 ms at its first full
    round."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


def freeze_gc() -> None:
    """Called when a server is composed: a full collection would hold its event loop for 50 ms at a time, and one of
    15,000 young objects for 7 to 18. The second generation has three times the first threshold: 6,000."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 2, 5_000)
