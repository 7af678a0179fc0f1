"""Which commands are never told, whoever ran them: they delete, weaken a protection, run text from elsewhere, or load
code by a variable."""

from __future__ import annotations

import posixpath
import re

from nudge.core.context import is_below
from nudge.core.programs import INTERPRETERS, SHELLS
from nudge.learning.shell import parse_commands
from nudge.security.secrets import find_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nudge.learning.command import SimpleCommand

_DELETING = frozenset(
    (
        *("rm", "rmdir", "unlink", "shred", "dropdb", "dropuser", "truncate", "mkfs", "dd", "kill", "pkill", "killall"),
        *("fuser", "wipefs", "skill"),
    )
)
_DESTROYING_STEMS = (
    "drop",
    "delet",
    "destroy",
    "remov",
    "purg",
    "wip",
    "truncat",
    "flush",
    "eras",
    "prun",
    "uninstall",
)
"""Beginnings of words that say that something is deleted, in whatever text."""
_DELETING_STEMS = (
    *_DESTROYING_STEMS,
    *("reset", "clean", "nuk", "rollback", "downgrad", "revert", "undo", "evict", "drain", "disabl", "kill", "clear"),
    *("terminat", "stop", "shutdown", "unload", "fresh", "unregister", "deregister", "discard", "abandon", "overwrit"),
)
_DELETING_WORDS = frozenset(("rm", "down", "del"))
"""Whole words: `docker compose down`, `git branch del`."""
_UNDOING_GIT = frozenset(
    ("stash", "checkout", "reset", "restore", "revert", "clean", "rm", "rebase", "bisect", "switch", "worktree")
)
_DANGEROUS_GIT = _UNDOING_GIT | {"filter-branch", "commit", "merge", "add", "config", "am", "apply", "cherry-pick"}
_NOT_UNDOING_GIT = frozenset(("switch", "worktree"))
_PROTECTIONS = frozenset(
    (
        *("setenforce", "ufw", "iptables", "nft", "firewall-cmd", "csrutil", "spctl", "chown", "chgrp", "usermod"),
        *("visudo", "passwd", "chpasswd", "setfacl", "setcap", "ssh-keyscan", "update-ca-certificates", "xattr"),
        *("add-apt-repository", "apt-key", "update-crypto-policies", "auditctl", "aa-disable", "aa-complain"),
    )
)
"""Programs that change who may do what, or who is trusted."""
_FOR_ROOT = frozenset(
    (
        *("docker", "docker-compose", "podman", "systemctl", "service", "rc-service", "launchctl", "mount", "lsof"),
        *("apt", "apt-get", "dnf", "yum", "apk", "pacman", "zypper", "brew", "snap", "port", "pkg"),
        *("modprobe", "sysctl", "ldconfig", "locale-gen", "pg_ctlcluster"),
    )
)
"""Programs that are meant to be run by root where a user may not; others leave files of root behind."""
_HARMFUL_WORDS = frozenset(
    (
        *("--force", "--force-with-lease", "--insecure", "--yolo", "--trusted-host", "--privileged", "--hard"),
        *("777", "0777", "666", "a+rwx", "a+w", "o+w", "ugo+rwx", "-R777", "--no-preserve-root", "--unsafe-perm"),
        *("--break-system-packages", "--dangerously-skip-permissions", "--accept-data-loss", "--overwrite"),
        *("--allow-unauthenticated", "--allow-all", "--disable-web-security", "-DskipTests", "--nogpgcheck"),
    )
)
_HARMFUL = re.compile(
    r"(?i)no[-_]?verify|verify[-_]?(?:ssl|tls)?[=:]?\s*(?:false|0|off|none)|strict[-_]?(?:ssl|host)\w*[=\s]+(?:false|no|0)"
    r"|insecure|skip[-_]?tls|StrictHostKeyChecking|SSL_NO|TLS_REJECT_UNAUTHORIZED|PYTHONHTTPSVERIFY|unsafe|sslverify"
    r"|--no-check-cert|GIT_SSL|CURLOPT|check[-_]hostname=false|HUSKY=0|SKIP=|gpgsign|tls[-_]verify=false"
    r"|--(?:no|skip|ignore|disable|without)-[\w-]*(?:check|verif|valid|test|hook|audit|sandbox|auth|ssl|tls|gpg|sign"
    r"|secur|protect|cert|safe|guard|lock)"
    r"|(?<![a-z])(?:check|verify|validate|tests?|hooks?|audit|sandbox|auth|ssl|tls|gpg|sign|protect|guard|lock)"
    r"[= ](?:false|off|no|none|0|disabled?)\b|-D(?:skip|maven\.test\.skip)|--force(?![\w-])|--no-lock\b"
)
_LOADER_VARIABLES = re.compile(
    r"LD_\w+|DYLD_\w+|PYTHONSTARTUP|PYTHONHOME|BASH_ENV|ENV|PROMPT_COMMAND|GIT_SSH\w*|GIT_CONFIG\w*|GIT_EXEC_PATH|PERL5OPT"
    r"|PERL5DB|RUBYOPT|\w*_?PROXY|\w*INDEX(?:_URL)?|\w*REGISTRY\w*|\w*MIRROR\w*|GOPROXY|GONOSUM\w*|GOINSECURE"
    r"|NODE_EXTRA_CA_CERTS|\w*CA_BUNDLE|SSL_CERT_\w+|PATH|IFS|SHELL|EDITOR|PAGER|BROWSER|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS"
)
_HARMLESS_VALUE = re.compile(
    r"(?:true|false|yes|no|on|off|0|1|auto|local|test|dev|development|production|staging|ci)"
    r"|-?\d[\d.]*[a-zA-Z%]{0,3}|v?\d+(?:\.[\w-]+)+|[A-Za-z][\w-]{0,30}|[A-Za-z_][\w.:-]{0,60}"
    r"|(?:\$\{?(?:PWD|HOME)\}?/|\.{0,2}/|~/|[\w.@+-]+/)[\w./@:+~-]*|-{1,2}[\w=.,:/ -]+"
    r"|https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?[\w./-]*"
    r"|\w+://(?:localhost|127\.0\.0\.1)(?::\d+)?[\w./-]*|[\w=,.: @/+-]{0,60}"
)
_LOADING = re.compile(r"(?i)-(?:toolexec|exec|-?require|-?import|-?loader|javaagent|agentlib|agentpath|preload)\b")
"""Options with which a value loads code: `NODE_OPTIONS=--require=./x.js`."""
_SECRET_NAME = re.compile(
    r"(?i)pass(?:word|wd|phrase)?|secret|token|api_?key|credential|private|auth(?!or)|(?:^|_)pwd|(?:^|_)key$"
)
_ELSEWHERE = ("/tmp/", "/var/tmp/", "/dev/shm/", "/dev/tcp/", "/proc/")
"""Where files lie that neither the repository nor the machine had."""


def is_harmful(command: SimpleCommand, root: str | None) -> bool:
    """Whether a command is never told, nor what it runs as a text. `root` is the clone, which may lie anywhere."""
    texts = list(_texts(command.words))
    within = (one for text in texts for one in _commands_in(text))
    return any(_is_harmful_itself(one, root) for one in (command, *within)) or any(
        _says_deleting(text, _DESTROYING_STEMS) for text in texts
    )


def _is_harmful_itself(command: SimpleCommand, root: str | None) -> bool:
    words = list(map(str, command.words))
    if command.tool in _DELETING or command.tool in _PROTECTIONS or command.reads_here_document:
        return True
    if command.wrapper[:1] == ("sudo",) and command.tool not in _FOR_ROOT:
        return True
    if _runs_other_text(command, words, root) or _HARMFUL.search(command.text):
        return True
    if any(word in _HARMFUL_WORDS for word in words) or _sets_harmful_variable(command, words):
        return True
    if command.tool == "git" and _is_harmful_git(words):
        return True
    is_setting = "config" in _verbs(command) and "set" in words and command.tool not in ("kubectl", "gcloud")
    return is_setting or _deletes(command)


def _sets_harmful_variable(command: SimpleCommand, words: Sequence[str]) -> bool:
    exported = [word for word in words[1:] if "=" in word] if command.tool == "export" else []
    return not all(map(is_harmless_variable, (*command.variables, *exported)))


def is_harmful_text(text: str) -> bool:
    """Whether a text weakens a protection wherever that stands in it."""
    return _HARMFUL.search(text) is not None


def undoes(command: SimpleCommand) -> bool:
    """Whether a command deletes something, or takes back changes: what works after it may work because of that."""
    if command.tool == "git":
        return command.words[1:2] != () and command.words[1] in _UNDOING_GIT - _NOT_UNDOING_GIT
    return command.tool in _DELETING or command.tool in ("mv", "patch") or _deletes(command)


def is_harmless_variable(word: str) -> bool:
    """Whether the name of a variable loads no code and its value has the shape of a setting."""
    name, _, value = word.partition("=")
    if _LOADER_VARIABLES.fullmatch(name) or (_SECRET_NAME.search(name) and not _names_file(name, value)):
        return False
    if _LOADING.search(value):
        return False
    return _HARMLESS_VALUE.fullmatch(value) is not None and find_secret(f"{name}={value}") is None


_FILE_BELOW = re.compile(r"(?!/(?:dev|proc|tmp|var/tmp)/)(?:~|\.{1,2}|/[\w.-]+)(?:/[\w.-]{1,40})+")


def _names_file(name: str, value: str) -> bool:
    """Whether a variable says where a secret is, not what it is: `PASSPHRASE_FILE=~/.config/x.pass`."""
    return name.endswith(("_FILE", "_PATH", "_DIR")) and _FILE_BELOW.fullmatch(value) is not None


def _is_harmful_git(words: Sequence[str]) -> bool:
    verb = next((word for word in words[1:] if not word.startswith("-")), "")
    return verb in _DANGEROUS_GIT or bool({"-c", "-f", "-D"} & set(words)) or any(word[0] == "+" for word in words[2:])


def _runs_other_text(command: SimpleCommand, words: Sequence[str], root: str | None) -> bool:
    """Whether a command runs or loads a text that is no file of the repository or the machine."""
    if command.tool in ("eval", "curl", "wget", "xargs"):
        return True
    name = posixpath.basename(command.launched_program)
    is_interpreter = name in INTERPRETERS | SHELLS or name.startswith("python")
    if is_interpreter and not command.is_python_module:
        script = next((word for word in command.arguments if not word.startswith("-")), "")
        reads_input = not script and (command.preceded_by in ("|", "|&") or command.redirections != ())
        if reads_input or {"-c", "-e", "-ec", "-lc", "-s"} & set(words):
            return True
    is_loading = is_interpreter or command.tool in ("source", ".")
    loaded = command.arguments if is_loading else ()
    return any(_is_elsewhere(word, root) for word in (command.program, *loaded))


def _is_elsewhere(path: str, root: str | None) -> bool:
    return path.startswith(_ELSEWHERE) and not (root is not None and is_below(path, root))


# Deleting


def _verbs(command: SimpleCommand) -> list[str]:
    """The words that may say what a program is to do."""
    words = map(str, command.words[len(command.launcher) + 1 :])
    return [word for word in words if not word.startswith("-") and "/" not in word and "=" not in word][:3]


_MADE = re.compile(r"-(?:outputs?|artifacts?|generated)$")
"""Options that name what the program itself made: `--delete-conflicting-outputs`."""


def _deletes(command: SimpleCommand) -> bool:
    options = [
        word[2:] for word in command.words[1:] if word.startswith("--") and "=" not in word and not _MADE.search(word)
    ]
    options += [word[1:] for word in command.words[1:] if word.startswith("-") and word[1:].isalpha() and len(word) > 4]
    names = [posixpath.basename(command.program)] if "/" in command.program else []
    if any(part in _DELETING_WORDS for verb in _verbs(command) for part in re.split(r"[:._-]", verb)):
        return True
    return any(map(_says_deleting, (*_verbs(command), *options, *names)))


def _texts(words: Iterable[str]) -> Iterator[str]:
    """The words that are text of another language, or of a shell: `drop table x`, `db.dropDatabase()`."""
    yield from (word for word in words if " " in word or "(" in word or ";" in word)


def _commands_in(text: str) -> list[SimpleCommand]:
    return [command for command in parse_commands(text) if command.words]


def _says_deleting(text: str, stems: tuple[str, ...] = _DELETING_STEMS) -> bool:
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]{2,}", text)
    folded = [part.casefold() for part in parts]
    return any(part.startswith(stems) or part.endswith("clean") for part in folded)
