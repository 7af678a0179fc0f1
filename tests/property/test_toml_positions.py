"""Whatever a TOML document looks like, the places that are found in it hold what `tomllib` reads there."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from nudge.repofile.document import parse
from nudge.repofile.toml_positions import Path, Positions, decoded

PLAIN = st.text(st.sampled_from("ab#,=[]{}.'\"\\ \t\u00e9\u4e2d"), max_size=8)


def basic(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


STRINGS = (
    PLAIN.map(basic)
    | PLAIN.map(lambda text: '"\\u0061' + basic(text)[1:])
    | PLAIN.map(lambda text: "'" + text.replace("'", "") + "'")
    | PLAIN.map(lambda text: '"""\n' + basic(text)[1:-1] + ' \\\n   x\n"y" """')
    | PLAIN.map(lambda text: "'''" + text.replace("'", "") + "\n#'''")
)
SCALARS = STRINGS | st.sampled_from(("1", "-0.5", "true", "1979-05-27 07:32:00", "1979-05-27T07:32:00Z", "0x1F"))
KEYS = st.sampled_from(("a", "b", "c-1", '"a b"', "'c.d'", "a . b", "b.c"))
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[\n " + ", # x ]\n".join(items) + " ]")
        | st.lists(st.tuples(KEYS, inner), max_size=2).map(
            lambda pairs: "{ " + ", ".join(f"{key} = {value.replace(chr(10), ' ')}" for key, value in pairs) + " }"
        )
    ),
    max_leaves=5,
)
LINES = st.lists(
    st.tuples(KEYS, VALUES).map(lambda pair: f"{pair[0]} = {pair[1]} # why = ]")
    | KEYS.map(lambda key: f"[t.{key}]")
    | st.just("[[hint]]")
    | st.just("  [hint.scope]")
    | st.just("# [x] = 'y'"),
    max_size=8,
)


def leaves(data: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    pairs: Any = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    if not isinstance(data, dict | list):
        yield path, data
    for name, value in pairs:
        yield from leaves(value, (*path, name))


@given(LINES)
def test_each_value_is_where_it_stands(lines: list[str]) -> None:
    """Every value of a valid document has a place, and the text there is that value, decoded if it is a string."""
    text = "\n".join(lines)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    positions = Positions(text)
    for path, value in leaves(data):
        span = positions.values[path]
        if isinstance(value, str):
            assert decoded(text, span) == value
        else:
            assert tomllib.loads(f"x = {text[span.start : span.end]}")["x"] == value
    assert {path for path, _ in leaves(data)} <= positions.values.keys()


PIECES = st.sampled_from(
    (
        *("version = 1\n", "[[hint]]\n", "[hint.scope]\n", "[hint]\n", "hint = []\n", "hint = [{}]\n", "scope = 1\n"),
        *("key = 'a/b'\n", "value = 'x'\n", "kind = 'fact'\n", "value = 3\n", "key = [1]\n", "hint.key = 'a/b'\n"),
        *(
            "scope = { branch = 'main' }\n",
            "scope.os = ['linux', 7]\n",
            "scope = { cwd_glob = '[' }\n",
            "reason = ''\n",
        ),
        *('"' * 3, "'" * 3, '"', "'", "[", "]", "{", "}", "\\", "\n", "\r\n", "=", ",", "#", "\u200b", "\x00", "1e9"),
    )
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=20).map("".join))
def test_whatever_the_file_has_it_is_read_or_refused(text: str) -> None:
    """Never an exception; a problem is in a line that exists, and with one there is no hint."""
    content = text.encode("utf-8", "surrogatepass")
    document = parse(content)
    assert not (document.hints and document.problems)
    assert all(0 <= problem.line <= content.count(b"\n") + 1 for problem in document.problems)
