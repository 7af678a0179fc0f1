from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from nudge import doctor
from nudge.core import paths
from nudge.core.locks import Flock
from nudge.doctor import server
from nudge.process import server_process
from nudge.settings import config
from nudge.settings.config import Settings
from nudge.settings.table import SETTINGS
from tests.harness import free_port
from tests.unit.doctor.conftest import Make, levels, only, publish

# Lock, endpoint, socket


def test_a_lock_that_nobody_holds(make: Make) -> None:
    """A free lock is OK: the next command starts a server."""
    assert only(server.check_lock(make())).level == "ok"


@pytest.mark.usefixtures("held")
def test_a_lock_that_somebody_holds(make: Make, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoint must name the process that holds the lock."""
    assert only(server.check_lock(make())).level == "warn"
    publish(run)
    assert only(server.check_lock(make())).level == "fail"
    monkeypatch.setattr(server_process, "find_mismatch", lambda *_: None)
    assert only(server.check_lock(make())).level == "ok"


def test_a_stale_endpoint(make: Make, run: Path) -> None:
    """An endpoint whose server holds no lock is reported with its pid, and whether that process is gone or another
    program by now; `--fix` removes it."""
    publish(run)
    assert "gone (pid 4000000)" in only(server.check_endpoint(make())).message
    publish(run, pid=os.getppid())
    result = only(server.check_endpoint(make()))
    assert result.level == "warn" and "now another program" in result.message
    assert (doctor.fix([result])) == [("endpoint", "removed server.pid")]
    assert only(server.check_endpoint(make())).message == "names no server"


@pytest.mark.usefixtures("held")
def test_an_endpoint_of_a_living_server(make: Make, run: Path) -> None:
    """Its generation is shown."""
    publish(run)
    assert only(server.check_endpoint(make())).message == "names pid 4000000, ready, generation g1"


def test_an_endpoint_that_is_not_trusted(make: Make, run: Path) -> None:
    """Damaged, or writable by others: removed rather than repaired, since nobody knows who wrote it."""
    for content, mode in (("{", 0o600), ('{"pid": 7}', 0o666)):
        (run / paths.ENDPOINT).write_text(content)
        (run / paths.ENDPOINT).chmod(mode)
        result = only(server.check_endpoint(make()))
        assert result.level == "warn" and (doctor.fix([result])) == [("endpoint", f"removed {run / paths.ENDPOINT}")]


@pytest.mark.usefixtures("held")
def test_the_socket(make: Make, run: Path) -> None:
    """The path must be a socket, belong to the user and be closed to others."""
    path = run / "s-0a.sock"
    publish(run, path=str(path))
    assert only(server.check_socket(make())).level == "warn"
    path.touch()
    assert only(server.check_socket(make())).level == "fail"
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o666)
        result = only(server.check_socket(make()))
        assert result.level == "warn" and (doctor.fix([result])) == [("socket", f"chmod 600 {path}")]
        assert only(server.check_socket(make())).level == "ok"
    publish(run, path=None)
    assert "TCP" in only(server.check_socket(make())).message


def test_no_server_no_socket(make: Make) -> None:
    """Without a server there is no finding about the socket."""
    assert list(server.check_socket(make())) == []


# The port


def test_a_port_before_a_server(make: Make) -> None:
    """Free, or held by another program: then the next one will be taken."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        snapshot = make(settings=Settings({"port": other.getsockname()[1]}))
        result = only(server.check_port(snapshot))
        assert result.level == "warn" and result.look == f"lsof -nP -iTCP:{snapshot.settings.port} -sTCP:LISTEN"
    assert only(server.check_port(make())).level == "ok"


def test_a_port_with_a_server(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """OK when the server answers on it; a warning when it does not, or when it is not the configured port."""
    monkeypatch.setattr(server, "answers_health", lambda port: port != 666)
    wanted = make().settings.port
    snapshot = make(settings=Settings({"port": wanted}), status={"port": wanted})
    assert only(server.check_port(snapshot)).message == f"{wanted} is held by the server"
    for listening, words in ((None, "no free port"), (666, "does not answer")):
        assert words in only(server.check_port(make(status={"port": listening}))).message
    monkeypatch.setattr(server, "is_port_free", lambda _port: False)
    assert "another program" in only(server.check_port(make(status={"port": 4_242}))).message


@pytest.mark.parametrize(
    ("body", "is_ours"),
    [(b'{"name": "nudge"}', True), (b'{"name": "other"}', False), (b"[]", False), (b"\xff\xfe!", False)],
)
def test_another_program_on_the_port(body: bytes, is_ours: bool) -> None:
    """What answers like Nudge counts as Nudge; nothing that is sent there would be of use to another program."""
    import threading

    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            link, _ = other.accept()
            with link:
                heard.append(link.recv(65_536))
                link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

        thread = threading.Thread(target=answer)
        thread.start()
        assert server.answers_health(other.getsockname()[1]) is is_ours
        thread.join()
    assert heard[0].startswith(b"GET /health ") and b"Authorization" not in heard[0]
    assert not server.answers_health(free_port())


# Settings and server


def test_settings(make: Make, tmp_path: Path) -> None:
    """A setting that cannot be read is named with where it is set."""
    assert only(server.check_settings(make())).level == "ok"
    wrong = "NUDGE_PORT: must be 1 to 65535"
    assert (
        only(server.check_settings(make(settings_problem=wrong, environ={"NUDGE_PORT": "x"}))).fix == "unset NUDGE_PORT"
    )
    config = str(tmp_path / "config.toml")
    result = only(server.check_settings(make(settings_problem=wrong, environ={"NUDGE_CONFIG": config})))
    assert (result.level, result.fix) == ("fail", f"${{EDITOR:-vi}} {config}")
    assert only(server.check_settings(make(settings=Settings({"autostart": False})))).level == "warn"
    result = only(server.check_settings(make(settings=Settings({}, ["max_hint"]), environ={"NUDGE_CONFIG": config})))
    assert result.level == "warn" and "max_hint" in result.message and config in str(result.fix)


def test_a_variable_that_is_nearly_a_setting(make: Make) -> None:
    """A variable with almost the name of a setting is a warning with that name. Known variables are none, nor is one
    that may belong to another program."""
    known = {setting.variable: "1" for setting in SETTINGS}
    others = {"NUDGE_RUNTIME_DIR": "/r", "NUDGE_CONFIG": "/c", "NUDGE_THEIRS": "1"}
    assert only(server.check_settings(make(environ={**known, **others}))).level == "ok"
    result = only(server.check_settings(make(environ={"NUDGE_MAX_HINT": "3"})))
    assert (result.level, result.fix) == ("warn", "unset NUDGE_MAX_HINT") and "NUDGE_MAX_HINTS?" in result.message


def test_a_servers_warning_about_its_settings_is_not_repeated(make: Make) -> None:
    """The unknown names of config.toml are one finding, although a running server reports them too."""
    settings = Settings({}, ["max_hint"])
    here = make(settings=settings, status={"pid": 41, "owner": "detached", "warnings": [settings.unknown_warning]})
    assert [only(check(here)).level for check in (server.check_settings, server.check_server)] == ["warn", "ok"]


def test_settings_that_the_server_does_not_use(make: Make, run: Path) -> None:
    """They belong to its session: what this shell says otherwise is named, with how to apply it."""
    environ = {"NUDGE_RUNTIME_DIR": str(run), "NUDGE_MAX_HINTS": "7"}
    config.store(str(run), "s1", {"max_hints": "5"})
    assert only(server.check_settings(make(environ=environ))).level == "ok"
    result = only(server.check_settings(make(environ=environ, status={"port": 1})))
    assert result.level == "warn" and "NUDGE_MAX_HINTS=7 (the server has 5)" in result.message
    assert str(result.fix).startswith("nudge stop")


WELL = {"pid": 41, "owner": "client", "durability": "process", "session": {"read_only": None}, "last_error": None}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (WELL, ["ok"]),
        ({**WELL, "durability": "none"}, ["warn"]),
        ({**WELL, "durability": "none", "session": {"read_only": "a newer log"}}, ["warn"]),
        ({**WELL, "last_error": "the disk is full"}, ["warn"]),
        (None, ["ok"]),
    ],
)
def test_the_servers_own_word(make: Make, status: dict[str, Any] | None, expected: list[str]) -> None:
    """Warnings in the server's status become findings."""
    assert levels(server.check_server(make(status=status))) == expected


def test_a_server_that_says_nothing(make: Make, held: Flock) -> None:
    """A server that hangs is a failure; one that is starting is a warning."""
    assert only(server.check_server(make(silent="pid 41 does not answer"))).level == "fail"
    assert "starting" in only(server.check_server(make())).message
    held.release()
