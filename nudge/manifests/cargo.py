"""Cargo.toml -> `cargo test`, with `-p` for a member of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from nudge.manifests.model import Claim, Rank
from nudge.manifests.shell import argument, is_plain_word
from nudge.manifests.toml_text import header_line, parse_toml, table
from nudge.manifests.tree import Place

_FILE = "Cargo.toml"
_VERBS = {"build": "build", "test": "test", "run": "run", "lint": "clippy", "format": "fmt"}


def package_name(place: Place) -> str | None:
    name = table(_manifest(place), "package").get("name")
    return name if isinstance(name, str) and is_plain_word(name) else None


def read(place: Place) -> Iterator[Claim]:
    manifest, name = _manifest(place), package_name(place)
    if "workspace" not in manifest and name is None:
        return
    line = header_line(place.text(_FILE) or "", "workspace" if name is None else "package")
    for key, verb in _VERBS.items():
        if key != "run" or _has_program(place, manifest):
            yield Claim(key, _typed(place, verb), Rank.LANGUAGE, place.rel, place.path(_FILE), line, name)


def _typed(place: Place, verb: str) -> str:
    home = _workspace_of(place) or place
    words = ["cargo", verb]
    if home.rel:
        words += ["--manifest-path", argument(home.path(_FILE))]
    return " ".join(words + _selection(place, home, verb))


def _selection(place: Place, home: Place, verb: str) -> list[str]:
    """Which packages: in a workspace's root, plain cargo means the root package only."""
    if home is not place:
        return ["-p", package_name(place) or ""]
    if "workspace" not in _manifest(place) or verb in ("build", "run"):
        return []
    return ["--all"] if verb == "fmt" else ["--workspace"]


def _workspace_of(place: Place) -> Place | None:
    """The directory whose `[workspace]` counts this one among its members."""
    for above in place.upwards():
        manifest = _manifest(above)
        if above is place and "workspace" in manifest:
            return None
        workspace, inner = table(manifest, "workspace"), place.rel[len(above.rel) :].lstrip("/")
        if (
            above is not place
            and _matches(workspace.get("members"), inner)
            and not _matches(workspace.get("exclude"), inner)
        ):
            return above
    return None


def _matches(patterns: Any, rel: str) -> bool:
    patterns = patterns if isinstance(patterns, list) else []
    named = [pattern.removeprefix("./").rstrip("/") for pattern in patterns if isinstance(pattern, str)]
    # The count of slashes: a star in a member's path does not reach into directories, `fnmatch`'s does.
    return any(fnmatchcase(rel, pattern) and rel.count("/") == pattern.count("/") for pattern in named)


def _has_program(place: Place, manifest: dict[str, Any]) -> bool:
    """Whether `cargo run` knows what to run without being told."""
    programs = manifest.get("bin")
    if isinstance(programs, list) and len(programs) > 1:
        return "default-run" in table(manifest, "package")
    return bool(programs) or ("package" in manifest and place.holds("src/main.rs"))


def _manifest(place: Place) -> dict[str, Any]:
    raw = place.parsed(_FILE, parse_toml)
    return raw if isinstance(raw, dict) else {}
