"""A repo is untrusted text: nothing in it may crash, hang, escape or be passed on."""

from __future__ import annotations

import json
import math
import os
import random
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from nudge.core import limits
from nudge.manifests import scan_repo
from tests.unit.manifests.repos import commands, write_repo
from tests.unit.manifests.test_known_repos import DJANGO, KUBERNETES, PETCLINIC, PYTEST, RIPGREP, VITE, VOTING_APP

T = TypeVar("T")

GOOD = {"ok/Makefile": "test:\n"}
GOOD_COMMANDS = ["make -C ok test"]

BOMB = (
    '<!DOCTYPE p [<!ENTITY a "aaaaaaaaaa"><!ENTITY b '
    '"&a;&a;&a;&a;&a;&a;">]><project><artifactId>&b;</artifactId></project>'
)
# Each level holds the one above nine times: 9**9 nodes, copied; each level holds the one above 60 deep.
ALIAS_BOMB = "a0: &a0 x\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]\n" for n in range(1, 10))
MERGE_BOMB = "a0: &a0 {build: .}\n" + "".join(
    f"a{n}: &a{n} {{<<: *a{n - 1}, x: *a{n - 1}, y: *a{n - 1}}}\n" for n in range(1, 40)
)
DEPTH_BOMB = "a0: &a0 x\n" + "".join(f"a{n}: &a{n} {'[' * 60}*a{n - 1}{']' * 60}\n" for n in range(1, 40))
OUTSIDE = '<!DOCTYPE p [<!ENTITY x SYSTEM "file:///etc/passwd">]><project><artifactId>&x;</artifactId></project>'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("package.json", "{"),
        ("package.json", "[" * 100_000),
        ("package.json", '{"a":' * 50_000),
        ("package.json", "1" * 10_000),
        ("pyproject.toml", "[project\nname="),
        ("pyproject.toml", "a = " + "[" * 100_000),
        ("pyproject.toml", "a" + ".a" * 200_000 + " = 1"),
        ("pyproject.toml", '"a"' + ' . "=" ' * 60_000 + " = 1"),
        ("Cargo.toml", "[" + "a." * 100_000 + "a]"),
        ("pom.xml", "<project>"),
        ("pom.xml", BOMB),
        ("pom.xml", OUTSIDE),
        ("noxfile.py", "def ("),
        ("noxfile.py", "(" * 50_000),
        ("noxfile.py", "-" * 200_000 + "1"),
        ("noxfile.py", "a" + ".a" * 100_000),
        ("noxfile.py", "1" + "+1" * 100_000),
        ("compose.yaml", "- " * 100_000 + "a: b"),
        ("Taskfile.yml", "".join(" " * depth + "a:\n" for depth in range(900))),
        ("compose.yaml", "services: " + "[" * 100_000),
        ("compose.yaml", "services: " + "{a: " * 100_000),
        ("compose.yaml", "? " * 100_000),
        ("compose.yaml", "services: {web: [}"),
        ("compose.yaml", "services: \x1b[2J"),
        ("compose.yaml", "services: &a {web: *a}"),
        ("compose.yaml", "services: *nowhere"),
        ("compose.yaml", "%TAG !a! tag:a\n---\nservices: {}"),
        ("compose.yaml", ALIAS_BOMB),
        ("compose.yaml", MERGE_BOMB),
        ("compose.yaml", DEPTH_BOMB),
    ],
)
def test_broken_file_is_listed_and_skipped(tmp_path: Path, name: str, text: str) -> None:
    """What cannot be parsed is one line among the problems; the rest of the repo is read."""
    root = write_repo(tmp_path, GOOD)
    (root / name).write_text(text)
    scan = scan_repo(root)
    assert [each.cmd for each in scan.commands] == GOOD_COMMANDS
    assert len(scan.problems) == 1 and scan.unread == [name]
    assert scan.problems[0].startswith(f"{name}: cannot be parsed (")
    assert scan.problems[0].isprintable() and len(scan.problems[0]) < 200


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"test:\n\0", "not a text file"),
        (b"test:\n\xff\xfe", "not UTF-8"),
        (b"test:\n" + b"#" * limits.MAX_MANIFEST_BYTES, "larger than 512 KiB"),
    ],
)
def test_unreadable_file_is_listed_and_skipped(tmp_path: Path, raw: bytes, why: str) -> None:
    """Binary, wrongly encoded and huge files are not looked into."""
    root = write_repo(tmp_path, GOOD)
    (root / "Makefile").write_bytes(raw)
    scan = scan_repo(root)
    assert [each.cmd for each in scan.commands] == GOOD_COMMANDS
    assert scan.problems == [f"Makefile: {why}"] and scan.unread == ["Makefile"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Makefile", "a " * 200_000),
        ("Makefile", "\\\n" * 200_000),
        ("Makefile", "test:" + " " * 400_000 + "x"),
        ("Makefile", "test: " + "export " * 60_000),
        ("justfile", "test" + " a" * 200_000),
        ("justfile", "test " + "+" * 400_000 + ":"),
        ("package.json", json.dumps({"scripts": {"format": " " * 400_000}})),
        ("pyproject.toml", '[project]\nname = "' + "a" * 400_000 + '"'),
        ("pyproject.toml", "# " + "a" * 400_000),
        ("pyproject.toml", "# " + '"' * 400_000),
        ("pyproject.toml", "# " + "a" * 39 + ". a" * 130_000),
        ("setup.py", "name " * 90_000),
        ("setup.py", "name" + " " * 400_000),
        ("setup.cfg", " a\n" * 130_000),
        ("tox.ini", "[tox]\nenvlist =" + " " * 400_000),
        ("go.mod", "module " * 70_000),
        ("settings.gradle", "include " + "," * 400_000),
        ("settings.gradle", "include\n" * 60_000),
        ("build.gradle", "id" + " (" * 200_000),
        ("pom.xml", "<a>" * 100_000 + "</a>" * 10),
        ("compose.yaml", "a: b\n" * 100_000),
        ("compose.yaml", "a:" + " " * 400_000),
        ("compose.yaml", "a: '" + "''" * 200_000),
        ("compose.yaml", "a: x\n" + "  y\n" * 120_000),
        ("compose.yaml", "# x\n" * 120_000),
        ("compose.yaml", "[" + "a," * 200_000),
        ("compose.yaml", "".join(f"a{n}: &a{n} x\n" for n in range(30_000))),
        ("compose.yaml", "a: &a x\nb: [" + "*a," * 120_000),
        ("compose.yaml", "---\n" * 120_000),
        ("compose.yaml", "!" * 400_000),
        ("compose.yaml", '"' + "\\\n" * 200_000),
        ("Taskfile.yml", "a: |\n" + " x\n" * 150_000),
        (".github/workflows/ci.yml", "jobs:\n a:\n  steps:\n" + "   - run: pytest\n" * 20_000),
        (".github/workflows/ci.yml", "jobs:\n a:\n  steps:\n   - run: pytest " + "&& a " * 80_000),
    ],
)
def test_no_text_takes_long(tmp_path: Path, name: str, text: str) -> None:
    """Reading costs time in proportion to the size, whatever the text repeats."""
    write_repo(tmp_path, GOOD)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    result, seconds = _timed(lambda: scan_repo(tmp_path))
    assert GOOD_COMMANDS[0] in [each.cmd for each in result.commands]
    # A quadratic reader takes 100,000 passes over such a text; the slowest linear one takes about 20.
    _, one_pass = _timed(lambda: sum(char == "\0" for char in "x" * limits.MAX_MANIFEST_BYTES))
    assert seconds < 100 * one_pass


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    """The result, and the CPU seconds of this process: other processes on the machine do not count."""
    started = time.process_time()
    return work(), time.process_time() - started


def test_links_out_of_the_root(tmp_path: Path) -> None:
    """A link that leaves the repo is not there, one that stays inside is a file like any other; directories are not
    followed."""
    outside = write_repo(tmp_path / "outside", {"Makefile": "test:\n", "dir/Makefile": "test:\n"})
    root = write_repo(tmp_path / "repo", {"scripts/root.mk": "lint:\n", "real/Makefile": "build:\n"})
    (root / "GNUmakefile").symlink_to(outside / "Makefile")
    (root / "Makefile").symlink_to("scripts/root.mk")
    (root / "linked").symlink_to(outside / "dir")
    (root / "again").symlink_to("real")
    (root / "loop").symlink_to(".")
    (root / "justfile").symlink_to("nowhere")
    assert commands(root) == {"repo lint": "make lint", "real build": "make -C real build"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipe_does_not_hang(tmp_path: Path) -> None:
    """A named pipe called Makefile is no file."""
    os.mkfifo(write_repo(tmp_path, GOOD) / "Makefile")
    assert [each.cmd for each in scan_repo(tmp_path).commands] == GOOD_COMMANDS


@pytest.mark.parametrize(
    "directory",
    [
        "node_modules/x",
        ".git",
        ".cache",
        "vendor/y",
        "a/target",
        "a/build",
        "dist",
        "venv",
        "examples/z",
        "{{x}}",
        "a/b/c/d/e",
    ],
)
def test_directories_that_are_not_entered(tmp_path: Path, directory: str) -> None:
    """What tools made or fetched, what only shows something, and what lies too deep."""
    files = {f"{directory}/Makefile": "test:\n", "a/b/c/d/Makefile": "test:\n"}
    assert commands(tmp_path, files) == {"d test": "make -C a/b/c/d test"}


def test_many_manifests(tmp_path: Path) -> None:
    """After the limit the deeper ones are left, and that is said once."""
    files = {f"deep/p{number:03}/Makefile": "test:\n" for number in range(limits.MAX_MANIFESTS + 20)}
    scan = scan_repo(write_repo(tmp_path / "x", {"Makefile": "test:\n", **files}))
    assert len(scan.commands) == limits.MAX_SCANNED_PACKAGES
    assert scan.commands[0].cmd == "make test"
    assert scan.problems == [
        "more than 200 manifests: the deeper ones were not read",
        "180 packages beyond the first 20",
    ]
    assert scan.unread == list(files)[limits.MAX_MANIFESTS - 1 :]


def test_many_commands(tmp_path: Path) -> None:
    """One file cannot flood the store."""
    services = "".join(f"  s{number}:\n    build: .\n" for number in range(2_000))
    scan = scan_repo(write_repo(tmp_path, {"compose.yaml": f"services:\n{services}"}))
    assert len({command.component for command in scan.commands}) == limits.MAX_SCANNED_PACKAGES
    assert scan.problems == ["1981 packages beyond the first 20"]


@pytest.mark.parametrize("name", ["$(touch x)", "a;b", "a b", "a'b", "`id`", "-C"])
def test_directory_names_are_quoted(tmp_path: Path, name: str) -> None:
    """A directory's name is one word of the command, and no option of it."""
    (cmd,) = commands(tmp_path, {f"{name}/Makefile": "test:\n"}).values()
    words = shlex.split(cmd)
    assert words[:2] + words[3:] == ["make", "-C", "test"]
    assert words[2] in (name, f"./{name}")


@pytest.mark.parametrize(
    "files",
    [
        {"a\x1b[2Jb/Makefile": "test:\n"},
        {"a\nb/Makefile": "test:\n"},
        {"\u202eab/Makefile": "test:\n"},
        {"a\u3164b/Makefile": "test:\n"},
        {"Cargo.toml": '[package]\nname = "a; rm -rf ~"\n'},
        {"compose.yaml": "services:\n  'a;b':\n    build: .\n"} | {"x/Makefile": ""},
    ],
)
def test_names_that_are_no_words(tmp_path: Path, files: dict[str, str]) -> None:
    """Control characters never reach a hint; a name with shell syntax gives no command of its own."""
    texts = commands(tmp_path, files).values()
    assert all(cmd.isprintable() and ";" not in cmd and "test" not in cmd for cmd in texts)


def test_secret_in_a_step(tmp_path: Path) -> None:
    """A credential that somebody wrote into CI is not passed on."""
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    steps = f"jobs:\n  a:\n    steps:\n      - run: pytest --key {key}\n      - run: pytest -q\n"
    assert commands(tmp_path / "x", {".github/workflows/ci.yml": steps}) == {"x test": "pytest -q"}


def test_unfit_package_names(tmp_path: Path) -> None:
    """A name that a hint could not have gives way to the directory's."""
    for name in ("x" * 200, "a\u0007b", "a\u3164b", "", " a"):
        manifest = json.dumps({"name": name, "scripts": {"test": "jest"}})
        assert commands(tmp_path / "dir", {"package.json": manifest}) == {"dir test": "npm test"}


def _damaged(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 8)):
        at, source = chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)
        graft = text[source : source + chance.randint(0, 30)] + chance.choice("[]{}()\"'=:.,-#\\\n\t&*|>!$\u202e")
        text = text[:at] + graft + text[at + chance.randint(0, 6) :]
    return text


@pytest.mark.parametrize("tree", [DJANGO, VITE, RIPGREP, KUBERNETES, PETCLINIC, VOTING_APP, PYTEST])
def test_damaged_manifests(tmp_path: Path, tree: dict[str, str]) -> None:
    """Real manifests with parts moved, doubled and lost never raise, and never give a hint that could not be set."""
    chance = random.Random(7)
    for number in range(20):
        root = write_repo(tmp_path / str(number), {name: _damaged(text, chance) for name, text in tree.items()})
        assert all(
            each.cmd.isprintable() and each.component == each.component.strip() != ""
            for each in scan_repo(root).commands
        )


class _CountingClock:
    """Counts its readings, and is past the scan's time limit from reading `late` on."""

    def __init__(self, late: float) -> None:
        self.readings, self._late = 0, late

    def __call__(self) -> float:
        self.readings += 1
        return 0.0 if self.readings < self._late else float(limits.MAX_SCAN_SECONDS)


def test_scan_stops_at_its_time_limit(tmp_path: Path) -> None:
    """Past the time limit nothing more is listed or read; the paths left are reported, so their hints stay."""
    root = write_repo(tmp_path, {"Makefile": "test:\n", "a/Makefile": "test:\n", "b/Makefile": "test:\n"})
    clock = _CountingClock(late=math.inf)
    complete = scan_repo(root, clock=clock)
    assert len(complete.commands) == 3 and complete.unread == []
    for late in range(2, clock.readings + 1):
        scan = scan_repo(root, clock=_CountingClock(late))
        assert scan.unread != [] and len(scan.commands) < 3
        assert all(problem.startswith("stopped after 10 s: ") for problem in scan.problems)


def test_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of files that a scan lists is bounded, also in one directory."""
    monkeypatch.setattr(limits, "MAX_SCAN_ENTRIES", 50)
    for number in range(100):
        write_repo(tmp_path, {f"data/{number}.csv": ""})
    scan = scan_repo(tmp_path)
    assert scan.problems == ["more than 50 files: the deeper ones were skipped"]
    assert scan.unread == ["data"]


def test_too_many_unread_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More unread paths than a scan may name are reported as the whole repo, so that no hint is removed."""
    monkeypatch.setattr(limits, "MAX_UNREAD_MANIFESTS", 2)
    broken = {f"p{number}/package.json": "{" for number in range(3)}
    assert scan_repo(write_repo(tmp_path, broken)).unread == ["."]
