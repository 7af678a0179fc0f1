"""Python projects: the tools that are configured, the runner that is locked, and tox, nox and task tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.manifests.repos import commands, reasons, write_repo

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


# tox and nox: which environments and sessions are typed, by which program, and the line that defines them


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"tox.ini": "[tox]\nenvlist = py{310,311}\n"}, {"x test": ("tox", "tox.ini:1")}),
        ({"tox.ini": "[testenv]\n[testenv:fmt]\ncommands = black .\n"}, {"x format": ("tox -e fmt", "tox.ini:2")}),
        (
            {"tox.ini": "[tox]\nenvlist = py, qa\n[testenv:qa]\n"},
            {"x test": ("tox -e py", "tox.ini:1"), "x lint": ("tox -e qa", "tox.ini:3")},
        ),
        (
            {"pyproject.toml": '[tool.tox]\nlegacy_tox_ini = """\n[tox]\nenvlist = py\n[testenv:lint]\n"""\n'},
            {"x test": ("tox -e py", "pyproject.toml:3"), "x lint": ("tox -e lint", "pyproject.toml:5")},
        ),
        (
            {"pyproject.toml": '[tool.tox]\nenv_list = ["3.12"]\n[tool.tox.env.lint]\ncommands = [["ruff"]]\n'},
            {"x test": ("tox", "pyproject.toml:1"), "x lint": ("tox -e lint", "pyproject.toml:3")},
        ),
        ({"tox.toml": 'env_list = ["py"]\n[env.lint]\n'}, {"x lint": ("tox -e lint", "tox.toml:2")}),
        ({"svc/tox.ini": "[tox]\nenvlist = py\n"}, {"svc test": ("tox -c svc -e py", "svc/tox.ini:1")}),
        (
            {
                "tox.ini": "[tox]\n",
                "uv.lock": "",
                "pyproject.toml": PROJECT + '[dependency-groups]\ndev = ["tox>=4"]\n',
            },
            {"lib test": ("uv run tox", "tox.ini:1")},
        ),
        (
            {
                "svc/tox.ini": "[tox]\nenvlist = py\n",
                "uv.lock": "",
                "svc/pyproject.toml": '[dependency-groups]\ndev = ["tox-uv"]\n',
            },
            {"svc test": ("uv run --directory svc tox -e py", "svc/tox.ini:1")},
        ),
        ({"tox.ini": "[tox]\n", "uv.lock": "", "pyproject.toml": PROJECT}, {"lib test": ("tox", "tox.ini:1")}),
    ],
)
def test_tox(tmp_path: Path, files: dict[str, str], expected: dict[str, tuple[str, str]]) -> None:
    """An environment by its name where it has a plain one, else all of tox, from each place where its settings may
    be."""
    root = write_repo(tmp_path / "x", files)
    result, why = commands(root), reasons(root)
    assert {name: (result[name], why[name]) for name in expected} == expected


def test_tox_ini_without_tox(tmp_path: Path) -> None:
    """A tox.ini that only holds pytest's settings does not make the project use tox."""
    assert commands(tmp_path / "x", {"tox.ini": "[pytest]\naddopts = -q\n"}) == {"x test": "pytest"}


def test_nox_names(tmp_path: Path) -> None:
    """A session goes by its function's name or by the name it is given; other decorators make none."""
    source = """
        import nox
        from nox import session

        @session
        def lint(s): ...

        @nox.session(name="fmt")
        def reformat(s): ...

        @cache
        def tests(s): ...
        """
    assert commands(tmp_path / "x", {"svc/noxfile.py": source}) == {
        "svc lint": "nox -f svc/noxfile.py -s lint",
        "svc format": "nox -f svc/noxfile.py -s fmt",
    }
