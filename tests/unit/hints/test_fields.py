from __future__ import annotations

from typing import Any

import pytest

from nudge.core import limits
from nudge.core.errors import Invalid
from nudge.hints.fields import parse_name, parse_value


@pytest.mark.parametrize("name", ["", " ", " api", "api ", "a\nb", "a\0", "x" * 129, 5, None, "\udfff"])
def test_bad_name(name: object) -> None:
    """A component or key is a short printable text with no blank around it."""
    with pytest.raises(Invalid) as refused:
        parse_name(name, "component")
    assert refused.value.field == "component"


@pytest.mark.parametrize("name", ["api", "packages/api", "env.FEATURE_X", "http proxy", "ключ", "x" * 128])
def test_good_name(name: str) -> None:
    """Paths, dots, inner blanks and any script are fine."""
    assert parse_name(name, "component") == name


@pytest.mark.parametrize(
    "value",
    [
        "docker compose build router",
        "two\nlines\tand a tab",
        "日本語 ✓",
        {"type": "command", "cmd": "make"},
        {"type": "command", "cmd": "make", "shell": "bash"},
        {"type": "path", "abs": "/work/api"},
        {"type": "path", "abs": "C:\\code\\api", "os": ["windows"]},
        {"type": "template", "format": "jinja", "body": "{{ x }}"},
        {"type": "template", "format": "mustache", "body": "{{x}}", "defaults": {"x": ""}},
        {"type": "json", "data": None},
        {"type": "json", "data": {"a": [1, 2.5, True, "text", {"b": {}}]}},
    ],
)
def test_value_is_kept(value: Any) -> None:
    """Every kind of value, in its normal form, is kept as it is."""
    assert parse_value(value) == value


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("", "value"),
        (None, "value"),
        (7, "value"),
        (["make"], "value"),
        ("nul\0", "value"),
        ("escape \x1b[31m", "value"),
        ("carriage\rreturn", "value"),
        ("half a pair \ud800", "value"),
        ({}, "value.type"),
        ({"type": "script"}, "value.type"),
        ({"type": ["command"]}, "value.type"),
        ({"type": "command"}, "value.cmd"),
        ({"type": "command", "cmd": ""}, "value.cmd"),
        ({"type": "command", "cmd": "x", "shell": "fish"}, "value.shell"),
        ({"type": "command", "cmd": "x", "cwd": "/"}, "value.cwd"),
        ({"type": "path", "abs": "src"}, "value.abs"),
        ({"type": "path", "abs": "/work/../etc"}, "value.abs"),
        ({"type": "path", "abs": 5}, "value.abs"),
        ({"type": "path", "abs": "/x", "os": "linux"}, "value.os"),
        ({"type": "path", "abs": "/x", "os": ["beos"]}, "value.os[0]"),
        ({"type": "template", "body": "x"}, "value.format"),
        ({"type": "template", "format": "erb", "body": "x"}, "value.format"),
        ({"type": "template", "format": "jinja"}, "value.body"),
        ({"type": "template", "format": "jinja", "body": "x", "defaults": ["a"]}, "value.defaults"),
        ({"type": "template", "format": "jinja", "body": "x", "defaults": {"a": 1}}, "value.defaults.a"),
        ({"type": "json"}, "value.data"),
        ({"type": "json", "data": float("nan")}, "value.data"),
        ({"type": "json", "data": [float("inf")]}, "value.data"),
        ({"type": "json", "data": 10**40}, "value.data"),
        ({"type": "json", "data": {"a": "\0"}}, "value.data"),
        ({"type": "json", "data": {"\0": "a"}}, "value.data"),
        ({"type": "json", "data": b"bytes"}, "value.data"),
    ],
)
def test_bad_value_is_refused_by_field(value: Any, field: str) -> None:
    """A value that breaks a rule is refused, and the refusal names the field."""
    with pytest.raises(Invalid) as refused:
        parse_value(value)
    assert refused.value.field == field


def test_unknown_field_is_named() -> None:
    """A misspelt field is not lost in silence."""
    with pytest.raises(Invalid, match=r"value\.comand: is not a known field"):
        parse_value({"type": "command", "cmd": "x", "comand": "y"})


def test_path_is_normalized() -> None:
    """A path has one spelling."""
    assert parse_value({"type": "path", "abs": "/work//api/./src/"})["abs"] == "/work/api/src"


def test_path_systems_are_deduplicated() -> None:
    """Naming a system twice says it once."""
    assert parse_value({"type": "path", "abs": "/x", "os": ["linux", "darwin", "linux"]})["os"] == ["linux", "darwin"]


def test_size_is_counted_in_bytes_of_json() -> None:
    """The limit is on the encoded value: letters of several bytes and quotes count as what they take."""
    room = limits.MAX_VALUE_BYTES - 2
    assert parse_value("x" * room) == "x" * room
    for too_large in ("x" * (room + 1), "x" * 9_000, "é" * (room // 2 + 1), "\\" * (room // 2 + 1)):
        with pytest.raises(Invalid, match="8192 bytes"):
            parse_value(too_large)


def test_typed_value_counts_whole() -> None:
    """All fields together must fit."""
    half = "x" * (limits.MAX_VALUE_BYTES // 2)
    with pytest.raises(Invalid, match="bytes as JSON"):
        parse_value({"type": "template", "format": "jinja", "body": half, "defaults": {"a": half}})


def test_depth_is_bounded() -> None:
    """Nesting has a limit far below what would exhaust the stack."""
    data: Any = "leaf"
    for _ in range(100_000):
        data = [data]
    with pytest.raises(Invalid, match="nest"):
        parse_value({"type": "json", "data": data})


def test_large_data_is_given_up_early() -> None:
    """A megabyte of JSON is refused long before its end."""

    class Counted(list[Any]):
        steps = 0

        def __iter__(self) -> Any:
            for item in super().__iter__():
                Counted.steps += 1
                yield item

    with pytest.raises(Invalid, match="8192 bytes"):
        parse_value({"type": "json", "data": Counted([0] * 1_000_000)})
    assert Counted.steps <= limits.MAX_VALUE_BYTES + 1


def test_too_many_defaults() -> None:
    """The number of a template's defaults is bounded."""
    with pytest.raises(Invalid) as refused:
        parse_value({"type": "template", "format": "jinja", "body": "x", "defaults": {f"n{i}": "" for i in range(101)}})
    assert refused.value.field == "value.defaults"


def test_value_shares_nothing_with_its_input() -> None:
    """What the caller does to its own object later does not reach the store."""
    data: dict[str, Any] = {"a": [1]}
    value = parse_value({"type": "json", "data": data})
    data["a"].append(2)
    assert value["data"] == {"a": [1]}


def test_refusal_does_not_repeat_the_value() -> None:
    """An error may be logged, so it never holds what was refused."""
    with pytest.raises(Invalid) as refused:
        parse_value("hush-hush\0")
    assert "hush" not in str(refused.value.to_json())
