"""The scripts of the packages of a repository."""

from __future__ import annotations

import os
import re
from itertools import islice

from nudge.core import limits
from nudge.core.thin_json import loads
from nudge.learning.cure import FLAG
from nudge.learning.failures import tells_apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nudge.learning.cure import Cure
    from nudge.learning.failures import Failure
    from nudge.learning.outcome import Outcome


def package_scripts(root: str | None, directory: str = "") -> Mapping[str, str]:
    """The scripts of a package.json; empty without one."""
    if root is None:
        return {}
    try:
        with open(os.path.join(root, directory, "package.json"), encoding="utf-8") as file:
            manifest = loads(file.read(limits.MAX_MANIFEST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    scripts = manifest.get("scripts") if isinstance(manifest, dict) else None
    return {name: text for name, text in scripts.items() if isinstance(text, str)} if isinstance(scripts, dict) else {}


def has_script(cure: Cure, failure: Failure, outcome: Outcome) -> bool:
    """Whether the directory of a cure has the script that is missing, or one of the packages that an option chooses
    from."""
    root = outcome.root
    if failure.family != "script" or root is None:
        return True
    folder = cure.directory
    if cure.kind == FLAG:
        folder = next((word for word in cure.added if os.path.isdir(os.path.join(root, word))), "")
        if not folder:
            packages = _folders_of_packages(root)
            is_told_apart = tells_apart(cure.failure, failure)
            return not is_told_apart or any(failure.detail in package_scripts(root, one) for one in packages)
    scripts = package_scripts(root, folder) or _targets(os.path.join(root, folder, "Makefile"))
    return not scripts or failure.detail in scripts


_TARGET = re.compile(r"^([\w./-]+):(?!=)", re.MULTILINE)


def _targets(makefile: str) -> frozenset[str]:
    try:
        with open(makefile, encoding="utf-8", errors="replace") as file:
            return frozenset(_TARGET.findall(file.read(limits.MAX_MANIFEST_BYTES)))
    except OSError:
        return frozenset()


def _folders_of_packages(root: str) -> Iterator[str]:
    """The folders in which packages of a workspace lie: `web`, `packages/api`."""
    for folder in _subfolders(root):
        yield folder
        yield from (os.path.join(folder, below) for below in _subfolders(os.path.join(root, folder)))


def _subfolders(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            folders = [one.name for one in islice(entries, limits.MAX_MANIFESTS) if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [name for name in folders if name != "node_modules" and not name.startswith(".")]
