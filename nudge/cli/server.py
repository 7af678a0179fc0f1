"""The verbs for the server: serve, status, stop, token, doctor. Of these, `serve` and `token` start a server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from nudge.cli import output, params
from nudge.cli.app import verb
from nudge.cli.output import EXIT_NO_SERVER, EXIT_OK, EXIT_REFUSED, Console, Styler
from nudge.cli.params import FunctionType, option
from nudge.cli.plain import Invocation
from nudge.cli.prompts import ask, can_ask, yes_option
from nudge.cli.status import (
    Status,
    different_settings,
    member_differences,
    repo_file_status,
    repo_file_text,
    setting_lines,
    status_lines,
)
from nudge.cli.verbs import SERVER
from nudge.core import limits, locks, paths
from nudge.core.clock import poll_until
from nudge.core.context import resolve
from nudge.core.errors import NudgeError, SettingInvalid, Unavailable, WrongPort
from nudge.core.text import escape
from nudge.process import endpoint
from nudge.process.client import Client
from nudge.process.endpoint import Endpoint
from nudge.settings import config
from nudge.settings import switches as switch
from nudge.settings.table import HOOK, SETTINGS, Setting

if TYPE_CHECKING:
    from nudge.doctor import Finding
    from nudge.hints.lifetime import EndedHints


_PAUSE = 0.01


# serve


def _setting_option(setting: Setting) -> Callable[[Any], Any]:
    """Return the option for a setting. Its value is the text as given, in the form of the variable; a text that does
    not parse is a usage error."""
    section = {"section": "Settings (each is also an environment variable, such as NUDGE_MAX_HINTS)"}
    # The description of a level is the list of its values, which are lower case.
    is_list = setting.name == "log_level"
    help = (setting.description if is_list else setting.description[0].upper() + setting.description[1:]) + "."
    if setting.is_switch:
        help = f"Do not {setting.description}." if setting.default else help
        explicit = option(setting.default_flag, setting.name, flag_value=str(int(setting.default)), hidden=True)
        switch = option(setting.flag, setting.name, flag_value=str(int(not setting.default)), help=help, **section)
        return lambda function: switch(explicit(function))

    def check(text: str) -> str:
        setting.parse(text)
        return text

    unit = {int: "N", float: "SECONDS"}.get(type(setting.default), setting.name.rpartition("_")[2].upper())
    if setting.default:
        help = f"{help[:-1]} (default: {setting.default:{'.0f' if isinstance(setting.default, float) else ''}})."
    return option(setting.flag, setting.name, type=FunctionType("setting", check), metavar=unit, help=help, **section)


@verb(
    "serve",
    "nudge serve",
    "nudge serve --http-only --port 9000",
    "claude mcp add nudge -- nudge serve",
    group=SERVER,
    summary="serve MCP on stdio, and HTTP",
)
@option("--http-only", "--http", is_flag=True, help="Serve only HTTP, until Ctrl-C.")
@option("--daemon", is_flag=True, help="Start a server in the background, and return when it answers.")
@option("--detach", is_flag=True, help="Be such a server, in the foreground: end when no client needs it.")
@option("--successor", metavar="GENERATION", hidden=True)
@option("--for-new-session", metavar="JSON", hidden=True)
@params.options(
    *(_setting_option(setting) for setting in SETTINGS if setting.used_by != HOOK and setting.name != "port")
)
def serve(invocation: Invocation, **flags: Any) -> int:
    """Clients run this as their MCP server. The first one on the machine holds the data and also serves HTTP; the
    others forward their calls to it."""
    from nudge.process import role

    return role.serve(role.ServeOptions(port=invocation.port, **flags))


# status

_STATUS_FIELDS = (
    *("role", "pid", "port", "socket", "version", "started", "generation"),
    *("session", "members", "hints", "durability", "spool", "owner", "recording"),
)


@verb(
    "status",
    "nudge status",
    "nudge status --json",
    "nudge status --settings",
    group=SERVER,
    summary="show the running server and its state",
    operations=("nudge.status", "nudge.settings"),
)
@option("--settings", "show_settings", is_flag=True, help="Print the server's settings, and where each comes from.")
def status(invocation: Invocation, show_settings: bool) -> int:
    """Prints pid, version, session, connected clients, hints, history and whether recording is on here. Exit code 4
    when no server is running."""
    console = invocation.console
    answer, off = _ask_status(invocation.observer()), _why_off()
    if answer is not None and show_settings:
        settings = invocation.observer().call("nudge.settings", {}, start=False)
        console.result(settings, setting_lines(settings["settings"]))
        return EXIT_OK
    recording = "on here" if off is None else f"off {off.where}; turn it on with: {off.fix}"
    repo_file = repo_file_status()
    if answer is not None:
        differing = different_settings(answer)
        all_differences = [*differing, *member_differences(answer)]
        shown = {"recording": recording} | ({"differences": all_differences} if all_differences else {})
        lines = status_lines(console.styler, {**answer, **shown, **repo_file})
        console.result({**answer, "recording": off is None, "differences": differing, **repo_file}, lines)
        return EXIT_OK
    from nudge.hints import lifetime

    spool = lifetime.spool_counts(paths.runtime_dir())
    if console.as_json:
        console.json({**dict.fromkeys(_STATUS_FIELDS), "spool": spool, "recording": off is None, **repo_file})
        return EXIT_NO_SERVER
    console.note("no server is running; the next command that needs one starts it")
    if spool["files"]:
        console.note(f"{output.count(spool['files'], 'hook event')} waiting for it")
    if spool["dropped"]:
        console.note(f"{output.count(spool['dropped'], 'hook event')} dropped; see: nudge doctor")
    if off is not None:
        console.note(escape(f"recording is {recording}"))
    if repo_file:
        console.note(repo_file_text(repo_file))
    return EXIT_NO_SERVER


def _why_off() -> switch.OffReason | None:
    """Return why recording is off here, or None. When the switches or the settings cannot be read, hooks record
    nothing: that counts as off."""
    try:
        return switch.why_off(os.environ, paths.runtime_dir(), resolve())
    except SettingInvalid as error:
        return switch.off_by_error(error, os.environ)
    except NudgeError as error:
        return switch.OffReason(error.message, "nudge doctor")


def _ask_status(client: Client) -> Status | None:
    """Return the status of the server; None when no server is running. Raise Unavailable when it does not answer."""
    try:
        answer = client.status()
    except Unavailable as error:
        raise _not_answering(error.data["pid"]) if "pid" in error.data else error from None
    if answer is None and not locks.is_free(paths.lock_file()):
        published = client.endpoint()
        who = {} if published is None else {"pid": published.pid}
        name = f" (pid {published.pid})" if published else ""
        raise Unavailable(f"a server{name} is starting and does not answer yet; see why with: nudge doctor", **who)
    return answer


def _not_answering(pid: int) -> Unavailable:
    from nudge.process import server_process

    if server_process.is_suspended(pid):
        return Unavailable(
            f"the server (pid {pid}) does not answer: it is suspended; resume it with: kill -CONT {pid}, "
            "or stop it with: nudge stop --force",
            pid=pid,
        )
    return Unavailable(f"the server (pid {pid}) does not answer; stop it with: nudge stop --force", pid=pid)


# stop


@verb(
    "stop",
    "nudge stop",
    "nudge stop --forget",
    "nudge stop --force",
    group=SERVER,
    summary="stop the server; hints are kept for the session",
    operations=("nudge.stop",),
)
@option("--force", is_flag=True, help="Also stop a server that runs inside a client; kill one that does not answer.")
@option(
    "--forget",
    is_flag=True,
    help="Also end the session and drop its hints, except those with a ttl; nudge import --previous brings them back.",
)
def stop(invocation: Invocation, force: bool, forget: bool) -> int:
    """The next command that needs a server starts one. A server that runs inside a client is stopped only with
    --force."""
    kept_before = _previous_session_time()
    code = stop_server(invocation.console, invocation.observer(), force=force, forget=forget)
    if forget and not invocation.as_json and _previous_session_time() not in (None, kept_before):
        invocation.console.show(["bring the forgotten hints back with: nudge import --previous"])
    return code


def _previous_session_time() -> int | None:
    """Return when hints were kept for `nudge import --previous`, in nanoseconds; None when there are none."""
    try:
        return os.stat(os.path.join(paths.runtime_dir(), paths.PREVIOUS)).st_mtime_ns
    except OSError:
        return None


def stop_server(console: Console, client: Client, *, force: bool, forget: bool) -> int:
    published = client.endpoint()
    try:
        result = client.call("nudge.stop", {"force": force, "forget": forget}, start=False)
    except Unavailable as error:
        return _stop_without_answer(console, client, error, force=force, forget=forget)
    gone = published is not None and _wait_until_gone(client, published.generation)
    if gone and forget:
        _forget_unread_session()
    line = f"{'stopped' if gone else 'stopping'} the server (pid {result['pid']}); {_hints_outcome(forget, result)}"
    console.result(result, [console.styler.done(line)])
    return EXIT_OK


def _hints_outcome(forget: bool, result: Mapping[str, Any]) -> str:
    """Say what becomes of the hints; `result` has the counts where they are known."""
    if forget and "forgotten" in result:
        stay = f"; {result['kept']} with a ttl {'stays' if result['kept'] == 1 else 'stay'}" if result["kept"] else ""
        return f"{output.count(result['forgotten'], 'hint')} forgotten{stay}"
    if forget:
        return "the session's hints are forgotten"
    if lost := result.get("lost"):
        return f"{output.count(lost, 'hint')} in its memory {'is' if lost == 1 else 'are'} gone"
    if config.load_or_default()[0].session_grace:
        return "hints stay for the session"
    return "the session ends with its last process (NUDGE_SESSION_GRACE=0)"


def _wait_until_gone(client: Client, generation: str) -> bool:
    """Wait until the server has released the lock, and return whether it has: the next command of a script may rely on
    it."""

    def is_gone() -> bool:
        if locks.is_free(paths.lock_file()):
            return True
        current = client.endpoint()
        return current is None or current.generation != generation

    return poll_until(is_gone, limits.CALL_TIMEOUT, _PAUSE)


def _forget_unread_session() -> None:
    """End the session of a server that could not read the change log, for example because a newer version wrote it."""
    try:
        _forget_session()
    except Unavailable:  # another server is there already, with a session of its own
        pass


def _forget_session() -> EndedHints | None:
    directory = paths.runtime_dir()
    if not os.path.lexists(os.path.join(directory, paths.CHANGE_LOG)):
        return None
    from nudge.hints import lifetime

    return lifetime.forget(directory, config.load_or_default()[0])


def _stop_without_answer(console: Console, client: Client, error: Unavailable, *, force: bool, forget: bool) -> int:
    published = client.endpoint()
    if published is not None and force and _is_hanging(error, published):
        return _kill(console, client, published, forget=forget)
    if isinstance(error, WrongPort) or "pid" in error.data or not locks.is_free(paths.lock_file()):
        raise error
    hints = _forget_session() if forget else None
    result: dict[str, Any] = {"stopping": False, "pid": None}
    if hints is None:
        console.result(result, ["no server is running"])
    else:
        result |= hints._asdict()
        console.result(result, [console.styler.done(f"no server was running; {_hints_outcome(True, result)}")])
    return EXIT_OK


def _is_hanging(error: Unavailable, published: Endpoint) -> bool:
    """Return whether the server had enough time to answer. One that is still starting has had the ten seconds of the
    call."""
    is_starting = published.state == endpoint.STARTING and not locks.is_free(paths.lock_file())
    return error.data.get("pid") == published.pid or is_starting


def _kill(console: Console, client: Client, published: Endpoint, *, forget: bool) -> int:
    from nudge.process import server_process

    directory = paths.runtime_dir()
    server_process.kill(directory, published)
    gone = _wait_until_gone(client, published.generation)
    hints = _forget_session() if forget else None
    try:
        endpoint.clear_leftovers(directory)
    except (OSError, NudgeError):  # the next server is there already, and has cleared them itself
        pass
    line = f"{'killed' if gone else 'killing'} the server (pid {published.pid}), which did not answer"
    result = {"stopping": True, "pid": published.pid, "killed": True, **(hints._asdict() if hints else {})}
    console.result(result, [console.styler.done(f"{line}; {_hints_outcome(forget, result)}")])
    return EXIT_OK


# token

_TOKEN_TIMEOUT = 2.0  # seconds in which a server notices that its token is gone


@verb(
    "token",
    "nudge token",
    'curl -H "Authorization: Bearer $(nudge token)" ...',
    group=SERVER,
    summary="print the bearer token for HTTP requests",
)
def token(invocation: Invocation) -> int:
    """Send it in the header `Authorization: Bearer TOKEN`. Starts a server if none is running: only a running one
    accepts the token."""
    if invocation.observer().status() is None:
        invocation.client().call("nudge.status", {})
    value = poll_until(partial(endpoint.read_token, paths.runtime_dir()), _TOKEN_TIMEOUT, 0.05)
    if value is None:
        raise Unavailable("the server is running, but its token cannot be read; see: nudge doctor")
    invocation.console.result({"token": value}, [value])
    return EXIT_OK


# doctor

_LEVEL_STYLES = {"ok": "green", "warn": "yellow", "fail": "red", "fixed": "cyan"}


@verb(
    "doctor",
    "nudge doctor",
    "nudge doctor --fix",
    "nudge doctor --json",
    group=SERVER,
    summary="check the installation, and show how to fix it",
)
@option(
    "--fix",
    is_flag=True,
    help="Apply the safe fixes: modes of Nudge's own files, leftovers of dead servers, the script that hooks run. Asks "
    "before it restores a backup.",
)
@yes_option
def doctor(invocation: Invocation, fix: bool, yes: bool) -> int:
    """Prints one line for each check: ok, warn or fail, and the fix. Exit code 3 when a check fails, with
    --fix when one still fails."""
    from nudge import doctor as checks

    console = invocation.console
    findings = checks.run(checks.Snapshot.take(invocation.port))
    fixed = checks.fix(findings, partial(_confirm_repair, yes=yes)) if fix else []
    if fixed:
        findings = checks.run(checks.Snapshot.take(invocation.port))
    failed = any(finding.level == checks.FAIL for finding in findings)
    result = {
        "ok": not failed,
        "findings": [finding.to_json() for finding in findings],
        "fixed": [{"check": check, "did": did} for check, did in fixed],
    }
    console.result(result, _doctor_lines(console.styler, findings, fixed))
    if fix and not fixed and any(finding.level != checks.OK for finding in findings):
        was_asked = can_ask() and any(finding.question is not None for finding in findings)
        reason = "" if was_asked else ": the problems above cannot be fixed automatically"
        console.note(f"nothing was changed{reason}")
    return EXIT_REFUSED if failed else EXIT_OK


def _confirm_repair(question: str, *, yes: bool) -> bool:
    """Ask before a fix that is not safe. Without a terminal the answer is no, and the finding keeps its fix."""
    return (yes or can_ask()) and ask(question, yes=yes)


def _doctor_lines(styler: Styler, findings: Sequence[Finding], fixed: Sequence[tuple[str, str]]) -> Iterator[str]:
    rows: list[tuple[str, str, str, str | None, str | None]] = [("fixed", *pair, None, None) for pair in fixed]
    rows += [(finding.level, finding.check, finding.message, finding.fix, finding.look) for finding in findings]
    width = output.widest(row[1] for row in rows)
    for level, check, message, fix, look in rows:
        yield f"{styler.paint(_LEVEL_STYLES[level], level.ljust(5))}  {check.ljust(width)}  {escape(message)}"
        for label, command in (("fix:", fix), ("look:", look)):
            if command is not None:
                yield f"{' ' * (width + 9)}{styler.paint('dim', label)} {escape(command)}"
    levels = [finding.level for finding in findings]
    failures, warnings = levels.count("fail"), levels.count("warn")
    if not failures and not warnings:
        yield styler.done("no problems found")
        return
    summary = f"{output.count(failures, 'failure')}, {output.count(warnings, 'warning')}"
    fixable = any(finding.repair is not None for finding in findings)
    yield f"{summary}; apply the safe fixes with: nudge doctor --fix" if fixable else summary
