"""The caller's context: cwd, repo, branch, operating system, environment, project.

Resolved on the client's side by reading the files below `.git`: starting `git` would take longer than the call itself.
"""

from __future__ import annotations

import os
import posixpath
import sys

from nudge import limits, thin_json
from nudge.errors import Invalid
from nudge.text import has_control

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

OS_NAMES = ("linux", "darwin", "windows")
CODEX_METADATA = "x-codex-turn-metadata"

_PLATFORMS = {"linux": "linux", "darwin": "darwin", "win32": "windows", "cygwin": "windows"}
_POINTER = "gitdir: "
_BRANCH_REF = "ref: refs/heads/"
# The content of `HEAD` when branches are in a reftable: the real branch is in no file that we read.
_REFTABLE_BRANCH = ".invalid"
_NESTED_METADATA = 3

_SCHEME_MARKS = {ord(mark): None for mark in "+.-"}
_CONFIG_SYNTAX = frozenset('"\\#;')
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


class Context:
    """What is known about a caller. None means unknown, which meets no condition of a scope. `root` is the top of its
    clone or worktree, and is not sent."""

    __slots__ = ("branch", "cwd", "env", "files_open", "os", "project", "repo", "root")

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
        root: str | None = None,
    ) -> None:
        self.cwd, self.repo, self.branch, self.os = cwd, repo, branch, os
        self.env, self.project, self.files_open, self.root = env, project, files_open, root

    @classmethod
    def parse(cls, raw: object, field: str = "context") -> Context:
        """Parse the wire form; a field that is null or empty is unknown."""
        if raw is None:
            return cls()
        if not isinstance(raw, dict):
            raise Invalid("must be an object", field=field)
        context = cls()
        for name, value in raw.items():
            parse = _PARSERS.get(name)
            if parse is None:
                raise Invalid(f"is none of {', '.join(_PARSERS)}", field=_member(field, name))
            if value is not None and value != "":
                setattr(context, name, parse(value, f"{field}.{name}"))
        return context

    def merged(self, defaults: Context) -> Context:
        """This context, with unknown fields taken from `defaults`."""
        if defaults is NO_CONTEXT:
            return self
        fields = defaults.to_wire()
        return Context(**{**fields, **self.to_wire()}) if fields else self

    def to_wire(self) -> dict[str, Any]:
        """The fields that are known."""
        return {name: value for name in _PARSERS if (value := getattr(self, name)) is not None}


# What callers sent, normalized. Not `lru_cache`: `functools` costs a hook 2 ms.
_normal_paths: dict[str, str] = {}
_identities: dict[str, str] = {}


def _remember(cache: dict[str, str], raw: str, normal: str) -> str:
    if len(cache) >= limits.IDENTITIES_CACHED:
        cache.clear()
    cache[raw] = normal
    return normal


NO_CONTEXT = Context()
"""Nothing is known about the caller. Compared by identity; never changed."""


def _member(field: str, name: object) -> str:
    """The path of a member, with the caller's name for it cut."""
    return f"{field}.{str(name)[: limits.MAX_NAME_CHARS]}"


def _text(raw: object, field: str, most: int) -> str:
    if not isinstance(raw, str):
        raise Invalid("must be a string", field=field)
    if len(raw) > most:
        raise Invalid(f"must be at most {most} characters", field=field)
    if has_control(raw):
        raise Invalid("must not contain control characters", field=field)
    return raw


def _parse_cwd(raw: object, field: str) -> str:
    path = _text(raw, field, limits.MAX_PATH_CHARS)
    if (normal := _normal_paths.get(path)) is None:
        from nudge.security.absolute_paths import normalize_path  # late: a client resolves its context and parses none

        normal = _remember(_normal_paths, path, normalize_path(path, field))
    return normal


def _parse_repo(raw: object, field: str) -> str:
    try:
        return normalize_repo(_text(raw, field, limits.MAX_REPO_CHARS))
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
    """Values may be of any length (`PATH` is long): the request's size limits them, and they are never stored."""
    if not isinstance(raw, dict):
        raise Invalid("must be an object of names and strings", field=field)
    for name, value in raw.items():
        if value is not None and not isinstance(value, str):
            raise Invalid("must be a string", field=_member(field, name))
    return {str(name): value for name, value in raw.items() if value is not None}


def _parse_project(raw: object, field: str) -> str:
    return _text(raw, field, limits.MAX_REPO_CHARS).casefold()


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


def this_system() -> str | None:
    """The operating system, under its name in a scope."""
    return _PLATFORMS.get(sys.platform)


def resolve(cwd: str | None = None) -> Context:
    """The context of a directory, by default this process's. Never raises: what cannot be read or sent is unknown."""
    folder = caller_cwd({}, cwd, None)
    if folder is None:
        return Context(os=this_system())
    repo, branch, root = _resolve_git(folder)
    cwd = folder if not has_control(folder) and len(folder) <= limits.MAX_PATH_CHARS else None
    return Context(cwd=cwd, repo=repo, branch=branch, os=this_system(), project=project_of(repo, cwd), root=root)


def working_directory() -> str | None:
    """This process's directory, under its shell's name for it (`PWD`), which is what people write into a scope."""
    try:
        cwd = os.getcwd()
    except OSError:
        return None
    logical = _normalize(os.environ.get("PWD") or cwd)
    return logical if logical != cwd and _is_absolute(logical) and _is_same(logical, cwd) else cwd


def _is_same(one: str, other: str) -> bool:
    """Whether two names lead to one directory; `PWD` may be out of date."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def caller_cwd(environ: Mapping[str, str], explicit: str | None, meta: Mapping[str, Any] | None) -> str | None:
    """The caller's directory, by precedence: explicit argument, per-call `_meta`, environment, this process's."""
    implied = (
        _first_absolute(_codex_workspaces(meta))
        or _first_absolute(environ.get("CLAUDE_PROJECT_DIR"))
        or working_directory()
    )
    chosen = explicit or implied
    if chosen and not _is_absolute(chosen):
        chosen = f"{implied}/{chosen}" if implied else None
    return _normalize(chosen) if chosen else None


def requested_env(environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str | None]:
    """The values of these variables, fit to be sent: None when unset, cut when longer than any value that a scope may
    name, `?` for bytes that are not UTF-8."""
    values = {name: environ.get(name) for name in names}
    return {
        name: value and value[: limits.MAX_ENV_VALUE_CHARS + 1].encode("utf-8", "replace").decode()
        for name, value in values.items()
    }


def meta_session(meta: object) -> str | None:
    """The session that a client names in the `_meta` of a call."""
    if not isinstance(meta, dict):
        return None
    for value in (meta.get("sessionId"), _codex_turn(meta).get("session_id")):
        if isinstance(value, str) and 0 < len(value) <= limits.MAX_SESSION_ID_CHARS and not has_control(value):
            return value
    return None


def _codex_workspaces(meta: Mapping[str, Any] | None) -> object:
    return _codex_turn(meta).get("workspaces")


def _codex_turn(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    turn = meta.get(CODEX_METADATA) if isinstance(meta, dict) else None
    if isinstance(turn, str):
        try:
            turn = thin_json.loads(turn)
        except (ValueError, RecursionError):
            return {}
    return turn if isinstance(turn, dict) else {}


def _first_absolute(node: object, depth: int = _NESTED_METADATA) -> str | None:
    """The first absolute path in a text, a list, or an object's names and then values."""
    if isinstance(node, str):
        return node if _is_absolute(node) else None
    if depth == 0 or not isinstance(node, dict | list):
        return None
    inner = [*node, *node.values()] if isinstance(node, dict) else node
    return next(filter(None, (_first_absolute(part, depth - 1) for part in inner)), None)


def _is_absolute(path: str) -> bool:
    """Whether the path is absolute, on this system or on another: it may have been written there."""
    return path.startswith("/") or _has_drive(path)


def _has_drive(path: str) -> bool:
    return path[1:2] == ":" and path[0].isalpha() and path[2:3] in ("", "/", "\\")


def _normalize(path: str) -> str:
    """Forward slashes, no doubled or trailing ones, no `.` and `..`."""
    path = posixpath.normpath(_slashed(path))
    if path.startswith("/"):
        return "/" + path.lstrip("/")
    return f"{path}/" if path[1:] == ":" else path  # a drive's root


def _slashed(path: str) -> str:
    """With forward slashes. A backslash is a separator only below a drive letter; elsewhere it is part of a name."""
    return path.replace("\\", "/") if _has_drive(path) else path


def normalize_repo(raw: str) -> str:
    """The identity of a repository: `git:host/org/repo` however it is cloned, `file:///path` when it is local.
    `git:org/repo` stays as it is and stands for that path on any host. Raises ValueError."""
    return _identities.get(raw) or _remember(_identities, raw, _repo_identity(raw))


def _repo_identity(raw: str) -> str:
    text = raw.lstrip()
    if len(text) > limits.MAX_REPO_CHARS or has_control(text):
        raise ValueError(f"must be printable and at most {limits.MAX_REPO_CHARS} characters")
    identity = _local_identity(text) or _remote_identity(text.rstrip())
    if identity is None or len(identity) > limits.MAX_REPO_CHARS:
        raise ValueError("must be git:host/org/repo, git:org/repo, a clone URL or an absolute path")
    return identity


def _local_identity(text: str) -> str | None:
    if text[:7].lower() == "file://":
        host, slash, rest = text[7:].partition("/")
        if host.lower() not in ("", "localhost"):
            return None
        text = slash + rest
    path = _normalize(text)
    if _has_drive(path.lstrip("/")):
        path = _normalize("/" + _slashed(path.lstrip("/")))
    while path.endswith("/.git"):  # a work tree and its git directory are one repository
        path = path.removesuffix("/.git") or "/"
    return f"file://{path}" if path.startswith("/") else None


def _remote_identity(text: str) -> str | None:
    host, path = _split_remote(text)
    parts = [part for part in "%20".join(path.lower().split()).split("/") if part not in ("", ".")]
    while parts and parts[-1].endswith(".git"):
        short = parts.pop().removesuffix(".git")
        parts += [] if short in ("", ".") else [short]
    if host is None and _has_written_host(parts):
        host = _host_name(parts.pop(0))
    if not parts or ".." in parts or host == "":
        return None
    return "git:" + "/".join(parts if host is None else [host, *parts])


def _split_remote(text: str) -> tuple[str | None, str]:
    """Host and path of `scheme://host/path` or `user@host:path`; no host in `git:path`, no path when it is neither."""
    scheme, mark, rest = text.partition("://")
    if mark and scheme.translate(_SCHEME_MARKS).isalnum():
        place, _, path = rest.partition("/")
        return ("", "") if scheme.lower() == "file" else (_resolve_alias(_host_name(place)), path)
    bracketed = "[" in text.partition(":")[0]  # `[::1]:path`, whose first colon is the address's own
    place, colon, path = text.partition("]:" if bracketed else ":")
    if not colon or not place or "/" in place:
        return "", ""
    return (None if place.lower() == "git" else _resolve_alias(_host_name(place))), path


def _has_written_host(parts: Sequence[str]) -> bool:
    """Whether the first part of `git:a/b/c` is a host: GitLab has groups in groups."""
    return len(parts) > 2 and ("." in parts[0] or ":" in parts[0] or parts[0] == "localhost")


def _host_name(place: str) -> str:
    """The host in `user:password@host:port`, in lower case. Ports are left out: those of ssh and https differ."""
    host = "%20".join(place.rpartition("@")[2].lower().split()).lstrip("[").partition("]")[0]
    return f"[{host}]" if host.count(":") > 1 else host.partition(":")[0].rstrip(".")


def _resolve_alias(host: str) -> str:
    """An ssh alias (`github-work`) by the `HostName` that the user's ssh config gives it. The file is read, since
    starting `ssh -G` would take longer than the call itself; patterns and included files are not."""
    if not host or "." in host or host == "localhost":
        return host
    inside = False
    for line in _read(os.path.expanduser("~/.ssh/config")).lower().split("\n"):
        name, *values = line.replace("=", " ", 1).replace('"', " ").split() or [""]
        if name in ("host", "match"):
            inside = name == "host" and host in values
        elif name == "hostname" and inside and values:
            return _host_name(values[0].replace("%h", host)) or host
    return host


def is_same_repo(one: str, other: str) -> bool:
    """Whether two identities name one repository; one that is written without a host stands for any host."""
    return one == other or one == _path_on_host(other) or _path_on_host(one) == other


def _path_on_host(repo: str) -> str | None:
    """`git:org/repo` for `git:host/org/repo`. The host of a remote need have no dot (`git@server:org/repo`)."""
    host, _, path = repo.removeprefix("git:").partition("/")
    return f"git:{path}" if repo.startswith("git:") and host and "/" in path else None


def project_of(repo: str | None, cwd: str | None) -> str | None:
    """The project's identity: that of the repository without its scheme, else the directory's path; in lower case, as
    identities of remotes are."""
    identity = _without_scheme(repo) if repo is not None else _normalize(cwd) if cwd else ""
    identity = identity.rstrip("/").removesuffix("/.git").removesuffix(".git").casefold()
    return identity if 0 < len(identity) <= limits.MAX_REPO_CHARS else None


def project_name(project: str) -> str:
    """The last part of a project's identity, or of a name for it."""
    return project.rstrip("/").rpartition("/")[2]


def is_project(project: str, name: str) -> bool:
    """Whether a name, such as `api`, `acme/api` or `git:acme/api`, stands for this project."""
    name = _without_scheme(name)
    return project == name or (project.endswith(f"/{name.strip('/')}") and not name.startswith("/"))


def is_below(path: str | None, folder: str) -> bool:
    return path is not None and f"{path}/".startswith(f"{folder.rstrip('/')}/")


def _without_scheme(repo: str) -> str:
    return repo.removeprefix("git:").removeprefix("file://")


def _resolve_git(folder: str) -> tuple[str | None, str | None, str | None]:
    """The repository's identity, the branch, and the top of the work tree by the name by which `folder` leads there."""
    try:
        real = os.path.realpath(folder)
        directories = _find_git_dir(real)
        repo, branch = _read_git(*directories) if directories else (None, None)
    except (OSError, ValueError):  # a NUL in a path, a loop of links
        return None, None, None
    if directories is None or repo is None:
        return None, None, None
    below = real[len(directories[0]) :]
    return repo, branch, folder.removesuffix(below) if folder.endswith(below) else directories[0]


def _find_git_dir(folder: str) -> tuple[str, str] | None:
    """The nearest work tree at or above `folder`, and its git directory; a bare repository is both."""
    for parent in _upwards(folder):
        marker = os.path.join(parent, ".git")
        if os.path.isfile(marker):
            pointer = _read(marker).rstrip("\r\n")
            is_pointer = pointer.startswith(_POINTER)
            return (parent, os.path.join(parent, pointer.removeprefix(_POINTER))) if is_pointer else None
        if os.path.isfile(os.path.join(marker, "HEAD")):
            return parent, marker
        if os.path.basename(parent) != ".git" and _is_git_dir(parent):
            return parent, parent
    return None


def _is_git_dir(folder: str) -> bool:
    """By the entries that git itself checks for."""
    return os.path.isfile(os.path.join(folder, "HEAD")) and all(
        os.path.isdir(os.path.join(folder, name)) for name in ("objects", "refs")
    )


def _upwards(folder: str) -> Iterator[str]:
    yield folder
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        yield folder


def _read_git(work_tree: str, git_dir: str) -> tuple[str | None, str | None]:
    """Worktrees share the common directory and so its origin. A relative origin is resolved from the main tree, so that
    all worktrees agree."""
    git_dir = os.path.realpath(git_dir)
    common = os.path.realpath(os.path.join(git_dir, _read(os.path.join(git_dir, "commondir")).rstrip("\r\n")))
    if not os.path.isfile(os.path.join(git_dir, "HEAD")):
        return None, None
    url = _origin_url(_read(os.path.join(common, "config")))
    main_tree = os.path.dirname(common) if os.path.basename(common) == ".git" else common
    base = work_tree if common == git_dir else main_tree
    return _identity(_anchored(url, base)) or _identity(common), _branch(git_dir)


def _identity(place: str) -> str | None:
    try:
        return normalize_repo(place)
    except ValueError:
        return None


def _anchored(url: str, base: str) -> str:
    """A relative origin from the main tree; `git:org/repo` is a host called `git` here, not a written identity."""
    if url[:4].lower() == "git:" and not url.startswith("//", 4):
        return f"git@{url}"
    return os.path.join(base, url) if url and ":" not in url.partition("/")[0] else url


def _branch(git_dir: str) -> str | None:
    head = _read(os.path.join(git_dir, "HEAD")).rstrip("\r\n")
    name = head.removeprefix(_BRANCH_REF).strip()
    unusable = (
        name == head or name in ("", _REFTABLE_BRANCH) or len(name) > limits.MAX_BRANCH_CHARS or has_control(name)
    )
    return None if unusable else name


def _origin_url(config: str) -> str:
    """The first `url` of `[remote "origin"]` in git's config syntax. Other remotes may be other people's forks."""
    inside, lines = False, iter(config.split("\n"))
    for line in lines:
        entry = line.strip()
        if entry.startswith("["):
            header, _, entry = entry[1:].partition("]")
            inside = _is_origin(header)
        name, _, rest = entry.lstrip().partition("=")
        value = "" if name.startswith(("#", ";")) else _config_value(rest, lines)
        if value and inside and name.strip().lower() == "url":
            return value
    return ""


def _is_origin(header: str) -> bool:
    section, _, name = header.strip().partition(" ")
    return (section.lower(), name.strip()) in (("remote", '"origin"'), ("remote.origin", ""))


def _config_value(text: str, following: Iterator[str]) -> str:
    """A value without quotes, escapes and comment. A backslash at the end continues on the next line; blanks at the
    ends count only in quotes."""
    text = text.strip()
    if _CONFIG_SYNTAX.isdisjoint(text):
        return text
    value, kept, quoted, position = "", 0, False, 0
    while position < len(text) and (quoted or text[position] not in "#;"):
        char = text[position]
        position += 1
        if char == '"':
            quoted, kept = not quoted, len(value)
        elif char == "\\" and position == len(text):
            text += next(following, "").rstrip()
        elif char == "\\":
            value, position = value + _ESCAPES.get(text[position], text[position]), position + 1
            kept = len(value)
        else:
            value += char
            kept = len(value) if quoted or not char.isspace() else kept
    return value[:kept]


def _read(path: str) -> str:
    """The text of a small file, or empty. O_NONBLOCK: opening a FIFO would wait for a writer."""
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


# Scopes for people

EVERYWHERE = "everywhere"


def describe_scope(scope: Mapping[str, Any] | None) -> str:
    """`repo git:org/x, branch dev or main`; a hint without a scope applies everywhere. Not escaped."""
    return ", ".join(_conditions(scope or {})) or EVERYWHERE


def _conditions(scope: Mapping[str, Any]) -> Iterator[str]:
    for field, word in (("cwd_glob", "cwd"), ("repo", "repo"), ("branch", "branch"), ("os", "os")):
        if scope.get(field):
            yield f"{word} {_any_of(scope[field])}"
    for name in scope.get("env_required") or ():
        yield f"env {name} set"
    for name, allowed in (scope.get("env_match") or {}).items():
        yield f"env {name}={_any_of(allowed)}"


def _any_of(allowed: str | Sequence[str]) -> str:
    return allowed if isinstance(allowed, str) else " or ".join(allowed)
