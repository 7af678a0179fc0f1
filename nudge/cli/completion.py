"""`nudge completion`: the script that teaches a shell to complete. It asks `nudge complete`, so it never goes stale."""

from __future__ import annotations

from nudge.cli import exits
from nudge.cli.console import Console

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from nudge.cli.parsing import Parser

EXAMPLES = (
    "source <(nudge completion bash)",
    "nudge completion zsh > ~/.zfunc/_nudge",
    "nudge completion fish > ~/.config/fish/completions/nudge.fish",
)

# A hint's name is a stranger's text, so it is quoted. Bash splits words at `:`, `=` and `@`: what it already has is cut
# off.
_BASH = r"""
_nudge() {
    local head="${COMP_LINE:0:COMP_POINT}" current candidate
    local -a words
    IFS=$' \t\n' read -ra words <<< "$head"
    [[ "$head" == *[[:space:]] ]] && words+=("")
    current="${words[${#words[@]}-1]}"
    COMPREPLY=()
    while IFS= read -r candidate; do
        printf -v candidate %q "${candidate%%$'\t'*}"
        COMPREPLY+=("${candidate#"${current%"${current##*[:=@]}"}"}")
    done < <("$1" complete -- "${words[@]:1}" 2>/dev/null)
}
complete -o default -F _nudge nudge nudge-mcp
"""

_ZSH = r"""
#compdef nudge nudge-mcp
_nudge() {
    local -a found
    local candidate described
    while IFS=$'\t' read -r candidate described; do
        found+=("${candidate//:/\\:}:$described")
    done < <("${(Q)words[1]}" complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    if (( $#found )); then _describe -t nudge nudge found; else _files; fi
}
if [ "$funcstack[1]" = "_nudge" ]; then _nudge "$@"; else compdef _nudge nudge nudge-mcp; fi
"""

_FISH = r"""
function __nudge_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    command $before[1] complete -- $before[2..-1] "$current" 2>/dev/null
end
for name in nudge nudge-mcp
    complete -c $name -f -a '(__nudge_complete)'
    complete -c $name -n '__fish_seen_subcommand_from import export scan' -F
end
"""

SCRIPTS = {"bash": _BASH.lstrip(), "zsh": _ZSH.lstrip(), "fish": _FISH.lstrip()}


def configure(parser: Parser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=tuple(SCRIPTS), help="bash, zsh or fish")


def run(arguments: Namespace) -> int:
    console = Console(as_json=arguments.json)
    script = SCRIPTS[arguments.shell]
    console.result({"script": script}, [script.rstrip("\n")])
    return exits.DONE
