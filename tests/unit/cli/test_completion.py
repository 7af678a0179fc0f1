from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nudge.cli import verbs
from nudge.cli.completion import SCRIPTS

from .conftest import HINT, Nudge, Server

BASH = shutil.which("bash")


@pytest.fixture
def known(server: Server) -> Server:
    server.answers["nudge.list_components"] = {
        "components": [
            {"name": "api", "hint_count": 2},
            {"name": "http-proxy", "hint_count": 1},
            {"name": "evil\nname", "hint_count": 1},
        ],
        "hints": [{"key": key, "hint": HINT, "eligible": True, "reasons": []} for key in ("build", "build", "test")],
    }
    return server


def candidates(nudge: Nudge, *words: str) -> list[str]:
    outcome = nudge("complete", "--", *words)
    assert (outcome.code, outcome.err) == (0, "")
    return [line.partition("\t")[0] for line in outcome.out.splitlines()]


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_scripts(nudge: Nudge, shell: str) -> None:
    """Each shell gets a script that asks `nudge complete` and serves both command names."""
    outcome = nudge("completion", shell)
    assert outcome.code == 0 and outcome.out == SCRIPTS[shell]
    assert " complete -- " in outcome.out and "nudge-mcp" in outcome.out


def test_an_unknown_shell(nudge: Nudge) -> None:
    """The shells there are stand in the line."""
    outcome = nudge("completion", "tcsh")
    assert outcome.code == 2 and "'fish'" in outcome.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_syntax(shell: str) -> None:
    """The shell itself accepts its script."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([program, "-n"], input=SCRIPTS[shell], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("nudge ge", ["get"]),
        ("nudge get ht", ["http-proxy"]),
        ("nudge get scope:a", ["api", "as\\ is"]),
        ("nudge get $", [r"\$\(touch\ x\)"]),
        ("nudge get ", ["http-proxy", "scope:api", "scope:as\\ is", r"\$\(touch\ x\)", "get"]),
    ],
)
def test_bash(tmp_path: Path, line: str, reply: list[str]) -> None:
    """Bash puts in what fits, quoted, and without the part before a colon that it already has."""
    stand_in = tmp_path / "nudge"
    names = "http-proxy\\nscope:api\\nscope:as is\\n$(touch x)\\nget\\thelp\\n"
    stand_in.write_text(
        f'#!/bin/bash\nprintf \'{names}\' | while read -r n; do [[ "$n" == "${{@: -1}}"* ]] && printf "%s\\n" "$n"; done\n'
    )
    stand_in.chmod(0o755)
    script = f"{SCRIPTS['bash']}\nCOMP_LINE='{line}' COMP_POINT={len(line)}\n_nudge {stand_in}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    assert BASH is not None
    done = subprocess.run([BASH], input=script, text=True, capture_output=True, check=True, cwd=tmp_path)
    assert (done.stdout.splitlines(), done.stderr) == (reply, "")


def test_verbs_are_offered(nudge: Nudge) -> None:
    """First come the verbs, also after a global flag; hidden ones stay hidden."""
    shown = [verb.name for verb in verbs.VERBS if not verb.hidden]
    assert candidates(nudge) == candidates(nudge, "") == candidates(nudge, "-p", "9000", "") == shown
    assert candidates(nudge, "s") == ["set", "scan", "search", "sessions", "show", "serve", "status", "stop"]


def test_options_are_offered(nudge: Nudge) -> None:
    """A dash asks for the flags of the verb, or the global ones before it."""
    assert candidates(nudge, "get", "--va") == ["--value-only"]
    assert candidates(nudge, "--") == ["--port", "--json", "--help", "--version"]
    assert "--successor" not in candidates(nudge, "serve", "--")


def test_choices_are_offered(nudge: Nudge) -> None:
    """A flag or an argument with a fixed set of values offers them."""
    assert candidates(nudge, "set", "a", "b", "--type", "j") == ["json"]
    assert candidates(nudge, "completion", "") == ["bash", "zsh", "fish"]


@pytest.mark.parametrize(
    "words", [["delete", "a", "b", "--scope-os"], ["set", "a", "b", "--scope-os"], ["set", "a", "b", "--os"]]
)
def test_names_in_a_list_are_offered(nudge: Nudge, words: list[str]) -> None:
    """A flag that takes several of some known names offers each of them, and behind a comma those that are not there
    yet."""
    assert candidates(nudge, *words, "") == ["linux", "darwin", "windows"]
    assert candidates(nudge, *words, "linux,") == ["linux,darwin", "linux,windows"]
    assert candidates(nudge, *words, "linux,d") == ["linux,darwin"]


def test_names_come_from_the_server(nudge: Nudge, known: Server) -> None:
    """Components and keys are those of the running server, which is never started for it; odd names are left out."""
    assert candidates(nudge, "get", "") == ["api", "http-proxy"]
    assert candidates(nudge, "query", "--component", "h") == ["http-proxy"]
    assert candidates(nudge, "-p", "9000", "get", "--branch", "dev", "api", "") == ["build", "test"]
    assert known.params == {"component": "api"} and known.made_with["port"] == 9000
    assert known.started == [False, False, False] and known.made_with["autostart"] is False


def test_nothing_to_offer(nudge: Nudge, known: Server) -> None:
    """Where a shell should offer files, or nothing, it gets nothing."""
    for words in (
        ["import", ""],
        ["get", "a", "b", ""],
        ["nonsense", ""],
        ["get", "a", "b", "--cwd", ""],
        ["set", "a", "b", ""],
    ):
        assert candidates(nudge, *words) == []
    assert known.calls == []


def test_it_never_fails(nudge: Nudge, server: Server) -> None:
    """No server, a broken one, nonsense on the line: exit 0 and silence."""
    assert candidates(nudge, "get", "") == []
    server.endpoints = [None]
    assert candidates(nudge, "get", "") == []
    assert candidates(nudge, "-p", "many", "get", "") == []


def test_scripts_run_without_a_server(tmp_path: Path) -> None:
    """The real program answers a Tab with no server there, and starts none."""
    command = [sys.executable, "-m", "nudge", "complete", "--", "get", ""]
    env = {"NUDGE_RUNTIME_DIR": str(tmp_path / "run"), "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, env=env, capture_output=True, check=True)
    assert (done.stdout, done.stderr, (tmp_path / "run").exists()) == (b"", b"", False)
