"""A hint knows the files that it rests on: when one changes, whoever reads the hint is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nudge.core import transfer_files
from nudge.core.context import resolve
from nudge.process.client import Client
from nudge.storage import spool
from tests.contract.repos import clone
from tests.harness import Machine, eventually

CHANGED = "Makefile changed since"


@pytest.fixture
def repo(machine: Machine) -> Path:
    """A scanned clone, with `make test` and `make build`, and a PRIMARY."""
    machine.prepared_server()
    folder = machine.base / "shop"
    clone(folder)
    (folder / "Makefile").write_text("test:\n\tpytest\nbuild:\n\tpython -m build\n")
    _scan(machine, folder)
    return folder


def _scan(machine: Machine, repo: Path) -> dict[str, Any]:
    result: dict[str, Any] = machine.json("scan", cwd=str(repo))
    return result


def _edit(repo: Path, text: str) -> None:
    with (repo / "Makefile").open("a") as file:
        file.write(text)


def _explain(machine: Machine, repo: Path) -> dict[str, Any]:
    result: dict[str, Any] = machine.json("get", "shop", "test", cwd=str(repo))["match_explain"]
    return result


def _ran(machine: Machine, repo: Path, command: str) -> None:
    event: dict[str, Any] = {"session_id": "s1", "cwd": str(repo), "tool_name": "Bash", "tool_use_id": "t1"}
    event |= {"hook_event_name": "PostToolUse", "tool_input": {"command": command}}
    response = {"tool_response": {"stdout": "", "stderr": "", "interrupted": False}}
    assert machine.cli("record", stdin=json.dumps(event | response)).returncode == 0
    eventually(lambda: not spool.pending(machine.runtime), "the event is stored")


def test_a_changed_manifest_is_told(machine: Machine, repo: Path) -> None:
    """`get` and `query` say so and the score is lower; a hint on another file stays as it was."""
    before = _explain(machine, repo)
    assert CHANGED not in before["reasons"]
    machine.cli("set", "shop", "docs", "make docs", cwd=str(repo))
    _edit(repo, "docs:\n")
    after = _explain(machine, repo)
    assert after["reasons"][0] == CHANGED and after["score"] == pytest.approx(before["score"] / 2, abs=0.01)
    hits = machine.json("query", "--component", "shop", cwd=str(repo))["hints"]
    assert hits[0]["key"] == "docs" and CHANGED not in hits[0]["match_explain"]["reasons"]
    assert all(CHANGED in hit["match_explain"]["reasons"] for hit in hits[1:]) and len(hits) == 3
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_the_start_text_says_so_with_and_without_a_server(machine: Machine, repo: Path) -> None:
    """A session that starts reads it beside the reason, from PRIMARY and from the disk."""
    _edit(repo, "docs:\n")
    assert f'shop/test: "make test" ({CHANGED}; Makefile:1)' in machine.cli("inject", cwd=str(repo)).stdout
    machine.cli("stop", "--force")
    start = {"session_id": "s9", "cwd": str(repo), "hook_event_name": "SessionStart", "source": "startup"}
    assert f'shop/test: "make test" ({CHANGED}; Makefile:1)' in machine.cli("record", stdin=json.dumps(start)).stdout


def test_a_hint_without_its_file_is_not_told_here(machine: Machine, repo: Path) -> None:
    """`get` says that the file is not here; a session that starts is told nothing of it."""
    (repo / "Makefile").unlink()
    assert _explain(machine, repo)["reasons"][0] == "Makefile is not here"
    assert "make test" not in machine.cli("inject", cwd=str(repo)).stdout


def test_scan_makes_it_fresh(machine: Machine, repo: Path) -> None:
    """Also when the command is the same: nothing is a new version."""
    _edit(repo, "docs:\n")
    result = _scan(machine, repo)
    assert (result["updated"], result["unchanged"]) == ([], 2)
    assert CHANGED not in _explain(machine, repo)["reasons"]
    assert machine.json("get", "shop", "test", cwd=str(repo))["hint"]["version"] == 1


def test_a_success_makes_it_fresh(machine: Machine, repo: Path) -> None:
    """The command that worked, and no other."""
    _edit(repo, "docs:\n")
    _ran(machine, repo, "make test")
    eventually(lambda: CHANGED not in _explain(machine, repo)["reasons"], "the hint is fresh")
    build = machine.json("get", "shop", "build", cwd=str(repo))["match_explain"]
    assert CHANGED in build["reasons"]


def test_what_it_rests_on_is_kept_and_not_shown(machine: Machine, repo: Path) -> None:
    """A new server knows it from the log; no caller sees a digest; where the file is not, nothing is said."""
    machine.cli("stop", "--force")
    machine.prepared_server()
    assert CHANGED not in _explain(machine, repo)["reasons"]
    _edit(repo, "docs:\n")
    assert CHANGED in _explain(machine, repo)["reasons"]
    seen = [machine.cli(*verb, "--json", cwd=str(repo)).stdout for verb in (("export",), ("ls", "shop"), ("query",))]
    assert not any("basis" in text or "stale" in text for text in seen)
    elsewhere = {"context": {"repo": "git:example.com/org/shop", "cwd": "/nowhere"}, "component": "shop", "key": "test"}
    found = Client(environ=machine.environ).call("nudge.get_hint", elsewhere)
    assert found["hint"]["value"]["cmd"] == "make test" and CHANGED not in found["match_explain"]["reasons"]


def test_a_hint_that_was_taken_over_rests_on_nothing(machine: Machine, repo: Path) -> None:
    """What a person set does not depend on the manifest that scan read."""
    machine.cli("set", "shop", "test", "make mine", cwd=str(repo))
    _edit(repo, "docs:\n")
    assert CHANGED not in _explain(machine, repo)["reasons"]


@pytest.mark.parametrize(
    ("value", "folder", "file"),
    [
        ("./scripts/pack.sh --all", "", "scripts/pack.sh"),
        ("./pack.sh", "scripts", "scripts/pack.sh"),
        ("bash scripts/pack.sh", "scripts", "scripts/pack.sh"),
        ("DEBUG=1 make test", "", "Makefile"),
        ("npm run pack", "", "package.json"),
    ],
)
def test_what_somebody_set_rests_on_the_files_that_it_names(
    machine: Machine, repo: Path, value: str, folder: str, file: str
) -> None:
    """As the command is typed where the hint is set, or else at the top of the clone; `get` and the start say that the
    file changed, until the command worked."""
    (repo / "scripts").mkdir()
    (repo / "scripts" / "pack.sh").write_text("#!/bin/sh\n")
    (repo / "package.json").write_text('{"scripts": {"pack": "tar"}}')
    machine.cli("set", "shop", "pack", value, "--reason", "by hand", cwd=str(repo / folder))
    before = machine.json("get", "shop", "pack", cwd=str(repo))["match_explain"]
    with (repo / file).open("a") as manifest:
        manifest.write("\n")
    after = machine.json("get", "shop", "pack", cwd=str(repo))["match_explain"]
    assert after["reasons"] == [f"{file} changed since", *before["reasons"]]
    assert after["score"] == pytest.approx(before["score"] / 2, abs=0.01)
    assert f'shop/pack: "{value}" ({file} changed since; "by hand")' in machine.cli("inject", cwd=str(repo)).stdout
    _ran(machine, repo, value)

    def is_fresh() -> bool:
        reasons = machine.json("get", "shop", "pack", cwd=str(repo))["match_explain"]["reasons"]
        return after["reasons"][0] not in reasons

    eventually(is_fresh, "the hint is fresh")


@pytest.mark.parametrize("value", ["make mine", "see ../outside.txt", "pack with scripts/none.sh", '{"a": "Makefile"}'])
def test_a_hint_that_names_no_file_of_the_repo_rests_on_nothing(machine: Machine, repo: Path, value: str) -> None:
    """A target that is not defined, a file outside the clone or one that does not exist: nothing is looked at."""
    (repo.parent / "outside.txt").write_text("x")
    machine.cli("set", "shop", "pack", value, cwd=str(repo))
    machine.cli("set", "shop", "everywhere", "make test", "--global", cwd=str(repo))
    _edit(repo, "docs:\n")
    (repo.parent / "outside.txt").write_text("y")
    for key in ("pack", "everywhere"):
        reasons = machine.json("get", "shop", key, cwd=str(repo))["match_explain"]["reasons"]
        assert not any("changed" in reason or "not here" in reason for reason in reasons)


@pytest.mark.parametrize("in_a_file", [False, True])
def test_an_imported_hint_rests_on_the_files_that_it_names(machine: Machine, repo: Path, in_a_file: bool) -> None:
    """In one call and through a file; one that is imported in another directory rests on nothing."""
    machine.cli("set", "shop", "pack", "make build", "--reason", "by hand", cwd=str(repo))
    exported = machine.base / "hints.json"
    exported.write_text(machine.cli("export", cwd=str(repo)).stdout)

    def bring_back(cwd: Path) -> list[str]:
        """The reasons after an import and an edit of the Makefile."""
        machine.cli("delete", "shop", "pack", cwd=str(repo))
        if in_a_file:
            client, context = Client(environ=machine.environ), resolve(str(cwd)).to_json()
            with transfer_files.reserved(machine.runtime) as name:
                with transfer_files.created(machine.runtime, name) as file:
                    file.write(exported.read_bytes())
                assert client.call("nudge.import", {"file": name}, context=context)["imported"] == 1
        else:
            assert machine.json("import", str(exported), cwd=str(cwd))["imported"] == 1
        _edit(repo, "more:\n")
        reasons: list[str] = machine.json("get", "shop", "pack", cwd=str(repo))["match_explain"]["reasons"]
        return reasons

    assert bring_back(repo)[0] == CHANGED
    assert CHANGED not in bring_back(machine.base)


def test_a_question_keeps_its_order(machine: Machine, repo: Path) -> None:
    """What has more of the words stays before what has fewer, also when its file changed."""
    machine.cli("set", "shop", "note", "make is used", "--priority", "10", cwd=str(repo))
    _edit(repo, "docs:\n")
    hits = machine.json("query", "how can you make the test pass", cwd=str(repo))["hints"]
    assert [(hit["key"], hit["partial"]) for hit in hits[:1]] == [("test", True)]
    assert CHANGED in hits[0]["match_explain"]["reasons"] and "note" in [hit["key"] for hit in hits]
