"""Notes that go to PRIMARY as one import in pages, from the client's side: all of them are stored, or none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from nudge import limits

Call = Callable[[str, Mapping[str, Any]], Any]
Page = dict[str, list[dict[str, Any]]]


def send_notes(
    call: Call,
    memories: Iterable[dict[str, Any]],
    links: Iterable[dict[str, Any]],
    fields: Mapping[str, Any],
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Return the result of the import. `fields` go with each page; `progress` gets the number of notes sent so far."""
    transfer: dict[str, Any] = {}
    sent, number = 0, 0
    held: Page | None = None
    for page in _pages(memories, links):
        if held is not None:
            transfer = {
                "transfer": call("nudge.memory_import", {**held, **fields, **transfer, "page": number, "more": True})[
                    "transfer"
                ]
            }
            number, sent = number + 1, sent + len(held["memories"])
            progress(sent)
        held = page
    last = held or {"memories": [], "links": []}
    result: dict[str, Any] = call("nudge.memory_import", {**last, **fields, **transfer, "page": number})
    progress(sent + len(last["memories"]))
    return {name: value for name, value in result.items() if name != "transfer"}


def _pages(memories: Iterable[dict[str, Any]], links: Iterable[dict[str, Any]]) -> Iterator[Page]:
    """Portions that fit into a call: first the notes, then the links."""
    page: Page = {"memories": [], "links": []}
    room = limits.PAGE_BYTES
    for kind, rows in (("memories", memories), ("links", links)):
        for row in rows:
            size = len(json.dumps(row))
            if any(page.values()) and (size > room or len(page["memories"]) == limits.MAX_BULK_NOTES):
                yield page
                page, room = {"memories": [], "links": []}, limits.PAGE_BYTES
            page[kind].append(row)
            room -= size
    if any(page.values()):
        yield page
