"""The page of `nudge open`: who gets in, what its files may do in a browser, and the stream of what happens."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits, paths
from nudge.page import files
from nudge.page.sign_in import SignIn
from tests.harness import TIMEOUT, Machine, eventually


class Page:
    """A browser tab: the page's own requests."""

    def __init__(self, port: int, secret: str | None = None) -> None:
        self.port, self.secret = port, secret

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        sent = {"Authorization": f"Bearer {self.secret}"} if self.secret else {}
        if body is not None:
            sent["Content-Type"] = "application/json"
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), {**sent, **headers})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def status(self) -> int:
        return self.ask("GET", "/api/v1/status")[0]

    def trade(self, code: str) -> int:
        status, _, body = self.ask("POST", "/page/sign-in", {"code": code})
        if status == 200:
            self.secret = json.loads(body)["secret"]
        return status


def port_of(machine: Machine) -> int:
    port = machine.ready().port
    assert port is not None
    return port


def code_of(address: str) -> str:
    return address.partition("#code=")[2]


def signed_in(machine: Machine) -> Page:
    page = Page(port_of(machine))
    assert page.trade(code_of(machine.json("open")["address"])) == 200
    return page


def restart(machine: Machine, *arguments: str) -> None:
    """Start the next server, and wait until it has published itself in place of the last one."""
    before = machine.endpoint()
    machine.prepared_server(*arguments)
    eventually(lambda: (now := machine.endpoint()) and before and now.pid != before.pid, "the next server is there")
    machine.ready()


@pytest.fixture
def machine() -> Iterator[Machine]:
    one = Machine()
    try:
        yield one
    finally:
        one.close()


def test_open_hands_the_code_over_in_a_file_of_the_owner(machine: Machine) -> None:
    """`nudge open` gives the browser a file that only its owner can read; the code is in no argument, and not in the
    address that any server sees."""
    machine.prepared_server()
    opened = machine.base / "opened"
    browser = machine.base / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$@" > {opened}.tmp; cp "$(echo "$1" | cut -c8-)" {opened}.html\nmv {opened}.tmp {opened}\n'
    )
    browser.chmod(0o700)
    done = machine.cli("open", BROWSER=f"{browser} %s")
    assert done.returncode == 0, done.stderr
    (argument,) = Path(eventually(lambda: opened.exists() and opened, "the browser was started")).read_text().split()
    assert argument.startswith(f"file://{machine.runtime}/open-") and argument.endswith(".html")
    file = Path(argument.removeprefix("file://"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    content = Path(f"{opened}.html").read_text()
    address = content.partition("url=")[2].partition('"')[0]
    assert address.startswith(f"http://127.0.0.1:{port_of(machine)}/#code=")
    assert code_of(address) not in argument + done.stdout + done.stderr
    assert Page(port_of(machine)).trade(code_of(address)) == 200
    assert not file.exists()


def test_without_a_browser_the_address_is_printed(machine: Machine) -> None:
    """Over ssh there is no browser: the address goes to the terminal, which only its user reads."""
    machine.prepared_server()
    done = machine.cli("open", "--print")
    assert done.stdout.startswith(f"http://127.0.0.1:{port_of(machine)}/#code=")
    assert "within 60 seconds" in done.stderr
    assert Page(port_of(machine)).trade(code_of(done.stdout.strip())) == 200


def test_the_secret_opens_every_operation(machine: Machine) -> None:
    """What the token opens, the secret opens; nothing else does, and the token is in no file of the page."""
    machine.prepared_server()
    page = Page(port_of(machine))
    assert page.status() == 401
    page = signed_in(machine)
    assert page.status() == 200
    token = machine.json("token")["token"]
    assert page.secret is not None and page.secret != token
    stored = (Path(machine.runtime) / paths.PAGE).read_text()
    assert page.secret not in stored and token not in stored
    assert stat.S_IMODE((Path(machine.runtime) / paths.PAGE).stat().st_mode) == 0o600
    wrong = "0" * 64
    for secret in (wrong, page.secret[:-1], page.secret + "0", page.secret.upper(), ""):
        assert Page(page.port, secret).status() == 401


def test_a_code_works_once(machine: Machine) -> None:
    """A second trade of the same code is refused with what to do next; and the first secret stays good."""
    machine.prepared_server()
    code, page = code_of(machine.json("open")["address"]), Page(port_of(machine))
    assert page.trade(code) == 200
    status, _, body = page.ask("POST", "/page/sign-in", {"code": code})
    assert status == 403 and "nudge open" in json.loads(body)["error"]
    odd: Any
    for odd in ({"code": None}, {"code": ""}, {"code": ["x"]}, {}, [], "x", {"code": "\ud800"}):
        assert Page(page.port).ask("POST", "/page/sign-in", odd)[0] in (400, 403)
    assert page.status() == 200


def test_a_late_code_and_an_old_secret_are_refused(tmp_path: Path) -> None:
    """A code is good for a minute, a secret for hours since its last use; a use is written down."""
    os.chmod(tmp_path, 0o700)
    sign_in = SignIn(str(tmp_path), 1234)
    address, file = sign_in.make_code(1000.0)
    assert sign_in.trade(code_of(address), 1000.0 + limits.PAGE_CODE_SECONDS) is None
    sign_in.remove_openers(1000.0 + limits.PAGE_CODE_SECONDS)
    assert not os.path.exists(file)
    secret = sign_in.trade(code_of(sign_in.make_code(2000.0)[0]), 2001.0)
    shown = f"Bearer {secret}"
    used = 2001.0 + limits.PAGE_SECRET_SECONDS - 1
    assert sign_in.accepts(shown, used)
    assert SignIn(str(tmp_path), 1234).accepts(shown, used + limits.PAGE_SECRET_SECONDS - 1)
    assert not SignIn(str(tmp_path), 1234).accepts(shown, used + 2 * limits.PAGE_SECRET_SECONDS)
    assert not SignIn(str(tmp_path), 1235).accepts(shown, used)


def test_tabs_are_limited_and_a_damaged_file_signs_out(tmp_path: Path) -> None:
    """For one tab too many the one that was idle longest is signed out; a file that cannot be read admits nobody."""
    os.chmod(tmp_path, 0o700)
    sign_in = SignIn(str(tmp_path), 1)
    secrets = [
        sign_in.trade(code_of(sign_in.make_code(float(number))[0]), float(number))
        for number in range(limits.MAX_PAGE_SECRETS + 1)
    ]
    accepted = [sign_in.accepts(f"Bearer {secret}", 50.0) for secret in secrets]
    assert accepted == [False] + [True] * limits.MAX_PAGE_SECRETS
    (tmp_path / paths.PAGE).write_text('{"entries": [{"kind": "secret"}]}')
    assert not sign_in.accepts(f"Bearer {secrets[-1]}", 50.0)


def test_the_secret_outlives_a_killed_server_on_its_port(machine: Machine) -> None:
    """The next server on the same port goes on with the same tab; `stop --forget` signs it out."""
    machine.prepared_server()
    page = signed_in(machine)
    os.kill(machine.ready().pid, signal.SIGKILL)
    eventually(machine.lock_is_free, "the server is gone")
    restart(machine)
    assert port_of(machine) == page.port and page.status() == 200
    machine.cli("stop", "--forget")
    eventually(machine.lock_is_free, "the server is gone")
    restart(machine)
    assert page.status() == 401


def test_the_secret_ends_with_the_port(machine: Machine) -> None:
    """Another program has the port: the next server takes another one, and the old secret, which the page may have
    sent to that program, is good nowhere, not even when the old port is free again."""
    machine.prepared_server()
    page = signed_in(machine)
    machine.cli("stop")
    eventually(machine.lock_is_free, "the server is gone")
    with socket.create_server(("127.0.0.1", page.port)):
        restart(machine)
        moved = Page(port_of(machine), page.secret)
        assert moved.port != page.port and moved.status() == 401
    machine.cli("stop")
    eventually(machine.lock_is_free, "the server is gone")
    restart(machine, "--port", str(page.port))
    assert port_of(machine) == page.port and page.status() == 401


def test_only_files_and_the_exchange_need_no_secret(machine: Machine) -> None:
    """Without token or secret a browser gets the page, which says how to get in, and nothing that is stored."""
    machine.prepared_server()
    page = Page(port_of(machine))
    for path, file in files.load().items():
        status, headers, body = page.ask("GET", path)
        assert (status, body) == (200, file.content)
        assert headers["content-type"] == file.content_type and headers["x-content-type-options"] == "nosniff"
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert "require-trusted-types-for 'script'; trusted-types lit-html" in policy
        assert headers["x-frame-options"] == "DENY"
        assert not [name for name in headers if name.startswith("access-control")]
        assert page.ask("GET", path, **{"If-None-Match": headers["etag"]})[0] == 304
    assert page.ask("GET", "/page/../page.css")[0] == 404
    assert page.ask("GET", "/page/nothing")[0] == 404
    for path in ("/api/v1/status", "/api/v1/stream", "/api/v1/changes", "/api/v1/openapi.json", "/pages"):
        assert page.ask("GET", path)[0] == 401
    assert page.ask("POST", "/", {"jsonrpc": "2.0", "id": 1, "method": "nudge.status", "params": {}})[0] == 401
    assert page.ask("POST", "/page/code", {})[0] == 401
    assert sum(len(file.content) for file in files.load().values()) < 150_000


def test_foreign_pages_are_refused_with_a_code_and_with_a_secret(machine: Machine) -> None:
    """DNS rebinding, another site's fetch and a form get nothing, whatever they know, and use up no code."""
    machine.prepared_server()
    code, page = code_of(machine.json("open")["address"]), Page(port_of(machine))
    evil = {"Origin": "http://evil.example"}
    assert page.ask("POST", "/page/sign-in", {"code": code}, **evil)[0] == 403
    assert page.ask("POST", "/page/sign-in", {"code": code}, Host="evil.example")[0] == 421
    form = {"Content-Type": "text/plain"}
    assert page.ask("POST", "/page/sign-in", {"code": code}, **form)[0] == 415
    assert page.ask("GET", "/", Host=f"evil.example:{page.port}")[0] == 421
    assert page.trade(code) == 200
    assert page.ask("GET", "/api/v1/status", **evil)[0] == 403
    assert page.ask("GET", "/api/v1/stream", **evil)[0] == 403
    assert page.ask("GET", "/api/v1/status", Host="evil.example")[0] == 421
    assert page.ask("OPTIONS", "/page/sign-in", **evil)[0] == 403


# The stream


class Stream:
    """The event stream, read line by line as the page does."""

    def __init__(self, page: Page, **seen: int) -> None:
        query = "&".join(f"{name}={number}" for name, number in seen.items())
        self._socket = socket.create_connection(("127.0.0.1", page.port), TIMEOUT)
        head = f"GET /api/v1/stream?{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {page.secret}\r\n\r\n"
        self._socket.sendall(head.encode())
        self._answer = http.client.HTTPResponse(self._socket)
        self._answer.begin()
        assert self._answer.status == 200

    def message(self) -> dict[str, Any]:
        """The next line that says something."""
        while True:
            line = self._answer.readline()
            if not line:
                raise ConnectionError("the stream ended")
            if line.strip():
                found: dict[str, Any] = json.loads(line)
                return found

    def until_observation(self, text: str) -> list[str]:
        """The texts of what was recorded, up to the one with this text."""
        texts: list[str] = []
        while text not in texts:
            texts += [row["content_preview"] for row in self.message().get("observations", ())]
        return texts

    def close(self) -> None:
        self._answer.close()
        self._socket.close()


def record(machine: Machine, number: int) -> None:
    event = {
        "event_id": f"e-{number}",
        "type": "command",
        "session_id": "s-1",
        "timestamp": int(time.time()),
        "content": f"make step{number}",
    }
    with closing(http.client.HTTPConnection("127.0.0.1", port_of(machine), timeout=TIMEOUT)) as connection:
        token = (Path(machine.runtime) / paths.TOKEN).read_text()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", "/api/v1/events", json.dumps({"event": event}), headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()


def test_the_stream_tells_what_is_recorded_and_what_changed(machine: Machine) -> None:
    """An observation comes with its id; of a hint it is only said that hints changed."""
    machine.prepared_server()
    stream = Stream(signed_in(machine))
    first = stream.message()
    assert first["observations"] == [] and first["at"]["observation"] == 0
    record(machine, 1)
    assert stream.until_observation("make step1") == ["make step1"]
    machine.cli("set", "--global", "api", "test", "make test")
    while "hints" not in (changed := stream.message().get("changed", [])):
        assert changed is not None
    stream.close()


def test_after_a_kill_nothing_is_missed_and_nothing_comes_twice(machine: Machine) -> None:
    """The page comes back to the next server with the numbers that it has seen."""
    machine.prepared_server()
    page = signed_in(machine)
    stream = Stream(page)
    stream.message()
    record(machine, 1)
    message = stream.message()
    while not message.get("observations"):
        message = stream.message()
    os.kill(machine.ready().pid, signal.SIGKILL)
    with pytest.raises(ConnectionError):
        stream.until_observation("what nobody records")
    stream.close()
    eventually(machine.lock_is_free, "the server is gone")
    restart(machine)
    record(machine, 2)
    again = Stream(page, **message["at"])
    assert again.until_observation("make step2") == ["make step2"]
    again.close()


def open_streams(machine: Machine, pid: int) -> int:
    """Connections of the server on its port."""
    port = f":{port_of(machine):04X}"
    tables = [Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return sum(row.split()[1].endswith(port) and row.split()[3] in ("01", "08") for table in tables for row in table)


@pytest.mark.skipif(not os.path.exists("/proc/self/net/tcp"), reason="counts connections in /proc")
def test_fifty_reloads_leave_no_connection(machine: Machine) -> None:
    """A tab that is reloaded closes its stream, and so does the server."""
    machine.prepared_server()
    page = signed_in(machine)
    for _ in range(50):
        stream = Stream(page)
        stream.message()
        stream.close()
    pid = machine.ready().pid
    eventually(lambda: open_streams(machine, pid) == 0, "the server has closed every connection")


def test_a_reader_that_does_not_read_holds_nobody_up(machine: Machine) -> None:
    """While one page reads nothing, what is recorded reaches another at once."""
    machine.prepared_server()
    page = signed_in(machine)
    slow, quick = Stream(page), Stream(page)
    quick.message()
    for number in range(30):
        record(machine, number)
    assert len(quick.until_observation("make step29")) == 30
    slow.close()
    quick.close()


def test_the_stream_ends_with_its_server(machine: Machine) -> None:
    """A server that stops does not wait for the pages that are open."""
    machine.prepared_server()
    stream = Stream(signed_in(machine))
    stream.message()
    ended = threading.Event()

    def read() -> None:
        try:
            while True:
                stream.message()
        except (ConnectionError, OSError, http.client.HTTPException):
            stream.close()
            ended.set()

    threading.Thread(target=read, daemon=True).start()
    started = time.monotonic()
    assert machine.cli("stop").returncode == 0
    assert ended.wait(TIMEOUT)
    assert time.monotonic() - started < 10
