"""The caller's context: resolved from directory, environment and metadata, and parsed from the wire."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nudge.core import limits
from nudge.core.context import Context, caller_cwd, is_project, project_of, requested_env, resolve
from nudge.core.errors import Invalid


class TestProject:
    @pytest.mark.parametrize(
        ("repo", "cwd", "project"),
        [
            ("git:org/repo", "/work/elsewhere", "org/repo"),
            ("git:example.com/a/b", None, "example.com/a/b"),
            ("git:solo", None, "solo"),
            ("file:///work/Proj/.git", "/work/Proj/src", "/work/proj"),
            ("file:///srv/repo.git", None, "/srv/repo"),
            ("file:///", "/", None),
            (None, "/work/thing", "/work/thing"),
            (None, "/work/thing/", "/work/thing"),
            (None, "C:\\Work\\Thing", "c:/work/thing"),
            (None, "/", None),
            (None, "", None),
            (None, None, None),
        ],
    )
    def test_identity(self, repo: str | None, cwd: str | None, project: str | None) -> None:
        """The repository's whole identity; with no repository, the directory's path."""
        assert project_of(repo, cwd) == project

    @pytest.mark.parametrize(
        ("project", "name", "expected"),
        [
            ("acme/api", "api", True),
            ("acme/api", "acme/api", True),
            ("acme/api", "git:acme/api", True),
            ("acme/api", "me/api", False),
            ("/work/api", "api", True),
            ("/work/api", "/work/api", True),
            ("/home/work/api", "/work/api", False),
        ],
    )
    def test_name(self, project: str, name: str, expected: bool) -> None:
        """A project is named by the end of its identity, in whole parts; a path only by all of it."""
        assert is_project(project, name) is expected


class TestResolve:
    def test_no_git_at_all(self, tmp_path: Path) -> None:
        """Outside a repository both are unknown, and the directory names the project."""
        context = resolve(str(tmp_path))
        assert (context.repo, context.branch, context.env) == (None, None, None)
        assert (context.cwd, context.project) == (str(tmp_path), str(tmp_path).casefold())

    def test_own_directory_is_the_default(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """With no argument it is the process's own directory; a relative one starts there."""
        (tmp_path / "sub").mkdir()
        monkeypatch.chdir(tmp_path)
        assert resolve().cwd == os.getcwd()
        assert resolve("sub/../sub/.").cwd == os.path.join(os.getcwd(), "sub")

    def test_the_shells_name_of_a_directory_counts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Behind a link `$PWD` is what people write into a scope; one that is out of date, or relative, says
        nothing."""
        (tmp_path / "real" / "sub").mkdir(parents=True)
        link = tmp_path / "link"
        link.symlink_to(tmp_path / "real")
        monkeypatch.chdir(link / "sub")
        for name, cwd in (
            ("link/sub", "link/sub"),
            ("link//sub/.", "link/sub"),
            ("real", "real/sub"),
            ("gone", "real/sub"),
        ):
            monkeypatch.setenv("PWD", str(tmp_path / name))
            assert resolve().cwd == caller_cwd(None) == os.path.realpath(tmp_path) + "/" + cwd
        for pwd in (".", "", "link/sub", "\udcff", "/" + "x" * 5_000):
            monkeypatch.setenv("PWD", pwd)
            assert resolve().cwd == os.getcwd()

    def test_cwd_gone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A process whose directory was removed has no cwd, and no error."""

        def gone() -> str:
            raise FileNotFoundError

        monkeypatch.setattr(os, "getcwd", gone)
        context = resolve()
        assert (context.cwd, context.repo, context.branch, context.project) == (None, None, None, None)
        assert resolve("relative").cwd is None

    @pytest.mark.parametrize(
        ("platform", "name"), [("linux",) * 2, ("darwin",) * 2, ("win32", "windows"), ("aix", None)]
    )
    def test_operating_system(self, monkeypatch: pytest.MonkeyPatch, platform: str, name: str | None) -> None:
        """The three names that scopes know; any other system is unknown."""
        monkeypatch.setattr(sys, "platform", platform)
        assert resolve("/").os == name


class TestParse:
    def test_round_trip(self) -> None:
        """What is known survives the wire, normalized; what is not known is not there."""
        plain = {"branch": "dev", "os": "linux", "project": "repo", "files_open": ["a.py"]}
        wire = Context.parse(
            {**plain, "cwd": "/work//x/", "repo": "git@h:Org/Repo.git", "env": {"A": "1", "B": None}}
        ).to_json()
        assert wire == {**plain, "cwd": "/work/x", "repo": "git:h/org/repo", "env": {"A": "1"}}
        assert Context.parse(wire).to_json() == wire

    @pytest.mark.parametrize(
        "raw", [None, {}, {"cwd": None, "repo": "", "branch": "", "env": None}, {"branch": "HEAD"}]
    )
    def test_unknown_is_allowed(self, raw: Any) -> None:
        """Null, empty, and the HEAD that git prints for no branch all mean unknown."""
        assert Context.parse(raw).to_json() == {}

    def test_long_environment_values_are_accepted(self) -> None:
        """A caller may send its whole environment, and `PATH` is long."""
        assert Context.parse({"env": {"PATH": "x" * 50_000}}).env == {"PATH": "x" * 50_000}

    @pytest.mark.parametrize(
        ("raw", "field"),
        [
            ("text", "context"),
            ([], "context"),
            ({"pwd": "/"}, "context.pwd"),
            ({3: "/"}, "context.3"),
            ({"cwd": 1}, "context.cwd"),
            ({"cwd": "relative"}, "context.cwd"),
            ({"cwd": "/a/../b"}, "context.cwd"),
            ({"cwd": "C:\\a\\..\\b"}, "context.cwd"),
            ({"cwd": "/a\nb"}, "context.cwd"),
            ({"cwd": "/\ud800"}, "context.cwd"),
            ({"cwd": "/" + "x" * limits.MAX_PATH_CHARS}, "context.cwd"),
            ({"repo": "nonsense"}, "context.repo"),
            ({"repo": []}, "context.repo"),
            ({"branch": False}, "context.branch"),
            ({"branch": "x" * (limits.MAX_BRANCH_CHARS + 1)}, "context.branch"),
            ({"os": "beos"}, "context.os"),
            ({"os": ["linux"]}, "context.os"),
            ({"env": "A=1"}, "context.env"),
            ({"env": {"A": 1}}, "context.env.A"),
            ({"project": {}}, "context.project"),
            ({"files_open": "a.py"}, "context.files_open"),
            ({"files_open": ["a.py", 1]}, "context.files_open[1]"),
            ({"files_open": ["x"] * (limits.MAX_FILES_OPEN + 1)}, "context.files_open"),
        ],
    )
    def test_what_breaks_a_rule_is_named(self, raw: Any, field: str) -> None:
        """E_INVALID carries the field that is wrong, and only that."""
        with pytest.raises(Invalid) as caught:
            Context.parse(raw)
        assert caught.value.field == field

    def test_the_field_prefix_is_the_callers(self) -> None:
        """A default context that arrives in a header is not called `context`."""
        with pytest.raises(Invalid) as caught:
            Context.parse({"os": "x"}, field="defaults")
        assert caught.value.field == "defaults.os"


class TestLocated:
    """Where a call is: what it names, completed by what its caller sends."""

    HERE = Context(cwd="/w", repo="git:h/o/w", branch="main", project="h/o/w", env={"A": "1"})

    def test_each_field_is_taken_from_the_nearer_one(self) -> None:
        """What is named wins; the rest comes from the caller; neither side changes."""
        named = Context(branch="dev", env={})
        assert named.located(self.HERE).to_json() == {**self.HERE.to_json(), "branch": "dev", "env": {}}
        assert (named.cwd, self.HERE.branch) == (None, "main")

    def test_another_directory_has_no_repo_of_the_callers(self) -> None:
        """Nor its branch or project; also where the directory is on no disk here."""
        there = Context(cwd="/elsewhere").located(self.HERE)
        assert there.to_json() == {"cwd": "/elsewhere", "project": "/elsewhere", "env": {"A": "1"}}

    def test_another_repo_is_another_project(self) -> None:
        """The project is that of the repo that is named."""
        assert Context(repo="git:h/o/x").located(self.HERE).project == "h/o/x"
        assert Context(repo="git:h/o/x", project="p").located(self.HERE).project == "p"

    @pytest.mark.parametrize("named", [{}, {"branch": "topic"}, {"os": "linux"}, {"repo": "git:h/o/x"}])
    @pytest.mark.parametrize("is_named", [True, False])
    def test_what_is_missing_is_that_of_the_directory(
        self, tmp_path: Path, named: dict[str, Any], is_named: bool
    ) -> None:
        """Whatever else is given, by the call or by its caller."""
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/dev\n")
        (tmp_path / ".git" / "config").write_text('[remote "origin"]\n\turl = git@h:o/here\n')
        known = Context(cwd=str(tmp_path), **named)
        result = known.located(Context()) if is_named else Context().located(known)
        assert (result.repo, result.branch) == (named.get("repo", "git:h/o/here"), named.get("branch", "dev"))
        assert result.project == (result.repo or "").removeprefix("git:")


def test_requested_env() -> None:
    """What a scope asks for and nothing else; whatever a variable holds can be sent."""
    environ = {"CI": "1", "LONG": "x" * 5_000, "ODD": "a\udcffb", "SECRET": "s"}
    assert requested_env(environ, ["CI", "NONE", "ODD"]) == {"CI": "1", "NONE": None, "ODD": "a?b"}
    assert len(requested_env(environ, ["LONG"])["LONG"] or "") == limits.MAX_ENV_VALUE_CHARS + 1


class TestCallerCwd:
    def test_precedence(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """What is named, then the process's own, where a relative one starts."""
        monkeypatch.chdir(tmp_path)
        assert caller_cwd("/explicit/") == "/explicit"
        assert caller_cwd(None) == os.getcwd()
        assert caller_cwd("../sub") == f"{os.path.dirname(os.getcwd())}/sub"

    @pytest.mark.parametrize("cwd", ["C:\\", "C:/", "C:\\Work\\", "/", "//", "/a/./b//"])
    def test_what_it_answers_parses(self, cwd: str) -> None:
        """A server accepts any directory that a client found, a root too."""
        result = caller_cwd(cwd)
        assert Context.parse({"cwd": result}).cwd == result


def test_importing_it_is_cheap() -> None:
    """A hook imports this module on every event: nothing heavy comes along."""
    heavy = "{'dataclasses', 'typing', 'pathlib', 'subprocess', 'logging', 'inspect', 'asyncio', 'urllib', 're'}"
    code = (
        "import sys; before = set(sys.modules); import nudge.core.context;"
        f" print(({heavy} & set(sys.modules)) - before)"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
