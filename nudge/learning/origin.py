"""Where what a command fetches comes from, and whether a file of the repository names it."""

from __future__ import annotations

import os
import posixpath
import re
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from nudge.learning.command import SimpleCommand

_URL = re.compile(r"(?:https?|git|ssh|ftp|s3|gs|oci|file)(?:\+\w+)?://[^\s'\"]+|[\w.-]+@[\w.-]+:[\w./~-]+|ppa:[\w./-]+")
_SOURCE_OPTIONS = re.compile(
    r"--?(?:(?:extra-)?index-url|registry|index|mirror|source|server|repo|repository|channel|find-links|feed|i)$"
)
_PLACE = re.compile(r"(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?/[\w./@:-]+")
"""A host with a path, without a scheme: `registry.example.io/base:1`."""
_SOURCES = frozenset(("repository", "repo", "tap", "registry", "remote", "source", "index", "channel", "feed"))
_ADDING = frozenset(("add", "set", "set-url", "tap"))
_FETCHERS = {
    **dict.fromkeys(
        ("pip", "pip3", "pipx", "npm", "pnpm", "yarn", "bun", "gem", "cargo", "brew", "apt", "apt-get"),
        ("install", "add", "i"),
    ),
    **dict.fromkeys(
        ("dnf", "yum", "apk", "pacman", "conda", "mamba", "composer", "poetry", "pdm", "uv", "opam", "cpan"),
        ("install", "add", "require", "-S"),
    ),
    **dict.fromkeys(
        ("go", "luarocks", "cabal", "stack", "nix-env", "snap", "port", "cpanm", "dotnet", "flutter", "dart"),
        ("install", "get", "add", "-i"),
    ),
}
_RUN_FROM_INDEX = frozenset(("npx", "pnpx", "bunx", "uvx", "pipx"))
_LOCAL = re.compile(
    r"~.*|\.{1,2}(?:/.*)?(?:\[[\w,-]+\])?|\.\[[\w,.-]+\]|/.*|[\w./-]+\.(?:txt|toml|lock|whl|gem|tgz|deb|yml|yaml|in)"
)
_FOLDERS = ("", ".github/workflows", ".circleci", ".ci", "ci", ".devcontainer", "requirements", "docs")
"""Where the files lie that say what a repository is built with."""
_UNREAD = re.compile(
    r"\.env.*|.*\.(?:pem|key)"
    r"|(?!(?:setup|noxfile|conanfile)\.py)[\w.-]+\.(?:py|jsx?|tsx?|[mc]js|rb|go|rs|java|kt|c|cc|cpp|h|hpp|php|swift)"
)
"""What is not the repository's, and its own code: that it imports a name does not say what may be fetched by it."""
_MOST_FILES = 150
_MAX_MANIFEST = 200_000


def names_known_places(command: SimpleCommand, root: str | None, failed: Collection[str] = ()) -> bool:
    """Whether every URL, index and registry of a command stands in a file of the repository, or in the command that
    failed."""
    words = [*map(str, command.words), *map(str, command.variables)]
    for before, word in zip(["", *words], words, strict=False):
        name, _, value = word.partition("=")
        is_source = _SOURCE_OPTIONS.fullmatch(before) or (value and _SOURCE_OPTIONS.fullmatch(name))
        if is_source and before != "-i" and not is_named(value or word, root):
            return False
        places = () if word in failed or command.tool == "go" else _places_in(word)  # a package of Go is a place
        if not all(_is_known(place, command, root) for place in places):
            return False
    return not _adds_source(words) or all(is_named(word, root) for word in words[-1:])


def _places_in(word: str) -> Iterator[str]:
    for match in _URL.finditer(word):
        yield re.sub(r"^\w+(?:\+\w+)?://(?:[^@/]*@)?|^[\w.-]+@", "", match[0]).replace(":", "/").removesuffix(".git")
    if _PLACE.fullmatch(word):
        yield word


def _is_known(place: str, command: SimpleCommand, root: str | None) -> bool:
    is_here = re.match(r"(?:localhost|127\.0\.0\.1|\[::1\])\b", place) is not None
    if is_here or command.tool in ("aws", "gsutil", "gcloud"):
        return True
    in_repository = root is not None and os.path.exists(os.path.join(root, place))
    return in_repository or is_named(place, root) or is_named(re.split(r"[:@]", place)[0], root)


def _adds_source(words: list[str]) -> bool:
    """Whether a command adds a place that packages or sources are fetched from."""
    verbs = [part for word in words[:4] if not word.startswith("-") for part in re.split(r"[_-]", word)]
    verbs += words[:4]
    return bool(_SOURCES & set(verbs)) and bool(_ADDING & set(verbs)) and len(words) > 2


def fetched_by(command: SimpleCommand) -> Iterator[str]:
    """Yield the names of packages that a command fetches from the default index."""
    words = list(map(str, command.words))
    name = posixpath.basename(words[0]) if words else ""
    if name in _RUN_FROM_INDEX:
        yield from [word for word in words[1:] if not word.startswith("-")][:1]
        return
    if command.launcher and command.tool in _FETCHERS:
        name = command.tool
    verbs = _FETCHERS.get(command.tool) or _FETCHERS.get(name, ())
    at = next((at for at, word in enumerate(words) if word in verbs), None)
    if at is None:
        return
    is_value = False
    for word in words[at + 1 :]:
        if is_value or word.startswith("-") or _LOCAL.fullmatch(word):
            is_value = word in (
                "-r",
                "-e",
                "-c",
                "--requirement",
                "--editable",
                "--group",
                "-G",
                "--extra",
                "--path",
                "--prefix",
            )
            continue
        yield word


def plugins_of(command: SimpleCommand) -> Iterator[str]:
    """Yield the names that a command may fetch by a verb that any program may have: `--install-extension x`."""
    words = list(map(str, command.words))
    at = max((at for at, word in enumerate(words) if at and _FETCHING.fullmatch(word)), default=len(words))
    yield from (
        word
        for word in words[at + 1 :]
        if not word.startswith("-") and not _LOCAL.fullmatch(word) and not _is_version(word)
    )


def _is_version(word: str) -> bool:
    return re.fullmatch(r"v?\d[\w.+-]*", word) is not None


_FETCHING = re.compile(r"-{0,2}(?:install|add|get|pull|tap|require|plugins?|download|import)(?:[-:]\w+)*")


def is_named(name: str, root: str | None) -> bool:
    """Whether a file of the repository names a package, tool or place."""
    if root is None:
        return False
    plain = re.split(r"[=<>~!\[]|(?<=.)@", name)[0]
    if os.path.exists(os.path.join(root, "node_modules", ".bin", plain)):
        return True
    return any(_names(_manifest(path), plain) for path in _manifests(root))


def _manifests(root: str) -> Iterator[str]:
    yield os.path.join(root, ".gitmodules")
    yield os.path.join(root, ".git", "config")
    for folder in _FOLDERS:
        directory = os.path.join(root, folder)
        try:
            names = sorted(os.listdir(directory))[:_MOST_FILES]
        except OSError:
            continue
        yield from (os.path.join(directory, name) for name in names if not _UNREAD.fullmatch(name))


def _names(text: str, name: str) -> bool:
    if not text or not name:
        return False
    wanted = _FOLDED.sub("-", name.casefold())
    return re.search(rf"(?<![\w-]){re.escape(wanted)}(?![\w-])", _FOLDED.sub("-", text.casefold())) is not None


_FOLDED = re.compile(r"[-_.](?=\w)")
"""Registries take `a.b`, `a_b` and `a-b` for one name."""


def _manifest(path: str) -> str:
    try:
        stat = os.stat(path)
        return _read(path, stat.st_mtime_ns) if stat.st_size <= _MAX_MANIFEST else ""
    except OSError:
        return ""


@lru_cache(64)
def _read(path: str, _changed: int) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_MANIFEST)
    except OSError:
        return ""
