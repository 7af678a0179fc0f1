"""Cargo.toml (`cargo test`, with `-p` for a member of a workspace) and go.mod (`go test ./...`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from nudge.core.text import line_at
from nudge.manifests.commands import Claim, Rank, is_plain_word, quote_path, run_in
from nudge.manifests.formats import header_line, parse_toml, table
from nudge.manifests.tree import Directory

_CARGO = "Cargo.toml"
_CARGO_VERBS = {"build": "build", "test": "test", "run": "run", "lint": "clippy", "format": "fmt"}

_GO_MOD = "go.mod"
_GO_MODULE = re.compile(r'^module[ \t]+"?(?P<path>[^\s"]+)', re.MULTILINE)
_GO_MAJOR_VERSION = re.compile(r"v\d+")
_GO_LINTER_CONFIGS = (".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json")


def cargo_package_name(directory: Directory) -> str | None:
    name = table(_cargo_manifest(directory), "package").get("name")
    return name if isinstance(name, str) and is_plain_word(name) else None


def read_cargo(directory: Directory) -> Iterator[Claim]:
    manifest, name = _cargo_manifest(directory), cargo_package_name(directory)
    if "workspace" not in manifest and name is None:
        return
    path = directory.path(_CARGO)
    line = header_line(directory.read(_CARGO) or "", "workspace" if name is None else "package")
    for job, verb in _CARGO_VERBS.items():
        if job != "run" or _has_default_program(directory, manifest):
            yield Claim(job, _cargo_command(directory, verb), Rank.LANGUAGE, directory.rel, path, line, name)


def _cargo_manifest(directory: Directory) -> dict[str, Any]:
    document = directory.parse(_CARGO, parse_toml)
    return document if isinstance(document, dict) else {}


def _cargo_command(directory: Directory, verb: str) -> str:
    workspace = _cargo_workspace(directory)
    root = workspace or directory
    words = ["cargo", verb]
    if root.rel:
        words += ["--manifest-path", quote_path(root.path(_CARGO))]
    if workspace:
        words += ["-p", cargo_package_name(directory) or ""]
    elif "workspace" in _cargo_manifest(directory) and verb not in ("build", "run"):
        # In the root of a workspace plain cargo means the root package only.
        words.append("--all" if verb == "fmt" else "--workspace")
    return " ".join(words)


def _cargo_workspace(directory: Directory) -> Directory | None:
    """Return the directory above whose `[workspace]` lists this one as a member."""
    if "workspace" in _cargo_manifest(directory):
        return None
    for ancestor in directory.with_parents():
        workspace, inner = table(_cargo_manifest(ancestor), "workspace"), directory.below(ancestor)
        is_member = _matches(workspace.get("members"), inner) and not _matches(workspace.get("exclude"), inner)
        if ancestor is not directory and is_member:
            return ancestor
    return None


def _matches(patterns: Any, rel: str) -> bool:
    patterns = patterns if isinstance(patterns, list) else []
    globs = [pattern.removeprefix("./").rstrip("/") for pattern in patterns if isinstance(pattern, str)]
    # The count of slashes: cargo's star stays within one directory, `fnmatch`'s does not.
    return any(fnmatchcase(rel, pattern) and rel.count("/") == pattern.count("/") for pattern in globs)


def _has_default_program(directory: Directory, manifest: dict[str, Any]) -> bool:
    """Whether `cargo run` needs no `--bin`."""
    programs = manifest.get("bin")
    if isinstance(programs, list) and len(programs) > 1:
        return "default-run" in table(manifest, "package")
    return bool(programs) or ("package" in manifest and directory.has_file("src/main.rs"))


def go_module_name(directory: Directory) -> str | None:
    module = _go_module(directory)
    parts = module["path"].split("/") if module else [""]
    if len(parts) > 1 and _GO_MAJOR_VERSION.fullmatch(parts[-1]):
        parts.pop()
    return parts[-1] or None


def read_go_mod(directory: Directory) -> Iterator[Claim]:
    module = _go_module(directory)
    if module is None:
        return
    path, line, name = directory.path(_GO_MOD), line_at(module.string, module.start()), go_module_name(directory)
    for job, cmd in _go_commands(directory):
        yield Claim(job, cmd, Rank.LANGUAGE, directory.rel, path, line, name)


def _go_module(directory: Directory) -> re.Match[str] | None:
    return _GO_MODULE.search(directory.read(_GO_MOD) or "")


def _go_commands(directory: Directory) -> Iterator[tuple[str, str]]:
    go = f"go -C {quote_path(directory.rel)}" if directory.rel else "go"
    has_linter = directory.first_file(*_GO_LINTER_CONFIGS)
    yield "build", f"{go} build ./..."
    yield "test", f"{go} test ./..."
    yield "lint", run_in(directory.rel, "golangci-lint run") if has_linter else f"{go} vet ./..."
    yield "format", f"{go} fmt ./..."
    program = _go_program(directory)
    if program:
        yield "run", f"{go} run {program}"


def _go_program(directory: Directory) -> str | None:
    """Return the argument of `go run`, or None when there are several programs to choose from."""
    if "main.go" in directory.files:
        return "."
    folder = directory.tree.directories.get(directory.path("cmd"))
    names = sorted(folder.subdirectories) if folder else []
    programs = [name for name in names if is_plain_word(name) and directory.has_file(f"cmd/{name}/main.go")]
    return f"./cmd/{programs[0]}" if len(programs) == 1 else None
