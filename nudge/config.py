"""Settings: environment first, then `config.toml`, then the default. One table: the README prints it, `nudge serve` has
its flags."""

from __future__ import annotations

import os

from nudge import limits, paths
from nudge.errors import Invalid, SettingInvalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

SERVER, CALLER, HOOK = "server", "caller", "hook"
"""Who goes by a setting: the server, from its start on; whoever talks to one, a PROXY too; a hook."""


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def parse(raw: Any) -> int:
        text = str(raw).strip()
        if not text.isdecimal() or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return parse


def _seconds(raw: Any) -> float:
    try:
        number = float(raw)
    except (ValueError, TypeError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ValueError("must be a number of seconds, 0 or more")
    return number


def _switch(raw: Any) -> bool:
    text = str(raw).strip().lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off", ""):
        return False
    raise ValueError("must be 1 or 0")


def _level(raw: Any) -> str:
    text = str(raw).strip().lower()
    if text not in ("debug", "info", "warn", "error"):
        raise ValueError("must be debug, info, warn or error")
    return text


def _names(raw: Any) -> tuple[str, ...]:
    """A list in `config.toml`; in the environment, separated by commas."""
    parts = raw if isinstance(raw, list) else str(raw).split(",")
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("must be a list of texts")
    return tuple(part.strip() for part in parts if part.strip())


def _tools(raw: Any) -> str:
    """Which names there are, PRIMARY knows; none at all are the usual ones."""
    return ",".join(_names(raw)) or "default"


def _projects(raw: Any) -> tuple[str, ...]:
    """A project's name has one spelling, whoever writes it."""
    return tuple(name.casefold() for name in _names(raw))


def _days(raw: Any) -> dict[str, int]:
    """A table in `config.toml`; in the environment, `command=30,file_read=7`."""
    pairs = raw if isinstance(raw, dict) else dict(part.partition("=")[::2] for part in _names(raw))
    if not all(str(days).strip().isdecimal() for days in pairs.values()):
        raise ValueError("must be days by type, such as command=30,file_read=7")
    return {name.strip(): int(days) for name, days in pairs.items()}


def _ttl(raw: Any) -> str:
    from nudge.hints.ttl import parse_ttl  # late: few set it, and every hook comes by here

    try:
        parse_ttl(raw)
    except Invalid as error:
        raise ValueError(error.rule) from None
    return str(raw)


class Setting:
    """One line of the table: its name in `config.toml` (the environment has it as `NUDGE_NAME`), default, parser and
    meaning."""

    __slots__ = ("default", "meaning", "name", "parse", "whose")

    def __init__(self, name: str, default: Any, parse: Callable[[Any], Any], meaning: str, whose: str = SERVER) -> None:
        self.name, self.default, self.parse, self.meaning, self.whose = name, default, parse, meaning, whose

    @property
    def variable(self) -> str:
        return "NUDGE_" + self.name.upper()

    @property
    def is_switch(self) -> bool:
        return isinstance(self.default, bool)

    @property
    def flag(self) -> str:
        """`--max-hints`; a switch that is on is turned off with `--no-secret-guard`."""
        return ("--no-" if self.default is True else "--") + self.name.replace("_", "-")


SETTINGS = (
    Setting(
        "port",
        limits.DEFAULT_PORT,
        _whole(1, 65_535),
        "TCP port to try first; the next free one is taken when it is in use",
    ),
    Setting("max_hints", limits.MAX_HINTS, _whole(1, 100_000), "hints held at once"),
    Setting("secret_guard", True, _switch, "refuse values that look like credentials"),
    Setting(
        "default_ttl", "session", _ttl, "lifetime of a hint that is set without one: `session` or an ISO-8601 duration"
    ),
    Setting(
        "session_grace",
        limits.SESSION_GRACE,
        _seconds,
        "seconds a session outlives its last process; 0 ends it with the process",
    ),
    Setting(
        "idle_exit",
        limits.IDLE_EXIT,
        _seconds,
        "seconds without members and requests after which a detached server ends",
    ),
    Setting("autostart", True, _switch, "start a server when a command needs one and none runs", CALLER),
    Setting("log_level", "warn", _level, "debug, info, warn or error"),
    Setting("off", False, _switch, "record and inject nothing", HOOK),
    Setting("ignore", (), _names, "globs of paths and directories about which nothing is recorded", HOOK),
    Setting("cross_project", True, _switch, "tell an agent that starts also about other projects"),
    Setting("private_projects", (), _projects, "projects that are never told about elsewhere"),
    Setting("retention", {}, _days, "days that observations are kept, by type, where the defaults do not suit"),
    Setting(
        "tools",
        "default",
        _tools,
        "MCP tools to list: `default`, `all`, or names separated by commas; the others stay callable",
        CALLER,
    ),
)


class Settings:
    """The settings in force, as attributes."""

    port: int
    max_hints: int
    secret_guard: bool
    default_ttl: str
    session_grace: float
    idle_exit: float
    autostart: bool
    log_level: str
    off: bool
    ignore: tuple[str, ...]
    cross_project: bool
    private_projects: tuple[str, ...]
    retention: dict[str, int]
    tools: str

    def __init__(self, values: Mapping[str, Any], unknown: Iterable[str] = ()) -> None:
        for setting in SETTINGS:
            setattr(self, setting.name, values.get(setting.name, setting.default))
        self.given = frozenset(values)
        """Those that somebody set; the others have their default."""
        self.unknown = tuple(unknown)
        """Keys of `config.toml` that are no setting."""


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read what is set; a value that does not parse says where it stands."""
    paths.check_named(environ)
    chosen: dict[str, Any] = {}
    path = paths.config_file(environ)
    filed = _read_file(path)
    for setting in SETTINGS:
        if setting.variable in environ:
            chosen[setting.name] = _parsed(setting, environ[setting.variable], setting.variable)
        elif setting.name in filed:
            chosen[setting.name] = _parsed(setting, filed[setting.name], f"{setting.name} in {path}")
    return Settings(chosen, sorted(filed.keys() - {setting.name for setting in SETTINGS}))


def load_or_default(environ: Mapping[str, str] = os.environ) -> tuple[Settings, str | None]:
    """For whoever must go on in any case: the defaults stand in for settings that cannot be read, and why they
    cannot."""
    try:
        return load(environ), None
    except SettingInvalid as error:
        return Settings({}), error.message


def _parsed(setting: Setting, raw: Any, where: str) -> Any:
    try:
        return setting.parse(raw)
    except ValueError as error:
        raise SettingInvalid(str(error), field=where) from None


def _read_file(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    import tomllib  # late: 15 ms that most machines, having no such file, need not pay

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError) as error:  # no TOML, or no UTF-8
        raise SettingInvalid(f"cannot be read: {error}", field=path) from None
