from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from nudge import config, paths


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
        paths.expanded("~/x"),
    ):
        assert place.startswith(account + "/")


@pytest.mark.parametrize("variable", ["NUDGE_RUNTIME_DIR", "NUDGE_DB", "NUDGE_CONFIG"])
def test_an_empty_variable_is_none(variable: str) -> None:
    """`NUDGE_DB= nudge ls` means the usual place."""
    places = (paths.runtime_dir, config.database_file, paths.config_file)
    assert [place({variable: ""}) for place in places] == [place({}) for place in places]
