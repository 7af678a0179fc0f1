"""Build a release, check it, and tag it on request.

Nothing leaves this machine: the last lines that are printed say how to push and upload. The release is built from the
last commit, with the setuptools of the development environment.
"""

from __future__ import annotations

import argparse
import datetime
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from nudge import __version__
from nudge.core.repos import normalize_repo

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
TAG = f"v{__version__}"
CHANGELOG = "CHANGELOG.md"


class Refused(Exception):
    """Its arguments are what must be done first, one sentence each."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--tag", action="store_true", help="tag the commit when the release is built and checked")
    wants_tag = parser.parse_args().tag
    try:
        release(wants_tag)
    except Refused as refused:
        print(f"No release {__version__}:", file=sys.stderr)
        for sentence in refused.args:
            print(f"  {sentence}", file=sys.stderr)
        return 1
    return 0


def release(wants_tag: bool) -> None:
    before_tag = list(missing_for_tag())
    if missing := [*missing_for_build(), *(before_tag if wants_tag else ())]:
        raise Refused(*missing)
    built = build()
    check(built)
    print("built and checked:", *(path.relative_to(ROOT) for path in built), sep="\n  ")
    if wants_tag:
        message = f"Nudge {__version__}\n\n{changelog_section()[1]}\n"
        git("tag", "--annotate", "--cleanup=whitespace", "--file=-", TAG, stdin=message)
        print(f"Tagged {TAG}. Nothing was pushed or uploaded. Next:")
        print(f"  git push origin {TAG}")
        print("  .venv/bin/python -m twine upload", *(path.relative_to(ROOT) for path in built))
    else:
        print("Not tagged. Next:", *before_tag, "make release TAG=yes", sep="\n  ")


def missing_for_build() -> Iterator[str]:
    if changed := git("status", "--porcelain").splitlines():
        yield f"The work tree has {len(changed)} changes that are not committed: commit them, or remove them."
    if git("tag", "--list", TAG):
        yield f"The tag {TAG} exists: write the next version into nudge/__init__.py."
    if changelog_section()[0] is None:
        yield f"{CHANGELOG} has no section {__version__}: write `{_dated_heading()}` above what has changed."


def missing_for_tag() -> Iterator[str]:
    heading, _ = changelog_section()
    if heading is not None and not re.fullmatch(r"\d{4}-\d\d-\d\d", heading):
        yield f"{CHANGELOG} does not say when: commit it with the heading `{_dated_heading()}`."
    home = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
    origin = git("config", "--default", "", "--get", "remote.origin.url")
    if not origin or normalize_repo(origin) != normalize_repo(home):
        yield f"`origin` is {origin or 'not set'}, [project.urls] in pyproject.toml says {home}: correct one of them."


def changelog_section() -> tuple[str | None, str]:
    """What stands behind the version in its heading (a date, or that it is unreleased), and the text below. None when
    there is no section, or nothing in it."""
    text = (ROOT / CHANGELOG).read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(__version__)}(?: - | )?(\S*)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return (found[1], found[2].strip()) if found and found[2].strip() else (None, "")


def _dated_heading() -> str:
    return f"## {__version__} - {datetime.datetime.now(datetime.UTC):%Y-%m-%d}"


def build() -> tuple[Path, Path]:
    """A wheel and a source archive in `dist`. The wheel is built from the archive, so that the archive is complete."""
    built = DIST / f"nudge_mcp-{__version__}-py3-none-any.whl", DIST / f"nudge_mcp-{__version__}.tar.gz"
    for path in built:
        path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as commit:
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(commit, filter="data")
        run("build", "--no-isolation", "--outdir", str(DIST), commit)
    if absent := [path.name for path in built if not path.exists()]:
        raise Refused(f"The build made no {' and no '.join(absent)}.")
    return built


def check(built: tuple[Path, Path]) -> None:
    """Check the metadata, and that what is in the wheel starts and has the version."""
    run("twine", "check", "--strict", *map(str, built))
    with tempfile.TemporaryDirectory() as installed:
        shutil.unpack_archive(built[0], installed, "zip")
        said = run("nudge", "--version", environ={"PYTHONPATH": installed})
    if said.strip() != f"nudge {__version__}":
        raise Refused(f"The program in the wheel does not say that it is {__version__}: {said}")


def run(module: str, *arguments: str, environ: dict[str, str] | None = None) -> str:
    """Run a module of the development environment, and return what it printed."""
    command = [sys.executable, "-P", "-m", module, *arguments]
    whole = {**os.environ, **(environ or {})}
    done = subprocess.run(command, cwd=tempfile.gettempdir(), env=whole, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"{module} {arguments[0]} failed:", *(done.stdout + done.stderr).splitlines())
    return done.stdout


def git(*arguments: str, stdin: str = "") -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, input=stdin, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
