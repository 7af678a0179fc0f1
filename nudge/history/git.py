"""Recognize commits and pushes by the command and by git's output. Hooks import this only for commands with `git`."""

from __future__ import annotations

import re

from nudge.core import limits
from nudge.history.redact import redact_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HASH_CHARS = 12  # enough to name a commit; a full hash would be redacted as a key
_QUOTED = r"""(?:"[^"]{0,200}"|'[^']{0,200}')"""
_OPTION = rf"""\s+(?:-[cC]\s+(?:{_QUOTED}|[^\s"'-])(?:{_QUOTED}|[^\s"'])*+|-\S*+)"""
_SHELL = r"\b(?:ba|da|z)?sh\s+-[a-z]*c\s+"
_AS_ANOTHER = r"(?:sudo|env)(?:\s+-\S+(?:\s+(?!git\b)\w+(?=\s))?){0,4}"
_BEGINS = (
    rf"""(?:^|[;&|(){{}}\n`]|\b(?:then|do|else|time|{_AS_ANOTHER})\s|{_SHELL}["'])"""
    r"\s*(?:\w+=[^\s;&|]*\s+)*(?:[\w.~/-]{0,200}/)?"
)
# What a shell does not run: an escaped character, a comment, quoted text, unless it is the command line of `sh -c`.
_NOT_RUN = rf"""(?s)\\.|(?<!\S)#[^\n]*|({_SHELL})?("(?:[^"\\]|\\.)*+"|'[^']*+')"""
_ARGUMENTS = rf"""((?:{_QUOTED}|[^;&|\n"'])*+)"""
_COMMAND = rf"""{_BEGINS}git(?:{_OPTION})*\s+(commit|push)(?=[\s;&|)"']|$){_ARGUMENTS}"""
_WITHOUT_EFFECT = {
    "commit": r"\s(?:--dry-run|--porcelain|--short|--long|--help|-h)\b",
    "push": r"\s(?:--dry-run|-n|--help|-h)\b",
}

# The first line of a message on the command line, which `git commit -q` does not print.
_MESSAGE = r"""\bcommit\b[^;&|\n]*?\s(?:-[a-zA-Z]*m\s*|--message(?:=|\s+))("(?:[^"\\\n]|\\.)*|'[^'\n]*|[^\s"';&|]+)"""

_COMMITTED = r"(?m)^\[([^\]\n]{1,256}?)(?: \(root-commit\))? ([0-9a-f]{4,64})\] (.*)$"
_CHANGED = r"(\d+) files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?"
_DONE_NOTHING = (
    r"(?m)\b(?:nothing (?:added )?to commit|no changes added to commit)\b|^(?:fatal|error): |^ ! \[|^Aborting commit"
)
_PUSHED = r"(?m)^\s*(?:[+*=-]\s+)?(?:[0-9a-f]{4,64}\.{2,3}([0-9a-f]{4,64})|\[new branch\])\s+(\S+) -> (\S+)"


class GitAction:
    """A commit or a push. `type` is an observation type."""

    __slots__ = ("metadata", "type")

    def __init__(self, type: str, metadata: dict[str, Any]) -> None:
        self.type, self.metadata = type, metadata


def read(command: str, output: str, *, succeeded: bool) -> GitAction | None:
    """Return the commit or push that a command made, or None.

    Git's output shows that it succeeded. Without output, exit code 0 is enough, unless the command has a here-document
    (`<<`), in which `git commit` may be text, or succeeds whatever git did (`||`).
    """
    command = command[: limits.REDACTED_AT_ONCE]
    run = command if "<<" in command else re.sub(_NOT_RUN, _without_quoted, command)
    verbs = {verb for verb, rest in re.findall(_COMMAND, run) if _has_effect(verb, rest)}
    likely = succeeded and "<<" not in command and "||" not in command and not re.search(_DONE_NOTHING, output)
    pushed = _push(output) if "push" in verbs else {}
    if "commit" in verbs and ((committed := _commit(output)) or likely):
        if "subject" not in committed and (message := re.search(_MESSAGE, command)):
            committed |= {"subject": redact_start(_unquoted(message[1]), limits.MAX_LABEL_CHARS)}
        return GitAction("git_commit", _with_push(committed, pushed))
    return GitAction("git_push", pushed) if pushed or ("push" in verbs and likely) else None


def _without_quoted(match: re.Match[str]) -> str:
    shell, quoted = match.groups()
    if quoted is None:
        return " "
    if shell is None and not quoted.startswith('"$(git '):
        return "''"
    return f"{shell or ''}{quoted[0]}{re.sub(_NOT_RUN, _without_quoted, quoted[1:-1])}{quoted[-1]}"


def _has_effect(verb: str, arguments: str) -> bool:
    """Whether the arguments have no option that makes it a dry run. Quoted arguments, such as a commit message, are
    not searched."""
    return not re.search(_WITHOUT_EFFECT[verb], re.sub(_QUOTED, "''", arguments))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:]) if text[0] == '"' else text.removeprefix("'")


def _with_push(committed: dict[str, Any], pushed: dict[str, Any]) -> dict[str, Any]:
    """A commit that printed nothing (`-q`) gets its hash and branch from the push behind it."""
    if not pushed:
        return committed
    named = {} if "commit" in committed else {name: pushed[name] for name in ("commit", "branch") if name in pushed}
    return committed | named | {"pushed": True}


def _commit(output: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if commits := re.findall(_COMMITTED, output):
        branch, commit, subject = commits[-1]
        facts = {"commit": commit[:_HASH_CHARS], "subject": redact_start(subject, limits.MAX_LABEL_CHARS)}
        facts |= {} if branch == "detached HEAD" else {"branch": branch}
    if changed := re.findall(_CHANGED, output):
        names = ("files_changed", "insertions", "deletions")
        facts |= {name: int(count) for name, count in zip(names, changed[-1], strict=True) if count}
    return facts


def _push(output: str) -> dict[str, Any]:
    if pushes := re.findall(_PUSHED, output):
        commit, _, branch = pushes[-1]
        return {"branch": branch} | ({"commit": commit[:_HASH_CHARS]} if commit else {})
    return {"up_to_date": True} if "Everything up-to-date" in output else {}
