"""Globs of scopes against a plain wcmatch, without our limits and caches."""

from __future__ import annotations

import re

import bracex
from hypothesis import example, given
from hypothesis import strategies as st
from wcmatch import glob

from nudge.core.errors import ScopeInvalid
from nudge.security.patterns import compile_glob

FLAGS = glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB | glob.CASE | glob.FORCEUNIX

LITERALS = st.sampled_from(["a", "b", "ab", ".a", "a.b", "-", "é", "+", "(", "$", "1", "07", "A"])
SETS = st.sampled_from(
    ["[ab]", "[!a]", "[^a]", "[a-c]", "[!b-z]", "[]a]", "[!]a]", "[+-9]", "[a-]", "[.]", "[é-ü]", "[\u0430a]"]
)
RANGES = st.sampled_from(["{1..3}", "{3..1}", "{05..08}", "{1..9..4}", "{-1..1}", "{-01..1}"])
ATOMS = st.one_of(LITERALS, SETS, RANGES, st.sampled_from(["*", "?", "**", "{a}", "{}"]))


def braces(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    choices = st.lists(st.lists(inner, max_size=2).map("".join), min_size=2, max_size=3)
    return choices.map(lambda texts: "{" + ",".join(texts) + "}")


NAMES = st.lists(st.recursive(ATOMS, braces, max_leaves=4), min_size=1, max_size=4).map("".join)
SEGMENTS = st.one_of(NAMES, st.just("**"), st.just("*"), LITERALS)
CROSSING = st.sampled_from(["{a,b/a}", "{**,a}", "{a/**,b}", "{a/*,**/b}"])
PATTERNS = st.builds(
    lambda root, parts: root + "/".join(parts),
    st.sampled_from(["/", "", "**/"]),
    st.lists(st.one_of(SEGMENTS, CROSSING), min_size=1, max_size=5),
)
TEXTS = st.builds(
    lambda root, parts: root + "/".join(parts),
    st.sampled_from(["/", ""]),
    st.lists(st.lists(LITERALS, min_size=1, max_size=2).map("".join), min_size=1, max_size=5),
)


def expected(pattern: str, text: str) -> bool:
    """wcmatch, but for two things: to us a directory lies in its own `/a/**`, and a slash at the end says nothing."""
    paths = [re.sub("/+", "/", path) for path in bracex.expand(pattern)]
    owners = [re.sub(r"(?:/+\*\*)+/*\Z|/+\Z", "", path) for path in paths]
    return any(path and glob.globmatch(text, path, flags=FLAGS) for path in (*paths, *owners))


@given(PATTERNS, TEXTS)
@example("/a/**", "/a")
@example("/a/**", "/ab")
@example("**/a", "/a")
@example("**/a", "a")
@example("**", "/")
@example("/**", "/")
@example("/*", "/")
@example("/a/***", "/a/b/c")
@example("/a/**/**/b", "/a/b")
@example("/[+-9]a", "/.a")
@example("/{a,b/{c,d}}/*", "/b/d/x")
def test_a_glob_matches_what_wcmatch_matches(pattern: str, text: str) -> None:
    """On the syntax both have, a glob matches exactly what wcmatch says."""
    try:
        matched = compile_glob(pattern, "cwd_glob").matches(text)
    except ScopeInvalid:
        return  # an extended glob by accident, or too costly
    assert matched == expected(pattern, text)


def answer(pattern: str, text: str) -> bool | str | None:
    """Whether it matches, or, of a pattern that is refused, the field that the refusal names."""
    try:
        return compile_glob(pattern, "cwd_glob").matches(text)
    except ScopeInvalid as error:
        return error.field


@given(st.text(max_size=300), st.text(max_size=60))
def test_any_text_is_a_glob_or_is_refused(pattern: str, text: str) -> None:
    """Whatever is written as a pattern either compiles and answers, or is ScopeInvalid: nothing else can come out."""
    assert answer(pattern, text) in (True, False, "cwd_glob")


@given(st.text(alphabet="{},[]!^*?/.a1-\\@+(", max_size=60), TEXTS)
def test_any_punctuation_is_a_glob_or_is_refused(pattern: str, text: str) -> None:
    """The same for text made of nothing but syntax."""
    assert answer(pattern, text) in (True, False, "cwd_glob")


@given(st.lists(LITERALS, min_size=1, max_size=5).map("/".join))
def test_a_plain_name_matches_itself_only(name: str) -> None:
    """A pattern without wildcards is an exact name."""
    try:
        pattern = compile_glob(name, "branch")
    except ScopeInvalid:
        return
    assert pattern.matches(name)
    assert not pattern.matches(name + "a") and not pattern.matches("a" + name) and not pattern.matches(name + "/a")
