"""Real processes for tests: one `Machine` is one runtime directory with everything that runs in it, and ends all of
it."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import json
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from nudge.core import locks, paths
from nudge.process import endpoint
from nudge.process.endpoint import Endpoint
from nudge.settings import config
from nudge.settings.table import SERVER, SETTINGS
from tests.processes import started_in

NUDGE = [sys.executable, "-P", "-m", "nudge"]
ROOT = Path(__file__).resolve().parent.parent
_LANG = "C.UTF-8"
_TEMPORARY = os.path.realpath("/tmp")  # short: a socket path has 104 bytes
_CAN_PREPARE = sys.platform == "linux"  # it needs process descriptors and files in memory
TIMEOUT = 45.0  # seconds; an upper bound on waiting for an event, never a pause
PORTS = range(20_000, 32_768)  # below the range that the kernel takes ports of outgoing connections from (Linux, macOS)


def eventually(condition: Callable[[], Any], what: str, timeout: float = TIMEOUT) -> Any:
    """The first true value of `condition`; fails when it stays false."""
    until = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > until:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(0.005)
    return value


class PortPool:
    """TCP ports that are free, and that no other test process on this machine is given meanwhile.

    A port that was bound to 0 and closed again is anybody's, the kernel's for an outgoing connection too. Here each
    port is a byte of a shared file that its user holds a lock on; the locks go with the process, however it ends.
    """

    def __init__(self) -> None:
        path = os.path.join(tempfile.gettempdir(), f"nudge-test-ports-{os.getuid()}")
        self._locks = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._taken: set[int] = set()  # a process is never refused a byte that it holds already

    def take(self) -> int:
        for port in random.sample(PORTS, len(PORTS)):
            if port not in self._taken and self._lock(port):
                if _is_bindable(port):
                    self._taken.add(port)
                    return port
                self._unlock(port)
        raise AssertionError("no free port")

    def give_back(self, port: int) -> None:
        self._taken.discard(port)
        self._unlock(port)

    def _lock(self, port: int) -> bool:
        try:
            fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:
            return False
        return True

    def _unlock(self, port: int) -> None:
        fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, port)


def _is_bindable(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@functools.cache
def ports() -> PortPool:
    return PortPool()


def free_port() -> int:
    """A port that is this process's until it ends."""
    return ports().take()


class Stdio:
    """An MCP client on the pipes of one `nudge serve`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._buffer = b""
        self._next_id = 0

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self, timeout: float = TIMEOUT) -> dict[str, Any]:
        """The next line from the server."""
        assert self.process.stdout is not None
        until = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(until - time.monotonic(), 0))
            if not ready:
                raise AssertionError(f"no answer on stdio within {timeout} s")
            received = os.read(self.process.stdout.fileno(), 65_536)
            if not received:
                raise AssertionError("the server closed its stdout")
            self._buffer += received
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self._next_id += 1
        self.send({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": dict(params or {})})
        answer = self.receive()
        assert answer["id"] == self._next_id
        return answer

    def initialize(self) -> dict[str, Any]:
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        answer = self.request("initialize", info)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """A tool call's result object."""
        result: dict[str, Any] = self.request("tools/call", {"name": name, "arguments": arguments})["result"]
        return result

    def call(self, name: str, **arguments: Any) -> Any:
        """A tool call that must succeed; its structured content."""
        result = self.tool(name, **arguments)
        assert not result.get("isError"), result
        return result["structuredContent"]

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def quit(self) -> int:
        """What a client does when it ends: close the pipe, wait."""
        self.close_stdin()
        code = self.process.wait(TIMEOUT)
        _close_streams(self.process)
        return code


_cleaners: list[subprocess.Popen[bytes]] = []


@functools.cache
def _machines_prefix() -> str:
    """Where this process keeps its machines; they end with it, also when it is killed."""
    prefix = f"{_TEMPORARY}/nt-{os.getpid()}-"
    cleaner = subprocess.Popen(
        [sys.executable, "-I", "-S", str(ROOT / "tests/processes.py"), prefix],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    _cleaners.append(cleaner)  # its pipe stays open as long as this process lives
    return prefix


class PreparedCli:
    """Runs commands of `nudge` in forks of an interpreter that has imported it; see `tests/prepared_cli.py`."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(ROOT / "tests/prepared_cli.py"), str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "LANG": _LANG},
            cwd="/",
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        atexit.register(self._close)

    def _close(self) -> None:
        self._control.close()
        self._process.wait()

    @staticmethod
    def can_run(arguments: tuple[str, ...], environ: Mapping[str, str]) -> bool:
        """A server is found and told apart by its command line; and variables of Python's act on its start."""
        is_plain = environ["LANG"] == _LANG and not any(name.startswith(("PYTHON", "LC_")) for name in environ)
        return _CAN_PREPARE and is_plain and arguments[:1] != ("serve",)

    def run(
        self, arguments: tuple[str, ...], *, stdin: str, environ: Mapping[str, str], cwd: str
    ) -> subprocess.CompletedProcess[str]:
        with contextlib.ExitStack() as opened:
            files = [opened.enter_context(open(os.memfd_create(name), "w+b")) for name in ("stdin", "stdout", "stderr")]
            files[0].write(stdin.encode())
            files[0].seek(0)
            answers = opened.enter_context(self.start(arguments, *files, environ=environ, cwd=cwd))
            code = int(answers.makefile().readline())
            for file in files:
                file.seek(0)
            out, err = (file.read().decode() for file in files[1:])
        return subprocess.CompletedProcess([*NUDGE, *arguments], code, out, err)

    def start(
        self, arguments: tuple[str, ...], *streams: IO[bytes], environ: Mapping[str, str], cwd: str
    ) -> socket.socket:
        """Where the exit code comes; when it is closed before, the process is killed."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"!"], [theirs.fileno(), *(stream.fileno() for stream in streams)])
        command = {"argv": ["nudge", *arguments], "environ": dict(environ), "cwd": cwd}
        ours.sendall(json.dumps(command).encode() + b"\n")
        ours.settimeout(60)
        return ours


@functools.cache
def prepared_cli() -> PreparedCli:
    return PreparedCli()


class Machine:
    """One runtime directory and the processes in it."""

    def __init__(self, **environ: str) -> None:
        self.base = Path(tempfile.mkdtemp(prefix=os.path.basename(_machines_prefix()), dir=_TEMPORARY))
        self.home = self.base / "home"
        self.home.mkdir()
        self.runtime = str(self.base / "run")
        self._port = ports().take()
        self.environ = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "NUDGE_RUNTIME_DIR": self.runtime,
            "LANG": _LANG,
            "NUDGE_PORT": str(self._port),
            "NUDGE_LOG_LEVEL": "info",
            **environ,
        }
        self.processes: list[subprocess.Popen[bytes]] = []
        self._prepared_servers: list[socket.socket] = []
        self._prepared = False

    def use_default_directory(self) -> None:
        """Meet where `HOME` says: some clients hand their servers little more of the environment."""
        del self.environ["NUDGE_RUNTIME_DIR"]
        self.runtime = str(self.home / ".local/state/nudge" / paths.machine_tag())

    def store_settings(self, environ: Mapping[str, str]) -> None:
        """Store this machine's settings, since a server that a command or hook starts takes none from its
        environment."""
        if self._prepared or environ.get("NUDGE_RUNTIME_DIR", self.runtime) != self.runtime:
            return
        self._prepared = True
        if not os.path.lexists(self.runtime):
            server = [setting for setting in SETTINGS if setting.used_by == SERVER]
            named = {setting.name: self.environ.get(setting.variable) for setting in server}
            paths.ensure_private_dir(self.runtime)
            config.store(self.runtime, None, {name: text for name, text in named.items() if text is not None})

    def spawn(
        self,
        *arguments: str,
        environ: Mapping[str, str],
        stdin: int = subprocess.PIPE,
        cwd: str | None = None,
        python: str = sys.executable,
    ) -> subprocess.Popen[bytes]:
        """`python`: of another installation."""
        self.store_settings(environ)
        process = subprocess.Popen(
            [python, *NUDGE[1:], *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self.environ, **environ},
            cwd=cwd or str(self.base),
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def serve(self, *arguments: str, cwd: str | None = None, **environ: str) -> Stdio:
        return Stdio(self.spawn("serve", *arguments, cwd=cwd, environ=environ))

    def http_only(self, *arguments: str, **environ: str) -> Endpoint:
        """A PRIMARY that belongs to no client; ready when this returns."""
        self.spawn("serve", "--http-only", *arguments, stdin=subprocess.DEVNULL, environ=environ)
        return self.ready()

    def prepared_server(self, *arguments: str, **environ: str) -> Endpoint:
        """The same for a test that is not about how servers start, end or are found: it costs a tenth."""
        if not _CAN_PREPARE:
            return self.http_only(*arguments, **environ)
        self.store_settings(environ)
        with open(os.devnull, "r+b") as nothing:
            started = prepared_cli().start(
                ("serve", "--http-only", *arguments),
                *[nothing] * 3,
                environ={**self.environ, **environ},
                cwd=str(self.base),
            )
        self._prepared_servers.append(started)
        return self.ready()

    def cli(
        self, *arguments: str, cwd: str | None = None, stdin: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        self.store_settings(environ)
        whole, folder = {**self.environ, **environ}, cwd or str(self.base)
        if PreparedCli.can_run(arguments, whole):
            return prepared_cli().run(arguments, stdin=stdin, environ=whole, cwd=folder)
        return subprocess.run(
            [*NUDGE, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=whole,
            cwd=folder,
        )

    def json(self, *arguments: str, **options: Any) -> Any:
        done = self.cli(*arguments, "--json", **options)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    def endpoint(self) -> Endpoint | None:
        return endpoint.read(self.runtime)

    def ready(self) -> Endpoint:
        """The published PRIMARY, once there is one and both its interfaces are open."""

        def published() -> Endpoint | None:
            current = self.endpoint()
            ready = current is not None and current.state == endpoint.READY and current.port is not None
            return current if ready else None

        found: Endpoint = eventually(published, "a PRIMARY publishes its endpoint")
        return found

    def lock_is_free(self) -> bool:
        return locks.is_free(os.path.join(self.runtime, paths.LOCK))

    def pids(self) -> list[int]:
        """Every living process that was started with this machine's home, detached ones too."""
        return [pid for pid in started_in(str(self.home)) if pid != os.getpid()]

    def close(self) -> None:
        for server in self._prepared_servers:
            with server, contextlib.suppress(OSError):  # it may have ended
                server.shutdown(socket.SHUT_WR)
                server.makefile().readline()
        for _ in range(50):
            for pid in self.pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for process in self.processes:
                if process.poll() is None and process.returncode is None:
                    process.kill()
                process.wait()
                _close_streams(process)
            if not self.pids():
                break
        ports().give_back(self._port)
        shutil.rmtree(self.base, ignore_errors=True)


def _close_streams(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
