"""Imports and exports in pages, against a server that is a function."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nudge import limits
from nudge.errors import Invalid, NotFound, QuotaExceeded
from nudge.ipc.pages import export_payload, import_payload

HEADER = {"schema_version": "1.0", "session_id": "s"}
REPORT = {"imported": 6, "skipped": 0, "removed": 0, "reasons": []}


def payload(keys: int = 6, variants: int = 1) -> dict[str, Any]:
    hints = [{"value": "x" * 100, "version": number} for number in range(variants)]
    return {
        **HEADER,
        "components": {"api": {"hints": {f"k{n}": hints if variants > 1 else hints[0] for n in range(keys)}}},
    }


class Server:
    """Takes imports in pages and gives exports in pages; forgets all transfers after each number of calls in `dies`."""

    def __init__(self, *dies: int) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.imported: list[dict[str, Any]] = []
        self._dies = dies
        self._transfers: dict[str, list[Any]] = {}

    def call(self, operation: str, params: dict[str, Any]) -> Any:
        self.calls.append((operation, json.loads(json.dumps(params))))
        if len(self.calls) in self._dies:
            self._transfers.clear()
        return getattr(self, operation.removeprefix("nudge."))(**params)

    def import_begin(self, header: Any, mode: str) -> Any:
        transfer = f"t{len(self.calls)}"
        self._transfers[transfer] = [header, mode]
        return {"transfer": transfer}

    def import_page(self, transfer: str, page: int, components: Any) -> Any:
        assert page == len(self._get(transfer)) - 2 and len(json.dumps(components)) < limits.PAGE_BYTES + 100
        self._transfers[transfer].append(components)
        return {"pages": page + 1, "hints": 2 * (page + 1)}

    def import_commit(self, transfer: str) -> Any:
        header, mode, *pages = self._get(transfer)
        self.imported.append({"header": header, "mode": mode, "pages": pages})
        return REPORT

    def export_page(self, cursor: str | None = None, **_params: Any) -> Any:
        if cursor is None:
            self._transfers["e"] = [payload(2), payload(4)]
        number = int(cursor or "0")
        page = self._get("e")[number]
        return {**page, "next": None if number else "1"}

    def _get(self, transfer: str) -> list[Any]:
        if transfer not in self._transfers:
            raise NotFound("not known")
        return self._transfers[transfer]


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAGE_BYTES", 400)


def test_a_small_import_is_one_call() -> None:
    """Pages are for what does not fit."""
    calls = []
    import_payload(lambda operation, params: calls.append((operation, params)), payload(), "merge")
    assert calls == [("nudge.import", {"payload": payload(), "mode": "merge"})]


@pytest.mark.parametrize("variants", [1, 5])
@pytest.mark.usefixtures("small_pages")
def test_every_hint_is_in_one_page(variants: int) -> None:
    """Also the variants of one key, which may be more than a page takes."""
    server, sizes = Server(), list[int]()
    assert import_payload(server.call, payload(6, variants), "replace", sizes.append) == REPORT
    [sent] = server.imported
    assert (sent["header"], sent["mode"]) == (HEADER, "replace") and len(sent["pages"]) >= 2
    hints = [
        (key, hint["version"])
        for page in sent["pages"]
        for key, content in page["api"]["hints"].items()
        for hint in (content if isinstance(content, list) else [content])
    ]
    assert hints == [(f"k{key}", number) for key in range(6) for number in range(variants)]
    assert sizes == sorted(sizes) and sizes


@pytest.mark.parametrize("dies", [(2,), (3,), (5,), (3, 6)])
@pytest.mark.usefixtures("small_pages")
def test_an_import_that_the_server_does_not_know_starts_again(dies: tuple[int, ...]) -> None:
    """At any page and at the commit: it is imported whole, and once."""
    server = Server(*dies)
    assert import_payload(server.call, payload(), "merge") == REPORT
    assert len(server.imported) == 1 and sum(operation == "nudge.import_begin" for operation, _ in server.calls) > 1


@pytest.mark.usefixtures("small_pages")
def test_an_import_is_not_started_for_ever() -> None:
    """A server that never knows it is an error in the end; any other error is one at once."""
    server = Server(*range(1, 100))
    with pytest.raises(NotFound):
        import_payload(server.call, payload(), "merge")
    begins = [operation for operation, _ in server.calls if operation == "nudge.import_begin"]
    assert len(begins) == limits.TRANSFER_ATTEMPTS

    def refuse(operation: str, _params: dict[str, Any]) -> Any:
        raise QuotaExceeded(operation)

    with pytest.raises(QuotaExceeded):
        import_payload(refuse, payload(), "merge")


@pytest.mark.parametrize(
    "broken", [[], {"components": []}, {"components": {"a": []}}, {"components": {"a": {"hints": 1}}}]
)
@pytest.mark.usefixtures("small_pages")
def test_what_is_no_payload_is_refused(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be split into hints is not sent."""
    monkeypatch.setattr(limits, "PAGE_BYTES", 1)
    with pytest.raises(Invalid):
        import_payload(lambda _operation, _params: None, broken, "merge")


@pytest.mark.usefixtures("small_pages")
def test_a_hint_larger_than_a_page_is_refused() -> None:
    """It is larger than any hint can be."""
    huge = {**HEADER, "components": {"api": {"hints": {"k": {"value": "x" * 500}}}}}
    with pytest.raises(Invalid) as refused:
        import_payload(Server().call, huge, "merge")
    assert refused.value.field == "payload.components.api.hints.k"


@pytest.mark.parametrize("dies", [(), (2,)])
def test_the_pages_of_an_export_are_one_payload(dies: tuple[int, ...]) -> None:
    """The variants of a key that two pages share are one list; an export that the server does not know starts again."""
    server = Server(*dies)
    exported = export_payload(server.call, {"reveal": True})
    assert exported["session_id"] == "s" and "next" not in exported
    hints = exported["components"]["api"]["hints"]
    assert {key: isinstance(hint, list) for key, hint in hints.items()} == {
        "k0": True,
        "k1": True,
        "k2": False,
        "k3": False,
    }
    assert server.calls[0] == ("nudge.export_page", {"reveal": True})
