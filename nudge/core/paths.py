"""Where things live: the runtime directory, and the data, config and log directories of the account."""

from __future__ import annotations

import os
import stat
import sys

from nudge.core import files, thin_json
from nudge.core.errors import SettingInvalid, StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LOCK = "server.lock"
MEMBERS = "members.lock"
ENDPOINT = "server.pid"
TOKEN = "token"
CHANGE_LOG = "changes.log"
PREVIOUS = "previous.json"
SETTINGS = "settings.json"
PAGE = "page.json"
TRUST = "trusted.json"
TRANSFERS = "transfers"
START_LOCK = "start.lock"
START_REPORT = "start.err"

DIRECTORIES = "directories.json"

_OVERFLOW_UID = 65534  # how a sandbox with its own user ids shows the owner of the directories outside
_KINDS = ("data", "config", "log")
_XDG = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
_MACHINE_ID_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")


def home() -> str:
    """Return `HOME` if it is an absolute path, else the account database's answer: cron and some clients set no
    HOME."""
    if sys.platform == "win32":
        return os.path.expanduser("~")
    named = os.environ.get("HOME")
    if named and os.path.isabs(named):
        return named
    import pwd

    return pwd.getpwuid(os.getuid()).pw_dir


def expand_home(path: str) -> str:
    """Return the path with `~` replaced by the home directory, also where HOME is not set."""
    return home() + path[1:] if path == "~" or path.startswith("~/") else path


def _path_variable(environ: Mapping[str, str], variable: str) -> str | None:
    """Return the path in a variable; None when it is not set. Raises SettingInvalid for a relative one, which would be
    another place in every directory."""
    path = expand_home(environ.get(variable, ""))
    if path and not os.path.isabs(path):
        raise SettingInvalid("must be an absolute path, or one below ~/", field=variable)
    return path or None


def check_path_variables(environ: Mapping[str, str]) -> None:
    """Raise SettingInvalid for a relative path, in the process whose variable it is, before a server is started."""
    for variable in ("NUDGE_RUNTIME_DIR", "NUDGE_CONFIG"):
        _path_variable(environ, variable)


def machine_tag() -> str:
    """Return a short name of the machine: several machines may share one home directory over a network."""
    for path in _MACHINE_ID_FILES:
        try:
            with open(path, encoding="ascii") as file:
                identity = file.read().strip()
        except (OSError, UnicodeDecodeError):
            continue
        if identity:
            return identity[:8]
    return os.uname().nodename[:32] if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "local")


def runtime_dir(environ: Mapping[str, str] = os.environ) -> str:
    """Return the runtime directory, which all processes of one user share. It depends on the home directory only: two
    answers would mean two PRIMARYs."""
    return _path_variable(environ, "NUDGE_RUNTIME_DIR") or os.path.join(_plain_directory("state"), machine_tag())


def lock_file() -> str:
    """Return the lock that makes a process PRIMARY."""
    return os.path.join(runtime_dir(), LOCK)


def config_file(environ: Mapping[str, str] = os.environ) -> str:
    return _path_variable(environ, "NUDGE_CONFIG") or os.path.join(_directory("config", environ), "config.toml")


def data_dir(environ: Mapping[str, str] = os.environ) -> str:
    """Return the directory of the database. With NUDGE_RUNTIME_DIR it is that directory."""
    return _path_variable(environ, "NUDGE_RUNTIME_DIR") or _directory("data", environ)


def default_database_file(environ: Mapping[str, str] = os.environ) -> str:
    return os.path.join(data_dir(environ), "nudge.db")


def log_dir(environ: Mapping[str, str] = os.environ) -> str:
    """Return the directory of the log. With NUDGE_RUNTIME_DIR it is below that, so that a test or a sandbox leaves
    nothing in the home directory."""
    moved = _path_variable(environ, "NUDGE_RUNTIME_DIR")
    return os.path.join(moved, "log") if moved else _directory("log", environ)


def _directory(kind: str, environ: Mapping[str, str]) -> str:
    """Return the stored answer of `platformdirs`. Before one is stored, compute it; `platformdirs` is imported only
    where `XDG_*` variables are set."""
    stored = _stored_directories(runtime_dir(environ))
    if stored is not None:
        return stored[kind]
    return _ask_platformdirs()[kind] if depends_on_environment(environ) else _plain_directory(kind)


def depends_on_environment(environ: Mapping[str, str]) -> bool:
    """Whether variables move the data, config or log directory from where it is by default."""
    return any(name in environ for name in _XDG)


def store_directories(runtime: str) -> None:
    """Ask `platformdirs` once and keep the answer: `XDG_*` differ between a desktop, ssh, cron and a client that
    filters the environment, and a second answer would be a second history. Raises StorageFailed."""
    if _stored_directories(runtime) is None:
        files.replace(os.path.join(runtime, DIRECTORIES), thin_json.dumps(_ask_platformdirs()).encode())


def _stored_directories(runtime: str) -> dict[str, str] | None:
    raw = files.read_owned(os.path.join(runtime, DIRECTORIES))
    try:
        stored = thin_json.loads(raw or b"null")
        return {kind: stored[kind] for kind in _KINDS} if all(map(os.path.isabs, stored.values())) else None
    except (ValueError, TypeError, AttributeError, KeyError):
        return None


def _ask_platformdirs() -> dict[str, str]:
    import platformdirs  # late: 30 ms

    answers = {kind: getattr(platformdirs, f"user_{kind}_dir")("nudge", appauthor=False) for kind in _KINDS}
    return {kind: path if os.path.isabs(path) else _plain_directory(kind) for kind, path in answers.items()}


def _plain_directory(kind: str) -> str:
    """Return what `platformdirs` answers without `XDG_*` variables, for the thin path; a test compares the two."""
    root = home()
    if sys.platform == "darwin":
        folder = {"log": "Library/Logs"}.get(kind, "Library/Application Support")
        return os.path.join(root, folder, "nudge")
    if sys.platform == "win32":
        local = os.path.join(root, "AppData", "Local", "nudge")
        return os.path.join(local, "Logs") if kind == "log" else local
    folder = {"state": ".local/state", "config": ".config", "data": ".local/share", "log": ".local/state"}[kind]
    base = os.path.join(root, folder, "nudge")
    return os.path.join(base, "log") if kind == "log" else base


def ensure_private_dir(path: str) -> None:
    """Create `path` if needed and make it owner-only. Raises StorageFailed for a directory that another user controls:
    it could lead clients to another user's server."""
    try:
        _make_dirs(path)
        check_private_dir(path)
        os.chmod(path, 0o700)
    except OSError as error:
        raise StorageFailed(
            f"cannot use {path}: {error.strerror or error}; set NUDGE_RUNTIME_DIR to a directory of yours"
        ) from None


def _make_dirs(path: str) -> None:
    """Create the directory and its parents, all owner-only whatever the umask: a user who may write to a parent could
    replace what is below."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent not in ("", path):
        _make_dirs(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:  # created meanwhile, or a file or link, which `check_private_dir` reports
        pass


def check_private_dir(path: str) -> None:
    """Raise StorageFailed unless `path` is a real directory that belongs to this user and only this user may write
    to."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        raise StorageFailed(f"{path} is a symbolic link; remove it, or set NUDGE_RUNTIME_DIR to a real directory")
    if not stat.S_ISDIR(status.st_mode):
        raise StorageFailed(f"{path} is not a directory; remove it, or set NUDGE_RUNTIME_DIR")
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        raise StorageFailed(f"{path} belongs to another user; set NUDGE_RUNTIME_DIR to a directory of yours")
    if sys.platform != "win32" and status.st_mode & 0o022:
        raise StorageFailed(f"{path} is writable by others; run: chmod 700 {path}")
    if sys.platform != "win32":
        _check_parents(path)


def _check_parents(path: str) -> None:
    """Raise StorageFailed when another user could rename a directory above `path` and put another in its place. Others
    may write to a directory with the sticky bit, such as /tmp: there they cannot move what is not theirs."""
    trusted = (0, os.getuid(), _OVERFLOW_UID)
    for parent in (*_above(os.path.abspath(path)), *_above(os.path.realpath(path))):
        status = os.lstat(parent)
        shared = stat.S_ISDIR(status.st_mode) and status.st_mode & 0o002 and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in trusted or shared:
            problem = "is writable by everybody" if shared else "belongs to another user"
            raise StorageFailed(f"{parent}, above {path}, {problem}; set NUDGE_RUNTIME_DIR to a directory of yours")


def upward(folder: str) -> Iterator[str]:
    """Yield the folder itself, then each directory above it up to the root."""
    yield folder
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        yield folder


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths lead to one file or directory that exists."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _above(path: str) -> list[str]:
    return list(upward(path))[1:]


def remove_page_secrets(directory: str) -> None:
    """End every sign-in to the page, when the session ends or the port is another one."""
    try:
        os.unlink(os.path.join(directory, PAGE))
    except OSError:  # usually there is none
        pass
