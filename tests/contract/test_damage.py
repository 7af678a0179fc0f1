"""Damaged, removed or replaced files, as a person finds them: what was acknowledged is there, and `status` and `doctor`
say what happened. Real processes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.harness import Machine


def value(machine: Machine, key: str) -> object:
    return machine.json("get", "shop", key)["hint"]["value"]


def test_one_changed_byte_in_the_change_log(machine: Machine) -> None:
    """Every other hint is still there after the next start; the damaged file is kept, and both doors say so."""
    for key in ("first", "second", "third"):
        machine.cli("set", "--global", "shop", key, f"value of {key}")
    machine.cli("stop")
    log = Path(machine.runtime) / "changes.log"
    data = bytearray(log.read_bytes())
    data[data.index(b"value of second")] ^= 1
    log.write_bytes(data)
    before = machine.cli("doctor", "--json")
    assert "damaged" in before.stdout
    assert [value(machine, key) for key in ("first", "third")] == ["value of first", "value of third"]
    status = machine.json("status")
    assert "changes.log.damaged" in status["warnings"][0] and status["durability"] == "process"
    assert (Path(machine.runtime) / "changes.log.damaged").read_bytes() == data
    found = {item["check"]: item for item in json.loads(machine.cli("doctor", "--json").stdout)["findings"]}
    assert "changes.log.damaged" in found["change log"]["message"]


def test_a_change_log_that_cannot_be_read(machine: Machine) -> None:
    """The server starts in memory and says so; what stands in the log's place is not touched."""
    os.makedirs(os.path.join(machine.runtime, "changes.log"), mode=0o700)
    os.chmod(machine.runtime, 0o700)
    machine.cli("set", "--global", "shop", "test", "make test")
    assert value(machine, "test") == "make test"
    status = machine.json("status")
    assert status["durability"] == "none" and "memory" in status["warnings"][0]
    assert os.path.isdir(os.path.join(machine.runtime, "changes.log"))
