"""What the name of a file ends in, so that one is recognized in a command, a note or a prompt: `seed.py`.

A list, since `shop.internal`, `3.7.2` and `re.compile` have dots as well.
"""

from __future__ import annotations

SUFFIXES = (
    "asm|astro|bat|bib|bzl|c|cc|cfg|cjs|clj|cljc|cljs|cmake|conf|cpp|cr|cs|css|csv|cts|cu|cue|cxx|dart|edn|eex|el|elm"
    "|erl|ex|exs|f90|fish|fs|gd|go|gradle|graphql|groovy|h|hcl|heex|hh|hpp|hrl|hs|html|hxx|ini|ino|ipynb|java|jl|jq|js"
    "|json|jsonc|jsonnet|jsx|kt|kts|less|lock|lua|m|md|mjs|mk|ml|mli|mm|mod|mts|nim|nix|nu|php|pl|pm|pony|prisma|proto"
    "|ps1|pug|py|pyi|pyx|qml|R|Rmd|rake|rb|rego|rkt|rs|rst|sass|sbt|sc|scala|scss|sh|slim|sol|sql|star|sv|svelte|svg"
    "|swift|tcl|tex|tf|tfvars|toml|ts|tscn|tsv|tsx|txt|typ|v|vb|vhd|vue|wat|wgsl|xml|xs|yaml|yml|zig|zsh"
)
"""For a regular expression."""
