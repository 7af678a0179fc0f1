"""Configuration files of others: read as they are, replaced in one step, links and modes kept, and nothing of ours left
beside them."""

from __future__ import annotations

import os
import secrets
import stat

from nudge import paths
from nudge.errors import Invalid, StorageFailed
from nudge.limits import MAX_CONFIG_BYTES

_NEW_FILE_MODE = 0o600


def read(path: str) -> str | None:
    """The text with its line ends as they are; None when there is no such file."""
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_CONFIG_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageFailed(f"cannot read {shown(path)}: {error.strerror}; nothing was changed") from None
    if len(content) > MAX_CONFIG_BYTES:
        raise Invalid(f"{shown(path)} is larger than {MAX_CONFIG_BYTES} bytes; nothing was changed")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Invalid(f"{shown(path)}, line {line}: is not UTF-8; nothing was changed") from None


def write(path: str, text: str) -> None:
    """Replace the file, or make it and its directories."""
    target = os.path.realpath(path)
    try:
        for directory in missing_directories(path):
            os.mkdir(directory, 0o700)
        _replace(target, text.encode())
    except OSError as error:
        raise StorageFailed(f"cannot write {shown(path)}: {error.strerror}") from None


def missing_directories(path: str) -> list[str]:
    """Those that have to be made before the file can be, outermost first."""
    missing = []
    directory = os.path.dirname(os.path.realpath(path))
    while not os.path.lexists(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    return missing[::-1]


def remove(path: str, directories: list[str]) -> None:
    """The file, then those of `directories` that are empty now; of a link the file behind it."""
    try:
        os.unlink(os.path.realpath(path))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StorageFailed(f"cannot remove {shown(path)}: {error.strerror}") from None
    for directory in reversed(directories):
        try:
            os.rmdir(directory)
        except OSError:  # somebody has put something there
            return


def shown(path: str) -> str:
    """`~/.codex/config.toml`."""
    home = paths.home()
    return "~" + path.removeprefix(home) if path.startswith(home.rstrip("/") + "/") else path


def _replace(target: str, content: bytes) -> None:
    """By way of a file beside it, so that whoever reads sees the old text or the new one; of a link the file behind
    it."""
    temporary = f"{target}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _NEW_FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _dress_like(target, file.fileno())
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _dress_like(target: str, descriptor: int) -> None:
    try:
        old = os.stat(target)
    except FileNotFoundError:
        return
    if (old.st_uid, old.st_gid) != (os.getuid(), os.getgid()):
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except PermissionError:  # then it becomes ours, as after any editor
            pass
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
