"""Small repos, written to the directory that pytest gives, and what a scan says about them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from nudge.manifests import scan_repo


def write_repo(root: Path, files: Mapping[str, str]) -> Path:
    """Write files; one that starts with `#!` is executable."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).removeprefix("\n"), encoding="utf-8")
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    return root


def commands(root: Path, files: Mapping[str, str] | None = None) -> dict[str, str]:
    """Write `files` and scan: `{"api test": "make test"}`."""
    return {f"{each.component} {each.key}": each.cmd for each in scan_repo(write_repo(root, files or {})).commands}


def reasons(root: Path) -> dict[str, str]:
    return {f"{each.component} {each.key}": each.reason for each in scan_repo(root).commands}
