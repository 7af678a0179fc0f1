"""`nudge serve`: find out whether to be PRIMARY or PROXY, and be it. Nothing heavy is imported before the lock is
won."""

from __future__ import annotations

import os
import sys
import time

from nudge import __version__, config, limits, paths
from nudge.clock import boot_seconds, iso
from nudge.errors import NudgeError, StorageFailed
from nudge.ipc import endpoint, spawn
from nudge.ipc.connection import Connection, Lost, TimedOut
from nudge.ipc.endpoint import is_newer
from nudge.ipc.lock import OwnerLock
from nudge.server.lasting import LastingImports
from nudge.server.proxy import Proxy
from nudge.server.stdio import Pipe, take_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nudge.config import Settings
    from nudge.ipc.endpoint import Endpoint
    from nudge.server.primary import Primary

_SUCCESSION = 5.0


class ServeOptions:
    """The options of `nudge serve`: its own flags, and the settings that flags gave, as text by their names."""

    def __init__(
        self,
        *,
        http_only: bool = False,
        detach: bool = False,
        successor: str | None = None,
        no_auth: bool = False,
        port: int | None = None,
        **settings: str | None,
    ) -> None:
        self.http_only, self.detach, self.successor, self.no_auth = http_only, detach, successor, no_auth
        self.port = port
        self.__dict__.update(settings)


def serve(options: ServeOptions) -> int:
    """Be PRIMARY or PROXY until the client leaves, and return the exit code."""
    settings = _settings(options)
    directory = paths.runtime_dir()
    try:
        paths.ensure_private_dir(directory)
    except StorageFailed as error:
        return _serve_from_memory(directory, settings, options, error)
    if options.successor:
        return _succeed(directory, settings, options)
    link = _answering(directory)
    if link is not None:
        return _second(link, directory, settings, options)
    lock = OwnerLock(os.path.join(directory, paths.LOCK))
    if not lock.acquire():
        return 0 if options.detach else _follow(directory, settings, options)
    return _lead(lock, directory, settings, options)


def _settings(options: ServeOptions) -> Settings:
    """A flag is the variable of its name, for this process and for every server that it starts."""
    os.environ.update({setting.variable: str(getattr(options, setting.name)) for setting in _given(options)})
    return config.load()


def _given(options: ServeOptions) -> list[config.Setting]:
    return [setting for setting in config.SETTINGS if getattr(options, setting.name, None) is not None]


def _answering(directory: str) -> Connection | None:
    """A connection to the PRIMARY that the sign-post names, if somebody listens there."""
    published = endpoint.read(directory)
    if published is None or published.state != endpoint.READY:
        return None
    try:
        return Connection(published, endpoint.read_token(directory))
    except (Lost, TimedOut, NudgeError):
        return None


# There is a PRIMARY already


def _second(link: Connection, directory: str, settings: Settings, options: ServeOptions) -> int:
    if is_newer(__version__, link.endpoint.version or ""):
        spawn.spawn_detached(directory, successor_of=link.endpoint.generation, auth=not options.no_auth)
    else:
        _say_what_comes_late(link.endpoint, options)
    if options.detach:
        return 0
    if _at_terminal(options):
        _say_where(link.endpoint, "A Nudge server is already running")
        return 0
    return Proxy(take_over(), settings, directory).run(link)


def _say_what_comes_late(running: Endpoint, options: ServeOptions) -> None:
    """A server goes by what it was started with: what is asked of it now is not to be lost in silence."""
    late = [setting.flag for setting in _given(options) if setting.whose == config.SERVER]
    if options.port == running.port:
        late = [flag for flag in late if flag != "--port"]
    if options.no_auth:
        late.append("--no-auth")
    if late:
        where = f"a server runs already (pid {running.pid}, port {running.port})"
        sys.stderr.write(f"nudge: {where}, which {', '.join(late)} cannot change; end it first with: nudge stop\n")


def _follow(directory: str, settings: Settings, options: ServeOptions) -> int:
    """Somebody else is just becoming PRIMARY: wait for its sign-post."""
    pipe = None if _at_terminal(options) else take_over()
    try:
        link = spawn.ensure_primary(directory, start=settings.autostart)
    except NudgeError as error:
        if pipe is None:
            raise
        sys.stderr.write(f"nudge: {error.message}\n")
        return Proxy(pipe, settings, directory).run()
    _say_what_comes_late(link.endpoint, options)
    if pipe is None:
        _say_where(link.endpoint, "A Nudge server is already running")
        return 0
    return Proxy(pipe, settings, directory).run(link)


# We are PRIMARY


def _lead(lock: OwnerLock, directory: str, settings: Settings, options: ServeOptions) -> int:
    announced = _announce(directory)
    owner, pipe = "detached", None
    if not options.detach:
        owner, pipe = ("terminal", None) if _at_terminal(options) else ("client", take_over())
    if options.detach:
        os.chdir("/")
    demoted = _run_primary(directory, lock, settings, announced, options, owner, pipe)
    if demoted and pipe is not None:
        return Proxy(pipe, settings, directory).run()
    return 0


def _announce(directory: str) -> Endpoint:
    """Say that we are starting, before the second that the imports take; keep the last one's port in sight."""
    last = endpoint.read(directory)
    announced = endpoint.announce(iso(time.time()), __version__, port=last.port if last else None)
    endpoint.publish(directory, announced)
    return announced


def _run_primary(
    directory: str,
    lock: OwnerLock | None,
    settings: Settings,
    announced: Endpoint,
    options: ServeOptions,
    owner: str,
    pipe: Pipe | None,
) -> bool:
    primary = _load_primary()
    from nudge.server import logs

    logs.configure(settings.log_level)
    if options.no_auth:
        sys.stderr.write("nudge: --no-auth: every program on this machine can read and write hints over TCP\n")
    greet: Callable[[Endpoint], None] = (
        (lambda ready: _greet(ready, options)) if owner == "terminal" else lambda _: None
    )
    return primary(
        directory, lock, settings, announced, owner=owner, pipe=pipe, auth=not options.no_auth, on_ready=greet
    ).run()


def _load_primary() -> type[Primary]:
    with LastingImports():
        from nudge.server.primary import Primary
    return Primary


def _load_mcp() -> None:
    """A successor must answer the old one's members at once."""
    from nudge.server.late_mcp import load

    load()


def _succeed(directory: str, settings: Settings, options: ServeOptions) -> int:
    """Import first, while the old PRIMARY still serves; then ask it for the role and wait for the lock."""
    _load_primary()
    _load_mcp()
    link = _answering(directory)
    if link is not None and link.endpoint.generation == options.successor:
        _ask_for_role(link, options.successor)
    lock = OwnerLock(os.path.join(directory, paths.LOCK))
    until = boot_seconds() + _SUCCESSION
    while not lock.acquire():
        published = endpoint.read(directory)
        if boot_seconds() > until or (published is not None and published.generation != options.successor):
            return 0
        time.sleep(0.001)
    options.detach = True
    return _lead(lock, directory, settings, options)


def _ask_for_role(link: Connection, generation: str) -> None:
    import json

    body = json.dumps({"generation": generation, "version": __version__}).encode()
    try:
        link.exchange("/role", body, {}, boot_seconds() + limits.CALL_TIMEOUT)
    except (Lost, TimedOut):
        pass
    link.close()


def _serve_from_memory(directory: str, settings: Settings, options: ServeOptions, error: StorageFailed) -> int:
    """No directory to meet in: our own client is still served, from memory alone; a server for others cannot be."""
    if options.detach or options.successor or _at_terminal(options):
        raise error
    sys.stderr.write(f"nudge: {error.message}; hints live in this process's memory only\n")
    announced = endpoint.announce(iso(time.time()), __version__)
    _run_primary(directory, None, settings, announced, options, "client", take_over())
    return 0


# At a terminal


def _at_terminal(options: ServeOptions) -> bool:
    return bool(options.http_only) or sys.stdin is None or sys.stdin.isatty()


def _greet(published: Endpoint, options: ServeOptions) -> None:
    _say_where(published, "Nudge is serving", "no token needed: --no-auth" if options.no_auth else None)
    nudge = _command()
    sys.stderr.write(f"  try:    {nudge} set demo hello world && {nudge} get demo hello\n  stop:   Ctrl-C\n")


def _say_where(published: Endpoint, what: str, access: str | None = None) -> None:
    access = access or f"token: {_command()} token"
    sys.stderr.write(f"{what} (pid {published.pid}, version {published.version})\n")
    sys.stderr.write(f"  http:   http://127.0.0.1:{published.port} ({access})\n  socket: {published.socket}\n")


def _command() -> str:
    """How to call us from here: in a fresh checkout `nudge` is not on PATH yet."""
    import shutil

    beside = os.path.join(os.path.dirname(sys.executable), "nudge")
    return "nudge" if shutil.which("nudge") or not os.path.exists(beside) else os.path.relpath(beside)
