"""What a transcript tells, against what the hooks of the same sessions told."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from nudge.clients.claude_transcripts import Transcript, entries
from nudge.core import limits
from tests.unit.clients.transcripts import FIXTURES, LONG_AGO, NOON, Script, hook_events
from tests.unit.history.payloads import extract

SESSION_EVENTS = ("session_start", "session_end", "session_compact")


def read(path: Path, known: set[int] | None = None, now: float = LONG_AGO) -> list[dict[str, Any]]:
    transcript = Transcript(set() if known is None else known, from_start=True)
    with path.open("rb") as file:
        result = [one for start, _, entry in entries(file, 0) for one in transcript.read(start, entry)]
    result += transcript.end(now)
    return [event for one in result if (event := extract(one.payload, now=one.at)) is not None]


def of_all_fixtures() -> list[dict[str, Any]]:
    known: set[int] = set()
    return [
        event
        for name in ("transcript", "transcript_agent", "transcript_fork")
        for event in read(FIXTURES / f"{name}.jsonl", known)
    ]


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path / "s-1.jsonl")


def test_what_hooks_told_has_the_same_id() -> None:
    """Every call and every prompt, of the session, its subagent and its fork: so what hooks recorded is not recorded
    again."""
    result = {event["event_id"] for event in of_all_fixtures() if event["type"] not in SESSION_EVENTS}
    assert result == {event["event_id"] for event in hook_events() if event["type"] not in SESSION_EVENTS}


def test_what_is_told_says_the_same() -> None:
    """In all but how long it took, which transcripts do not keep, and when: type, content, path, prompt, agent, exit
    code."""
    by_hooks = {event["event_id"]: event for event in reversed(hook_events())}
    for event in of_all_fixtures():
        if event["type"] not in SESSION_EVENTS:
            hooked = by_hooks[event["event_id"]]
            hooked["metadata"].pop("duration_ms", None)
            assert {**event, "timestamp": 0} == {**hooked, "timestamp": 0}


def test_a_subagent_keeps_its_name() -> None:
    """What it did is its own; what it was asked is nobody's prompt."""
    [event] = read(FIXTURES / "transcript_agent.jsonl")
    assert (event["type"], event["content"], event["agent_id"]) == ("command", "ls", "afc6bcaf816a60ed1")


def test_a_session_begins_and_falls_silent() -> None:
    """Its first entry is its start. Long after the last one it has ended; a moment after, it may go on."""
    path = FIXTURES / "transcript.jsonl"
    last = max(event["timestamp"] for event in read(path))
    assert types(read(path, now=last + 60))[0] == "session_start"
    assert "session_end" not in types(read(path, now=last + 60))
    assert types(read(path, now=last + limits.SILENT_SESSION + 1))[-1] == "session_end"


def test_a_compaction_is_told() -> None:
    """With what set it off."""
    assert [
        event["content"] for event in read(FIXTURES / "transcript.jsonl") if event["type"] == "session_compact"
    ] == ["manual"]


def test_a_fork_is_told_without_its_origin() -> None:
    """It begins with a copy of the other session under its own id; only what follows happened in it."""
    known: set[int] = set()
    read(FIXTURES / "transcript.jsonl", known)
    assert [(event["type"], event["content"]) for event in read(FIXTURES / "transcript_fork.jsonl", known)] == [
        ("session_start", "fork"),
        ("user_prompt", "forked"),
    ]


def test_a_slash_command_is_a_prompt_if_it_is_answered(script: Script) -> None:
    """`/compact` and its kind are the client's own, and no hook hears of them."""
    script.prompt("<command-name>/clear</command-name>\n<command-args></command-args>")
    script.prompt("<local-command-stdout>cleared</local-command-stdout>")
    script.prompt(
        "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n"
        "<command-args>the tests</command-args>"
    )
    script.call("a")
    assert [event["content"] for event in read(script.path) if event["type"] == "user_prompt"] == ["/fix the tests"]


@pytest.mark.parametrize(
    "text", ["[Request interrupted by user]", "<bash-input>ls</bash-input>", "<system-reminder>x</system-reminder>"]
)
def test_what_the_client_says_is_not_the_users_word(script: Script, text: str) -> None:
    """Though it stands under the user's name."""
    script.prompt(text)
    script.prompt("a note of the client", isMeta=True)
    script.prompt("what it made of the past", isCompactSummary=True)
    assert "user_prompt" not in types(read(script.path))


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("<tool_use_error>No such tool available: Grep</tool_use_error>", {}),
        ("The user doesn't want to proceed with this tool use.", {"toolUseResult": "User rejected tool use"}),
        ("no", {"permissionDecision": {"decision": "reject", "source": "user_reject"}}),
    ],
)
def test_a_call_that_never_ran_is_not_told(script: Script, text: str, fields: dict[str, Any]) -> None:
    """It was refused, by the client or by the user: nothing happened."""
    script.call("a")
    script.result("a", text, error=True, **fields)
    assert read(script.path) == []


def test_a_prompt_without_an_id_is_known_by_its_entry(script: Script) -> None:
    """Older clients wrote none; reading twice must still give the same event."""
    script.entry("user", message={"role": "user", "content": [{"type": "text", "text": "hello"}]})
    assert [event["event_id"] for event in read(script.path)] == [event["event_id"] for event in read(script.path)]


def test_an_output_is_read_and_not_kept(script: Script) -> None:
    """Of a result without the client's own record, the text tells what git did; it stays behind."""
    script.call("a", command="git commit -m x")
    script.result("a", "[main 1234abc] x\n 1 file changed, 1 insertion(+)\nprivate words")
    event = read(script.path)[-1]
    assert (event["type"], event["metadata"]["commit"]) == ("git_commit", "1234abc") and "private words" not in str(
        event
    )


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[]",
        "null",
        "[" * 100_000,
        '{"type":"user"}',
        '{"type":["user"]}',
        '{"type":"user","sessionId":1,"cwd":2,"timestamp":"x"}',
        '{"type":"user","sessionId":"s","cwd":"/","timestamp":"2026-01-01T00:00:00Z","message":{"content":[1,{"type":"tool_result"}]}}',
        '{"type":"assistant","sessionId":"s","cwd":"/","timestamp":"2026-01-01T00:00:00Z","message":{"content":{"type":"tool_use"}}}',
    ],
)
def test_what_is_not_understood_is_passed_over(script: Script, line: str) -> None:
    """The format is the client's to change."""
    script.write(line + "\n")
    script.prompt("hello")
    assert types(read(script.path)) == ["session_start", "user_prompt"]


def test_a_line_that_is_being_written_waits() -> None:
    """Half a line is not read, and not passed."""
    whole = b'{"type":"mode"}\n'
    assert [end for _, end, _ in entries(io.BytesIO(whole + b'{"type":"us'), 0)] == [len(whole)]


def test_a_line_beyond_measure_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not even held in memory; the next one is read."""
    monkeypatch.setattr(limits, "MAX_TRANSCRIPT_LINE_BYTES", 20)
    result = list(entries(io.BytesIO(b'"' + b"x" * 100 + b'"\n{"type":"mode"}\n' + b"y" * 50), 0))
    assert [(entry, end - start) for start, end, entry in result] == [({}, 103), ({"type": "mode"}, 16)]


def test_reading_goes_on_at_a_call_without_its_result(script: Script) -> None:
    """The result may come in later, and says nothing without the call."""
    script.commands("a")
    start = script.path.stat().st_size
    script.call("b")
    transcript = Transcript(set(), from_start=True)
    with script.path.open("rb") as file:
        for begins, _, entry in entries(file, 0):
            list(transcript.read(begins, entry))
    assert transcript.resume_at(script.path.stat().st_size) == start


def test_calls_that_are_never_answered_do_not_pile_up(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is given up."""
    monkeypatch.setattr(limits, "MAX_CALLS_OPEN", 2)
    for name in ("a", "b", "c"):
        script.call(name)
    for name in ("a", "b", "c"):
        script.result(name)
    assert [event["content"] for event in read(script.path) if event["type"] == "command"] == ["make b", "make c"]


def test_time_is_that_of_the_transcript(script: Script) -> None:
    """Not that of reading it."""
    script.commands("a")
    assert all(LONG_AGO <= event["timestamp"] <= LONG_AGO + 10 < NOON for event in read(script.path))
