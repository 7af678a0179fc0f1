"""PRIMARY: the process that holds the lock and owns the store. This module starts its parts, watches the role, and
closes everything when PRIMARY leaves."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from nudge import __version__
from nudge.core import limits, paths
from nudge.core.app import App
from nudge.core.clock import boot_seconds
from nudge.core.errors import Conflict, HandingOver, NudgeError, StorageFailed
from nudge.core.locks import Flock, OwnerLock, is_free
from nudge.hints.lifetime import HintLifetime, count_ended_hints, discard_lifetime, end_lifetime
from nudge.interfaces.mcp_server import McpServer, StdioServer
from nudge.interfaces.operations import OPERATIONS
from nudge.interfaces.public_port import PublicPort, listen
from nudge.interfaces.stdio import EarlyReader
from nudge.interfaces.wire import IpcHandler
from nudge.process import endpoint, spawn
from nudge.process.background import BackgroundWork
from nudge.process.diagnostics import SelfReport, configure_log
from nudge.process.endpoint import Endpoint, is_newer
from nudge.process.gc_tuning import freeze_gc
from nudge.process.wire_server import WireServer
from nudge.security import patterns
from nudge.settings import config

if TYPE_CHECKING:
    from nudge.interfaces.http import HttpServer

_log = logging.getLogger(__name__)
_WATCH_INTERVAL = 1.0  # seconds between two checks of endpoint, socket, token, parent process and idle time
_LOCK_WATCH_INTERVAL = 0.2  # seconds between two checks of the lock: a process that finds it free starts another server
_SUCCESSOR_TIMEOUT = 1.15  # seconds for the successor to ask for the role; the rest of LEAVE_TIMEOUT is for closing
_FORCED_EXIT = 1.35  # seconds after which the process ends in any case; less than LEAVE_TIMEOUT for a busy machine
_DRAIN = 0.1  # seconds for calls in flight to finish
# Seconds that each call waits during a hand-over: callers in a tight loop would take the successor's processor time.
_LEAVING_CALL_DELAY = 0.1
_PORTS = range(1, 65_536)
_SOCKET_PATH_MOST = 100  # bytes; the kernel's limit is 104 on macOS, 108 on Linux

CLIENT, DETACHED = "client", "detached"  # `owner`: what the process was started for; the third one is "terminal"


def _load_in_advance() -> None:
    """Load, on a thread, what a first call would load on the event loop: wcmatch takes 35 ms, pydantic's search for
    plugins 20."""
    patterns.load_wcmatch()
    TypeAdapter(int)


class Primary:
    """One PRIMARY, from taking the role to leaving. `run` returns True when another process took the role while this
    process's own client is still connected."""

    def __init__(
        self,
        directory: str,
        lock: OwnerLock | None,
        lifetime: HintLifetime,
        announced: Endpoint,
        *,
        owner: str,
        reader: EarlyReader | None = None,
        on_ready: Callable[[Endpoint], None] = lambda _: None,
    ) -> None:
        self._directory, self._lock, self._lifetime, self._announced = directory, lock, lifetime, announced
        self._settings = lifetime.settings
        self._owner, self._reader, self._on_ready = owner, reader, on_ready
        self._starter = spawn.Starter(directory)
        self._membership = Flock(os.path.join(directory, paths.MEMBERS))
        self._parent = os.getppid()
        self._leave_reason: str | None = None
        self._last_call = boot_seconds()
        self._app: App
        self._background: BackgroundWork | None
        self._token = endpoint.TokenFile(directory)
        self._wire: WireServer
        self._public: PublicPort | None = None
        self._stdio: StdioServer | None = None
        self._loop: asyncio.AbstractEventLoop
        self._leaving: asyncio.Event
        self._role_asked: asyncio.Event
        self._awaiting_successor = False
        self._forget = False

    def run(self) -> bool:
        for warning in filter(None, (self._lifetime.warning, self._settings.unknown_warning, *self._settings.warnings)):
            _log.warning("%s", warning)
        sys.setswitchinterval(limits.SWITCH_INTERVAL)
        return asyncio.run(self._main())

    async def _main(self) -> bool:
        self._leaving, self._role_asked = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._app = App(self._lifetime, OPERATIONS, self._confirm_role)
        self._app.request_stop = self._stop
        if self._lock is not None:
            self._membership.acquire(shared=True, wait=True)
        self._background = (
            BackgroundWork(self._app, self._directory, self._settings) if self._lock is not None else None
        )
        mcp = McpServer(self._app)
        self._wire = WireServer(
            IpcHandler(self._app, mcp, self._yield_role),
            generation=self._announced.generation,
            token=self._token,
        )
        self._wire.on_call = self._note_call
        self._app.describe = self._self_report().to_json
        self._install_signal_handlers()
        tasks: list[asyncio.Task[None]] = []
        if self._reader is not None:
            self._serve_client(self._reader, mcp)
        if self._lock is not None:
            await self._open_servers(mcp)
            tasks.append(asyncio.create_task(asyncio.to_thread(_load_in_advance)))
        freeze_gc()
        tasks.append(asyncio.create_task(self._watch()))
        if self._background is not None:
            tasks.append(asyncio.create_task(self._background.run()))
        await self._leaving.wait()
        for task in tasks:
            task.cancel()
        return await self._leave()

    def _serve_client(self, reader: EarlyReader, mcp: McpServer) -> None:
        """Take over the pipe from the reader of the handshake, with the lines that it could not answer."""
        reader.stop()
        self._stdio = StdioServer(reader.pipe, mcp, reader.client, self._client_gone)
        self._stdio.start()

    def _client_name(self) -> str | None:
        return self._reader.client.name or None if self._reader else None

    def _self_report(self) -> SelfReport:
        return SelfReport(
            self._app,
            self._wire.list_members,
            self._announced,
            self._settings,
            owner=self._owner,
            client=self._client_name,
            history=lambda: self._background.report() if self._background else {},
        )

    # Taking the role

    async def _open_servers(self, mcp: McpServer) -> None:
        """Listen and publish the endpoint: from here on CLI, hooks, PROXYs and HTTP are answered."""
        self._token()
        path = endpoint.socket_path(self._directory, self._announced.generation)
        if len(os.fsencode(path)) <= _SOCKET_PATH_MOST and sys.platform != "win32":
            self._remove_old_sockets()
            await self._wire.listen_unix(path)
            self._announced.socket = path
        else:
            self._announced.wire_port = await self._wire.listen_tcp()
        last = self._announced.port
        self._announced.port = self._open_public_port(mcp, last)
        if self._announced.port != last:  # another program may have the old one, and be sent what the page sends
            paths.remove_page_secrets(self._directory)
        self._announced.state = endpoint.READY
        endpoint.publish(self._directory, self._announced)
        self._on_ready(self._announced)

    def _open_public_port(self, mcp: McpServer, last: int | None) -> int | None:
        """Open the HTTP port and return its number; None when no port that may be used is free."""

        def make_server(http: Any) -> HttpServer:
            server: HttpServer = http.HttpServer(self._app, mcp, self._token.recent, auth=self._settings.auth)
            server.on_call = self._note_call
            return server

        listening = listen(self._ports(last))
        if listening is None:
            return None
        self._public = PublicPort(listening, make_server)
        return self._public.number

    def _ports(self, last: int | None) -> Iterator[int]:
        """Yield the ports to try: the last PRIMARY's, so that scripts keep working, unless the user chose one; then the
        port of the settings and those after it."""
        first = self._settings.port
        if last is not None and last in _PORTS and "port" not in self._settings.explicit:
            yield last
        yield from range(first, min(first + limits.PORTS_TRIED, _PORTS.stop))

    def _remove_old_sockets(self) -> None:
        """Remove the sockets of PRIMARYs that were killed; this process holds the lock, so no other socket is in
        use."""
        for name in os.listdir(self._directory):
            if name.startswith("s-") and name.endswith(".sock"):
                os.unlink(os.path.join(self._directory, name))

    def _install_signal_handlers(self) -> None:
        loop = self._loop
        for number in (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
            try:
                loop.add_signal_handler(number, self._start_leaving, "signal")
            except (NotImplementedError, RuntimeError, ValueError):
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(self._start_leaving, "signal"))

    # Holding the role

    def _confirm_role(self) -> None:
        """Check, before every acknowledged write, that the lock file at the path is the one this process holds.

        When it was removed, lock a new one and write the directory's files again. Raises HandingOver when another
        process holds it, StorageFailed when the directory cannot be created."""
        if self._lock is None:  # serving from memory: the directory cannot be used
            return
        if self._lock.holds_path():
            self._token()  # writes the file again if it was removed
            return
        fresh = OwnerLock(self._lock.path)
        try:
            paths.ensure_private_dir(self._directory)
            regained = fresh.acquire()
        except (OSError, StorageFailed):
            raise StorageFailed("the server's directory is gone and cannot be recreated; see: nudge doctor") from None
        if not regained:
            self._start_leaving("another PRIMARY")
            raise HandingOver("another server took over; send it again")
        self._lock.release()
        self._lock = fresh
        self._recreate_files()

    def _recreate_files(self) -> None:
        """Write the files of the runtime directory again from memory, after it was removed or moved."""
        lifetime = self._app.lifetime
        self._token.restore()
        endpoint.publish(self._directory, self._announced)
        if lifetime.log is not None:
            self._app.changes.rewrite_log(lifetime.log)
        with contextlib.suppress(StorageFailed):
            config.store(self._directory, lifetime.id, self._settings.session)
        self._membership.release()
        self._membership.acquire(shared=True)
        configure_log(self._settings.log_level)
        _log.warning("the runtime directory was removed or moved; its files were written again from memory")

    async def _watch(self) -> None:
        beat = next_look = boot_seconds()
        while True:
            await asyncio.sleep(_LOCK_WATCH_INTERVAL)
            if boot_seconds() < next_look and (self._lock is None or self._lock.holds_path()):
                continue
            next_look = boot_seconds() + _WATCH_INTERVAL
            try:
                self._confirm_role()
                await self._republish_endpoint()
                self._write_log()
                if boot_seconds() - beat >= limits.HEARTBEAT:
                    beat = boot_seconds()
                    await self._app.tick()
            except HandingOver:
                return
            except NudgeError as error:
                self._app.changes.last_error = error.message
            except OSError as error:  # no descriptor is free, or something else is where the socket was
                self._app.changes.last_error = f"the server's files cannot be written again: {error.strerror or error}"
            self._leave_if_idle()

    async def _republish_endpoint(self) -> None:
        """Create the endpoint file and the socket again if they were removed, and the file if there was no room for
        it."""
        if self._lock is None:
            return
        published = endpoint.read(self._directory)
        is_ours = published is not None and published.generation == self._announced.generation
        if not is_ours or not endpoint.is_complete(self._directory):
            endpoint.publish(self._directory, self._announced)
        path = self._announced.socket
        if path and not os.path.exists(path):
            await self._wire.listen_unix(path)

    def _write_log(self) -> None:
        """Keep the session on the disk from now on, if there was no room for its log at the start and there is now."""
        if self._app.write_log():
            with contextlib.suppress(StorageFailed):
                config.store(self._directory, self._app.lifetime.id, self._settings.session)
            _log.warning("there is room for changes.log again; hints are kept in it")

    def _leave_if_idle(self) -> None:
        if self._owner == CLIENT and os.getppid() != self._parent:
            self._start_leaving("client left")
        idle = boot_seconds() - self._last_call
        if self._owner == DETACHED and not self._wire.has_members and idle >= self._settings.idle_exit:
            self._start_leaving("idle")

    def _note_call(self) -> None:
        self._last_call = boot_seconds()

    # Giving the role away

    def _client_gone(self) -> None:
        """Leave; called on a thread of the pipe. The forced exit is set here, so that a busy event loop cannot delay
        it."""
        self._force_exit_soon()
        self._loop.call_soon_threadsafe(self._start_leaving, "client left")

    def _start_leaving(self, reason: str) -> None:
        if self._leave_reason is None:
            self._leave_reason = reason
            self._leaving.set()

    def _yield_role(self, asked: Mapping[str, Any]) -> bool:
        """Whether to give the role to the process that asks: a successor that this process started, or newer code."""
        is_for_this = asked.get("generation") == self._announced.generation
        if self._awaiting_successor and is_for_this:
            self._role_asked.set()
            return True
        if self._leave_reason is None and is_for_this and is_newer(str(asked.get("version", "")), __version__):
            self._start_leaving("newer version")
            return True
        return False

    def _stop(self, force: bool, forget: bool) -> dict[str, Any]:
        if self._owner == CLIENT and not force:
            client = self._client_name() or "an MCP client"
            raise Conflict(
                f"the server (pid {os.getpid()}) lives inside {client} and ends with it; "
                "end it anyway with: nudge stop --force"
            )
        self._write_log()
        self._forget = forget
        self._loop.call_later(0.01, self._start_leaving, "stop")
        # Without a log, the hints are in memory only, or in a file of a newer version that nobody has counted.
        is_counted = forget and self._app.lifetime.log is not None
        counts = count_ended_hints(self._app.lifetime)._asdict() if is_counted else {}
        if not forget and self._app.lifetime.log is None:
            counts = {"lost": len(self._app.lifetime.store)}
        return {"stopping": True, "pid": os.getpid(), **counts}

    async def _leave(self) -> bool:
        """Start a successor if one is needed, refuse new calls, drain, close, and release the lock last. Return whether
        this process goes on as a PROXY."""
        demoted = (
            self._leave_reason in ("newer version", "another PRIMARY")
            and self._reader is not None
            and not self._reader.pipe.closed
        )
        if not demoted:
            self._force_exit_soon()
        if (
            self._leave_reason in ("client left", "signal")
            and self._owner != DETACHED
            and self._lock
            and (self._wire.has_members or self._other_members_live())
        ):
            await self._hand_over()
        for server in self._servers():
            server.refusing = True
        if self._stdio is not None:
            await self._stdio.finish(_DRAIN)
        await self._drain()
        for server in self._servers():
            await server.close()
        self._release(handing_over=self._awaiting_successor or self._leave_reason == "newer version" or demoted)
        return demoted

    def _other_members_live(self) -> bool:
        """Whether another process holds the members' lock: a PROXY whose hello this event loop has not read yet."""
        self._membership.release()
        is_alone = is_free(self._membership.path, shared=False)
        with contextlib.suppress(OSError):  # the directory was removed
            self._membership.acquire(shared=True, wait=True)
        return not is_alone

    def _force_exit_soon(self) -> None:
        """Make sure that the process ends in time: by a timer thread, and by the kernel's alarm if the machine is too
        busy to run that thread."""
        timer = threading.Timer(_FORCED_EXIT, os._exit, (0,))
        timer.daemon = True
        timer.start()
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, (_FORCED_EXIT + limits.LEAVE_TIMEOUT) / 2)

    async def _hand_over(self) -> None:
        """Start a successor and wait until it asks for the role; it imports while this process still serves."""
        self._awaiting_successor = True
        self._starter.hold()  # until this process ends: a PROXY that finds the lock free must not start another server
        for server in self._servers():
            server.call_delay = _LEAVING_CALL_DELAY
        try:
            await asyncio.to_thread(self._spawn_successor)
            await asyncio.wait_for(self._role_asked.wait(), _SUCCESSOR_TIMEOUT)
        except (TimeoutError, OSError):
            _log.info("the successor is not ready yet; it will find the lock free")

    def _spawn_successor(self) -> None:
        self._starter.spawn(successor_of=self._announced.generation)

    async def _drain(self) -> None:
        until = boot_seconds() + _DRAIN
        while any(server.in_flight for server in self._servers()) and boot_seconds() < until:
            await asyncio.sleep(0.002)

    def _servers(self) -> list[WireServer | PublicPort]:
        return [self._wire] if self._public is None else [self._wire, self._public]

    def _release(self, *, handing_over: bool) -> None:
        lifetime = self._app.lifetime
        if self._background is not None:
            self._background.close()
        if self._lock is None:
            return
        if self._leave_reason != "another PRIMARY":
            self._remove_socket()
            self._close_lifetime(lifetime, was_used=handing_over or self._owner != CLIENT or self._app.calls > 0)
            if not handing_over:
                config.end_cleanly(self._directory)
                endpoint.withdraw(self._directory, self._announced)
        self._membership.release()
        self._lock.release()

    def _close_lifetime(self, lifetime: HintLifetime, *, was_used: bool) -> None:
        """Close the change log. A client that only checked that the server starts (`claude mcp list`) neither begins
        nor prolongs a session."""
        if lifetime.store.hints():
            self._write_log()
        if lifetime.log is None:
            return
        if was_used:
            self._app.tidy()
        lifetime.log.close()
        try:
            if self._forget:
                end_lifetime(self._directory, lifetime)
            elif lifetime.began_here and not was_used and not lifetime.store.hints():
                discard_lifetime(self._directory)
        except (OSError, StorageFailed) as error:
            _log.warning("closing the session: %s", error)

    def _remove_socket(self) -> None:
        if self._announced.socket:
            try:
                os.unlink(self._announced.socket)
            except OSError:
                pass
