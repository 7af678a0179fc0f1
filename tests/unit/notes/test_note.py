"""Which notes are accepted, what their fields become, and lists of notes as TOON: the documented example byte for byte,
and what is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nudge.core.errors import Invalid
from nudge.notes import fields as note_fields
from nudge.notes import note
from nudge.notes.toon import dump_toon
from tests import toon_parser

NOW = 1_800_000_000.0
MINIMAL = {"title": "We use Axum", "content": "The server is built with Axum 0.8."}


def test_the_defaults() -> None:
    """A title and a content are enough."""
    draft = note_fields.parse_draft(MINIMAL, now=NOW)
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
        note_fields.parse_draft({**MINIMAL, **fields}, now=NOW)
    assert refused.value.field == field


def test_a_repo_is_a_namespace() -> None:
    """Slashes, colons and blanks are allowed: the default is a whole repo identity, or a directory."""
    for namespace in ("github.com/acme/api", "git:acme/api", "/home/me/my project"):
        assert note_fields.parse_draft(MINIMAL, now=NOW, namespace=namespace).namespace == namespace


def test_tags_are_kept_once_and_may_be_one_text() -> None:
    """`a,b` is two tags; the same tag twice is one."""
    assert note_fields.check_tags("a, b,,a") == ("a", "b")


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
    assert note_fields.parse_changes({"priority": 8, "title": None}, now=NOW) == {"priority": 8}
    with pytest.raises(Invalid):
        note_fields.parse_changes({"tier": "forever"}, now=NOW)


def test_lifetimes_are_configurable() -> None:
    """By the names in `config.toml`; 0 is for good."""
    lifetimes = note.Lifetimes.configured({"short_ttl_secs": 60.0, "mid_ttl_secs": 0.0, "long_ttl_secs": 10.0})
    draft = note_fields.parse_draft(MINIMAL, now=NOW)
    expiries = [lifetimes.expiry(replace(draft, tier=tier), NOW) for tier in note_fields.TIERS]
    assert expiries == [NOW + 60, None, NOW + 10]
    assert lifetimes.expiry(replace(draft, expires_at=NOW + 5), NOW) == NOW + 5
    assert note.Lifetimes.configured({}) == note.Lifetimes()


RESPONSE = {
    "memories": [
        {
            "id": "abc-123",
            "title": "PostgreSQL config",
            "tier": "long",
            "namespace": "infra",
            "priority": 9,
            "score": 0.763,
            "tags": ["postgres", "db"],
        },
        {
            "id": "def-456",
            "title": "Redis cache",
            "tier": "long",
            "namespace": "infra",
            "priority": 8,
            "score": 0.541,
            "tags": ["redis"],
        },
        {
            "id": "ghi-789",
            "title": "Deploy notes",
            "tier": "mid",
            "namespace": "infra",
            "priority": 5,
            "score": 0.320,
            "tags": [],
        },
    ],
    "count": 3,
    "mode": "hybrid",
}
TEXT = """count:3|mode:hybrid
memories[id|title|tier|namespace|priority|score|tags]:
abc-123|PostgreSQL config|long|infra|9|0.763|postgres,db
def-456|Redis cache|long|infra|8|0.541|redis
ghi-789|Deploy notes|mid|infra|5|0.32|"""


def test_the_documented_example_is_written_byte_for_byte() -> None:
    """Metadata line, header and rows as the format's specification prints them."""
    assert dump_toon(RESPONSE) == TEXT


def test_the_documented_example_is_parsed() -> None:
    """Values come back as text, an empty one as null, and written again they are the same bytes."""
    parsed = toon_parser.parse(TEXT)
    assert parsed["count"] == "3" and parsed["mode"] == "hybrid"
    assert [row["title"] for row in parsed["memories"]] == ["PostgreSQL config", "Redis cache", "Deploy notes"]
    assert parsed["memories"][2]["tags"] is None
    assert dump_toon(parsed) == TEXT


def test_search_results_are_called_memories() -> None:
    """The header is the same whichever key the response has."""
    assert dump_toon({"results": [], "count": 0}, ("id",)) == "count:0\nmemories[id]:"


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ({"id": None, "title": ""}, "|"),
        ({"id": True, "title": 1}, "1|1"),
        ({"id": ["a,b"], "title": ["a", "b"]}, "a,b|a,b"),
        ({"id": {"a": 1}, "title": 2.50}, "[object]|2.5"),
    ],
)
def test_what_does_not_come_back(values: dict[str, object], written: str) -> None:
    """Each of the losses that the module lists."""
    assert dump_toon({"memories": [values]}, ("id", "title")).splitlines()[1] == written
