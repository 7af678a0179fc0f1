"""Git repositories: the identity under which clones of one repository are the same, and reading it and the branch from
the files below `.git`. Starting `git` would take longer than the call that asks.

Hooks import this module: nothing here loads `re` or `json`.
"""

from __future__ import annotations

import os
import posixpath

from nudge.core import limits, paths
from nudge.core.text import has_control

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_POINTER = "gitdir: "
_KEPT_BY_GIT = ("/.git/modules/", "/.git/worktrees/")  # git directories of submodules and of linked work trees
_BRANCH_REF = "ref: refs/heads/"
# The content of `HEAD` when branches are in a reftable: no file that is read here names the real branch.
_REFTABLE_BRANCH = ".invalid"

_SCHEME_MARKS = {ord(mark): None for mark in "+.-"}
_CONFIG_SYNTAX = frozenset('"\\#;')
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}

_identities: dict[str, str] = {}  # of what callers sent; not `lru_cache`: importing `functools` costs a hook 2 ms


# Paths of any system


def is_absolute(path: str) -> bool:
    """Whether the path is absolute on this system or on another one: a client may run elsewhere."""
    return path.startswith("/") or _has_drive(path)


def _has_drive(path: str) -> bool:
    return path[1:2] == ":" and path[0].isalpha() and path[2:3] in ("", "/", "\\")


def to_posix(path: str) -> str:
    """Return the path with forward slashes, without doubled or trailing ones, `.` and `..`."""
    path = posixpath.normpath(_slashed(path))
    if path.startswith("/"):
        return "/" + path.lstrip("/")
    return f"{path}/" if path[1:] == ":" else path  # a drive's root


def _slashed(path: str) -> str:
    """Return the path with forward slashes. A backslash is a separator only below a drive letter; elsewhere it is part
    of a name."""
    return path.replace("\\", "/") if _has_drive(path) else path


# Identity


def normalize_repo(raw: str) -> str:
    """Return the identity of a repository: `git:host/org/repo` for every form of its URL, `file:///path` for a local
    one. `git:org/repo` stays as it is and stands for that path on any host. Raises ValueError."""
    identity = _identities.get(raw)
    if identity is None:
        if len(_identities) >= limits.IDENTITIES_CACHED:
            _identities.clear()
        identity = _identities[raw] = _repo_identity(raw)
    return identity


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
    path = to_posix(text)
    if _has_drive(path.lstrip("/")):
        path = to_posix("/" + _slashed(path.lstrip("/")))
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


def has_host(project: str) -> bool:
    """Whether a project's identity begins with a host: a repo without one is another on each machine."""
    return _has_written_host(project.split("/"))


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


# Reading `.git`


def read_repo(folder: str) -> tuple[str | None, str | None, str | None]:
    """Return the identity, the branch and the top of the work tree of the repository that `folder` is in, None for each
    when there is none. The top is spelled as `folder` is, symbolic links included."""
    try:
        real = os.path.realpath(folder)
        found = _find_git_dir(real)
        repo = _read_identity(*found) if found else None
    except (OSError, ValueError):  # a NUL in a path, a loop of links
        return None, None, None
    if found is None or repo is None:
        return None, None, None
    top, git_dir, _ = found
    below = real[len(top) :]
    return repo, _branch(git_dir), folder.removesuffix(below) if folder.endswith(below) else top


def find_git_dir(folder: str) -> str | None:
    """Return the git directory of the work tree that `folder` is in; None without one, or where a work tree only claims
    it."""
    try:
        found = _find_git_dir(os.path.realpath(folder))
    except (OSError, ValueError):
        return None
    return found[1] if found is not None and found[2] else None


def find_work_tree(folder: str) -> tuple[str, str] | None:
    """Return the top of the work tree that `folder` is in, spelled without links, and the git directory that it shares
    with its linked work trees. None without one, where a work tree only claims it, and for a bare repository."""
    try:
        found = _find_git_dir(os.path.realpath(folder))
    except (OSError, ValueError):
        return None
    if found is None or not found[2] or found[0] == found[1]:
        return None
    return found[0], common_dir(found[1])


def _find_git_dir(folder: str) -> tuple[str, str, bool] | None:
    """Return the top of the work tree that `folder` is in, its git directory, and whether that one says which
    repository it is. A bare repository is both.

    A work tree does not choose which repository it is. Files that somebody else wrote can look like a bare repository
    (a clone brings any directory but `.git`) or like the `.git` file of a linked work tree (an archive brings that
    too). So there is no bare repository below a work tree, as with git's `safe.bareRepository=explicit`, and a `.git`
    file counts only where the directory that it names points back. What does not count is passed by. Where a `.git`
    file that does not count is all there is (`git init --separate-git-dir`), the repository is known by its place."""
    bare = unproven = None
    for parent in paths.upward(folder):
        marker = os.path.join(parent, ".git")
        if os.path.isfile(marker):
            git_dir = _named_git_dir(marker)
            if _is_git_dir(git_dir):
                if _points_back(git_dir, parent):
                    return parent, git_dir, True
                unproven = parent, git_dir, False
        elif os.path.isfile(os.path.join(marker, "HEAD")):
            return parent, marker, True
        elif _is_git_dir(parent) and os.path.basename(parent) != ".git":
            if any(kept in parent for kept in _KEPT_BY_GIT):
                return parent, parent, True
            bare = bare or (parent, parent, True)
    return unproven or bare


def _named_git_dir(marker: str) -> str:
    """The directory that a `.git` file names; the file itself, which is none, when it names nothing."""
    pointer = _read(marker).rstrip("\r\n")
    if not pointer.startswith(_POINTER):
        return marker
    return os.path.join(os.path.dirname(marker), pointer.removeprefix(_POINTER))


def _is_git_dir(folder: str) -> bool:
    """By the entries that git itself checks for."""
    return os.path.isfile(os.path.join(folder, "HEAD")) and all(
        os.path.isdir(os.path.join(common_dir(folder), name)) for name in ("objects", "refs")
    )


def common_dir(git_dir: str) -> str:
    """What a linked work tree shares with its repository; the git directory itself for any other."""
    return os.path.realpath(os.path.join(git_dir, _read(os.path.join(git_dir, "commondir")).rstrip("\r\n")))


def _points_back(git_dir: str, work_tree: str) -> bool:
    """Whether a git directory names this work tree: that of a linked work tree in the file `gitdir`, that of a
    submodule in the setting `core.worktree`."""
    linked = _read(os.path.join(git_dir, "gitdir")).rstrip("\r\n")
    if linked:
        return paths.is_same_file(os.path.join(git_dir, linked), os.path.join(work_tree, ".git"))
    configs = [_read(os.path.join(git_dir, name)) for name in ("config", "config.worktree")]
    trees = [tree for config in configs for tree in _settings(config, _is_core, "worktree")]
    return bool(trees) and paths.is_same_file(os.path.join(git_dir, trees[-1]), work_tree)


def _read_identity(work_tree: str, git_dir: str, is_proven: bool) -> str | None:
    """Worktrees share the common directory and so its origin. A relative origin is resolved from the main tree, so that
    all worktrees agree."""
    if not is_proven:
        return _identity(work_tree)
    git_dir, common = os.path.realpath(git_dir), common_dir(git_dir)
    url = next(_settings(_read(os.path.join(common, "config")), _is_origin, "url"), "")
    main_tree = os.path.dirname(common) if os.path.basename(common) == ".git" else common
    base = work_tree if common == git_dir else main_tree
    return _identity(_anchored(url, base)) or _identity(common)


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


def _settings(config: str, is_section: Callable[[str], bool], setting: str) -> Iterator[str]:
    """The values of one setting in git's config syntax, in their order, without empty ones."""
    inside, lines = False, iter(config.split("\n"))
    for line in lines:
        entry = line.strip()
        if entry.startswith("["):
            header, _, entry = entry[1:].partition("]")
            inside = is_section(header.strip())
        name, _, rest = entry.lstrip().partition("=")
        value = "" if name.startswith(("#", ";")) else _config_value(rest, lines)
        if value and inside and name.strip().lower() == setting:
            yield value


def _is_origin(section: str) -> bool:
    """Other remotes may be other people's forks."""
    kind, _, name = section.partition(" ")
    return (kind.lower(), name.strip()) in (("remote", '"origin"'), ("remote.origin", ""))


def _is_core(section: str) -> bool:
    return section.lower() == "core"


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
