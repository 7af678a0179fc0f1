"""Whose command it is, which one is believed, and that the answer is always the same."""

from __future__ import annotations

import json
import random
from pathlib import Path

from nudge.manifests import RepoScan, commands_of_directory, recipe_of, scan_repo
from tests.unit.manifests.repos import commands, reasons, write_repo

TESTED = json.dumps({"name": "app", "scripts": {"test": "jest"}})


def test_runner_then_script_then_language(tmp_path: Path) -> None:
    """Each kind of manifest answers only what the ones before it do not."""
    root = write_repo(
        tmp_path,
        {
            "Makefile": "test:\n",
            "package.json": json.dumps({"name": "app", "scripts": {"test": "jest", "lint": "eslint"}}),
            "go.mod": "module example.com/app\n",
            "compose.yaml": "services:\n  app:\n    build: .\n",
        },
    )
    assert reasons(root) == {
        "app test": "Makefile:1",
        "app lint": "package.json:1",
        "app build": "go.mod:1",
        "app format": "go.mod:1",
        "app run": "compose.yaml:1",
    }


def test_a_directory_has_its_own_commands_and_their_recipes(tmp_path: Path) -> None:
    """What a target, script or executable runs, and whether in an environment of its tool's own; guesses and what lies
    deeper are left out."""
    root = write_repo(
        tmp_path,
        {
            "Makefile": "build:\n\tcc a.c\n\ntest: build\n\tuv run pytest\n\n\tdate\nclean:\n\trm -f a\n",
            "package.json": json.dumps({"name": "app", "scripts": {"lint": "eslint ."}}, indent=1),
            "scripts/format": "#!/bin/sh\nblack .\n",
            "web/Makefile": "run:\n\tnode .\n",
            "go.mod": "module example.com/app\n",
        },
    )
    (root / "scripts/format").chmod(0o755)
    result = {command.key: command for command in commands_of_directory(root)}
    assert {key: command.cmd for key, command in result.items()} == {
        "build": "make build",
        "test": "make test",
        "lint": "npm run lint",
        "format": "scripts/format",
    }
    test, lint, script = (recipe_of(root, result[key]) for key in ("test", "lint", "format"))
    assert test.text == "test: build\n\tuv run pytest\n\n\tdate" and test.is_plain
    assert lint.text.strip() == '"lint": "eslint ."' and not lint.is_plain
    assert "black ." in script.text and script.is_plain


def test_makefile_belongs_to_the_package_beside_it(tmp_path: Path) -> None:
    """One package in the directory names it, in the spelling of its manifest."""
    python, rust = '[project]\nname = "pydantic_core"\n', '[package]\nname = "pydantic-core"\n'
    result = commands(tmp_path / "checkout", {"Makefile": "lint:\n", "pyproject.toml": python, "Cargo.toml": rust})
    assert result["pydantic_core lint"] == "make lint"
    assert {name.split()[0] for name in result} == {"pydantic_core"}


def test_several_packages_in_one_directory(tmp_path: Path) -> None:
    """Each keeps its own commands; what is nobody's in particular belongs to the directory."""
    files = {
        "Makefile": "test:\n",
        "pyproject.toml": '[project]\nname = "api"\n',
        "pytest.ini": "",
        "package.json": TESTED,
    }
    assert commands(tmp_path / "repo", files) == {
        "repo test": "make test",
        "api test": "pytest",
        "app test": "npm test",
    }


def test_same_name_twice(tmp_path: Path) -> None:
    """The shallower package keeps the name, the other is called by its path: neither is lost."""
    assert commands(tmp_path, {"a/x/package.json": TESTED, "web/package.json": TESTED, "z/package.json": TESTED}) == {
        "app test": "npm --prefix web test",
        "z test": "npm --prefix z test",
        "a/x test": "npm --prefix a/x test",
    }


def test_root_can_be_named(tmp_path: Path) -> None:
    """A worktree's directory has a name of its own; the caller knows the repo's."""
    root = write_repo(tmp_path / "fix-123", {"Makefile": "test:\n"})
    assert [row.component for row in scan_repo(root, name="shop").commands] == ["shop"]
    assert [row.component for row in scan_repo(root).commands] == ["fix-123"]


def test_cwd_is_where_the_package_is(tmp_path: Path) -> None:
    """`cwd` tells where the package lives; the command itself runs from the root."""
    root = write_repo(tmp_path / "r", {"Makefile": "test:\n", "web/package.json": TESTED})
    assert {row.component: row.cwd for row in scan_repo(root).commands} == {"r": ".", "app": "web"}


def test_same_tree_same_answer(tmp_path: Path) -> None:
    """The order in which files were made, or the disk lists them, changes nothing; neither does asking again."""
    package = {"Makefile": "test:\nlint:\n", "package.json": TESTED}
    files = {f"{letter}/{name}": text for letter in "dbca" for name, text in package.items()}
    answers = []
    for seed in range(3):
        names = list(files)
        random.Random(seed).shuffle(names)
        root = write_repo(tmp_path / str(seed) / "repo", {name: files[name] for name in names})
        answers += [scan_repo(root).commands, scan_repo(root).commands]
    assert all(answer == answers[0] for answer in answers)
    assert len(answers[0]) == 8


def test_empty_and_missing_root(tmp_path: Path) -> None:
    """Nothing there is no commands; a root that is gone is a problem, not an error."""
    assert scan_repo(tmp_path) == RepoScan([], [], [])
    assert scan_repo(tmp_path / "gone") == RepoScan([], [".: No such file or directory"], ["."])
