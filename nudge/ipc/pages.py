"""The client's side of imports and exports in pages. Standard library only.

`call(operation, parameters)` returns an operation's result, as `Client.call` does.
"""

from __future__ import annotations

import json

from nudge import limits
from nudge.errors import Invalid, NotFound, NudgeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Call = Callable[[str, dict[str, Any]], Any]
    Progress = Callable[[int], None]


def import_payload(call: Call, payload: Any, mode: str, progress: Progress = lambda _hints: None) -> Any:
    """Import a payload of any size, all or nothing, and return the result of `nudge.import`. `progress` is called with
    the number of hints sent so far."""
    if _size(payload) <= limits.PAGE_BYTES:
        return call("nudge.import", {"payload": payload, "mode": mode})
    header, pages = _split(payload)
    return restart_when_unknown(lambda: _send(call, header, pages, mode, progress))


def _send(call: Call, header: Any, pages: list[Any], mode: str, progress: Progress) -> Any:
    transfer = call("nudge.import_begin", {"header": header, "mode": mode})["transfer"]
    for number, components in enumerate(pages):
        params = {"transfer": transfer, "page": number, "components": components}
        progress(call("nudge.import_page", params)["hints"])
    return call("nudge.import_commit", {"transfer": transfer})


def export_payload(call: Call, params: dict[str, Any]) -> Any:
    """Return the payload of an export of any size. `params` may have `component` and `reveal`."""
    return restart_when_unknown(lambda: _receive(call, params))


def restart_when_unknown(transfer: Callable[[], Any]) -> Any:
    """Run a transfer, and start it again when the server does not know it: after a server died, the next one has none
    of its transfers."""
    for _ in range(limits.TRANSFER_ATTEMPTS - 1):
        try:
            return transfer()
        except NudgeError as error:
            if error.reason != NotFound.reason:
                raise
    return transfer()


def _receive(call: Call, params: dict[str, Any]) -> Any:
    page = call("nudge.export_page", params)
    payload = {**{name: content for name, content in page.items() if name != "next"}, "components": {}}
    while True:
        for component, key, hint in _entries(page["components"]):
            _merge(payload["components"], component, key, hint)
        if page["next"] is None:
            return payload
        page = call("nudge.export_page", {"cursor": page["next"]})


def _split(payload: Any) -> tuple[Any, list[Any]]:
    """Return the payload's other fields, and its components in pages that each fit into one call. Raises Invalid."""
    if not isinstance(payload, dict) or not isinstance(payload.get("components"), dict):
        raise Invalid("must be an object with components", field="payload")
    pages: list[Any] = [{}]
    room = limits.PAGE_BYTES
    for component, key, hint in _entries(payload["components"]):
        size = _size([component, key, hint])
        if size > limits.PAGE_BYTES:
            raise Invalid("is larger than the limit for a hint", field=f"payload.components.{component}.hints.{key}")
        if size > room:
            pages.append({})
            room = limits.PAGE_BYTES
        room -= size
        _merge(pages[-1], component, key, hint)
    return {name: content for name, content in payload.items() if name != "components"}, pages


def _entries(components: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield component, key and hint of each variant."""
    for component, content in components.items():
        hints = content.get("hints") if isinstance(content, dict) and list(content) == ["hints"] else None
        if not isinstance(hints, dict):
            raise Invalid("must be an object with hints", field=f"payload.components.{component}")
        for key, hint in hints.items():
            yield from ((component, key, variant) for variant in (hint if isinstance(hint, list) else [hint]))


def _merge(components: dict[str, Any], component: str, key: str, hint: Any) -> None:
    """Add a hint; several variants of a key make a list."""
    hints = components.setdefault(component, {"hints": {}})["hints"]
    present = hints.get(key)
    if present is None:
        hints[key] = hint
    elif isinstance(present, list):
        present.append(hint)
    else:
        hints[key] = [present, hint]


def _size(content: Any) -> int:
    return len(json.dumps(content))
