"""The patterns of words that the signs of failures are made of: what is missing, and how that is said."""

from __future__ import annotations

IS_ABSENT = (
    r"(?:(?:is|was|are|were|could|can|has|have)? ?(?:not|n't|no longer|never) (?:yet )?(?:been )?(?:be )?"
    r"(?:found|exist|exists|available|installed|present|resolved|loaded|located|defined|known|fetched|checked out)"
    r"|does(?: not|n't) exist|doesn't exist|do not exist|is missing|missing|is unknown|not found|unavailable)"
)
CANNOT_FIND = (
    r"(?:(?:can ?not|can't|could not|couldn't|unable to|failed to|did not|didn't|does not|no such) ?"
    r"(?:be )?(?:find|found|locate|resolve|load|open|read|import|contain|access|satisfy|look up)?)"
)
CODE_NOUN = (
    r"(?:modules?|packages?|gems?|crates?|librar(?:y|ies)|plugins?|providers?|extensions?|dependenc(?:y|ies)|"
    r"collections?"
    r"|units?|components?|namespaces?|bundles?|roles?|add-?ons?|themes?|formula|bindings?|headers?|import|artifacts?"
    r"|distributions?|rockspecs?|toolkits?|kernels?|apps?)"
)
MANIFEST = (
    r"(?:[\w./-]*(?:\.toml|\.json|\.ya?ml|\.xml|\.gradle|\.mod|\.exs|\.edn|\.clj|\.cabal|\.opam|\.nimble|\.csproj|"
    r"\.sln"
    r"|\.gemspec|\.podspec|\.rockspec|\.hcl|\.tf|\.cfg|\.ini|\.zig|\.swift|\.sbt|\.lisp|\.asd|\.core)"
    r"|[\w-]*(?:Gemfile|Makefile|makefile|[Jj]ustfile|Taskfile|Rakefile|Podfile|Procfile|Vagrantfile|Tiltfile"
    r"|Earthfile|Snakefile|Jenkinsfile|Dockerfile|Containerfile|Fastfile|Brewfile|Caddyfile|CMakeLists\.txt"
    r"|dune-project|manage\.py|WORKSPACE|DESCRIPTION|SConstruct|wscript))"
)
PLACE_NOUN = (
    r"(?:project|workspace|repository|repo|module|package|site|application|app|environment|checkout|root|tree|"
    r"chart|stack"
    r"|worktree|monorepo|crate|theme|directory|folder)"
)
SERVER_NOUN = (
    r"(?:server|daemon|broker|database|socket|service|agent|cluster|emulator|simulator|device|node|nodes|host|backend"
    r"|instance|container|machine|vm|registry|scheduler|engine|proxy|queue|peer|hub|gateway|endpoint|db|api)"
)
SECRET_NOUN = (
    r"(?:credentials?|tokens?|api[ -]?keys?|session|login|log-?in|authentication|authorization|ticket|licen[cs]e)"
)
NAME = r"[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9]"
FILE_PATH = r"(?:\w+://)?[\w.@+~-]*/[\w./@+~-]+"
