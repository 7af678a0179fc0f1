"""What the files of the page may not have in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nudge.page import files

_STATIC = Path(files.__file__).parent / "static"
_OWN = sorted(path.name for path in _STATIC.glob("*.js"))
_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|setHTML|srcdoc|document\.write|unsafe(HTML|SVG|Static)|createContextualFragment"
    r"|\beval\(|new Function|javascript:|DOMParser|trustedTypes|(?<!\.)\bstyle="
)
_IMPORTED = re.compile(r"from '([^']+)'")


def test_there_are_modules() -> None:
    assert {"app.js", "known.js", "api.js"} <= set(_OWN)


@pytest.mark.parametrize("name", _OWN)
def test_no_module_makes_markup_of_text(name: str) -> None:
    """Only lit-html's templates make elements, and a value in one is text; the browser would refuse the rest."""
    found = _MARKUP.search((_STATIC / name).read_text())
    assert found is None, found


@pytest.mark.parametrize("name", _OWN)
def test_modules_import_files_of_the_page_only(name: str) -> None:
    """Each import is a file that is there, and nothing is fetched from elsewhere."""
    text = (_STATIC / name).read_text()
    for imported in _IMPORTED.findall(text):
        assert f"{files.PREFIX}{imported.removeprefix('./')}" in files.load(), imported
    assert "//" not in re.sub(r"(^|\s)//.*", "", text, flags=re.MULTILINE), "an address"


def test_the_library_comes_with_its_license() -> None:
    """lit-html is one file, as it was published but for the address of its map, with its terms."""
    library = files.load()[f"{files.PREFIX}vendor/lit-html.js"].content
    terms = files.load()[f"{files.PREFIX}vendor/lit-html.LICENSE.txt"].content
    assert b"BSD-3-Clause" in library and len(library) < 8_000
    assert b"Redistribution and use in source and binary forms" in terms
