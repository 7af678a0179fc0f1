"""Identity and branch of git repositories: compared with the real `git` wherever git has an answer."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nudge.core import limits
from nudge.core.context import Context, resolve
from nudge.core.repos import is_same_repo, normalize_repo

GIT_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
}


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=folder, env=GIT_ENVIRONMENT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_repo(folder: Path, origin: str | None = None) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    if origin is not None:
        git(folder, "remote", "add", "origin", origin)
    return folder


def git_says(folder: Path) -> tuple[str, str]:
    """Identity and branch in git's own words."""
    branch = git(folder, "rev-parse", "--abbrev-ref", "HEAD")
    if "origin" in git(folder, "remote").split():
        return normalize_repo(git(folder, "remote", "get-url", "origin")), branch
    return normalize_repo(os.path.realpath(folder / git(folder, "rev-parse", "--git-common-dir"))), branch


def resolved(folder: Path) -> tuple[str | None, str | None]:
    context = resolve(str(folder))
    return context.repo, context.branch


class TestRepoIdentity:
    @pytest.mark.parametrize(
        "raw",
        [
            "git:host/org/repo",
            "GIT:Host/Org/Repo",
            "git@host:org/repo.git",
            "git@host:/Org/Repo.git/",
            "host:org/repo",
            "[git@host:22]:org/repo.git",
            "ssh://git@host:22/org/repo.git",
            "git+ssh://git@host/org/repo",
            "https://user@host/org/repo",
            "https://user:word@host/org/repo.git/",
            "HTTPS://Host/org//repo.git",
            "http://host:8080/org/repo/.git",
            "git://host/org/repo.git",
            "  https://host/org/repo.git  ",
        ],
    )
    def test_every_way_to_clone_is_one_repository(self, raw: str) -> None:
        """A repository has one name, however it was cloned and whatever the case; the port is no part of it."""
        assert normalize_repo(raw) == "git:host/org/repo"

    @pytest.mark.parametrize(
        ("raw", "identity"),
        [
            ("git:Org/Repo", "git:org/repo"),
            ("git:group/sub/repo", "git:group/sub/repo"),
            ("git:Example.com./org/repo", "git:example.com/org/repo"),
            ("git:localhost/org/repo", "git:localhost/org/repo"),
            ("git:host:3000/org/repo", "git:host/org/repo"),
            ("git:example.com:3000/org/repo.git", "git:example.com/org/repo"),
            ("git@[::1]:org/repo.git", "git:[::1]/org/repo"),
            ("ssh://git@[::1]:22/org/repo.git", "git:[::1]/org/repo"),
            ("git:[::1]:22/org/repo", "git:[::1]/org/repo"),
            ("git@gitlab.example:a/b/c.git", "git:gitlab.example/a/b/c"),
            ("https://gist.example/ABC.git", "git:gist.example/abc"),
        ],
    )
    def test_the_identity_has_the_host(self, raw: str, identity: str) -> None:
        """A written one has a host when it has three parts or more and the first is one: groups nest."""
        assert normalize_repo(raw) == identity

    @pytest.mark.parametrize(
        ("one", "other", "expected"),
        [
            ("git:x/api", "git:github.com/x/api", True),
            ("git:x/api", "git:gitlab.com/x/api", True),
            ("git:x/api", "git:server/x/api", True),
            ("git:github.com/x/api", "git:gitlab.com/x/api", False),
            ("git:x/api", "git:gitlab.com/group/x/api", False),
            ("git:group/x/api", "git:gitlab.com/group/x/api", True),
            ("git:x/api", "git:github.com/y/api", False),
            ("git:api", "git:x/api", False),
            ("file:///git/x/api", "git:x/api", False),
        ],
    )
    def test_an_identity_without_a_host_is_for_any_host(self, one: str, other: str, expected: bool) -> None:
        """`git:org/repo` matches that path on every host; `x/api` on two hosts are two repositories."""
        assert is_same_repo(one, other) is is_same_repo(other, one) is expected

    def test_spaces_are_one_name_in_both_spellings(self) -> None:
        """A URL writes a space as %20, ssh writes it out."""
        assert (
            normalize_repo("git@host:My Org/repo")
            == normalize_repo("https://host/My%20Org/repo")
            == "git:host/my%20org/repo"
        )

    @pytest.mark.parametrize(
        ("raw", "identity"),
        [
            ("/srv/Git/Repo.git", "file:///srv/Git/Repo.git"),
            ("/srv//git/./x/../Repo/", "file:///srv/git/Repo"),
            ("file:///srv/Git/Repo/", "file:///srv/Git/Repo"),
            ("file:///srv/Repo/.git", "file:///srv/Repo"),
            ("/srv/Repo/.git/", "file:///srv/Repo"),
            ("/srv/Repo/.git/.git", "file:///srv/Repo"),
            ("C:\\Work\\Repo\\.git", "file:///C:/Work/Repo"),
            ("/.git", "file:///"),
            ("/srv/Repo.git", "file:///srv/Repo.git"),
            ("FILE://localhost/srv/Repo", "file:///srv/Repo"),
            ("//srv/Repo", "file:///srv/Repo"),
            ("/with a space/Repo", "file:///with a space/Repo"),
            ("/odd:name/Repo", "file:///odd:name/Repo"),
            ("C:\\Work\\Repo", "file:///C:/Work/Repo"),
            ("C:\\", "file:///C:"),
            ("file:///C:/Work/Repo", "file:///C:/Work/Repo"),
            ("/", "file:///"),
        ],
    )
    def test_local_repositories_are_file_urls(self, raw: str, identity: str) -> None:
        """A path is its own name, in its own case."""
        assert normalize_repo(raw) == identity

    @pytest.mark.parametrize(
        "raw",
        [
            *(
                "",
                " ",
                "org/repo",
                "repo",
                "../repo",
                "./a:b",
                ":x",
                "https://host",
                "https://host/.git",
                "https:///org/repo",
                "git@:org/repo",
                "git:",
                "git:.git",
            ),
            *(
                "git@host:../x",
                "git@host:a/...git",
                "file://elsewhere/x",
                "file://",
                "git:a\nb",
                "git:a\x00",
                "/bad\udcff",
            ),
            "git:" + "x" * limits.MAX_REPO_CHARS,
        ],
    )
    def test_nonsense_is_refused(self, raw: str) -> None:
        """What names no repository raises ValueError."""
        with pytest.raises(ValueError):
            normalize_repo(raw)

    @example(":]:[")
    @example("h:a/..git")
    @example("git::/a:b/c/d")
    @example("git:[a.b/[c:d/e/f")
    @example("/./C:\\x")
    @given(st.text(alphabet="aBİΣ/\\:.git@[] %~\t-C") | st.text())
    def test_a_normal_form_is_its_own_normal_form(self, raw: str) -> None:
        """Normalizing twice changes nothing, for any text at all."""
        try:
            once = normalize_repo(raw)
        except ValueError:
            return
        assert normalize_repo(once) == once
        assert once.startswith(("git:", "file:///"))

    @pytest.mark.parametrize(
        ("origin", "project"),
        [
            ("git@Example.com:Acme/api.git", "example.com/acme/api"),
            ("https://user@example.com:8443/acme/api", "example.com/acme/api"),
            ("ssh://git@example.com:22/acme/api.git", "example.com/acme/api"),
            ("git@other.org:acme/api", "other.org/acme/api"),
            ("git@github-work:acme/api", "github.com/acme/api"),
            ("git@unknown:acme/api", "unknown/acme/api"),
            ("git:acme/api", "git.acme.example/acme/api"),
            ("https://work/acme/api", "work.acme.example/acme/api"),
            ("git@tabbed:acme/api", "t.example/acme/api"),
            ("git@quoted:acme/api", "t.example/acme/api"),
            ("/srv/git/api.git", "/srv/git/api"),
        ],
    )
    def test_two_hosts_are_two_projects(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str, project: str
    ) -> None:
        """The identity has the host, however the repository is cloned; an ssh alias stands for its `HostName`."""
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / ".ssh").mkdir()
        (tmp_path / ".ssh" / "config").write_text(
            "Host a b\n  HostName c.d\nHost github-work\n  HostName github.com\n"
            "Host git work\n  HostName=%h.acme.example\n"
            'Match user x\n  HostName no.example\nHOST\ttabbed "quoted"\n\thostname\t"T.Example"\n'
        )
        here = resolve(str(make_repo(tmp_path / "repo", origin)))
        assert here.project == project
        assert here.repo == (f"git:{project}" if origin[0] != "/" else "file:///srv/git/api.git")


class TestReadRepo:
    @pytest.mark.parametrize(
        "origin",
        [
            "git@github.com:Org/Repo.git",
            "https://user@host/org/repo/",
            "ssh://git@host:22/org/repo.git",
            "/srv/git/x y.git",
            'odd"quote;and#hash\\back:slash/repo',
        ],
    )
    def test_origin_and_branch_as_git_says(self, tmp_path: Path, origin: str) -> None:
        """Repo and branch are those that `git remote get-url` and `git rev-parse` print."""
        repo = make_repo(tmp_path / "repo", origin)
        git(repo, "checkout", "-q", "-b", "feature/x/y")
        below = repo / "a" / "b"
        below.mkdir(parents=True)
        assert resolved(below) == git_says(below) == (normalize_repo(origin), "feature/x/y")

    def test_path_with_spaces_and_no_remote(self, tmp_path: Path) -> None:
        """With no origin the common git directory names the repository; another remote does not."""
        repo = make_repo(tmp_path / "my work" / "the repo")
        git(repo, "remote", "add", "upstream", "git@host:other/people.git")
        assert resolved(repo) == git_says(repo)
        assert resolve(str(repo)).repo == f"file://{os.path.realpath(repo)}"
        assert resolve(str(repo)).project == os.path.realpath(repo).casefold()

    def test_detached_head_has_no_branch(self, tmp_path: Path) -> None:
        """Where git says HEAD there is no branch."""
        repo = make_repo(tmp_path / "repo")
        git(repo, "checkout", "-q", "--detach")
        assert git_says(repo)[1] == "HEAD"
        assert resolve(str(repo)).branch is None

    def test_branch_before_the_first_commit(self, tmp_path: Path) -> None:
        """A new repository is on its first branch already."""
        git(tmp_path, "init", "-q", "-b", "trunk")
        assert resolve(str(tmp_path)).branch == git(tmp_path, "symbolic-ref", "--short", "HEAD") == "trunk"

    @pytest.mark.parametrize("origin", [None, "https://host/org/repo", "../upstream"])
    def test_worktrees_are_the_same_repository(self, tmp_path: Path, origin: str | None) -> None:
        """A linked work tree has the main one's identity and its own branch."""
        repo = make_repo(tmp_path / "repo", origin)
        linked = tmp_path / "far" / "away"
        git(repo, "worktree", "add", "-q", "-b", "side", str(linked))
        assert resolve(str(linked)).repo == resolve(str(repo)).repo is not None
        assert (resolve(str(linked)).branch, resolve(str(repo)).branch) == ("side", "main")
        assert resolve(str(linked)).project == resolve(str(repo)).project

    def test_relative_origin_is_read_from_the_work_tree(self, tmp_path: Path) -> None:
        """`../upstream` is a path beside the repository, wherever below it the caller stands."""
        repo = make_repo(tmp_path / "repo", "../upstream")
        (repo / "deep").mkdir()
        assert resolve(str(repo / "deep")).repo == f"file://{os.path.realpath(tmp_path)}/upstream"

    @pytest.mark.parametrize("origin", ["https://host/org/part.git", None])
    def test_submodule_is_a_repository_of_its_own(self, tmp_path: Path, origin: str | None) -> None:
        """Inside a submodule the submodule counts, found through its `.git` file."""
        part = make_repo(tmp_path / "part")
        whole = make_repo(tmp_path / "whole", "https://host/org/whole")
        git(whole, "submodule", "--quiet", "add", str(part), "lib/part")
        inside = whole / "lib" / "part"
        git(inside, "remote", *(["set-url", "origin", origin] if origin else ["remove", "origin"]))
        assert resolved(inside) == git_says(inside)
        assert resolve(str(whole)).repo == "git:host/org/whole"

    @pytest.mark.parametrize("origin", [None, "https://host/org/repo.git", "../upstream"])
    def test_a_bare_repository_is_one(self, tmp_path: Path, origin: str | None) -> None:
        """In it and below it, by its origin or by its place; a clone of it, and a work tree of it, have the same
        identity."""
        bare = tmp_path / "repo.git"
        git(tmp_path, "clone", "-q", "--bare", str(make_repo(tmp_path / "first")), str(bare))
        git(bare, "remote", *(["set-url", "origin", origin] if origin else ["remove", "origin"]))
        assert resolved(bare) == resolved(bare / "refs" / "heads")
        if origin is None:
            git(tmp_path, "clone", "-q", str(bare), "second")
            assert (
                resolved(bare)
                == git_says(bare)
                == resolved(tmp_path / "second")
                == (f"file://{os.path.realpath(bare)}", "main")
            )
        git(bare, "worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"))
        assert resolve(str(tmp_path / "tree")).repo == resolve(str(bare)).repo

    def test_a_clone_of_a_local_repository_is_the_same_repository(self, tmp_path: Path) -> None:
        """The one has no origin, the other has the first one's directory as its own."""
        first = make_repo(tmp_path / "first")
        git(tmp_path, "clone", "-q", str(first), "second")
        assert resolve(str(tmp_path / "second")).repo == resolve(str(first)).repo == f"file://{os.path.realpath(first)}"

    def test_inside_the_git_directory_it_is_the_work_trees_repository(self, tmp_path: Path) -> None:
        """`.git` looks like a bare repository and is none."""
        repo = make_repo(tmp_path / "repo", "../upstream")
        assert resolved(repo / ".git" / "refs") == resolved(repo)

    def test_a_file_called_head_makes_no_repository(self, tmp_path: Path) -> None:
        """Only with what git keeps beside it."""
        (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
        (tmp_path / "refs").mkdir()
        assert resolved(tmp_path) == (None, None)

    def test_separate_git_dir(self, tmp_path: Path) -> None:
        """Its git directory does not say where the work tree is, so that anybody's `.git` file could name it: its place
        is its identity, in every directory of it."""
        work = tmp_path / "work"
        (work / "sub").mkdir(parents=True)
        git(work, "init", "-q", "-b", "main", "--separate-git-dir", str(tmp_path / "store"))
        git(work, "remote", "add", "origin", "https://host/org/repo")
        assert resolved(work) == resolved(work / "sub") == (f"file://{os.path.realpath(work)}", "main")

    def test_through_a_link_it_is_the_same_repository(self, tmp_path: Path) -> None:
        """The repository is found where a linked directory really is; the cwd stays as the caller calls it."""
        repo = make_repo(tmp_path / "repo")
        (repo / "sub").mkdir()
        link = tmp_path / "link"
        link.symlink_to(repo / "sub")
        assert resolved(link) == resolved(repo) == git_says(link)
        assert resolve(str(link)).cwd == str(link)

    def test_a_directory_named_git_without_a_head_is_passed_by(self, tmp_path: Path) -> None:
        """As git does, go on upwards where `.git` holds no repository."""
        repo = make_repo(tmp_path / "repo", "https://host/org/repo")
        (repo / "sub" / ".git").mkdir(parents=True)
        assert resolved(repo / "sub") == git_says(repo / "sub") == ("git:host/org/repo", "main")

    def test_the_environment_does_not_choose_the_repository(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`GIT_DIR` of the process that asks says nothing about the directory asked for."""
        other = make_repo(tmp_path / "other", "https://host/org/other")
        monkeypatch.setenv("GIT_DIR", str(other / ".git"))
        repo = make_repo(tmp_path / "repo", "https://host/org/repo")
        assert resolve(str(repo)).repo == "git:host/org/repo"


VICTIM = "https://host/org/victim"


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    """A clone with everything that git's own tests of `safe.bareRepository` have: a bare repository among its files, a
    linked work tree beside it and a submodule in it."""
    outer = make_repo(tmp_path / "outer", "https://host/org/outer")
    bare = outer / "docs"
    git(outer, "clone", "-q", "--bare", str(make_repo(tmp_path / "first")), str(bare))
    git(bare, "remote", "set-url", "origin", VICTIM)
    git(outer, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "linked"))
    git(outer, "submodule", "--quiet", "add", str(tmp_path / "first"), "part")
    git(outer / "part", "remote", "set-url", "origin", "https://host/org/part")
    return outer


class TestNobodyChoosesWhoHeIs:
    """What a clone or an archive brings does not say which repository it is."""

    @pytest.mark.parametrize("below", ["docs", "docs/refs/heads", "docs/objects"])
    def test_below_a_work_tree_there_is_no_bare_repository(self, outer: Path, below: str) -> None:
        """A clone can bring a directory that looks like one, whose config names any repository. git refuses it where
        `safe.bareRepository` is `explicit`."""
        with pytest.raises(subprocess.CalledProcessError):
            git(outer / below, "-c", "safe.bareRepository=explicit", "rev-parse")
        assert resolved(outer / below) == resolved(outer) == ("git:host/org/outer", "main")
        assert resolve(str(outer / below)).root == str(outer)

    def test_nor_below_a_linked_work_tree_or_a_submodule(self, outer: Path, tmp_path: Path) -> None:
        """They are work trees as well."""
        for tree, identity in ((tmp_path / "linked", "git:host/org/outer"), (outer / "part", "git:host/org/part")):
            git(tree, "clone", "-q", "--bare", str(tmp_path / "first"), "docs")
            assert resolve(str(tree / "docs")).repo == resolve(str(tree)).repo == identity

    def test_nor_below_a_work_tree_with_a_separate_git_directory(self, tmp_path: Path) -> None:
        """Whose `.git` file does not count, and is a work tree's all the same."""
        first = make_repo(tmp_path / "first", VICTIM)
        git(tmp_path, "init", "-q", "-b", "main", "--separate-git-dir", str(tmp_path / "store"), "work")
        git(tmp_path, "clone", "-q", "--bare", str(first), "work/docs")
        assert resolved(tmp_path / "work" / "docs") == resolved(tmp_path / "work")

    @pytest.mark.parametrize(
        ("below", "identity"),
        [
            (".git", ("git:host/org/outer", "main")),
            (".git/objects", ("git:host/org/outer", "main")),
            (".git/worktrees/linked", ("git:host/org/outer", "topic")),
            (".git/modules/part", ("git:host/org/part", "main")),
            (".git/modules/part/refs", ("git:host/org/part", "main")),
        ],
    )
    def test_inside_of_what_git_keeps_it_is_as_git_says(
        self, outer: Path, below: str, identity: tuple[str, str]
    ) -> None:
        """git accepts these even where `safe.bareRepository` is `explicit`: a clone brings no `.git`."""
        assert resolved(outer / below) == git_says(outer / below) == identity

    def test_linked_work_trees_and_submodules_count(self, outer: Path, tmp_path: Path) -> None:
        """Their git directories name them: in the file `gitdir`, in `core.worktree`, and in `config.worktree` where a
        sparse checkout moved it."""
        assert resolved(tmp_path / "linked") == ("git:host/org/outer", "topic")
        assert resolved(outer / "part") == ("git:host/org/part", "main")
        git(outer / "part", "sparse-checkout", "init")
        assert "worktree" not in git(outer, "config", "--file", ".git/modules/part/config", "--list").lower().replace(
            "extensions.worktreeconfig", ""
        )
        assert resolved(outer / "part") == ("git:host/org/part", "main")
        git(outer / "part", "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
        assert resolved(tmp_path / "side") == ("git:host/org/part", "side")

    def test_a_work_tree_of_a_bare_repository_counts(self, tmp_path: Path) -> None:
        """Also with a relative path back, as newer versions of git write it."""
        bare = tmp_path / "project" / ".bare"
        git(tmp_path, "clone", "-q", "--bare", str(make_repo(tmp_path / "first")), str(bare))
        git(bare, "remote", "set-url", "origin", "https://host/org/repo")
        tree = tmp_path / "project" / "main"
        git(bare, "worktree", "add", "-q", str(tree))
        assert resolved(tree) == ("git:host/org/repo", "main")
        (bare / "worktrees" / "main" / "gitdir").write_text("../../../main/.git\n")
        assert resolved(tree) == ("git:host/org/repo", "main")

    @pytest.mark.parametrize(
        "target", ["{victim}/.git", "../../victim/.git", "{victim}/.git/worktrees/tree", "own", "../docs", "{bare}"]
    )
    def test_a_git_file_counts_only_where_its_target_points_back(
        self, outer: Path, tmp_path: Path, target: str
    ) -> None:
        """An archive can bring one that names any directory, another clone of this machine among them: below a work
        tree the repository around it wins, elsewhere its place is its identity."""
        victim = make_repo(tmp_path / "victim", VICTIM)
        git(victim, "worktree", "add", "-q", "-b", "tree", str(tmp_path / "tree"))
        git(tmp_path, "clone", "-q", "--bare", str(victim), "bare")
        for unpacked in (outer / "archive", tmp_path / "archive"):
            unpacked.mkdir()
            git(unpacked, "clone", "-q", "--bare", str(victim), "own")
            (unpacked / ".git").write_text(f"gitdir: {target.format(victim=victim, bare=tmp_path / 'bare')}\n")
            (unpacked / "src").mkdir()
        for folder in ("archive", "archive/src", "archive/own"):
            assert resolved(outer / folder) == resolved(outer)
            assert resolve(str(tmp_path / folder)).repo != resolve(str(victim)).repo

    def test_a_clone_in_a_work_tree_is_a_repository_of_its_own(self, outer: Path, tmp_path: Path) -> None:
        """As git has it: whoever ran `git clone` there meant it, and a clone cannot bring a `.git` directory."""
        git(outer, "clone", "-q", str(tmp_path / "first"), "vendor")
        git(outer / "vendor", "remote", "set-url", "origin", "https://host/org/vendor")
        assert resolved(outer / "vendor") == ("git:host/org/vendor", "main")


ORIGIN = '[remote "origin"]\n\turl = git@host:org/repo.git\n'


class TestConfigSyntax:
    @pytest.mark.parametrize(
        "config",
        [
            ORIGIN,
            '[remote "origin"] url=git@host:org/repo.git',
            '[REMOTE   "origin"]\r\n\tURL = git@host:org/repo.git   \r\n',
            "[remote.origin]\nurl = git@host:org/repo.git\n",
            '[remote "origin"]\n\turl = "git@host:org/repo.git" # a comment\n',
            '[remote "origin"]\n\turl = git@host:org/repo.git ; a comment\n',
            '[remote "origin"]\n\turl = git@host:"org/re"po.git\n',
            '[remote "origin"]\n\turl = git@host:org/\\\nrepo.git\n',
            '[remote "origin"]\n\turl = "git@host:org/\\\nrepo.git"\n',
            '[remote "origin"]\n\turl = git@host:org/repo.git\n\turl = git@host:second/one.git\n',
            '[remote "origin"]\n\tpushurl = git@host:no/no.git\n\turl = git@host:org/repo.git\n',
            '[remote "Origin"]\n\turl = git@host:no/no.git\n' + ORIGIN,
            '[remote "up"]\n\turl = git@host:no/no.git\n' + ORIGIN,
            (
                '# [remote "origin"]\n;url = no\n[remote "origin"] # url = '
                "git@host:no/no.git \\\n\turl = git@host:org/repo.git\n"
            ),
            '[alias]\n\tx = "!f() { \\\n[remote \\"origin\\"]\\\nurl = git@host:no/no.git"\n' + ORIGIN,
            "\ufeff" + ORIGIN,
            '[branch "odd]name"]\n\tremote = x\n' + ORIGIN,
        ],
    )
    def test_read_as_git_reads_it(self, tmp_path: Path, config: str) -> None:
        """Quotes, comments, continued lines, case, repeated keys: git and Nudge find the same origin."""
        repo = make_repo(tmp_path / "repo")
        path = repo / ".git" / "config"
        path.write_bytes(config.encode())
        urls = git(repo, "config", "--file", str(path), "--get-all", "remote.origin.url").split("\n")
        assert resolve(str(repo)).repo == normalize_repo(urls[0]) == "git:host/org/repo"

    def test_blanks_count_inside_quotes_only(self, tmp_path: Path) -> None:
        """A path that ends in a blank must be quoted, and is then kept whole."""
        repo = make_repo(tmp_path / "repo", "/srv/ends in blank ")
        assert git(repo, "config", "--null", "remote.origin.url") == "/srv/ends in blank \0"
        assert resolve(str(repo)).repo == "file:///srv/ends in blank "

    def test_blanks_before_a_comment_do_not_count(self, tmp_path: Path) -> None:
        """A comment is cut off together with the blanks that set it apart."""
        repo = make_repo(tmp_path / "repo")
        (repo / ".git" / "config").write_text('[remote "origin"]\n\turl = /srv/the repo \t # mirrored\n')
        assert resolve(str(repo)).repo == "file:///srv/the repo"


BROKEN: list[tuple[str, bytes]] = [
    ("HEAD", b""),
    ("HEAD", b"\xff\xfe\x00"),
    ("HEAD", b"ref: refs/heads/\n"),
    ("HEAD", b"ref: refs/heads/.invalid\n"),
    ("HEAD", b"ref: refs/heads/bad\xff\n"),
    ("HEAD", b"ref: refs/heads/" + b"x" * 5_000),
    ("HEAD", b"ref: refs/remotes/origin/main\n"),
    ("config", b""),
    ("config", b"[remote"),
    ("config", b'[remote "origin"]\n\turl\n'),
    ("config", b'[remote "origin"]\n\turl = "unfinished'),
    ("config", b'[remote "origin"]\n\turl = ends\\'),
    ("config", b'[remote "origin"]\n\turl = https://host\n'),
    ("config", b'[remote "origin"]\n\turl = git@host:\xff\n'),
    ("config", b"\x00" * 4_096),
    ("commondir", b"nowhere\x00\n"),
    ("commondir", b"/nowhere/at/all\n"),
]


class TestBrokenRepositories:
    @pytest.mark.parametrize(("name", "content"), BROKEN)
    def test_never_raises_and_always_parses(self, tmp_path: Path, name: str, content: bytes) -> None:
        """Whatever the files hold, the context resolves, and a server accepts it."""
        repo = make_repo(tmp_path / "repo", "https://host/org/repo")
        (repo / ".git" / name).write_bytes(content)
        wire = resolve(str(repo)).to_json()
        assert Context.parse(wire).to_json() == wire
        assert name != "HEAD" or "branch" not in wire

    def test_an_origin_that_names_nothing_falls_back(self, tmp_path: Path) -> None:
        """An unusable origin counts as none: the common directory names the repository."""
        repo = make_repo(tmp_path / "repo", "https://host")
        assert resolve(str(repo)).repo == f"file://{os.path.realpath(repo)}"

    @pytest.mark.parametrize("pointer", ["", "gitdir:", "gitdir: ", "nonsense", "gitdir: /nowhere", "gitdir: \x00"])
    def test_a_broken_pointer_is_no_repository(self, tmp_path: Path, pointer: str) -> None:
        """A `.git` file that leads nowhere makes no repository, and takes no directory out of the one around it."""
        repo = make_repo(tmp_path / "repo", "https://host/org/repo")
        for folder in (repo / "sub", tmp_path / "alone"):
            folder.mkdir()
            (folder / ".git").write_text(pointer)
        assert resolved(repo / "sub") == resolved(repo)
        assert resolved(tmp_path / "alone") == (None, None)

    def test_a_fifo_in_the_way_blocks_nobody(self, tmp_path: Path) -> None:
        """Opening a FIFO would wait for a writer for ever; it is read as empty instead."""
        repo = make_repo(tmp_path / "repo")
        (repo / ".git" / "config").unlink()
        os.mkfifo(repo / ".git" / "config")
        assert resolve(str(repo)).repo == f"file://{os.path.realpath(repo)}"

    def test_files_that_are_directories(self, tmp_path: Path) -> None:
        """A directory where a file belongs reads as nothing."""
        repo = make_repo(tmp_path / "repo")
        (repo / ".git" / "config").unlink()
        (repo / ".git" / "config").mkdir()
        assert resolved(repo) == (f"file://{os.path.realpath(repo)}", "main")

    @pytest.mark.parametrize("name", [b"line\nbreak", b"bytes\xff"])
    def test_a_directory_that_cannot_be_sent_is_unknown(self, tmp_path: Path, name: bytes) -> None:
        """A name that is no text for the wire leaves cwd unknown, and the origin known."""
        repo = make_repo(Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)), "https://host/org/repo")
        wire = resolve(str(repo)).to_json()
        assert "cwd" not in wire
        assert (wire["repo"], wire["branch"]) == ("git:host/org/repo", "main")
        assert Context.parse(wire).to_json() == wire
