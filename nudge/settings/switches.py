"""Where recording is turned off, by `nudge off`, the environment or the settings. Off means that nothing is sent,
spooled or injected."""

from __future__ import annotations

import os

from nudge.core import files, limits, paths, thin_json
from nudge.core.errors import Invalid, SettingInvalid, StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nudge.core.context import Context
    from nudge.core.locks import Flock

FILE = "switches.json"

_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def parse_switch(raw: object) -> bool:
    """Return what a switch is set to, wherever that is written: a variable, a flag, a file. Raises ValueError."""
    text = str(raw).strip().lower()
    if text not in _ON + _OFF:
        raise ValueError("must be 1 or 0")
    return text in _ON


class OffReason:
    """Why nothing is recorded (as the clause after "since"), where (as the words after "off"), and the command that
    turns recording on."""

    __slots__ = ("fix", "reason", "where")

    def __init__(self, reason: str, fix: str, where: str | None = None) -> None:
        self.reason, self.fix = reason, fix
        self.where = where or f"here because {reason}"


class Switches:
    """Where recording is turned off: everywhere, or in some projects (the identity of a repo; a directory with
    everything below it)."""

    __slots__ = ("all", "projects")

    def __init__(self, all: bool = False, projects: Iterable[str] = ()) -> None:
        self.all, self.projects = all, list(projects)

    def covers(self, context: Context) -> bool:
        return self.all or any(_covers(key, context) for key in self.projects)

    def why(self, context: Context) -> OffReason | None:
        """Return the reason why recording is off in a context, and the command that turns it on; None when it is on."""
        if self.all:
            return OffReason("it is off everywhere", "nudge on --all", "everywhere")
        covering = [key for key in self.projects if _covers(key, context)]
        above = sorted(key for key in covering if not _is_own(key, context))
        own = ["nudge on"] if len(covering) > len(above) else []
        if not above:
            return OffReason("it is off for this repo", own[0], "in this repo") if own else None
        return OffReason(
            f"it is off for all of {above[0]}",
            " && ".join([*(f"(cd {_quoted(directory)} && nudge on)" for directory in above), *own]),
            f"in all of {above[0]}",
        )

    def without(self, context: Context) -> Switches:
        return Switches(self.all, (key for key in self.projects if not _is_own(key, context)))

    def to_json(self) -> dict[str, object]:
        return {"all": self.all, "projects": self.projects}


def project_key(context: Context) -> str | None:
    """Return the key under which a project is turned off."""
    return context.repo or context.cwd


def load(directory: str) -> Switches:
    """Return the saved switches. Raises StorageFailed when the file cannot be read: recording what the user turned off
    would be worse than an error."""
    path = os.path.join(directory, FILE)
    try:
        with open(path, "rb") as file:
            fields = thin_json.loads(file.read())
        return Switches(bool(fields["all"]), [str(key) for key in fields["projects"]])
    except FileNotFoundError:
        return Switches()
    except (OSError, ValueError, TypeError, KeyError):
        raise StorageFailed(
            f"{path} cannot be read; remove it, and turn recording off again where it should be off"
        ) from None


def turn_off(directory: str, context: Context | None) -> Switches:
    """Turn recording off for one project, or with None everywhere."""
    with _lock(directory):
        switches = load(directory)
        if context is None:
            switches.all = True
        elif (key := project_key(context)) and key not in switches.projects:
            switches.projects.append(key)  # also below a directory that is off, which may be turned on again
        return _save(directory, switches)


def turn_on(directory: str, context: Context | None) -> Switches:
    """Turn recording on for one project, or with None everywhere. Raises Invalid for a project below a directory that
    is off: turning that on would affect other projects."""
    with _lock(directory):
        switches = load(directory)
        left = Switches() if context is None else switches.without(context)
        if context is not None and left.covers(context) and (off := switches.why(context)):
            raise still_off(off)
        return _save(directory, left)


def still_off(off: OffReason) -> Invalid:
    return Invalid(f"recording stays off here, since {off.reason}; turn it on with: {off.fix}")


def _lock(directory: str) -> Flock:
    """Return the lock for changing the file: two commands may change it at the same time."""
    from nudge.core.locks import Flock  # late: a hook only reads the file

    paths.ensure_private_dir(directory)
    return Flock(os.path.join(directory, FILE + ".lock"))


def _save(directory: str, switches: Switches) -> Switches:
    files.replace(os.path.join(directory, FILE), thin_json.dumps(switches.to_json()).encode())
    return switches


def _is_own(key: str, context: Context) -> bool:
    return key in (context.repo, context.cwd)


def _covers(key: str, context: Context) -> bool:
    if key == context.repo:
        return True
    return context.cwd is not None and (context.cwd == key or context.cwd.startswith(key.rstrip("/") + "/"))


# The environment and the settings


def is_off_for_this_run(environ: Mapping[str, str]) -> bool:
    """Whether `NUDGE_OFF` says so; an empty variable is not set. Raises SettingInvalid for another text: somebody who
    sets it may want it off."""
    text = environ.get("NUDGE_OFF", "").strip()
    try:
        return bool(text) and parse_switch(text)
    except ValueError as error:
        raise SettingInvalid(str(error), field="NUDGE_OFF") from None


def is_off(environ: Mapping[str, str], directory: str, context: Context, event_paths: Iterable[str | None]) -> bool:
    """Whether recording is off in this context, or one of the event's paths is ignored by a setting."""
    if load(directory).covers(context):
        return True
    if not _is_configured(environ):
        return False
    from nudge.security.ignore_globs import is_ignored  # late, both: a hook without settings needs neither
    from nudge.settings import config

    settings = config.load(environ)
    return settings.off or any(is_ignored(path, settings.ignore) for path in event_paths if path)


def why_off(environ: Mapping[str, str], directory: str, context: Context) -> OffReason | None:
    """Return why nothing is recorded in a context; None where events are recorded, except those about ignored paths."""
    return why_off_for_this_run(environ) or load(directory).why(context) or why_off_by_settings(environ, context)


def why_off_for_this_run(environ: Mapping[str, str]) -> OffReason | None:
    return OffReason("NUDGE_OFF is set", "unset NUDGE_OFF") if is_off_for_this_run(environ) else None


def why_off_by_settings(environ: Mapping[str, str], context: Context) -> OffReason | None:
    from nudge.security.patterns import is_ignored  # late: a hook imports this module, and asks `is_off`
    from nudge.settings import config

    settings, edit = config.load(environ), _edit_command(environ)
    if settings.off:
        return OffReason("the settings say so (`off`)", edit)
    glob = next((glob for glob in settings.ignore if context.cwd and is_ignored(context.cwd, (glob,))), None)
    if glob is None:
        return None
    return OffReason(
        f"this directory is one to ignore ({glob})", "unset NUDGE_IGNORE" if environ.get("NUDGE_IGNORE") else edit
    )


def off_by_error(error: SettingInvalid, environ: Mapping[str, str]) -> OffReason:
    """Return why nothing is recorded when the settings cannot be read, and how to correct what the error names: a
    variable, or a key in the file."""
    return OffReason(error.message, f"unset {error.field}" if error.field in environ else _edit_command(environ))


def _edit_command(environ: Mapping[str, str]) -> str:
    return f"${{EDITOR:-vi}} {_quoted(paths.config_file(environ))}"


def _quoted(path: str) -> str:
    from shlex import quote

    return quote(path)


def _is_configured(environ: Mapping[str, str]) -> bool:
    """Whether `off` or `ignore` may be set. The file is parsed only if it contains these words: importing `tomllib`
    takes as long as everything else a hook does."""
    if environ.get("NUDGE_IGNORE"):
        return True
    try:
        text = files.read_regular(paths.config_file(environ), limits.MAX_SETTINGS_BYTES)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # the settings cannot be read, and say why
    return b"ignore" in text or b"off" in text
