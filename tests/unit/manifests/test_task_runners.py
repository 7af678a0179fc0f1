"""Makefiles, justfiles, Taskfiles and scripts: what people type; Compose files, and CI steps for what nothing else
answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from nudge.manifests import scan_repo
from nudge.manifests.task_runners import make_targets
from tests.unit.manifests.repos import commands, reasons, write_repo


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("test: build", ["test"]),
        ("check test:: dep", ["check", "test"]),
        ("test: ; pytest", ["test"]),
        ("test : dep # lint: no", ["test"]),
        ("test := x", []),
        ("test ::= x", []),
        ("URL = http://x", []),
        ("test: CFLAGS += -g", []),
        ("test: export A = b", []),
        ("%.o: %.c", []),
        (".PHONY: test", []),
        ("$(BIN): main.go", []),
        ("\ttest: x", []),
        ("# test: x", []),
        ("out/bin: x", []),
        ("include test.mk", []),
    ],
)
def test_what_is_a_make_target(line: str, expected: list[str]) -> None:
    """Only an explicit rule with a plain name is a target."""
    assert list(make_targets(line)) == expected


def test_a_continued_make_line_is_one_line() -> None:
    """A list that goes on over several lines hides no targets, and lines are still counted right."""
    assert make_targets("FILES = a \\\n  test: \\\n  b\nlint:\n\truff\n") == {"lint": 4}


def test_best_make_target_wins(tmp_path: Path) -> None:
    """Of several names for one key the plainest is typed."""
    makefile = "all:\ncheck:\ntests:\ntest:\nup:\nserve:\nblack:\nfmt:\ndist:\nbuild:\n"
    assert commands(tmp_path / "tool", {"Makefile": makefile}) == {
        "tool build": "make build",
        "tool test": "make test",
        "tool run": "make serve",
        "tool format": "make fmt",
    }


def test_make_reads_its_own_file_first(tmp_path: Path) -> None:
    """GNUmakefile hides Makefile, as it does for make."""
    assert commands(tmp_path / "x", {"Makefile": "test:\n", "GNUmakefile": "lint:\n"}) == {"x lint": "make lint"}


def test_nested_make(tmp_path: Path) -> None:
    """A nested Makefile is called from the root, whatever its directory is called."""
    files = {"services/api/Makefile": "test:\n", "my app/Makefile": "test:\n", "-x/Makefile": "test:\n"}
    assert commands(tmp_path, files) == {
        "api test": "make -C services/api test",
        "my app test": "make -C 'my app' test",
        "-x test": "make -C ./-x test",
    }


JUSTFILE = """
    set shell := ["bash", "-c"]
    version := "1"
    alias check := test

    default:
        just --list

    # run the tests
    @test *args:
        cargo test {{args}}

    build target='debug': test
        cargo build

    run port:
        server {{port}}

    [private]
    lint:
        clippy

    _format:
        rustfmt
    """


def test_just(tmp_path: Path) -> None:
    """Recipes that need no argument and are not private."""
    root = tmp_path / "tool"
    assert commands(root, {"justfile": JUSTFILE}) == {"tool test": "just test", "tool build": "just build"}
    assert reasons(root) == {"tool test": "justfile:9", "tool build": "justfile:12"}


def test_nested_just(tmp_path: Path) -> None:
    """just finds a justfile elsewhere by the recipe's path."""
    assert commands(tmp_path, {"a/b/justfile": "test:\n  x\n"}) == {"b test": "just a/b/test"}


TASKFILE = """
    version: '3'

    vars:
      test: nothing

    tasks:
      build:
        desc: "Build: all of it"
        cmds:
          - go build ./...
      test:
        - go test ./...
      lint:
        internal: true
        cmds: [golangci-lint run]
      "fmt": gofmt -w .
    """


def test_task(tmp_path: Path) -> None:
    """Tasks in each form that they can be written in; an internal one cannot be called."""
    root = tmp_path / "tool"
    assert commands(root, {"Taskfile.yml": TASKFILE}) == {
        "tool build": "task build",
        "tool test": "task test",
        "tool format": "task fmt",
    }
    assert reasons(root)["tool test"] == "Taskfile.yml:11"
    assert commands(tmp_path / "other", {"svc/Taskfile.yml": TASKFILE})["svc test"] == "task -d svc test"


def test_task_in_flow_style(tmp_path: Path) -> None:
    """Tasks on one line, and one that is made from another."""
    text = "tasks: {test: {cmds: [pytest]}, lint: {internal: TRUE}, build: &b {cmd: make}, fmt: *b}\n"
    assert commands(tmp_path / "x", {"Taskfile.yml": text}) == {
        "x build": "task build",
        "x test": "task test",
        "x format": "task fmt",
    }


def test_makefile_before_justfile_before_taskfile(tmp_path: Path) -> None:
    """Three runners in one directory answer in a fixed order, key by key."""
    root = write_repo(
        tmp_path / "x", {"Makefile": "test:\n", "justfile": "test:\n x\nlint:\n x\n", "Taskfile.yml": TASKFILE}
    )
    assert reasons(root) == {
        "x test": "Makefile:1",
        "x lint": "justfile:3",
        "x build": "Taskfile.yml:7",
        "x format": "Taskfile.yml:16",
    }


def test_executables_named_for_a_job(tmp_path: Path) -> None:
    """`scripts/` before `bin/`, in the root and in packages; what cannot be run, or is named for nothing, is no job."""
    program, files = "#!/bin/sh\n", {"pytest.ini": ""}
    files |= {"scripts/run-tests.sh": program, "bin/tests": program, "bin/lint": program, "tools/format.py": program}
    files |= {
        "scripts/build": "not executable",
        "scripts/release": program,
        "scripts/test.ps1": program,
        "scripts/run-tests.py": "",
    }
    files |= {"api/package.json": '{"name": "api"}', "api/bin/test": program, "docs/bin/build": program}
    assert commands(tmp_path / "x", files) == {
        "x test": "scripts/run-tests.sh",
        "x lint": "bin/lint",
        "x format": "tools/format.py",
        "api test": "cd api && bin/test",
    }


# Compose files and workflows


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
    result = commands(tmp_path / "x", dict.fromkeys(files, SERVICES))
    assert run in result.values()
    assert result["api run"] == f"{run} api"


def test_several_compose_variants(tmp_path: Path) -> None:
    """Which of several files go together is not for us to guess."""
    assert commands(tmp_path, {"compose.dev.yml": SERVICES, "compose.prod.yml": SERVICES}) == {}


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
    result = {each.key: each for each in scan_repo(write_repo(tmp_path, files)).commands}
    assert (result["test"].cmd, result["test"].is_guess) == ("go test ./...", False)
    assert (result["lint"].cmd, result["lint"].is_guess) == ("bash ci/lint.sh", False)
    assert (result["build"].cmd, result["build"].is_guess) == ("go build ./...", True)


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
