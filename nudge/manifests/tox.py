"""tox environments -> `tox -e lint`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nudge.manifests.ini_text import Section, parse_ini
from nudge.manifests.model import Claim, Names, Rank, best_names
from nudge.manifests.shell import argument, is_plain_word
from nudge.manifests.toml_text import header_line, key_line, parse_toml, table
from nudge.manifests.tree import Place

_ENVIRONMENTS: Names = {
    "build": ("build", "package", "pkg"),
    "test": ("py", "py3", "test", "tests", "unit", "unittest", "pytest"),
    "lint": ("lint", "linting", "flake8", "ruff", "qa", "style", "pre-commit", "codestyle", "pep8"),
    "format": ("fmt", "format", "black"),
}
_ONLY_CHECKS = re.compile(r"--(?:check|diff)\b")
_SEPARATORS = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True)
class _Tox:
    """`environments` maps each plainly named one to its line and the commands it runs."""

    file: str
    line: int
    environments: Mapping[str, tuple[int, str]]


def read(place: Place, package: str | None, installed: str | None) -> Iterator[Claim]:
    """`installed`: how the project's own tox is run, where it has one."""
    tox = _find(place)
    if tox is None:
        return
    program = installed or (f"tox -c {argument(place.rel)}" if place.rel else "tox")
    chosen = dict(best_names(_typed(tox), _ENVIRONMENTS))
    for key, name in chosen.items():
        yield Claim(
            key,
            f"{program} -e {name}",
            Rank.SCRIPT,
            place.rel,
            place.path(tox.file),
            tox.environments[name][0],
            package,
        )
    if "test" not in chosen:
        yield Claim("test", program, Rank.SCRIPT, place.rel, place.path(tox.file), tox.line, package)


def _typed(tox: _Tox) -> Iterator[str]:
    """An environment that only checks the formatting is not how one formats."""
    for name, (_, commands) in tox.environments.items():
        if is_plain_word(name) and not (name in _ENVIRONMENTS["format"] and _ONLY_CHECKS.search(commands)):
            yield name


def _find(place: Place) -> _Tox | None:
    sections = place.parsed("tox.ini", parse_ini)
    if sections and not sections.keys().isdisjoint(("tox", "testenv")):
        return _from_ini("tox.ini", sections, 0)
    native = place.parsed("tox.toml", parse_toml)
    if native:
        return _from_toml("tox.toml", place.text("tox.toml") or "", native)
    return _from_pyproject(place)


def _from_pyproject(place: Place) -> _Tox | None:
    config = table(place.parsed("pyproject.toml", parse_toml), "tool", "tox")
    if not config:
        return None
    text = place.text("pyproject.toml") or ""
    embedded = config.get("legacy_tox_ini")
    if isinstance(embedded, str):
        return _from_ini("pyproject.toml", parse_ini(embedded), key_line(text, "legacy_tox_ini", "tool", "tox"))
    return _from_toml("pyproject.toml", text, config, "tool", "tox")


def _from_ini(file: str, sections: Mapping[str, Section], offset: int) -> _Tox:
    top = sections.get("tox") or Section(1)
    listed = _SEPARATORS.split(top.get("envlist") or top.get("env_list"))
    environments = {re.split("[<>=]", name)[0]: (top.line + offset, "") for name in listed if "{" not in name}
    for name, section in sections.items():
        if name.startswith("testenv:"):
            environments[name.removeprefix("testenv:")] = (section.line + offset, section.get("commands"))
    return _Tox(file, top.line + offset, environments)


def _from_toml(file: str, text: str, config: Mapping[str, Any], *path: str) -> _Tox:
    line = header_line(text, *path) if path else 1
    listed = config.get("env_list")
    environments = {name: (line, "") for name in listed if isinstance(name, str)} if isinstance(listed, list) else {}
    for name, own in table(config, "env").items():
        commands = str(own.get("commands", "")) if isinstance(own, dict) else ""
        environments[name] = (header_line(text, *path, "env", name), commands)
    return _Tox(file, line, environments)
