"""What a hint said before, for those who ask with the command, over HTTP and after another start."""

from __future__ import annotations

import json
import os
import signal
from contextlib import closing
from typing import Any

from nudge.storage.changelog import read_log
from tests.contract.ways import Http, Rest, connected
from tests.harness import Machine, eventually

NAME = {"component": "api", "key": "test"}


def said(machine: Machine) -> list[tuple[Any, Any, Any]]:
    """Value, author and session of each version, the present one first."""
    (variant,) = machine.json("versions", "api", "test")["variants"]
    now = (variant.get("value"), variant["meta"].get("added_by"), variant.get("session"))
    return [now, *((one.get("value"), one.get("by"), one.get("session")) for one in variant.get("earlier", ()))]


def test_who_set_it_and_in_which_session(machine: Machine) -> None:
    """An agent's session is that of its environment, or of the call; a person at a terminal has none, nor has one whose
    name cannot be shown. The command says it in words, the last one first."""
    machine.prepared_server()
    agent = connected(machine, CLAUDE_CODE_SESSION_ID="ses-one")
    agent.call("nudge_set_hint", **NAME, value="pytest", meta={"reason": "CI runs it", "scope": {}, "added_by": "a"})
    call = {"name": "nudge_set_hint", "arguments": {**NAME, "value": "pytest -q", "meta": {"scope": {}}}}
    agent.request("tools/call", {**call, "_meta": {"sessionId": "ses-two"}})
    connected(machine, CLAUDE_CODE_SESSION_ID="ses\x1b[31m").call(
        "nudge_set_hint", **NAME, value="nox", meta={"scope": {}}
    )
    machine.json("set", "--global", "api", "test", "make test")
    found = said(machine)
    assert [(value, session) for value, _, session in found] == [
        *(("make test", None), ("nox", None), ("pytest -q", "ses-two"), ("pytest", "ses-one")),
    ]
    lines = machine.cli("versions", "api/test").stdout.splitlines()
    assert [line.split()[0] for line in lines[1::2]] == ["v4", "v3", "v2", "v1"]
    assert "session ses-one" in lines[-1] and "CI runs it" in lines[-1]
    with closing(Http.to(machine)) as opened:
        (variant,) = Rest(opened).call("nudge.hint_versions", NAME)["result"]["variants"]
    assert [one["value"] for one in variant["earlier"]] == ["nox", "pytest -q", "pytest"]


def test_they_outlive_their_server(machine: Machine) -> None:
    """A server that is killed, one that writes the whole log anew, and an import that replaces everything."""
    machine.prepared_server()
    for value in ("pytest", "pytest -q", "make test"):
        machine.json("set", "--global", "api", "test", value)
    before = said(machine)
    os.kill(machine.ready().pid, signal.SIGKILL)
    assert said(machine) == before and len(before) == 3
    many = {"schema_version": "1.0", "components": {"more": {"hints": {f"k{n}": {"value": "v"} for n in range(60)}}}}
    assert machine.cli("import", "-", stdin=json.dumps(many)).returncode == 0  # writes a whole new log
    os.kill(machine.ready().pid, signal.SIGKILL)
    assert said(machine) == before
    exported = machine.cli("export", "--versions").stdout
    machine.json("delete", "api", "test")
    assert machine.cli("import", "-", stdin=exported).returncode == 0
    assert said(machine) == before


def test_what_is_forgotten_is_not_kept(machine: Machine) -> None:
    """Neither by a hint that became a secret, nor in the files of a lifetime that was ended."""
    machine.prepared_server()
    for value in ("first-words", "second-words"):
        machine.json("set", "--global", "api", "test", value)
    machine.json("set", "--global", "api", "test", "third-words", "--allow-secret")
    (variant,) = machine.json("versions", "api", "test")["variants"]
    assert [one.get("redacted") for one in variant["earlier"]] == [True, True]
    assert "words" not in json.dumps(variant)
    assert "words" not in machine.cli("versions", "api", "test").stdout
    assert machine.cli("stop", "--forget").returncode == 0
    eventually(machine.lock_is_free, "the server has ended")
    machine.prepared_server()
    machine.json("set", "--global", "api", "test", "fourth-words")
    assert said(machine) == [("fourth-words", None, None)]


def test_a_log_with_them_is_of_the_same_format(machine: Machine) -> None:
    """The header is as before, and a record has what an earlier release reads: what is new comes beside it."""
    machine.prepared_server()
    for value in ("pytest", "make test"):
        machine.json("set", "--global", "api", "test", value, CLAUDE_CODE_SESSION_ID="ses-one")
    contents = read_log(os.path.join(machine.runtime, "changes.log"))
    assert contents is not None and contents.header is not None and contents.header["format"] == 1
    puts = [put for record in contents.records for put in record.get("puts", ())]
    assert [(put["value"], put.get("session")) for put in puts] == [("pytest", "ses-one"), ("make test", "ses-one")]
    assert all("earlier" not in put for put in puts)
