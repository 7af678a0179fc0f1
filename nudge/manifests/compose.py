"""Compose files -> `docker compose up`, for the whole and for each service that is built here."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nudge.manifests.model import Claim, Rank
from nudge.manifests.shell import argument, is_plain_word
from nudge.manifests.tree import Place
from nudge.manifests.yaml_entries import Entry, entries

_FOUND_BY_ITSELF = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")  # compose's own order
_VARIANT = re.compile(r"(?:docker-)?compose[.-][\w-]+\.ya?ml")


def read(place: Place) -> Iterator[Claim]:
    file = place.first(*_FOUND_BY_ITSELF) or _only_variant(place)
    listed = place.parsed(file, entries) if file else None
    if file is None or not listed:
        return
    needs_name = place.rel or file not in _FOUND_BY_ITSELF
    compose = f"docker compose -f {argument(place.path(file))}" if needs_name else "docker compose"
    built = _built_services(listed)
    for entry in (entry for entry in listed if entry.path == ("services",)):
        yield Claim("run", f"{compose} up", Rank.CONTAINER, place.rel, place.path(file), entry.line)
        if built:
            yield Claim("build", f"{compose} build", Rank.CONTAINER, place.rel, place.path(file), entry.line)
    for service, line in built.items():
        for key, verb in (("build", "build"), ("run", "up")):
            cmd = f"{compose} {verb} {service}"
            yield Claim(key, cmd, Rank.CONTAINER, place.rel, place.path(file), line, service, is_service=True)


def _only_variant(place: Place) -> str | None:
    """With several of them it takes a person to know which go together."""
    variants = [name for name in place.files if _VARIANT.fullmatch(name)]
    return variants[0] if len(variants) == 1 else None


def _built_services(listed: list[Entry]) -> dict[str, int]:
    services = [entry for entry in listed if entry.path[0] == "services"]
    lines = {entry.path[1]: entry.line for entry in services if len(entry.path) == 2}
    built = {entry.path[1] for entry in services if entry.path[2:3] == ("build",)}
    return {name: line for name, line in lines.items() if name in built and is_plain_word(name)}
