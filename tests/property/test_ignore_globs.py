"""The globs of `ignore`, which a hook matches with the standard library, against wcmatch."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nudge.security.globs import Glob
from nudge.security.ignore_globs import is_ignored

LITERALS = st.sampled_from(["a", "b", "ab", ".a", "a.b", "-", "é", "+", "(", "$", "1"])
ATOMS = st.one_of(LITERALS, st.sampled_from(["*", "?", "**", "[ab]", "[!a]", "[^a]", "[a-c]", "[.]", "{a,b}", "{a,}"]))
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


def expected(glob: str, path: str) -> bool:
    """As a scope reads it: anywhere unless it begins with a slash, and with all that is below what it matches."""
    anchored = glob if glob.startswith("/") else f"**/{glob}"
    return Glob(anchored).matches(path) or Glob(f"{anchored}/**").matches(path)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/u")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(GLOBS, PATHS)
@example("a**b", "/a/b")
@example("{a,b}/*", "/x/b")
@example("{a,b}/*", "/x/b/c/d")
@example("***", "/a")
@example("secret/**", "/p/secret")
def test_a_hook_ignores_what_wcmatch_would_match(glob: str, path: str) -> None:
    """On the syntax that both have, `*`, `**`, `?`, sets and lists in braces, both give one answer."""
    assert is_ignored(path, [glob]) == expected(glob, path)
