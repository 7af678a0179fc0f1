"""go.mod -> `go test ./...`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nudge.manifests.model import Claim, Rank
from nudge.manifests.shell import argument, is_plain_word, within
from nudge.manifests.tree import Place, line_at

_FILE = "go.mod"
_MODULE = re.compile(r'^module[ \t]+"?(?P<path>[^\s"]+)', re.MULTILINE)
_MAJOR_VERSION = re.compile(r"v\d+")
_LINTER_CONFIGS = (".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json")


def package_name(place: Place) -> str | None:
    module = _module(place)
    parts = module["path"].split("/") if module else [""]
    if len(parts) > 1 and _MAJOR_VERSION.fullmatch(parts[-1]):
        parts.pop()
    return parts[-1] or None


def read(place: Place) -> Iterator[Claim]:
    module = _module(place)
    if module is None:
        return
    line, name = line_at(module.string, module.start()), package_name(place)
    for key, cmd in _commands(place):
        yield Claim(key, cmd, Rank.LANGUAGE, place.rel, place.path(_FILE), line, name)


def _commands(place: Place) -> Iterator[tuple[str, str]]:
    go = f"go -C {argument(place.rel)}" if place.rel else "go"
    yield "build", f"{go} build ./..."
    yield "test", f"{go} test ./..."
    yield "lint", within(place.rel, "golangci-lint run") if place.first(*_LINTER_CONFIGS) else f"{go} vet ./..."
    yield "format", f"{go} fmt ./..."
    program = _program(place)
    if program:
        yield "run", f"{go} run {program}"


def _program(place: Place) -> str | None:
    """What `go run` would be given; nothing when there are several to choose from."""
    if "main.go" in place.files:
        return "."
    commands = place.tree.places.get(place.path("cmd"))
    names = sorted(commands.directories) if commands else []
    programs = [name for name in names if is_plain_word(name) and place.holds(f"cmd/{name}/main.go")]
    return f"./cmd/{programs[0]}" if len(programs) == 1 else None


def _module(place: Place) -> re.Match[str] | None:
    return _MODULE.search(place.text(_FILE) or "")
