from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from nudge import limits
from nudge.errors import Invalid, ScopeInvalid
from nudge.security.regex import compile_regex


def _seconds(call: Callable[[str], bool], text: str) -> float:
    start = time.thread_time()
    call(text)
    return time.thread_time() - start


def test_regex_searches_anywhere() -> None:
    """A query's expression is found anywhere in the text, in its own case, across lines."""
    regex = compile_regex(r"time\w+t: \d+", "regex")
    assert regex.pattern == r"time\w+t: \d+"
    assert regex.search("the timeout: 30 s")
    assert not regex.search("the Timeout: 30 s")
    assert compile_regex("(?i)TIMEOUT", "regex").search("a\ntimeout")
    assert compile_regex("caf.$", "regex").search("un café")
    assert compile_regex("", "regex").search("")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing )"),
        ("a**", "bad repetition operator"),
        ("(?=a)", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        ("[z-a]", "invalid character class range"),
        ("(?:a{900}){900}", "invalid repetition size"),
        ("a{401}", "too large for a search"),
        (r"\pL", "ranges such as [a-z]"),
        ("a" * 257, "256 characters"),
        ("\ud800", "Unicode"),
    ],
)
def test_what_re2_cannot_compile_is_invalid(pattern: str, reason: str) -> None:
    """The refusal is E_INVALID with the field and RE2's own words."""
    with pytest.raises(Invalid) as caught:
        compile_regex(pattern, "regex")
    assert reason in caught.value.message
    assert caught.value.field == "regex"
    assert not isinstance(caught.value, ScopeInvalid)


def test_a_bad_regex_says_nothing_on_stderr() -> None:
    """stderr belongs to the client's terminal: RE2 must not log there."""
    program = (
        "from nudge.errors import Invalid\nfrom nudge.security.regex import compile_regex\n"
        "try: compile_regex('(', 'regex')\nexcept Invalid as error: print(error.message)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "missing )" in ran.stdout
    assert ran.stderr == ""


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$b", "(.*)(.*)(.*)(.*)b", "[ab]*a[ab]{380}b$x"])
def test_no_regex_backtracks(pattern: str) -> None:
    """Eight times the text takes about eight times as long, whatever the expression."""
    chance = random.Random(2)
    text = "".join(chance.choice("ab") for _ in range(limits.MAX_VALUE_BYTES))
    regex = compile_regex(pattern, "regex")
    whole = min(_seconds(regex.search, text) for _ in range(5))
    eighth = min(_seconds(regex.search, text[: len(text) // 8]) for _ in range(5))
    assert whole < eighth * 8 * 4 + 0.002
