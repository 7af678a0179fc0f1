"""YAML as manifests are written in it: every style gives the same nodes, with the right lines, within limits."""

from __future__ import annotations

from textwrap import dedent

import pytest
import yaml

from nudge.core import limits
from nudge.manifests.formats import YamlNode, parse_yaml


def plain(node: YamlNode) -> object:
    """The node as plain values, as a YAML loader that keeps every scalar a string gives them."""
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    if isinstance(node.value, dict):
        return {name: plain(child) for name, child in node.value.items()}
    return node.value


def count_nodes(node: YamlNode) -> int:
    return 1 + sum(map(count_nodes, node.items or node.fields.values()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("services: {web: {build: .}, db: {image: postgres}}", {"web": {"build": "."}, "db": {"image": "postgres"}}),
        ("services:\n  web: {build: .}", {"web": {"build": "."}}),
        ("services: {\n  web: {\n    build: .\n  }\n}", {"web": {"build": "."}}),
        ('"services": {"web": {"build": "."}}', {"web": {"build": "."}}),
        ("? services\n: web:\n    build: .", {"web": {"build": "."}}),
        ("services:\n  - a\n  - [b, {c: d}]", ["a", ["b", {"c": "d"}]]),
        ("services:\n- a\n- b", ["a", "b"]),
        ("services: |\n  one\n\n  two\n", "one\n\ntwo"),
        ("services: >-\n  one\n  two\n", "one two"),
        ("services: one\n  two", "one two"),
        ("services: 'it''s'", "it's"),
        ('services: "a\\tb\\u00e9"', "a\tb\u00e9"),
        ("services: yes # not a boolean", "yes"),
        ("services:", ""),
        ("services: !!python/object/apply:os.system [ls]", ["ls"]),
        ("--- # first\nservices: a\n---\nservices: b\n", "a"),
        ("services: {[a, b]: c, {d: e}: f, g: h}", {"g": "h"}),
    ],
)
def test_styles(text: str, expected: object) -> None:
    """Block and flow collections, quoted and complex keys, every kind of scalar; tags construct nothing."""
    assert plain(parse_yaml(text).get("services")) == expected


MERGED = """
    base: &base
      build: .
      image: none
    more: &more {image: other, ports: ["80"]}
    services:
      web:
        <<: *base
        image: web
      all:
        <<: [*base, *more]
      copy: *base
      list: [*more]
    """


def test_anchors_and_merge_keys_agree_with_a_loader() -> None:
    """An explicit key wins over a merged one, and the first of several sources over the next."""
    assert plain(parse_yaml(dedent(MERGED))) == yaml.load(dedent(MERGED), yaml.SafeLoader)


def test_lines() -> None:
    """A value has the line of its key, an item of a list its own, a merged key the line where it is written."""
    document = parse_yaml(dedent(MERGED).lstrip())
    services = document.get("services")
    assert {name: node.line for name, node in document.fields.items()} == {"base": 1, "more": 4, "services": 5}
    assert {name: node.line for name, node in services.fields.items()} == {"web": 6, "all": 9, "copy": 11, "list": 12}
    assert services.get("web", "build").line == 2 and services.get("web", "image").line == 8
    assert [item.line for item in parse_yaml("- a\n-\n  b: |\n    c\n").items] == [1, 3]


def test_missing_path() -> None:
    """A path that leaves the document is an empty scalar, whatever stands in its way."""
    document = parse_yaml("a: [b]\nc: d")
    assert [document.get(*path).text for path in (("x",), ("a", "b"), ("c", "d", "e"))] == ["", "", ""]
    assert parse_yaml("").get("a").text == ""


@pytest.mark.parametrize(
    "text", ["a: [", "a: b: c", "\ta: b", "a: 'b", "{a: b]", "a: \x07", "a: b\n]", "a: *b", "%YAML 9.9\n---\na"]
)
def test_malformed_text(text: str) -> None:
    """Whatever the parser raises is a ValueError here, without the file's own text in it."""
    with pytest.raises(ValueError) as error:
        parse_yaml(text)
    assert str(error.value).isprintable()


def test_nodes_are_counted_as_if_aliases_were_copies() -> None:
    """The limit holds for what a reader of the document would walk, and the count itself stays small."""
    levels = limits.MAX_YAML_NODES.bit_length()
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, levels))
    with pytest.raises(ValueError, match="aliases counted as copies"):
        parse_yaml(bomb)
    harmless = parse_yaml("\n".join(bomb.splitlines()[:8]))
    assert len(list(harmless.texts())) == 2**8 - 1
    assert harmless.size == count_nodes(harmless)


@pytest.mark.parametrize("nest", ["[{}]", "{{a: {}}}"])
def test_depth_limit(nest: str) -> None:
    """Collections up to the limit are read, one more is refused; an alias counts with the depth of its target."""
    text = "x"
    for _ in range(limits.MAX_YAML_DEPTH):
        text = nest.format(text)
    assert list(parse_yaml(text).texts()) == ["x"]
    with pytest.raises(ValueError, match="nested too deep"):
        parse_yaml(nest.format(text))
    with pytest.raises(ValueError, match="nested too deep"):
        parse_yaml(f"[&a [[x]], {'[' * (limits.MAX_YAML_DEPTH - 2)}*a{']' * (limits.MAX_YAML_DEPTH - 2)}]")


def test_both_parsers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without libyaml the pure Python parser gives the same nodes and lines."""
    expected = parse_yaml(dedent(MERGED))
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert parse_yaml(dedent(MERGED)) == expected
