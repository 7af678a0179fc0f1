"""Compose files (`docker compose up`) and the steps of GitHub Actions workflows."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from nudge import limits
from nudge.manifests.commands import Claim, Rank, classify_command, is_plain_word, only_checks, quote_path, run_in
from nudge.manifests.formats import YamlNode, parse_yaml
from nudge.manifests.tree import Directory

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
_DEFAULT_DIRECTORY = ("defaults", "run", "working-directory")
_SHELLS = ("", "bash", "sh")


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
    default_directory = document.get(*_DEFAULT_DIRECTORY).text
    for job in document.get("jobs").fields.values():
        job_directory = job.get(*_DEFAULT_DIRECTORY).text or default_directory
        for step in job.get("steps").items:
            # A step without a directory of its own runs in the job's.
            rel = posixpath.normpath(step.get("working-directory").text or job_directory or ".")
            rel = "" if rel == "." else rel
            if rel in root.tree.directories and _is_typeable(step):
                for cmd in _typeable_commands(step.get("run").text):
                    last = cmd.rpartition(" && ")[2]
                    if purpose := classify_command(last):
                        rank = Rank.FORMAT_CHECK if only_checks(last) else Rank.WORKFLOW
                        yield Claim(purpose, run_in(rel, cmd), rank, rel, file, step.get("run").line)


def _is_typeable(step: YamlNode) -> bool:
    if step.get("run").text.count("\n") >= limits.MAX_WORKFLOW_LINES or step.get("shell").text not in _SHELLS:
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
