"""The installed `nudge`, as a client starts it: the executable on PATH, the server's command line, and the script that
clients run as a hook."""

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
from nudge.core import files, paths
from nudge.core.errors import Invalid, StorageFailed
from nudge.core.limits import CLIENT_COMMAND_TIMEOUT

HOOK_SCRIPT = "nudge-hook"
_PRINTED = ".printed"  # ends the name of the file that says that the path of the script was printed

# A shim looks for the real script on every call, which costs a hook 100 ms; these commands print its path.
_SHIM_DIRECTORY = "shims"
_SHIM_OWNERS = ("pyenv", "asdf", "mise")

_CACHE = re.compile(r"/uv/(?:archive|environments)-v\d+/|/pipx/\.cache/")  # of `uvx` and `pipx run`
# A program that has lost its interpreter or its package shows only by how it fails: its stderr is held back until then.
# It fails before it has read the event from stdin, so that the next one can.
_SCRIPT = """\
#!/bin/sh
# Hooks of agent clients run this. It runs Nudge, and succeeds silently where Nudge is no longer installed.
[ $# -gt 0 ] || set -- record
exec 3>&1
for nudge in @programs@; do
  errors=$("$nudge" "$@" 2>&1 >&3 3>&-)
  code=$?
  case $code:$errors in 12[67]:* | 1:*"No module named "?nudge*) continue ;; esac
  [ -z "$errors" ] || printf '%s\\n' "$errors" >&2
  exit $code
done
exit 0
"""
_OUR_HOOK = re.compile(r"(?:^|[/\s'\"])nudge(?:-mcp|-hook)?['\"]? record\b")
_OUR_PROGRAMS = (NAME, "nudge-mcp", HOOK_SCRIPT)


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
    def hook(self) -> list[str]:
        """The command line of a hook; `install_hook_script` writes the script that it runs."""
        return [hook_script_path(), "record"]

    @property
    def status_line(self) -> list[str]:
        """The command line of a status line. It runs the same script, which prints nothing where Nudge is gone."""
        return [hook_script_path(), "statusline"]

    @property
    def hook_script(self) -> str:
        """The text of that script. It tries this executable, then the one on PATH."""
        return _SCRIPT.replace("@programs@", " ".join(dict.fromkeys((shlex.quote(self.path), NAME))))


def hook_script_path(environ: Mapping[str, str] = os.environ) -> str:
    return os.path.join(paths.data_dir(environ), HOOK_SCRIPT)


def install_hook_script(executable: Executable, *, printed: bool = False) -> None:
    """Write the script that hooks run. The data directory is stored first: the hooks keep the path of the script.
    `printed`: the path was printed for the user to write down, so `remove_hook_script` keeps the script from now on."""
    runtime = paths.runtime_dir()
    paths.ensure_private_dir(runtime)
    paths.store_directories(runtime)
    path = hook_script_path()
    paths.ensure_private_dir(os.path.dirname(path))
    if files.read_owned(path) != executable.hook_script.encode() or not os.access(path, os.X_OK):
        files.replace(path, executable.hook_script.encode(), mode=0o700)
    if printed:
        files.replace(path + _PRINTED, b"")


def remove_hook_script(*, also_printed: bool = False) -> str | None:
    """Remove the script that hooks run. Return its path when it is kept: a configuration that was printed may name it,
    in a file that we do not know. With `also_printed` it goes all the same."""
    path = hook_script_path()
    if not also_printed and os.path.lexists(path) and os.path.lexists(path + _PRINTED):
        return path
    for file in (path, path + _PRINTED):
        try:
            os.unlink(file)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StorageFailed(f"cannot remove {file}: {error.strerror}") from None
    return None


def is_our_hook(command: str) -> bool:
    """Whether a command line, its words joined with spaces, is a hook of Nudge, from any installation."""
    return _OUR_HOOK.search(command) is not None


def is_our_status_line(command: str) -> bool:
    """Whether a command line prints Nudge's status line and nothing else, from any installation."""
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    try:
        program, *arguments = list(words) or [""]
    except ValueError:  # a quote that is not closed
        return False
    return os.path.basename(program) in _OUR_PROGRAMS and arguments == ["statusline"]


def find(environ: Mapping[str, str] = os.environ) -> Executable:
    """Return the installed executable. Raises Invalid when there is none, or it is in a cache of `uvx` or `pipx
    run`."""
    path = shutil.which(NAME, path=environ.get("PATH")) or _beside_interpreter()
    if path is None:
        raise Invalid("the command nudge is not on PATH; install it, for example with: uv tool install nudge-mcp")
    absolute = os.path.abspath(path)
    if _CACHE.search(absolute):
        raise Invalid("this nudge runs from a temporary cache; install it permanently: uv tool install nudge-mcp")
    return Executable(_behind_shim(absolute, environ) or absolute)


def _beside_interpreter() -> str | None:
    """Return the script of a virtual environment whose Python runs this code without being on PATH."""
    return shutil.which(NAME, path=os.path.dirname(os.path.abspath(sys.executable)))


def is_shim(path: str) -> bool:
    """Whether the program is in the directory of a version manager, in place of the real one."""
    return os.path.basename(os.path.dirname(path)) == _SHIM_DIRECTORY


def _behind_shim(path: str, environ: Mapping[str, str]) -> str | None:
    if not is_shim(path):
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
