"""Real git repositories for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_ALONE = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def clone(folder: Path, branch: str = "main") -> str:
    """What a clone of `git:example.com/org/NAME` on that branch looks like; its directory."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch", branch)
    git(folder, "remote", "add", "origin", f"git@example.com:Org/{folder.name}.git")
    return str(folder)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env=_ALONE, check=True, capture_output=True)
