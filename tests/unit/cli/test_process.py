"""The program as a process: what it loads, and how it behaves where a shell is rough."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
FOREIGN = ("rich", "httptools", "mcp", "pydantic", "re2", "difflib", "locale")


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


@pytest.mark.parametrize("words", [["get", "a", "b"], ["set", "a", "b", "c", "--global"], ["bump", "a", "b"]])
def test_hot_verbs_load_little(tmp_path: Path, words: list[str]) -> None:
    """Nothing costly and nothing foreign stands between a prompt and its answer."""
    code = f"import sys; from nudge.__main__ import main; main({words!r}); print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) & {*COSTLY, *FOREIGN} == set()


def test_help_and_version_load_no_parser(tmp_path: Path) -> None:
    """The verb is looked for before anything is imported."""
    code = "import sys; from nudge.__main__ import main; main([]); main(['--version']); print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert {"argparse", "json", "socket"} & set(done.stdout.splitlines()) == set()


def test_one_verb_loads_one_verb(tmp_path: Path) -> None:
    """The other verbs' modules stay on disk."""
    code = "import sys; from nudge.__main__ import main; main(['get', 'a', 'b']); print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert not any(
        f"nudge.cli.{name}" in done.stdout for name in ("set", "query", "scope_flags", "serve", "completion")
    )


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


def test_a_reader_that_leaves(tmp_path: Path) -> None:
    """`nudge ... | head -1` ends without a word."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "nudge", "completion", "bash"]
    with open(writer, "wb") as out:
        done = subprocess.run(command, env=environment(tmp_path), stdout=out, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


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
