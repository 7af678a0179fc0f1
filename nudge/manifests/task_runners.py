"""Makefile, justfile, Taskfile and executables such as `scripts/test`: what people type."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nudge.manifests.commands import SCRIPT_DIRECTORIES, Claim, Rank, quote_path, run_in, select_scripts, select_targets
from nudge.manifests.formats import YamlNode, parse_yaml
from nudge.manifests.tree import Directory

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")  # in make's own order
_MAKE_ASSIGNMENT = re.compile(r"\s*(?:(?:export|override|private)\s+)*[\w.-]+\s*(?::{0,3}|[?+!])=")
_MAKE_TARGET = re.compile(r"[A-Za-z0-9_][\w.-]*")

_JUSTFILES = ("justfile", "Justfile", ".justfile")
_JUST_RECIPE = re.compile(r"@?(?P<name>[A-Za-z][\w-]*)(?P<parameters>[^:\n]*):(?!=)")
_JUST_ALIAS = re.compile(r"alias\s+(?P<name>[A-Za-z][\w-]*)\s*:=")
# `+args` needs at least one argument, `*args` and `name="x"` need none.
_JUST_REQUIRED_PARAMETER = re.compile(r"(?:^|\s)[+$]*[A-Za-z_][\w-]*(?=\s|$)")

_TASKFILES = (
    *("Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml"),
    *("Taskfile.dist.yml", "Taskfile.dist.yaml"),
)
# A directory without one is not a package, and its scripts are for something else.
_PACKAGE_FILES = (
    *("pyproject.toml", "setup.py", "package.json", "Cargo.toml", "go.mod", "pom.xml"),
    *("build.gradle", "build.gradle.kts", "Gemfile", "composer.json", "mix.exs", "CMakeLists.txt"),
)


def read_makefile(directory: Directory) -> Iterator[Claim]:
    file = directory.first_file(*_MAKEFILES)
    text = directory.read(file) if file else None
    if file is not None and text is not None:
        program = f"make -C {quote_path(directory.rel)} " if directory.rel else "make "
        yield from _claims(directory, file, program, make_targets(text))


def read_justfile(directory: Directory) -> Iterator[Claim]:
    file = directory.first_file(*_JUSTFILES)
    text = directory.read(file) if file else None
    if file is not None and text is not None:
        # `just path/recipe` runs the recipe of the justfile in that path.
        program = f"just {quote_path(directory.rel)}/" if directory.rel else "just "
        yield from _claims(directory, file, program, just_recipes(text))


def read_taskfile(directory: Directory) -> Iterator[Claim]:
    file = directory.first_file(*_TASKFILES)
    document: YamlNode | None = directory.parse(file, parse_yaml) if file else None
    if file is not None and document is not None:
        program = f"task -d {quote_path(directory.rel)} " if directory.rel else "task "
        tasks = document.get("tasks").fields.items()
        # `task` refuses to run an internal task from the command line.
        callable_tasks = {name: task.line for name, task in tasks if task.get("internal").text.lower() != "true"}
        yield from _claims(directory, file, program, callable_tasks)


def read_scripts(directory: Directory) -> Iterator[Claim]:
    """Yield the executables that are named for a job, in the root and in packages."""
    if directory.rel and not directory.first_file(*_PACKAGE_FILES):
        return
    for name in SCRIPT_DIRECTORIES:
        folder = directory.tree.directories.get(directory.path(name))
        if folder is not None:
            for job, file in select_scripts(filter(folder.is_executable, folder.files)):
                cmd = run_in(directory.rel, quote_path(f"{name}/{file}"))
                yield Claim(job, cmd, Rank.EXECUTABLE, directory.rel, folder.path(file), 1)


def _claims(directory: Directory, file: str, program: str, targets: dict[str, int]) -> Iterator[Claim]:
    for job, name in select_targets(targets):
        yield Claim(job, f"{program}{name}", Rank.RUNNER, directory.rel, directory.path(file), targets[name])


def make_targets(text: str) -> dict[str, int]:
    """Return each explicit target with the line of its first rule."""
    targets: dict[str, int] = {}
    for number, line in _make_statements(text):
        head, colon, rest = line.partition(":")
        rest = rest.lstrip(":")
        # `test: CFLAGS += -g` sets a variable for a target whose rule is elsewhere.
        if not colon or "=" in head or rest.startswith("=") or _MAKE_ASSIGNMENT.match(rest):
            continue
        for name in head.split():
            if _MAKE_TARGET.fullmatch(name):
                targets.setdefault(name, number)
    return targets


def _make_statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not recipes, comments or inside `define`."""
    in_define = False
    for number, line in _join_continued_lines(text):
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        if in_define or word == "define":
            in_define = word != "endef"
        elif word and not line.startswith("\t"):
            yield number, line.partition("#")[0]


def _join_continued_lines(text: str) -> Iterator[tuple[int, str]]:
    pending: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        pending.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            yield number - len(pending) + 1, " ".join(pending)
            pending = []


def just_recipes(text: str) -> dict[str, int]:
    """Return each recipe that can be called without arguments, with its line."""
    recipes: dict[str, int] = {}
    is_private = False
    for number, line in enumerate(text.split("\n"), 1):
        match = _JUST_RECIPE.match(line) or _JUST_ALIAS.match(line)
        if match and not is_private:
            parameters = match.groupdict().get("parameters") or ""
            if not _JUST_REQUIRED_PARAMETER.search(parameters):
                recipes.setdefault(match["name"], number)
        is_private = line.startswith("[") and "private" in line
    return recipes
