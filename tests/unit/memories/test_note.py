"""Which notes are accepted, and what their fields become."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nudge.errors import Invalid
from nudge.memories import note

NOW = 1_800_000_000.0
MINIMAL = {"title": "We use Axum", "content": "The server is built with Axum 0.8."}


def test_the_defaults() -> None:
    """A title and a content are enough."""
    draft = note.parse_draft(MINIMAL, now=NOW)
    assert (draft.tier, draft.namespace, draft.kind, draft.priority, draft.confidence) == (
        "mid",
        "global",
        "note",
        5,
        1.0,
    )
    assert (draft.tags, draft.source, draft.expires_at, draft.metadata) == ((), "api", None, {})


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": "x" * 513}, "title"),
        ({"title": "é" * 257}, "title"),
        ({"title": "a\0b"}, "title"),
        ({"content": "x" * 65_537}, "content"),
        ({"content": None}, "content"),
        ({"namespace": "a\nb"}, "namespace"),
        ({"namespace": " a"}, "namespace"),
        ({"namespace": "x" * 513}, "namespace"),
        ({"tier": "forever"}, "tier"),
        ({"kind": "idea"}, "kind"),
        ({"source": "nobody"}, "source"),
        ({"tags": ["x"] * 51}, "tags"),
        ({"tags": ["ok", ""]}, "tags[1]"),
        ({"tags": ["x" * 129]}, "tags[0]"),
        ({"priority": 0}, "priority"),
        ({"priority": 11}, "priority"),
        ({"priority": True}, "priority"),
        ({"confidence": 1.1}, "confidence"),
        ({"confidence": float("nan")}, "confidence"),
        ({"expires_at": "tomorrow"}, "expires_at"),
        ({"expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
        ({"ttl_secs": 0}, "ttl_secs"),
        ({"ttl_secs": 31_536_001}, "ttl_secs"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"x": "y" * 20_000}}, "metadata"),
        ({"metadata": {"x": "\ud800"}}, "metadata"),
        ({"namespace": "ap\u3164i"}, "namespace"),
    ],
)
def test_what_is_refused(fields: dict[str, Any], field: str) -> None:
    """Each field has its limits, and the error names the field."""
    with pytest.raises(Invalid) as refused:
        note.parse_draft({**MINIMAL, **fields}, now=NOW)
    assert refused.value.field == field


def test_a_repo_is_a_namespace() -> None:
    """Slashes, colons and blanks are allowed: the default is a whole repo identity, or a directory."""
    for namespace in ("github.com/acme/api", "git:acme/api", "/home/me/my project"):
        assert note.parse_draft(MINIMAL, now=NOW, namespace=namespace).namespace == namespace


def test_tags_are_kept_once_and_may_be_one_text() -> None:
    """`a,b` is two tags; the same tag twice is one."""
    assert note.check_tags("a, b,,a") == ("a", "b")


@pytest.mark.parametrize("written", [12, "12", "m12"])
def test_an_id_has_three_spellings(written: object) -> None:
    """Integers in JSON, text on a command line, `m12` as it is shown."""
    assert note.parse_id(written) == 12


@pytest.mark.parametrize("written", [0, -1, 10**18, "m0", "x12", "", None, True, 1.5, "m12 "])
def test_what_is_no_id(written: object) -> None:
    """Anything else names no note."""
    with pytest.raises(Invalid):
        note.parse_id(written)


def test_an_update_checks_only_what_it_names() -> None:
    """Missing fields stay as they are, a wrong one is refused."""
    assert note.parse_changes({"priority": 8, "title": None}, now=NOW) == {"priority": 8}
    with pytest.raises(Invalid):
        note.parse_changes({"tier": "forever"}, now=NOW)


def test_lifetimes_are_configurable() -> None:
    """By the names in `config.toml`; 0 is for good."""
    lifetimes = note.Lifetimes.configured({"short_ttl_secs": 60.0, "mid_ttl_secs": 0.0, "long_ttl_secs": 10.0})
    draft = note.parse_draft(MINIMAL, now=NOW)
    expiries = [lifetimes.expiry(replace(draft, tier=tier), NOW) for tier in note.TIERS]
    assert expiries == [NOW + 60, None, NOW + 10]
    assert lifetimes.expiry(replace(draft, expires_at=NOW + 5), NOW) == NOW + 5
    assert note.Lifetimes.configured({}) == note.Lifetimes()
