"""A repo is a stranger's text: nothing in it may crash, hang, escape or be passed on."""

from __future__ import annotations

import json
import os
import random
import shlex
import time
from pathlib import Path

import pytest

from nudge import limits
from nudge.manifests import find_commands, read_manifests

from .planting import plant, planted
from .test_known_repos import DJANGO, KUBERNETES, PETCLINIC, PYTEST, RIPGREP, VITE, VOTING_APP

GOOD = {"ok/Makefile": "test:\n"}
GOOD_FOUND = ["make -C ok test"]

BOMB = '<!DOCTYPE p [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><project><artifactId>&b;</artifactId></project>'
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
    ],
)
def test_broken_file_is_listed_and_skipped(tmp_path: Path, name: str, text: str) -> None:
    """What cannot be parsed is one line among the problems; the rest of the repo is read."""
    root = plant(tmp_path, GOOD)
    (root / name).write_text(text)
    read = read_manifests(root)
    found, problems = read.found, read.problems
    assert [each.cmd for each in found] == GOOD_FOUND
    assert len(problems) == 1 and read.unread == [name]
    assert problems[0].startswith(f"{name}: cannot be parsed")


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
    root = plant(tmp_path, GOOD)
    (root / "Makefile").write_bytes(raw)
    read = read_manifests(root)
    found, problems = read.found, read.problems
    assert [each.cmd for each in found] == GOOD_FOUND
    assert problems == [f"Makefile: {why}"] and read.unread == ["Makefile"]


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
        (".github/workflows/ci.yml", "jobs:\n a:\n  steps:\n" + "   - run: pytest\n" * 20_000),
        (".github/workflows/ci.yml", "jobs:\n a:\n  steps:\n   - run: pytest " + "&& a " * 80_000),
    ],
)
def test_no_text_takes_long(tmp_path: Path, name: str, text: str) -> None:
    """Reading costs time in proportion to the size, whatever the text repeats."""
    plant(tmp_path, GOOD)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    started = time.process_time()
    found = find_commands(tmp_path)
    assert GOOD_FOUND[0] in [each.cmd for each in found]
    assert time.process_time() - started < 5


def test_links_out_of_the_root(tmp_path: Path) -> None:
    """A link that leaves the repo is not there, one that stays inside is a file like any other; directories are not
    followed."""
    outside = plant(tmp_path / "outside", {"Makefile": "test:\n", "dir/Makefile": "test:\n"})
    root = plant(tmp_path / "repo", {"scripts/root.mk": "lint:\n", "real/Makefile": "build:\n"})
    (root / "GNUmakefile").symlink_to(outside / "Makefile")
    (root / "Makefile").symlink_to("scripts/root.mk")
    (root / "linked").symlink_to(outside / "dir")
    (root / "again").symlink_to("real")
    (root / "loop").symlink_to(".")
    (root / "justfile").symlink_to("nowhere")
    assert planted(root, {}) == {"repo lint": "make lint", "real build": "make -C real build"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipe_does_not_hang(tmp_path: Path) -> None:
    """A named pipe called Makefile is no file."""
    os.mkfifo(plant(tmp_path, GOOD) / "Makefile")
    assert [each.cmd for each in find_commands(tmp_path)] == GOOD_FOUND


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
    assert planted(tmp_path, files) == {"d test": "make -C a/b/c/d test"}


def test_many_manifests(tmp_path: Path) -> None:
    """After the limit the deeper ones are left, and that is said once."""
    files = {f"deep/p{number:03}/Makefile": "test:\n" for number in range(limits.MAX_MANIFESTS + 20)}
    read = read_manifests(plant(tmp_path / "x", {"Makefile": "test:\n", **files}))
    found, problems = read.found, read.problems
    assert len(found) == limits.MAX_MANIFESTS
    assert found[0].cmd == "make test"
    assert problems == ["more than 200 manifests: the deeper ones were not read"]


def test_many_commands(tmp_path: Path) -> None:
    """One file cannot flood the store."""
    services = "".join(f"  s{number}:\n    build: .\n" for number in range(2_000))
    read = read_manifests(plant(tmp_path, {"compose.yaml": f"services:\n{services}"}))
    found, problems = read.found, read.problems
    assert len(found) == limits.MAX_FOUND_COMMANDS
    assert problems == ["more than 1000 commands: the deeper ones were left out"]


@pytest.mark.parametrize("name", ["$(touch x)", "a;b", "a b", "a'b", "`id`", "-C"])
def test_directory_names_are_quoted(tmp_path: Path, name: str) -> None:
    """A directory's name is one word of the command, and no option of it."""
    (cmd,) = planted(tmp_path, {f"{name}/Makefile": "test:\n"}).values()
    words = shlex.split(cmd)
    assert words[:2] + words[3:] == ["make", "-C", "test"]
    assert words[2] in (name, f"./{name}")


@pytest.mark.parametrize(
    "files",
    [
        {"a\x1b[2Jb/Makefile": "test:\n"},
        {"a\nb/Makefile": "test:\n"},
        {"\u202eab/Makefile": "test:\n"},
        {"Cargo.toml": '[package]\nname = "a; rm -rf ~"\n'},
        {"compose.yaml": "services:\n  'a;b':\n    build: .\n"} | {"x/Makefile": ""},
    ],
)
def test_names_that_are_no_words(tmp_path: Path, files: dict[str, str]) -> None:
    """Control characters never reach a hint; a name with shell syntax gives no command of its own."""
    commands = [each.cmd for each in find_commands(plant(tmp_path, files))]
    assert all(cmd.isprintable() and ";" not in cmd and "test" not in cmd for cmd in commands)


def test_secret_in_a_step(tmp_path: Path) -> None:
    """A credential that somebody wrote into CI is not passed on."""
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    steps = f"jobs:\n  a:\n    steps:\n      - run: pytest --key {key}\n      - run: pytest -q\n"
    assert planted(tmp_path / "x", {".github/workflows/ci.yml": steps}) == {"x test": "pytest -q"}


def test_unfit_package_names(tmp_path: Path) -> None:
    """A name that a hint could not have gives way to the directory's."""
    for name in ("x" * 200, "a\u0007b", "", " a"):
        manifest = json.dumps({"name": name, "scripts": {"test": "jest"}})
        assert planted(tmp_path / "dir", {"package.json": manifest}) == {"dir test": "npm test"}


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
        root = plant(tmp_path / str(number), {name: _damaged(text, chance) for name, text in tree.items()})
        assert all(
            each.cmd.isprintable() and each.component == each.component.strip() != "" for each in find_commands(root)
        )
