"""What a person decided about the hints of repositories: one owner-only file, replaced as a whole under a lock.

A decision is about one content, in one clone of one repository. Standard library only: a hook asks whether there is
anything for its repo before it imports more.
"""

from __future__ import annotations

import json
import os

from nudge.core import files, limits, paths
from nudge.core.errors import QuotaExceeded, StorageFailed
from nudge.core.locks import Flock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

TRUSTED, DENIED = "trusted", "denied"
_VERSION = 1
_LOCK = ".lock"
_FIELDS: dict[str, Any] = {
    "repo": str,
    "git_dir": str,
    "state": str,
    "digest": str,
    "at": (int, float),
    "hint": dict,
    "evidence": str,
}


class Decision:
    """One decision: `state` about the content with `digest`, in the clone with this identity and git directory. `hint`
    is what was shown, `evidence` the digest of what the hint rests on."""

    __slots__ = ("at", "digest", "evidence", "git_dir", "hint", "repo", "state")

    def __init__(
        self, repo: str, git_dir: str, state: str, digest: str, at: float, hint: dict[str, Any], evidence: str
    ) -> None:
        self.repo, self.git_dir, self.state, self.digest = repo, git_dir, state, digest
        self.at, self.hint, self.evidence = at, hint, evidence

    @property
    def name(self) -> str:
        return f"{self.hint['component']}/{self.hint['key']}"

    @property
    def variant(self) -> str:
        """What tells the hint from others of its file; `RepoHint.variant` is the same."""
        return json.dumps([self.hint["component"], self.hint["key"], self.hint["scope"]], sort_keys=True)

    def is_of(self, repo: str, git_dir: str) -> bool:
        return (self.repo, self.git_dir) == (repo, git_dir)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}


class TrustStore:
    """The decisions in one runtime directory, read again when the file changed."""

    __slots__ = ("_decisions", "_path", "_repos", "_signature")

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, paths.TRUST)
        self._signature: tuple[int, ...] | None = None
        self._decisions: list[Decision] = []
        self._repos: frozenset[str] = frozenset()

    def is_empty(self) -> bool:
        """Whether nobody ever decided anything: the answer of one look at the disk."""
        return not os.path.exists(self._path)

    @property
    def version(self) -> tuple[int, ...] | None:
        """What changes with every decision; of what was read last."""
        return self._signature

    def may_trust(self, repo: str | None) -> bool:
        """Whether a hint of some clone of this repo is trusted."""
        self._load()
        return repo in self._repos

    def of(self, repo: str, git_dir: str) -> list[Decision]:
        """The decisions about a clone, in their order."""
        return [one for one in self.all() if one.is_of(repo, git_dir)]

    def all(self) -> list[Decision]:
        self._load()
        return list(self._decisions)

    def record(self, decisions: Sequence[Decision]) -> None:
        """Add decisions, each in place of an earlier one about the same content. They are on the disk when this
        returns. Raises StorageFailed or QuotaExceeded."""

        def add(known: list[Decision]) -> list[Decision]:
            replaced = {(one.repo, one.git_dir, one.digest) for one in decisions}
            kept = [one for one in known if (one.repo, one.git_dir, one.digest) not in replaced]
            return _latest_versions([*kept, *decisions])

        self._change(add)

    def remove(self, is_removed: Callable[[Decision], bool]) -> int:
        """Forget decisions; return how many."""
        counts: list[int] = []

        def keep(known: list[Decision]) -> list[Decision]:
            kept = [one for one in known if not is_removed(one)]
            counts.append(len(known) - len(kept))
            return kept

        self._change(keep)
        return counts[0]

    def _change(self, change: Callable[[list[Decision]], list[Decision]]) -> None:
        paths.ensure_private_dir(os.path.dirname(self._path))
        with Flock(self._path + _LOCK):
            decisions = change(self._read_to_change())
            if len(decisions) > limits.MAX_DECISIONS:
                raise QuotaExceeded(f"there are more than {limits.MAX_DECISIONS} decisions; see: nudge trust --list")
            content = {"version": _VERSION, "decisions": [one.to_json() for one in decisions]}
            files.replace(self._path, json.dumps(content, indent=1).encode())
        self._signature = None

    def _read_to_change(self) -> list[Decision]:
        """Raise StorageFailed for a file that cannot be read: what it says must not be lost."""
        if not os.path.lexists(self._path):
            return []
        decisions = _parse(files.read_owned(self._path, limits.MAX_TRUST_BYTES))
        if decisions is None:
            raise StorageFailed(f"{self._path} cannot be read as it is; nothing was changed; move it away, then retry")
        return decisions

    def _load(self) -> None:
        """What cannot be read is trusted by nobody."""
        try:
            status = os.lstat(self._path)
            signature = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        except OSError:
            self._signature, self._decisions, self._repos = None, [], frozenset()
            return
        if signature != self._signature:
            self._decisions = _parse(files.read_owned(self._path, limits.MAX_TRUST_BYTES)) or []
            self._repos = frozenset(one.repo for one in self._decisions if one.state == TRUSTED)
            self._signature = signature


def _latest_versions(decisions: Iterable[Decision]) -> list[Decision]:
    """Drop the oldest of many versions of one hint."""
    kept: list[Decision] = []
    counts: dict[tuple[str, str, str], int] = {}
    for one in reversed(list(decisions)):
        key = (one.repo, one.git_dir, one.variant)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= limits.MAX_VERSIONS_TRUSTED:
            kept.append(one)
    return kept[::-1]


def _parse(raw: bytes | None) -> list[Decision] | None:
    """The decisions in the file; None when it is not one of ours as a whole."""
    try:
        content = json.loads(raw or b"null")
        if content["version"] != _VERSION:
            return None
        decisions = [_decision(row) for row in content["decisions"]]
    except (ValueError, TypeError, KeyError):
        return None
    return decisions


def _decision(row: dict[str, Any]) -> Decision:
    if row.keys() != _FIELDS.keys() or not all(isinstance(row[name], kind) for name, kind in _FIELDS.items()):
        raise ValueError
    decision = Decision(**row)
    if decision.state not in (TRUSTED, DENIED) or not all(isinstance(decision.hint[n], str) for n in ("value", "kind")):
        raise ValueError
    return decision
