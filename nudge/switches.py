"""Whether recording is wanted here. Off means off: nothing sent, nothing spooled, nothing injected."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache

from nudge import files, paths
from nudge.errors import Invalid, StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nudge.context import Context

FILE = "switches.json"

_TRUE = ("1", "true", "yes", "on")


class Off:
    """Why nothing is recorded, to follow a "since", and the command that changes it."""

    __slots__ = ("cure", "reason")

    def __init__(self, reason: str, cure: str) -> None:
        self.reason, self.cure = reason, cure


class Switches:
    """What has been turned off: everything, or some places (a repo's identity; a directory, with all below it)."""

    __slots__ = ("all", "projects")

    def __init__(self, all: bool = False, projects: Iterable[str] = ()) -> None:
        self.all, self.projects = all, list(projects)

    def covers(self, context: Context) -> bool:
        return self.all or any(_is_here(place, context) for place in self.projects)

    def why(self, context: Context) -> Off | None:
        """The switch that covers a place, and how to turn it from there."""
        if self.all:
            return Off("it is off everywhere", "nudge on --all")
        here = [place for place in self.projects if _is_here(place, context)]
        above = sorted(place for place in here if not _is_own(place, context))
        own = ["nudge on"] if len(here) > len(above) else []
        if not above:
            return Off("it is off for this project", *own) if own else None
        return Off(
            f"it is off for all of {above[0]}",
            " && ".join([*(f"(cd {_quoted(place)} && nudge on)" for place in above), *own]),
        )

    def without(self, context: Context) -> Switches:
        return Switches(self.all, (place for place in self.projects if not _is_own(place, context)))

    def to_wire(self) -> dict[str, object]:
        return {"all": self.all, "projects": self.projects}


def place_of(context: Context) -> str | None:
    """The name by which this project is switched."""
    return context.repo or context.cwd


def load(directory: str) -> Switches:
    """A file that cannot be read is an error: to record what somebody turned off would be worse."""
    path = os.path.join(directory, FILE)
    try:
        with open(path, "rb") as file:
            fields = json.loads(file.read())
        return Switches(bool(fields["all"]), [str(place) for place in fields["projects"]])
    except FileNotFoundError:
        return Switches()
    except (OSError, ValueError, TypeError, KeyError):
        raise StorageFailed(
            f"{path} cannot be read; remove it, and turn recording off again where it should be off"
        ) from None


def turn_off(directory: str, context: Context | None) -> Switches:
    """For one project, or with None for all."""
    with _Changing(directory) as switches:
        if context is None:
            switches.all = True
        elif (place := place_of(context)) and place not in switches.projects:
            switches.projects.append(place)  # also below one that is off: that one may be turned on again
    return switches


def turn_on(directory: str, context: Context | None) -> Switches:
    """For one project, or with None for all of them. A switch of a directory above stays, since it is for more than
    this project;
    then nothing is turned at all."""
    with _Changing(directory) as switches:
        left = Switches() if context is None else switches.without(context)
        if context is not None and left.covers(context) and (off := switches.why(context)):
            raise stays(off)
        switches.all, switches.projects = left.all, left.projects
    return switches


def stays(off: Off) -> Invalid:
    return Invalid(f"recording stays off here, since {off.reason}; turn it on with: {off.cure}")


class _Changing:
    """Read, changed and written under a lock: two projects may be turned off at once."""

    __slots__ = ("_directory", "_lock", "_switches")

    def __init__(self, directory: str) -> None:
        from nudge.ipc import lock  # late: a hook only reads

        paths.ensure_private_dir(directory)
        self._directory = directory
        self._lock = lock.Flock(os.path.join(directory, FILE + ".lock"))

    def __enter__(self) -> Switches:
        self._lock.acquire(wait=True)
        self._switches = load(self._directory)
        return self._switches

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                files.replace(os.path.join(self._directory, FILE), json.dumps(self._switches.to_wire()).encode())
        finally:
            self._lock.release()


def _is_own(place: str, context: Context) -> bool:
    return place in (context.repo, context.cwd)


def _is_here(place: str, context: Context) -> bool:
    if place == context.repo:
        return True
    return context.cwd is not None and (context.cwd == place or context.cwd.startswith(place.rstrip("/") + "/"))


# The environment and the settings


def is_off_for_this_run(environ: Mapping[str, str]) -> bool:
    return environ.get("NUDGE_OFF", "").strip().lower() in _TRUE


def is_off(environ: Mapping[str, str], directory: str, context: Context, touched: Iterable[str | None]) -> bool:
    """Whether this place is switched off, or one of the paths that an event touched is one to ignore."""
    if load(directory).covers(context):
        return True
    if not _is_configured(environ):
        return False
    from nudge import config

    settings = config.load(environ)
    return settings.off or any(is_ignored(path, settings.ignore) for path in touched if path)


def why_off(environ: Mapping[str, str], directory: str, context: Context) -> Off | None:
    """For a person who asks. None where events are recorded, though one that touches an ignored path is not."""
    return why_off_for_this_run(environ) or load(directory).why(context) or why_off_by_settings(environ, context)


def why_off_for_this_run(environ: Mapping[str, str]) -> Off | None:
    return Off("NUDGE_OFF is set", "unset NUDGE_OFF") if is_off_for_this_run(environ) else None


def why_off_by_settings(environ: Mapping[str, str], context: Context) -> Off | None:
    from nudge import config

    settings, edit = config.load(environ), f"${{EDITOR:-vi}} {_quoted(paths.config_file(environ))}"
    if settings.off:
        return Off("the settings say so (`off`)", edit)
    glob = next((glob for glob in settings.ignore if context.cwd and is_ignored(context.cwd, (glob,))), None)
    if glob is None:
        return None
    return Off(
        f"this directory is one to ignore ({glob})", "unset NUDGE_IGNORE" if environ.get("NUDGE_IGNORE") else edit
    )


def _quoted(path: str) -> str:
    from shlex import quote

    return quote(path)


def _is_configured(environ: Mapping[str, str]) -> bool:
    """Only a file that speaks of it is worth parsing: `tomllib` costs as much as all else a hook does."""
    if environ.get("NUDGE_IGNORE"):
        return True
    try:
        with open(paths.config_file(environ), "rb") as file:
            text = file.read()
    except OSError:
        return False
    return b"ignore" in text or b"off" in text


def is_ignored(path: str, globs: Iterable[str]) -> bool:
    """As in `.gitignore`: `*` and `?` stay within a name, `**` crosses names, a pattern without a leading `/` or `~/`
    matches
    anywhere below the root, and one that matches a directory covers all that is in it."""
    path = path.replace("\\", "/")
    return any(re.match(_translated(glob, paths.home()), path) for glob in globs if glob.strip("/ "))


@lru_cache
def _translated(glob: str, home: str) -> str:
    """One regular expression for a glob: the rules of `security.globs` by hand, since a hook cannot afford the 35 ms
    that wcmatch takes to import."""
    return "|".join(_translated_path(path, home) for path in _alternatives(glob.strip().replace("\\", "/")))


def _alternatives(glob: str) -> list[str]:
    """What `{a,b}` stands for; the innermost braces first."""
    braces = re.search(r"\{([^{}]*,[^{}]*)\}", glob)
    if braces is None:
        return [glob]
    choices = (glob[: braces.start()] + choice + glob[braces.end() :] for choice in braces[1].split(","))
    return [path for choice in choices for path in _alternatives(choice)]


def _translated_path(glob: str, home: str) -> str:
    glob = _covering(glob)
    if glob == "~" or glob.startswith("~/"):
        glob = home.replace("\\", "/") + glob[1:]
    if not glob.startswith("/") and glob[1:2] != ":":
        glob = "**/" + glob
    return "(?s:" + _TOKEN.sub(_piece, glob) + r"(?:/.*)?\Z)"


_TOKEN = re.compile(
    r"(?P<any>(?:^|(?<=/))\*\*/)|(?P<rest>(?:^|(?<=/))\*\*\Z)|(?P<name>(?:^|(?<=/))\*+(?=/|\Z))"
    r"|(?P<part>\*+)|(?P<char>\?)|(?P<set>\[[^\]/]+\])|.",
    re.DOTALL,
)
_PIECES = {"any": "(?:.*/)?", "rest": ".*", "name": "[^/]+", "part": "[^/]*", "char": "[^/]"}


def _covering(glob: str) -> str:
    """All that is in a directory is asked for with the directory itself: whoever works in it has no other path to be
    told by."""
    while (shorter := glob.rstrip("/").removesuffix("/**")) != glob:
        glob = shorter
    return glob


def _piece(token: re.Match[str]) -> str:
    if token.lastgroup == "set":
        return _one_of(token[0])
    return _PIECES[token.lastgroup] if token.lastgroup else re.escape(token[0])


def _one_of(token: str) -> str:
    """`[a-z]`, `[!ab]`; what is no set of characters, as `[z-a]`, stands for itself."""
    named = token[2:-1] if token[1] in "!^" else token[1:-1]
    characters = ("[^" if token[1] in "!^" else "[") + re.escape(named).replace(r"\-", "-") + "]"
    try:
        re.compile(characters)
    except re.error:
        return re.escape(token)
    return characters
