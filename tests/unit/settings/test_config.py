from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from nudge.core import limits
from nudge.core.context import NO_CONTEXT
from nudge.core.errors import SettingInvalid
from nudge.core.operation import Group
from nudge.settings import config, switches
from nudge.settings.table import SETTINGS


def loaded(tmp_path: Path, text: str = "", **environ: str) -> config.Settings:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return config.load({"NUDGE_CONFIG": str(file), **environ})


def test_defaults(tmp_path: Path) -> None:
    """A setting that is not set has its default, and is not in `explicit`."""
    settings = loaded(tmp_path)
    assert {setting.name: getattr(settings, setting.name) for setting in SETTINGS} == {
        setting.name: setting.default for setting in SETTINGS
    }
    assert (settings.explicit, settings.unknown) == (frozenset(), ())


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    """Each setting by itself; both count as set."""
    settings = loaded(tmp_path, "port = 9000\nmax_hints = 7", NUDGE_PORT="9001")
    assert (settings.port, settings.max_hints, settings.explicit) == (9001, 7, frozenset(("max_hints",)))


def test_a_key_that_is_no_setting_is_known(tmp_path: Path) -> None:
    """It does not stop anything, since a newer Nudge may have put it there; who looks can see it."""
    assert loaded(tmp_path, "max_hint = 1\nport = 9000\nautostrat = 0").unknown == ("autostrat", "max_hint")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("port", "0"),
        ("port", "many"),
        ("max_hints", "1e3"),
        ("session_grace", "-1"),
        ("session_grace", "nan"),
        ("idle_exit", ""),
        ("secret_guard", "perhaps"),
        ("log_level", "loud"),
        ("default_ttl", "x"),
        ("default_ttl", "P1M"),
        ("retention", "command"),
        ("retention", "command=0"),
        ("retention", "command=36501"),
        ("retention", "comand=30"),
        ("max_hints", "9" * 5_000),
        ("memories", "mid_ttl_secs=soon"),
        ("memories", "mid_ttl=1"),
    ],
)
def test_a_variable_that_does_not_parse_names_itself(tmp_path: Path, name: str, text: str) -> None:
    """Also a lifetime, which a server would otherwise stumble over when it is too late to say so."""
    variable = "NUDGE_" + name.upper()
    with pytest.raises(SettingInvalid, match=f"^{variable}: must be "):
        loaded(tmp_path, **{variable: text})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_hints", '"x"'),
        ("session_grace", "[1]"),
        ("session_grace", "1" + "0" * 400),
        ("default_ttl", "5"),
        ("retention", '{command = "x"}'),
        ("retention", "{command = 0}"),
        ("retention", '"command=0"'),
        ("retention", "{comand = 30}"),
        ("memories", "{short_ttl_secs = -1}"),
        ("ignore", "[1]"),
        ("ignore", '["a/**/b/**/c/**/d"]'),
    ],
)
def test_a_key_that_does_not_parse_names_itself_and_its_file(tmp_path: Path, name: str, value: str) -> None:
    """The error names the key and the file, not a variable that was never set."""
    with pytest.raises(SettingInvalid) as refused:
        loaded(tmp_path, f"{name} = {value}")
    assert refused.value.message.startswith(f"{name} in {tmp_path / 'config.toml'}: ")
    assert refused.value.to_json()["data"]["field"] == refused.value.field == name


@pytest.mark.parametrize(
    "content",
    [b"port = ", b"\xff", b"a = " + b"[" * 50_000, b"a = " + b"{a=" * 50_000, b"#" * (limits.MAX_SETTINGS_BYTES + 1)],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes) -> None:
    """A file that cannot be read is named; `load_or_default` returns the defaults and the reason."""
    file = tmp_path / "config.toml"
    file.write_bytes(content)
    with pytest.raises(SettingInvalid, match=f"^{file}: cannot be read"):
        config.load({"NUDGE_CONFIG": str(file)})
    settings, problem = config.load_or_default({"NUDGE_CONFIG": str(file)})
    assert settings.explicit == frozenset() and problem is not None and problem.startswith(str(file))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_a_settings_file_that_is_no_regular_file(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A pipe or a device in its place is refused, not waited for; a hook, which looks for two words first, refuses it
    as well."""
    make(tmp_path / "config.toml")
    environ = {"NUDGE_CONFIG": str(tmp_path / "config.toml")}
    with pytest.raises(SettingInvalid, match="cannot be read: it is not a regular file"):
        config.load(environ)
    with pytest.raises(SettingInvalid, match="cannot be read: it is not a regular file"):
        switches.is_off(environ, str(tmp_path), NO_CONTEXT, ())


@pytest.mark.parametrize(
    ("raw", "tools"), [('"search, get_hint"', "search,get_hint"), ('["search", "get_hint"]', "search,get_hint")]
)
def test_lists_in_the_file(tmp_path: Path, raw: str, tools: str) -> None:
    """A list may be one, or a text with commas as the environment has it."""
    assert loaded(tmp_path, f"tools = {raw}").tools == tools


@pytest.mark.parametrize(
    ("name", "flag"),
    [("max_hints", "--max-hints"), ("secret_guard", "--no-secret-guard"), ("off", "--off"), ("tools", "--tools")],
)
def test_flags(name: str, flag: str) -> None:
    """A switch that is on is turned off by its flag."""
    (setting,) = (setting for setting in SETTINGS if setting.name == name)
    assert setting.flag == flag


def test_flags_say_what_was_told() -> None:
    """Every setting that was given goes with its text, a switch also when it has its default: it may replace a stored
    value or one in config.toml."""
    result = {"auth": "0", "secret_guard": "1", "max_hints": "7", "retention": "command=30"}
    assert config.as_flags(result) == ["--no-auth", "--max-hints=7", "--secret-guard", "--retention=command=30"]


@pytest.mark.parametrize("variable", ["NUDGE_RUNTIME_DIR", "NUDGE_DB", "NUDGE_CONFIG"])
@pytest.mark.parametrize("path", ["x", "./x", "~someone/x", ".."])
def test_a_path_that_depends_on_where_one_stands_is_refused(variable: str, path: str) -> None:
    """A relative one would make a second directory, with a second server, in each place where a command is run."""
    environ: dict[str, Any] = {variable: path}
    with pytest.raises(SettingInvalid, match=f"^{variable}: must be an absolute path"):
        config.load(environ)


def test_the_help_of_tools_names_every_group() -> None:
    """What `--tools` may choose by is in its description: the groups of the operation table, in its order."""
    (tools,) = (setting for setting in SETTINGS if setting.name == "tools")
    assert f"groups ({', '.join(f'`{group}`' for group in get_args(Group))})" in tools.description
