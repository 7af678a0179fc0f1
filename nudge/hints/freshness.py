"""Whether the files that a hint rests on have changed: its script, or the manifest that defines its command.

A hint of a repo keeps digests of those files (`Hint.basis`), which callers never see. When a file has changed, the hint
says so and ranks lower in that clone, until `scan`, a new `set` or a success of the command updates the digests. Hooks
load this module: only the standard library is imported at its top.
"""

from __future__ import annotations

import os
from hashlib import blake2b

from nudge.core import limits
from nudge.core.context import resolve
from nudge.core.files import read_regular
from nudge.core.programs import NODE_PACKAGE_MANAGERS
from nudge.core.text import quote_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from nudge.core.context import Context

STALE_FACTOR = 0.5  # of the score of a hint whose files changed
_GONE = ""

_MANIFESTS = {  # in the order in which the program looks for them
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    **dict.fromkeys(NODE_PACKAGE_MANAGERS, ("package.json",)),
}

_digests: dict[str, tuple[int, int, str]] = {}
"""Cache: path -> modification time, size and digest."""


def digest_files(root: str, paths: Iterable[str]) -> dict[str, str]:
    """The files below `root` that exist, each with a digest of its content."""
    digests = {path: _digest(os.path.join(root, path)) for path in paths if _is_inside(path)}
    return {path: digest for path, digest in digests.items() if digest != _GONE}


def command_text(value: object) -> str:
    """The command or path in a hint's value, which need not be valid; empty when it has none."""
    if isinstance(value, dict):
        value = value.get({"command": "cmd", "path": "abs"}.get(str(value.get("type")), ""))
    return value if isinstance(value, str) and len(value) <= limits.MAX_LEARNED_COMMAND else ""


def may_name_files(cmd: str) -> bool:
    """Whether a word of it looks like a path, or is a program that reads a manifest."""
    return any("." in word or "/" in word or word in _MANIFESTS for word in cmd.split()[: limits.MAX_BASIS_WORDS])


def find_basis_of_hint(value: object, repo: object, context: Context, interface: str) -> dict[str, str]:
    """The files that a hint rests on when a caller in `context` sets or imports it: those that its value names in the
    caller's clone. Empty for a hint of another repo than the caller's, and for a caller that may not be on this
    machine. Reads files: call it on a worker thread."""
    is_of_repo = interface in ("cli", "mcp") and context.repo is not None and repo == context.repo
    text = command_text(value) if is_of_repo else ""
    return find_basis(text, context.cwd) if may_name_files(text) else {}


def find_basis(cmd: str, cwd: str | None) -> dict[str, str]:
    """The files of the clone of `cwd` that a command names, as it is typed there or at the top of the clone: scripts,
    other files, and the manifest with its target."""
    root = _find_root(cwd)
    if cwd is None or root is None:
        return {}
    words = cmd.split()[: limits.MAX_BASIS_WORDS]
    for folder in dict.fromkeys((os.path.normpath(cwd), root)):
        names = [word.strip("\"'`,;()") for word in words if "." in word or "/" in word]
        paths = [os.path.relpath(os.path.join(folder, name), root) for name in (*names, *_manifests(folder, words))]
        if basis := digest_files(root, paths[: limits.MAX_BASIS_FILES]):
            return basis
    return {}


def _manifests(folder: str, words: list[str]) -> list[str]:
    """The file in which a target or script of the command is defined."""
    at = next((number for number, word in enumerate(words) if word in _MANIFESTS), None)
    if at is None:
        return []
    from nudge.manifests import defined_targets  # late: it loads parsers that few hints need

    for name in _MANIFESTS[words[at]]:
        try:
            text = read_regular(os.path.join(folder, name), limits.MIB).decode("utf-8", "replace")
        except OSError:
            continue
        return [name] if not defined_targets(name, text).isdisjoint(words[at + 1 :]) else []
    return []


def changed_files(root: str, basis: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The files of a hint's basis that have changed, and those that do not exist in this clone."""
    now = {path: _digest(os.path.join(root, path)) for path in basis if _is_inside(path)}
    changed = [path for path, digest in now.items() if digest not in (basis[path], _GONE)]
    return changed, [path for path, digest in now.items() if digest == _GONE]


def mark_stale(hits: list[dict[str, Any]], cwd: str | None) -> list[dict[str, Any]]:
    """Remove `basis` from each hit of a query, and mark the hits whose files changed in the clone of `cwd` with a
    reason and a lower score. Returns the hits by rank. Reads files."""
    root = _find_root(cwd) if any("basis" in hit for hit in hits) else None
    is_marked = False
    for hit in hits:
        basis = hit.pop("basis", None)
        changed, gone = changed_files(root, basis) if basis and root is not None else ([], [])
        if reasons := [
            *(f"{_name(path)} is not here" for path in gone),
            *(f"{_name(path)} changed since" for path in changed),
        ]:
            _mark(hit["match_explain"], reasons)
            hit["stale"], hit["is_gone"] = reasons[0], bool(gone)
            if "score" in hit:
                hit["score"] = hit["match_explain"]["score"]
            is_marked = True
    return sorted(hits, key=_rank) if is_marked and len(hits) > 1 else hits


def _name(path: str) -> str:
    return quote_name(path, limits.MAX_TOLD_COMMAND)


def _rank(hit: dict[str, Any]) -> tuple[bool, float]:
    """Hits that match only some words of the query come last, in their present order."""
    is_partial = "partial" in hit
    return is_partial, 0.0 if is_partial else -hit["score"]


def _mark(explanation: dict[str, Any], reasons: list[str]) -> None:
    explanation["score"] = round(explanation["score"] * STALE_FACTOR, 4)
    explanation["reasons"] = [*reasons, *explanation["reasons"]]


def _find_root(cwd: str | None) -> str | None:
    """The top of the clone of a directory on this machine."""
    return resolve(cwd).root if cwd is not None and os.path.isdir(cwd) else None


def _is_inside(path: str) -> bool:
    return not os.path.isabs(path) and ".." not in path.split("/")


def _digest(path: str) -> str:
    try:
        status = os.stat(path)
        cached = _digests.get(path)
        if cached is not None and cached[:2] == (status.st_mtime_ns, status.st_size):
            return cached[2]
        digest = blake2b(read_regular(path, limits.MIB), digest_size=8).hexdigest()
    except OSError:
        return _GONE
    if len(_digests) >= limits.DIGESTS_CACHED:
        _digests.clear()
    _digests[path] = (status.st_mtime_ns, status.st_size, digest)
    return digest
