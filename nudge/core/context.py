"""The caller's context: cwd, repo, branch, operating system, environment, project.

The client resolves it (`resolve`, `caller_cwd`) and sends it with a call; the server parses it (`Context.parse`).
"""

from __future__ import annotations

import os
import sys

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.core.paths import is_same_file
from nudge.core.repos import is_absolute, normalize_repo, read_repo, to_posix
from nudge.core.text import has_control

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

OS_NAMES = ("linux", "darwin", "windows")
_OF_CWD = frozenset(("repo", "branch", "project"))  # what a directory says

_PLATFORMS = {"linux": "linux", "darwin": "darwin", "win32": "windows", "cygwin": "windows"}

_normal_paths: dict[str, str] = {}  # of what callers sent; not `lru_cache`: importing `functools` costs a hook 2 ms


class Context:
    """Where a caller is. None means unknown, and an unknown field meets no condition of a scope. `root` is the top of
    the caller's clone or worktree, and is not sent."""

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
                raise Invalid(f"is not a known field; known: {', '.join(_PARSERS)}", field=_member(field, name))
            if value is not None and value != "":
                setattr(context, name, parse(value, f"{field}.{name}"))
        return context

    def located(self, caller: Context) -> Context:
        """The place that a call is about: this context, which the call names, completed by its caller's.

        What is named counts, also where the directory says something else. A repo, branch or project that nobody names
        is that of the directory, if it is on this machine; the caller's own belong to the caller's directory only. This
        is decided here for every interface."""
        is_elsewhere = self.cwd not in (None, caller.cwd)
        found = Context()
        for name in _PARSERS:
            value = getattr(self, name)
            if value is None and not (is_elsewhere and name in _OF_CWD):
                value = getattr(caller, name)
            setattr(found, name, value)
        if found.cwd is not None and (found.repo is None or found.branch is None) and os.path.isdir(found.cwd):
            repo, branch, _ = read_repo(found.cwd)
            found.repo, found.branch = found.repo or repo, found.branch or branch
        if self.project is None and (self.repo is not None or found.project is None):
            found.project = project_of(found.repo, found.cwd)
        return found

    def to_json(self) -> dict[str, Any]:
        """The fields that are known."""
        return {name: value for name in _PARSERS if (value := getattr(self, name)) is not None}

    def with_env(self, env: Mapping[str, str | None]) -> Context:
        """This context with these variables as its environment; None stands for one that is not set."""
        known = {name: value for name, value in env.items() if value is not None}
        return Context(**{**self.to_json(), "env": known})


NO_CONTEXT = Context()
"""The context of a caller about whom nothing is known. Compare it by identity; do not change it."""


def _member(field: str, name: object) -> str:
    """Return the path of a member for an error message; the caller's name for the member is cut to a sane length."""
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
        from nudge.security.absolute_paths import normalize_path  # late: only a server parses

        if len(_normal_paths) >= limits.IDENTITIES_CACHED:
            _normal_paths.clear()
        normal = _normal_paths[path] = normalize_path(path, field)
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
    folder = caller_cwd(cwd)
    if folder is None:
        return Context(os=this_system())
    repo, branch, root = read_repo(folder)
    cwd = folder if not has_control(folder) and len(folder) <= limits.MAX_PATH_CHARS else None
    return Context(cwd=cwd, repo=repo, branch=branch, os=this_system(), project=project_of(repo, cwd), root=root)


def working_directory() -> str | None:
    """This process's directory, under its shell's name for it (`PWD`, where that is up to date), which is what people
    write into a scope."""
    try:
        cwd = os.getcwd()
    except OSError:
        return None
    logical = to_posix(os.environ.get("PWD") or cwd)
    return logical if logical != cwd and is_absolute(logical) and is_same_file(logical, cwd) else cwd


def caller_cwd(named: str | None) -> str | None:
    """The caller's directory: the one that is named, else this process's own, where a relative one starts."""
    if named and is_absolute(named):
        return to_posix(named)
    here = working_directory()
    return to_posix(f"{here}/{named}" if named else here) if here else None


def requested_env(environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str | None]:
    """The values of these variables, fit to be sent: None when unset, cut when longer than any value that a scope may
    name, `?` for bytes that are not UTF-8."""
    values = {name: environ.get(name) for name in names}
    return {
        name: value and value[: limits.MAX_ENV_VALUE_CHARS + 1].encode("utf-8", "replace").decode()
        for name, value in values.items()
    }


def project_of(repo: str | None, cwd: str | None) -> str | None:
    """The project's identity: that of the repository without its scheme, else the directory's path; in lower case, as
    identities of remotes are."""
    identity = _without_scheme(repo) if repo is not None else to_posix(cwd) if cwd else ""
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
    """Whether the path is the folder or something in it."""
    return path is not None and f"{path}/".startswith(f"{folder.rstrip('/')}/")


def _without_scheme(repo: str) -> str:
    return repo.removeprefix("git:").removeprefix("file://")


# Text about a scope, for users

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
