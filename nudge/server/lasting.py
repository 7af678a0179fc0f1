"""Imports that stay for good, kept from the garbage collector."""

from __future__ import annotations

import gc


class LastingImports:
    """`with` it: the imports of a server make some hundred thousand objects, and all of them stay. A collector that
    looked through them
    again and again would take a tenth of the start, and hold the event loop for 60 ms at its first full round."""

    def __enter__(self) -> None:
        gc.disable()

    def __exit__(self, *_: object) -> None:
        gc.enable()
        gc.freeze()
