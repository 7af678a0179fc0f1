from __future__ import annotations

from typing import Any

import pytest

from nudge.core.context import Context
from nudge.core.errors import Invalid, ScopeInvalid
from nudge.hints.scope import parse_scope

EVERYTHING = Context(
    cwd="/work/http-proxy", repo="git:org/x", branch="dev", os="linux", env={"CI": "1", "MODE": "fast"}
)


@pytest.mark.parametrize(
    ("scope", "reason"),
    [
        ({}, "no scope: applies everywhere"),
        ({"cwd_glob": ["/other/**", "**/http-proxy*"]}, "cwd matched **/http-proxy*"),
        ({"repo": "git:org/x"}, "repo git:org/x matched"),
        ({"repo": ["git:org/y", "git@github.com:Org/X.git"]}, "repo git:org/x matched"),
        ({"branch": ["main", "dev"]}, "branch=dev allowed"),
        ({"branch": ["d*"]}, "branch=dev allowed"),
        ({"os": ["linux"]}, "os=linux allowed"),
        ({"env_required": ["CI"]}, "env CI set"),
        ({"env_required": ["MODE", "CI"]}, "env CI, MODE set"),
        ({"env_match": {"MODE": "fast"}}, "env MODE matched"),
        ({"env_match": {"MODE": ["slow", "fast"]}}, "env MODE matched"),
    ],
)
def test_condition_holds(scope: dict[str, Any], reason: str) -> None:
    """Each condition alone lets a matching context pass and says why."""
    verdict = parse_scope(scope).check(EVERYTHING)
    assert verdict.eligible
    assert verdict.reasons == [reason]


@pytest.mark.parametrize(
    ("scope", "reason"),
    [
        ({"cwd_glob": ["/other/**"]}, "cwd=/work/http-proxy, needs /other/**"),
        ({"repo": "git:org/y"}, "repo=git:org/x, needs git:org/y"),
        ({"branch": ["main"]}, "branch=dev, needs main"),
        ({"branch": ["main", "hotfix/*", "Dev"]}, "branch=dev, needs Dev, hotfix/* or main"),
        ({"os": ["windows", "darwin"]}, "os=linux, needs darwin or windows"),
        ({"env_required": ["CI", "NOPE"]}, "env NOPE not set"),
        ({"env_match": {"MODE": "slow"}}, "env MODE has another value"),
        ({"env_match": {"NOPE": "1", "MODE": "fast"}}, "env NOPE not set"),
    ],
)
def test_condition_fails(scope: dict[str, Any], reason: str) -> None:
    """Each condition alone stops another context and says what it needs."""
    verdict = parse_scope(scope).check(EVERYTHING)
    assert not verdict.eligible
    assert verdict.reasons == [reason]


@pytest.mark.parametrize(
    ("scope", "reason"),
    [
        ({"cwd_glob": ["**/x"]}, "cwd unknown, needs **/x"),
        ({"repo": "git:org/x"}, "repo unknown, needs git:org/x"),
        ({"branch": ["dev", "main"]}, "branch unknown, needs dev or main"),
        ({"branch": ["**"]}, "branch unknown, needs **"),
        ({"os": ["linux"]}, "os unknown, needs linux"),
        ({"env_required": ["CI"]}, "env unknown, needs CI"),
        ({"env_match": {"MODE": "fast"}}, "env unknown, needs MODE"),
    ],
)
def test_unknown_is_not_enough(scope: dict[str, Any], reason: str) -> None:
    """What the context does not say cannot satisfy a condition, and the reason says that it is unknown."""
    verdict = parse_scope(scope).check(Context())
    assert not verdict.eligible
    assert verdict.reasons == [reason]


def test_all_conditions_must_hold() -> None:
    """One failing condition is enough, and only failing ones are told."""
    scope = parse_scope({"branch": ["dev"], "os": ["darwin"], "repo": "git:org/x", "env_required": ["NOPE"]})
    assert scope.check(EVERYTHING).reasons == ["os=linux, needs darwin", "env NOPE not set"]
    assert len(parse_scope({"branch": ["dev"], "os": ["linux"]}).check(EVERYTHING).reasons) == 2


def test_empty_variable_is_set() -> None:
    """A variable that is set to nothing exists."""
    assert parse_scope({"env_required": ["CI"]}).check(Context(env={"CI": ""})).eligible
    assert parse_scope({"env_match": {"CI": ""}}).check(Context(env={"CI": ""})).eligible


def test_no_value_of_the_environment_is_told() -> None:
    """Reasons name variables and never what is in them, theirs or the scope's."""
    scope = parse_scope({"env_match": {"MODE": "wanted"}})
    result = str(scope.check(Context(env={"MODE": "actual"})).reasons)
    assert "wanted" not in result and "actual" not in result


def test_windows_directory() -> None:
    """A directory and a pattern meet whatever their slashes and the case of the drive."""
    scope = parse_scope({"cwd_glob": ["C:\\code\\**"]})
    assert scope.check(Context(cwd="c:\\code\\api")).eligible
    assert scope.check(Context(cwd="C:/code/api")).eligible


def test_long_needs_are_cut() -> None:
    """A reason stays a phrase when a scope lists many names."""
    verdict = parse_scope({"branch": [f"b{i}" for i in range(9)]}).check(EVERYTHING)
    assert verdict.reasons == ["branch=dev, needs b0, b1, b2, b3 or 5 more"]


def test_normal_form() -> None:
    """Sorted, each thing once, empties gone, repos by identity, a single one as plain text."""
    scope = parse_scope(
        {
            "branch": ["main", "dev", "main"],
            "repo": ["https://github.com/Org/Repo.git", "git:github.com/org/repo"],
            "cwd_glob": ["**/b/", "**/a"],
            "os": [],
            "env_match": {"B": ["2", "1", "2"], "A": ["1"], "C": []},
        }
    )
    assert scope.fields == {
        "cwd_glob": ["**/a", "**/b"],
        "repo": "git:github.com/org/repo",
        "branch": ["dev", "main"],
        "env_match": {"A": "1", "B": ["1", "2"]},
    }
    assert scope.size == 4
    assert scope.env_names == {"A", "B"}


def test_key_is_the_identity() -> None:
    """Two ways to write one scope have one key; two scopes have two."""
    one, same = (
        parse_scope({"branch": ["a", "b"], "os": ["linux"]}),
        parse_scope({"os": ["linux"], "branch": ["b", "a"]}),
    )
    assert one.key == same.key
    assert one.key != parse_scope({"branch": ["a"], "os": ["linux"]}).key
    assert parse_scope({}).key == "{}"


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        ("x", "meta.scope"),
        (None, "meta.scope"),
        ({"cwd": ["x"]}, "meta.scope.cwd"),
        ({"cwd_glob": "**/x"}, "meta.scope.cwd_glob"),
        ({"cwd_glob": [1]}, "meta.scope.cwd_glob[0]"),
        ({"branch": "dev"}, "meta.scope.branch"),
        ({"branch": [f"b{i}" for i in range(21)]}, "meta.scope.branch"),
        ({"os": "linux"}, "meta.scope.os"),
        ({"os": ["linux", "beos"]}, "meta.scope.os[1]"),
        ({"env_required": "CI"}, "meta.scope.env_required"),
        ({"env_required": ["A=B"]}, "meta.scope.env_required[0]"),
        ({"env_required": [""]}, "meta.scope.env_required[0]"),
        ({"env_required": ["ö" * 22]}, "meta.scope.env_required[0]"),
        ({"env_match": ["CI"]}, "meta.scope.env_match"),
        ({"env_match": {"CI": 1}}, "meta.scope.env_match.CI"),
        ({"env_match": {"CI": [None]}}, "meta.scope.env_match.CI[0]"),
        ({"env_match": {f"N{i}": "1" for i in range(21)}}, "meta.scope.env_match"),
        ({"repo": 7}, "meta.scope.repo"),
        ({"repo": ""}, "meta.scope.repo"),
        ({"repo": ["git:org/x", "no repo at all"]}, "meta.scope.repo[1]"),
    ],
)
def test_bad_scope_is_refused_by_field(scope: Any, field: str) -> None:
    """A scope of the wrong shape is refused, and the refusal names the field."""
    with pytest.raises(Invalid) as refused:
        parse_scope(scope)
    assert refused.value.field == field
    assert refused.value.reason == "E_INVALID"


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        ({"cwd_glob": ["**/ok", "/work/../etc"]}, "meta.scope.cwd_glob[1]"),
        ({"cwd_glob": ["/work/[a"]}, "meta.scope.cwd_glob[0]"),
        ({"cwd_glob": ["src/*"]}, "meta.scope.cwd_glob[0]"),
        ({"cwd_glob": [""]}, "meta.scope.cwd_glob[0]"),
        ({"cwd_glob": ["/" + "x" * 300]}, "meta.scope.cwd_glob[0]"),
        ({"cwd_glob": ["/a\0"]}, "meta.scope.cwd_glob[0]"),
        ({"branch": ["hotfix/["]}, "meta.scope.branch[0]"),
        ({"branch": [""]}, "meta.scope.branch[0]"),
    ],
)
def test_bad_pattern_is_a_bad_scope(scope: Any, field: str) -> None:
    """An illegal glob, or one that climbs, has its own error."""
    with pytest.raises(ScopeInvalid) as refused:
        parse_scope(scope)
    assert refused.value.field == field
