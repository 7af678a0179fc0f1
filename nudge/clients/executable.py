"""The installed `nudge`, as a client starts it: the executable on PATH, the server's command line, the hook's shell
command."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nudge.clients.client import NAME
from nudge.errors import Invalid
from nudge.limits import CLIENT_COMMAND_TIMEOUT

# A shim looks for the real script on every call, which costs a hook 100 ms; these commands print its path.
_SHIM_DIRECTORY = "shims"
_SHIM_OWNERS = ("pyenv", "asdf", "mise")

_CACHE = re.compile(r"/uv/(?:archive|environments)-v\d+/|/pipx/\.cache/")  # of `uvx` and `pipx run`
# A program that is gone, or has lost its interpreter or its package, shows only by how it fails: its stderr is held back
# until then.
_GUARD = (
    'e=$("$0" "$@" 2>&1 >&3 3>&-); c=$?; case $c:$e in 12[67]:*|1:*"No module named "?nudge*) exit 0;; esac; '
    '[ -z "$e" ] || printf "%s\\n" "$e" >&2; exit $c'
)
_OUR_HOOK = re.compile(r"(?:^|[/\s'\"])nudge(?:-mcp)?['\"]? record\b")


@dataclass(frozen=True, slots=True)
class Executable:
    path: str

    @property
    def server(self) -> list[str]:
        return [self.path, "serve"]

    @property
    def server_entry(self) -> dict[str, Any]:
        """The server's command line as most clients write it."""
        return {"command": self.path, "args": self.server[1:]}

    @property
    def hook(self) -> str:
        """A shell command that succeeds silently where Nudge is no longer installed.

        In words that sh, zsh and fish share: Codex runs hooks in the user's own shell.
        """
        return f"exec /bin/sh -c '{_GUARD}' {shlex.quote(self.path)} record 3>&1"


def is_our_hook(command: object) -> bool:
    return isinstance(command, str) and _OUR_HOOK.search(command) is not None


def find(environ: Mapping[str, str] = os.environ) -> Executable:
    path = shutil.which(NAME, path=environ.get("PATH")) or _beside_interpreter()
    if path is None:
        raise Invalid("the command nudge is not on PATH; install it, for example with: uv tool install nudge-mcp")
    absolute = os.path.abspath(path)
    if _CACHE.search(absolute):
        raise Invalid(
            "this nudge runs from a cache that is emptied now and then; install it for good: uv tool install nudge-mcp"
        )
    return Executable(_behind_shim(absolute, environ) or absolute)


def _beside_interpreter() -> str | None:
    """The script of a virtual environment that is in use without being on PATH."""
    return shutil.which(NAME, path=os.path.dirname(os.path.abspath(sys.executable)))


def _behind_shim(path: str, environ: Mapping[str, str]) -> str | None:
    if os.path.basename(os.path.dirname(path)) != _SHIM_DIRECTORY:
        return None
    owners = (owner for owner in _SHIM_OWNERS if shutil.which(owner, path=environ.get("PATH")))
    targets = (_ask_owner(owner, environ) for owner in owners)
    return next((target for target in targets if target is not None and target != path), None)


def _ask_owner(owner: str, environ: Mapping[str, str]) -> str | None:
    try:
        done = subprocess.run(
            [owner, "which", NAME],
            env=dict(environ),
            capture_output=True,
            text=True,
            timeout=CLIENT_COMMAND_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    answer = done.stdout.strip()
    return answer if done.returncode == 0 and os.path.isabs(answer) and os.access(answer, os.X_OK) else None
