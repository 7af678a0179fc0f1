"""How a client starts us: the executable as it is found on PATH, the server's command line, the hook's shell
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

from nudge.errors import Invalid
from nudge.limits import CLIENT_COMMAND_TIMEOUT

NAME = "nudge"

# A shim looks for the real script on every call, which costs a hook 100 ms; these know where it is.
_SHIM_DIRECTORY = "shims"
_SHIM_OWNERS = ("pyenv", "asdf", "mise")

_PASSING = re.compile(r"/uv/(?:archive|environments)-v\d+/|/pipx/\.cache/")  # of `uvx` and `pipx run`
# A program that is gone, has lost its interpreter or its package can only be told by how it fails: what it says is held
# back until then.
_WHILE_IT_IS_THERE = (
    'e=$("$0" "$@" 2>&1 >&3 3>&-); c=$?; case $c:$e in 12[67]:*|1:*"No module named "?nudge*) exit 0;; esac; '
    '[ -z "$e" ] || printf "%s\\n" "$e" >&2; exit $c'
)
_OURS = re.compile(r"(?:^|[/\s'\"])nudge(?:-mcp)?['\"]? record\b")


@dataclass(frozen=True, slots=True)
class Launch:
    executable: str

    @property
    def server(self) -> list[str]:
        return [self.executable, "serve"]

    @property
    def hook(self) -> str:
        """Succeeds and says nothing where there is no Nudge any more. In words that sh, zsh and fish share: Codex takes
        the user's own
        shell."""
        return f"exec /bin/sh -c '{_WHILE_IT_IS_THERE}' {shlex.quote(self.executable)} record 3>&1"


def is_hook_of_ours(command: object) -> bool:
    return isinstance(command, str) and _OURS.search(command) is not None


def find(environ: Mapping[str, str] = os.environ) -> Launch:
    found = shutil.which(NAME, path=environ.get("PATH")) or _beside_interpreter()
    if found is None:
        raise Invalid("the command nudge is not on PATH; install it, for example with: uv tool install nudge-mcp")
    absolute = os.path.abspath(found)
    if _PASSING.search(absolute):
        raise Invalid(
            "this nudge runs from a cache that is emptied now and then; install it for good: uv tool install nudge-mcp"
        )
    return Launch(_behind_shim(absolute, environ) or absolute)


def _beside_interpreter() -> str | None:
    """Of an environment that is in use without being on PATH."""
    return shutil.which(NAME, path=os.path.dirname(os.path.abspath(sys.executable)))


def _behind_shim(path: str, environ: Mapping[str, str]) -> str | None:
    if os.path.basename(os.path.dirname(path)) != _SHIM_DIRECTORY:
        return None
    answers = (_asked(owner, environ) for owner in _SHIM_OWNERS if shutil.which(owner, path=environ.get("PATH")))
    return next((answer for answer in answers if answer is not None and answer != path), None)


def _asked(owner: str, environ: Mapping[str, str]) -> str | None:
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
