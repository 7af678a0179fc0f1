"""Hypothesis strategies for calls: made from the operations' own JSON schemas, then spoilt."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from nudge.interfaces.operations import OPERATIONS
from nudge.interfaces.schemas import schema_of
from tests.security.examples import CALLS, CONTEXT, META, PAYLOAD, SCOPE, STORED, places, replaced

SECRET = "gh" + "p_16C7e42F292c6912E7710c838347Ae178B4a"
NOT_FUZZED = ("nudge.stop",)  # it ends the server

# Few names, so that calls meet; and texts that break things.
NAMES = st.sampled_from(["c", "d", "k", "l", "api"])
NASTY = st.sampled_from(
    [
        "",
        " ",
        "\0",
        "\x1b[0m",
        "\ud800",
        "é",
        "日本",
        "a" * 129,
        "a" * 9_000,
        "..",
        "../x",
        "*",
        "**/[",
        "(",
        "(?P<a>x)",
        "%s",
        "{}",
        "{0}",
        "git:a/b",
        "/a",
        "C:\\x",
        "session",
        "PT2H",
        "-1",
        "1e9",
        "None",
        "__proto__",
        "'; DROP TABLE x",
    ]
)
TEXTS = NAMES | NASTY | st.text(max_size=20)
SCALARS = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | TEXTS
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=8
)
WHOLE_EXAMPLES = st.sampled_from(
    [CONTEXT, META, PAYLOAD, SCOPE, STORED, *(params["value"] for _, params in CALLS if "value" in params)]
)


def typed(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of the type that a schema asks for, mostly within its bounds."""
    if "anyOf" in schema:
        return st.one_of([typed(option) for option in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    kind = schema.get("type")
    if kind == "array":
        return st.lists(typed(schema.get("items", {})), max_size=4)
    if kind == "object":
        return (
            _object(schema)
            if schema.get("properties")
            else st.dictionaries(TEXTS, ANYTHING, max_size=3) | WHOLE_EXAMPLES
        )
    plain: dict[str, st.SearchStrategy[Any]] = {
        "string": TEXTS,
        "integer": st.integers(-2, 12),
        "number": st.floats(0, 1),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return plain.get(str(kind), ANYTHING | WHOLE_EXAMPLES)


def _object(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    fields = {name: typed(field) for name, field in schema.get("properties", {}).items()}
    needed = {name: fields.pop(name) for name in schema.get("required", ())}
    return st.fixed_dictionaries(needed, optional=fields)


@st.composite
def _spoilt(draw: st.DrawFn) -> tuple[str, Any]:
    """A good call in which one value is exchanged for anything else."""
    operation, good = draw(st.sampled_from(CALLS))
    place, _ = draw(st.sampled_from(list(places(good))))
    return operation, replaced(good, place, draw(ANYTHING))


@st.composite
def _secretive(draw: st.DrawFn) -> tuple[str, Any]:
    """A call with a credential where a text of somebody's choice may be. Names are not such a place, they are told to
    everyone; nor is
    where the caller stands, which it is told itself as the reason of a miss."""
    operation, good = draw(st.sampled_from(CALLS))
    kept = ("component", "key", "session_id", "type", "format", "mode", "os", "sensitivity", "source", "shell")
    result = [("context", name) for name in ("cwd", "repo", "branch")]
    free = [
        place
        for place, value in places(good)
        if isinstance(value, str) and place[-1] not in kept and place not in result
    ]
    place = draw(st.sampled_from(free)) if free else ()
    text = draw(st.sampled_from([SECRET, f"token={SECRET}", f"{SECRET}\0", SECRET * 400]))
    return operation, replaced(good, place, text) if place else good


def _typed_call() -> st.SearchStrategy[tuple[str, Any]]:
    return st.one_of(
        [
            st.tuples(st.just(name), typed(schema_of(operation.params)))
            for name, operation in OPERATIONS.items()
            if name not in NOT_FUZZED
        ]
    )


GOOD_CALLS = st.sampled_from(CALLS)
CALL = st.one_of(
    GOOD_CALLS, _typed_call(), _spoilt(), _secretive(), st.tuples(st.sampled_from(sorted(OPERATIONS)[:-1]), ANYTHING)
)
