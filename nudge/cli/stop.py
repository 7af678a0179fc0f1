"""`nudge stop`: end the server. Never starts one."""

from __future__ import annotations

import os
import time

from nudge import limits, paths
from nudge.cli import exits, render
from nudge.cli.connection import look
from nudge.cli.console import Console
from nudge.errors import NudgeError, Unavailable, WrongPort
from nudge.ipc import endpoint, lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from nudge.cli.parsing import Parser
    from nudge.config import Settings
    from nudge.ipc.client import Client
    from nudge.ipc.endpoint import Endpoint

_PAUSE = 0.01

EXAMPLES = ("nudge stop", "nudge stop --forget", "nudge stop --force")


def configure(parser: Parser) -> None:
    parser.add_argument("--force", action="store_true", help="also one that lives inside a client, or does not answer")
    parser.add_argument(
        "--forget", action="store_true", help="end the session: its hints go (nudge import --previous has them)"
    )


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    client = look(arguments)
    published = client.endpoint()
    try:
        result = client.call("nudge.stop", {"force": arguments.force, "forget": arguments.forget}, start=False)
    except Unavailable as error:
        return _without_its_help(console, client, arguments, error)
    gone = published is not None and _is_gone(client, published.generation)
    if gone and arguments.forget:
        _forget_unread()
    said = f"{'stopped' if gone else 'stopping'} the server (pid {result['pid']})"
    console.result(result, [console.pen.done(f"{said}; {_fate(arguments.forget)}")])
    return exits.DONE


def _fate(forget: bool) -> str:
    if forget:
        return "the session's hints are forgotten"
    return (
        "hints stay for the session"
        if _settings().session_grace
        else "the session ends with its last process (NUDGE_SESSION_GRACE=0)"
    )


def _settings() -> Settings:
    """A setting that cannot be read is no reason why a server could not be stopped."""
    from nudge import config

    return config.load_or_default()[0]


def _is_gone(client: Client, generation: str) -> bool:
    """Wait for it, since the next command of a script may count on it; not for ever, since it finishes its calls
    first."""
    give_up = time.monotonic() + limits.CALL_TIMEOUT
    while (
        not lock.is_free(_lock_path())
        and (current := client.endpoint()) is not None
        and current.generation == generation
    ):
        if time.monotonic() > give_up:
            return False
        time.sleep(_PAUSE)
    return True


def _lock_path() -> str:
    return os.path.join(paths.runtime_dir(), paths.LOCK)


def _forget_unread() -> None:
    """A server that could not read the log (a newer version wrote it) could not end its session either."""
    try:
        _forget()
    except NudgeError:  # another server is there already, with a session of its own
        pass


def _forget() -> int | None:
    directory = paths.runtime_dir()
    if not os.path.lexists(os.path.join(directory, paths.CHANGE_LOG)):
        return None
    from nudge.usecases import session

    return session.forget(directory, _settings())


# No answer


def _without_its_help(console: Console, client: Client, arguments: Namespace, error: Unavailable) -> int:
    published = client.endpoint()
    if published is not None and arguments.force and _hangs(error, published):
        return _kill(console, client, published, forget=arguments.forget)
    if isinstance(error, WrongPort) or "pid" in error.data or not lock.is_free(_lock_path()):
        raise error
    return _nothing_to_stop(console, forget=arguments.forget)


def _nothing_to_stop(console: Console, *, forget: bool) -> int:
    """What was asked for is so already, which is no failure."""
    hints = _forget() if forget else None
    result = {"stopping": False, "pid": None}
    if hints is None:
        console.result(result, ["no server runs"])
    else:
        line = f"no server ran; the session is forgotten ({render.counted(hints, 'hint')})"
        console.result({**result, "forgotten": hints}, [console.pen.done(line)])
    return exits.DONE


def _hangs(error: Unavailable, published: Endpoint) -> bool:
    """Whether it was given its time and said nothing; one that is still starting has had ten seconds."""
    starting = published.state == endpoint.STARTING and not lock.is_free(_lock_path())
    return error.data.get("pid") == published.pid or starting


def _kill(console: Console, client: Client, published: Endpoint, *, forget: bool) -> int:
    from nudge.ipc import holder

    directory = paths.runtime_dir()
    holder.kill(directory, published)
    gone = _is_gone(client, published.generation)
    if forget:
        _forget()
    try:
        endpoint.clear_leftovers(directory)
    except (OSError, NudgeError):  # the next server is there already, and has cleared them itself
        pass
    said = f"{'killed' if gone else 'killing'} the server (pid {published.pid}), which did not answer"
    console.result(
        {"stopping": True, "pid": published.pid, "killed": True}, [console.pen.done(f"{said}; {_fate(forget)}")]
    )
    return exits.DONE
