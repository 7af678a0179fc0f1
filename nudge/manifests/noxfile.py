"""noxfile.py sessions -> `nox -s tests`. The file is parsed, never imported."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from nudge.manifests.model import Claim, Names, Rank, best_names
from nudge.manifests.shell import argument, is_plain_word
from nudge.manifests.tree import Place

_FILE = "noxfile.py"
_SESSIONS: Names = {
    "build": ("build", "dist"),
    "test": ("tests", "test", "unit", "unit_tests", "pytest"),
    "run": ("run", "serve", "dev"),
    "lint": ("lint", "linting", "flake8", "ruff", "pre-commit"),
    "format": ("format", "fmt", "black", "blacken"),
}


def read(place: Place, package: str | None, installed: str | None) -> Iterator[Claim]:
    """`installed`: how the project's own nox is run, where it has one."""
    defined = place.parsed(_FILE, sessions) or {}
    program = installed or (f"nox -f {argument(place.path(_FILE))}" if place.rel else "nox")
    for key, name in best_names(defined, _SESSIONS):
        yield Claim(key, f"{program} -s {name}", Rank.SCRIPT, place.rel, place.path(_FILE), defined[name], package)


def sessions(source: str) -> dict[str, int]:
    """Each function that `@nox.session` makes a session, under the name that it is called by."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the stranger's string escapes
        module = ast.parse(source)
    functions = (node for node in module.body if isinstance(node, ast.FunctionDef))
    named = ((_session_name(node), node.lineno) for node in functions)
    return {name: line for name, line in named if name is not None and is_plain_word(name)}


def _session_name(function: ast.FunctionDef) -> str | None:
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        if _is_session(call.func if call else decorator):
            return _given_name(call) or function.name
    return None


def _is_session(decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Attribute):
        return decorator.attr == "session"
    return isinstance(decorator, ast.Name) and decorator.id in ("session", "nox_session")


def _given_name(call: ast.Call | None) -> str | None:
    for keyword in call.keywords if call else ():
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
            return keyword.value.value
    return None
