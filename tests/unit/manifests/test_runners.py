"""Makefiles, justfiles and Taskfiles: the targets that people type."""

from __future__ import annotations

from pathlib import Path

import pytest

from nudge.manifests.makefile import targets

from .planting import plant, planted, reasons


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
    assert list(targets(line)) == expected


def test_a_continued_make_line_is_one_line() -> None:
    """A list that goes on over several lines hides no targets, and lines are still counted right."""
    assert targets("FILES = a \\\n  test: \\\n  b\nlint:\n\truff\n") == {"lint": 4}


def test_best_make_target_wins(tmp_path: Path) -> None:
    """Of several names for one key the plainest is typed."""
    makefile = "all:\ncheck:\ntests:\ntest:\nup:\nserve:\nblack:\nfmt:\ndist:\nbuild:\n"
    assert planted(tmp_path / "tool", {"Makefile": makefile}) == {
        "tool build": "make build",
        "tool test": "make test",
        "tool run": "make serve",
        "tool format": "make fmt",
    }


def test_make_reads_its_own_file_first(tmp_path: Path) -> None:
    """GNUmakefile hides Makefile, as it does for make."""
    assert planted(tmp_path / "x", {"Makefile": "test:\n", "GNUmakefile": "lint:\n"}) == {"x lint": "make lint"}


def test_nested_make(tmp_path: Path) -> None:
    """A nested Makefile is called from the root, whatever its directory is called."""
    files = {"services/api/Makefile": "test:\n", "my app/Makefile": "test:\n", "-x/Makefile": "test:\n"}
    assert planted(tmp_path, files) == {
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
    assert planted(root, {"justfile": JUSTFILE}) == {"tool test": "just test", "tool build": "just build"}
    assert reasons(root) == {"tool test": "justfile:9", "tool build": "justfile:12"}


def test_nested_just(tmp_path: Path) -> None:
    """just finds a justfile elsewhere by the recipe's path."""
    assert planted(tmp_path, {"a/b/justfile": "test:\n  x\n"}) == {"b test": "just a/b/test"}


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
    assert planted(root, {"Taskfile.yml": TASKFILE}) == {
        "tool build": "task build",
        "tool test": "task test",
        "tool format": "task fmt",
    }
    assert reasons(root)["tool test"] == "Taskfile.yml:11"
    assert planted(tmp_path / "other", {"svc/Taskfile.yml": TASKFILE})["svc test"] == "task -d svc test"


def test_makefile_before_justfile_before_taskfile(tmp_path: Path) -> None:
    """Three runners in one directory answer in a fixed order, key by key."""
    root = plant(
        tmp_path / "x", {"Makefile": "test:\n", "justfile": "test:\n x\nlint:\n x\n", "Taskfile.yml": TASKFILE}
    )
    assert reasons(root) == {
        "x test": "Makefile:1",
        "x lint": "justfile:3",
        "x build": "Taskfile.yml:7",
        "x format": "Taskfile.yml:16",
    }
