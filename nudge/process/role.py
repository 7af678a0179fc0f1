"""`nudge serve`: decide whether this process is PRIMARY or PROXY, and run as that. Nothing heavy is imported before the
lock is won."""

from __future__ import annotations

import contextlib
import os
import sys
import time

from nudge import __version__
from nudge.core import paths, streams, thin_json
from nudge.core.clock import iso, poll_until
from nudge.core.errors import Invalid, NudgeError, StorageFailed
from nudge.core.locks import OwnerLock, is_free
from nudge.interfaces.mcp import StdioClient, choose_tools
from nudge.interfaces.stdio import EarlyReader, take_over
from nudge.process import endpoint, spawn
from nudge.process import wire as protocol
from nudge.process.client import Request, exchange
from nudge.process.connection import Connection, ConnectionLost, TimedOut
from nudge.process.endpoint import is_newer
from nudge.process.gc_tuning import freeze_imports
from nudge.process.proxy import Proxy
from nudge.settings import config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from nudge.process.endpoint import Endpoint
    from nudge.process.primary import Primary
    from nudge.settings.config import Settings

_SUCCESSION_TIMEOUT = 5.0  # seconds for the old PRIMARY to release the lock


class ServeOptions:
    """The options of `nudge serve`: its own flags; in `flags` the settings given by flag, as text by name; in `for_new`
    those of the process that started it, which count if it begins a session."""

    def __init__(
        self,
        *,
        http_only: bool = False,
        daemon: bool = False,
        detach: bool = False,
        successor: str | None = None,
        for_new_session: str | None = None,
        **settings: str | int | None,
    ) -> None:
        self.http_only, self.daemon, self.detach, self.successor = http_only, daemon, detach, successor
        self.for_new = _parse_texts(for_new_session or "{}")
        self.flags = {name: str(text) for name, text in settings.items() if text is not None}


def _parse_texts(raw: str) -> dict[str, str]:
    try:
        return {str(name): str(text) for name, text in thin_json.loads(raw).items()}
    except (ValueError, AttributeError):
        raise Invalid("must be an object of settings", field="--for-new-session") from None


def serve(options: ServeOptions) -> int:
    """Run as PRIMARY or PROXY until the client leaves, and return the exit code."""
    streams.open_missing()
    directory = paths.runtime_dir()
    # Raises for a value that does not parse, whichever role this becomes.
    sources = config.Sources(directory, options.flags, _environ(options))
    try:
        paths.ensure_private_dir(directory)
    except StorageFailed as error:
        return _serve_from_memory(directory, sources.resolve(None), options, error)
    if options.daemon:
        return _start_in_background(directory, sources, options)
    if options.successor:
        return _take_over_role(directory, options)
    connection = _connect(directory)
    if connection is not None:
        return _join_primary(connection, directory, options)
    return _compete(directory, options)


def _compete(directory: str, options: ServeOptions) -> int:
    """Become PRIMARY, or a PROXY of the process that does. The settings are stored before the client is answered, and
    only by the process that has claimed the lock: no other one can then start without them."""
    lock = OwnerLock(os.path.join(directory, paths.LOCK))
    sources = _sources(directory, options) if lock.claim() else None
    if sources is not None:
        sources.begin()
    reader = None if options.detach or _at_terminal(options) else _start_reading(options)
    if sources is not None and lock.acquire():
        return _run_primary(lock, directory, options, sources, reader)
    if sources is not None:
        sources.withdraw()
    return 0 if options.detach else _wait_for_primary(directory, options, reader)


def _sources(directory: str, options: ServeOptions) -> config.Sources:
    """The settings of a server that starts now. Call it when no other process can become the server."""
    last = endpoint.read(directory)
    continues = bool(options.successor) or (last is not None and last.state != endpoint.STOPPED)
    return config.Sources(directory, options.flags, _environ(options), continues=continues, for_new=options.for_new)


def _environ(options: ServeOptions) -> Mapping[str, str]:
    """The variables that count: a client's process may have them from a repository."""
    is_of_client = not (options.detach or options.daemon or _at_terminal(options))
    return config.without_model_variables(os.environ) if is_of_client else os.environ


def _connect(directory: str) -> Connection | None:
    """Return a connection to the PRIMARY that the endpoint file names; None when it does not accept one."""
    published = endpoint.read(directory)
    if published is None or published.state != endpoint.READY:
        return None
    try:
        return Connection(published, endpoint.read_token(directory))
    except (ConnectionLost, TimedOut, NudgeError):
        return None


def _start_in_background(directory: str, sources: config.Sources, options: ServeOptions) -> int:
    """Start a detached server; it gets the settings of this process's flags and variables as flags."""
    was_running = (connection := _connect(directory)) is not None
    if connection is not None:
        connection.close()
    connection = spawn.ensure_primary(directory, arguments=config.as_flags(sources.overrides), wait_for_upgrade=True)
    connection.close()
    _report_differences(connection.endpoint, options.flags)
    settings = config.load()
    _warn_without_auth(settings)  # the detached server has written it to a file only
    headline = "A Nudge server is already running" if was_running else "Nudge serves in the background"
    _print_endpoint(directory, headline, settings)
    return 0


# There is a PRIMARY already


def _join_primary(connection: Connection, directory: str, options: ServeOptions) -> int:
    if is_newer(__version__, connection.endpoint.version or ""):
        spawn.start_successor(directory, connection.endpoint.generation)
    _report_differences(connection.endpoint, options.flags)
    if options.detach:
        return 0
    if _at_terminal(options):
        _print_endpoint(directory, "A Nudge server is already running", config.load())
        return 0
    return Proxy(take_over(), config.load(flags=options.flags), directory, flags=options.flags).run(connection)


def _wait_for_primary(directory: str, options: ServeOptions, reader: EarlyReader | None) -> int:
    """Wait for the endpoint of the process that won the lock, then serve through it."""
    settings = config.load(flags=options.flags)
    connection = None
    try:
        for_new = config.for_new_session(os.environ, options.flags, of_command=False)
        connection = spawn.ensure_primary(directory, start=settings.autostart, for_new=for_new)
        _report_differences(connection.endpoint, options.flags)
    except NudgeError as error:
        if reader is None:
            raise
        streams.note(f"nudge: {error.message}")
    if reader is None:
        _print_endpoint(directory, "A Nudge server is already running", config.load())
        return 0
    reader.stop()
    return Proxy(reader.pipe, settings, directory, client=reader.client, flags=options.flags).run(connection)


def _report_differences(running: Endpoint, flags: Mapping[str, str]) -> None:
    """Print to stderr which settings of this process the running server does not use."""
    differences = config.differences(os.environ, flags, running.port)
    if differences:
        streams.note(
            f"nudge: the running server (pid {running.pid}) has other settings: {', '.join(differences)}. "
            "To apply yours: nudge stop, then start again"
        )


# This process is PRIMARY


def _run_primary(
    lock: OwnerLock,
    directory: str,
    options: ServeOptions,
    sources: config.Sources,
    reader: EarlyReader | None = None,
) -> int:
    owner = "client" if reader is not None else "detached" if options.detach else "terminal"
    if reader is not None:
        _check_tools(reader, sources)
    last = endpoint.read(directory)
    announced = endpoint.announce(iso(time.time()), __version__, port=last.port if last else None)
    try:
        endpoint.publish(directory, announced)
    except StorageFailed as error:
        lock.release()
        settings = sources.resolve(None)
        return _serve_from_memory(directory, settings, options, error, reader)
    if options.detach:
        os.chdir("/")
    if reader is not None:
        reader.watch_client(lambda: _leave_early(directory, last, announced, sources))
    primary = _load_primary()
    import threading

    from nudge.hints.lifetime import open_lifetime

    if reader is not None:
        reader.unwatch_client()
    lifetime = open_lifetime(directory, sources, is_successor=bool(options.successor))
    _configure(lifetime.settings)
    if sources.continues:
        _report_differences(announced, options.flags)

    def on_ready(_published: Endpoint) -> None:
        """Finish the start on a thread: the event loop already answers calls."""
        threading.Thread(target=_finish_start, args=(directory, lifetime.settings, owner), daemon=True).start()

    demoted = primary(directory, lock, lifetime, announced, owner=owner, reader=reader, on_ready=on_ready).run()
    if owner == "terminal":
        streams.note("\nGoodbye. Hints and history are kept; the next nudge command starts a server again.")
    if demoted and reader is not None:
        settings = config.load(flags=options.flags)
        return Proxy(reader.pipe, settings, directory, client=reader.client, flags=options.flags).run()
    return 0


def _check_tools(reader: EarlyReader, sources: config.Sources) -> None:
    """Raise Invalid for a tool that does not exist: the client would not show an error."""
    try:
        choose_tools(reader.client.tools)
    except NudgeError:
        sources.withdraw()
        raise


def _leave_early(directory: str, last: Endpoint | None, announced: Endpoint, sources: config.Sources) -> None:
    """End the process at once, because its client left while it was importing: importing takes longer than a client
    waits before it kills. Only the lock is open, and the kernel releases it. Called on a thread; returns without ending
    the process when another process of the session needs a PRIMARY."""
    if not is_free(os.path.join(directory, paths.MEMBERS), shared=False):
        return
    sources.withdraw()
    with contextlib.suppress(StorageFailed):
        if last is None:
            endpoint.withdraw(directory, announced)
        else:
            endpoint.publish(directory, last)  # the next server must still see that the last one crashed
    os._exit(0)


def _start_reading(options: ServeOptions) -> EarlyReader:
    """Start answering the handshake on a thread, while this process imports or waits."""
    reader = EarlyReader(take_over(), StdioClient(config.load(flags=options.flags).tools))
    reader.start()
    return reader


def _finish_start(directory: str, settings: Settings, owner: str) -> None:
    """Run start-up work off the critical path: store the data directories (platformdirs takes 30 ms to import), and
    print the greeting."""
    with contextlib.suppress(StorageFailed):
        paths.store_directories(directory)
    if owner == "terminal":
        _print_greeting(directory, settings)


def _configure(settings: Settings) -> None:
    from nudge.process.diagnostics import configure_log

    configure_log(settings.log_level)
    _warn_without_auth(settings)


def _warn_without_auth(settings: Settings) -> None:
    if not settings.auth:
        streams.note("nudge: --no-auth: every program on this machine can read and write hints over TCP")


def _load_primary() -> type[Primary]:
    with freeze_imports():
        from nudge.process.primary import Primary
    return Primary


def _take_over_role(directory: str, options: ServeOptions) -> int:
    """Run as the successor of a PRIMARY: import while it still serves, ask it for the role, wait for the lock."""
    _load_primary()
    connection = _connect(directory)
    if connection is not None and connection.endpoint.generation == options.successor:
        _ask_for_role(connection, options.successor)
    lock = OwnerLock(os.path.join(directory, paths.LOCK))

    def is_decided() -> bool:
        """This process has the role, or another one has published that it does."""
        if lock.acquire():
            return True
        published = endpoint.read(directory)
        return published is not None and published.generation != options.successor

    poll_until(is_decided, _SUCCESSION_TIMEOUT, 0.001)
    if not lock.holds_path():
        return 0
    options.detach = True
    return _run_primary(lock, directory, options, _sources(directory, options))


def _ask_for_role(connection: Connection, generation: str) -> None:
    request = Request(protocol.ROLE, {"generation": generation, "version": __version__}, {})
    connection.queue_hello("successor")
    try:
        exchange(connection, request, {})
    except (ConnectionLost, TimedOut, NudgeError):
        pass
    connection.close()


def _serve_from_memory(
    directory: str,
    settings: Settings,
    options: ServeOptions,
    error: StorageFailed,
    reader: EarlyReader | None = None,
) -> int:
    """Serve this process's own client from memory, because the runtime directory cannot be used. Without such a client,
    raise the error: no other process could find the server."""
    if options.daemon or options.detach or options.successor or _at_terminal(options):
        raise error
    problem = f"{error.message}; hints live in this process's memory only"
    streams.note(f"nudge: {problem}")
    reader = reader or _start_reading(options)
    choose_tools(reader.client.tools)
    primary = _load_primary()
    from nudge.hints.lifetime import open_in_memory

    _configure(settings)
    announced = endpoint.announce(iso(time.time()), __version__)
    lifetime = open_in_memory(settings)
    lifetime.warning = problem
    primary(directory, None, lifetime, announced, owner="client", reader=reader).run()
    return 0


# At a terminal


def _at_terminal(options: ServeOptions) -> bool:
    return bool(options.http_only) or sys.stdin is None or sys.stdin.isatty()


def _print_greeting(directory: str, settings: Settings) -> None:
    _print_endpoint(directory, "Nudge is serving", settings)
    nudge = _command()
    streams.note(f"  try:    {nudge} set demo hello world && {nudge} get demo hello\n  stop:   Ctrl-C")


def _print_endpoint(directory: str, headline: str, settings: Settings) -> None:
    """Print to stderr where the running server is; `settings` are those in force there."""
    published = endpoint.read(directory)
    if published is None:
        return
    access = f"look at it with: {_command()} open" if settings.auth else "no token needed: --no-auth"
    # Without a Unix socket (the directory's path is too long for one) the private wire is a loopback port.
    socket = published.socket or f"none, 127.0.0.1:{published.wire_port} instead"
    streams.note(f"{headline} (pid {published.pid}, version {published.version})")
    streams.note(f"  http:   http://127.0.0.1:{published.port} ({access})\n  socket: {socket}")


def _command() -> str:
    """Return the command that starts this installation of Nudge from here. In a fresh checkout, `nudge` is not on PATH,
    or it is another installation."""
    import shutil

    beside, on_path = os.path.join(os.path.dirname(sys.executable), "nudge"), shutil.which("nudge")
    if not os.path.exists(beside) or (on_path is not None and os.path.realpath(on_path) == os.path.realpath(beside)):
        return "nudge"
    relative = os.path.relpath(beside)
    return beside if relative.startswith(os.pardir) else relative
