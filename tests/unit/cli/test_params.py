from __future__ import annotations

import pytest

from nudge.cli import params
from nudge.cli.params import parse_globs
from nudge.notes import chat_exports


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("a,b", ["a", "b"]),
        ("{a,b}/**,c", ["{a,b}/**", "c"]),
        ("{a,{b,c}},d", ["{a,{b,c}}", "d"]),
        ("a},b", ["a}", "b"]),
        ("{a,b", ["{a,b"]),
        (" a , ", ["a"]),
    ],
)
def test_commas_inside_braces_belong_to_the_glob(text: str, patterns: list[str]) -> None:
    """Only a comma outside braces separates two globs."""
    assert parse_globs(text) == patterns


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("api", "api"),
        ("github.com/acme/api", "github.com/acme/api"),
        ("git:github.com/Acme/api", "github.com/acme/api"),
        ("https://github.com/acme/api.git", "github.com/acme/api"),
        ("git@github.com:acme/api.git", "github.com/acme/api"),
        ("file:///srv/api/.git", "/srv/api"),
        ("team:ops", "team:ops"),
    ],
)
def test_a_repo_is_named_in_any_form(text: str, name: str) -> None:
    """Its name, short or full, or its URL; any other name is taken as it is."""
    assert params.parse_repo(text) == name


@pytest.mark.parametrize("text", ["", ",", " , "])
def test_no_glob_at_all_is_refused(text: str) -> None:
    """An empty variable in a script must not make a hint global."""
    with pytest.raises(ValueError, match="needs a value"):
        parse_globs(text)


def test_the_words_of_the_options_are_those_of_the_domain() -> None:
    """The terminal does not import it, which would take longer than most commands."""
    from nudge.notes.transfer_cli import FORMATS

    assert FORMATS == (chat_exports.CLAUDE, chat_exports.CHATGPT, chat_exports.SLACK)
