"""Where a hint is for."""

from __future__ import annotations

from nudge import context
from nudge.cli.parsing import OS_NAMES, Usage, globs, items, pair
from nudge.paths import expanded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from nudge.cli.parsing import Parser


_FLAGS = (
    ("--scope-cwd-glob", globs, "GLOB", "directories, such as '**/http-proxy*'"),
    ("--scope-repo", items, "REPO", "git:org/repo, a clone URL, or . for this one"),
    ("--scope-branch", items, "BRANCH", "branches; globs such as 'hotfix/*' too"),
    ("--scope-os", OS_NAMES, "OS", "linux, darwin, windows"),
    ("--scope-env", items, "NAME", "environment variables that must be set"),
)


def add(parser: Parser, everywhere: str) -> None:
    group = parser.add_argument_group("scope (each takes several, with commas or repeated)")
    for flag, parse, metavar, help in _FLAGS:
        group.add_argument(flag, type=parse, action="extend", default=[], metavar=metavar, help=help)
    group.add_argument(
        "--scope-env-match",
        type=pair,
        action="append",
        default=[],
        metavar="NAME=VALUE[,VALUE]",
        help="allowed values of one",
    )
    group.add_argument("--global", action="store_true", dest="everywhere", help=everywhere)


def read(arguments: Namespace) -> dict[str, Any] | None:
    """The scope that the flags name; {} for --global; None when nothing was said."""
    scope = {name: value for name, value in _fields(arguments).items() if value}
    if scope and arguments.everywhere:
        raise Usage("--global and --scope-... exclude each other", "leave one out")
    return scope or ({} if arguments.everywhere else None)


def _fields(arguments: Namespace) -> dict[str, Any]:
    repos = [_this_repo() if repo == "." else repo for repo in arguments.scope_repo]
    return {
        "cwd_glob": [expanded(pattern) for pattern in arguments.scope_cwd_glob],
        "repo": repos[0] if len(repos) == 1 else repos,
        "branch": arguments.scope_branch,
        "os": arguments.scope_os,
        "env_required": arguments.scope_env,
        "env_match": _env_match(arguments.scope_env_match),
    }


def _env_match(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    """A name that is given twice allows the values of both."""
    allowed: dict[str, list[str]] = {}
    for name, values in pairs:
        allowed.setdefault(name, []).extend(values.split(","))
    return allowed


def _this_repo() -> str:
    repo = context.resolve().repo
    if repo is None:
        raise Usage("--scope-repo . needs a git repository, and there is none here", "cd into one, or name it")
    return repo
