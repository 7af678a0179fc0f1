"""Another user of the same machine, really: a process with a second uid that tries every interface."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Machine, eventually

OTHER_UID = 65_534
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become a second user, and these tests need one"
)

# It becomes somebody else only after the interpreter, which may be in a home that is closed to others, has been loaded.
_PRELUDE = f"""
import json, os, socket, sys
given = json.loads(sys.argv[1])
os.setgroups([]); os.setgid({OTHER_UID}); os.setuid({OTHER_UID})
def tried(deed, *arguments):
    try:
        return deed(*arguments)
    except OSError as error:
        return type(error).__name__
def status(link, request):
    link.settimeout(10); link.sendall(request.encode()); answer = link.recv(65_536).decode(); link.close()
    return int(answer.split(" ")[1])
"""


def as_stranger(code: str, **given: Any) -> Any:
    """What `code`, run by the other user, leaves in `result`."""
    command = [sys.executable, "-I", "-c", f"{_PRELUDE}\n{code}\nprint(json.dumps(result))", json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def lax() -> Iterator[None]:
    """A user whose umask lets everybody in: what is private must be so by its own doing."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def crowded(machine: Machine, lax: None) -> Machine:  # noqa: ARG001
    """A machine whose directories lead others up to our interface."""
    return opened_up(machine)


def opened_up(machine: Machine) -> Machine:
    machine.base.chmod(0o755)
    machine.home.chmod(0o755)
    return machine


@pytest.fixture(scope="module")
def served() -> Iterator[Machine]:
    """One with a server in it that a command started, and that holds a secret."""
    machine = opened_up(Machine())
    try:
        assert (
            machine.cli("set", "c", "k", "-", "--allow-secret", "--global", stdin="hunter2-and-more\n").returncode == 0
        )
        yield machine
    finally:
        machine.close()


def everything_in(folder: str) -> list[str]:
    return sorted(
        [
            folder,
            *(os.path.join(place, name) for place, folders, files in os.walk(folder) for name in (*folders, *files)),
        ]
    )


def test_nothing_of_ours_can_be_read_or_changed(served: Machine) -> None:
    """With a server running: no listing, no file, no socket, by any name, for reading or for writing."""
    code = """
result = {
    "list": tried(os.listdir, given["folder"]),
    "read": sorted({str(tried(lambda p: len(open(p, "rb").read()), path)) for path in given["paths"]}),
    "write": sorted({str(tried(lambda p: len(open(p, "ab").name), path)) for path in given["paths"]}),
    "remove": sorted({str(tried(os.unlink, path)) for path in given["paths"]}),
    "plant": str(tried(os.symlink, "/etc/passwd", given["folder"] + "/planted")),
    "move": str(tried(os.rename, given["folder"], given["folder"] + "2")),
    "connect": str(tried(socket.socket(socket.AF_UNIX).connect, given["socket"])),
}
"""
    paths = [path for path in everything_in(served.runtime) if not os.path.isdir(path)]
    assert len(paths) >= 5
    denied = as_stranger(code, folder=served.runtime, paths=paths, socket=served.ready().socket)
    no = "PermissionError"
    assert denied == {"list": no, "read": [no], "write": [no], "remove": [no], "plant": no, "move": no, "connect": no}
    assert served.json("get", "c", "k")["hint"]["version"] == 1


def test_the_port_is_of_no_use_without_the_token(served: Machine) -> None:
    """Anybody may connect to loopback; without the token there is nothing but name, version and role."""
    code = """
head = "Host: localhost\\r\\nContent-Type: application/json\\r\\n"
body = '{"jsonrpc":"2.0","id":1,"method":"nudge.set_hint","params":{"component":"c","key":"k","value":"planted"}}'
def ask(method, path, token=""):
    link = socket.socket(); link.connect(("127.0.0.1", given["port"]))
    shown = f"Authorization: Bearer {token}\\r\\n" if token else ""
    return status(link, f"{method} {path} HTTP/1.1\\r\\n{head}{shown}Content-Length: {len(body)}\\r\\n\\r\\n{body}")
result = [ask("POST", "/"), ask("POST", "/mcp"), ask("POST", "/role"), ask("POST", "/member"),
          ask("GET", "/api/v1/hints/export"), ask("PUT", "/api/v1/hints/c/k"), ask("POST", "/", "0" * 64),
          ask("GET", "/health")]
"""
    assert as_stranger(code, port=served.ready().port) == [401] * 7 + [200]
    assert served.json("get", "c", "k")["hint"]["version"] == 1


def test_the_kernel_says_who_is_at_the_socket(served: Machine) -> None:
    """Should somebody open the directory up, the socket still tells another user from its own."""
    published = served.ready()
    assert published.socket is not None
    Path(served.runtime).chmod(0o755)
    Path(published.socket).chmod(0o777)
    code = """
link = socket.socket(socket.AF_UNIX); link.connect(given["socket"]); link.settimeout(10)
answers = link.makefile()
result = [answers.readline(), answers.read()]
"""
    try:
        answer, rest = as_stranger(code, socket=published.socket)
        assert rest == ""
        assert json.loads(answer)["error"]["message"] == "Invalid request: this socket belongs to another user"
    finally:
        Path(served.runtime).chmod(0o700)
        Path(published.socket).chmod(0o600)


def test_what_a_process_shows_of_itself(served: Machine) -> None:
    """Every user may read a command line: the server's has no token and no value in it; its environment and memory are
    closed."""
    token = served.cli("token").stdout.strip()
    code = """
names = ("cmdline", "environ", "mem")
result = [tried(lambda: open(f"/proc/{given['pid']}/{name}", "rb").read().decode()) for name in names]
"""
    shown, environ, memory = as_stranger(code, pid=served.ready().pid)
    assert "nudge" in shown and token not in shown and "hunter2" not in shown
    assert (environ, memory) == ("PermissionError", "PermissionError")


# Planted directories


def foreign(path: Path) -> None:
    path.mkdir(mode=0o755)
    os.chown(path, OTHER_UID, OTHER_UID)


def open_to_all(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def open_to_a_group(path: Path) -> None:
    path.mkdir()
    os.chown(path, -1, OTHER_UID)
    path.chmod(0o770)


def link_to_theirs(path: Path) -> None:
    foreign(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def link_to_ours(path: Path) -> None:
    path.with_name("elsewhere").mkdir(mode=0o700)
    path.symlink_to(path.with_name("elsewhere"))


def link_to_nothing(path: Path) -> None:
    path.symlink_to(path.with_name("elsewhere"))


def no_directory(path: Path) -> None:
    path.write_text("")


PLANTS = {
    plant.__name__: plant
    for plant in (
        foreign,
        open_to_all,
        open_to_a_group,
        link_to_theirs,
        link_to_ours,
        link_to_nothing,
        no_directory,
    )
}
VERBS = (
    ["set", "c", "k", "v", "--global"],
    ["get", "c", "k"],
    ["status"],
    ["stop"],
    ["token"],
    ["serve", "--http-only"],
)


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_directory_is_refused_by_name(crowded: Machine, plant: str) -> None:
    """A runtime directory that another user could control: every command names it and says what to do; nothing is
    written there."""
    PLANTS[plant](Path(crowded.runtime))
    before = everything_in(str(crowded.base))
    for verb in VERBS:
        refused = crowded.cli(*verb)
        assert refused.returncode == 3, (verb, refused)
        assert crowded.runtime in refused.stderr, verb
        assert "NUDGE_RUNTIME_DIR" in refused.stderr or "chmod 700" in refused.stderr, (verb, refused)
    assert everything_in(str(crowded.base)) == before
    assert crowded.pids() == []


@pytest.mark.parametrize("plant", ["foreign", "link_to_ours"])
def test_a_client_is_served_without_the_planted_directory(crowded: Machine, plant: str) -> None:
    """An agent's server goes on from memory alone, says so, and leaves the planted directory as it was."""
    PLANTS[plant](Path(crowded.runtime))
    before = everything_in(str(crowded.base))
    client = crowded.serve()
    client.initialize()
    client.call("nudge_set_hint", component="c", key="k", value="v", meta={"scope": {}})
    assert client.call("nudge_get_hint", component="c", key="k")["hint"]["value"] == "v"
    client.close_stdin()
    assert client.process.wait(20) == 0
    assert client.process.stderr is not None
    assert crowded.runtime in client.process.stderr.read().decode()
    assert everything_in(str(crowded.base)) == before


def test_files_that_others_could_have_written_are_nobodys_word(crowded: Machine) -> None:
    """A token or an endpoint that belongs to another user, or that others may write, is not believed."""
    crowded.http_only()
    port = crowded.ready().port
    token_file, endpoint_file = Path(crowded.runtime) / "token", Path(crowded.runtime) / "server.pid"
    os.chown(token_file, OTHER_UID, OTHER_UID)
    assert crowded.cli("token").returncode != 0
    os.chown(token_file, 0, 0)
    assert crowded.cli("token").returncode == 0
    endpoint_file.chmod(0o666)
    assert crowded.endpoint() is None
    published: Any = eventually(crowded.endpoint, "PRIMARY publishes its endpoint anew")
    assert published.port == port


# Modes


def live(machine: Machine) -> None:
    """A whole session: a server and a proxy, hints, a rotated log, a backup, its end; the next one, and an export."""
    machine.json("set", "c", "k", "v", "--global")
    proxy = machine.serve()
    proxy.initialize()
    fill_log(machine)
    machine.json("backup")
    machine.cli("stop", "--force", "--forget")
    proxy.quit()
    machine.json("set", "c", "k", "v", "--global")
    assert machine.cli("export", "-o", str(machine.home / "nudge-export.json")).returncode == 0


def fill_log(machine: Machine) -> None:
    """Enough for a rotation, by a process that logs as the server does."""
    code = (
        "from nudge.process.diagnostics import configure_log; import logging; configure_log('info'); "
        "[logging.error('x' * 1000) for _ in range(1100)]"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=machine.environ, cwd="/", check=False, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_everything_is_owner_only(crowded: Machine) -> None:
    """0700 and 0600, whatever the umask: directories, locks, endpoint, token, change log, logs also when rotated, the
    last session,
    the database and its backups, exports."""
    crowded.use_default_directory()
    live(crowded)
    ours = [path for path in everything_in(str(crowded.base)) if "nudge" in path.removeprefix(str(crowded.base))]
    names = {os.path.basename(path) for path in ours}
    assert {
        "server.lock",
        "server.pid",
        "token",
        "changes.log",
        "previous.json",
        "nudge.log",
        "nudge.log.1",
        "nudge-export.json",
    } <= names
    modes = {path: os.lstat(path).st_mode for path in ours}
    assert {
        path: oct(mode)
        for path, mode in modes.items()
        if stat.S_IMODE(mode) != (0o700 if stat.S_ISDIR(mode) else 0o600)
    } == {}
