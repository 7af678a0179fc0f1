"""The globs of `ignore`, which a hook matches with the standard library, against wcmatch."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nudge.security import ignore_globs, patterns

LITERALS = st.sampled_from(["a", "b", "ab", ".a", "a.b", "-", "é", "+", "(", "$", "1", "]", "A"])
SETS = st.sampled_from(["[]]", "[!]]", "[]a]", "[[:alpha:]]", "[![:alpha:]]", "[[:digit:][:upper:]+]", "[]", "[a-]"])
ATOMS = st.one_of(
    LITERALS, st.sampled_from(["*", "?", "**", "[ab]", "[!a]", "[^a]", "[a-c]", "[.]", "{a,b}", "{a,}"]), SETS
)
NAMES = st.one_of(
    st.lists(ATOMS, min_size=1, max_size=3).map("".join), st.sampled_from(["*", "**", "{a,b/a}", "{**/a,b}"])
)
GLOBS = st.builds(
    lambda root, names: root + "/".join(names),
    st.sampled_from(["/", "", "**/"]),
    st.lists(NAMES, min_size=1, max_size=3),
)
PATHS = st.lists(st.lists(LITERALS, min_size=1, max_size=2).map("".join), min_size=1, max_size=5).map(
    lambda names: "/" + "/".join(names)
)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/u")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(GLOBS, PATHS)
@example("a**b", "/a/b")
@example("/a[!b]a", "/a/a")
@example("{a,}", "/b")
@example("/{,}", "/b")
@example("[]]x", "/p/]x")
@example("[[:alpha:]]x", "/p/ax")
@example("{a,b}/*", "/x/b")
@example("{a,b}/*", "/x/b/c/d")
@example("***", "/a")
@example("secret/**", "/p/secret")
@example("~/diary", "/home/u/diary/x")
@example("~", "/home/u/x")
@example("{a,/b}", "/p/b")
@example("C:/work", "C:\\work\\a.txt")
@example("a{1..3}", "/p/a2")
@example("{1..1000000000}", "/p/a{1..1000000000}")
@example("{a", "/p/{a")
@example("/", "/p")
@example("*.env", "/a" * 5_000 + "/a.env")
def test_a_hook_ignores_what_wcmatch_would_match(glob: str, path: str) -> None:
    """On the syntax that both have, `*`, `**`, `?`, sets and lists in braces, both give one answer."""
    assert ignore_globs.is_ignored(path, [glob]) == patterns.is_ignored(path, [glob])
