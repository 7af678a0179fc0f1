"""The sanitizer: whatever a text holds, what comes out is one visible line, or escape sequences."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nudge.core.text import (
    escape,
    format_size,
    format_span,
    has_control,
    is_all_visible,
    is_visible,
    quote,
    quote_name,
    single_line,
    to_unicode,
)

HIDDEN = [
    "\x00",
    "\x1b",
    "\x7f",
    "\x9b",
    "\u200b",
    "\u202e",
    "\u2066",
    "\ufeff",
    "\u2028",
    "\U000e0041",
    "\U000e0101",
    "\u3164",
]


@pytest.mark.parametrize("char", HIDDEN, ids=ascii)
def test_what_cannot_be_seen(char: str) -> None:
    """Control, bidirectional, zero-width, tag and filler characters are escaped for people and dropped from one
    line."""
    assert not is_visible(char) and not is_all_visible(f"a{char}b")
    assert escape(f"a{char}b") == f"a{char.encode('unicode_escape').decode()}b"
    assert char not in single_line(f"a{char}b", 20)


def test_escape_keeps_what_people_write() -> None:
    """Letters of any script and emoji; newline and tab only where lines are allowed."""
    for text in ("kůň", "日本", "❤️", "a\u0301"):
        assert escape(text) == text and is_all_visible(text)
    assert escape("a\n\tb") == r"a\n\tb" and escape("a\n\tb", keep_lines=True) == "a\n\tb"


def test_control_characters() -> None:
    """C0, DEL, C1 and halves of surrogate pairs; newline and tab when the caller allows them."""
    assert [char for char in ("\0", "\n", "\x7f", "\x85", "\ud83d", "a", "ž", "\u202e") if has_control(char)] == [
        "\0",
        "\n",
        "\x7f",
        "\x85",
        "\ud83d",
    ]
    assert not has_control("a\nb\t", allowed="\n\t") and has_control("a\rb", allowed="\n\t")


def test_to_unicode() -> None:
    """What UTF-8 cannot carry is replaced, NUL is removed, everything else stays."""
    assert to_unicode("a\0b") == "ab" and to_unicode("ž\ud83d\0") == "ž?" and to_unicode("ž\n") == "ž\n"


def test_single_line_is_cut() -> None:
    """To so many characters, and says so; white space is one blank."""
    assert single_line("  a \n\n b\t", 20) == "a b"
    assert single_line("x" * 30, 20) == "x" * 17 + "..." and single_line("x" * 20, 20) == "x" * 20
    assert single_line(" " * 300, 20) == "..."


@pytest.mark.parametrize(
    ("text", "line"), [("</x>", "‹/x>"), ("<b>", "‹b>"), ("<!--", "‹!--"), ("a < b <= c", "a < b <= c"), ("<", "<")]
)
def test_nothing_looks_like_a_tag(text: str, line: str) -> None:
    """A client wraps injected text in a tag, which the text cannot close."""
    assert single_line(text, 20) == line


@given(st.text(max_size=200))
def test_any_text_is_quoted(text: str) -> None:
    """Whatever was recorded comes out as one JSON string of visible characters."""
    shown = quote(text, 80)
    assert shown.isprintable() and len(json.loads(shown)) <= 80
    assert quote_name(text, 48).isprintable() and escape(text).isprintable()


def test_a_name_that_could_pass_for_a_sentence() -> None:
    """Is quoted; one word is not."""
    assert quote_name("http-proxy/build", 48) == "http-proxy/build" and quote_name("", 48) == '""'
    assert quote_name("do it", 48) == '"do it"'


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1 KiB"),
        (1_536, "1.5 KiB"),
        (4 * 1024**2, "4 MiB"),
        (5 * 1024**3, "5 GiB"),
    ],
)
def test_format_size(count: int, words: str) -> None:
    """The largest unit that it reaches, with one decimal where there is one."""
    assert format_size(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0s"),
        (0.4, "0s"),
        (59, "59s"),
        (60, "1m"),
        (62, "1m 2s"),
        (43_200, "12h"),
        (11_520, "3h 12m"),
        (86_700, "1d"),
        (90_000, "1d 1h"),
    ],
)
def test_format_span(seconds: float, words: str) -> None:
    """Two units at most, and none that says nothing."""
    assert format_span(seconds) == words
