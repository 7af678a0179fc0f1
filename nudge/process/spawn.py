"""Starting servers. A process that needs a PRIMARY and finds none starts one; of many that wait, exactly one does.

The start lock decides who. Its holder keeps it until PRIMARY's lock is taken or its child has exited. It is polled,
never waited on: the starter, or its child, may be stopped, so that after `START_LOCK_TIMEOUT` another process may
start.
"""

from __future__ import annotations

import os
import sys
import time

from nudge import __version__
from nudge.core import files, limits, locks, paths, thin_json
from nudge.core.clock import boot_seconds, poll_until
from nudge.core.errors import StorageFailed, Unavailable
from nudge.process import endpoint, server_process
from nudge.process.connection import Connection, ConnectionLost, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    import threading
    from collections.abc import Callable, Mapping, Sequence

    from nudge.process.endpoint import Endpoint

_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.025
_WAITING_PAUSE = 0.05  # of those who do not start: 40 of them must not take the processor from the one who does
_START_LOCKS = 5  # one more each time that the holder of the one before is stopped

# What a server gets of its starter's environment. The rest stays behind: a detached process would keep it for hours,
# and settings belong to the session, not to the process that starts its next server.
_PASSED = ("HOME", "LANG", "LOGNAME", "NUDGE_CONFIG", "NUDGE_RUNTIME_DIR", "PATH", "SYSTEMROOT", "TZ", "USER")
_PASSED_PREFIXES = ("LC_", "PYTHON", "USERPROFILE", "VIRTUAL_ENV")


def _is_new(held_since: float | None) -> bool:
    """Whether the holder of the lock has yet to replace the endpoint of the last one, which may say `ready`."""
    return held_since is not None and boot_seconds() - held_since < limits.CALL_TIMEOUT


def _replace_older(directory: str, connection: Connection) -> threading.Thread | None:
    """Start the successor of a PRIMARY of an older version; None for another one, and where none can be started."""
    if not endpoint.is_newer(__version__, connection.endpoint.version or ""):
        return None
    return start_successor(directory, connection.endpoint.generation)


def ensure_primary(
    directory: str,
    *,
    start: bool = True,
    timeout: float = limits.START_TIMEOUT,
    port: int | None = None,
    arguments: Sequence[str] = (),
    for_new: Mapping[str, str] | None = None,
    wait_for_upgrade: bool = False,
    on_started: Callable[[Endpoint], None] = lambda _: None,
) -> Connection:
    """Return an open connection to the PRIMARY. With `start`, one is started when there is none, on `port` if given,
    with these `arguments` for `nudge serve`, and with the settings `for_new` (text by name) if it begins a session;
    `on_started` is then called with its endpoint.

    Raises Unavailable: at once, with its pid, for a running PRIMARY that does not accept; after `timeout` seconds for
    one that is starting or handing over. A PRIMARY of an older version is replaced; with `wait_for_upgrade` the
    connection is to the new one.
    """
    if start:
        paths.ensure_private_dir(directory)
    starter = Starter(directory, port=port, arguments=arguments, for_new=for_new)
    try:
        while True:
            connection = _wait_for_primary(directory, starter, timeout, start=start)
            successor = _replace_older(directory, connection) if start else None
            if successor is None or not wait_for_upgrade:
                break
            connection.close()
            successor.join(limits.CALL_TIMEOUT)
            wait_for_upgrade = False
    except OSError as error:  # no process, descriptor or file can be had, or the directory is gone
        raise Unavailable(f"no Nudge server could be started: {error.strerror or error}; see: nudge doctor") from None
    finally:
        starter.release()
    if starter.has_started:
        on_started(connection.endpoint)
    return connection


def _wait_for_primary(directory: str, starter: Starter, timeout: float, *, start: bool) -> Connection:
    began = boot_seconds()
    held_since = None  # when the lock was first seen held
    pause = _FIRST_PAUSE
    while True:
        published = endpoint.read(directory)
        connection = _try_connect(directory, published)
        if connection is not None:
            return connection
        if not locks.is_free(os.path.join(directory, paths.LOCK)):
            starter.release()
            held_since = held_since or boot_seconds()
        elif start:
            starter.poll(published)
            held_since = None
        else:
            raise Unavailable("no Nudge server is running; start one with: nudge serve --daemon")
        is_starting = starter.is_waiting or _is_new(held_since)
        _check_timeout(boot_seconds() - began, timeout, published, starting=is_starting)
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE if starter.holds_lock else _WAITING_PAUSE)


def _try_connect(directory: str, published: Endpoint | None) -> Connection | None:
    if published is None or published.state != endpoint.READY:
        return None
    try:
        return Connection(published, endpoint.read_token(directory))
    except ConnectionLost:
        return None
    except TimedOut:
        error = no_answer(published)
    except Unavailable as refused:
        error = refused
    if published.socket is None and locks.is_free(os.path.join(directory, paths.LOCK)):
        return None  # the server was killed, and another program has its port
    raise error


def no_answer(published: Endpoint) -> Unavailable:
    """Return the error for a server that runs and does not answer."""
    return Unavailable(
        f"the Nudge server (pid {published.pid}) does not answer; "
        "look at it with: nudge status, or end it with: nudge stop --force",
        pid=published.pid,
    )


def has_just_started(directory: str, published: Endpoint) -> bool:
    """Whether a server that did not answer in time has just started and is not suspended: on a busy machine its first
    calls may take longer, so they are sent again."""
    try:
        age = time.time() - os.lstat(os.path.join(directory, paths.ENDPOINT)).st_mtime
    except OSError:
        return False
    return 0.0 <= age < limits.START_TIMEOUT and not server_process.is_suspended(published.pid)


def _check_timeout(waited: float, timeout: float, published: Endpoint | None, *, starting: bool) -> None:
    starting = starting or published is None or published.state != endpoint.READY
    if waited < (timeout if starting else min(timeout, limits.CALL_TIMEOUT)):
        return
    if published is not None and not starting:
        raise no_answer(published)
    raise Unavailable(f"no Nudge server started within {waited:.0f} s; see why with: nudge serve --http-only")


class Starter:
    """Starts a server for one process: takes the start lock, starts a child, watches it."""

    __slots__ = ("_arguments", "_child", "_directory", "_for_new", "_lock", "_port", "_waiting_since")

    def __init__(
        self,
        directory: str,
        *,
        port: int | None = None,
        arguments: Sequence[str] = (),
        for_new: Mapping[str, str] | None = None,
    ) -> None:
        self._directory, self._port, self._arguments, self._for_new = directory, port, arguments, for_new
        self._lock: locks.Flock | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._waiting_since: float | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a start is under way, by this process or another."""
        return self._child is not None or self._waiting_since is not None

    @property
    def has_started(self) -> bool:
        """Whether this process started the server."""
        return self._child is not None

    @property
    def holds_lock(self) -> bool:
        return self._lock is not None

    def poll(self, published: Endpoint | None) -> None:
        """Start a server if this process gets the start lock. Call it repeatedly while PRIMARY's lock is free."""
        if self._child is not None:
            if self._child.poll() is None:
                return
            _fail_if_child_failed(self._child, self._directory)
            self.release()
            self._child = None
        if self.hold() and self._is_free():
            _refuse_if_taken(self._port)
            self.spawn(published)

    def spawn(self, published: Endpoint | None = None, *, successor_of: str | None = None) -> subprocess.Popen[bytes]:
        """Start a server; the caller holds the start lock."""
        port = [] if self._port is None else ["--port", str(self._port)]
        for_new = ["--for-new-session", thin_json.dumps(dict(self._for_new))] if self._for_new else []
        arguments = [*port, *for_new, *self._arguments]
        self._child = spawn_detached(self._directory, published, successor_of=successor_of, arguments=arguments)
        self._note(os.getpid(), self._child.pid)
        return self._child

    def _is_free(self) -> bool:
        """Whether PRIMARY's lock is still free now that the start lock is held: the child of its last holder may have
        taken it."""
        if locks.is_free(os.path.join(self._directory, paths.LOCK)):
            return True
        self.release()
        return False

    def hold(self) -> bool:
        """Take the start lock, and return whether that succeeded. When the start of its holder is stuck, a second lock
        is used, and so on, so that of many processes whose wait ends together only one starts a server."""
        if self._lock is not None:
            return True
        now = boot_seconds()
        self._waiting_since = now if self._waiting_since is None else self._waiting_since
        for number in range(_START_LOCKS):
            path = os.path.join(self._directory, f"{paths.START_LOCK}.{number}" if number else paths.START_LOCK)
            start_lock = locks.Flock(path)
            if start_lock.acquire():
                if not _has_starting_child(path):
                    self._lock = start_lock
                    self._note(os.getpid())
                    return True
                start_lock.release()
            if now - self._waiting_since < limits.START_LOCK_TIMEOUT * (number + 1) or not _is_stuck(path):
                return False
        return False

    def _note(self, *pids: int) -> None:
        """Write the pids of the starter and its child into the lock file: other processes can then tell a slow start
        from a stuck one, and recognize a child whose starter has left."""
        if self._lock is not None and self._lock.fd is not None:
            try:
                os.ftruncate(self._lock.fd, 0)
                os.pwrite(self._lock.fd, " ".join(map(str, pids)).encode(), 0)
            except OSError:  # a full disk
                pass

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()
        self._lock = self._waiting_since = None


def _noted_pids(path: str) -> list[int]:
    try:
        with open(path, "rb") as file:
            return [int(word) for word in file.read(100).split()]
    except (OSError, ValueError):
        return []


def _has_starting_child(path: str) -> bool:
    """Whether the child in the lock file is still starting although its starter (a hook, a command) has ended."""
    pids = _noted_pids(path)
    published = endpoint.read(os.path.dirname(path))
    if len(pids) >= 2 and published is not None and (published.pid, published.state) == (pids[1], endpoint.READY):
        return False  # it has started: a newer version need not wait to replace it
    if len(pids) < 2 or not 0 <= time.time() - os.stat(path).st_mtime < limits.START_TIMEOUT:
        return False
    process = server_process.find_process(pids[1])
    return process is not None and process.uid == os.getuid() and server_process.is_server_command(process.argv)


def _is_stuck(path: str) -> bool:
    """Whether a process of the start that holds this lock is suspended; True where the system does not say."""
    pids = _noted_pids(path)
    return sys.platform != "linux" or not pids or any(map(server_process.is_suspended, pids))


def start_server(directory: str, for_new: Mapping[str, str]) -> None:
    """Start a server unless one is being started, and do not wait for it."""
    starter = Starter(directory, for_new=for_new)
    starter.poll(endpoint.read(directory))
    starter.release()


def start_successor(directory: str, generation: str) -> threading.Thread | None:
    """Start this version's server to take over from an older one, unless one is being started or the system refuses:
    the older one still serves.

    Returns the thread that holds the start lock until the successor has published or is gone.
    """
    import threading

    starter = Starter(directory)
    try:
        if not starter.hold():
            return None
        child = starter.spawn(successor_of=generation)
    except OSError:
        starter.release()
        return None

    def has_ended() -> bool:
        published = endpoint.read(directory)
        is_ready = published is not None and published.generation != generation and published.state == endpoint.READY
        return is_ready or child.poll() is not None

    def watch() -> None:
        poll_until(has_ended, limits.START_TIMEOUT, _LONGEST_PAUSE)
        starter.release()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def _refuse_if_taken(port: int | None) -> None:
    """Raise Unavailable when the port that a command names is taken: a server on another port would not help it."""
    if port is not None and not endpoint.is_port_free(port):
        raise Unavailable(f"port {port} is held by another program; leave out -p, or name another")


def spawn_detached(
    directory: str,
    published: Endpoint | None,
    *,
    successor_of: str | None,
    arguments: Sequence[str],
) -> subprocess.Popen[bytes]:
    """Start `nudge serve --detach`: in its own session, with no inherited descriptor, in `/`, with a bare environment.

    `published` is the last server's endpoint. When that was a newer version, its installation is started, so that old
    code never meets a newer change log.
    """
    import subprocess

    if paths.depends_on_environment(os.environ):  # the server gets a bare environment
        try:
            paths.store_directories(directory)
        except StorageFailed:  # a full disk must not stop the start
            pass
    environ = _environment(os.environ)
    executable = sys.executable
    if published is not None and _is_newer_installation(published):
        executable = str(published.executable)
        environ = {name: value for name, value in environ.items() if not name.startswith("PYTHON")}  # of this Python
    command = [executable, "-P", "-m", "nudge", "serve", "--detach", *arguments]
    command += [] if successor_of is None else ["--successor", successor_of]
    with open(os.devnull, "rb") as nothing, _open_start_report(directory) as report:
        child = subprocess.Popen(
            command,
            cwd="/",
            stdin=nothing,
            stdout=nothing,
            stderr=report,
            env=environ,
            close_fds=True,
            start_new_session=True,
        )
    _reap_later(child)
    return child


def _is_newer_installation(published: Endpoint) -> bool:
    """Whether the last server was a newer version from another installation. This installation needs no switch: its
    executable starts the newer version already."""
    executable = published.executable or ""
    is_newer = endpoint.is_newer(str(published.version), __version__)
    return is_newer and executable != sys.executable and os.path.isabs(executable) and os.access(executable, os.X_OK)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name in _PASSED or name.startswith(_PASSED_PREFIXES)}


def _open_start_report(directory: str):  # type: ignore[no-untyped-def]
    """Open the file to which a server writes why it cannot start; `/dev/null` when that fails (full disk)."""
    path = os.path.join(directory, paths.START_REPORT)
    try:
        return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, 0o600), "wb")
    except OSError:
        return open(os.devnull, "wb")


def _fail_if_child_failed(child: subprocess.Popen[bytes], directory: str) -> None:
    """Raise Unavailable with the reason when the child failed by itself: it would fail again. A child that lost the
    race for the lock, or was killed, is no error."""
    if child.returncode is None or child.returncode <= 0:
        return
    report = files.read_owned(os.path.join(directory, paths.START_REPORT)) or b""
    last = report[-2_000:].decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
    reason = last or f"exit code {child.returncode}, and no room to say why; see: nudge doctor"
    raise Unavailable(f"the Nudge server could not start: {reason}")


def _reap_later(child: subprocess.Popen[bytes]) -> None:
    """Wait for the child on a thread: a PROXY lives for days, and a server that it started must not become a zombie."""
    import threading

    threading.Thread(target=child.wait, daemon=True).start()
