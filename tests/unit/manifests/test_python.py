"""Python projects: the tools that are configured, the runner that is locked, and tox, nox and task tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from .repos import commands, reasons, write_repo

PROJECT = '[project]\nname = "lib"\n'


@pytest.mark.parametrize(
    ("lock", "root", "nested"),
    [
        ("none", "pytest", "cd pkg && pytest"),
        ("uv.lock", "uv run pytest", "uv run --directory pkg pytest"),
        ("poetry.lock", "poetry run pytest", "poetry -C pkg run pytest"),
        ("pdm.lock", "pdm run pytest", "cd pkg && pdm run pytest"),
        ("Pipfile", "pipenv run pytest", "cd pkg && pipenv run pytest"),
    ],
)
def test_lock_file_names_the_runner(tmp_path: Path, lock: str, root: str, nested: str) -> None:
    """The lock file, here or above, says what starts the tools."""
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        "pkg/pyproject.toml": PROJECT,
        "pkg/pytest.ini": "",
        lock: "",
    }
    assert commands(tmp_path / "x", files) == {"x test": root, "lib test": nested}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"pyproject.toml": PROJECT + '[dependency-groups]\ndev = ["pytest>=8"]\n'}, {"lib test": "pytest"}),
        (
            {"pyproject.toml": PROJECT + '[project.optional-dependencies]\ndev = ["ruff"]\n'},
            {"lib lint": "ruff check ."},
        ),
        ({"pyproject.toml": PROJECT + '[dependency-groups]\ndev = ["pytest-cov"]\n'}, {}),
        ({"pyproject.toml": PROJECT, "tests/conftest.py": ""}, {"lib test": "pytest"}),
        (
            {"setup.cfg": "[metadata]\nname = lib\n[tool:pytest]\n[flake8]\n"},
            {"lib test": "pytest", "lib lint": "flake8"},
        ),
        ({"pyproject.toml": PROJECT + "[tool.mypy]\nstrict = true\n"}, {"lib lint": "mypy ."}),
        ({"pyproject.toml": PROJECT + '[tool.mypy]\nfiles = ["lib"]\n'}, {"lib lint": "mypy"}),
        ({"pyproject.toml": PROJECT + "[tool.ruff]\nline-length = 90\n"}, {"lib lint": "ruff check ."}),
        ({"pyproject.toml": PROJECT + "[tool.black]\n"}, {"lib format": "black ."}),
        (
            {
                "ruff.toml": '[format]\nquote-style = "double"\n',
                "setup.py": 'from setuptools import setup\nsetup(name="lib")\n',
            },
            {"lib lint": "ruff check .", "lib format": "ruff format .", "lib build": "python -m build"},
        ),
        (
            {
                "pyproject.toml": PROJECT,
                ".pre-commit-config.yaml": "repos:\n- hooks:\n  - id: ruff\n  - id: ruff-format\n",
            },
            {"lib format": "ruff format ."},
        ),
        (
            {
                "pyproject.toml": (
                    '[tool.poetry]\nname = "lib"\n[tool.poetry.scripts]\nserve = "lib:main"\n[build-system]\n'
                )
            },
            {"lib run": "poetry run serve", "lib build": "poetry build"},
        ),
        ({"pyproject.toml": PROJECT + '[project.scripts]\nb = "b:b"\na = "a:a"\n'}, {}),
        ({"pyproject.toml": PROJECT + '[build-system]\nbuild-backend = "maturin"\n'}, {"lib build": "maturin develop"}),
        ({"manage.py": ""}, {"x test": "python manage.py test", "x run": "python manage.py runserver"}),
        ({"tests/conftest.py": "", "README.md": ""}, {}),
    ],
)
def test_configured_tools(tmp_path: Path, files: dict[str, str], expected: dict[str, str]) -> None:
    """A tool is typed where the project says that it uses it, and a formatter only where it really formats."""
    assert commands(tmp_path / "x", files) == expected


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('[tool.poe.tasks]\ntest = "pytest"\n', "uv run poe test"),
        ('[tool.taskipy.tasks]\ntest = "pytest"\n', "uv run task test"),
        ('[tool.pdm.scripts]\ntest = {cmd = "pytest"}\n', "pdm run test"),
        ('[tool.hatch.envs.default.scripts]\ntest = "pytest"\n', "hatch run test"),
        ('[tool.hatch.envs.dev.scripts]\ntest = "pytest"\n', "hatch run dev:test"),
        ('[tool.rye.scripts]\ntest = "pytest"\n', "rye run test"),
        ('[tool.pixi.tasks]\ntest = "pytest"\n', "pixi run test"),
    ],
)
def test_task_tables(tmp_path: Path, table: str, expected: str) -> None:
    """Named tasks win over the tool's default, typed the way their runner wants them."""
    root = write_repo(tmp_path, {"pyproject.toml": f"{PROJECT}{table}[tool.pytest.ini_options]\n", "uv.lock": ""})
    assert commands(root) == {"lib test": expected}
    assert reasons(root) == {"lib test": "pyproject.toml:4"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[project]\nname = "flasky"\nscripts = { flasky = "app:main" }\n', 3),
        ('[project]\nname = "flasky"\nscripts.flasky = "app:main"\n', 3),
        ('[project]\nname = "flasky"\n\n[project.scripts]\nflasky = "app:main"\n', 5),
        ('project.scripts = { flasky = "app:main" }\nproject.name = "flasky"\n', 1),
    ],
)
def test_the_line_of_an_entry(tmp_path: Path, text: str, line: int) -> None:
    """Whichever way TOML lets one write it."""
    root = write_repo(tmp_path / "x", {"pyproject.toml": text})
    assert reasons(root)["flasky run"] == f"pyproject.toml:{line}"
