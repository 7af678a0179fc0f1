"""What would have been told in earlier sessions, from their transcripts."""

from __future__ import annotations

from pathlib import Path

from nudge.usecases.backfill import find_all
from nudge.usecases.replay import replay
from tests.unit.clients.transcripts import LONG_AGO, Script

_BROKEN, _ERROR = "/usr/bin/python3 -m pytest tests", "Exit code 1\n/usr/bin/python3: No module named pytest"


def _session(folder: Path, number: int, *commands: str) -> None:
    """A session, a day after the one before. What is broken fails, everything else ends well."""
    script = Script(folder / f"s-{number}.jsonl", f"s-{number}", at=LONG_AGO + 86_400 * number)
    script.prompt("go")
    for place, command in enumerate(commands):
        identity = f"t{number}-{place}"
        script.call(identity, command=command)
        broken = command == _BROKEN
        script.result(identity, _ERROR if broken else "ok", error=broken)


def test_what_is_known_by_then_is_counted(tmp_path: Path) -> None:
    """The first failure teaches; the same in the second session is spared by what it reads at its start."""
    _session(tmp_path, 1, _BROKEN, "which pytest", "pytest tests")
    _session(tmp_path, 2, "ls", _BROKEN, "which pytest", "ls", "pytest tests")
    _session(tmp_path, 3, "make")
    result = replay(find_all([str(tmp_path)]))
    assert (result["files"], result["sessions"], result["failures"]) == (3, 3, 2)
    assert (result["failures_spared"], result["failures_answered"]) == (1, 0)
    assert result["commands_saved"] == 3, "the failure itself, and the two commands before pytest was found"
    (line,) = result["told"]
    assert (line["kind"], line["session"], line["subject"], line["answer"]) == (
        "spared",
        "s-2",
        "/usr/bin/python3 -m pytest",
        "pytest",
    )


def test_nothing_is_known_in_a_first_session(tmp_path: Path) -> None:
    """However often it fails; a file that is named twice is read once."""
    _session(tmp_path, 1, _BROKEN, _BROKEN, "pytest tests")
    result = replay(find_all([str(tmp_path), str(tmp_path / "s-1.jsonl")]))
    assert (result["files"], result["commands"], result["told"]) == (1, 3, [])
