"""Paths that do not exist, and where the file is."""

from __future__ import annotations

import posixpath
import re
from difflib import SequenceMatcher

from nudge.learning.jobs import is_file_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_SIMILAR = 0.7
_COMMON_PARTS = frozenset(
    ("test", "tests", "spec", "main", "index", "init", "mod", "lib", "src", "app", "run", "my", "the")
)
"""Parts of names that say nothing about what is in a file."""
_BEHIND_A_PATH = re.compile(r"::.*|(?<=\w)(?::\d+)+$|(?<=\w)\[[\d:,]+\]$|#L?\d+$")
_ENDS_A_PATH = re.compile(r"[=,@]|://|(?<=\w):(?=[\w.]+/)")


def is_temporary(path: str, root: str | None) -> bool:
    """Whether a path is in a directory for temporary files, and not in the clone, wherever that lies."""
    return path.startswith(("/tmp/", "/var/tmp/")) and not (root is not None and path.startswith(f"{root}/"))


def is_path(word: str) -> bool:
    return (
        ("/" in word or is_file_name(word))
        and not word.startswith(("-", "~", "$", "http", "/tmp", "/dev", "/proc"))
        and "*" not in word
    )


def plain_path(word: str) -> str:
    """The path as it is compared: without the test or the line that is named behind it."""
    return posixpath.normpath(_BEHIND_A_PATH.sub("", word).removesuffix("/..."))


def names_path(word: str, path: str) -> bool:
    """Whether a word of a command is a path that an error names."""
    plain, path = plain_path(word), plain_path(path)
    return plain == path or (path.startswith("/") and path.endswith(f"/{plain}"))


def path_in(word: str) -> str:
    """The path in a word: `tests/a.gd` of `-gtest=res://tests/a.gd`."""
    ends = [match.end() for match in _ENDS_A_PATH.finditer(word)]
    return word[ends[-1] :] if ends else word


def is_similar_path(missing: str, word: str) -> bool:
    """Whether a path is likely the one that was meant: the same name elsewhere, or a name with a word in common."""
    path, missing = plain_path(word), plain_path(missing)
    if path == missing or not is_path(path):
        return False
    name, other = posixpath.basename(missing), posixpath.basename(path)
    if name == other:
        return True
    (stem, ending), (other_stem, other_ending) = posixpath.splitext(name), posixpath.splitext(other)
    if ending != other_ending:
        return stem == other_stem and stem not in _COMMON_PARTS
    shared = (_name_parts(stem) & _name_parts(other_stem)) - _COMMON_PARTS
    return bool(shared) or (bool(ending) and SequenceMatcher(None, name, other).ratio() >= _SIMILAR)


def moved_along(old: str, new: str, word: str) -> str:
    """Where a path or name is, if it moved as another one did: `tests/shell/b.sh` for `test/b.sh`, when `test/a.sh`
    moved to `tests/shell/a.sh`; empty if it did not."""
    parts = _FOLDERS if is_path(old) else _PARTS
    before, after, moved = parts.split(old), parts.split(new), parts.split(word)
    kept = shared_length(before[::-1], after[::-1])
    head, rest = before[: len(before) - kept], before[len(before) - kept :]
    if is_path(old) and not is_path(word):
        return ""
    if not is_path(old):
        head, rest = [*head, *rest[:2]], rest[2:]  # that nothing else moved cannot be seen, so its own part must stay
        after = [*after[: len(after) - kept], *head[-2:], *rest]
    is_same_folder = moved[: len(head)] == head if head or len(rest) == 1 else moved[:1] == rest[:1]
    if word == old or not kept or not is_same_folder:
        return ""
    return "".join((*after[: len(after) - len(rest)], *moved[len(head) :]))


def shared_length(one: Sequence[str], other: Sequence[str]) -> int:
    """How many letters or parts two texts have in common from their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def is_compound(name: str) -> bool:
    """Whether a name has several parts, as that of a task in a project: `:core:test`."""
    return len(_PARTS.split(name)) > 1


def is_renamed(old: str, new: str) -> bool:
    """Whether a name has all parts of the other and more: `:libs:core:test` for `:core:test`, `shop-api` for `api`."""
    if old.startswith("-") or is_path(old):
        return False
    before, after = ({part for part in re.split(r"[:/.@_-]", name) if part} for name in (old, new))
    return (before < after or after < before) and any(len(part) > 2 for part in before & after)


_PARTS = re.compile(r"([:/.@])")
_FOLDERS = re.compile(r"(/)")


def _name_parts(stem: str) -> set[str]:
    parts = re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", stem).casefold())
    return {part.rstrip("s") for part in parts if len(part) > 2}
