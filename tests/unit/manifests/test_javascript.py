"""package.json: which scripts, and by which package manager."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.manifests.repos import commands

SCRIPTS = json.dumps({"name": "@acme/app", "scripts": {"test": "jest", "start": "node .", "build": "tsc"}})


@pytest.mark.parametrize(
    ("lock", "test", "run", "build"),
    [
        ("package-lock.json", "npm test", "npm start", "npm run build"),
        ("none", "npm test", "npm start", "npm run build"),
        ("yarn.lock", "yarn test", "yarn start", "yarn build"),
        ("pnpm-lock.yaml", "pnpm test", "pnpm start", "pnpm build"),
        ("bun.lockb", "bun run test", "bun run start", "bun run build"),
        ("bun.lock", "bun run test", "bun run start", "bun run build"),
    ],
)
def test_lock_file_names_the_manager(tmp_path: Path, lock: str, test: str, run: str, build: str) -> None:
    """The lock file says which manager a maintainer types."""
    assert commands(tmp_path, {"package.json": SCRIPTS, lock: ""}) == {
        "app test": test,
        "app run": run,
        "app build": build,
    }


@pytest.mark.parametrize(
    ("lock", "build"),
    [
        ("package-lock.json", "npm --prefix web run build"),
        ("yarn.lock", "yarn --cwd web build"),
        ("pnpm-lock.yaml", "pnpm --dir web build"),
        ("bun.lock", "cd web && bun run build"),
    ],
)
def test_nested_package(tmp_path: Path, lock: str, build: str) -> None:
    """A nested package is called from the root, with the manager of the workspace above it."""
    assert commands(tmp_path, {"web/package.json": SCRIPTS, lock: ""})["app build"] == build


def test_nearest_answer_names_the_manager(tmp_path: Path) -> None:
    """A package with a lock file of its own is not part of the workspace above; packageManager beats a stale lock
    file."""
    declared = json.dumps({"packageManager": "yarn@4.1.0", "scripts": {"test": "jest"}})
    files = {"package.json": declared, "package-lock.json": "", "web/package.json": SCRIPTS, "web/bun.lock": ""}
    result = commands(tmp_path / "x", files)
    assert result["x test"] == "yarn test"
    assert result["app test"] == "cd web && bun run test"


def test_dev_before_start(tmp_path: Path) -> None:
    """Where both exist, `start` serves a production build."""
    scripts = json.dumps({"name": "x", "scripts": {"start": "next start", "dev": "next dev"}})
    assert commands(tmp_path, {"package.json": scripts}) == {"x run": "npm run dev"}


@pytest.mark.parametrize(
    "manifest",
    [
        {"scripts": {"test": 'echo "Error: no test specified" && exit 1'}},
        {"scripts": {"test": ""}},
        {"scripts": {"test": ["jest"]}},
        {"scripts": {"format": "prettier --check ."}},
        {"scripts": {"deploy": "x", "postinstall": "y"}},
        {"scripts": ["test"]},
        {"scripts": None},
        {},
        ["scripts"],
    ],
)
def test_no_command(tmp_path: Path, manifest: object) -> None:
    """Placeholders, checks in a formatter's name and shapes that npm would refuse give nothing."""
    assert commands(tmp_path, {"package.json": json.dumps(manifest)}) == {}
