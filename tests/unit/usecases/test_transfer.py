"""Import and export through the application: in one call, in pages, with a log behind them."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from nudge import limits, paths
from nudge.config import Sources
from nudge.errors import Invalid, NotFound, NudgeError, QuotaExceeded, StorageFailed
from nudge.ipc import pages
from nudge.server.operations import OPERATIONS
from nudge.storage.changelog import Rewrite, read_log
from nudge.usecases import staging
from nudge.usecases.app import App
from nudge.usecases.call import Call
from nudge.usecases.session import open_session

HEADER = {"schema_version": "1.0"}


def components(count: int, name: str = "api", value: str = "x", **fields: Any) -> dict[str, Any]:
    """`count` hints, a hundred in a component."""
    made: dict[str, Any] = {}
    for number in range(count):
        made.setdefault(f"{name}{number // 100}", {"hints": {}})["hints"][f"k{number:04}"] = {"value": value, **fields}
    return made


class Server:
    """An application on a directory, called as a client would."""

    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)
        self.app = App(
            open_session(self.directory, Sources(self.directory, environ={"HOME": self.directory})), OPERATIONS
        )

    async def call(self, operation: str, once: str | None = None, **params: Any) -> Any:
        return await self.app.execute(f"nudge.{operation}", params, Call(once=once))

    def names(self) -> list[str]:
        return sorted(hint.component for hint in self.app.session.store.hints())

    async def stage(self, *page_components: dict[str, Any], mode: str = "merge") -> str:
        transfer: str = (await self.call("import_begin", header=HEADER, mode=mode))["transfer"]
        for number, content in enumerate(page_components):
            await self.call("import_page", transfer=transfer, page=number, components=content)
        return transfer

    def restart(self) -> Server:
        """What a successor holds: all that is in the log, and no transfer."""
        return Server(Path(self.directory))


def run(directory: Path, work: Callable[[Server], Awaitable[None]]) -> None:
    async def main() -> None:
        await work(Server(directory))

    asyncio.run(main())


@pytest.mark.parametrize("mode", ["merge", "replace", "skip"])
def test_pages_are_imported_at_once(tmp_path: Path, mode: str) -> None:
    """Nothing is stored before the commit; then everything is, also for the next server, and the answer under its
    key."""

    async def work(server: Server) -> None:
        await server.call("set_hint", component="mine", key="k", value="x")
        transfer = await server.stage(components(150), components(150, "web"), mode=mode)
        assert server.names() == ["mine"]
        result = await server.call("import_commit", once="o", transfer=transfer)
        assert result == {"imported": 300, "skipped": 0, "removed": int(mode == "replace"), "reasons": []}
        successor = server.restart()
        for one in (server, successor):
            assert len(one.names()) == 300 + (mode != "replace")
            assert await one.call("import_commit", once="o", transfer=transfer) == result
        with pytest.raises(NotFound):
            await successor.call("import_commit", transfer=transfer)
        contents = read_log(os.path.join(server.directory, paths.CHANGE_LOG))
        assert contents is not None and not contents.torn and not contents.damaged

    run(tmp_path, work)


def test_the_commit_decides_by_the_state_of_its_moment(tmp_path: Path) -> None:
    """A hint that was set after the page counts as there."""

    async def work(server: Server) -> None:
        transfer = await server.stage(components(100), mode="skip")
        await server.call("set_hint", component="api0", key="k0000", value="mine")
        assert (await server.call("import_commit", transfer=transfer))["skipped"] == 1
        assert (await server.call("get_hint", component="api0", key="k0000"))["hint"]["value"] == "mine"

    run(tmp_path, work)


@pytest.mark.parametrize("count", [3, 300])
def test_writes_go_on_after_an_import(tmp_path: Path, count: int) -> None:
    """Both ways to commit leave a log that takes the next change."""

    async def work(server: Server) -> None:
        payload = {**HEADER, "components": components(count)}
        await server.call("import", payload=payload)
        await server.call("set_hint", component="mine", key="k", value="x")
        assert server.restart().names() == server.names() and len(server.names()) == count + 1

    run(tmp_path, work)


def test_a_repeated_page_is_taken_once(tmp_path: Path) -> None:
    """Its answer was lost; a page that is left out is refused."""

    async def work(server: Server) -> None:
        transfer = await server.stage(components(5))
        answer = await server.call("import_page", transfer=transfer, page=0, components=components(5))
        assert answer == {"pages": 1, "hints": 5}
        with pytest.raises(Invalid, match="must be 1"):
            await server.call("import_page", transfer=transfer, page=2, components=components(5, "web"))
        assert (await server.call("import_commit", transfer=transfer))["imported"] == 5

    run(tmp_path, work)


BAD_PAGES: dict[str, Any] = {
    "no object": {"api0": []},
    "an invalid hint": {"web": {"hints": {"k": {"value": ""}}}},
    "a variant of an earlier page": components(1),
}


@pytest.mark.parametrize("bad", BAD_PAGES)
def test_a_bad_page_ends_the_import(tmp_path: Path, bad: str) -> None:
    """One malformed hint refuses the whole, as in one call."""

    async def work(server: Server) -> None:
        transfer = await server.stage(components(2))
        with pytest.raises(Invalid) as refused:
            await server.call("import_page", transfer=transfer, page=1, components=BAD_PAGES[bad])
        assert str(refused.value.field).startswith("payload.components.")
        with pytest.raises(NotFound):
            await server.call("import_commit", transfer=transfer)
        assert server.names() == []

    run(tmp_path, work)


def test_a_bad_header_begins_nothing(tmp_path: Path) -> None:
    """It is checked before the first page is sent."""

    async def work(server: Server) -> None:
        for header in ({"schema_version": "9.0"}, {**HEADER, "components": {}}, {**HEADER, "more": 1}):
            with pytest.raises(Invalid):
                await server.call("import_begin", header=header)

    run(tmp_path, work)


def test_more_than_fits_is_refused_whole(tmp_path: Path) -> None:
    """The quotas hold for all pages together, and nothing of them is stored."""

    async def work(server: Server) -> None:
        transfer = await server.stage(
            *({f"c{number}": {"hints": {"k": {"value": "x"}}}} for number in range(limits.MAX_COMPONENTS + 1))
        )
        with pytest.raises(QuotaExceeded):
            await server.call("import_commit", transfer=transfer)
        assert server.names() == server.restart().names() == []

    run(tmp_path, work)


def test_a_transfer_is_dropped_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten minutes without a page; and there are only so many at once."""
    now = [1_000.0]
    monkeypatch.setattr(staging, "_now", lambda: now[0])

    async def work(server: Server) -> None:
        first = await server.stage(components(1))
        now[0] += limits.TRANSFER_KEPT + 1
        await server.app.tick()
        with pytest.raises(NotFound):
            await server.call("import_commit", transfer=first)
        staged = [await server.stage() for _ in range(limits.MAX_TRANSFERS)]
        with pytest.raises(QuotaExceeded):
            await server.stage()
        now[0] += limits.TRANSFER_IDLE + 1  # whoever began the first was interrupted
        server.app.transfers.staged_import(staged[1])
        await server.stage()
        with pytest.raises(NotFound):
            server.app.transfers.staged_import(staged[0])
        now[0] += limits.TRANSFER_KEPT + 1
        await server.stage()

    run(tmp_path, work)


def test_what_is_staged_leaves_no_file(tmp_path: Path) -> None:
    """The pages are in a file without a name: no other process finds it, and a crash leaves nothing behind."""

    async def work(server: Server) -> None:
        before = sorted(os.listdir(tmp_path))
        await server.stage(components(5))
        assert sorted(os.listdir(tmp_path)) == before

    run(tmp_path, work)


def test_secrets_of_an_import_in_pages_stay_in_memory(tmp_path: Path) -> None:
    """Neither the staged pages nor the change log has the value, and the hint is imported all the same."""

    async def work(server: Server) -> None:
        secret = components(1, "secret", "hunter22-hunter22", meta={"sensitivity": "secret"})
        transfer = await server.stage(components(2), secret)
        file = server.app.transfers.staged_import(transfer).file
        file.seek(0)
        assert file.read().count(b"\n") == 2
        file.seek(0)
        assert b"hunter22" not in file.read()
        assert (await server.call("import_commit", transfer=transfer))["imported"] == 3
        assert b"hunter22" not in (tmp_path / paths.CHANGE_LOG).read_bytes()
        hint = (await server.call("get_hint", component="secret0", key="k0000"))["hint"]
        assert hint["value"] == "hunter22-hunter22"

    run(tmp_path, work)


def full_disk(self: Rewrite, records: Any) -> None:
    del self, records
    raise StorageFailed("the disk is full")


@pytest.mark.parametrize("fault", ["disk", "role", "log removed"])
def test_a_commit_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Before the rename nothing has happened, and the commit can be tried again; a log that is gone is written anew."""

    async def work(server: Server) -> None:
        await server.call("set_hint", component="mine", key="k", value="x")
        transfer = await server.stage(components(100))
        checks = iter([None, StorageFailed("not PRIMARY any more")])

        def lose_role() -> None:
            if (error := next(checks)) is not None:
                raise error

        with monkeypatch.context() as patch:
            if fault == "disk":
                patch.setattr(Rewrite, "write", full_disk)
            elif fault == "role":
                patch.setattr(server.app, "confirm_role", lose_role)
            else:
                os.unlink(tmp_path / paths.CHANGE_LOG)
            if fault != "log removed":
                with pytest.raises(StorageFailed):
                    await server.call("import_commit", transfer=transfer)
                assert server.names() == server.restart().names() == ["mine"]
        assert (await server.call("import_commit", transfer=transfer))["imported"] == 100
        assert len(server.names()) == len(server.restart().names()) == 101

    run(tmp_path, work)


def test_a_page_that_finds_no_room_ends_the_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a page must not be committed."""

    async def work(server: Server) -> None:
        transfer = await server.stage(components(5))
        staged = server.app.transfers.staged_import(transfer)

        class Full:
            def seek(self, *_: int) -> None: ...
            def write(self, _data: bytes) -> None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            def close(self) -> None: ...

        staged.file.close()
        monkeypatch.setattr(staged, "file", Full())
        with pytest.raises(StorageFailed, match="nothing was imported"):
            await server.call("import_page", transfer=transfer, page=1, components=components(5, "web"))
        with pytest.raises(NotFound):
            await server.call("import_commit", transfer=transfer)

    run(tmp_path, work)


# Export


def test_an_export_in_pages_is_of_one_moment(tmp_path: Path) -> None:
    """Its first page pins the hints; what is written meanwhile is not in it."""

    async def work(server: Server) -> None:
        await server.call("import", payload={**HEADER, "components": components(300, value="x" * 8_000)})
        page = await server.call("export_page")
        await server.call("delete_hint", component="api2", key="k0299")
        count = 0
        while True:
            count += sum(len(content["hints"]) for content in page["components"].values())
            assert len(json.dumps(page)) <= limits.MAX_BODY_BYTES
            if page["next"] is None:
                break
            cursor = page["next"]
            page = await server.call("export_page", cursor=cursor)
        assert count == 300
        with pytest.raises(NotFound):
            await server.call("export_page", cursor=cursor)

    run(tmp_path, work)


def test_an_export_that_does_not_fit_names_the_parameter(tmp_path: Path) -> None:
    """More than 1 MiB in one call is refused; one component of it is not."""

    async def work(server: Server) -> None:
        await server.call("import", payload={**HEADER, "components": components(300, value="x" * 8_000)})
        with pytest.raises(Invalid, match=r"nudge\.export_page") as refused:
            await server.call("export")
        assert refused.value.field == "component"
        assert list((await server.call("export", component="api2"))["payload"]["components"]) == ["api2"]

    run(tmp_path, work)


@pytest.mark.parametrize("cursor", ["", "x", "x:", "x:-1", "x:1.5", "x:9999999999"])
def test_a_cursor_is_checked(tmp_path: Path, cursor: str) -> None:
    """Only the `next` of a page is one."""

    async def work(server: Server) -> None:
        with pytest.raises(NudgeError):
            await server.call("export_page", cursor=cursor)

    run(tmp_path, work)


def test_the_client_and_the_server_fit_together(tmp_path: Path) -> None:
    """What the CLI exports in pages it imports in pages, and the store is the same."""

    async def work(server: Server) -> None:
        await server.call("import", payload={**HEADER, "components": components(300, value="x" * 8_000)})

        def call(operation: str, params: dict[str, Any]) -> Any:
            return asyncio.run_coroutine_threadsafe(server.app.execute(operation, params, Call()), loop).result()

        loop = asyncio.get_running_loop()
        payload = await asyncio.to_thread(pages.export_payload, call, {})
        report = await asyncio.to_thread(pages.import_payload, call, payload, "replace")
        assert report["imported"] == 300 and report["removed"] == 0
        assert await asyncio.to_thread(pages.export_payload, call, {}) == payload

    run(tmp_path, work)
