"""The values of the settings in `setting_table`, from flags, variables, the session and `config.toml`.

A flag wins over a variable, then `config.toml`, then the default. The server's settings belong to its session: the
flags and variables of the first server are stored in the runtime directory with the session's id, and every later
server of the session uses them, whichever process starts it (`Sources`)."""

from __future__ import annotations

import os

from nudge.core import clock, files, limits, paths, thin_json
from nudge.core.errors import SettingInvalid, StorageFailed
from nudge.settings.table import SERVER, SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from nudge.settings.table import Setting

_DROPPED_AT_A_CLEAN_END = ("auth", "secret_guard")
_FROM_ANY_PROCESS = ("db", "port")
_NEVER_FROM_CLIENT = ("llm_url", "llm_model", "llm_remote")
_SPAN_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
UNKNOWN_NAMES = "config.toml has names that are no settings"
_DAMAGED = "(damaged)"  # the id of no session: the stored settings are then not used


class Settings:
    """The values of all settings, as attributes."""

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
    tier: str
    llm_url: str
    llm_model: str
    llm_remote: bool
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
        """Names of the settings that are set; the others have their default."""
        self.unknown = tuple(unknown)
        """Keys of `config.toml` that are no setting."""
        self.session = dict(session or {})
        """The settings that are stored with the session, as text by name."""
        self.warnings = tuple(warnings)

    @property
    def unknown_warning(self) -> str | None:
        """The warning about keys of `config.toml` that are no setting, for the server's log and status."""
        return f"{UNKNOWN_NAMES}: {', '.join(self.unknown)}. fix: nudge doctor" if self.unknown else None

    def describe_lifetime(self, meta: Mapping[str, Any], *, durable: bool = True) -> str:
        """Return how long a hint that is set now is kept, as text for users. `durable`: the server has a change log."""
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
    """Return `30 days`, `1 hour`, `90 seconds`: the largest unit that divides the span."""
    size, unit = next(
        (size, unit) for size, unit in _SPAN_UNITS if (seconds >= size and seconds % size == 0) or size == 1
    )
    count = f"{seconds / size:g}"
    return f"{count} {unit}" if count == "1" else f"{count} {unit}s"


def load(environ: Mapping[str, str] = os.environ, flags: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of this process. The server's among them are those that the session's server uses.

    Raises SettingInvalid for a value that does not parse; it names the flag, variable or key.
    """
    source = Sources(paths.runtime_dir(environ), flags, environ, continues=True)
    return source.resolve(source.stored_session)


def from_variables(environ: Mapping[str, str]) -> Settings:
    """Return the settings in variables alone, for the environment of another process."""
    return Settings({setting.name: _parse(setting, text, source) for setting, text, source in _overrides(environ, {})})


def load_or_default(environ: Mapping[str, str] = os.environ) -> tuple[Settings, str | None]:
    """Return the settings, for callers that must not fail: with defaults in place of values that cannot be read, and
    the error message, or None."""
    try:
        return load(environ), None
    except SettingInvalid as error:
        return _load_what_parses(environ), error.message


def _load_what_parses(environ: Mapping[str, str]) -> Settings:
    """Return the stored settings, or those of variables, that parse; `config.toml` is not read."""
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
    """Yield each setting that a flag or variable sets, its text, and the name of the flag or variable; a flag wins. A
    switch in an empty variable is not set: it must not turn off what is on."""
    for setting in SETTINGS:
        if setting.name in flags:
            yield setting, flags[setting.name], setting.flag
        elif setting.variable in environ and (environ[setting.variable].strip() or not setting.is_switch):
            yield setting, environ[setting.variable], setting.variable


def without_model_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those that name a language model: notes are sent there."""
    named = {setting.variable for setting in SETTINGS if setting.name in _NEVER_FROM_CLIENT}
    return {name: text for name, text in environ.items() if name not in named}


def for_new_session(
    environ: Mapping[str, str], flags: Mapping[str, str] | None = None, *, of_command: bool
) -> dict[str, str]:
    """Return the settings, as text by name, that a server which this process starts takes if it begins a session: all
    of the server's that a command has in variables. Of a hook or a PROXY only database and port: their environment may
    come from a repository, which must not turn off the token or the secret guard."""
    return {
        setting.name: text
        for setting, text, _ in _overrides(environ, flags or {})
        if setting.used_by == SERVER and (of_command or setting.name in _FROM_ANY_PROCESS)
    }


def as_flags(overrides: Mapping[str, str]) -> list[str]:
    """Return the arguments that give `nudge serve` these settings; `overrides` is text by name, as in `Sources`."""
    arguments = []
    for setting in SETTINGS:
        if setting.name not in overrides:
            continue
        text = overrides[setting.name]
        if not setting.is_switch:
            arguments.append(f"{setting.flag}={text}")
        else:
            arguments.append(setting.default_flag if setting.parse(text) == setting.default else setting.flag)
    return arguments


def _parse(setting: Setting, raw: Any, source: str, file: str | None = None) -> Any:
    try:
        return setting.parse(raw)
    except ValueError as error:
        raise SettingInvalid(str(error), field=source, file=file) from None


def _read_toml(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    import tomllib  # late: 15 ms, and most machines have no such file

    try:
        content = files.read_regular(path, limits.MAX_SETTINGS_BYTES + 1)
        if len(content) > limits.MAX_SETTINGS_BYTES:
            raise ValueError(f"it is larger than {limits.MAX_SETTINGS_BYTES // limits.KIB} KiB")
        return tomllib.loads(content.decode())
    except RecursionError:
        raise SettingInvalid("cannot be read: it is nested too deep", field=path) from None
    except (OSError, ValueError) as error:  # not TOML, or not UTF-8
        raise SettingInvalid(f"cannot be read: {error}", field=path) from None


# Settings of the session


class StoredSettings:
    """The settings that are stored with a session, as text by name. `is_starting`: a server with these settings was
    starting and had not decided yet which session it is in."""

    __slots__ = ("is_starting", "session", "values", "warnings")

    def __init__(
        self,
        session: str | None,
        values: dict[str, str],
        warnings: Iterable[str] = (),
        *,
        is_starting: bool = False,
    ) -> None:
        self.session, self.values, self.warnings, self.is_starting = session, values, tuple(warnings), is_starting


def read_stored(directory: str) -> StoredSettings | None:
    """Return the stored settings; None when there are none. Unreadable and unknown ones are left out, with a
    warning."""
    raw = files.read_owned(os.path.join(directory, paths.SETTINGS))
    if raw is None:
        return None
    try:
        record = thin_json.loads(raw)
        session, stored, is_starting = record["session"], dict(record["settings"]), record.get("starting") is True
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
    return StoredSettings(session, values, warnings, is_starting=is_starting)


def store(directory: str, session: str | None, values: Mapping[str, str], *, is_starting: bool = False) -> None:
    """Store settings with the id of their session. Raises StorageFailed."""
    record = {"session": session, "settings": dict(values), **({"starting": True} if is_starting else {})}
    files.replace(os.path.join(directory, paths.SETTINGS), thin_json.dumps(record).encode())


def end_cleanly(directory: str) -> None:
    """Drop the stored settings that do not outlive a clean end: authentication and secret guard are on again."""
    stored = read_stored(directory)
    if stored is not None and (stored.is_starting or any(name in stored.values for name in _DROPPED_AT_A_CLEAN_END)):
        store(directory, stored.session, _kept(stored.values))


def _kept(values: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in values.items() if name not in _DROPPED_AT_A_CLEAN_END}


class Sources:
    """The sources of a process's settings: flags, variables, the session's stored settings, `config.toml`.

    After a crash or a hand-over (`continues`), also one of a server that was still starting, the stored settings
    replace this process's flags and variables for the server; after a clean end flags and variables win over the
    stored settings. `for_new` are settings of the process that started this server, as text by name: they count if it
    begins a session.
    """

    def __init__(
        self,
        directory: str,
        flags: Mapping[str, str] | None = None,
        environ: Mapping[str, str] = os.environ,
        *,
        continues: bool = False,
        for_new: Mapping[str, str] | None = None,
    ) -> None:
        paths.check_path_variables(environ)
        self.directory = directory
        self._config_file = paths.config_file(environ)
        overrides = list(_overrides(environ, flags or {}))
        self._parsed = {setting.name: _parse(setting, text, source) for setting, text, source in overrides}
        self.overrides = {setting.name: text for setting, text, _ in overrides if setting.used_by == SERVER}
        """The server's settings among flags and variables, as text by name."""
        given = for_new or {}
        self._for_new = {setting.name: given[setting.name] for setting in SETTINGS if setting.name in given}
        self.stored = read_stored(directory)
        self._has_begun = False
        self._before: tuple[str | None, dict[str, str]] | None = None
        self.continues = continues or (self.stored is not None and self.stored.is_starting)

    @property
    def stored_session(self) -> str | None:
        """The id of the session whose settings are stored; None when none are, or they cannot be read."""
        return None if self.stored is None or self.stored.session == _DAMAGED else self.stored.session

    def _values(self, texts: Mapping[str, str], file: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the settings that are given, each from the first place that has it."""
        values = {}
        for setting in SETTINGS:
            if setting.name in texts:
                values[setting.name] = setting.parse(texts[setting.name])
            elif setting.used_by != SERVER and setting.name in self._parsed:
                values[setting.name] = self._parsed[setting.name]
            elif setting.name in file:
                values[setting.name] = _parse(setting, file[setting.name], setting.name, self._config_file)
        return values

    def resolve(self, session: str | None) -> Settings:
        """Return the settings of a process in `session`, or of a server that begins one (None). Raises
        SettingInvalid."""
        stored = self.stored
        if stored is not None and stored.session != session and not stored.is_starting:
            stored = None
        if stored is not None and self.continues:
            texts = stored.values
        else:
            for_new = self._for_new if session is None else {}
            texts = {**_kept(stored.values if stored else {}), **for_new, **self.overrides}
        file = _read_toml(self._config_file)
        settings = Settings(
            self._values(texts, file),
            sorted(file.keys() - {setting.name for setting in SETTINGS}),
            session=texts,
            warnings=self.stored.warnings if self.stored else (),
        )
        if self.continues and not (stored is not None and stored.is_starting):
            settings.explicit -= {"port"}  # the last server's port is kept: scripts use it
        return settings

    def begin(self) -> None:
        """Store what this process was told, before it answers anything: should it die, the next server goes by it. The
        caller is the only one that may become the server."""
        if self.continues or not self.overrides:
            return
        before = self.stored
        self._before = None if before is None else (before.session, before.values)
        values = {**_kept(before.values if before else {}), **self.overrides}
        try:
            store(self.directory, self.stored_session, values, is_starting=True)
            self._has_begun = True
        except StorageFailed:  # a full disk, which the server reports once it has started
            pass

    def withdraw(self) -> None:
        """Undo `begin`: this process does not become the server, and nothing was asked of it."""
        if not self._has_begun:
            return
        try:
            if self._before is None:
                os.unlink(os.path.join(self.directory, paths.SETTINGS))
            else:
                store(self.directory, *self._before)
        except (OSError, StorageFailed):
            pass

    def save(self, session: str, settings: Settings) -> str | None:
        """Store the settings with the session's id. Return the reason when that fails (full disk): it does not stop the
        server."""
        stored = self.stored
        is_decided = stored is not None and not stored.is_starting and not self._has_begun
        if stored is not None and is_decided and (stored.session, stored.values) == (session, settings.session):
            return None
        try:
            store(self.directory, session, settings.session)
        except StorageFailed as error:
            return f"{error.message}; the next server will not know this one's settings"
        return None


def differences(
    environ: Mapping[str, str], flags: Mapping[str, str] | None = None, port: int | None = None
) -> list[str]:
    """Return the flags and variables of this process that the session's server does not use, as text for users. `port`
    is the server's port."""
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


def file_differences(environ: Mapping[str, str]) -> list[str]:
    """Return the lines of `config.toml` that the session's server does not use because a flag or a variable of its
    first server is kept with the session, as text for users."""
    path, in_force = paths.config_file(environ), load(environ)
    file = _read_toml(path)
    lines = []
    for setting in SETTINGS:
        if setting.name in file and setting.name in in_force.session:
            value = _parse(setting, file[setting.name], setting.name, path)
            if value != getattr(in_force, setting.name):
                current = in_force.session[setting.name]
                lines.append(f"{setting.name} = {_shown(value)} in config.toml (the session has {current})")
    return lines


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, dict):
        return ",".join(f"{name}={days}" for name, days in value.items())
    return ",".join(value) if isinstance(value, tuple) else str(value)


def database_file(environ: Mapping[str, str] = os.environ, settings: Settings | None = None) -> str:
    """Return the path of the history's database: the session's setting `db`, else the default."""
    return (settings or load_or_default(environ)[0]).db or paths.default_database_file(environ)
