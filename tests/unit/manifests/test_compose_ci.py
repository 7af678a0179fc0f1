"""Compose files, and CI steps for what nothing else answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from nudge.manifests import scan_repo
from nudge.manifests.commands import classify_command, job_invocation

from .repos import commands, reasons, write_repo

SERVICES = "services:\n  api:\n    build: .\n  db:\n    image: postgres\n"


@pytest.mark.parametrize(
    ("files", "run"),
    [
        (["compose.yaml"], "docker compose up"),
        (["compose.yml", "docker-compose.yml"], "docker compose up"),
        (["docker-compose.dev.yml"], "docker compose -f docker-compose.dev.yml up"),
        (["deploy/compose.yaml"], "docker compose -f deploy/compose.yaml up"),
    ],
)
def test_compose_file(tmp_path: Path, files: list[str], run: str) -> None:
    """A file that compose would not find by itself is named."""
    found = commands(tmp_path / "x", dict.fromkeys(files, SERVICES))
    assert run in found.values()
    assert found["api run"] == f"{run} api"


def test_several_compose_variants(tmp_path: Path) -> None:
    """Which of several files go together is not for us to guess."""
    assert commands(tmp_path, {"compose.dev.yml": SERVICES, "compose.prod.yml": SERVICES}) == {}


@pytest.mark.parametrize(
    ("cmd", "key"),
    [
        ("python -m pytest -q", "test"),
        ("uv run pytest", "test"),
        ("cargo test --all", "test"),
        ("npm run test", "test"),
        ("make -j2 check", "test"),
        ("./gradlew --no-daemon check", "test"),
        ("mvn -B verify", "test"),
        ("python tests/runtests.py", "test"),
        ("ruff check .", "lint"),
        ("ruff format --check .", "lint"),
        ("ruff format .", "format"),
        ("cargo fmt --all -- --check", "lint"),
        ("npx eslint src", "lint"),
        ("yarn lint", "lint"),
        ("cargo build --release", "build"),
        ("./mvnw -B package", "build"),
        ("pip install pytest", None),
        ("npm ci", None),
        ("npm publish", None),
        ("sudo make test", None),
        ("echo pytest", None),
        ("python -m 'unbalanced", None),
        ("./scripts/bootstrap.sh", None),
        ("./scripts/test.sh -q", "test"),
        ("bash script/lint", "lint"),
        ("bin/check", "check"),
        ("/usr/bin/test -f x", None),
        ("docs/build", None),
    ],
)
def test_meaning_of_a_step(cmd: str, key: str | None) -> None:
    """Only what clearly checks or builds is understood; a formatter that only looks is a linter."""
    assert classify_command(cmd) == key


WORKFLOW = """
    name: CI
    on: [push]
    defaults:
      run:
        working-directory: .
    jobs:
      lint:
        runs-on: ubuntu-latest
        steps:
        - uses: actions/checkout@v4
        - run: pip install ruff   # not typed
        - {name: flow, run: pytest -q}
        - name: Lint
          env:
            RUFF: "1"
          run: ruff check src   # the linter
      web:
        defaults:
          run:
            working-directory: web
        steps:
          - name: Test
            run: |
              npm ci
              npx vitest run
          - run: npx prettier --write .
            working-directory: ./web
      test:
        steps:
          - run: ${{ matrix.python }} -m pytest
          - run: pytest --token $TOKEN
          - run: pytest | tee log
          - shell: pwsh
            run: pytest -p windows
          - env:
              KEY: ${{ secrets.KEY }}
            run: pytest --live
          - run: |
              a
              b
              c
              pytest long
          - run: "python -m build \\"dist/wheel\\""
          - run: >-
              ruff format
              src
    """


def test_workflow_steps(tmp_path: Path) -> None:
    """Steps a person could type, in their directory; no expressions, secrets, pipes, other shells or scripts."""
    root = write_repo(tmp_path / "x", {".github/workflows/ci.yml": WORKFLOW, "web/README": ""})
    assert commands(root) == {
        "x lint": "ruff check src",
        "x test": "pytest -q",
        "x build": 'python -m build "dist/wheel"',
        "x format": "ruff format src",
        "web test": "cd web && npx vitest run",
        "web format": "cd web && npx prettier --write .",
    }
    assert reasons(root) == {
        "x lint": ".github/workflows/ci.yml:16",
        "x test": ".github/workflows/ci.yml:12",
        "x build": ".github/workflows/ci.yml:43",
        "x format": ".github/workflows/ci.yml:44",
        "web test": ".github/workflows/ci.yml:23",
        "web format": ".github/workflows/ci.yml:26",
    }


def _job(*runs: str) -> str:
    return "jobs:\n  a:\n    steps:\n" + "".join(f"      - run: {run}\n" for run in runs)


def test_workflows_that_check_come_first(tmp_path: Path) -> None:
    """ci.yml says how the project is tested, a benchmark only when nothing better does, a release never."""
    files = {
        ".github/workflows/bench.yml": _job("pytest bench", "cargo build"),
        ".github/workflows/ci.yml": _job("pytest"),
        ".github/workflows/release.yml": _job("ruff check ."),
    }
    assert commands(tmp_path / "x", files) == {"x test": "pytest", "x build": "cargo build"}


def test_workflow_confirms_or_replaces_a_guess(tmp_path: Path) -> None:
    """CI that runs the usual tool confirms the usual command, as people type it; another tool in CI replaces it."""
    files = {"go.mod": "module x\n", ".github/workflows/ci.yml": _job("go test -race ./...", "bash ci/lint.sh")}
    found = {each.key: each for each in scan_repo(write_repo(tmp_path, files)).commands}
    assert (found["test"].cmd, found["test"].is_guess) == ("go test ./...", False)
    assert (found["lint"].cmd, found["lint"].is_guess) == ("bash ci/lint.sh", False)
    assert (found["build"].cmd, found["build"].is_guess) == ("go build ./...", True)


def test_check_of_the_formatting_is_the_last_choice_for_a_linter(tmp_path: Path) -> None:
    """A step that only looks at the formatting is taken where nothing else lints."""
    files = {"Cargo.toml": '[package]\nname = "x"\n', ".github/workflows/ci.yml": _job("cargo fmt --all --check")}
    assert commands(tmp_path / "a", files)["x lint"] == "cargo clippy"
    assert commands(tmp_path / "b", {".github/workflows/ci.yml": _job("black --check .")}) == {
        "b lint": "black --check ."
    }


def test_cd_belongs_to_the_next_line(tmp_path: Path) -> None:
    """`cd` is not lost from a step of several lines, and a step that leaves the repo is not taken."""
    steps = """
        jobs:
          a:
            steps:
              - run: |
                  cd web
                  pytest
              - working-directory: ../x
                run: ruff check
        """
    assert commands(tmp_path / "x", {".github/workflows/ci.yml": steps}) == {"x test": "cd web && pytest"}


@pytest.mark.parametrize(
    "text",
    [
        "services: {api: {build: .}, db: {image: postgres}}\n",
        "services:\n  api: {build: {context: ., dockerfile: D}}\n  db: {image: postgres}\n",
        'services:\n  "api":\n    "build": "."\n',
        "x-app: &app\n  build: .\nservices:\n  api:\n    <<: *app\n    ports: ['80:80']\n  db:\n    image: postgres\n",
        "x-app: &app {build: .}\nservices:\n  api: *app\n",
    ],
)
def test_compose_services_in_any_style(tmp_path: Path, text: str) -> None:
    """Flow collections, quoted keys, anchors and merge keys name the same service."""
    assert commands(tmp_path / "x", {"compose.yaml": text}) == {
        "x build": "docker compose build",
        "x run": "docker compose up",
        "api build": "docker compose build api",
        "api run": "docker compose up api",
    }


def test_compose_without_services(tmp_path: Path) -> None:
    """A file that only adds volumes, or is no mapping, runs nothing."""
    for text in ("volumes: {a: {}}\n", "services:\n", "services: [a]\n", "just text\n", ""):
        assert commands(tmp_path / "x", {"compose.yaml": text}) == {}


def test_workflow_in_flow_style(tmp_path: Path) -> None:
    """`on: [push]` and steps on one line, quoted keys and a shared step are read as block style is."""
    workflow = """
        on: [push, pull_request]
        x-lint: &lint {run: ruff check .}
        jobs: {check: {runs-on: ubuntu-latest, steps: [{uses: actions/checkout@v4}, {run: pytest -q}]}}
        """
    root = tmp_path / "x"
    assert commands(root, {".github/workflows/ci.yml": workflow}) == {"x test": "pytest -q"}
    shared = """
        jobs:
          a:
            "steps":
              - &lint {run: ruff check .}
              - <<: *lint
                working-directory: web
        """
    files = {".github/workflows/ci.yml": shared, "web/README": ""}
    assert commands(root, files) == {"x lint": "ruff check .", "web lint": "cd web && ruff check ."}
    assert reasons(root) == dict.fromkeys(["x lint", "web lint"], ".github/workflows/ci.yml:4")


@pytest.mark.parametrize(
    ("cmd", "expected"),
    [
        ("pytest -x tests/a.py", ("test", "pytest")),
        ("A=1 B='x y' python3 -m pytest tests", ("test", "A=1 B='x y' python3 -m pytest")),
        ("cd api && npm run test -- --grep x", ("test", "cd api && npm run test")),
        ("go test -run TestA ./...", ("test", "go test ./...")),
        ("uv run ruff check src", ("lint", "uv run ruff check")),
        ("pip install -e .[test]", ("install", "pip install -e '.[test]'")),
        ("ruff", None),
        ("cd /home/me/api && pytest", None),
        ("ls tests", None),
        ("pytest 'unbalanced", None),
    ],
)
def test_invocation_of_a_job(cmd: str, expected: tuple[str, str] | None) -> None:
    """With variables and a directory of the repo, without targets and options of the moment."""
    assert job_invocation(cmd) == expected
