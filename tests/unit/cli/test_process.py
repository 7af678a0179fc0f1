"""The program as a process: what it loads, and how it behaves where a shell is rough."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nudge.core import limits
from tests.harness import TIMEOUT

ROOT = Path(__file__).parents[3]
COSTLY = (
    "dataclasses",
    "typing",
    "pathlib",
    "subprocess",
    "logging",
    "inspect",
    "asyncio",
    "http",
    "urllib",
    "tempfile",
    "shutil",
)
FOREIGN = ("click", "argparse", "aiohttp", "mcp", "pydantic", "re2", "difflib", "locale")


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT), "NUDGE_RUNTIME_DIR": str(tmp_path / "run"), "NUDGE_AUTOSTART": "0", **more}


def run(tmp_path: Path, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nudge", *words],
        env=environment(tmp_path),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def modules_of(tmp_path: Path, words: list[str]) -> set[str]:
    """What a command line loads."""
    code = f"import sys; from nudge.__main__ import main; main({words!r}); print('\\n' + '\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines())


@pytest.mark.parametrize(
    "words",
    [
        ["get", "a", "b"],
        ["get", "a", "b", "--json", "--explain"],
        ["set", "a", "b", "c", "--global", "--tags", "x,y", "--type", "command"],
        ["bump", "a", "b", "--delta", "-1"],
    ],
)
def test_plain_lines_load_little(tmp_path: Path, words: list[str]) -> None:
    """Nothing costly and nothing foreign stands between a prompt and its answer."""
    assert modules_of(tmp_path, words) & {*COSTLY, *FOREIGN} == set()


@pytest.mark.parametrize(
    ("verb", "module"), [("ls", "hints.cli"), ("sessions", "history.cli"), ("status", "cli.server")]
)
def test_a_verb_loads_its_own_module(tmp_path: Path, verb: str, module: str) -> None:
    """The modules of the other verbs are not imported, and nothing of the server is."""
    loaded = modules_of(tmp_path, [verb])
    verbs = {"hints.cli", "notes.cli", "history.cli", "telling.cli"}
    verbs |= {
        "hints.transfer_cli",
        "notes.transfer_cli",
        "notes.archive_cli",
        "history.purge_cli",
        "history.backup_cli",
        "cli.server",
        "cli.connect",
        "cli.man",
    }
    assert {name for name in verbs if f"nudge.{name}" in loaded} == {module}
    assert loaded & {"aiohttp", "asyncio", "mcp", "pydantic", "re2", "wcmatch", "filelock"} == set()


@pytest.mark.parametrize("words", [["--help"], ["frobnicate"]])
def test_help_loads_nothing_of_the_server(tmp_path: Path, words: list[str]) -> None:
    """It asks each verb for its summary."""
    loaded = modules_of(tmp_path, words)
    assert "nudge.history.cli" in loaded
    assert loaded & {"aiohttp", "asyncio", "mcp", "pydantic", "re2", "wcmatch", "filelock", "sqlite3"} == set()


def test_the_version_loads_no_verb(tmp_path: Path) -> None:
    """Nothing is looked up for it."""
    loaded = modules_of(tmp_path, ["--version"])
    assert not {
        name for name in loaded if name.startswith("nudge.") and name.endswith((".cli", ".connect", ".server"))
    } - {"nudge.cli"}


def test_without_home(tmp_path: Path) -> None:
    """cron and some clients start us with next to no environment: a command still ends in a clear line."""
    done = run(tmp_path, "get", "a", "b", cwd=tmp_path)
    assert (
        done.returncode == 4
        and done.stderr.startswith("nudge: E_UNAVAILABLE (50301): ")
        and done.stderr.count("\n") == 1
    )


def test_in_a_directory_that_is_gone(tmp_path: Path) -> None:
    """The shell may stand in a directory that somebody deleted."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec "{sys.executable}" -m nudge get a b'
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 4 and done.stderr.count("\n") == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("line", ["completion bash", "-V", "--version", "get --version", "--help", "get --help"])
def test_a_reader_that_leaves(tmp_path: Path, line: str, unbuffered: str) -> None:
    """`nudge ... | head -1` ends without a word, also where an option prints while the line is parsed."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "nudge", *line.split()]
    environ = environment(tmp_path, PYTHONUNBUFFERED=unbuffered)
    with open(writer, "wb") as out:
        done = subprocess.run(command, env=environ, stdout=out, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


def test_an_interrupted_hook(tmp_path: Path) -> None:
    """Ctrl-C while `nudge record` reads its event exits with 130 and prints nothing."""
    # A test that runs in the background inherits that SIGINT is ignored, and so would the hook.
    command = f"{sys.executable!r}, [{sys.executable!r}, '-m', 'nudge', 'record']"
    start = f"import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv({command})"
    process = subprocess.Popen(
        [sys.executable, "-c", start],
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(b" " * (limits.MIB // 2))  # more than a pipe holds, less than the hook reads at the most
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=TIMEOUT) == (b"", b"")
    assert process.returncode == 130


def test_a_closed_stdout(tmp_path: Path) -> None:
    """`nudge ... >&-` is no reason to crash."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'"{sys.executable}" -m nudge completion bash >&-'],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("line", ["completion bash", "get --help", "--version", "get a b --json", "ls --json"])
def test_a_full_disk(tmp_path: Path, line: str, unbuffered: str) -> None:
    """Output that cannot be written is an error of one line, from the thin front and from click, help and errors."""
    with open("/dev/full", "wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "nudge", *line.split()],
            env=environment(tmp_path, PYTHONUNBUFFERED=unbuffered),
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (3, b"nudge: cannot write the output: No space left on device\n")


@pytest.mark.parametrize(
    "line",
    ["set api x -", "remember -", "import -", "note store -T t -c -", "note import -", "set api x - --ttl 1d"],
)
@pytest.mark.parametrize(("stdin", "reason"), [("0<&-", "it is closed"), ("0> x", "Bad file descriptor")])
def test_stdin_that_cannot_be_read(tmp_path: Path, line: str, stdin: str, reason: str) -> None:
    """Every verb that reads stdin says in one sentence that it cannot, and exits with 2."""
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m nudge {line} {stdin}'],
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    verb = line.partition(" -")[0].removesuffix(" api x")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"nudge {verb}: cannot read stdin: {reason}; ") and done.stderr.count("\n") == 1


def in_shell(tmp_path: Path, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", line.replace("nudge", f'"{sys.executable}" -m nudge', 1)],
        env=environment(tmp_path, HOME=str(tmp_path)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


def break_codex(tmp_path: Path) -> None:
    """Make `nudge connect codex` refuse: its configuration cannot be parsed."""
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text("[")


LINES_WITH_NOTES = [
    ("get a b --value-only", 4),
    ("get a b --value-only -p 8799", 4),
    ("get a b c", 2),
    ("frobnicate", 2),
    ("backfill nowhere", 2),
    ("connect codex --yes", 3),
]


@pytest.mark.parametrize(("line", "code"), LINES_WITH_NOTES)
def test_a_closed_stderr(tmp_path: Path, line: str, code: int) -> None:
    """Errors are never printed to stdout, where `eval "$(nudge get ...)"` would run them."""
    break_codex(tmp_path)
    done = in_shell(tmp_path, f"nudge {line} 2>&-")
    assert (done.returncode, done.stdout) == (code, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize(("line", "code"), LINES_WITH_NOTES)
def test_a_full_stderr(tmp_path: Path, line: str, code: int) -> None:
    """The exit code is that of the command, although nobody reads the reason."""
    break_codex(tmp_path)
    done = in_shell(tmp_path, f"nudge {line} 2>/dev/full")
    assert (done.returncode, done.stdout) == (code, "")
