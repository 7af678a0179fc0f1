from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nudge.core import limits
from nudge.core.errors import Invalid, ScopeInvalid
from nudge.security.absolute_paths import normalize_cwd, normalize_path


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("//a///b/", "/a/b"),
        ("/a/./b/.", "/a/b"),
        ("/a/..b/c..", "/a/..b/c.."),
        ("/with space/é", "/with space/é"),
        ("/a\\b", "/a\\b"),
        ("c:\\code\\x", "c:\\code\\x"),
        ("C:/code/x", "C:/code/x"),
        ("C:\\code\\\\x\\.\\y\\", "C:\\code\\x\\y"),
        ("C:\\code/x", "C:\\code\\x"),
        ("C:/code\\x", "C:/code/x"),
        ("C:\\", "C:\\"),
        ("\\\\server\\share", "\\\\server\\share"),
        ("\\\\server\\share\\\\a\\", "\\\\server\\share\\a"),
    ],
)
def test_absolute_paths_are_tidied_in_their_own_style(raw: str, path: str) -> None:
    """Doubled slashes and `.` go; the drive letter and the kind of slash stay as they were given."""
    assert normalize_path(raw, "value") == path
    assert normalize_path(path, "value") == path


@pytest.mark.parametrize(
    ("raw", "rule"),
    [
        ("", "absolute"),
        ("a/b", "absolute"),
        ("./a", "absolute"),
        ("~/a", "absolute"),
        ("$HOME/a", "absolute"),
        ("c:code", "absolute"),
        ("c:", "absolute"),
        ("\\code", "absolute"),
        ("é:\\code", "absolute"),
        ("/a/../b", "`..`"),
        ("/..", "`..`"),
        ("C:\\a\\..\\b", "`..`"),
        ("C:\\a/../b", "`..`"),
        ("\\\\server\\share\\..", "`..`"),
        ("\\\\server", "share"),
        ("/a\0b", "control"),
        ("/a\nb", "control"),
        ("/a\x1b[31m", "control"),
        ("/a\ud800", "control"),
        ("/" + "a" * limits.MAX_PATH_CHARS, "4096 characters"),
    ],
)
def test_other_paths_are_refused(raw: str, rule: str) -> None:
    """A path value that is relative, climbs, hides a control character or is too long is E_INVALID and names its
    field."""
    with pytest.raises(Invalid) as caught:
        normalize_path(raw, "value")
    assert rule in caught.value.message
    assert caught.value.data["field"] == "value"
    assert not isinstance(caught.value, ScopeInvalid)


@pytest.mark.parametrize(
    ("raw", "cwd"),
    [
        ("/", "/"),
        ("/home/me/", "/home/me"),
        ("//home//me/./x", "/home/me/x"),
        ("/odd\\name", "/odd\\name"),
        ("C:\\Code\\X\\", "c:/Code/X"),
        ("C:\\", "c:/"),
        ("d:/code", "d:/code"),
        ("\\\\Server\\share\\x", "/Server/share/x"),
        ("", ""),
    ],
)
def test_a_directory_is_compared_in_one_form(raw: str, cwd: str) -> None:
    """Forward slashes, none at the end but a root's, drive letter in lower case; doing it twice changes nothing."""
    assert normalize_cwd(raw) == cwd
    assert normalize_cwd(cwd) == cwd


def test_paths_load_the_standard_library_only() -> None:
    """Clients normalize their directory without paying for RE2."""
    root = Path(limits.__file__).parents[2]
    program = (
        "import sys, nudge.security.absolute_paths; print(sorted({'re2', 'typing', "
        "'pathlib', 'dataclasses'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-S", "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
