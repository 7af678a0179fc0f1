"""What runs tasks in a repo of any language: make, just, task, executables such as `scripts/test`, Docker Compose, and
the steps of GitHub Actions workflows."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from nudge.core import limits
from nudge.manifests.commands import (
    SCRIPT_DIRECTORIES,
    Claim,
    Rank,
    classify_command,
    is_plain_word,
    only_checks,
    quote_path,
    run_in,
    select_scripts,
    select_targets,
)
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

_COMPOSE_FILES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")  # in compose's own order
_COMPOSE_VARIANT = re.compile(r"(?:docker-)?compose[.-][\w-]+\.ya?ml")

_WORKFLOWS = ".github/workflows"
_WORKFLOW_FILE = re.compile(r"[^/]+\.ya?ml")
# Workflows that check the project come first; those that ship it are not read.
_CHECKING_WORKFLOW = re.compile(r"ci|tests?|build|main|lint|check", re.IGNORECASE)
_SHIPPING_WORKFLOW = re.compile(r"release|publish|deploy|codeql|stale|label|cron|nightly|docs?\b|pages", re.IGNORECASE)
# More than a command and its arguments: pipes, redirections, substitutions, variables of the CI machine.
_SHELL_CONSTRUCT = re.compile(r"[;|<>`$\\]|(?<!&)&(?!&)")
_PREPARATION = re.compile(r"(?:cd|export|source|\.) ")
_DEFAULT_STEP_DIRECTORY = ("defaults", "run", "working-directory")
_STEP_SHELLS = ("", "bash", "sh")

# Targets, recipes, tasks and scripts that are named for a job


def read_makefile(directory: Directory) -> Iterator[Claim]:
    file = directory.first_file(*_MAKEFILES)
    text = directory.read(file) if file else None
    if file is not None and text is not None:
        program = f"make -C {quote_path(directory.rel)} " if directory.rel else "make "
        yield from _target_claims(directory, file, program, make_targets(text))


def read_justfile(directory: Directory) -> Iterator[Claim]:
    file = directory.first_file(*_JUSTFILES)
    text = directory.read(file) if file else None
    if file is not None and text is not None:
        # `just path/recipe` runs the recipe of the justfile in that path.
        program = f"just {quote_path(directory.rel)}/" if directory.rel else "just "
        yield from _target_claims(directory, file, program, just_recipes(text))


def read_taskfile(directory: Directory) -> Iterator[Claim]:
    file = directory.first_file(*_TASKFILES)
    document: YamlNode | None = directory.parse(file, parse_yaml) if file else None
    if file is not None and document is not None:
        program = f"task -d {quote_path(directory.rel)} " if directory.rel else "task "
        tasks = document.get("tasks").fields.items()
        # `task` refuses to run an internal task from the command line.
        callable_tasks = {name: task.line for name, task in tasks if task.get("internal").text.lower() != "true"}
        yield from _target_claims(directory, file, program, callable_tasks)


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


def _target_claims(directory: Directory, file: str, program: str, targets: dict[str, int]) -> Iterator[Claim]:
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


# Docker Compose


def read_compose(directory: Directory) -> Iterator[Claim]:
    file = directory.first_file(*_COMPOSE_FILES) or _only_compose_variant(directory)
    document: YamlNode | None = directory.parse(file, parse_yaml) if file else None
    if file is None or document is None or not document.get("services").fields:
        return
    path, services = directory.path(file), document.get("services")
    needs_option = directory.rel or file not in _COMPOSE_FILES
    compose = f"docker compose -f {quote_path(path)}" if needs_option else "docker compose"
    built = {name: service for name, service in services.fields.items() if "build" in service.fields}
    yield Claim("run", f"{compose} up", Rank.CONTAINER, directory.rel, path, services.line)
    if built:
        yield Claim("build", f"{compose} build", Rank.CONTAINER, directory.rel, path, services.line)
    for name, service in built.items():
        if is_plain_word(name):
            for job, verb in (("build", "build"), ("run", "up")):
                cmd = f"{compose} {verb} {name}"
                yield Claim(job, cmd, Rank.CONTAINER, directory.rel, path, service.line, name, is_service=True)


def _only_compose_variant(directory: Directory) -> str | None:
    """Return the only file such as `compose.dev.yml`; which of several go together cannot be known."""
    variants = [name for name in directory.files if _COMPOSE_VARIANT.fullmatch(name)]
    return variants[0] if len(variants) == 1 else None


# GitHub Actions


def read_workflows(directory: Directory) -> Iterator[Claim]:
    """Yield the commands of CI steps that a person could type. Only the root has workflows."""
    folder = directory.tree.directories.get(_WORKFLOWS)
    if directory.rel or folder is None:
        return
    names = [name for name in folder.files if _WORKFLOW_FILE.fullmatch(name) and not _SHIPPING_WORKFLOW.search(name)]
    for name in sorted(names, key=lambda name: (_CHECKING_WORKFLOW.match(name) is None, name)):
        document: YamlNode | None = folder.parse(name, parse_yaml)
        if document is not None:
            yield from _workflow_claims(directory, document, folder.path(name))


def _workflow_claims(root: Directory, document: YamlNode, file: str) -> Iterator[Claim]:
    default_directory = document.get(*_DEFAULT_STEP_DIRECTORY).text
    for job in document.get("jobs").fields.values():
        job_directory = job.get(*_DEFAULT_STEP_DIRECTORY).text or default_directory
        for step in job.get("steps").items:
            # A step without a directory of its own runs in the job's.
            rel = posixpath.normpath(step.get("working-directory").text or job_directory or ".")
            rel = "" if rel == "." else rel
            if rel in root.tree.directories and _is_typeable_step(step):
                for cmd in _typeable_commands(step.get("run").text):
                    last = cmd.rpartition(" && ")[2]
                    if purpose := classify_command(last):
                        rank = Rank.FORMAT_CHECK if only_checks(last) else Rank.WORKFLOW
                        yield Claim(purpose, run_in(rel, cmd), rank, rel, file, step.get("run").line)


def _is_typeable_step(step: YamlNode) -> bool:
    if step.get("run").text.count("\n") >= limits.MAX_WORKFLOW_LINES or step.get("shell").text not in _STEP_SHELLS:
        return False
    return not any("secrets." in text for text in step.texts())


def _typeable_commands(script: str) -> Iterator[str]:
    """Yield the lines that a person could type; `cd web` is joined to the line after it."""
    prefix = ""
    for line in (line.strip() for line in script.split("\n")):
        if _SHELL_CONSTRUCT.search(line):
            return
        if _PREPARATION.match(line) and " && " not in line:
            prefix += f"{line} && "
        elif line and not line.startswith("#") and all(map(_PREPARATION.match, line.split(" && ")[:-1])):
            yield prefix + line
