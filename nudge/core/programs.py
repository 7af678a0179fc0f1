"""Which programs run tests, lint, format, build, install packages, or run another program.

Data only, and each fact once. A module that needs a different set builds it from these and says why.
"""

from __future__ import annotations

# Checks: the arguments of these select what is checked.

TEST_RUNNERS = frozenset(
    (
        *("pytest", "py.test", "unittest", "tox", "nox"),
        *("jest", "vitest", "mocha", "borp"),
        *("rspec", "phpunit", "ctest"),
    )
)
LINTERS = frozenset(
    (
        *("ruff", "flake8", "pylint", "mypy", "pyright"),
        *("eslint", "tsc"),
        *("golangci-lint", "rubocop"),
    )
)
LINT_TARGETS = frozenset(("lint", "check", "typecheck", "clippy", "vet"))
"""Targets, scripts and subcommands that lint: `make lint`, `cargo clippy`. `make check` may also run the tests."""
FORMATTERS = frozenset(("black", "isort", "prettier", "gofmt", "clang-format"))
"""Programs that do nothing but format; `ruff format` and `cargo fmt` are subcommands."""

# Builds and tasks

NODE_PACKAGE_MANAGERS = frozenset(("npm", "pnpm", "yarn", "bun"))
"""They run the scripts of a package.json."""
TARGET_RUNNERS = NODE_PACKAGE_MANAGERS | {"make", "gmake", "just", "task", "rake", "composer"}
"""Their argument is a name that a file of the repo defines: `make test`, `npm run build`."""
LANGUAGE_TOOLS = frozenset(("cargo", "go", "dotnet", "mix"))
"""Their argument is a job that the tool defines: `cargo test`."""
JVM_BUILD_TOOLS = frozenset(("mvn", "gradle"))
JVM_WRAPPERS = frozenset(("mvnw", "gradlew"))
"""Scripts in a repo that download and run a build tool: `./gradlew test`."""

# Programs that run another program

ENVIRONMENT_RUNNERS = frozenset(("uv", "poetry", "pdm", "hatch", "pipenv", "rye", "pixi"))
"""With `run`, they run a program in the project's Python environment."""
NODE_LAUNCHERS = frozenset(("npx", "pnpx", "bunx"))
SHELLS = frozenset(("bash", "sh", "zsh"))
INTERPRETERS = SHELLS | {"node", "perl", "ruby"}
"""They run a script; Python is not among them, since its program has many names."""

JOB_PROGRAMS = frozenset(
    (
        *(*TEST_RUNNERS, *LINTERS, *FORMATTERS),
        *(*TARGET_RUNNERS, *LANGUAGE_TOOLS, *JVM_BUILD_TOOLS, *JVM_WRAPPERS, *NODE_LAUNCHERS),
        *("cmake", "ninja", "bazel", "deno", "bundle"),
    )
)
"""Programs that build, test, check or run something in a repo."""

# Packages

INSTALL_VERBS = {
    **dict.fromkeys(NODE_PACKAGE_MANAGERS, frozenset(("install", "ci", "i", "add"))),
    **dict.fromkeys(("pip", "apt", "apt-get", "conda", "brew", "cargo", "gem", "composer"), frozenset(("install",))),
    "poetry": frozenset(("install", "add")),
    "pdm": frozenset(("install", "sync", "add")),
    "bundle": frozenset(("install",)),
    "uv": frozenset(("sync", "install", "add")),  # `uv pip install`
    "mix": frozenset(("deps.get",)),
}
"""The arguments with which a program installs packages."""
