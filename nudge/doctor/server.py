"""Checks of the settings, and of the server as seen from outside: lock, endpoint, socket, port, its own status."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from shlex import quote
from typing import Any

from nudge.core import limits, paths
from nudge.core.errors import SettingInvalid
from nudge.doctor.files import chmod, remove, remove_command, remove_leftovers
from nudge.doctor.model import Finding, Snapshot, edit_command, fail, ok, warn
from nudge.process import endpoint, server_process
from nudge.process.endpoint import Endpoint, is_port_free
from nudge.settings import config
from nudge.settings.table import SETTINGS

_OTHER_VARIABLES = ("NUDGE_RUNTIME_DIR", "NUDGE_CONFIG")  # known, but no settings
_LEAST_SIMILARITY = 0.85  # similarity from 0 to 1; one wrong or missing letter in NUDGE_PORT is 0.89

# The settings


def check_settings(snapshot: Snapshot) -> Iterator[Finding]:
    problem = snapshot.settings_problem
    if problem is not None:
        yield fail("settings", problem, _where_set(snapshot, problem.partition(":")[0]))
        return
    warnings = list(_setting_warnings(snapshot))
    yield from warnings or [ok("settings", "readable")]


def _setting_warnings(snapshot: Snapshot) -> Iterator[Finding]:
    if not snapshot.settings.autostart:
        message = "autostart is off: no command starts a server"
        yield warn("settings", message, _where_set(snapshot, "NUDGE_AUTOSTART"))
    if snapshot.settings.unknown:
        file = paths.config_file(snapshot.environ)
        message = f"{file} has names that are no settings: {', '.join(snapshot.settings.unknown)}"
        yield warn("settings", message, edit_command(file))
    yield from _misspelled_variables(snapshot.environ)
    if snapshot.status is not None:
        for difference in config.differences(snapshot.environ, port=snapshot.status.get("port")):
            message = f"the running server does not use your setting {difference}"
            yield warn("settings", message, "nudge stop, then start it again")
        yield from _file_warnings(snapshot.environ)
        for member in snapshot.status.get("members") or ():
            for difference in member.get("differs") or ():
                message = (
                    f"the server does not use a setting of {member.get('client')} (pid "
                    f"{member.get('pid')}): {difference}"
                )
                yield warn("settings", message, "nudge stop, then start that client again")
    else:  # a server reports them in its status
        for warning in snapshot.settings.warnings:
            yield warn("settings", f"{warning}; the next start ignores it")


def _file_warnings(environ: Mapping[str, str]) -> Iterator[Finding]:
    """The values in `config.toml` that the session replaces, and one among them that does not parse."""
    try:
        differences = config.file_differences(environ)
    except SettingInvalid as error:
        yield fail("settings", error.message, edit_command(paths.config_file(environ)))
        return
    for difference in differences:
        message = f"the running server does not use {difference}"
        yield warn("settings", message, "nudge stop, then nudge serve with that value as a flag")


def _misspelled_variables(environ: Mapping[str, str]) -> Iterator[Finding]:
    """A variable that is no setting, but nearly has the name of one. Others may belong to another program."""
    variables = {setting.variable for setting in SETTINGS}.union(_OTHER_VARIABLES)
    for name in sorted(name for name in environ if name.startswith("NUDGE_") and name not in variables):
        if near := get_close_matches(name, variables, n=1, cutoff=_LEAST_SIMILARITY):
            yield warn("settings", f"{name} is no setting and is ignored; did you mean {near[0]}?", f"unset {name}")


def _where_set(snapshot: Snapshot, variable: str) -> str:
    """The command that changes a setting: in the environment, or else in the file. An editor would wait for a pipe."""
    if variable in snapshot.environ:
        return f"unset {variable}"
    file = paths.config_file(snapshot.environ)
    return remove_command(file) if os.path.exists(file) and not os.path.isfile(file) else edit_command(file)


# Lock, endpoint and socket


def check_lock(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.has_no_server:
        yield ok("lock", "free: no server runs")
        return
    published = endpoint.read(snapshot.directory)
    if published is None:
        yield warn("lock", "held, but no endpoint says by whom; a server may be starting", look="nudge doctor")
    elif (doubt := server_process.find_mismatch(snapshot.directory, published)) is not None:
        command = f"lsof {quote(snapshot.path(paths.LOCK))}"
        yield fail("lock", f"held, but not by the process that the endpoint names: {doubt}", look=command)
    else:
        yield ok("lock", f"held by the server (pid {published.pid})")


def check_endpoint(snapshot: Snapshot) -> Iterator[Finding]:
    published = endpoint.read(snapshot.directory)
    path = snapshot.path(paths.ENDPOINT)
    if published is None and os.path.lexists(path):
        yield _untrusted_endpoint(snapshot, path)
    elif published is None or published.state == endpoint.STOPPED:
        yield ok("endpoint", "names no server")
    elif snapshot.has_no_server:
        yield _stale_endpoint(snapshot, published)
    else:
        yield ok("endpoint", f"names pid {published.pid}, {published.state}, generation {published.generation}")


def _untrusted_endpoint(snapshot: Snapshot, path: str) -> Finding:
    """A running server replaces the file within a second; without one, it can be removed."""
    message = f"{path} is damaged, or others could have written it; it is not trusted"
    repair = remove(path) if snapshot.has_no_server and not os.path.isdir(path) else None
    return warn("endpoint", message, f"rm {quote(path)}", repair)


def _stale_endpoint(snapshot: Snapshot, published: Endpoint) -> Finding:
    """Harmless, since no program trusts the pid in it, but misleading for a person who reads it."""
    is_alive = server_process.find_process(published.pid) is not None
    state = "now another program" if is_alive else "gone"
    message = f"stale: its server, generation {published.generation}, is {state} (pid {published.pid})"
    return warn("endpoint", message, "nudge doctor --fix", remove_leftovers(snapshot.directory))


def check_socket(snapshot: Snapshot) -> Iterator[Finding]:
    published = endpoint.read(snapshot.directory)
    if published is None or published.state != endpoint.READY or snapshot.has_no_server:
        return
    if not published.socket:
        yield ok("socket", "none: the directory's path is too long for one; TCP is used")
        return
    yield _socket(published.socket)


def _socket(path: str) -> Finding:
    try:
        status = os.lstat(path)
    except OSError:
        return warn("socket", f"{path} is gone; the server creates it again within a second", look="nudge doctor")
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.getuid():
        return fail("socket", f"{path} is not a socket of yours", f"rm {quote(path)}")
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        message = f"{path} can be used by others ({mode:04o})"
        return warn("socket", message, f"chmod 600 {quote(path)}", chmod(path, 0o600))
    return ok("socket", f"{path} is accessible to you only")


# The port


def check_port(snapshot: Snapshot) -> Iterator[Finding]:
    configured_port = snapshot.settings.port
    listening = None if snapshot.status is None else snapshot.status.get("port")
    published = endpoint.read(snapshot.directory) if snapshot.silent is not None else None
    if published is not None and published.port is not None:
        yield ok("port", f"{published.port} is held by the server that does not answer (pid {published.pid})")
    elif snapshot.status is None and is_port_free(configured_port):
        yield ok("port", f"{configured_port} is free")
    elif snapshot.status is None:
        message = f"{configured_port} is held by another program; a server will take the next free one"
        yield warn("port", message, look=_list_listeners(configured_port))
    elif listening is None:
        message = f"the server found no free port from {configured_port} on; only the socket is served"
        yield warn("port", message, look=_list_listeners(configured_port))
    elif not answers_health(listening):
        message = f"the server does not answer on {listening}; agents and commands use the socket, scripts cannot"
        yield warn("port", message, look=_list_listeners(listening))
    elif listening == configured_port or is_port_free(configured_port):
        yield ok("port", f"{listening} is held by the server")
    else:
        message = f"{configured_port} is held by another program; the server listens on {listening}"
        yield warn("port", message, look=_list_listeners(configured_port))


def _list_listeners(port: int) -> str:
    return f"lsof -nP -iTCP:{port} -sTCP:LISTEN"


def answers_health(port: int) -> bool:
    """Whether a Nudge server answers on the port. Sends no token: another program may have the port by now."""
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection("127.0.0.1", port, timeout=limits.CALL_TIMEOUT)
    try:
        connection.request("GET", "/health")
        health = json.loads(connection.getresponse().read(limits.KIB))
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()
    return isinstance(health, dict) and health.get("name") == "nudge"


# The server


def check_server(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.silent is not None:
        yield fail("server", snapshot.silent, "nudge stop --force")
    elif snapshot.status is None and not snapshot.has_no_server:
        yield warn("server", "one is starting and does not answer yet", "nudge stop --force")
    elif snapshot.status is None:
        yield ok("server", "none runs; one starts with the next command that needs it")
    else:
        warnings = list(_server_warnings(snapshot.status, os.path.join(snapshot.log_directory, "nudge.log")))
        answer = f"answers (pid {snapshot.status.get('pid')}, {snapshot.status.get('owner')})"
        yield from warnings or [ok("server", answer)]


_SAVE_AND_RESTART = "nudge export > hints.json; nudge stop --force; nudge import hints.json"


def _server_warnings(status: Mapping[str, Any], log: str) -> Iterator[Finding]:
    """The warnings in the server's status, each with its fix. What sends the reader here is another check's finding; a
    server that keeps hints in memory only must be restarted after its fix."""
    read_only = (status.get("session") or {}).get("read_only")
    in_memory = status.get("durability") == "none"
    if read_only:
        yield warn("server", f"takes no changes: {read_only}", "nudge stop --forget")
    elif in_memory and not status.get("warnings"):
        yield warn("server", "keeps hints in memory only", _SAVE_AND_RESTART)
    for warning in status.get("warnings") or ():
        if warning.startswith(config.UNKNOWN_NAMES):  # `check_settings` reads the file itself
            continue
        message, _, fix = warning.removesuffix("; see: nudge doctor").partition(". fix: ")
        if fix not in ("", "nudge doctor"):
            yield warn("server", message, fix)
        elif in_memory:
            yield warn("server", message, f"what the other lines say; then {_SAVE_AND_RESTART}")
        else:
            yield warn("server", message, look=f"tail {quote(log)}")
    if status.get("last_error"):
        yield warn("server", f"last error: {status['last_error']}", look=f"tail {quote(log)}")
