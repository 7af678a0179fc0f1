"""Settings. One table: the README prints it, and `nudge serve` has a flag for each.

Flag, then variable, then `config.toml`, then default. The server's settings belong to its session: what the first
server was told, by flag or by variable, is stored in the runtime directory with the session's id, and every later
server of the session goes by that, whoever starts it and why (`Sources`).
"""

from __future__ import annotations

import os

from nudge import clock, files, limits, paths, thin_json
from nudge.errors import SettingInvalid, StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

SERVER, CALLER, HOOK = "server", "caller", "hook"
"""Who uses a setting: the server, from its start on; whoever talks to one, a PROXY too; a hook."""

MEMORY_SETTINGS = (
    "short_ttl_secs",
    "mid_ttl_secs",
    "long_ttl_secs",
    "short_extend_secs",
    "mid_extend_secs",
    "archive_on_gc",
)
"""What `[memories]` may set."""

_DROPPED_AT_A_CLEAN_END = ("auth", "secret_guard")
_SPAN_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_DAMAGED = "(damaged)"  # no session has this id: what is stored is not used


def _parse_whole(low: int, high: int) -> Callable[[Any], int]:
    def parse(raw: Any) -> int:
        text = str(raw).strip()
        if not text.isdecimal() or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return parse


def _parse_seconds(raw: Any) -> float:
    try:
        number = float(raw)
    except (ValueError, TypeError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ValueError("must be a number of seconds, 0 or more")
    return number


def _parse_switch(raw: Any) -> bool:
    text = str(raw).strip().lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off", ""):
        return False
    raise ValueError("must be 1 or 0")


def _parse_level(raw: Any) -> str:
    text = str(raw).strip().lower()
    if text not in ("debug", "info", "warn", "error"):
        raise ValueError("must be debug, info, warn or error")
    return text


def _parse_tell(raw: Any) -> str:
    text = str(raw).strip().lower()
    share = text.removeprefix("shadow:").removesuffix("%")
    if text.startswith("shadow:") and text.endswith("%") and share.isdecimal() and int(share) <= 100:
        return f"shadow:{int(share)}%"
    try:
        return "1" if _parse_switch(text) else "0"
    except ValueError:
        raise ValueError("must be 1, 0, or shadow:20% with a share of the sessions") from None


def _parse_journal(raw: Any) -> str:
    text = str(raw).strip().lower()
    if text in ("offer", "auto"):
        return text
    try:
        return "offer" if _parse_switch(text) else "0"
    except ValueError:
        raise ValueError("must be offer, auto or 0") from None


def _parse_names(raw: Any) -> tuple[str, ...]:
    """A list in `config.toml`; in the environment, separated by commas."""
    parts = raw if isinstance(raw, list) else str(raw).split(",")
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("must be a list of texts")
    return tuple(part.strip() for part in parts if part.strip())


def _parse_tools(raw: Any) -> str:
    """PRIMARY checks the names; an empty list means the default ones."""
    return ",".join(_parse_names(raw)) or "default"


def _parse_projects(raw: Any) -> tuple[str, ...]:
    """Project names are compared in lower case."""
    return tuple(name.casefold() for name in _parse_names(raw))


def _parse_days(raw: Any) -> dict[str, int]:
    """A table in `config.toml`; in the environment, `command=30,file_read=7`."""
    pairs = raw if isinstance(raw, dict) else dict(part.partition("=")[::2] for part in _parse_names(raw))
    if not all(str(days).strip().isdecimal() for days in pairs.values()):
        raise ValueError("must be days by type, such as command=30,file_read=7")
    return {name.strip(): int(days) for name, days in pairs.items()}


def _parse_memories(raw: Any) -> dict[str, float]:
    """A table in `config.toml`; in the environment, `short_ttl_secs=3600,archive_on_gc=0`."""
    pairs = raw if isinstance(raw, dict) else dict(part.partition("=")[::2] for part in _parse_names(raw))
    try:
        values = {str(name).strip(): _parse_seconds(value) for name, value in pairs.items()}
    except ValueError:
        values = {"": 0.0}
    if not values.keys() <= set(MEMORY_SETTINGS):
        raise ValueError(f"must be seconds, 0 or more, by name: {', '.join(MEMORY_SETTINGS)}")
    return values


def _parse_ttl(raw: Any) -> str:
    clock.parse_lifetime(raw)
    return str(raw)


def _parse_path(raw: Any) -> str:
    """An absolute path, or one below the home; empty means the default place."""
    path = paths.expand_home(str(raw))
    if path and not os.path.isabs(path):
        raise ValueError("must be an absolute path, or one below ~/")
    return path


class Setting:
    """One line of the table. Its name in `config.toml` is `max_hints`; the environment has it as `NUDGE_MAX_HINTS`."""

    __slots__ = ("default", "description", "name", "parse", "used_by")

    def __init__(
        self, name: str, default: Any, parse: Callable[[Any], Any], description: str, used_by: str = SERVER
    ) -> None:
        self.name, self.default, self.parse, self.description, self.used_by = name, default, parse, description, used_by

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
        _parse_whole(1, 65_535),
        "TCP port to try first; the next free one is taken when it is in use",
    ),
    Setting(
        "auth", True, _parse_switch, "require the token over TCP (without it, any program on this machine is accepted)"
    ),
    Setting("max_hints", limits.MAX_HINTS, _parse_whole(1, 100_000), "hints held at once"),
    Setting("secret_guard", True, _parse_switch, "refuse values that look like credentials"),
    Setting(
        "default_ttl",
        "session",
        _parse_ttl,
        "lifetime of a hint that is set without one: `session` or an ISO-8601 duration",
    ),
    Setting(
        "session_grace",
        limits.SESSION_GRACE,
        _parse_seconds,
        "seconds a session outlives its last process; 0 ends it with the process",
    ),
    Setting(
        "hint_idle",
        limits.HINT_IDLE,
        _parse_seconds,
        "seconds without set, get, bump or credit after which a hint with ttl `session` goes; 0 keeps it",
    ),
    Setting(
        "idle_exit",
        limits.IDLE_EXIT,
        _parse_seconds,
        "seconds without members and requests after which a detached server ends",
    ),
    Setting("autostart", True, _parse_switch, "start a server when a command needs one and none runs", CALLER),
    Setting("log_level", "warn", _parse_level, "debug, info, warn or error"),
    Setting("off", False, _parse_switch, "record and inject nothing", HOOK),
    Setting("ignore", (), _parse_names, "globs of paths and directories about which nothing is recorded", HOOK),
    Setting("cross_project", False, _parse_switch, "tell an agent that starts also about other projects"),
    Setting(
        "tell",
        "1",
        _parse_tell,
        "tell agents what is known: `1`, `0` for nothing, or `shadow:20%` to log it without telling in a fifth of the "
        "sessions, for `nudge stats` to compare",
    ),
    Setting(
        "journal",
        "offer",
        _parse_journal,
        "what the exit code of a command does to the attempt that predicted it: `offer` tells the agent, `auto` "
        "resolves the attempt, `0` nothing",
    ),
    Setting("private_projects", (), _parse_projects, "projects that are never told about elsewhere"),
    Setting("db", "", _parse_path, "database of the history: an absolute path, or one below `~/`"),
    Setting("retention", {}, _parse_days, "days that observations are kept, by type, where the defaults do not suit"),
    Setting(
        "memories",
        {},
        _parse_memories,
        "lifetimes of notes in seconds, 0 for good: `short_ttl_secs`, `mid_ttl_secs`, `long_ttl_secs`, "
        "what a recall adds: `short_extend_secs`, `mid_extend_secs`; `archive_on_gc` 0 deletes expired notes",
    ),
    Setting(
        "tools",
        "default",
        _parse_tools,
        "MCP tools to list: `default`, `all`, or groups (`hints`, `history`, `memories`, `journal`, `admin`) and names "
        "separated by commas; the others stay callable",
        CALLER,
    ),
)


class Settings:
    """The settings in force, as attributes."""

    port: int
    auth: bool
    max_hints: int
    secret_guard: bool
    default_ttl: str
    session_grace: float
    hint_idle: float
    idle_exit: float
    autostart: bool
    log_level: str
    off: bool
    ignore: tuple[str, ...]
    cross_project: bool
    tell: str
    journal: str
    private_projects: tuple[str, ...]
    db: str
    retention: dict[str, int]
    memories: dict[str, float]
    tools: str

    def __init__(
        self,
        values: Mapping[str, Any],
        unknown: Iterable[str] = (),
        *,
        session: Mapping[str, str] | None = None,
        warnings: Iterable[str] = (),
    ) -> None:
        for setting in SETTINGS:
            setattr(self, setting.name, values.get(setting.name, setting.default))
        self.explicit = frozenset(values)
        """Those that somebody set; the others have their default."""
        self.unknown = tuple(unknown)
        """Keys of `config.toml` that are no setting."""
        self.session = dict(session or {})
        """What the session was told, as text by name: what is stored of these settings."""
        self.warnings = tuple(warnings)

    def describe_lifetime(self, meta: Mapping[str, Any], *, durable: bool = True) -> str:
        """How long a hint that is set now stays, for people. `durable`: the server has a change log."""
        ttl = meta.get("ttl", "session")
        if meta.get("sensitivity") == "secret":
            return "in memory only, until the server process ends"
        if not durable:
            return "in memory only, until the server ends (changes.log cannot be written)"
        seconds = clock.parse_lifetime(ttl)
        if seconds is not None:
            return f"for {_span_text(seconds)}"
        if not self.session_grace:
            return "until the last nudge process ends"
        return f"until it is not used for {_span_text(self.hint_idle)}" if self.hint_idle else "until the session ends"


def _span_text(seconds: float) -> str:
    """`30 days`, `1 hour`, `90 seconds`: in the largest unit that divides it."""
    size, unit = next(
        (size, unit) for size, unit in _SPAN_UNITS if (seconds >= size and seconds % size == 0) or size == 1
    )
    count = f"{seconds / size:g}"
    return f"{count} {unit}" if count == "1" else f"{count} {unit}s"


def load(environ: Mapping[str, str] = os.environ, flags: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process; the server's among them are those that the session's server goes by.

    A value that does not parse raises SettingInvalid, which names where it stands.
    """
    source = Sources(paths.runtime_dir(environ), flags, environ, continues=True)
    return source.resolve(source.stored_session)


def from_variables(environ: Mapping[str, str]) -> Settings:
    """What variables alone say: those of another process, whose `config.toml` is not ours to read."""
    return Settings({setting.name: _parse(setting, text, source) for setting, text, source in _overrides(environ, {})})


def load_or_default(environ: Mapping[str, str] = os.environ) -> tuple[Settings, str | None]:
    """For whoever must go on in any case: the defaults in place of settings that cannot be read, and the reason."""
    try:
        return load(environ), None
    except SettingInvalid as error:
        return _load_what_parses(environ), error.message


def _load_what_parses(environ: Mapping[str, str]) -> Settings:
    """Without `config.toml`: each stored setting, or else each variable, that parses by itself."""
    try:
        stored = read_stored(paths.runtime_dir(environ))
    except SettingInvalid:
        stored = None
    texts = stored.values if stored else {setting.name: text for setting, text, _ in _overrides(environ, {})}
    values = {}
    for setting in SETTINGS:
        try:
            if setting.name in texts:
                values[setting.name] = setting.parse(texts[setting.name])
        except ValueError:
            continue
    return Settings(values)


def _overrides(environ: Mapping[str, str], flags: Mapping[str, str]) -> Iterator[tuple[Setting, str, str]]:
    """Each setting that a flag or a variable sets: its text, and the flag or variable; a flag wins."""
    for setting in SETTINGS:
        if setting.name in flags:
            yield setting, flags[setting.name], setting.flag
        elif setting.variable in environ:
            yield setting, environ[setting.variable], setting.variable


def as_flags(overrides: Mapping[str, str]) -> list[str]:
    """The arguments that give `nudge serve` the same settings; `overrides` is text by name, as `Sources` has it."""
    arguments = []
    for setting in SETTINGS:
        if setting.name not in overrides:
            continue
        text = overrides[setting.name]
        if not setting.is_switch:
            arguments.append(f"{setting.flag}={text}")
        elif setting.parse(text) != setting.default:
            arguments.append(setting.flag)
    return arguments


def _parse(setting: Setting, raw: Any, source: str) -> Any:
    try:
        return setting.parse(raw)
    except ValueError as error:
        raise SettingInvalid(str(error), field=source) from None


def _read_toml(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    import tomllib  # late: 15 ms that most machines, having no such file, need not pay

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError) as error:  # no TOML, or no UTF-8
        raise SettingInvalid(f"cannot be read: {error}", field=path) from None


# Settings of the session


class StoredSettings:
    """What the runtime directory keeps of a session's settings: text by name."""

    __slots__ = ("session", "values", "warnings")

    def __init__(self, session: str | None, values: dict[str, str], warnings: Iterable[str] = ()) -> None:
        self.session, self.values, self.warnings = session, values, tuple(warnings)


def read_stored(directory: str) -> StoredSettings | None:
    """The stored settings; None when there are none. What cannot be read or is unknown is left out, with a warning."""
    raw = files.read_owned(os.path.join(directory, paths.SETTINGS))
    if raw is None:
        return None
    try:
        record = thin_json.loads(raw)
        session, stored = record["session"], dict(record["settings"])
    except (ValueError, TypeError, KeyError):
        return StoredSettings(_DAMAGED, {}, [f"{paths.SETTINGS} is damaged; the session's settings are lost"])
    values, warnings = {}, []
    for name, text in stored.items():
        setting = next((setting for setting in SETTINGS if setting.name == name and setting.used_by == SERVER), None)
        try:
            if setting is None:
                raise ValueError("is not a setting of this version")
            setting.parse(text)
            values[name] = str(text)
        except ValueError as error:
            warnings.append(f"{name} in {paths.SETTINGS} {error}; it is ignored")
    return StoredSettings(session, values, warnings)


def store(directory: str, session: str | None, values: Mapping[str, str]) -> None:
    """Keep what the session was told. Raises StorageFailed."""
    record = {"session": session, "settings": dict(values)}
    files.replace(os.path.join(directory, paths.SETTINGS), thin_json.dumps(record).encode())


def end_cleanly(directory: str) -> None:
    """A clean end turns authentication and the secret guard on again."""
    stored = read_stored(directory)
    if stored is not None and any(name in stored.values for name in _DROPPED_AT_A_CLEAN_END):
        store(directory, stored.session, _kept(stored.values))


def _kept(values: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in values.items() if name not in _DROPPED_AT_A_CLEAN_END}


class Sources:
    """Where the settings of a process come from: flags, variables, what the session has stored, `config.toml`.

    After a crash or a hand-over (`continues`) what the session has stored replaces what this process was told about the
    server; after a clean end what it was told comes first, and what is stored below it.
    """

    def __init__(
        self,
        directory: str,
        flags: Mapping[str, str] | None = None,
        environ: Mapping[str, str] = os.environ,
        *,
        continues: bool = False,
    ) -> None:
        paths.check_path_variables(environ)
        self.directory, self._continues = directory, continues
        self._config_file = paths.config_file(environ)
        overrides = list(_overrides(environ, flags or {}))
        self._parsed = {setting.name: _parse(setting, text, source) for setting, text, source in overrides}
        self.overrides = {setting.name: text for setting, text, _ in overrides if setting.used_by == SERVER}
        """The server's settings among flags and variables, as text by name."""
        self.stored = read_stored(directory)

    @property
    def stored_session(self) -> str | None:
        """The session that settings are stored for; None when there are none, or none that can be read."""
        return None if self.stored is None or self.stored.session == _DAMAGED else self.stored.session

    def resolve(self, session: str | None) -> Settings:
        """The settings of a process in `session`, or of a server that begins one (None)."""
        stored = self.stored if self.stored is not None and self.stored.session == session else None
        if stored is not None and self._continues:
            texts = stored.values
        else:
            texts = {**_kept(stored.values if stored else {}), **self.overrides}
        file = _read_toml(self._config_file)
        values = {}
        for setting in SETTINGS:
            if setting.name in texts:
                values[setting.name] = setting.parse(texts[setting.name])
            elif setting.used_by != SERVER and setting.name in self._parsed:
                values[setting.name] = self._parsed[setting.name]
            elif setting.name in file:
                values[setting.name] = _parse(setting, file[setting.name], f"{setting.name} in {self._config_file}")
        settings = Settings(
            values,
            sorted(file.keys() - {setting.name for setting in SETTINGS}),
            session=texts,
            warnings=self.stored.warnings if self.stored else (),
        )
        if self._continues:
            settings.explicit -= {"port"}  # scripts look for the server where the last one was
        return settings

    def save(self, session: str, settings: Settings) -> str | None:
        """Store them with the session's id; the reason when that fails (a full disk), which stops no server."""
        stored = self.stored
        if stored is not None and (stored.session, stored.values) == (session, settings.session):
            return None
        try:
            store(self.directory, session, settings.session)
        except StorageFailed as error:
            return f"{error.message}; the next server will not know this one's settings"
        return None


def differences(
    environ: Mapping[str, str], flags: Mapping[str, str] | None = None, port: int | None = None
) -> list[str]:
    """What this process was told and the session's server does not go by, as text for people; `port` is its port."""
    flags = flags or {}
    in_force = load(environ)
    lines = []
    for setting, text, source in _overrides(environ, flags):
        listens_there = setting.name == "port" and str(port) == text.strip()
        if setting.used_by != SERVER or listens_there or setting.parse(text) == getattr(in_force, setting.name):
            continue
        given = source if setting.is_switch and setting.name in flags else f"{source}={text}"
        current = in_force.session.get(setting.name, _shown(getattr(in_force, setting.name)))
        lines.append(f"{given} (the server has {current or 'none'})")
    return lines


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, dict):
        return ",".join(f"{name}={days}" for name, days in value.items())
    return ",".join(value) if isinstance(value, tuple) else str(value)


def database_file(environ: Mapping[str, str] = os.environ, settings: Settings | None = None) -> str:
    """The history's database: the session's, beside the runtime files when those were moved."""
    return (settings or load_or_default(environ)[0]).db or paths.default_database_file(environ)
