"""The files for those who work on Nudge agree with each other: dependencies and their lock, the workflow, the forms."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = ROOT / ".github" / "workflows" / "test.yml"
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))

RUNTIME = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRAS = PROJECT["optional-dependencies"]
OPTIONAL = [Requirement(line) for line in EXTRAS["semantic"]]
DEVELOPMENT = [Requirement(line) for line in EXTRAS["dev"] if not line.startswith(PROJECT["name"])]


def locked() -> dict[str, list[Version]]:
    """The versions of each package; there may be one for each Python."""
    versions: dict[str, list[Version]] = {}
    for line in (ROOT / "requirements-dev.lock").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            requirement = Requirement(line)
            (pin,) = requirement.specifier
            assert pin.operator == "==", line
            versions.setdefault(canonicalize_name(requirement.name), []).append(Version(pin.version))
    return versions


def document(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("requirement", [*RUNTIME, *OPTIONAL], ids=lambda requirement: requirement.name)
def test_a_dependency_has_both_bounds(requirement: Requirement) -> None:
    """The next major version, at the latest, may change what is relied on."""
    assert sorted(bound.operator for bound in requirement.specifier) == ["<", ">="]


@pytest.mark.parametrize("requirement", [*RUNTIME, *OPTIONAL, *DEVELOPMENT], ids=lambda requirement: requirement.name)
def test_the_lock_fits(requirement: Requirement) -> None:
    """It has every dependency, in versions within the bounds. `make lock` renews it."""
    versions = locked().get(canonicalize_name(requirement.name), [])
    assert versions and all(version in requirement.specifier for version in versions)


def test_what_releases_point_at() -> None:
    """Every address is one of the repository."""
    urls = PROJECT["urls"]
    assert set(urls) == {"Homepage", "Repository", "Documentation", "Changelog", "Issues"}
    assert [url for url in urls.values() if not url.startswith(urls["Repository"])] == []


def test_the_workflow_runs_the_suite() -> None:
    """On every supported Python, on Linux and macOS, through `make test`, with a token that can only read."""
    workflow = document(WORKFLOW)
    job = workflow["jobs"]["test"]
    matrix = job["strategy"]["matrix"]
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert matrix == {"python": supported, "system": ["ubuntu-latest", "macos-latest"]}
    assert PROJECT["requires-python"] == f">={supported[0]}"
    assert workflow["permissions"] == {"contents": "read"}
    setup = next(step["with"] for step in job["steps"] if "setup-python" in step.get("uses", ""))
    assert setup["python-version"] == "${{ matrix.python }}" and (ROOT / setup["cache-dependency-path"]).exists()
    (run,) = (step["run"] for step in job["steps"] if "run" in step)
    script = ROOT / run
    assert script.stat().st_mode & stat.S_IXUSR and script.read_text().splitlines()[-2:] == ["make test", "make team"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_forms_of_issues(form: Path) -> None:
    """They have what GitHub demands: name, description, and fields with a type, a label and an id of their own."""
    content = document(form)
    assert content["name"] and content["description"]
    fields = [field for field in content["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in fields} <= {"textarea", "input", "dropdown", "checkboxes"}
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields) > 0


def test_checks_before_a_commit() -> None:
    """They are those of `make test`, from its environment: nothing is fetched in other versions."""
    (repository,) = document(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for hook in repository["hooks"]:
        program = re.fullmatch(r"\.venv/bin/python -m ([a-z]+( check| format)?)( --force-exclude)?", hook["entry"])
        assert program and f"$(BIN)/python -m {program[1]}" in makefile, hook["id"]
