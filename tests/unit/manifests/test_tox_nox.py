"""tox environments and nox sessions: which are typed, by which program, and the line that defines them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .repos import commands, reasons, write_repo

PROJECT = '[project]\nname = "lib"\n'


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
    found, why = commands(root), reasons(root)
    assert {name: (found[name], why[name]) for name in expected} == expected


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
