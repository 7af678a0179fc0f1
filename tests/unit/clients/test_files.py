from __future__ import annotations

import os
from pathlib import Path

import pytest

from nudge.clients import files, ledger
from nudge.clients.ledger import Ledger, Mark
from nudge.errors import Invalid, StorageFailed

from .conftest import tree


def test_what_is_written_is_read(home: Path) -> None:
    """Line ends as they are, and the mode, and nothing beside the file."""
    path = home / "a.json"
    path.write_bytes(b"{\r\n}")
    path.chmod(0o640)
    assert files.read(str(path)) == "{\r\n}"
    files.write(str(path), "{\r\n\t}")
    assert tree(home) == {"a.json": b"{\r\n\t}"} and path.stat().st_mode & 0o777 == 0o640


def test_a_new_file_is_private_and_gets_its_directories(home: Path) -> None:
    """And both can be taken away again."""
    path = str(home / "x" / "y" / "a.json")
    assert files.missing_directories(path) == [str(home / "x"), str(home / "x" / "y")]
    files.write(path, "{}")
    assert os.stat(path).st_mode & 0o777 == 0o600
    files.remove(path, [str(home / "x"), str(home / "x" / "y")])
    assert tree(home) == {}


def test_a_directory_that_somebody_uses_stays(home: Path) -> None:
    """Made by us, but not empty any more."""
    (home / "x").mkdir()
    (home / "x" / "theirs").touch()
    files.write(str(home / "x" / "a"), "")
    files.remove(str(home / "x" / "a"), [str(home / "x")])
    assert tree(home) == {"x": None, "x/theirs": b""}


def test_links_are_followed_and_kept(home: Path) -> None:
    """Of people who keep their settings in a repository."""
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "a.json").write_text("{}")
    (home / "a.json").symlink_to("dotfiles/a.json")
    files.write(str(home / "a.json"), "{ }")
    assert tree(home) == {"a.json": b"dotfiles/a.json", "dotfiles": None, "dotfiles/a.json": b"{ }"}


def test_a_link_to_nothing_is_kept_too(home: Path) -> None:
    """What it will point to is made and removed; the link is its owner's."""
    (home / "a.json").symlink_to("later/b.json")
    before = tree(home)
    missing = files.missing_directories(str(home / "a.json"))
    files.write(str(home / "a.json"), "{}")
    assert (home / "later" / "b.json").read_text() == "{}"
    files.remove(str(home / "a.json"), missing)
    assert tree(home) == before


def test_a_write_that_fails_leaves_the_old_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole, and with nothing beside it."""
    (home / "a.json").write_text("old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageFailed, match=r"~/a\.json: No space left"):
        files.write(str(home / "a.json"), "new")
    assert tree(home) == {"a.json": b"old"}


def test_what_is_no_text_is_refused(home: Path) -> None:
    """By its name and line, before anything is changed."""
    (home / "a.json").write_bytes(b"{\n\xff}")
    with pytest.raises(Invalid, match=r"~/a\.json, line 2: is not UTF-8"):
        files.read(str(home / "a.json"))
    with pytest.raises(StorageFailed, match="Is a directory"):
        files.read(str(home))


def test_the_ledger_remembers() -> None:
    """For the next process, in a file that only its owner can read; with the last mark the file goes."""
    mark = Mark(ledger.digest("abc"), [(1, 1, "x")], created=False, directories=["/d"])
    Ledger().note("/a", mark)
    kept = Path(os.environ["NUDGE_RUNTIME_DIR"]) / ledger.FILE
    assert Ledger().mark("/a") == mark and kept.stat().st_mode & 0o777 == 0o600
    assert mark.fits("abc") and not mark.fits("abd") and mark.restored("abc") == "axc"
    Ledger().note("/a", None)
    assert Ledger().mark("/a") is None and not kept.exists()


@pytest.mark.parametrize("content", ["", "[]", '{"/a": 3}', '{"/a": {"digest": "x"}}', "\x00"])
def test_a_broken_ledger_is_none(content: str) -> None:
    """It only makes things exact; without it they still work."""
    kept = Path(os.environ["NUDGE_RUNTIME_DIR"])
    kept.mkdir()
    (kept / ledger.FILE).write_text(content)
    assert Ledger().mark("/a") is None
