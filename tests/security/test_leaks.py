"""A secret that somebody stored on purpose, and text that was made to be dangerous, turn up nowhere that they should not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import Machine

SECRET = "-".join(("xoxb", "1234567890", "abcdefghijklmnop", "Q" * 12))
ESCAPE = "\x1b]0;owned\x07\x1b[31m"


@pytest.fixture
def told(make_machine: Callable[..., Machine]) -> Machine:
    """A server that logs everything and holds a secret that was allowed."""
    machine = make_machine(NUDGE_LOG_LEVEL="debug")
    machine.http_only()
    assert machine.cli("set", "api", "token", "-", "--allow-secret", "--global", stdin=SECRET).returncode == 0
    return machine


def test_a_rejected_secret_is_not_repeated(told: Machine) -> None:
    """The refusal names the kind and the field, never the value."""
    refused = told.cli("set", "api", "other", "-", "--global", stdin=SECRET)
    assert refused.returncode == 3 and "E_SECRET_REJECTED" in refused.stderr
    assert SECRET not in refused.stdout + refused.stderr
    assert told.cli("query", "--regex", SECRET[:20] + "(").returncode == 3


def test_pretty_output_hides_it(told: Machine) -> None:
    """Nobody who looks over a shoulder sees it; a script that asks for the value gets it."""
    asked = (("get", "api", "token"), ("ls", "api"), ("query", "--component", "api"), ("status",), ("doctor",), ("export",))
    shown = [told.cli(*words) for words in asked]
    assert all(SECRET not in done.stdout + done.stderr for done in shown)
    assert told.cli("get", "api", "token", "--value-only").stdout.strip() == SECRET


def test_logs_titles_and_the_last_session_hide_it(told: Machine) -> None:
    """What stays on disk or is visible to `ps` has no value in it, except the change log, which is the store."""
    titles = b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in told.pids())
    told.cli("stop", "--force", "--forget")
    kept = {path: path.read_bytes() for path in Path(told.runtime).rglob("*") if path.is_file()}
    assert any(path.name == "nudge.log" for path in kept) and any(path.name == "previous.json" for path in kept)
    assert [path for path, content in kept.items() if SECRET.encode() in content] == []
    assert SECRET.encode() not in titles


def test_recorded_secrets_never_touch_the_disk(told: Machine) -> None:
    """Redacted in the hook: neither the database nor the spool ever has it."""
    event = (
        '{"session_id":"s","cwd":"/","hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"t",'
        f'"tool_input":{{"command":"curl -H \'Authorization: Bearer {SECRET}\' x"}},"tool_response":{{"stdout":"{SECRET}"}}}}'
    )
    assert told.cli("record", stdin=event).returncode == 0
    told.cli("stop", "--force", "--forget")
    assert told.cli("record", stdin=event.replace('"t"', '"u"')).returncode == 0
    files = [path for path in Path(told.runtime).rglob("*") if path.is_file()]
    assert any("spool" in path.parts for path in files)
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def test_stored_text_cannot_steer_a_terminal(told: Machine) -> None:
    """Escapes are refused in hints; in recorded text they are shown as text."""
    assert told.cli("set", "api", "evil", "-", "--global", stdin=ESCAPE).returncode == 3
    event = (
        '{"session_id":"s9","cwd":"/","hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"t9",'
        '"tool_input":{"command":"echo \\u001b]0;owned\\u0007"},"tool_response":{"stdout":""}}'
    )
    assert told.cli("record", stdin=event).returncode == 0
    for words in (("recent",), ("trace", "s9"), ("inject",), ("search", "owned", "--all-projects")):
        assert "\x1b" not in told.cli(*words, cwd="/").stdout
