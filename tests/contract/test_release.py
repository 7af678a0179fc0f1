"""`make release` in a repository of its own, with an index that is not the real one."""

from __future__ import annotations

import http.server
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nudge import __version__
from tools import release

ROOT = Path(__file__).parents[2]
FILES = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore")
HOME = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
TAG = f"v{__version__}"
PUBLISHED = f"## {__version__} - 2030-01-31\n\n### Added\n\n- Something.\n"


class Checkout:
    """A clone whose `origin` is a directory here, whatever its address says. Nothing can be fetched or installed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.origin = folder / "nudge", folder / "origin.git"
        self.environ = {
            **os.environ,
            "PIP_NO_INDEX": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{self.origin}.insteadOf",
            "GIT_CONFIG_VALUE_0": HOME,
            **{f"GIT_{who}_{what}": "me@x.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        for package in ("nudge", "tools"):
            shutil.copytree(ROOT / package, self.folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        for name in FILES:
            shutil.copy(ROOT / name, self.folder / name)
        self.git("init", "--quiet", "--bare", str(self.origin))
        self.git("init", "--quiet")
        self.git("remote", "add", "origin", HOME)
        self.write_changelog(PUBLISHED)

    def write_changelog(self, text: str) -> None:
        (self.folder / "CHANGELOG.md").write_text(f"# Changelog\n\n{text}\n## 0.0.1\n\n- The first.\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "all", "--allow-empty")

    def git(self, *arguments: str) -> str:
        return self.run("git", *arguments).stdout.strip()

    def run(self, *command: str, code: int = 0, **environ: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command, cwd=self.folder, env={**self.environ, **environ}, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def release(self, *options: str) -> str:
        return self.run(sys.executable, "-m", "tools.release", *options).stdout

    def refusal(self, *options: str) -> list[str]:
        """What must be done first; nothing was built or tagged."""
        tags = self.git("tag")
        done = self.run(sys.executable, "-m", "tools.release", *options, code=1)
        assert done.stdout == "" and not (self.folder / "dist").exists() and self.git("tag") == tags
        first, *sentences = done.stderr.splitlines()
        assert first == f"No release {__version__}:"
        return [sentence.strip() for sentence in sentences]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


class Index(http.server.ThreadingHTTPServer):
    """Takes what is uploaded."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Upload)
        self.uploads: list[bytes] = []


class _Upload(http.server.BaseHTTPRequestHandler):
    server: Index

    def do_POST(self) -> None:
        self.server.uploads.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Not on the terminal."""


@pytest.fixture
def index() -> Iterator[Index]:
    with Index() as index:
        threading.Thread(target=index.serve_forever, daemon=True).start()
        yield index
        index.shutdown()


def test_what_is_not_ready_is_refused(checkout: Checkout) -> None:
    """A work tree with changes, a version that was released, a changelog without it: all are said at once."""
    (checkout.folder / "notes.txt").write_text("mine")
    checkout.git("tag", TAG)
    (checkout.folder / "CHANGELOG.md").write_text("# Changelog\n")
    changed, tagged, section = checkout.refusal()
    assert changed.startswith("The work tree has 2 changes that are not committed")
    assert tagged.startswith(f"The tag {TAG} exists")
    assert section.startswith(f"CHANGELOG.md has no section {__version__}")


def test_an_empty_section_is_none(checkout: Checkout) -> None:
    """Nor is that of a version whose number only begins so."""
    checkout.write_changelog(f"## {__version__} - 2030-01-31\n\n## {__version__}1\n\n- More.\n")
    (section,) = checkout.refusal()
    assert section.startswith(f"CHANGELOG.md has no section {__version__}")


def test_a_tag_needs_a_date_and_the_right_origin(checkout: Checkout) -> None:
    """What is published says when, and where it comes from."""
    checkout.write_changelog(f"## {__version__} (unreleased)\n\n- Something.\n")
    checkout.git("remote", "set-url", "origin", "https://github.com/somebody/fork.git")
    date, origin = checkout.refusal("--tag")
    assert f"the heading `## {__version__} - 20" in date
    assert "https://github.com/somebody/fork.git" in origin and HOME in origin


def test_a_release(checkout: Checkout, index: Index) -> None:
    """Wheel and source archive are built from the commit without an index, pass `twine check`, and are what the printed
    commands publish. Nothing is pushed or uploaded before."""
    said = checkout.release("--tag")
    wheel, source = (f"nudge_mcp-{__version__}{ending}" for ending in ("-py3-none-any.whl", ".tar.gz"))
    assert checkout.git("cat-file", "-t", TAG) == "tag"
    assert checkout.git("tag", "--list", "--format=%(contents)") == f"Nudge {__version__}\n\n### Added\n\n- Something."
    assert checkout.git("ls-remote", "origin") == "" and index.uploads == []

    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "nudge").rglob("*.py")}
    static = {path.relative_to(ROOT).as_posix() for path in (ROOT / "nudge/page/static").rglob("*.*")}
    with zipfile.ZipFile(checkout.folder / "dist" / wheel) as archive:
        names = set(archive.namelist())
        assert {name for name in names if name.startswith("nudge/")} == {
            *modules,
            *static,
            "nudge/py.typed",
            "nudge/interfaces/handshake.json",
            "nudge/telling/common_words.txt",
        }
        information = f"nudge_mcp-{__version__}.dist-info"
        assert f"Project-URL: Repository, {HOME}\n" in archive.read(f"{information}/METADATA").decode()
        assert "nudge-mcp = nudge.__main__:main" in archive.read(f"{information}/entry_points.txt").decode()
    with tarfile.open(checkout.folder / "dist" / source) as archive:
        assert {f"nudge_mcp-{__version__}/{name}" for name in modules} <= set(archive.getnames())

    push, upload = (line.split() for line in said.splitlines()[-2:])
    assert push == ["git", "push", "origin", TAG]
    checkout.git(*push[1:])
    assert checkout.git("ls-remote", "origin").endswith(f"refs/tags/{TAG}^{{}}")
    assert upload == [".venv/bin/python", "-m", "twine", "upload", f"dist/{wheel}", f"dist/{source}"]
    address = f"http://127.0.0.1:{index.server_address[1]}/"
    checkout.run(
        sys.executable, *upload[1:], TWINE_REPOSITORY_URL=address, TWINE_USERNAME="me", TWINE_PASSWORD="x", NO_COLOR="1"
    )
    assert [name for name in (wheel, source) if not any(name.encode() in sent for sent in index.uploads)] == []


def test_without_a_tag_it_only_builds(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That is the default, and what is missing for the tag is said. (Building is another test, and takes seconds.)"""
    checkout.write_changelog(f"## {__version__} (unreleased)\n\n- Something.\n")
    built = checkout.folder / "dist" / "wheel", checkout.folder / "dist" / "source"
    monkeypatch.setattr(release, "ROOT", checkout.folder)
    monkeypatch.setattr(release, "build", lambda: built)
    checked: list[tuple[Path, Path]] = []
    monkeypatch.setattr(release, "check", checked.append)
    release.release(wants_tag=False)
    said = capsys.readouterr().out
    assert checked == [built]
    assert "  dist/wheel\n  dist/source\nNot tagged. Next:\n  CHANGELOG.md does not say when" in said
    assert said.endswith("  make release TAG=yes\n") and checkout.git("tag") == ""
