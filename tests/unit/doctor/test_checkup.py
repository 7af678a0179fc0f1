from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from nudge import doctor as checkup
from nudge import paths
from nudge.config import Settings
from nudge.doctor import endpoints, files, past, ports, server
from nudge.doctor.finding import ok, warn
from nudge.ipc import endpoint, holder
from nudge.ipc.endpoint import Endpoint
from nudge.ipc.lock import Flock
from nudge.storage import spool
from nudge.storage.database import Database
from tests.harness import free_port

from .conftest import Make, levels, only


def publish(run: Path, *, pid: int = 4_000_000, state: str = "ready", path: str | None = None) -> None:
    endpoint.publish(str(run), Endpoint(pid, 8765, path, "2026-11-16T08:30:00.000000Z", "g1", "0.1.0", state))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# The whole


def test_a_fresh_machine_is_well(make: Make) -> None:
    """Before the first server nothing fails, and whatever is not well says what mends it."""
    findings = checkup.examine(make())
    assert "fail" not in levels(findings)
    assert all(finding.mend for finding in findings if finding.level != "ok")
    assert not any(finding.mend or finding.fix for finding in findings if finding.level == "ok")


def test_looking_changes_nothing(make: Make, run: Path) -> None:
    """An examination without a treatment leaves every file as it was; only the lock's file may come to be."""
    (run / "token").write_text("t0k3n")
    (run / "token").chmod(0o644)
    (run / "s-0a.sock").touch()
    publish(run)
    before = {path.name: (mode_of(path), path.read_bytes()) for path in run.iterdir()}
    checkup.examine(make())
    after = {path.name: (mode_of(path), path.read_bytes()) for path in run.iterdir() if path.name != paths.LOCK}
    assert after == before


def test_treatment_mends_what_is_safe(make: Make, run: Path) -> None:
    """Modes, a stale endpoint, leftovers: one treatment, and the next examination finds them well."""
    (run / "token").write_text("t0k3n")
    (run / "token").chmod(0o644)
    (run / "s-0a.sock").touch()
    publish(run)
    run.chmod(0o777)
    did = dict(checkup.treat(checkup.examine(make())))
    assert did["directory"].startswith("chmod 700") and did["token"].startswith("chmod 600")
    assert "s-0a.sock" in did["endpoint"] and "server.pid" in did["endpoint"]
    assert mode_of(run) == 0o700 and mode_of(run / "token") == 0o600 and (run / "token").read_text() == "t0k3n"
    assert not [finding for finding in checkup.examine(make()) if finding.fix is not None]


def test_a_treatment_that_fails_is_not_told_as_done() -> None:
    """What could not be mended stays a finding; the next treatment is still given."""

    def refuse() -> str:
        raise PermissionError

    findings = [
        warn("a", "m", "c", refuse),
        warn("b", "m", "c", lambda: ""),
        warn("c", "m", "c", lambda: "done"),
        ok("d", "m"),
    ]
    assert list(checkup.treat(findings)) == [("c", "done")]


def test_a_finding_on_the_wire() -> None:
    """Plain values, and whether --fix would help."""
    assert warn("port", "held", "lsof", lambda: "").to_wire() == {
        "check": "port",
        "level": "warn",
        "message": "held",
        "mend": "lsof",
        "fixable": True,
    }


# Directories and files


@pytest.mark.parametrize(
    ("mode", "level"),
    [(0o700, "ok"), (0o750, "warn"), (0o755, "warn"), (0o770, "fail"), (0o777, "fail"), (0o500, "fail")],
)
def test_the_mode_of_the_directory(make: Make, run: Path, mode: int, level: str) -> None:
    """Others may neither write nor look; the owner must be able to use it."""
    run.chmod(mode)
    found = next(iter(files.check_directories(make())))
    assert found.level == level
    assert found.mend == (None if level == "ok" else f"chmod 700 {run}")
    run.chmod(0o700)


def test_a_directory_that_is_none_of_ours(
    make: Make, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link, a file, another user's: refused, and never mended by itself."""
    (tmp_path / "link").symlink_to(run)
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        found = next(iter(files.check_directories(make(directory=str(tmp_path / name)))))
        assert (found.level, found.fix, found.mend) == ("fail", None, f"rm {tmp_path / name}")
    monkeypatch.setattr(os, "getuid", lambda: 12_345)
    found = next(iter(files.check_directories(make())))
    assert (found.level, found.fix) == ("fail", None) and "another user" in found.message


def test_a_directory_that_is_not_there(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fine where it can be made; a failure where it cannot."""
    patient = make(directory=str(tmp_path / "a" / "b"))
    assert levels(files.check_directories(patient)) == ["ok", "ok"]
    assert list(files.check_files(patient)) == []
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "cannot be made" in next(iter(files.check_directories(patient))).message


def test_files(make: Make, run: Path) -> None:
    """Each file that others could read is named; a link in a file's place is a failure."""
    assert levels(files.check_files(make())) == ["ok"]
    (run / paths.CHANGE_LOG).touch(0o644)
    (run / paths.LOCK).symlink_to(run / "elsewhere")
    wrong = list(files.check_files(make()))
    assert sorted(levels(wrong)) == ["fail", "warn"]


def test_the_fix_looks_again(make: Make, run: Path, tmp_path: Path) -> None:
    """Between look and fix somebody put a link there: what it points at keeps its mode."""
    victim = tmp_path / "victim"
    victim.touch(0o644)
    (run / paths.CHANGE_LOG).touch(0o644)
    findings = list(files.check_files(make()))
    (run / paths.CHANGE_LOG).unlink()
    (run / paths.CHANGE_LOG).symlink_to(victim)
    assert list(checkup.treat(findings)) == []
    assert mode_of(victim) == 0o644


@pytest.mark.parametrize(("mode", "level"), [(0o600, "ok"), (0o400, "ok"), (0o640, "fail"), (0o604, "fail")])
def test_the_mode_of_the_token(make: Make, run: Path, mode: int, level: str) -> None:
    """Whoever can read the token can use the port."""
    (run / "token").write_text("t0k3n")
    (run / "token").chmod(mode)
    assert only(files.check_token(make())).level == level


def test_a_token_that_others_could_write(make: Make, run: Path, held: Flock) -> None:
    """It may be somebody else's word: made anew, not repaired; and not taken from under a living server."""
    (run / "token").write_text("planted")
    (run / "token").chmod(0o666)
    assert only(files.check_token(make())).fix is None
    held.release()
    found = only(files.check_token(make()))
    assert found.level == "fail" and list(checkup.treat([found])) == [("token", f"removed {run / 'token'}")]


def test_no_token(make: Make) -> None:
    """The first server makes one; a running one whose token is gone cannot be asked by scripts."""
    assert only(files.check_token(make())).level == "ok"
    assert only(files.check_token(make(status={"pid": 1}))).level == "fail"


def test_leftovers(make: Make, run: Path, held: Flock) -> None:
    """Only what lies there while nobody holds the lock."""
    (run / "s-0a.sock").touch()
    assert list(files.check_leftovers(make())) == []
    held.release()
    assert only(files.check_leftovers(make())).message == "a server that was killed left s-0a.sock"


# Lock, endpoint, socket


def test_a_lock_that_nobody_holds(make: Make) -> None:
    """Free is well: the next command starts a server."""
    assert only(endpoints.check_lock(make())).level == "ok"


@pytest.mark.usefixtures("held")
def test_a_lock_that_somebody_holds(make: Make, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoint must name the holder."""
    assert only(endpoints.check_lock(make())).level == "warn"
    publish(run)
    assert only(endpoints.check_lock(make())).level == "fail"
    monkeypatch.setattr(holder, "doubt_about", lambda *_: None)
    assert only(endpoints.check_lock(make())).level == "ok"


def test_a_stale_endpoint(make: Make, run: Path) -> None:
    """It names a server, and nobody holds the lock: said with the pid, whether gone or somebody else's by now;
    withdrawn by --fix."""
    publish(run)
    assert "gone (pid 4000000)" in only(endpoints.check_endpoint(make())).message
    publish(run, pid=os.getppid())
    found = only(endpoints.check_endpoint(make()))
    assert found.level == "warn" and "another program now" in found.message
    assert list(checkup.treat([found])) == [("endpoint", "cleared server.pid")]
    assert only(endpoints.check_endpoint(make())).message == "names no server"


@pytest.mark.usefixtures("held")
def test_an_endpoint_of_a_living_server(make: Make, run: Path) -> None:
    """Its generation is shown."""
    publish(run)
    assert only(endpoints.check_endpoint(make())).message == "names pid 4000000, ready, generation g1"


def test_an_endpoint_that_is_not_trusted(make: Make, run: Path) -> None:
    """Damaged, or writable by others: removed rather than repaired, since nobody knows who wrote it."""
    for content, mode in (("{", 0o600), ('{"pid": 7}', 0o666)):
        (run / paths.ENDPOINT).write_text(content)
        (run / paths.ENDPOINT).chmod(mode)
        found = only(endpoints.check_endpoint(make()))
        assert found.level == "warn" and list(checkup.treat([found])) == [
            ("endpoint", f"removed {run / paths.ENDPOINT}")
        ]


@pytest.mark.usefixtures("held")
def test_the_socket(make: Make, run: Path) -> None:
    """There, a socket, ours, closed to others."""
    path = run / "s-0a.sock"
    publish(run, path=str(path))
    assert only(endpoints.check_socket(make())).level == "warn"
    path.touch()
    assert only(endpoints.check_socket(make())).level == "fail"
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o666)
        found = only(endpoints.check_socket(make()))
        assert found.level == "warn" and list(checkup.treat([found])) == [("socket", f"chmod 600 {path}")]
        assert only(endpoints.check_socket(make())).level == "ok"
    publish(run, path=None)
    assert "TCP" in only(endpoints.check_socket(make())).message


def test_no_server_no_socket(make: Make) -> None:
    """Without a server there is nothing to say about one."""
    assert list(endpoints.check_socket(make())) == []


# The port


def test_a_port_before_a_server(make: Make) -> None:
    """Free, or held by a stranger: then the next one will be taken."""
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        patient = make(settings=Settings({"port": stranger.getsockname()[1]}))
        found = only(ports.check_port(patient))
        assert found.level == "warn" and found.mend == f"lsof -nP -iTCP:{patient.settings.port} -sTCP:LISTEN"
    assert only(ports.check_port(make())).level == "ok"


def test_a_port_with_a_server(make: Make, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours when it proves that it knows the token; told when it is not the one that was wanted."""
    (run / "token").touch(0o600)
    monkeypatch.setattr(ports, "proves_itself", lambda port, _token: port != 666)
    wanted = make().settings.port
    patient = make(settings=Settings({"port": wanted}), status={"port": wanted})
    assert only(ports.check_port(patient)).message == f"{wanted} is held by the server"
    for listening, words in ((None, "no free port"), (666, "cannot prove")):
        assert words in only(ports.check_port(make(status={"port": listening}))).message
    monkeypatch.setattr(ports, "is_free", lambda _port: False)
    assert "another program" in only(ports.check_port(make(status={"port": 4_242}))).message


def test_a_stranger_never_sees_the_token() -> None:
    """What is sent to a port is a random number; an answer that is not its proof is no proof."""
    import threading

    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as stranger:

        def answer() -> None:
            link, _ = stranger.accept()
            with link:
                heard.append(link.recv(65_536))
                link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\xff\xfe!")

        thread = threading.Thread(target=answer)
        thread.start()
        assert not ports.proves_itself(stranger.getsockname()[1], "t0k3n")
        thread.join()
    assert b"/proof/" in heard[0] and b"t0k3n" not in heard[0]
    assert not ports.proves_itself(free_port(), "t0k3n") and not ports.proves_itself(free_port(), None)


# Settings and server


def test_settings(make: Make, tmp_path: Path) -> None:
    """A setting that cannot be read is named with where it is set."""
    assert only(server.check_settings(make())).level == "ok"
    wrong = "NUDGE_PORT: must be 1 to 65535"
    assert (
        only(server.check_settings(make(settings_problem=wrong, environ={"NUDGE_PORT": "x"}))).mend
        == "unset NUDGE_PORT"
    )
    config = str(tmp_path / "config.toml")
    found = only(server.check_settings(make(settings_problem=wrong, environ={"NUDGE_CONFIG": config})))
    assert (found.level, found.mend) == ("fail", f"${{EDITOR:-vi}} {config}")
    assert only(server.check_settings(make(settings=Settings({"autostart": False})))).level == "warn"
    found = only(server.check_settings(make(settings=Settings({}, ["max_hint"]), environ={"NUDGE_CONFIG": config})))
    assert found.level == "warn" and "max_hint" in found.message and config in str(found.mend)


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
    """What a server says about its troubles is repeated."""
    assert levels(server.check_server(make(status=status))) == expected


def test_a_server_that_says_nothing(make: Make, held: Flock) -> None:
    """One that hangs is a failure; one that is starting is not there yet."""
    assert only(server.check_server(make(silent="pid 41 does not answer"))).level == "fail"
    assert "starting" in only(server.check_server(make())).message
    held.release()


def test_what_waits_is_taken_in_by_a_server(make: Make, run: Path) -> None:
    """Any command that needs one starts it, unless that is turned off."""
    assert levels(past.check_spool(make())) == ["ok"]
    spool.write(str(run), {"event_id": "1"})
    assert only(past.check_spool(make())).mend == "nudge ls"
    assert only(past.check_spool(make(settings=Settings({"autostart": False})))).mend == "nudge serve"
    assert levels(past.check_spool(make(status={"pid": 41}))) == ["ok"]


def test_what_was_dropped_is_told_until_somebody_knows(make: Make, run: Path) -> None:
    """It cannot be had back: the mend is to have read it."""
    spool.count_dropped(str(run))
    _, dropped = past.check_spool(make())
    assert (
        dropped.level == "warn"
        and dropped.message.startswith("1 events were dropped")
        and dropped.mend == "nudge doctor --fix"
    )
    assert list(checkup.treat([dropped])) == [("dropped events", "the count of dropped events begins anew")]
    assert levels(past.check_spool(make())) == ["ok"]


def test_history_is_checked(tmp_path: Path, make: Make) -> None:
    """A damaged database is named with what to do; a whole one is fine; none is fine too."""
    path = tmp_path / "nudge.db"
    here = make(environ={"NUDGE_DB": str(path)})
    assert levels(past.check_history(here)) == ["ok"]
    Database.open(str(path)).close()
    assert levels(past.check_history(here)) == ["ok", "ok"]
    path.write_bytes(path.read_bytes()[:3_000] + b"\xff" * 9_000)
    assert "fail" in levels(past.check_history(here))
