"""tox environments (`tox -e lint`) and nox sessions (`nox -s tests`). A noxfile is parsed, never imported."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nudge.manifests.commands import Claim, Names, Rank, is_plain_word, quote_path, select_targets
from nudge.manifests.formats import Section, header_line, key_line, parse_ini, parse_toml, table
from nudge.manifests.tree import Directory

_TOX_ENVIRONMENTS: Names = {
    "build": ("build", "package", "pkg"),
    "test": ("py", "py3", "test", "tests", "unit", "unittest", "pytest"),
    "lint": ("lint", "linting", "flake8", "ruff", "qa", "style", "pre-commit", "codestyle", "pep8"),
    "format": ("fmt", "format", "black"),
}
_CHECK_OPTION = re.compile(r"--(?:check|diff)\b")
_ENVLIST_SEPARATOR = re.compile(r"[\s,]+")

_NOXFILE = "noxfile.py"
_NOX_SESSIONS: Names = {
    "build": ("build", "dist"),
    "test": ("tests", "test", "unit", "unit_tests", "pytest"),
    "run": ("run", "serve", "dev"),
    "lint": ("lint", "linting", "flake8", "ruff", "pre-commit"),
    "format": ("format", "fmt", "black", "blacken"),
}


@dataclass(frozen=True, slots=True)
class _ToxConfig:
    """A tox configuration; each environment with its line and the commands that it runs."""

    file: str
    line: int
    environments: Mapping[str, tuple[int, str]]


def read_tox(directory: Directory, package: str | None, program: str | None) -> Iterator[Claim]:
    """Yield the environments' commands. `program` is the project's own tox, if it depends on one."""
    config = _tox_config(directory)
    if config is None:
        return
    path = directory.path(config.file)
    program = program or (f"tox -c {quote_path(directory.rel)}" if directory.rel else "tox")
    selected = dict(select_targets(_usable_environments(config), _TOX_ENVIRONMENTS))
    for job, name in selected.items():
        line, _ = config.environments[name]
        yield Claim(job, f"{program} -e {name}", Rank.SCRIPT, directory.rel, path, line, package)
    if "test" not in selected:
        yield Claim("test", program, Rank.SCRIPT, directory.rel, path, config.line, package)


def _usable_environments(config: _ToxConfig) -> Iterator[str]:
    for name, (_, commands) in config.environments.items():
        # An environment that only checks the formatting is not the command that formats.
        only_checks = name in _TOX_ENVIRONMENTS["format"] and _CHECK_OPTION.search(commands)
        if is_plain_word(name) and not only_checks:
            yield name


def _tox_config(directory: Directory) -> _ToxConfig | None:
    sections = directory.parse("tox.ini", parse_ini)
    if sections and not sections.keys().isdisjoint(("tox", "testenv")):
        return _tox_from_ini("tox.ini", sections, 0)
    native = directory.parse("tox.toml", parse_toml)
    if native:
        return _tox_from_toml("tox.toml", directory.read("tox.toml") or "", native)
    return _tox_from_pyproject(directory)


def _tox_from_pyproject(directory: Directory) -> _ToxConfig | None:
    config = table(directory.parse("pyproject.toml", parse_toml), "tool", "tox")
    if not config:
        return None
    text = directory.read("pyproject.toml") or ""
    embedded = config.get("legacy_tox_ini")
    if isinstance(embedded, str):
        return _tox_from_ini("pyproject.toml", parse_ini(embedded), key_line(text, "legacy_tox_ini", "tool", "tox"))
    return _tox_from_toml("pyproject.toml", text, config, "tool", "tox")


def _tox_from_ini(file: str, sections: Mapping[str, Section], offset: int) -> _ToxConfig:
    top = sections.get("tox") or Section(1)
    names = _ENVLIST_SEPARATOR.split(top.get("envlist") or top.get("env_list"))
    environments = {re.split("[<>=]", name)[0]: (top.line + offset, "") for name in names if "{" not in name}
    for name, section in sections.items():
        if name.startswith("testenv:"):
            environments[name.removeprefix("testenv:")] = (section.line + offset, section.get("commands"))
    return _ToxConfig(file, top.line + offset, environments)


def _tox_from_toml(file: str, text: str, config: Mapping[str, Any], *path: str) -> _ToxConfig:
    line = header_line(text, *path) if path else 1
    names = config.get("env_list")
    environments = {name: (line, "") for name in names if isinstance(name, str)} if isinstance(names, list) else {}
    for name, settings in table(config, "env").items():
        commands = str(settings.get("commands", "")) if isinstance(settings, dict) else ""
        environments[name] = (header_line(text, *path, "env", name), commands)
    return _ToxConfig(file, line, environments)


def read_noxfile(directory: Directory, package: str | None, program: str | None) -> Iterator[Claim]:
    """Yield the sessions' commands. `program` is the project's own nox, if it depends on one."""
    sessions = directory.parse(_NOXFILE, nox_sessions) or {}
    path = directory.path(_NOXFILE)
    program = program or (f"nox -f {quote_path(path)}" if directory.rel else "nox")
    for job, name in select_targets(sessions, _NOX_SESSIONS):
        yield Claim(job, f"{program} -s {name}", Rank.SCRIPT, directory.rel, path, sessions[name], package)


def nox_sessions(source: str) -> dict[str, int]:
    """Return the name and line of each function that `@nox.session` decorates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in untrusted source
        module = ast.parse(source)
    functions = (node for node in module.body if isinstance(node, ast.FunctionDef))
    sessions = ((_session_name(node), node.lineno) for node in functions)
    return {name: line for name, line in sessions if name is not None and is_plain_word(name)}


def _session_name(function: ast.FunctionDef) -> str | None:
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        if _is_session_decorator(call.func if call else decorator):
            return _name_argument(call) or function.name
    return None


def _is_session_decorator(decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Attribute):
        return decorator.attr == "session"
    return isinstance(decorator, ast.Name) and decorator.id in ("session", "nox_session")


def _name_argument(call: ast.Call | None) -> str | None:
    for keyword in call.keywords if call else ():
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
            return keyword.value.value
    return None
