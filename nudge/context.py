"""Where a caller stands: cwd, repo, branch, operating system, environment, project.

Resolved on the client's side by reading `.git` itself: a `git` process costs more than the whole call it would inform.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys

from nudge import limits
from nudge.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

OS_NAMES = ("linux", "darwin", "windows")
CODEX_METADATA = "x-codex-turn-metadata"

_PLATFORMS = {"linux": "linux", "darwin": "darwin", "win32": "windows", "cygwin": "windows"}
_BRANCH_REF = "ref: refs/heads/"
# What `HEAD` says where branches live in a reftable: the real one cannot be read from a file.
_REFTABLE_BRANCH = ".invalid"
_NESTED_METADATA = 3

_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:(?:[\\/]|$)")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(.*)")
# `git@host:path` and `[::1]:path`; a colon after the first slash belongs to a local path.
_SCP = re.compile(r"(?:[^/:\[]|\[[^/\]]*\])+:(.*)")

_HEADER = re.compile(r'\s*\[[ \t]*([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?[ \t]*\]')
_ENTRY = re.compile(
    r"""\s*([A-Za-z][A-Za-z0-9-]*)[ \t]*
    (?:=[ \t]*((?:[^"\\\n#;]|\\\r?\n|\\.|"(?:[^"\\\n]|\\\r?\n|\\.)*")*))?""",
    re.VERBOSE,
)
_VALUE_PIECE = re.compile(r'\\(\r?\n|.)|(")|([^"\\]+)')
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "\n": "", "\r\n": ""}


class Context:
    """What is known about a caller; None is "unknown", which no scope that asks for it accepts."""

    __slots__ = ("branch", "cwd", "env", "files_open", "os", "project", "repo")

    def __init__(
        self,
        *,
        cwd: str | None = None,
        repo: str | None = None,
        branch: str | None = None,
        os: str | None = None,
        env: dict[str, str] | None = None,
        project: str | None = None,
        files_open: list[str] | None = None,
    ) -> None:
        self.cwd, self.repo, self.branch, self.os = cwd, repo, branch, os
        self.env, self.project, self.files_open = env, project, files_open

    @classmethod
    def parse(cls, raw: object, field: str = "context") -> Context:
        """The wire's form; a field that is null or empty is unknown."""
        if raw is None:
            return cls()
        if not isinstance(raw, dict):
            raise Invalid("must be an object", field=field)
        for name in raw:
            if name not in _PARSERS:
                raise Invalid(f"is none of {', '.join(_PARSERS)}", field=_member(field, name))
        return cls(**{name: _PARSERS[name](value, f"{field}.{name}") for name, value in raw.items() if value not in (None, "")})

    def merged(self, defaults: Context) -> Context:
        """Field by field: what this one knows wins."""
        return Context(**{**defaults.to_wire(), **self.to_wire()})

    def to_wire(self) -> dict[str, Any]:
        """Only what is known."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}


def _member(field: str, name: object) -> str:
    """A caller's own name inside a field, cut so that an error stays short."""
    return f"{field}.{str(name)[: limits.MAX_NAME_CHARS]}"


def _text(raw: object, field: str, most: int) -> str:
    if not isinstance(raw, str):
        raise Invalid("must be a string", field=field)
    if len(raw) > most:
        raise Invalid(f"must be at most {most} characters", field=field)
    if _CONTROL.search(raw):
        raise Invalid("must not contain control characters", field=field)
    return raw


def _parse_cwd(raw: object, field: str) -> str:
    text = _text(raw, field, limits.MAX_PATH_CHARS)
    if not _is_absolute(text) or ".." in _slashed(text).split("/"):
        raise Invalid("must be an absolute path without `..`", field=field)
    return _normalised(text)


def _parse_repo(raw: object, field: str) -> str:
    try:
        return normalise_repo(_text(raw, field, limits.MAX_REPO_CHARS))
    except ValueError as error:
        raise Invalid(str(error), field=field) from None


def _parse_branch(raw: object, field: str) -> str | None:
    """`HEAD` is what `git rev-parse --abbrev-ref HEAD` prints where there is no branch."""
    text = _text(raw, field, limits.MAX_BRANCH_CHARS)
    return None if text == "HEAD" else text


def _parse_os(raw: object, field: str) -> str:
    if raw not in OS_NAMES:
        raise Invalid(f"must be one of {', '.join(OS_NAMES)}", field=field)
    return str(raw)


def _parse_env(raw: object, field: str) -> dict[str, str]:
    """Values may be of any length (`PATH` is long): the size of the request bounds them, and they are compared, never kept."""
    if not isinstance(raw, dict):
        raise Invalid("must be an object of names and strings", field=field)
    for name, value in raw.items():
        if value is not None and not isinstance(value, str):
            raise Invalid("must be a string", field=_member(field, name))
    return {str(name): value for name, value in raw.items() if value is not None}


def _parse_project(raw: object, field: str) -> str:
    return _text(raw, field, limits.MAX_REPO_CHARS)


def _parse_files_open(raw: object, field: str) -> list[str]:
    if not isinstance(raw, list):
        raise Invalid("must be a list of paths", field=field)
    if len(raw) > limits.MAX_FILES_OPEN:
        raise Invalid(f"must be at most {limits.MAX_FILES_OPEN} paths", field=field)
    return [_text(path, f"{field}[{index}]", limits.MAX_PATH_CHARS) for index, path in enumerate(raw)]


_PARSERS: dict[str, Callable[[object, str], Any]] = {
    "cwd": _parse_cwd,
    "repo": _parse_repo,
    "branch": _parse_branch,
    "os": _parse_os,
    "env": _parse_env,
    "project": _parse_project,
    "files_open": _parse_files_open,
}


def resolve(cwd: str | None = None) -> Context:
    """The context of a directory, this process's own by default. Never raises: what cannot be read, or said on the wire, is unknown."""
    folder = caller_cwd({}, cwd, None)
    system = _PLATFORMS.get(sys.platform)
    if folder is None:
        return Context(os=system)
    repo, branch = _git_facts(folder)
    said = None if _CONTROL.search(folder) or len(folder) > limits.MAX_PATH_CHARS else folder
    return Context(cwd=said, repo=repo, branch=branch, os=system, project=project_of(repo, said))


def _getcwd() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def caller_cwd(environ: Mapping[str, str], explicit: str | None, meta: Mapping[str, Any] | None) -> str | None:
    """Where the caller works: what it says, what its client says for this call, what its client said at start, where we stand."""
    implied = _first_absolute(_codex_workspaces(meta)) or _first_absolute(environ.get("CLAUDE_PROJECT_DIR")) or _getcwd()
    if explicit and not _is_absolute(explicit):
        explicit = f"{implied}/{explicit}" if implied else None
        return _normalised(explicit) if explicit else None
    return _normalised(explicit or implied) if explicit or implied else None


def _codex_workspaces(meta: Mapping[str, Any] | None) -> object:
    turn = (meta or {}).get(CODEX_METADATA)
    if isinstance(turn, str):
        import json

        try:
            turn = json.loads(turn)
        except (ValueError, RecursionError):
            return None
    return turn.get("workspaces") if isinstance(turn, dict) else None


def _first_absolute(node: object, depth: int = _NESTED_METADATA) -> str | None:
    """The first absolute path in a text, a list, or an object's names and then values."""
    if isinstance(node, str):
        return node if _is_absolute(node) else None
    if depth == 0 or not isinstance(node, dict | list):
        return None
    inner = [*node, *node.values()] if isinstance(node, dict) else node
    return next(filter(None, (_first_absolute(part, depth - 1) for part in inner)), None)


def _is_absolute(path: str) -> bool:
    """Also for a path of the other kind of system: the text may have been written there."""
    return path.startswith("/") or _DRIVE.match(path) is not None


def _normalised(path: str) -> str:
    """Forward slashes, no doubled or trailing ones, no `.` and `..`."""
    path = posixpath.normpath(_slashed(path))
    return "/" + path.lstrip("/") if path.startswith("/") else path


def _slashed(path: str) -> str:
    """A backslash separates only below a drive letter; elsewhere it is part of a name."""
    return path.replace("\\", "/") if _DRIVE.match(path) else path


def normalise_repo(raw: str) -> str:
    """One name for one repository: `git:org/repo` however it is cloned (the host is dropped), `file:///path` when it is local."""
    text = raw.lstrip()
    if len(text) > limits.MAX_REPO_CHARS or _CONTROL.search(text):
        raise ValueError(f"must be printable and at most {limits.MAX_REPO_CHARS} characters")
    identity = _local_identity(text) or _remote_identity(text.rstrip())
    if identity is None or len(identity) > limits.MAX_REPO_CHARS:
        raise ValueError("must be git:org/repo, a clone URL or an absolute path")
    return identity


def _local_identity(text: str) -> str | None:
    if text[:7].lower() == "file://":
        host, slash, rest = text[7:].partition("/")
        if host.lower() not in ("", "localhost"):
            return None
        text = slash + rest
    if _DRIVE.match(text.lstrip("/")):
        text = "/" + _slashed(text.lstrip("/"))
    return "file://" + _normalised(text) if text.startswith("/") else None


def _remote_identity(text: str) -> str | None:
    if url := _URL.match(text):
        path = "" if url[1].lower() == "file" else url[3]
    elif scp := _SCP.match(text):
        path = scp[1]
    else:
        return None
    name = re.sub(r"\s+", "%20", "/".join(part for part in path.lower().split("/") if part not in ("", ".")))
    while name.endswith((".git", "/")):
        name = name.removesuffix(".git").rstrip("/")
    return None if not name or ".." in name.split("/") else f"git:{name}"


def project_of(repo: str | None, cwd: str | None) -> str | None:
    """The short name people use: of the repository, else of the directory."""
    if repo is None:
        return _normalised(cwd).rpartition("/")[2] or None if cwd else None
    path = repo.partition(":")[2].rstrip("/").removesuffix("/.git")
    return path.rpartition("/")[2].removesuffix(".git") or None


def _git_facts(folder: str) -> tuple[str | None, str | None]:
    """The repository's identity and the branch."""
    try:
        found = _find_git_dir(os.path.realpath(folder))
        return _read_facts(*found) if found else (None, None)
    except (OSError, ValueError):  # a NUL in a path, a loop of links
        return None, None


def _find_git_dir(folder: str) -> tuple[str, str] | None:
    """The nearest work tree at or above `folder`, and its git directory."""
    for parent in _upwards(folder):
        marker = os.path.join(parent, ".git")
        if os.path.isfile(marker):
            pointed = _read(marker).strip()
            return (parent, os.path.join(parent, pointed[7:].strip())) if pointed.startswith("gitdir:") else None
        if os.path.isfile(os.path.join(marker, "HEAD")):
            return parent, marker
    return None


def _upwards(folder: str) -> Iterator[str]:
    yield folder
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        yield folder


def _read_facts(work_tree: str, git_dir: str) -> tuple[str | None, str | None]:
    """All work trees share the common directory. A linked one reads a relative origin from the main one: same repository, same name."""
    git_dir = os.path.realpath(git_dir)
    common = os.path.realpath(os.path.join(git_dir, _read(os.path.join(git_dir, "commondir")).strip()))
    if not os.path.isfile(os.path.join(git_dir, "HEAD")):
        return None, None
    url = _origin_url(_read(os.path.join(common, "config")))
    base = work_tree if common == git_dir else os.path.dirname(common)
    return _identity(_anchored(url, base)) or _identity(common), _branch(git_dir)


def _identity(place: str) -> str | None:
    try:
        return normalise_repo(place)
    except ValueError:
        return None


def _anchored(url: str, base: str) -> str:
    local = url and not (_URL.match(url) or _SCP.match(url) or _is_absolute(url))
    return os.path.join(base, url) if local else url


def _branch(git_dir: str) -> str | None:
    head = _read(os.path.join(git_dir, "HEAD")).rstrip("\r\n")
    name = head.removeprefix(_BRANCH_REF).strip()
    unusable = name == head or name in ("", _REFTABLE_BRANCH) or len(name) > limits.MAX_BRANCH_CHARS or _CONTROL.search(name)
    return None if unusable else name


def _origin_url(config: str) -> str:
    """The first `url` of `[remote "origin"]`, as git's own syntax spells it; other remotes name other people's repositories."""
    position, inside = 0, False
    while position < len(config):
        if header := _HEADER.match(config, position):
            inside, position = _is_origin(header[1], header[2]), header.end()
        elif entry := _ENTRY.match(config, position):
            if inside and entry[1].lower() == "url" and entry[2]:
                return _config_value(entry[2])
            position = entry.end()
        else:  # a comment, a blank rest of a line, or nonsense: the next line may be good again
            position = config.find("\n", position) + 1 or len(config)
    return ""


def _is_origin(section: str, name: str | None) -> bool:
    if name is None:
        return section.lower() == "remote.origin"
    return section.lower() == "remote" and re.sub(r"\\(.)", r"\1", name) == "origin"


def _config_value(raw: str) -> str:
    """Unescape and unquote; white space at the end counts only inside quotes."""
    value, kept, quoted = "", 0, False
    for escaped, quote, plain in _VALUE_PIECE.findall(raw):
        quoted ^= bool(quote)
        value += _ESCAPES.get(escaped, escaped) or plain
        kept = len(value) if quoted or quote or (escaped and not escaped.isspace()) else max(kept, len(value.rstrip()))
    return value[:kept]


def _read(path: str) -> str:
    """A small file's text, or nothing. Does not wait for a FIFO that somebody left in the way."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError):
        return ""
    try:
        return os.read(descriptor, limits.MAX_GIT_FILE_BYTES).decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
