"""Shell completion with click: the scripts for the shells, and candidates that a running server knows.

Pressing Tab never starts a server, never prints an error and never fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from nudge.cli import output, plain
from nudge.cli.output import EXIT_OK
from nudge.cli.plain import Invocation
from nudge.core import context
from nudge.core.text import is_all_visible

if TYPE_CHECKING:
    from nudge.process.client import Client

COMPLETE_VARIABLE = "_NUDGE_COMPLETE"
_SESSIONS_OFFERED = 20
_NOTES_OFFERED = 50

# The name of a hint is untrusted text: bash must insert it quoted. Bash also splits words at `:`, `=` and `@`, so the
# part before the last of them is cut off. The whole line is passed on, since COMP_WORDS is split at those too.
_BASH = r"""
_nudge_completion() {
    local head="${COMP_LINE:0:COMP_POINT}" current candidate
    current="${head##*[[:space:]]}"
    COMPREPLY=()
    while IFS= read -r candidate; do
        [[ "$candidate" == plain,* ]] || continue
        printf -v candidate %q "${candidate#plain,}"
        COMPREPLY+=("${candidate#"${current%"${current##*[:=@]}"}"}")
    done < <(COMP_WORDS="$head" _NUDGE_COMPLETE=bash_complete "$1" 2>/dev/null)
}
complete -o default -F _nudge_completion nudge nudge-mcp
"""

_ZSH = r"""
#compdef nudge nudge-mcp
_nudge_completion() {
    local -a plain described
    local type key help
    while IFS= read -r type && IFS= read -r key && IFS= read -r help; do
        [[ "$type" == plain ]] || continue
        if [[ "$help" == _ ]]; then plain+=("$key"); else described+=("$key:$help"); fi
    done < <(COMP_WORDS="${words[1,CURRENT]}" COMP_CWORD=$((CURRENT-1)) _NUDGE_COMPLETE=zsh_complete \
        "${(Q)words[1]}" 2>/dev/null)
    if (( ! $#plain && ! $#described )); then _files; return; fi
    if (( $#described )); then _describe -V nudge described; fi
    if (( $#plain )); then compadd -V nudge -a plain; fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _nudge_completion "$@"
else
    compdef _nudge_completion nudge nudge-mcp
fi
"""

_FISH = r"""
function __nudge_complete
    set -l before (commandline -opc)
    set -l response (COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -ct) _NUDGE_COMPLETE=fish_complete \
        command $before[1] 2>/dev/null)
    for completion in $response
        set -l item (string split -m 1 "," -- $completion)
        switch $item[1]
            case plain
                echo $item[2]
            case dir
                __fish_complete_directories (commandline -ct)
            case file
                __fish_complete_path (commandline -ct)
        end
    end
end
for name in nudge nudge-mcp
    complete --command $name --no-files --arguments '(__nudge_complete)'
end
"""


@add_completion_class
class _Bash(BashComplete):
    source_template = _BASH.lstrip().replace("%", "%%")

    def source(self) -> str:
        """Return the script without the check of the bash version that click makes: this script works with 3.2."""
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        return words[1:], incomplete


@add_completion_class
class _Zsh(ZshComplete):
    source_template = _ZSH.lstrip().replace("%", "%%")


@add_completion_class
class _Fish(FishComplete):
    source_template = _FISH.lstrip().replace("%", "%%")


_SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def script(shell: str) -> str:
    """Return the script that a shell sources."""
    return _SHELLS[shell](click.Command("nudge"), {}, "nudge", COMPLETE_VARIABLE).source()


def print_candidates(root: click.Group, invocation: Invocation) -> int:
    """Print the candidates for the command line that the shell describes in the environment. Never fails."""
    shell, _, instruction = os.environ[COMPLETE_VARIABLE].partition("_")
    if shell not in _SHELLS or instruction != "complete":
        return EXIT_OK
    try:
        lines = _SHELLS[shell](root, {"obj": invocation}, "nudge", COMPLETE_VARIABLE).complete()
        sys.stdout.write(f"{lines}\n" if lines else "")
        sys.stdout.flush()
    except Exception:  # an error message would be printed into the command line that is being typed
        return EXIT_OK
    return EXIT_OK


# Candidates that a running server knows

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]
Names = Iterable[tuple[str, str | None]]


def _ask_server(names: Callable[[Client, click.Context, str], Names]) -> Complete:
    """Return the completion for a function that asks a running server for names and a description of each. It gets the
    word that is being typed, in case it decides what to ask for; what does not begin with it is left out here."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        try:
            client = ctx.obj.observer(plain.context_params())
            if client.endpoint() is None:
                return []
            unique = dict(names(client, ctx, incomplete))
        except Exception:  # no server, an older one, an unexpected answer: nothing to offer
            return []
        return [
            CompletionItem(name, help=help)
            for name, help in unique.items()
            if name.startswith(incomplete) and is_all_visible(name)
        ]

    return complete


def _component_names(client: Client, *_: object) -> Names:
    return ((entry["name"], None) for entry in client.call("nudge.list_components", {}, start=False)["components"])


def _key_names(client: Client, ctx: click.Context, _: str) -> Names:
    return ((key, None) for key in _keys(client, ctx.params["component"]))


def _keys(client: Client, component: str) -> Iterator[str]:
    hints = client.call("nudge.list_components", {"component": component}, start=False)["hints"]
    return (entry["key"] for entry in hints)


def _hint_names(client: Client, ctx: click.Context, incomplete: str) -> Names:
    """Yield components; behind a slash also the hints of the component before it: `webapp/test`."""
    yield from _component_names(client, ctx, incomplete)
    yield from _slash_names(client, incomplete)


def _slash_names(client: Client, incomplete: str) -> Names:
    component, slash, _ = incomplete.rpartition("/")
    if slash and component:
        yield from ((f"{component}/{key}", None) for key in _keys(client, component))


def _explained_names(client: Client, ctx: click.Context, incomplete: str) -> Names:
    return _slash_names(client, incomplete) if "/" in incomplete else _note_ids(client, ctx, incomplete)


def _session_ids(client: Client, *_: object) -> Names:
    yield "last", "the last session"
    for session in client.call("nudge.sessions", {"project": None, "limit": _SESSIONS_OFFERED}, start=False):
        yield session["session_id"][:8], _describe(session)


def _describe(session: dict[str, Any]) -> str | None:
    intent = str((session.get("summary") or {}).get("intent") or "")
    return _short(f"{session.get('project') or ''} {intent}")


def _project_names(client: Client, *_: object) -> Names:
    sessions = client.call("nudge.sessions", {"project": None, "limit": 200}, start=False)
    return ((session["project"], None) for session in sessions if session.get("project"))


def _type_names(client: Client, *_: object) -> Names:
    status = client.status() or {}
    return ((name, None) for name in (status.get("history") or {}).get("retention", {}).get("days", {}))


def _namespace_names(client: Client, *_: object) -> Names:
    namespaces = client.call("nudge.memory_namespaces", {}, start=False)["namespaces"]
    return ((entry["namespace"], output.count(entry["count"], "note")) for entry in namespaces)


def _note_ids(client: Client, *_: object) -> Names:
    return _titles(client.call("nudge.memory_list", {"limit": _NOTES_OFFERED}, start=False))


def _archived_ids(client: Client, *_: object) -> Names:
    return _titles(client.call("nudge.memory_archive_list", {"limit": _NOTES_OFFERED}, start=False))


def _titles(result: dict[str, Any]) -> Names:
    return ((f"m{note['id']}", _short(note["title"])) for note in result["memories"])


def _short(text: str) -> str | None:
    """Return a description that fits beside a name; None for text that a terminal cannot show."""
    line = " ".join(text.split())[:60]
    return line if line and is_all_visible(line) else None


def _attempts(client: Client, **filters: Any) -> Iterator[dict[str, Any]]:
    """Return attempts of all projects, the open ones first."""
    wanted = {"project": None, **filters, "limit": _NOTES_OFFERED}
    result = client.call("nudge.list_ghap_entries", wanted, start=False)
    return iter(result["entries"])


def _goals(attempts: Iterable[dict[str, Any]]) -> Names:
    return ((f"m{attempt['id']}", _short(attempt["goal"])) for attempt in attempts)


def _attempt_ids(client: Client, *_: object) -> Names:
    return _goals(_attempts(client))


def _open_ids(client: Client, *_: object) -> Names:
    return _goals(_attempts(client, outcome="open"))


def _orphan_ids(client: Client, *_: object) -> Names:
    return _goals(attempt for attempt in _attempts(client, outcome="open") if attempt.get("is_orphan"))


def _chosen_project(ctx: click.Context) -> dict[str, Any]:
    """Return the project that --repo names, else the current one, as a parameter; None stands for all."""
    if ctx.params.get("all_projects"):
        return {"project": None}
    named = ctx.params.get("project")
    return {"project": context.resolve().project if named is None else named.casefold()}


def _told_names(client: Client, ctx: click.Context, _: str) -> Names:
    lines = client.call("nudge.told", _chosen_project(ctx), start=False)["lines"]
    return ((line["name"], _short(line["text"])) for line in lines)


def _banned_names(client: Client, ctx: click.Context, _: str) -> Names:
    return ((name, None) for name in client.call("nudge.told", _chosen_project(ctx), start=False)["never"])


def _fact_subjects(client: Client, ctx: click.Context, _: str) -> Names:
    facts = client.call("nudge.learned", _chosen_project(ctx), start=False)["facts"]
    return ((fact["subject"], fact["answer"] and _short(fact["answer"])) for fact in facts)


components, keys = _ask_server(_component_names), _ask_server(_key_names)
sessions, projects, observation_types = _ask_server(_session_ids), _ask_server(_project_names), _ask_server(_type_names)
namespaces, note_ids, archived_ids = _ask_server(_namespace_names), _ask_server(_note_ids), _ask_server(_archived_ids)
hints, explained = _ask_server(_hint_names), _ask_server(_explained_names)
attempts, open_attempts, orphans = _ask_server(_attempt_ids), _ask_server(_open_ids), _ask_server(_orphan_ids)
told, banned, facts = _ask_server(_told_names), _ask_server(_banned_names), _ask_server(_fact_subjects)
