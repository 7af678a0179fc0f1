"""Python projects (pyproject.toml, setup.py and their neighbors): task tables, tox environments, nox sessions, and the
tools that are configured, run in the project's environment. Nothing is imported or executed, a noxfile neither."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nudge.core.text import line_at
from nudge.manifests.commands import Claim, Names, Rank, is_plain_word, quote_path, run_in, select_targets
from nudge.manifests.formats import Section, header_line, key_line, line_of, parse_ini, parse_toml, table
from nudge.manifests.tree import Directory

_PYPROJECT = "pyproject.toml"
_NOXFILE = "noxfile.py"
_SETUP_NAME = re.compile(r"""\bname\s*=\s*["'](?P<name>[\w.-]+)["']""")
_PROJECT_FILES = (
    *(_PYPROJECT, "setup.py", "setup.cfg", "tox.ini", "tox.toml"),
    *(_NOXFILE, "pytest.ini", "manage.py"),
)
_LOCK_FILES = {
    "uv.lock": "uv",
    "poetry.lock": "poetry",
    "pdm.lock": "pdm",
    "Pipfile.lock": "pipenv",
    "Pipfile": "pipenv",
}
_PRE_COMMIT = ".pre-commit-config.yaml"
_RUFF_FORMAT_HOOK = re.compile(r"^[ \t]*-[ \t]*id:[ \t]*ruff-format\b", re.MULTILINE)

# The tables where tools keep named tasks, and how a task is called.
_TASK_TABLES = (
    (("tool", "poe", "tasks"), "poe {}"),
    (("tool", "taskipy", "tasks"), "task {}"),
    (("tool", "pdm", "scripts"), "pdm run {}"),
    (("tool", "hatch", "envs", "default", "scripts"), "hatch run {}"),
    (("tool", "rye", "scripts"), "rye run {}"),
    (("tool", "pixi", "tasks"), "pixi run {}"),
)
_INSTALLED_RUNNERS = ("poe ", "task ")  # installed in the project's environment, so its manager has to start them
# Only unambiguous names: `check` is a linter in one project and a test suite in another.
_TASKS: Names = {
    "build": ("build",),
    "test": ("test", "tests"),
    "run": ("run", "serve"),
    "lint": ("lint",),
    "format": ("fmt", "format"),
}

_TOX_ENVIRONMENTS: Names = {
    "build": ("build", "package", "pkg"),
    "test": ("py", "py3", "test", "tests", "unit", "unittest", "pytest"),
    "lint": ("lint", "linting", "flake8", "ruff", "qa", "style", "pre-commit", "codestyle", "pep8"),
    "format": ("fmt", "format", "black"),
}
_TOX_CHECK_OPTION = re.compile(r"--(?:check|diff)\b")
_TOX_ENVLIST_SEPARATOR = re.compile(r"[\s,]+")

_NOX_SESSIONS: Names = {
    "build": ("build", "dist"),
    "test": ("tests", "test", "unit", "unit_tests", "pytest"),
    "run": ("run", "serve", "dev"),
    "lint": ("lint", "linting", "flake8", "ruff", "pre-commit"),
    "format": ("format", "fmt", "black", "blacken"),
}


def python_package_name(directory: Directory) -> str | None:
    document = _pyproject(directory)
    for name in (
        table(document, "project").get("name"),
        table(document, "tool", "poetry").get("name"),
        _setup_name(directory),
    ):
        if isinstance(name, str) and is_plain_word(name):
            return name
    return None


def _setup_name(directory: Directory) -> str | None:
    metadata = _ini(directory, "setup.cfg").get("metadata")
    if metadata and metadata.get("name"):
        return metadata.get("name")
    match = _SETUP_NAME.search(directory.read("setup.py") or "")
    return match["name"] if match else None


def read_python_project(directory: Directory) -> Iterator[Claim]:
    if not directory.first_file(*_PROJECT_FILES):
        return
    package = python_package_name(directory)
    yield from _task_claims(directory, package)
    yield from _tox_claims(directory, package)
    yield from _nox_claims(directory, package)
    for job, cmd, source in (*_tools(directory), *_build(directory), *_console_script(directory, package)):
        yield Claim(job, cmd, Rank.LANGUAGE, directory.rel, directory.path(source.file), source.line, package)


def _task_claims(directory: Directory, package: str | None) -> Iterator[Claim]:
    document, text = _pyproject(directory), directory.read(_PYPROJECT) or ""
    hatch_environments = [name for name in table(document, "tool", "hatch", "envs") if is_plain_word(name)]
    hatch_tables = [
        (("tool", "hatch", "envs", name, "scripts"), f"hatch run {name}:{{}}")
        for name in hatch_environments
        if name != "default"
    ]
    for path, template in (*_TASK_TABLES, *hatch_tables):
        for job, name in select_targets(table(document, *path), _TASKS):
            cmd, line = template.format(name), key_line(text, name, *path)
            is_installed = cmd.startswith(_INSTALLED_RUNNERS)
            cmd = _in_environment(directory, cmd) if is_installed else run_in(directory.rel, cmd)
            yield Claim(job, cmd, Rank.SCRIPT, directory.rel, directory.path(_PYPROJECT), line, package)


# tox and nox


@dataclass(frozen=True, slots=True)
class _ToxConfig:
    """A tox configuration; each environment with its line and the commands that it runs."""

    file: str
    line: int
    environments: Mapping[str, tuple[int, str]]


def _tox_claims(directory: Directory, package: str | None) -> Iterator[Claim]:
    """Yield the commands of the environments, such as `tox -e lint`."""
    config = _tox_config(directory)
    if config is None:
        return
    path = directory.path(config.file)
    default = f"tox -c {quote_path(directory.rel)}" if directory.rel else "tox"
    program = _own_program(directory, "tox", "tox-uv") or default
    selected = dict(select_targets(_usable_tox_environments(config), _TOX_ENVIRONMENTS))
    for job, name in selected.items():
        line, _ = config.environments[name]
        yield Claim(job, f"{program} -e {name}", Rank.SCRIPT, directory.rel, path, line, package)
    if "test" not in selected:
        yield Claim("test", program, Rank.SCRIPT, directory.rel, path, config.line, package)


def _usable_tox_environments(config: _ToxConfig) -> Iterator[str]:
    for name, (_, commands) in config.environments.items():
        # An environment that only checks the formatting is not the command that formats.
        only_checks = name in _TOX_ENVIRONMENTS["format"] and _TOX_CHECK_OPTION.search(commands)
        if is_plain_word(name) and not only_checks:
            yield name


def _tox_config(directory: Directory) -> _ToxConfig | None:
    sections = _ini(directory, "tox.ini")
    if not sections.keys().isdisjoint(("tox", "testenv")):
        return _tox_from_ini("tox.ini", sections, 0)
    native = directory.parse("tox.toml", parse_toml)
    if native:
        return _tox_from_toml("tox.toml", directory.read("tox.toml") or "", native)
    return _tox_from_pyproject(directory)


def _tox_from_pyproject(directory: Directory) -> _ToxConfig | None:
    config = table(_pyproject(directory), "tool", "tox")
    if not config:
        return None
    text = directory.read(_PYPROJECT) or ""
    embedded = config.get("legacy_tox_ini")
    if isinstance(embedded, str):
        return _tox_from_ini(_PYPROJECT, parse_ini(embedded), key_line(text, "legacy_tox_ini", "tool", "tox"))
    return _tox_from_toml(_PYPROJECT, text, config, "tool", "tox")


def _tox_from_ini(file: str, sections: Mapping[str, Section], offset: int) -> _ToxConfig:
    top = sections.get("tox") or Section(1)
    names = _TOX_ENVLIST_SEPARATOR.split(top.get("envlist") or top.get("env_list"))
    environments = {re.split("[<>=]", name)[0]: (top.line + offset, "") for name in names if "{" not in name}
    for name, section in sections.items():
        if name.startswith("testenv:"):
            environments[name.removeprefix("testenv:")] = (section.line + offset, section.get("commands"))
    return _ToxConfig(file, top.line + offset, environments)


def _tox_from_toml(file: str, text: str, config: Mapping[str, Any], *path: str) -> _ToxConfig:
    line = header_line(text, *path) if path else 1
    names = config.get("env_list")
    environments = {name: (line, "") for name in names if isinstance(name, str)} if isinstance(names, list) else {}
    for name, settings in table(config, "env").items():
        commands = str(settings.get("commands", "")) if isinstance(settings, dict) else ""
        environments[name] = (header_line(text, *path, "env", name), commands)
    return _ToxConfig(file, line, environments)


def _nox_claims(directory: Directory, package: str | None) -> Iterator[Claim]:
    """Yield the commands of the sessions, such as `nox -s tests`."""
    sessions = directory.parse(_NOXFILE, _nox_sessions) or {}
    path = directory.path(_NOXFILE)
    program = _own_program(directory, "nox") or (f"nox -f {quote_path(path)}" if directory.rel else "nox")
    for job, name in select_targets(sessions, _NOX_SESSIONS):
        yield Claim(job, f"{program} -s {name}", Rank.SCRIPT, directory.rel, path, sessions[name], package)


def _nox_sessions(source: str) -> dict[str, int]:
    """Return the name and line of each function that `@nox.session` decorates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in untrusted source
        module = ast.parse(source)
    functions = (node for node in module.body if isinstance(node, ast.FunctionDef))
    sessions = ((_nox_session_name(node), node.lineno) for node in functions)
    return {name: line for name, line in sessions if name is not None and is_plain_word(name)}


def _nox_session_name(function: ast.FunctionDef) -> str | None:
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        if _is_nox_decorator(call.func if call else decorator):
            return _name_argument(call) or function.name
    return None


def _is_nox_decorator(decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Attribute):
        return decorator.attr == "session"
    return isinstance(decorator, ast.Name) and decorator.id in ("session", "nox_session")


def _name_argument(call: ast.Call | None) -> str | None:
    for keyword in call.keywords if call else ():
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
            return keyword.value.value
    return None


# Configured tools


@dataclass(frozen=True, slots=True)
class _Source:
    """The file and line that say the project uses a tool."""

    file: str
    line: int


def _tools(directory: Directory) -> Iterator[tuple[str, str, _Source]]:
    """Yield a job, a command and its source for each tool, the best command for a job first."""
    mypy_settings = table(_pyproject(directory), "tool", "mypy")
    mypy = "mypy" if mypy_settings.keys() & {"files", "packages", "modules"} else "mypy ."
    for job, source, cmd in (
        ("test", _find_pytest(directory), "pytest"),
        ("test", _file(directory, "manage.py"), "python manage.py test"),
        ("run", _file(directory, "manage.py"), "python manage.py runserver"),
        ("lint", _find_ruff(directory), "ruff check ."),
        ("lint", _find_flake8(directory), "flake8"),
        ("lint", _find_mypy(directory), mypy),
        ("format", _find_ruff_formatter(directory), "ruff format ."),
        ("format", _table(directory, "tool", "black") or _dependency(directory, "black"), "black ."),
    ):
        if source is not None:
            yield job, _in_environment(directory, cmd), source


def _build(directory: Directory) -> Iterator[tuple[str, str, _Source]]:
    source = _table(directory, "build-system") or _file(directory, "setup.py")
    if source is None:
        return
    manager, where = _manager(directory), quote_path(directory.rel)
    if table(_pyproject(directory), "build-system").get("build-backend") == "maturin":
        yield "build", _in_environment(directory, "maturin develop"), source
    elif manager == "uv":
        yield "build", f"uv build {where}" if directory.rel else "uv build", source
    elif manager in ("poetry", "pdm"):
        yield "build", run_in(directory.rel, f"{manager} build"), source
    else:
        yield "build", f"python -m build {where}" if directory.rel else "python -m build", source


def _console_script(directory: Directory, package: str | None) -> Iterator[tuple[str, str, _Source]]:
    """Yield the console script that is named as the package, or the only one."""
    document, text = _pyproject(directory), directory.read(_PYPROJECT) or ""
    for path in (("project", "scripts"), ("tool", "poetry", "scripts")):
        scripts = [name for name in table(document, *path) if is_plain_word(name)]
        script = package if package in scripts else scripts[0] if len(scripts) == 1 else None
        if script:
            yield "run", _in_environment(directory, script), _Source(_PYPROJECT, key_line(text, script, *path))


def _in_environment(directory: Directory, cmd: str) -> str:
    """Return `cmd` run in the project's environment, from the root of the repo."""
    manager, where = _manager(directory), quote_path(directory.rel)
    if manager == "uv":
        return f"uv run --directory {where} {cmd}" if directory.rel else f"uv run {cmd}"
    if manager == "poetry":
        return f"poetry -C {where} run {cmd}" if directory.rel else f"poetry run {cmd}"
    return run_in(directory.rel, f"{manager} run {cmd}" if manager else cmd)


def _own_program(directory: Directory, program: str, *plugins: str) -> str | None:
    """Return how to run a program that the project depends on, itself or by a plugin; None when it does not."""
    is_dependency = any(_dependency(directory, name) for name in (program, *plugins))
    return _in_environment(directory, program) if is_dependency and _manager(directory) else None


def _manager(directory: Directory) -> str | None:
    """Return the environment manager of the nearest lock file, going up; `[tool.poetry]` needs no lock file."""
    if "poetry" in table(_pyproject(directory), "tool") and not directory.first_file(*_LOCK_FILES):
        return "poetry"
    locks = (ancestor.first_file(*_LOCK_FILES) for ancestor in directory.with_parents())
    return next((_LOCK_FILES[lock] for lock in locks if lock), None)


def _find_pytest(directory: Directory) -> _Source | None:
    return (
        _file(directory, "pytest.ini", ".pytest.ini")
        or _table(directory, "tool", "pytest")
        or _section(directory, "setup.cfg", "tool:pytest")
        or _section(directory, "tox.ini", "pytest")
        or _file(directory, "conftest.py")
        or (_Source("tests/conftest.py", 1) if directory.has_file("tests/conftest.py") else None)
        or _dependency(directory, "pytest")
    )


def _find_ruff(directory: Directory) -> _Source | None:
    return (
        _file(directory, "ruff.toml", ".ruff.toml")
        or _table(directory, "tool", "ruff")
        or _dependency(directory, "ruff")
    )


def _find_ruff_formatter(directory: Directory) -> _Source | None:
    """Require an explicit setting: linting with ruff does not mean that its formatter may rewrite every file."""
    for name in ("ruff.toml", ".ruff.toml"):
        if table(directory.parse(name, parse_toml), "format"):
            return _Source(name, header_line(directory.read(name) or "", "format"))
    hook = _RUFF_FORMAT_HOOK.search(directory.read(_PRE_COMMIT) or "")
    if hook:
        return _Source(_PRE_COMMIT, line_at(hook.string, hook.start()))
    return _table(directory, "tool", "ruff", "format")


def _find_flake8(directory: Directory) -> _Source | None:
    return (
        _file(directory, ".flake8")
        or _section(directory, "setup.cfg", "flake8")
        or _section(directory, "tox.ini", "flake8")
        or _dependency(directory, "flake8")
    )


def _find_mypy(directory: Directory) -> _Source | None:
    return (
        _file(directory, "mypy.ini", ".mypy.ini")
        or _table(directory, "tool", "mypy")
        or _section(directory, "setup.cfg", "mypy")
    )


def _file(directory: Directory, *names: str) -> _Source | None:
    name = directory.first_file(*names)
    return _Source(name, 1) if name else None


def _table(directory: Directory, *path: str) -> _Source | None:
    if path[-1] not in table(_pyproject(directory), *path[:-1]):
        return None
    return _Source(_PYPROJECT, header_line(directory.read(_PYPROJECT) or "", *path))


def _section(directory: Directory, file: str, name: str) -> _Source | None:
    section = _ini(directory, file).get(name)
    return _Source(file, section.line) if section else None


def _dependency(directory: Directory, tool: str) -> _Source | None:
    """Return where `tool` is a development dependency, in any of the tables that tools keep them in."""
    document = _pyproject(directory)
    poetry, pdm, uv = (table(document, "tool", name) for name in ("poetry", "pdm", "uv"))
    groups = [
        *table(document, "dependency-groups").values(),
        *table(document, "project", "optional-dependencies").values(),
        *table(pdm, "dev-dependencies").values(),
        uv.get("dev-dependencies"),
        poetry.get("dev-dependencies"),
        *(table(group, "dependencies") for group in table(poetry, "group").values()),
    ]
    requirements = [item for group in groups if isinstance(group, list | dict) for item in group]
    names = {re.split(r"[^\w.-]", item, maxsplit=1)[0] for item in requirements if isinstance(item, str)}
    if tool not in names:
        return None
    return _Source(_PYPROJECT, line_of(directory.read(_PYPROJECT) or "", rf"^[^#\n]*?(?<![\w-]){tool}(?![\w-])"))


def _ini(directory: Directory, file: str) -> dict[str, Section]:
    return directory.parse(file, parse_ini) or {}


def _pyproject(directory: Directory) -> dict[str, Any]:
    document = directory.parse(_PYPROJECT, parse_toml)
    return document if isinstance(document, dict) else {}
