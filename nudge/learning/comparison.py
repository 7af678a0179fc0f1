"""What two calls have in common, and in what they differ."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache

from nudge.core.programs import TARGET_RUNNERS
from nudge.learning.jobs import NOISE, is_looking, is_target
from nudge.learning.moved_paths import shared_length
from nudge.learning.shell import parse_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nudge.learning.outcome import Call

_CONTAINERS = frozenset(
    ("docker", "docker-compose", "podman", "kubectl", "vagrant", "nix", "nix-shell", "toolbox", "distrobox")
)
"""Programs that run another one behind their own options, without a word that ends these."""


def has_same_subcommand(failed: Call, worked: Call) -> bool:
    if failed.subcommand == worked.subcommand:
        return True
    return bool(failed.subcommand and worked.subcommand) and (
        failed.subcommand in worked.words and worked.subcommand not in failed.words
    )


def is_same_call(failed: Call, worked: Call) -> bool:
    """Whether both do the same with the same words, but for those that change only what is printed."""
    return failed.tool == worked.tool and _essential(failed.words) == _essential(worked.words)


def _essential(words: tuple[str, ...]) -> list[str]:
    return [word for word in words if word not in NOISE]


def launched_at(failed: Call, worked: Call, *, whole: bool = False) -> int:
    """Where the failing call's program begins among the words of the other, behind a launcher; 0 for nowhere."""
    if not failed.words or (failed.command.is_anonymous and len(failed.words) < 2):
        return 0
    head = failed.words if whole else failed.words[: naming_length(failed)]
    for at in range(1, len(worked.words) - len(head) + 1):
        if worked.words[at].removeprefix("./") != head[0] or worked.words[at : at + len(head)][1:] != head[1:]:
            continue
        rest, other = failed.words[len(head) :], worked.words[at + len(head) :]
        is_launcher = (
            len(worked.command.launcher) == at or worked.words[at - 1] == "--" or worked.words[0] in _CONTAINERS
        )
        if whole or is_launcher or (rest and set(rest) & set(other)) or (not rest and not other):
            return at
    return 0


def naming_length(call: Call) -> int:
    """How many words name the program; with its script, if an interpreter runs one."""
    return max(call.head_length, 2 if call.command.is_anonymous else 1)


def quoted_at(failed: Call, worked: Call) -> int:
    """Which word of a call is a text that runs the failing call: 2 for `nix-shell --run "make test"`; 0 for none."""
    head = failed.words[: naming_length(failed)]
    for at, word in enumerate(worked.words[1:], 1):
        if " " in word and any(words[: len(head)] == head for words in _commands_in(word)):
            return at
    return 0


@lru_cache(256)
def _commands_in(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple((command.program.removeprefix("./"), *map(str, command.words[1:])) for command in parse_commands(text))


def is_same_script(failed: Call, worked: Call) -> bool:
    """Whether both run one script of Python, as a file or as a module: `python -m tools.x` for `python tools/x.py`."""
    one, other = _module_of(failed), _module_of(worked)
    return one == other != "" and failed.command.is_python_module != worked.command.is_python_module


def _module_of(call: Call) -> str:
    if call.command.is_python_module:
        return call.tool
    scripts = [word for word in call.words[1:] if word.endswith(".py")] if call.tool == "python" else []
    return scripts[0].removeprefix("./").removesuffix(".py").replace("/", ".") if scripts else ""


def has_same_arguments(failed: Call, worked: Call) -> bool:
    """Whether another program was run with the words behind the failing one."""
    rest, other = _essential(failed.words[len(failed.command.launcher) + 1 :]), _essential(worked.words[1:])
    if not rest or not any(is_target(word) or not word.startswith("-") for word in rest):
        return False
    return other[-len(rest) :] == rest and worked.words != failed.words and not is_looking(worked.command)


def is_named_alike(failed: Call, worked: Call) -> bool:
    """Whether a target is named by words of the failing call: `task load:smoke` for `k6 run load/smoke.js`."""
    if worked.tool not in TARGET_RUNNERS or failed.tool == worked.tool:
        return False
    target = {part for part in re.split(r"[:._/-]", worked.subcommand) if len(part) > 2}
    return target != set() and target <= {part for word in failed.words for part in re.split(r"[:._/-]", word)}


def has_same_targets(failed: Call, worked: Call) -> bool:
    """Whether another program works on all that the failing one was to work on."""
    targets = targets_of(failed)
    return bool(targets) and set(targets) <= set(worked.words) and not is_looking(worked.command)


def targets_of(call: Call) -> list[str]:
    return [word for word in call.words[call.head_length :] if word[:1] not in ("-", "") and "=" not in word]


def differences(failed: Call, worked: Call) -> tuple[list[str], list[tuple[int, str]]]:
    """The words that were removed, and those that were inserted with their place in the call that worked."""
    old, new = list(failed.words[1:]), list(worked.words[1:])
    removed: list[str] = []
    inserted: list[tuple[int, str]] = []
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("delete", "replace"):
            removed += old[i:j]
        if tag in ("insert", "replace"):
            inserted += [(at + 1, new[at]) for at in range(k, m)]
    return removed, [(at, word) for at, word in inserted if word not in removed]


def is_misspelling(typed: str, meant: str) -> bool:
    """Whether a word is another one with a slip of the keyboard: letters swapped, or one too many, too few or wrong
    within it. What differs at the end, or in a number, is another thing: `mvnw`, `python3`."""
    if typed == meant or len(typed) < 3 or any(map(str.isdigit, {*typed} ^ {*meant})):
        return False
    if sorted(typed) == sorted(meant):
        return True
    same = shared_length(typed, meant) + shared_length(typed[::-1], meant[::-1])
    shorter, longer = sorted((len(typed), len(meant)))
    return longer - shorter <= 1 and shorter >= 5 and typed[-1] == meant[-1] and same >= longer - 1


def changed_values(failed: Call, worked: Call) -> list[int]:
    """Where the call that worked has another value for an option that both have, if they differ in nothing else. A text
    of several words (a query, code) that was written anew is the session's own."""
    old, new = failed.words, worked.words
    if len(old) != len(new):
        return []
    changed = [at for at in range(len(new)) if old[at] != new[at]]
    is_value = [at > 1 and new[at - 1].startswith("-") and not new[at].startswith("-") for at in changed]
    is_text = any(" " in old[at] and " " in new[at] for at in changed)
    return changed if len(changed) == 1 and all(is_value) and not is_text else []
