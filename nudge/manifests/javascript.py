"""package.json: its scripts, run with the package manager that the repo's lock file names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from nudge.core.text import line_at
from nudge.manifests.commands import Claim, Names, Rank, quote_path, run_in, select_targets
from nudge.manifests.tree import Directory

_FILE = "package.json"
_LOCK_FILES = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
# `dev` before `start`: where both exist, `start` serves what was built for production.
_SCRIPTS: Names = {
    "build": ("build", "compile", "dist"),
    "test": ("test", "tests", "test:unit", "test-unit", "unit"),
    "run": ("dev", "start", "serve", "develop", "start:dev", "preview"),
    "lint": ("lint", "eslint", "lint:js", "lint:check"),
    "format": ("format", "fmt", "prettier", "format:write", "format:fix", "prettier:write"),
}
_PLACEHOLDER = "no test specified"  # written by `npm init`
_CHECK_OPTION = re.compile(r"\s(?:--check|-c|--list-different|-l)(?:\s|$)")


def npm_package_name(directory: Directory) -> str | None:
    name = _manifest(directory).get("name")
    return name.rpartition("/")[2] if isinstance(name, str) else None


def read_package_json(directory: Directory) -> Iterator[Claim]:
    scripts = _usable_scripts(_manifest(directory))
    if not scripts:
        return
    text, path = directory.read(_FILE) or "", directory.path(_FILE)
    manager, package = _package_manager(directory), npm_package_name(directory)
    for job, script in select_targets(scripts, _SCRIPTS):
        cmd, line = _run_script(manager, directory.rel, script), _script_line(text, script)
        yield Claim(job, cmd, Rank.SCRIPT, directory.rel, path, line, package)


def package_scripts(text: str) -> list[str]:
    """Return the scripts in the text of a package.json; none when it is malformed."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return _usable_scripts(document) if isinstance(document, dict) else []


def _package_manager(directory: Directory) -> str:
    """Return the manager named nearest, going up: a workspace has one lock file, in its root."""
    for ancestor in directory.with_parents():
        declared = str(_manifest(ancestor).get("packageManager", "")).partition("@")[0]
        if declared in _LOCK_FILES.values():
            return declared
        lock = ancestor.first_file(*_LOCK_FILES)
        if lock:
            return _LOCK_FILES[lock]
    return "npm"


def _manifest(directory: Directory) -> Mapping[str, Any]:
    document = directory.parse(_FILE, json.loads)
    return document if isinstance(document, dict) else {}


def _usable_scripts(manifest: Mapping[str, Any]) -> list[str]:
    scripts = manifest.get("scripts")
    entries = scripts.items() if isinstance(scripts, dict) else ()
    return [name for name, script in entries if isinstance(script, str) and _is_usable(name, script)]


def _is_usable(name: str, script: str) -> bool:
    if name in _SCRIPTS["format"] and _CHECK_OPTION.search(script):
        return False
    return bool(script.strip()) and _PLACEHOLDER not in script


def _run_script(manager: str, rel: str, script: str) -> str:
    where = quote_path(rel)
    if manager == "npm":
        short = script if script in ("test", "start") else f"run {script}"
        return f"npm --prefix {where} {short}" if rel else f"npm {short}"
    if manager == "bun":  # `bun test` is bun's own test runner, not the script
        return run_in(rel, f"bun run {script}")
    option = "--dir" if manager == "pnpm" else "--cwd"
    return f"{manager} {option} {where} {script}" if rel else f"{manager} {script}"


def _script_line(text: str, script: str) -> int:
    scripts = re.search(r'"scripts"\s*:', text)
    start = scripts.end() if scripts else 0
    match = re.compile(rf'"{re.escape(script)}"\s*:').search(text, start)
    return line_at(text, match.start() if match else start)
