"""`nudge replay` on a directory of transcripts: real work, other clients' files, damaged lines, Ctrl-C."""

from __future__ import annotations

import gzip
import json
import os
import pty
import random
import shutil
import signal
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.harness import NUDGE, ROOT, Machine
from tests.unit.clients.transcripts import FIXTURES, LONG_AGO, Script

DATA = ROOT / "tests" / "bench" / "data"
SESSIONS, COMMANDS = 135, 5_531


def _write_transcripts(folder: Path) -> None:
    """The runs of the benchmark as Claude Code would have written them down."""
    lines: dict[str, list[str]] = {}
    with gzip.open(DATA / "replay.jsonl.gz", "rt", encoding="utf-8") as payloads:
        for number, payload in enumerate(map(json.loads, payloads)):
            own = lines.setdefault(payload["session_id"], [])
            when = datetime.fromtimestamp(payload["_bench"]["t"], UTC).isoformat()
            common = {"sessionId": payload["session_id"], "cwd": payload["cwd"], "timestamp": when}
            for part, entry in enumerate(_entries(payload, f"t{number}")):
                own.append(json.dumps({**common, "uuid": f"{number}-{part}", **entry}))
    folder.mkdir()
    for session, entries in lines.items():
        (folder / f"{session}.jsonl").write_text("\n".join(entries) + "\n")


def _entries(payload: dict[str, Any], identity: str) -> list[dict[str, Any]]:
    if payload["hook_event_name"] == "UserPromptSubmit":
        return [{"type": "user", "promptId": identity, "message": {"role": "user", "content": payload["prompt"]}}]
    if "tool_name" not in payload:
        return []
    call = {"type": "tool_use", "id": identity, "name": payload["tool_name"], "input": payload["tool_input"]}
    error = payload.get("error")
    result = {"type": "tool_result", "tool_use_id": identity, "content": error or "", "is_error": error is not None}
    response = {} if error is not None else {"toolUseResult": payload["tool_response"]}
    return [
        {"type": "assistant", "message": {"role": "assistant", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [result]}, **response},
    ]


@pytest.fixture(scope="module")
def real_work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transcripts") / "projects"
    _write_transcripts(folder)
    return folder


def test_real_work_is_replayed(machine: Machine, real_work: Path) -> None:
    """135 runs of a coding agent: of the twelve failures whose fix was in the history, as read by hand, eleven are
    known, and each answer is what then worked in that session."""
    result = machine.json("replay", str(real_work))
    assert (result["files"], result["sessions"], result["commands"]) == (SESSIONS, SESSIONS, COMMANDS)
    assert (result["foreign"], result["unreadable"], result["damaged"]) == (0, 0, 0)
    useful = {failure["failed"] for failure in json.loads((DATA / "replay_useful.json").read_text())}
    told = [line for line in result["told"] if line["kind"] != "missed"]
    assert len([line for line in told if line["failed"] in useful]) >= 11
    assert result["failures_spared"] + result["failures_answered"] == len(told) == result["answers_right"]
    assert all(line["worked"] and line["instead"] is None for line in told)
    printed = machine.cli("replay", str(real_work)).stdout.splitlines()
    assert printed[0].startswith("read 135 transcripts: 135 sessions, 5,531 commands, ")
    assert all(" -> " in line and "\x1b" not in line for line in printed[3:]) and len(printed) == 3 + len(
        result["told"]
    )


def test_what_is_damaged_or_of_another_client_is_skipped(machine: Machine, real_work: Path) -> None:
    """It is counted, and the rest is read as before: files of Codex and Gemini, other JSON, lines that are cut, doubled
    or no text at all."""
    folder = machine.base / "projects"
    shutil.copytree(real_work, folder)
    for name in ("codex_transcript.jsonl", "gemini_transcript.jsonl"):
        (folder / name).write_bytes((FIXTURES / name).read_bytes())
    (folder / "numbers.jsonl").write_text("1\n[2]\nnull\n")
    (folder / "empty.jsonl").touch()
    (folder / "gone.jsonl").symlink_to(folder / "nowhere.jsonl")
    damaged = min(folder.glob("*-*.jsonl"))
    damaged.write_bytes(b"\xff\xfe\x00\n\n{\n" + damaged.read_bytes() + b'{"type": "user", "sess')
    result = machine.json("replay", str(folder))
    assert (result["sessions"], result["commands"]) == (SESSIONS, COMMANDS)
    assert result["foreign"] == 4 and result["damaged"] == 6 and result["unreadable"] == 1
    done = machine.cli("replay", str(folder))
    assert done.returncode == 0 and done.stderr == (
        "skipped: 4 files without a session of Claude Code, 1 file that cannot be read, 6 lines that are damaged\n"
    )


def test_any_damage_is_survived(machine: Machine) -> None:
    """Values of other types wherever Claude Code writes one, in ten thousand entries; bytes lost and doubled."""
    chance = random.Random(7)
    folder = machine.base / "projects"
    folder.mkdir()
    lines = [line for name in ("transcript", "transcript_agent", "transcript_fork") for line in _fixture(name)]
    for number in range(20):
        entries = [json.dumps(_with_damage(json.loads(chance.choice(lines)), chance)) for _ in range(500)]
        raw = bytearray("\n".join(entries).encode())
        for _ in range(20):
            at = chance.randrange(len(raw))
            raw[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        (folder / f"{number}.jsonl").write_bytes(raw)
    result = machine.json("replay", str(folder))
    assert result["damaged"] > 0 and result["files"] == 20


def _fixture(name: str) -> list[str]:
    return (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()


def _with_damage(node: Any, chance: random.Random) -> Any:
    """The same with about one value in forty replaced."""
    if chance.random() < 0.025:
        return chance.choice((None, True, 7, -1e300, "", "x", [], {}, [None], {"type": "text"}, "\ud800"))
    if isinstance(node, dict):
        return {name: _with_damage(value, chance) for name, value in node.items()}
    return [_with_damage(item, chance) for item in node] if isinstance(node, list) else node


def test_an_answer_that_was_not_what_worked_is_said(machine: Machine) -> None:
    """The second session gets past the failure in another way than the first; the third does not get past it; what
    worked instead is named."""
    folder = machine.base / "projects"
    ways = ("uv run pytest -q", ".venv/bin/pytest -q", None)
    for number, way in enumerate(ways):
        script = Script(folder / f"s-{number}.jsonl", f"s-{number}", at=LONG_AGO + 86_400 * number)
        script.call(f"a{number}", command="pytest -q")
        script.result(f"a{number}", "Exit code 127\nbash: pytest: command not found", error=True)
        if way is not None:
            script.call(f"b{number}", command=way)
            script.result(f"b{number}", "5 passed in 0.1s")
    result = machine.json("replay", str(folder))
    assert [(line["worked"], line["instead"]) for line in result["told"]] == [
        (False, ".venv/bin/pytest …"),
        (None, None),
    ]
    assert (result["answers_right"], result["answers_wrong"], result["failures_met_again"]) == (0, 1, 2)
    lines = machine.cli("replay", str(folder)).stdout.splitlines()
    assert lines[2] == "of 2 answers, 0 are what worked then, 1 are not, after 1 nothing worked"
    assert lines[3].endswith("answered  no  pytest -> uv run pytest … (what worked: .venv/bin/pytest …)")


def test_ctrl_c_ends_it_at_once(machine: Machine, real_work: Path) -> None:
    """While it reads, which a bar on the terminal shows: no result, no traceback, and the exit code of an interrupted
    command."""
    screen, terminal = pty.openpty()
    # A test that runs in the background inherits that SIGINT is ignored, and so would the command.
    command = f"{NUDGE[0]!r}, {[*NUDGE, 'replay', str(real_work)]!r}"
    start = f"import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv({command})"
    process = subprocess.Popen([NUDGE[0], "-c", start], stdout=subprocess.PIPE, stderr=terminal, env=machine.environ)
    os.close(terminal)
    shown = b""
    while b"reading transcripts" not in shown:
        shown += os.read(screen, 4_096)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    with suppress(OSError):  # how Linux says that nobody writes to it any more
        while more := os.read(screen, 4_096):
            shown += more
    os.close(screen)
    assert (process.returncode, out) == (130, b"") and b"Traceback" not in shown
