"""Which file counts: the one at the top of the clone itself, a regular file with exactly this name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nudge.core import limits
from nudge.repofile.clone import Clone, find_clone, find_twin, read_document, read_now
from tests.contract.repos import clone, git

GOOD = 'version = 1\n[[hint]]\nkey = "api/test"\nvalue = "make test"\nkind = "command"\n'


def found(folder: Path) -> Clone:
    one = find_clone(str(folder))
    assert one is not None
    return one


def refusal(one: Clone) -> str:
    document, _ = read_now(one)
    assert document is not None and not document.hints
    return str(document.problems[0])


@pytest.fixture
def api(tmp_path: Path) -> Path:
    clone(tmp_path / "api")
    (tmp_path / "api/.nudge.toml").write_text(GOOD)
    return tmp_path / "api"


def test_the_file_at_the_top_counts_in_the_whole_clone(api: Path) -> None:
    (api / "src/deep").mkdir(parents=True)
    (api / "src/.nudge.toml").write_text(GOOD)
    assert found(api / "src/deep").file == str(api / ".nudge.toml")
    assert found(api).repo == "git:example.com/org/api"


def test_work_trees_of_one_clone_share_its_git_directory(api: Path, tmp_path: Path) -> None:
    """Wherever they are: Claude Code makes them inside the clone."""
    git(api, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "first")
    git(api, "worktree", "add", "--quiet", str(tmp_path / "other"))
    git(api, "worktree", "add", "--quiet", str(api / ".claude/worktrees/inner"))
    for tree in (tmp_path / "other", api / ".claude/worktrees/inner"):
        assert (found(tree).root, found(tree).git_dir) == (str(tree), found(api).git_dir)


def test_the_file_of_a_submodule_or_a_dependency_does_not_count(api: Path, tmp_path: Path) -> None:
    """Neither a submodule, nor a clone inside the clone, nor a folder that only looks like one."""
    clone(tmp_path / "library")
    git(tmp_path / "library", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-mx")
    git(api, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "library"), "sub")
    clone(api / "vendor/dependency")
    (api / "node_modules/evil").mkdir(parents=True)
    for folder in ("sub", "vendor/dependency", "node_modules/evil"):
        (api / folder / ".nudge.toml").write_text(GOOD)
    assert find_clone(str(api / "sub")) is None
    assert find_clone(str(api / "vendor/dependency")) is None
    assert found(api / "node_modules/evil").file == str(api / ".nudge.toml")


def test_a_submodule_that_was_cloned_alone_is_a_clone(tmp_path: Path) -> None:
    """And a clone below a home directory that is a clone itself (dotfiles) is one."""
    home = Path(clone(tmp_path / "home"))
    clone(home / "work/api")
    assert find_clone(str(home / "work/api")) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        assert found(home / "work/api").root == str(home / "work/api")


def test_a_directory_that_claims_a_repository_does_not_count(api: Path) -> None:
    """A `.git` file that an archive brought, and a bare repository."""
    claim = api.parent / "claim"
    claim.mkdir()
    (claim / ".git").write_text(f"gitdir: {api}/.git\n")
    (claim / ".nudge.toml").write_text(GOOD)
    assert find_clone(str(claim)) is None
    git(api.parent, "init", "--quiet", "--bare", "bare.git")
    assert find_clone(str(api.parent / "bare.git")) is None
    assert find_clone(str(api.parent)) is None


def test_a_link_is_refused(api: Path) -> None:
    """Symlink: to a file outside, to one of the repository, and to nothing."""
    (api / "real.toml").write_text(GOOD)
    for target in ("/etc/hostname", "real.toml", "nowhere"):
        (api / ".nudge.toml").unlink()
        (api / ".nudge.toml").symlink_to(target)
        assert refusal(found(api)) == "is a symbolic link; it must be a file of the repository itself"
        assert read_document(found(api)).problems  # type: ignore[union-attr]


def test_what_is_no_file_is_refused(api: Path) -> None:
    (api / ".nudge.toml").unlink()
    assert read_document(found(api)) is None
    os.mkfifo(api / ".nudge.toml")
    assert refusal(found(api)) == "is not a regular file"
    (api / ".nudge.toml").unlink()
    (api / ".nudge.toml").write_bytes(b"#" * (limits.MAX_REPO_FILE_BYTES + 1))
    assert refusal(found(api)) == "is larger than 64 KiB"


@pytest.mark.parametrize("twin", [".NUDGE.TOML", ".Nudge.toml", ".nu\u200dge.toml", ".nudge.tom\u217c", ".nudge.toml."])
def test_a_case_folding_twin_is_refused(api: Path, twin: str) -> None:
    """.NUDGE.TOML: on some systems the two are one file, and nobody knows which of them was reviewed."""
    name = twin.replace("\u200dge", "\u200ddge")
    (api / name).write_text(GOOD)
    assert "has a twin" in refusal(found(api))
    (api / name).unlink()
    assert read_document(found(api)).hints  # type: ignore[union-attr]


def test_where_the_twin_is_all_there_is_the_file_is_refused() -> None:
    """A system without case opens `.NUDGE.TOML` under our name."""
    assert find_twin([".NUDGE.TOML"]) is not None
    assert find_twin(["readme", ".nudge.toml"]) is None


def test_a_file_is_read_again_when_it_changed(api: Path) -> None:
    """Also to text of the same length, and back."""
    first = read_document(found(api))
    assert read_document(found(api)) is first
    (api / ".nudge.toml").write_text(GOOD.replace("make", "sudo"))
    second = read_document(found(api))
    assert second is not None and second.hints[0].value == "sudo test"
    (api / ".NUDGE.TOML").write_text("")
    assert read_document(found(api)).problems  # type: ignore[union-attr]
