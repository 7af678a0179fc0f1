"""Makefiles, justfiles and Taskfiles: the targets that people type."""

from __future__ import annotations

from pathlib import Path

import pytest

from nudge.manifests.task_runners import make_targets

from .repos import commands, reasons, write_repo


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
