from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import platformdirs
import pytest

from nudge.core import paths
from nudge.core.errors import StorageFailed
from nudge.settings import config


def test_a_tilde_is_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no shell has expanded it, as in a client's configuration, it means what it means in a shell."""
    monkeypatch.setenv("HOME", "/home/ada")
    environ = {"NUDGE_RUNTIME_DIR": "~/run", "NUDGE_CONFIG": "~/nudge.toml"}
    assert paths.runtime_dir(environ) == "/home/ada/run"
    assert paths.config_file(environ) == "/home/ada/nudge.toml"
    assert paths.log_dir(environ) == "/home/ada/run/log"
    assert paths.default_database_file({"NUDGE_RUNTIME_DIR": "~/run"}) == "/home/ada/run/nudge.db"


@pytest.mark.parametrize("home", ["relative", "", ".", "~"])
def test_a_home_that_is_no_place_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str) -> None:
    """The account's own home is, so that nothing is scattered over the directories where commands are run."""
    monkeypatch.setenv("HOME", home)
    monkeypatch.chdir(tmp_path)
    account = pwd.getpwuid(os.getuid()).pw_dir
    assert paths.home() == account
    for place in (
        paths.runtime_dir({}),
        paths.config_file({}),
        paths.default_database_file({}),
        paths.log_dir({}),
        paths.expand_home("~/x"),
    ):
        assert place.startswith(account + "/")


@pytest.mark.parametrize("variable", ["NUDGE_RUNTIME_DIR", "NUDGE_DB", "NUDGE_CONFIG"])
def test_an_empty_variable_is_none(variable: str) -> None:
    """`NUDGE_DB= nudge ls` means the usual place."""
    places = (paths.runtime_dir, config.database_file, paths.config_file)
    assert [place({variable: ""}) for place in places] == [place({}) for place in places]


@pytest.mark.parametrize("kind", ["data", "config", "log"])
def test_the_thin_answer_is_that_of_platformdirs(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A hook cannot afford its import; without `XDG_*` it must come to the same place."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    assert paths._plain_directory(kind) == getattr(platformdirs, f"user_{kind}_dir")("nudge", appauthor=False)


def test_directories_are_resolved_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first process decides by its `XDG_*`; every later one goes by that, whatever its own environment says."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "first"))
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "first")}
    assert paths.config_file(environ) == str(tmp_path / "first" / "nudge" / "config.toml")
    os.makedirs(paths.runtime_dir(environ))
    paths.store_directories(paths.runtime_dir(environ))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "second"))
    paths.store_directories(paths.runtime_dir(environ))
    for variables in ({}, {"XDG_CONFIG_HOME": str(tmp_path / "second")}):
        assert paths.config_file(variables) == str(tmp_path / "first" / "nudge" / "config.toml")
    assert os.stat(os.path.join(paths.runtime_dir(environ), paths.DIRECTORIES)).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "null", "[]", "{}", '{"data": "x", "config": "y", "log": "z"}', "{"])
def test_a_stored_answer_that_is_none_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str
) -> None:
    """Damaged, or relative, which would be another place in every directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    os.makedirs(paths.runtime_dir({}))
    stored = Path(paths.runtime_dir({}), paths.DIRECTORIES)
    stored.write_text(content)
    stored.chmod(0o600)
    assert paths.config_file({}) == str(tmp_path / ".config" / "nudge" / "config.toml")
    paths.store_directories(paths.runtime_dir({}))
    assert set(json.loads(stored.read_text())) == {"data", "config", "log"}


def test_a_directory_below_another_user_s_is_refused(tmp_path: Path) -> None:
    """He could rename it and put another in its place. The same below one that everybody may write to, unless it is
    sticky as /tmp is."""
    above = tmp_path / "above"
    private = above / "between" / "runtime"
    paths.ensure_private_dir(str(private))
    above.chmod(0o777)
    with pytest.raises(StorageFailed, match=r"above, above .*, is writable by everybody; set NUDGE_RUNTIME_DIR"):
        paths.ensure_private_dir(str(private))
    above.chmod(0o1777)
    paths.ensure_private_dir(str(private))
    if os.getuid() == 0:
        os.chown(above, 12345, -1)
        with pytest.raises(StorageFailed, match="belongs to another user"):
            paths.ensure_private_dir(str(private))
