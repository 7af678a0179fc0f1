"""Which commands are never told, and in how many sessions a command must have worked before it is.

A command that one session ran is told in the next one only if the repository or the machine already had what it runs.
What fetches a package by name, or runs a tool that was not there, needs two sessions. What deletes, weakens a
protection, runs text from elsewhere, or names a place that no file of the repository names, is never told.
"""

from __future__ import annotations

import os
import posixpath
import re
from functools import lru_cache

from nudge.learning.jobs import NOISE
from nudge.security.secrets import find_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nudge.learning.command import SimpleCommand

NEVER = 0
_ONE, _TWO = 1, 2

_REDACTED = "[REDACTED"
_SUBSTITUTION = re.compile(r"\$\(|`|<\(|>\(|\$\{|\$(?!(?:PWD|HOME|USER)\b)\w")
_HARMFUL_WORDS = frozenset(
    (
        *(
            "--no-verify",
            "--force",
            "-f!",
            "--force-with-lease",
            "--insecure",
            "-k!",
            "--no-check-certificate",
            "--yolo",
        ),
        *(
            "--trusted-host",
            "--disable-ssl",
            "--no-gpg-check",
            "--allow-unauthenticated",
            "--skip-ssl",
            "--hard",
            "777",
        ),
        *("--no-sandbox", "--privileged", "--delete", "--prune", "--dangerously-skip-permissions", "--unsafe-perm"),
        *("--break-system-packages", "--no-strict-host-key", "a+rwx", "-R777", "0777", "666", "a+w", "o+w", "ugo+rwx"),
        *("--accept-data-loss", "--force-reset", "--no-preserve-root", "--skip-verify", "--nogpgcheck", "--overwrite"),
        *("--allow-all", "-A!", "--disable-web-security", "--ignore-certificate-errors", "--tls-verify=false"),
    )
)
_HARMFUL = re.compile(
    r"(?i)no[-_]?verify|verify[-_]?(?:ssl|tls)?[=:]?\s*(?:false|0|off|none)|strict[-_]?(?:ssl|host)\w*[=\s]+(?:false|no|0)"
    r"|insecure|skip[-_]?tls|StrictHostKeyChecking|SSL_NO|TLS_REJECT_UNAUTHORIZED|PYTHONHTTPSVERIFY|unsafe|sslverify"
    r"|--no-check-cert|GIT_SSL|CURLOPT|check[-_]hostname=false|--skip-(?:hooks?|checks?|tests?|validation)|HUSKY=0|SKIP="
)
_DELETING = frozenset(
    ("rm", "rmdir", "unlink", "shred", "dropdb", "truncate", "mkfs", "dd", "kill", "pkill", "killall", "fuser")
)
_DELETING_WORDS = frozenset(
    ("fresh", "flush", "clear", "erase", "stop", "disable", "kill", "terminate", "unload")
) | frozenset(
    (
        "clean",
        "prune",
        "purge",
        "drop",
        "reset",
        "destroy",
        "delete",
        "remove",
        "rm",
        "uninstall",
        "down",
        "wipe",
        "nuke",
    )
)
_DANGEROUS_GIT = frozenset(
    (
        "reset",
        "clean",
        "checkout",
        "restore",
        "stash",
        "rebase",
        "filter-branch",
        "revert",
        "commit",
        "merge",
        "add",
        "config",
    )
)
_LOADER_VARIABLES = re.compile(
    r"LD_\w+|DYLD_\w+|PYTHONSTARTUP|BASH_ENV|ENV|PROMPT_COMMAND|GIT_SSH\w*|GIT_CONFIG\w*|GIT_EXEC_PATH|PERL5OPT|RUBYOPT"
    r"|\w*_?PROXY|\w*INDEX_URL|\w*REGISTRY\w*|NODE_EXTRA_CA_CERTS|PATH|IFS|SHELL|EDITOR|PAGER|BROWSER|JAVA_TOOL_OPTIONS"
)
_URL = re.compile(r"(?:https?|git|ssh|ftp|s3|gs)(?:\+\w+)?://[^\s'\"]+|[\w.-]+@[\w.-]+:[\w./~-]+")
_SOURCE_OPTIONS = re.compile(
    r"--?(?:(?:extra-)?index-url|registry|index|mirror|source|repository|channel|find-links|i)$"
)
_HARMLESS_VALUE = re.compile(
    r"(?:true|false|yes|no|on|off|0|1|auto|local|test|dev|development|production|staging|ci)"
    r"|-?\d[\d.]*[a-zA-Z%]{0,3}|v?\d+(?:\.[\w-]+)+|[A-Za-z][\w-]{0,30}|[A-Za-z_][\w.:-]{0,60}"
    r"|(?:\.{0,2}/|~/|[\w.@+-]+/)[\w./@:+~-]*|-{1,2}[\w=.,:/ -]+|https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?[\w./-]*"
    r"|\w+://(?:localhost|127\.0\.0\.1)(?::\d+)?[\w./-]*|[\w=,.: @/+-]{0,60}"
)
_SECRET_NAME = re.compile(
    r"(?i)pass(?:word|wd|phrase)?|secret|token|api_?key|credential|private|auth(?!or)|(?:^|_)pwd|(?:^|_)key$"
)

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
        ("go", "rustup", "luarocks", "cabal", "stack", "nix-env", "snap", "port", "cpanm", "dotnet", "flutter", "dart"),
        ("install", "get", "add", "-i"),
    ),
}
_RUN_FROM_INDEX = frozenset(("npx", "pnpx", "bunx", "uvx", "pipx"))
_LOCAL = re.compile(
    r"~.*|\.{1,2}(?:/.*)?(?:\[[\w,-]+\])?|\.\[[\w,.-]+\]|/.*|[\w./-]+\.(?:txt|toml|lock|whl|gem|tgz|deb|yml|yaml|in)"
)
_MANIFESTS = (
    *("package.json", "pyproject.toml", "setup.cfg", "setup.py", "Gemfile", "Cargo.toml", "go.mod", "composer.json"),
    *(
        "mix.exs",
        "Makefile",
        "justfile",
        "Taskfile.yml",
        "Dockerfile",
        "compose.yaml",
        "docker-compose.yml",
        ".mise.toml",
    ),
    *(
        ".tool-versions",
        "requirements.txt",
        "requirements-dev.txt",
        "tox.ini",
        "noxfile.py",
        "environment.yml",
        "README.md",
    ),
    *(
        ".gitmodules",
        ".git/config",
        ".npmrc",
        ".npmrc.ci",
        "pubspec.yaml",
        "deno.json",
        "Brewfile",
        "rust-toolchain.toml",
    ),
    *("package-lock.json", "pnpm-lock.yaml", "yarn.lock", "uv.lock", "poetry.lock", "Gemfile.lock", "CONTRIBUTING.md"),
    *("DESCRIPTION", "cpanfile", "opam", "project.clj", "build.gradle", "build.gradle.kts", "pom.xml", "apt.txt"),
)
_MAX_MANIFEST = 200_000


def sessions_needed(commands: Sequence[SimpleCommand], text: str, root: str | None, printed: str = "") -> int:
    """Return in how many sessions these commands must have worked before their text is told; NEVER for commands that
    are not told at all. `root` is the clone with the files of the repository, `printed` the output of the failure that
    they cure."""
    if _REDACTED in text or _SUBSTITUTION.search(text) or "\n" in text or find_secret(text) is not None:
        return NEVER
    if any(_is_harmful(command) for command in commands) or _HARMFUL.search(text):
        return NEVER
    if any(not _names_known_places(command, root) for command in commands):
        return NEVER
    fetched = [name for command in commands for name in _fetched(command)]
    unknown = [name for name in fetched if not is_named(name, root)]
    if unknown and printed and any(name in printed for name in unknown) and _is_told_to_run(text, printed):
        return NEVER  # the output of a failed command asked for a package that the repository does not know
    return _TWO if unknown else _ONE


def _is_told_to_run(text: str, printed: str) -> bool:
    return " ".join(text.split()) in " ".join(printed.split())


def _verbs(command: SimpleCommand) -> list[str]:
    """The words that may say what a program is to do."""
    words = map(str, command.words[len(command.launcher) + 1 :])
    return [word for word in words if not word.startswith("-") and "/" not in word][:2]


def _deletes(verbs: Sequence[str]) -> bool:
    return any(part in _DELETING_WORDS for verb in verbs for part in re.split(r"[:._-]", verb))


def undoes(command: SimpleCommand) -> bool:
    """Whether a command deletes something, or takes back changes: what works after it may work because of that."""
    words = list(map(str, command.words))
    if command.tool == "git":
        return any(word in _UNDOING_GIT for word in words[1:2])
    verbs = _verbs(command)
    return command.tool in _DELETING or command.tool in ("mv", "patch") or _deletes(verbs)


_UNDOING_GIT = frozenset(("stash", "checkout", "reset", "restore", "revert", "clean", "rm", "rebase", "bisect"))


def _is_harmful(command: SimpleCommand) -> bool:
    words = list(map(str, command.words))
    if command.tool in _DELETING or command.reads_here_document:
        return True
    if command.tool in ("bash", "sh", "zsh", "python", "node", "perl", "ruby", "eval") and (
        "-c" in words or "-e" in words
    ):
        return True
    if command.tool in ("eval", "curl", "wget") or (
        "sudo" in command.wrapper and command.tool in ("chmod", "chown", "tee")
    ):
        return True
    if command.tool == "git" and any(word in _DANGEROUS_GIT for word in words[1:2]):
        return True
    verbs = _verbs(command)
    if _deletes(verbs) or any(word in _HARMFUL_WORDS for word in words):
        return True
    if command.tool == "git" and ("-f" in words or any(word.startswith("+") for word in words[2:])):
        return True
    if "config" in verbs and "set" in words and command.tool not in ("kubectl", "gcloud"):
        return True
    return any(not is_harmless_variable(word) for word in command.variables)


def is_harmless_variable(word: str) -> bool:
    """Whether the name of a variable loads no code and its value has the shape of a setting."""
    name, _, value = word.partition("=")
    if _LOADER_VARIABLES.fullmatch(name) or _SECRET_NAME.search(name):
        return False
    return _HARMLESS_VALUE.fullmatch(value) is not None and find_secret(f"{name}={value}") is None


def _names_known_places(command: SimpleCommand, root: str | None) -> bool:
    """Whether every URL, index and registry of a command stands in a file of the repository."""
    words = [*map(str, command.words), *map(str, command.variables)]
    for before, word in zip(["", *words], words, strict=False):
        name, _, value = word.partition("=")
        is_source = _SOURCE_OPTIONS.fullmatch(before) or (value and _SOURCE_OPTIONS.fullmatch(name))
        if is_source and before != "-i" and not is_named(value or word, root):
            return False
        for match in _URL.finditer(word):
            place = (
                re.sub(r"^\w+(?:\+\w+)?://(?:[^@/]*@)?|^[\w.-]+@", "", match[0]).replace(":", "/").removesuffix(".git")
            )
            is_here = re.match(r"(?:localhost|127\.0\.0\.1|\[::1\])\b", place) is not None
            if not is_here and not is_named(place, root) and command.tool not in ("aws", "gsutil", "gcloud"):
                return False
    return True


def _fetched(command: SimpleCommand) -> Iterator[str]:
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


def is_named(name: str, root: str | None) -> bool:
    """Whether a file of the repository names a package, tool or place."""
    if root is None:
        return False
    plain = re.split(r"[=<>~!\[]|(?<=.)@", name)[0]
    if os.path.exists(os.path.join(root, "node_modules", ".bin", plain)):
        return True
    return any(_names(_manifest(os.path.join(root, file)), plain) for file in _MANIFESTS)


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


def without_noise(words: Iterable[str]) -> list[str]:
    return [word for word in words if word not in NOISE]
