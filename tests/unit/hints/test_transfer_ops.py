"""Import and export through the application: in one call, through a file, with a log behind them."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits, paths, transfer_files
from nudge.core.app import App
from nudge.core.call import Call
from nudge.core.errors import Invalid, NudgeError, QuotaExceeded, StorageFailed
from nudge.hints.lifetime import open_lifetime
from nudge.interfaces.operations import OPERATIONS
from nudge.settings.config import Sources
from nudge.storage.changelog import Rewrite, read_log

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
            open_lifetime(self.directory, Sources(self.directory, environ={"HOME": self.directory})), OPERATIONS
        )

    async def call(self, operation: str, request_id: str | None = None, **params: Any) -> Any:
        return await self.app.execute(f"nudge.{operation}", params, Call(request_id=request_id))

    def names(self) -> list[str]:
        return sorted(hint.component for hint in self.app.lifetime.store.hints())

    async def import_file(self, document: Any, request_id: str | None = None, **params: Any) -> Any:
        """Write the document to a file, and import that."""
        with transfer_files.reserved(self.directory) as name:
            with transfer_files.created(self.directory, name) as file:
                file.write(document if isinstance(document, bytes) else json.dumps(document).encode())
            return await self.call("import", request_id=request_id, file=name, **params)

    async def export_file(self, **params: Any) -> Any:
        with transfer_files.reserved(self.directory) as name:
            result = await self.call("export", file=name, **params)
            if result.get("file") is None:
                return result
            with transfer_files.open_written(self.directory, name) as file:
                return json.load(file)

    def restart(self) -> Server:
        """What a successor holds: all that is in the log, and no transfer."""
        return Server(Path(self.directory))


def run(directory: Path, work: Callable[[Server], Awaitable[None]]) -> None:
    async def main() -> None:
        await work(Server(directory))

    asyncio.run(main())


@pytest.mark.parametrize("mode", ["merge", "replace", "skip"])
def test_a_file_is_imported_at_once(tmp_path: Path, mode: str) -> None:
    """All of its hints are stored, also for the next server, and the answer under its key, which needs no file."""

    async def work(server: Server) -> None:
        await server.call("set_hint", component="mine", key="k", value="x")
        result = await server.import_file({**HEADER, "components": components(300)}, mode=mode)
        assert result == {"imported": 300, "skipped": 0, "removed": int(mode == "replace"), "reasons": []}
        params = {"file": "0" * 24, "mode": mode}
        with transfer_files.created(server.directory, "0" * 24) as file:
            file.write(json.dumps({"components": components(100, "web")}).encode())
        result = await server.call("import", request_id="o", **params)
        os.unlink(tmp_path / paths.TRANSFERS / ("0" * 24))
        successor = server.restart()
        for one in (server, successor):
            assert len(one.names()) == (100 if mode == "replace" else 401)
            assert await one.call("import", request_id="o", **params) == result
        with pytest.raises(Invalid, match="cannot be read"):
            await successor.call("import", **params)
        contents = read_log(os.path.join(server.directory, paths.CHANGE_LOG))
        assert contents is not None and not contents.torn and not contents.damaged

    run(tmp_path, work)


@pytest.mark.parametrize("form", ["a payload", "parameters", "an export with --json"])
def test_a_file_holds_a_payload_or_the_parameters(tmp_path: Path, form: str) -> None:
    """As the CLI and REST write it; a parameter in the file counts."""
    payload = {**HEADER, "components": {"mine": {"hints": {"k": "theirs"}}}}

    async def work(server: Server) -> None:
        await server.call("set_hint", component="mine", key="k", value="x")
        document = {
            "a payload": payload,
            "parameters": {"mode": "skip", "payload": payload},
            "an export with --json": {"payload": payload},
        }[form]
        assert (await server.import_file(document))["imported"] == (form != "parameters")

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


TWICE = '{"components": {"c": {"hints": {"a": "1", "a": "2"}}}}'
BAD_FILES: dict[str, tuple[Any, str]] = {
    "no JSON": (b'{"components": {', "Parse error"),
    "no object": (b"[]", "body: must be an object"),
    "no text": (b'{"components": "\xff"}', "invalid UTF-8"),
    "more behind the end": (b'{"components": {}} {}', "Extra data"),
    "a key twice": (TWICE.encode(), "same key twice"),
    "a value without end": (b'{"components": {"c": {"hints": {"a": "' + b"x" * (3 * limits.MIB), "more than 1024 KiB"),
    "nested too deep": (
        b'{"components": {"c": {"hints": {"a": ' + b'{"a":' * 90 + b"1" + b"}" * 90 + b"}}}}",
        "nested",
    ),
    "no components": ({**HEADER}, "payload.components: is missing"),
    "an unknown field": ({**HEADER, "components": {}, "more": 1}, "more: is not a parameter"),
    "an unknown mode": ({"payload": {"components": {}}, "mode": "x"}, "mode: must be one of"),
    "an invalid hint": (
        {"components": {**components(200), "web": {"hints": {"k": {"value": ""}}}}},
        "web.hints.k.value",
    ),
    "a newer version behind": (
        {"components": components(200), "schema_version": "9.0"},
        "schema_version: is from a newer",
    ),
    "one page": ({**HEADER, "components": components(200), "next": "t:200"}, "one page of an export.*nudge export -o"),
}


@pytest.mark.parametrize("bad", BAD_FILES)
def test_a_bad_file_imports_nothing(tmp_path: Path, bad: str) -> None:
    """One fault refuses the whole, wherever it is, as in one call."""
    document, said = BAD_FILES[bad]

    async def work(server: Server) -> None:
        with pytest.raises(NudgeError, match=said):
            await server.import_file(document)
        assert server.names() == server.restart().names() == []

    run(tmp_path, work)


def test_more_than_fits_is_refused_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The quotas hold for all of a file, and nothing of it is stored."""
    many = {f"c{number}": {"hints": {"k": "x"}} for number in range(limits.MAX_COMPONENTS + 1)}

    async def work(server: Server) -> None:
        for most in (limits.MAX_IMPORTED_HINTS, 10):
            monkeypatch.setattr(limits, "MAX_IMPORTED_HINTS", most)
            with pytest.raises(QuotaExceeded):
                await server.import_file({"components": many})
        assert server.names() == server.restart().names() == []

    run(tmp_path, work)


@pytest.mark.parametrize("name", ["", "../changes.log", "/etc/passwd", "0" * 23 + "/", "0" * 24])
def test_only_a_file_of_the_folder_is_read(tmp_path: Path, name: str) -> None:
    """A name cannot lead elsewhere, and there must be a file."""

    async def work(server: Server) -> None:
        with pytest.raises(Invalid) as refused:
            await server.call("import", file=name)
        assert refused.value.field == "file"

    run(tmp_path, work)


def test_a_file_that_is_not_ours_alone_is_not_read(tmp_path: Path) -> None:
    """A link, a pipe and a file that others may read are refused."""
    folder, name = tmp_path / paths.TRANSFERS, "0" * 24

    async def work(server: Server) -> None:
        folder.mkdir(mode=0o700)
        (tmp_path / "elsewhere").write_text('{"components": {}}')
        makers: tuple[Callable[[], object], ...] = (
            lambda: (folder / name).symlink_to(tmp_path / "elsewhere"),
            lambda: os.mkfifo(folder / name, 0o600),
            lambda: (folder / name).touch(0o644),
        )
        for make in makers:
            make()
            with pytest.raises(Invalid):
                await server.call("import", file=name)
            (folder / name).unlink()

    run(tmp_path, work)


def test_a_file_that_was_left_is_removed(tmp_path: Path) -> None:
    """Whoever was killed removes none: each start and each minute removes what is older than any call."""

    async def work(server: Server) -> None:
        for name in ("0" * 24, "1" * 24):
            with transfer_files.created(server.directory, name):
                pass
        os.utime(tmp_path / paths.TRANSFERS / ("0" * 24), (0, 0))
        await server.app.tick()
        assert os.listdir(tmp_path / paths.TRANSFERS) == ["1" * 24]

    run(tmp_path, work)


def test_secrets_of_a_file_are_not_logged(tmp_path: Path) -> None:
    """The change log has no value of a secret, and the hint is imported all the same; the file is gone."""

    async def work(server: Server) -> None:
        secret = components(100, "secret", "hunter22-hunter22", meta={"sensitivity": "secret"})
        assert (await server.import_file({"components": secret}))["imported"] == 100
        hint = (await server.call("get_hint", component="secret0", key="k0000"))["hint"]
        assert hint["value"] == "hunter22-hunter22"
        assert b"hunter22" not in (tmp_path / paths.CHANGE_LOG).read_bytes()
        assert os.listdir(tmp_path / paths.TRANSFERS) == []

    run(tmp_path, work)


def full_disk(self: Rewrite, records: Any) -> None:
    del self, records
    raise StorageFailed("the disk is full")


@pytest.mark.parametrize("fault", ["disk", "role", "log removed"])
def test_a_commit_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Before the rename nothing has happened, and the commit can be tried again; a log that is gone is written anew."""

    async def work(server: Server) -> None:
        await server.call("set_hint", component="mine", key="k", value="x")
        payload = {"components": components(100)}
        checks = iter([None, StorageFailed("not PRIMARY any more")])

        def lose_role() -> None:
            if (error := next(checks)) is not None:
                raise error

        with monkeypatch.context() as patch:
            if fault == "disk":
                patch.setattr(Rewrite, "write", full_disk)
            elif fault == "role":
                patch.setattr(server.app.changes, "confirm_role", lose_role)
            else:
                os.unlink(tmp_path / paths.CHANGE_LOG)
            if fault != "log removed":
                with pytest.raises(StorageFailed):
                    await server.import_file(payload)
                assert server.names() == server.restart().names() == ["mine"]
        assert (await server.import_file(payload))["imported"] == 100
        assert len(server.names()) == len(server.restart().names()) == 101

    run(tmp_path, work)


# Export


LARGE = {**HEADER, "components": components(300, value="x" * 8_000)}


def test_an_export_that_does_not_fit_names_the_command(tmp_path: Path) -> None:
    """More than 1 MiB in one answer is refused; one component of it is not."""

    async def work(server: Server) -> None:
        await server.import_file(LARGE)
        with pytest.raises(Invalid, match=r"nudge export -o FILE") as refused:
            await server.call("export")
        assert refused.value.field == "component"
        assert list((await server.call("export", component="api2"))["payload"]["components"]) == ["api2"]

    run(tmp_path, work)


def test_a_large_export_is_a_file_of_its_owner(tmp_path: Path) -> None:
    """A small one is the answer, although it names a file."""

    async def work(server: Server) -> None:
        assert "payload" in await server.call("export", file="0" * 24)
        assert not (tmp_path / paths.TRANSFERS).exists()
        await server.import_file(LARGE)
        assert await server.call("export", file="0" * 24) == {"file": "0" * 24}
        assert (tmp_path / paths.TRANSFERS / ("0" * 24)).stat().st_mode & 0o777 == 0o600
        assert await server.call("export", file="0" * 24) == {"file": "0" * 24}  # the first answer was lost

    run(tmp_path, work)


def test_an_export_that_finds_no_room_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is told that the disk is full."""

    def full(_piece: str) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def work(server: Server) -> None:
        await server.import_file(LARGE)
        monkeypatch.setattr("nudge.hints.transfer_ops.import_export.export_pieces", lambda *_: map(full, "x"))
        with pytest.raises(StorageFailed, match=r"No space left on device.*nothing was changed"):
            await server.call("export", file="0" * 24)
        assert os.listdir(tmp_path / paths.TRANSFERS) == []

    run(tmp_path, work)


def test_what_is_exported_can_be_imported(tmp_path: Path) -> None:
    """The store is the same, of the moment when the export began."""

    async def work(server: Server) -> None:
        await server.import_file(LARGE)
        document = await server.export_file()
        await server.call("delete_hint", component="api2", key="k0299")
        report = await server.import_file(document, mode="replace")
        assert (report["imported"], report["removed"]) == (300, 0)
        assert (await server.export_file())["payload"]["components"] == document["payload"]["components"]

    run(tmp_path, work)
