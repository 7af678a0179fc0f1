"""What is ours on this machine, and its end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nudge import config, paths
from nudge.errors import StorageFailed
from nudge.ipc import lock
from nudge.usecases import restoring

_OUR_NAME = "nudge"


@dataclass(frozen=True, slots=True)
class Belonging:
    path: str
    size: int  # bytes


def find(environ: Mapping[str, str] = os.environ) -> list[Belonging]:
    """What exists of it, each once: a directory stands for all that is in it."""
    candidates = dict.fromkeys(path for path in _candidates(environ) if os.path.lexists(path))
    outermost = [path for path in candidates if not any(path.startswith(other + os.sep) for other in candidates)]
    return [Belonging(path, _size(path)) for path in outermost]


def server_runs(environ: Mapping[str, str] = os.environ) -> bool:
    return not lock.is_free(_lock_path(environ))


def delete(owned: Sequence[Belonging], environ: Mapping[str, str] = os.environ) -> None:
    """With the server's lock in hand, so that none starts meanwhile and writes into what goes."""
    held = lock.OwnerLock(_lock_path(environ))
    if os.path.isdir(os.path.dirname(held.path)) and not held.acquire():
        raise StorageFailed(
            "a client has started the server again; end your agents, then run: nudge disconnect --all --delete-data"
        )
    try:
        for belonging in owned:
            _delete(belonging.path)
    except OSError as error:
        raise StorageFailed(f"cannot delete {error.filename}: {error.strerror}") from None
    finally:
        held.release()


def _candidates(environ: Mapping[str, str]) -> Iterator[str]:
    """Whole directories where they are ours by name, single files where somebody has moved them among others."""
    yield paths.runtime_dir(environ)
    yield paths.log_dir(environ)
    database, settings = config.database_file(environ), paths.config_file(environ)
    moved = database != paths.default_database_file(environ)
    yield from _with_its_own(database) if moved else [_directory_or(database)]
    yield settings if environ.get("NUDGE_CONFIG") else _directory_or(settings)


def _directory_or(path: str) -> str:
    directory = os.path.dirname(path)
    return directory if os.path.basename(directory) == _OUR_NAME else path


def _with_its_own(database: str) -> Iterator[str]:
    """A database has its journal and its lock beside it, under longer names, and its backups in a folder of theirs."""
    directory, name = os.path.split(database)
    try:
        found = sorted(os.listdir(directory))
    except OSError:
        return
    yield from (
        os.path.join(directory, other) for other in found if other == name or other.startswith((f"{name}-", f"{name}."))
    )
    yield from restoring.copies(database)


def _size(path: str) -> int:
    if os.path.islink(path) or not os.path.isdir(path):
        return os.lstat(path).st_size
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(path) for name in names)


def _delete(path: str) -> None:
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
    else:
        shutil.rmtree(path)
    parent = os.path.dirname(path)
    if os.path.basename(parent) == _OUR_NAME and not os.listdir(parent):
        os.rmdir(parent)


def _lock_path(environ: Mapping[str, str]) -> str:
    return os.path.join(paths.runtime_dir(environ), paths.LOCK)
