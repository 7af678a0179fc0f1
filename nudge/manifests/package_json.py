"""package.json scripts, typed with the package manager that the repo's lock file names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from nudge.manifests.model import Claim, Names, Rank, best_names
from nudge.manifests.shell import argument, within
from nudge.manifests.tree import Place, line_at

_FILE = "package.json"
_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
# `dev` before `start`: where there are both, `start` serves what was built for production.
_SCRIPTS: Names = {
    "build": ("build", "compile", "dist"),
    "test": ("test", "tests", "test:unit", "test-unit", "unit"),
    "run": ("dev", "start", "serve", "develop", "start:dev", "preview"),
    "lint": ("lint", "eslint", "lint:js", "lint:check"),
    "format": ("format", "fmt", "prettier", "format:write", "format:fix", "prettier:write"),
}
_PLACEHOLDER = "no test specified"  # what `npm init` writes
_ONLY_CHECKS = re.compile(r"\s(?:--check|-c|--list-different|-l)(?:\s|$)")


def package_name(place: Place) -> str | None:
    name = _manifest(place).get("name")
    return name.rpartition("/")[2] if isinstance(name, str) else None


def read(place: Place) -> Iterator[Claim]:
    scripts = _scripts(_manifest(place))
    if not scripts:
        return
    text, manager, package = place.text(_FILE) or "", package_manager(place), package_name(place)
    for key, name in best_names(scripts, _SCRIPTS):
        yield Claim(
            key, _typed(manager, place.rel, name), Rank.SCRIPT, place.rel, place.path(_FILE), _line(text, name), package
        )


def package_manager(place: Place) -> str:
    """The nearest answer wins, going up: a workspace has one lock file, at its top."""
    for above in place.upwards():
        declared = str(_manifest(above).get("packageManager", "")).partition("@")[0]
        if declared in _LOCKS.values():
            return declared
        lock = above.first(*_LOCKS)
        if lock:
            return _LOCKS[lock]
    return "npm"


def _manifest(place: Place) -> Mapping[str, Any]:
    raw = place.parsed(_FILE, json.loads)
    return raw if isinstance(raw, dict) else {}


def _scripts(manifest: Mapping[str, Any]) -> dict[str, str]:
    raw = manifest.get("scripts")
    named = raw.items() if isinstance(raw, dict) else ()
    return {name: script for name, script in named if isinstance(script, str) and _is_typed(name, script)}


def _is_typed(name: str, script: str) -> bool:
    if name in _SCRIPTS["format"] and _ONLY_CHECKS.search(script):
        return False
    return bool(script.strip()) and _PLACEHOLDER not in script


def _typed(manager: str, rel: str, script: str) -> str:
    where = argument(rel)
    if manager == "npm":
        short = script if script in ("test", "start") else f"run {script}"
        return f"npm --prefix {where} {short}" if rel else f"npm {short}"
    if manager == "bun":  # `bun test` is bun's own test runner, not the script
        return within(rel, f"bun run {script}")
    switch = "--dir" if manager == "pnpm" else "--cwd"
    return f"{manager} {switch} {where} {script}" if rel else f"{manager} {script}"


def _line(text: str, script: str) -> int:
    scripts = re.search(r'"scripts"\s*:', text)
    start = scripts.end() if scripts else 0
    match = re.compile(rf'"{re.escape(script)}"\s*:').search(text, start)
    return line_at(text, match.start() if match else start)
