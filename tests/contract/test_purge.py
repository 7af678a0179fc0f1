"""A purge is complete: what hooks left while nobody answered is purged too."""

from __future__ import annotations

from pathlib import Path

from nudge.storage import spool
from tests.harness import Machine

_EVENTS = 450  # more than are taken in at once


def test_what_waits_in_the_spool_does_not_come_back(machine: Machine) -> None:
    """The events of hooks without a server are taken in before a purge counts or deletes: afterwards no word of them is
    on the disk."""
    Path(machine.runtime).mkdir(mode=0o700, exist_ok=True)
    for number in range(_EVENTS):
        spool.write(machine.runtime, _event(number))
    counted = machine.json("purge", "--search", "quetzal")
    assert (counted["total"], counted["waiting"], counted["deleted"]) == (_EVENTS, 0, False)
    assert machine.json("purge", "--search", "quetzal", "--confirm")["total"] == _EVENTS
    assert machine.json("search", "quetzal") == []
    machine.cli("stop", "--force")
    kept = [path for path in Path(machine.base).rglob("*") if path.is_file() and b"quetzal" in path.read_bytes()]
    assert kept == []


def _event(number: int) -> dict[str, object]:
    return {
        "event_id": f"e{number:05}",
        "session_id": "s",
        "client": "claude-code",
        "cwd": "/w/x",
        "repo": None,
        "project": "x",
        "branch": None,
        "timestamp": 1_800_000_000 + number,
        "source_event": "PostToolUse",
        "prompt_id": None,
        "agent_id": None,
        "type": "command",
        "tool_name": "Bash",
        "file_path": None,
        "content": f"make quetzal {number}",
        "metadata": {"exit_code": 0},
        "start_source": None,
    }
