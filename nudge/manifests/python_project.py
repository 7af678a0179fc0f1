"""pyproject.toml and its neighbours: the tools that are configured there, typed with the runner that the lock file
names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nudge.manifests import noxfile, tox
from nudge.manifests.ini_text import Section, parse_ini
from nudge.manifests.model import Claim, Names, Rank, best_names
from nudge.manifests.shell import argument, is_plain_word, within
from nudge.manifests.toml_text import header_line, key_line, parse_toml, table
from nudge.manifests.tree import Place, line_of

_PYPROJECT = "pyproject.toml"
_SETUP_NAME = re.compile(r"""\bname\s*=\s*["'](?P<name>[\w.-]+)["']""")
_RUNNERS = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv", "Pipfile": "pipenv"}
_BUILDERS = ("uv", "poetry", "pdm")

_ANCHORS = (_PYPROJECT, "setup.py", "setup.cfg", "tox.ini", "tox.toml", "noxfile.py", "pytest.ini", "manage.py")

# Where tools keep named tasks, and how one is called.
_TASK_TABLES = (
    (("tool", "poe", "tasks"), "poe {}"),
    (("tool", "taskipy", "tasks"), "task {}"),
    (("tool", "pdm", "scripts"), "pdm run {}"),
    (("tool", "hatch", "envs", "default", "scripts"), "hatch run {}"),
    (("tool", "rye", "scripts"), "rye run {}"),
    (("tool", "pixi", "tasks"), "pixi run {}"),
)
# Only names that mean one thing: `check` is a linter here, a test suite there.
_TASKS: Names = {
    "build": ("build",),
    "test": ("test", "tests"),
    "run": ("run", "serve"),
    "lint": ("lint",),
    "format": ("fmt", "format"),
}
_RUN_INSIDE = ("poe ", "task ")  # installed in the project's environment, so the runner has to start them


@dataclass(frozen=True, slots=True)
class _Source:
    """A tool's configuration: the file and line that say the project uses it."""

    file: str
    line: int


_Use = tuple[str, str, _Source]


def package_name(place: Place) -> str | None:
    document = _pyproject(place)
    for name in (
        table(document, "project").get("name"),
        table(document, "tool", "poetry").get("name"),
        _legacy_name(place),
    ):
        if isinstance(name, str) and is_plain_word(name):
            return name
    return None


def _legacy_name(place: Place) -> str | None:
    metadata = _ini(place, "setup.cfg").get("metadata")
    if metadata and metadata.get("name"):
        return metadata.get("name")
    match = _SETUP_NAME.search(place.text("setup.py") or "")
    return match["name"] if match else None


def read(place: Place) -> Iterator[Claim]:
    if not place.first(*_ANCHORS):
        return
    package = package_name(place)
    yield from _tasks(place, package)
    yield from tox.read(place, package, _installed(place, "tox", "tox-uv"))
    yield from noxfile.read(place, package, _installed(place, "nox"))
    for key, cmd, source in _tools(place, package):
        yield Claim(key, cmd, Rank.LANGUAGE, place.rel, place.path(source.file), source.line, package)


def _tasks(place: Place, package: str | None) -> Iterator[Claim]:
    document, text = _pyproject(place), place.text(_PYPROJECT) or ""
    for path, template in (*_TASK_TABLES, *_hatch_tables(document)):
        for key, name in best_names(table(document, *path), _TASKS):
            cmd = template.format(name)
            typed = _inside(place, cmd) if cmd.startswith(_RUN_INSIDE) else within(place.rel, cmd)
            yield Claim(
                key, typed, Rank.SCRIPT, place.rel, place.path(_PYPROJECT), key_line(text, name, *path), package
            )


def _hatch_tables(document: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    for name in table(document, "tool", "hatch", "envs"):
        if name != "default" and is_plain_word(name):
            yield ("tool", "hatch", "envs", name, "scripts"), f"hatch run {name}:{{}}"


def _tools(place: Place, package: str | None) -> Iterator[_Use]:
    """The best command for each key first."""
    for key, tool, cmd in (
        ("test", _pytest(place), "pytest"),
        ("test", _file(place, "manage.py"), "python manage.py test"),
        ("run", _file(place, "manage.py"), "python manage.py runserver"),
        ("lint", _ruff(place), "ruff check ."),
        ("lint", _flake8(place), "flake8"),
        ("lint", _mypy(place), _mypy_command(place)),
        ("format", _ruff_formatter(place), "ruff format ."),
        ("format", _black(place), "black ."),
    ):
        if tool is not None:
            yield key, _inside(place, cmd), tool
    yield from _build(place)
    yield from _program(place, package)


def _build(place: Place) -> Iterator[_Use]:
    system, where = table(_pyproject(place), "build-system"), argument(place.rel)
    source = _at(place, "build-system") or _file(place, "setup.py")
    if source is None:
        return
    runner = _runner(place)
    if system.get("build-backend") == "maturin":
        yield "build", _inside(place, "maturin develop"), source
    elif runner == "uv":
        yield "build", f"uv build {where}" if place.rel else "uv build", source
    elif runner in _BUILDERS:
        yield "build", within(place.rel, f"{runner} build"), source
    else:
        yield "build", f"python -m build {where}" if place.rel else "python -m build", source


def _program(place: Place, package: str | None) -> Iterator[_Use]:
    """The console script that is the project's own; nothing when it is not clear which."""
    document, text = _pyproject(place), place.text(_PYPROJECT) or ""
    for path in (("project", "scripts"), ("tool", "poetry", "scripts")):
        scripts = [name for name in table(document, *path) if is_plain_word(name)]
        chosen = package if package in scripts else scripts[0] if len(scripts) == 1 else None
        if chosen:
            yield "run", _inside(place, chosen), _Source(_PYPROJECT, key_line(text, chosen, *path))


def _inside(place: Place, cmd: str) -> str:
    """`cmd` in the project's environment, from the root."""
    runner, where = _runner(place), argument(place.rel)
    if runner == "uv":
        return f"uv run --directory {where} {cmd}" if place.rel else f"uv run {cmd}"
    if runner == "poetry":
        return f"poetry -C {where} run {cmd}" if place.rel else f"poetry run {cmd}"
    return within(place.rel, f"{runner} run {cmd}" if runner else cmd)


def _installed(place: Place, program: str, *plugins: str) -> str | None:
    """A program that the project brings with it, by itself or with a plugin of it; others are the user's own."""
    brought = _runner(place) and any(_depends_on(place, name) for name in (program, *plugins))
    return _inside(place, program) if brought else None


def _runner(place: Place) -> str | None:
    """By the nearest lock file, going up; a package that declares poetry needs none."""
    if "poetry" in table(_pyproject(place), "tool") and not place.first(*_RUNNERS):
        return "poetry"
    return next((_RUNNERS[lock] for above in place.upwards() if (lock := above.first(*_RUNNERS))), None)


def _pytest(place: Place) -> _Source | None:
    return (
        _file(place, "pytest.ini", ".pytest.ini")
        or _at(place, "tool", "pytest")
        or _in_ini(place, "setup.cfg", "tool:pytest")
        or _in_ini(place, "tox.ini", "pytest")
        or _file(place, "conftest.py")
        or (_Source("tests/conftest.py", 1) if place.holds("tests/conftest.py") else None)
        or _depends_on(place, "pytest")
    )


def _ruff(place: Place) -> _Source | None:
    return _file(place, "ruff.toml", ".ruff.toml") or _at(place, "tool", "ruff") or _depends_on(place, "ruff")


def _ruff_formatter(place: Place) -> _Source | None:
    """Linting with ruff does not mean formatting with it: that would rewrite every file."""
    for name in ("ruff.toml", ".ruff.toml"):
        if table(place.parsed(name, parse_toml), "format"):
            return _Source(name, header_line(place.text(name) or "", "format"))
    hook = re.search(r"^[ \t]*-[ \t]*id:[ \t]*ruff-format\b", place.text(".pre-commit-config.yaml") or "", re.MULTILINE)
    if hook:
        return _Source(".pre-commit-config.yaml", line_of(hook.string, hook.re.pattern))
    return _at(place, "tool", "ruff", "format")


def _flake8(place: Place) -> _Source | None:
    found = _file(place, ".flake8") or _in_ini(place, "setup.cfg", "flake8") or _in_ini(place, "tox.ini", "flake8")
    return found or _depends_on(place, "flake8")


def _black(place: Place) -> _Source | None:
    return _at(place, "tool", "black") or _depends_on(place, "black")


def _mypy(place: Place) -> _Source | None:
    return _file(place, "mypy.ini", ".mypy.ini") or _at(place, "tool", "mypy") or _in_ini(place, "setup.cfg", "mypy")


def _mypy_command(place: Place) -> str:
    knows_its_files = table(_pyproject(place), "tool", "mypy").keys() & {"files", "packages", "modules"}
    return "mypy" if knows_its_files else "mypy ."


def _file(place: Place, *names: str) -> _Source | None:
    name = place.first(*names)
    return _Source(name, 1) if name else None


def _at(place: Place, *path: str) -> _Source | None:
    if path[-1] not in table(_pyproject(place), *path[:-1]):
        return None
    return _Source(_PYPROJECT, header_line(place.text(_PYPROJECT) or "", *path))


def _in_ini(place: Place, file: str, section: str) -> _Source | None:
    found = _ini(place, file).get(section)
    return _Source(file, found.line) if found else None


def _depends_on(place: Place, tool: str) -> _Source | None:
    """A development dependency, in whichever of the tables that tools keep them in."""
    document = _pyproject(place)
    poetry, pdm, uv = (table(document, "tool", name) for name in ("poetry", "pdm", "uv"))
    groups = [
        *table(document, "dependency-groups").values(),
        *table(document, "project", "optional-dependencies").values(),
    ]
    groups += [*table(pdm, "dev-dependencies").values(), uv.get("dev-dependencies"), poetry.get("dev-dependencies")]
    groups += [table(group, "dependencies") for group in table(poetry, "group").values()]
    if not any(_is_required(tool, item) for group in groups if isinstance(group, list | dict) for item in group):
        return None
    return _Source(_PYPROJECT, line_of(place.text(_PYPROJECT) or "", rf"""^[^#\n]*?(?<![\w-]){tool}(?![\w-])"""))


def _is_required(tool: str, item: object) -> bool:
    return isinstance(item, str) and re.split(r"[^\w.-]", item, maxsplit=1)[0] == tool


def _ini(place: Place, file: str) -> dict[str, Section]:
    return place.parsed(file, parse_ini) or {}


def _pyproject(place: Place) -> dict[str, Any]:
    raw = place.parsed(_PYPROJECT, parse_toml)
    return raw if isinstance(raw, dict) else {}
