from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nudge.clients import claude_code, codex
from nudge.clients import executable as executables
from nudge.clients.executable import Executable, is_our_hook
from nudge.core import paths
from nudge.core.errors import Invalid
from tests.unit.clients.homes import script

SHELLS = [shell for shell in ("/bin/sh", "/bin/bash", "/usr/bin/zsh", "/usr/bin/fish") if os.path.exists(shell)]
NAMES = ("nudge", "my nudge", "it's", 'a"b', "$HOME", "ü")


def test_the_executable_is_the_one_on_path(executable: str) -> None:
    """As found there: a link that an upgrade turns to a new version stays good."""
    assert executables.find() == Executable(executable)


def test_a_link_is_not_looked_behind(bin_directory: Path, tmp_path: Path) -> None:
    """What it points to changes with every upgrade."""
    (bin_directory / "nudge").unlink()
    script(tmp_path / "real", "exit 0")
    (bin_directory / "nudge").symlink_to(tmp_path / "real")
    assert executables.find().path == str(bin_directory / "nudge")


def test_a_shim_is_looked_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executable: str) -> None:
    """It costs every hook 100 ms to find out what we can ask once."""
    shims = tmp_path / "shims"
    shims.mkdir()
    script(shims / "nudge", "exit 1")
    script(shims / "pyenv", f'[ "$*" = "which nudge" ] && echo "{executable}"')
    monkeypatch.setenv("PATH", f"{shims}:/bin:/usr/bin")
    assert executables.find() == Executable(executable)
    script(shims / "pyenv", "exit 1")
    assert executables.find() == Executable(str(shims / "nudge"))


def test_without_one_the_error_says_how_to_install_it(bin_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that is not there would be wired for ever."""
    (bin_directory / "nudge").unlink()
    monkeypatch.setattr(sys, "executable", str(bin_directory / "python"))
    with pytest.raises(Invalid, match="uv tool install"):
        executables.find()


@pytest.mark.parametrize("cache", [".cache/uv/archive-v0/x1/bin", ".local/pipx/.cache/x1/bin"])
def test_a_passing_installation_is_not_wired(cache: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`uvx nudge-mcp connect` works until its cache is emptied; hooks would then fall silent without a word."""
    (home / cache).mkdir(parents=True)
    script(home / cache / "nudge", "exit 0")
    monkeypatch.setenv("PATH", str(home / cache))
    with pytest.raises(Invalid, match="install it permanently"):
        executables.find()


def hook(program: Path) -> str:
    """What a client runs, with the script for it installed."""
    executable = Executable(str(program))
    executables.install_hook_script(executable)
    return shlex.join(executable.hook)


def run(shell: str, command: str, path: str = "/bin:/usr/bin") -> subprocess.CompletedProcess[str]:
    environ = {"PATH": path}
    return subprocess.run(
        [shell, "-c", command], input="the event", capture_output=True, text=True, check=False, env=environ
    )


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", NAMES)
def test_the_hook_runs_us_and_outlives_us(shell: str, name: str, tmp_path: Path) -> None:
    """It hands over stdin, both outputs and the exit code; with the file gone, or no program any more, it succeeds and
    says nothing."""
    program = script(tmp_path / name, 'echo "$*:$(cat)"; echo "a %s b" >&2; exit 3')
    command = hook(program)
    done = run(shell, command)
    assert (done.stdout, done.stderr, done.returncode) == ("record:the event\n", "a %s b\n", 3)
    program.chmod(0o644)
    assert (run(shell, command).returncode, run(shell, command).stderr) == (0, "")
    program.unlink()
    gone = run(shell, command)
    assert (gone.stdout, gone.stderr, gone.returncode) == ("", "", 0)


BROKEN = {
    "interpreter": "#!/nonexistent/bin/python\n",
    "interpreter behind a shell": '#!/bin/sh\nexec /nonexistent/bin/python "$0" "$@"\n',
    "package": f"#!{sys.executable} -IS\nimport nudge\n",
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("lost", BROKEN)
def test_the_hook_outlives_what_we_run_on(shell: str, lost: str, tmp_path: Path) -> None:
    """Whoever removes an environment may leave the script in it, or a link to it, behind."""
    program = tmp_path / "nudge"
    program.write_text(BROKEN[lost])
    program.chmod(0o755)
    done = run(shell, hook(program))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_the_hook_tells_of_other_failures(tmp_path: Path) -> None:
    """Only its own absence is nothing to tell."""
    program = script(tmp_path / "nudge", "echo 'nudge record: the spool is full' >&2; exit 1")
    done = run("/bin/sh", hook(program))
    assert (done.stdout, done.stderr, done.returncode) == ("", "nudge record: the spool is full\n", 1)


def test_hooks_are_one_short_readable_command() -> None:
    """No shell riddle: the script of ours, and `record`; Claude Code starts it without a shell."""
    executable = Executable("/opt/nudge")
    handlers = claude_code.CLIENT.hook_handlers(executable).values()
    assert {(handler["command"], *handler["args"]) for handler in handlers} == {
        (executables.hook_script_path(), "record")
    }
    assert {handler["command"] for handler in codex.CLIENT.hook_handlers(executable).values()} == {
        f"{executables.hook_script_path()} record"
    }


def test_the_script_of_the_hooks_is_the_owner_s_alone() -> None:
    """In the data directory, 0700."""
    executables.install_hook_script(Executable("/opt/nudge"))
    assert os.path.dirname(executables.hook_script_path()) == paths.data_dir()
    assert stat.S_IMODE(os.stat(executables.hook_script_path()).st_mode) == 0o700


@pytest.mark.parametrize("lost", [None, *BROKEN])
def test_the_hook_finds_nudge_on_path_when_the_executable_is_gone(lost: str | None, tmp_path: Path) -> None:
    """Installed again in another way, or left behind without what it runs on."""
    program = tmp_path / "nudge"
    command = hook(program)
    if lost is not None:
        program.write_text(BROKEN[lost])
        program.chmod(0o755)
    other = tmp_path / "other"
    other.mkdir()
    script(other / "nudge", 'echo "$*:$(cat)"')
    assert run("/bin/sh", command, f"{other}:/bin:/usr/bin").stdout == "record:the event\n"


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("/home/me/.local/share/nudge/nudge-hook record", True),
        ("'/my tools/nudge-hook' record", True),
        ("${CLAUDE_PLUGIN_ROOT}/hooks/nudge-hook record", True),
        ("nudge record", True),
        ("/x/nudge-mcp record", True),
        ("command -v nudge >/dev/null && exec nudge record || exit 0", True),
        ("denudge record", False),
        ("nudge recorder", False),
        ("echo nudge", False),
        ("", False),
    ],
)
def test_our_hooks_are_known(command: str, ours: bool) -> None:
    """By the command, whatever installation wrote it."""
    assert is_our_hook(command) is ours
