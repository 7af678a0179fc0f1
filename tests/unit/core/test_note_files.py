"""The files that a note is about: how they are given, and which paths its text names."""

from __future__ import annotations

import pytest

from nudge.core.errors import Invalid
from nudge.core.note_files import check_files, find_named, given_files


def test_files_are_stored_relative_to_the_repo() -> None:
    """With slashes, each once; an absolute path below the caller's clone loses its beginning."""
    given = ["./src//money.ts", "src/money.ts", r"src\tax\vat.ts", "/home/me/api/Makefile"]
    assert check_files(given, "/home/me/api/") == ["src/money.ts", "src/tax/vat.ts", "Makefile"]
    assert check_files(["C:\\api\\src\\a.py"], "C:/api") == ["src/a.py"]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("src/a.py", "files"),
        (["a"] * 21, "files"),
        (["a.py", "../b.py"], "files[1]"),
        (["src/../../b.py"], "files[0]"),
        (["/etc/passwd"], "files[0]"),
        (["/home/me/api-old/a.py"], "files[0]"),
        (["/home/me/api"], "files[0]"),
        (["."], "files[0]"),
        ([" "], "files[0]"),
        ([3], "files[0]"),
        (["a\nb"], "files[0]"),
        (["\ud800.py"], "files[0]"),
        (["a" * 513], "files[0]"),
    ],
)
def test_what_is_no_path_in_the_repo_is_refused(value: object, field: str) -> None:
    """The error names the item."""
    with pytest.raises(Invalid) as error:
        check_files(value, "/home/me/api")
    assert error.value.data["field"] == field


def test_an_absolute_path_without_a_clone_is_refused() -> None:
    """Nobody knows what it is relative to."""
    with pytest.raises(Invalid):
        check_files(["/home/me/api/a.py"])


def test_paths_are_found_in_a_text() -> None:
    """With a slash, or with the suffix of a source file; no address of the web, no absolute path, no version."""
    text = "See src/money.ts, ./docs/adr/0007.md and celeryconfig.py:12. Not https://x.io/a.py, /etc/a.conf or 1.2.3."
    assert find_named(text) == ["src/money.ts", "docs/adr/0007.md", "celeryconfig.py"]


def test_other_metadata_of_that_name_are_no_files() -> None:
    """Whoever used the name before keeps what is there."""
    assert given_files({"files": 3}) == given_files({"files": [1]}) == given_files({}) == []
