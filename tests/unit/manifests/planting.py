"""Small repos for the tests, written where pytest says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from nudge.manifests import find_commands


def plant(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).removeprefix("\n"), encoding="utf-8")
    return root


def typed(root: Path) -> dict[str, str]:
    """`{"api test": "make test"}`."""
    return {f"{found.component} {found.key}": found.cmd for found in find_commands(root)}


def planted(root: Path, files: Mapping[str, str]) -> dict[str, str]:
    return typed(plant(root, files))


def reasons(root: Path) -> dict[str, str]:
    return {f"{found.component} {found.key}": found.reason for found in find_commands(root)}
