"""The table of settings: name, default, how a value is parsed, and the description. docs/settings.md prints it, and
`nudge serve` has a flag for each that a hook does not read. `nudge.settings.config` determines the values."""

from __future__ import annotations

import os

from nudge.core import clock, limits, paths
from nudge.settings.switches import parse_switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SERVER, CALLER, HOOK = "server", "caller", "hook"
"""Who reads a setting: the server, at its start; a client of the server (CLI, PROXY); a hook."""

_ARCHIVE_ON_GC = "archive_on_gc"  # a switch
MEMORY_SETTINGS = (
    "short_ttl_secs",
    "mid_ttl_secs",
    "long_ttl_secs",
    "short_extend_secs",
    "mid_extend_secs",
    _ARCHIVE_ON_GC,
)
"""The keys of the table `[memories]`."""
KEYWORD, SEMANTIC, SMART, AUTONOMOUS = MEANING_TIERS = ("keyword", "semantic", "smart", "autonomous")
"""What finds notes, each with what those before it have."""


def _parse_whole(low: int, high: int) -> Callable[[Any], int]:
    def parse(raw: Any) -> int:
        text = str(raw).strip()
        if not text.isdecimal() or len(text) > len(str(high)) or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return parse


_parse_retention = _parse_whole(1, limits.MAX_RETENTION_DAYS)


def _parse_seconds(raw: Any) -> float:
    try:
        number = float(raw)
    except (ValueError, TypeError, OverflowError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ValueError("must be a number of seconds, 0 or more")
    return number


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
        return "1" if parse_switch(text) else "0"
    except ValueError:
        raise ValueError("must be 1, 0, or shadow:20% with a share of the sessions") from None


def _parse_journal(raw: Any) -> str:
    text = str(raw).strip().lower()
    if text in ("offer", "auto"):
        return text
    try:
        return "offer" if parse_switch(text) else "0"
    except ValueError:
        raise ValueError("must be offer, auto or 0") from None


def _parse_tier(raw: Any) -> str:
    text = str(raw).strip().lower()
    if text not in MEANING_TIERS:
        raise ValueError(f"must be {', '.join(MEANING_TIERS[:-1])} or {MEANING_TIERS[-1]}")
    return text


def _parse_model_url(raw: Any) -> str:
    """The address before `/chat/completions`; empty means none. A name and a password have no place in it."""
    url = str(raw).strip().rstrip("/")
    if not url:
        return ""
    from urllib.parse import urlsplit  # late: few set it

    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete or not url.isascii() or not url.isprintable() or len(url) > limits.MAX_MODEL_URL_CHARS:
        raise ValueError("must be an address such as http://127.0.0.1:11434/v1")
    if "@" in parts.netloc or parts.query or parts.fragment or any(char in url for char in ' \\"<>'):
        raise ValueError("must be an address without a login, a query or a fragment")
    return url


def _parse_model_name(raw: Any) -> str:
    name = str(raw).strip()
    if not name.isprintable() or len(name) > limits.MAX_MODEL_NAME_CHARS:
        raise ValueError(f"must be the name of a model, at most {limits.MAX_MODEL_NAME_CHARS} characters")
    return name


def _parse_names(raw: Any) -> tuple[str, ...]:
    """A list in `config.toml`; in the environment, separated by commas."""
    parts = raw if isinstance(raw, list) else str(raw).split(",")
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("must be a list of strings")
    return tuple(part.strip() for part in parts if part.strip())


def _parse_globs(raw: Any) -> tuple[str, ...]:
    """Each further `**` multiplies the time of a match by the number of names in the path, and every hook waits for
    it."""
    globs = _parse_names(raw)
    for glob in globs:
        if glob.rstrip("/").removesuffix("**").count("**") > limits.MAX_GLOBSTARS:
            raise ValueError(f"must have at most {limits.MAX_GLOBSTARS} `**` before the end of a glob: {glob}")
    return globs


def _parse_tools(raw: Any) -> str:
    """PRIMARY checks the names; an empty list means the default ones."""
    return ",".join(_parse_names(raw)) or "default"


def _parse_projects(raw: Any) -> tuple[str, ...]:
    """Project names are compared in lower case."""
    return tuple(name.casefold() for name in _parse_names(raw))


def _parse_days(raw: Any) -> dict[str, int]:
    """A table in `config.toml`; in the environment, `command=30,file_read=7`."""
    from nudge.history.observations import RETENTION_DAYS  # late: it loads the rules for secrets

    pairs = raw if isinstance(raw, dict) else dict(part.partition("=")[::2] for part in _parse_names(raw))
    try:
        days_by_type = {name.strip(): _parse_retention(days) for name, days in pairs.items()}
    except ValueError as error:
        raise ValueError(f"must be days by type, such as command=30,file_read=7; the days {error}") from None
    if unknown := sorted(days_by_type.keys() - RETENTION_DAYS.keys()):
        raise ValueError(
            f"must be days by type, such as command=30,file_read=7; {unknown[0]} is not a type, the types are: "
            f"{', '.join(RETENTION_DAYS)}"
        )
    return days_by_type


def _parse_memories(raw: Any) -> dict[str, float]:
    """A table in `config.toml`; in the environment, `short_ttl_secs=3600,archive_on_gc=0`."""
    pairs = raw if isinstance(raw, dict) else dict(part.partition("=")[::2] for part in _parse_names(raw))
    values = {str(name).strip(): value for name, value in pairs.items()}
    if not values.keys() <= set(MEMORY_SETTINGS):
        raise ValueError(f"must be seconds, 0 or more, by name: {', '.join(MEMORY_SETTINGS)}")
    return {name: _parse_memory_setting(name, value) for name, value in values.items()}


def _parse_memory_setting(name: str, value: Any) -> float:
    parse = parse_switch if name == _ARCHIVE_ON_GC else _parse_seconds
    try:
        return parse(value)
    except ValueError as error:
        raise ValueError(f"must be seconds by name, 0 or more; {name} {error}") from None


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
    """One setting. The name is that in `config.toml` (`max_hints`); the variable is `NUDGE_MAX_HINTS`."""

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
        """The flag of `nudge serve`: `--max-hints`; for a switch that is on by default, `--no-secret-guard`."""
        return ("--no-" if self.default is True else "--") + self.name.replace("_", "-")

    @property
    def default_flag(self) -> str:
        """The flag that sets a switch to its default: `--secret-guard`, `--no-cross-project`. It wins over what the
        session has stored and over config.toml."""
        return ("--" if self.default is True else "--no-") + self.name.replace("_", "-")


SETTINGS = (
    Setting(
        "port",
        limits.DEFAULT_PORT,
        _parse_whole(1, 65_535),
        "TCP port to try first; the next free one is taken when it is in use",
    ),
    Setting(
        "auth", True, parse_switch, "require the token over TCP (without it, any program on this machine is accepted)"
    ),
    Setting("max_hints", limits.MAX_HINTS, _parse_whole(1, 100_000), "hints held at once"),
    Setting("secret_guard", True, parse_switch, "refuse values that look like credentials"),
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
        "seconds after which a hint with ttl `session` goes if it is not set, returned, bumped or credited; 0 keeps it",
    ),
    Setting(
        "idle_exit",
        limits.IDLE_EXIT,
        _parse_seconds,
        "seconds without members and requests after which a detached server ends",
    ),
    Setting("autostart", True, parse_switch, "start a server when a command needs one and none runs", CALLER),
    Setting("log_level", "warn", _parse_level, "debug, info, warn or error"),
    Setting("off", False, parse_switch, "record and inject nothing", HOOK),
    Setting("ignore", (), _parse_globs, "globs of paths and directories about which nothing is recorded", HOOK),
    Setting("cross_project", False, parse_switch, "tell an agent that starts also about other repos"),
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
    Setting("private_projects", (), _parse_projects, "repos that are never told about elsewhere"),
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
        "tier",
        SEMANTIC,
        _parse_tier,
        "what finds notes: `keyword` their words, `semantic` also their meaning once there is a model, `smart` also a "
        "language model that you run, which proposes words, tags and contradictions, `autonomous` the same without "
        "being asked",
    ),
    Setting(
        "llm_url",
        "",
        _parse_model_url,
        "address of the language model of the tier `smart`, as far as `/v1`: `http://127.0.0.1:11434/v1` for Ollama",
    ),
    Setting("llm_model", "", _parse_model_name, "name of that model, as its server calls it"),
    Setting(
        "llm_remote",
        False,
        parse_switch,
        "let `llm_url` name another machine: titles and texts of notes, and queries that find little, are sent there",
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
