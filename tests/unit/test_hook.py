"""`nudge record`: every event reaches PRIMARY or the spool, quickly, and never in the way."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nudge import __version__, hook
from nudge.core import limits, locks, paths
from nudge.process import endpoint, spawn
from nudge.storage import spool
from nudge.telling.start import Digest
from tests.harness import TIMEOUT
from tests.unit.history.payloads import CLAUDE_CODE, CODEX, GEMINI, OPENCODE, bash, extract, failure, payload, tool
from tests.unit.process.primaries import Answer, FakePrimary, error, line, result
from tests.unit.test_thin_path import HEAVY, ROOT, loaded_by, top_levels

SESSION_ID = "550e8400-e29b-41d4-a716-446655440000"
START = payload("SessionStart", source="startup", transcript_path="/home/u/.claude/x.jsonl")
RECORDED = (*CLAUDE_CODE, *CODEX, *GEMINI, *OPENCODE)
PROMPT = payload("UserPromptSubmit", prompt="do it", transcript_path="/home/u/.claude/x.jsonl")

Run = Callable[..., int]
Waiting = Callable[[str], None]


@pytest.fixture
def runtime() -> Iterator[str]:
    """Short enough for a socket's path."""
    directory = Path("/tmp") / f"nr-{os.getpid()}-{os.urandom(4).hex()}"
    directory.mkdir(mode=0o700)
    yield str(directory)
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    directory.rmdir()


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The directories in which a server would have been started; none is."""
    made: list[str] = []
    monkeypatch.setattr(spawn, "start_server", lambda directory, _for_new: made.append(directory))
    return made


@pytest.fixture(autouse=True)
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    """A hook waits long for an answer that comes, so that a busy machine changes nothing. The function gives it its
    usual time, for a PRIMARY that says nothing."""
    usual = {name: getattr(limits, name) for name in ("HOOK_TIMEOUT", "INJECT_TIMEOUT")}
    for name in usual:
        monkeypatch.setattr(limits, name, TIMEOUT)

    def as_usual(name: str) -> None:
        monkeypatch.setattr(limits, name, usual[name])

    return as_usual


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is asked of the look that a hook takes on its own; it says `OFFLINE`."""
    asked: list[tuple[Any, ...]] = []
    stand_in = ModuleType("nudge.telling.offline")

    def offline(environ: Any, context: Any, session_id: str, source: str, client: str) -> Digest:
        asked.append((environ["NUDGE_RUNTIME_DIR"], context.cwd, session_id, source, client))
        return Digest("OFFLINE\n", [{"id": 7}])

    stand_in.build_offline_digest = offline  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nudge.telling.offline", stand_in)
    return asked


@pytest.fixture
def run(runtime: str, tmp_path: Path) -> Run:
    def run(told: dict[str, Any] | bytes, **environ: str) -> int:
        raw = told if isinstance(told, bytes) else json.dumps(told).encode()
        return hook.main(
            io.BytesIO(raw), {"NUDGE_RUNTIME_DIR": runtime, "NUDGE_CONFIG": str(tmp_path / "config.toml"), **environ}
        )

    return run


def answering(text: str = "CONTEXT", **changes: bytes | None) -> Answer:
    """By method, without its prefix."""
    usual = {"record": result({"id": 1}), "inject": result({"text": text})}
    answers: dict[str, bytes | None] = {**usual, **changes}
    return lambda request: answers[request["op"].removeprefix("nudge.")]


def spooled(runtime: str) -> list[dict[str, Any]]:
    return [told for path in spool.pending(runtime) if (told := spool.read(path))]


# PRIMARY is there


def test_an_event_goes_to_primary(run: Run, runtime: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One request, under the event's own id, by a deadline; and silence."""
    with FakePrimary(runtime, answering()) as primary:
        assert run(bash("ls", transcript_path="/home/u/.claude/x.jsonl")) == 0
    ((call,), (hello,)) = primary.calls, primary.hellos
    event = call["params"]["event"]
    assert (call["op"], event["content"], event["project"]) == ("nudge.record", "ls", "/home/u/proj")
    assert call["once"] == event["event_id"]
    assert (call["caller"]["door"], call["caller"]["client"]) == ("hook", "claude-code")
    assert call["caller"]["deadline"] > 0
    assert (hello["client"], hello["member"]) == ("claude-code", False)
    assert capsys.readouterr() == ("", "") and spooled(runtime) == []


@pytest.mark.parametrize(("told", "process"), [("4711", 4711), ("", None), ("0", None), ("soon", None)])
def test_an_event_says_which_process_the_client_is(run: Run, runtime: str, told: str, process: int | None) -> None:
    """As Claude Code tells its hooks: after /clear the same process reports another session."""
    with FakePrimary(runtime, answering()) as primary:
        assert run(bash("ls", transcript_path="/home/u/.claude/x.jsonl"), CLAUDE_PID=told) == 0
    assert primary.calls[0]["caller"].get("client_process") == process


def test_every_recorded_payload_arrives_once(run: Run, runtime: str) -> None:
    """What is not ignored, and nothing else."""
    with FakePrimary(runtime, answering("")) as primary:
        assert {run(told) for told in RECORDED} == {0}
    events = [request["params"]["event"]["event_id"] for request in primary.calls if request["op"] == "nudge.record"]
    expected = sum(extract(told, now=0) is not None for told in RECORDED)
    assert len(events) == len(set(events)) == expected


def test_a_refusal_is_told(run: Run, runtime: str, capsys: pytest.CaptureFixture[str]) -> None:
    """PRIMARY will never take this event, so it does not wait for it: one line, exit code 1."""
    with FakePrimary(runtime, answering(record=error(40001, "E_INVALID", "event.type: must be\none of these"))):
        assert run(bash("ls")) == 1
    assert capsys.readouterr() == ("", "nudge record: event.type: must be one of these\n")
    assert spooled(runtime) == []


# PRIMARY is not there, or does not take it


def test_without_a_server_the_event_waits(run: Run, runtime: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Under the same id, and no server is started for it."""
    assert run(bash("ls")) == 0
    (event,) = spooled(runtime)
    assert (event["content"], event["event_id"]) == ("ls", extract(bash("ls"), now=0)["event_id"])  # type: ignore[index]
    assert capsys.readouterr() == ("", "")


def test_every_recorded_payload_is_spooled(run: Run, runtime: str) -> None:
    """None lost without a server."""
    assert {run(told) for told in RECORDED} == {0}
    expected = [extract(told, now=0) for told in RECORDED]
    assert [event["type"] for event in spooled(runtime) if "type" in event] == [
        event["type"] for event in expected if event
    ]


def test_a_directory_that_does_not_exist_is_made(run: Run, tmp_path: Path) -> None:
    """The first event of a new user."""
    new = tmp_path / "new" / "run"
    assert run(bash("ls"), NUDGE_RUNTIME_DIR=str(new)) == 0
    assert len(spooled(str(new))) == 1
    assert oct(new.stat().st_mode & 0o777) == "0o700"


def test_a_starting_server_is_not_waited_for(run: Run, runtime: str) -> None:
    """It drains the spool when it is ready."""
    with FakePrimary(runtime, answering(), state=endpoint.STARTING) as primary:
        assert run(bash("ls")) == 0
    assert primary.calls == [] and len(spooled(runtime)) == 1


def test_a_dead_servers_address_is_no_server(run: Run, runtime: str) -> None:
    """The endpoint of one that was killed stays behind."""
    with FakePrimary(runtime, answering()):
        pass
    assert run(bash("ls")) == 0
    assert len(spooled(runtime)) == 1


def test_a_slow_server_is_given_its_time_and_no_more(run: Run, runtime: str, waiting: Waiting) -> None:
    """100 ms for the answer; a stopped one still accepts connections."""
    waiting("HOOK_TIMEOUT")
    seconds = []
    with FakePrimary(runtime, answering(record=None)) as primary:
        for _ in range(5):
            began = time.monotonic()
            assert run(bash("ls")) == 0
            seconds.append(time.monotonic() - began)
    assert len(primary.calls) == 5 and len(spooled(runtime)) == 5
    # A busy machine makes a run longer, hardly all of them.
    assert limits.HOOK_TIMEOUT <= min(seconds) < 1


@pytest.mark.parametrize(
    "said",
    [
        line(retry="handing over"),
        error(50301, "E_UNAVAILABLE", "not now", retryable=True),
        error(-32601, "E_METHOD", "an older server knows no nudge.record"),
        line(error={"code": -32603, "message": "Internal error"}),
        b"not json\n",
        b"[]\n",
        b"{}\n",
        line(),
        line(error={"code": "x"}),
        line(error=7),
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    ],
)
def test_what_may_work_next_time_waits(
    run: Run, runtime: str, said: bytes, waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    """Handing over, older than we are, broken: the event is kept, and nobody is bothered."""
    waiting("HOOK_TIMEOUT")  # an answer to nothing is none
    with FakePrimary(runtime, answering(record=said)):
        assert run(bash("ls")) == 0
    assert len(spooled(runtime)) == 1
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("told", "code"), [(START, 2), (payload("SessionStart"), 1), (PROMPT, 1), (bash("ls"), 1)])
def test_a_database_that_cannot_be_used_is_told(
    run: Run, runtime: str, told: dict[str, Any], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The event waits. Exit code 2 only where a person reads it and nothing is blocked: in Claude Code, at a session's
    ends."""
    with FakePrimary(runtime, answering(record=error(50701, "E_STORAGE", "the database is damaged"))):
        assert run(told) == code
    assert len(spooled(runtime)) == 1
    assert "the database is damaged" in capsys.readouterr().err


def test_a_full_spool_is_told(
    run: Run, runtime: str, started: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is lost silently. A server is started, which makes room for the next."""
    assert run(bash("ls")) == 0 and started == []
    monkeypatch.setattr(limits, "MAX_SPOOL_FILES", 1)
    assert run(bash("pwd")) == 1
    assert "the spool is full" in capsys.readouterr().err
    assert spool.counts(runtime)["dropped"] == 1 and started == [runtime]


def test_a_session_begins_with_a_full_spool(
    run: Run, runtime: str, started: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its context, which a client takes only from a hook that succeeds, and with a server that empties the
    spool."""
    assert run(bash("ls")) == 0
    monkeypatch.setattr(limits, "MAX_SPOOL_FILES", 1)
    assert run(START) == 0
    out, err = capsys.readouterr()
    assert out == "OFFLINE\n" and err.count("the spool is full") == err.count("\n") == 1
    assert started == [runtime] and spool.counts(runtime)["dropped"] == 2


def test_a_session_begins_where_nothing_can_be_written(
    run: Run, runtime: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file where the directory should be."""
    Path(spool.folder(runtime)).touch()
    assert run(START) == 0
    out, err = capsys.readouterr()
    assert out == "OFFLINE\n" and "cannot write to the spool" in err


# What is not recorded


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"null", b"[]", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"session_id": "x"}', b"{}"]
)
def test_what_is_no_event_is_refused(run: Run, runtime: str, raw: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and one line; nothing is written."""
    assert run(raw) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("nudge record: ") and err.count("\n") == 1
    assert spooled(runtime) == []


def test_a_number_without_end_is_no_duration(run: Run, runtime: str) -> None:
    """`1e400` is valid JSON, and more than a float can hold."""
    raw = json.dumps(bash("ls", duration_ms=0)).replace('"duration_ms": 0', '"duration_ms": 1e400')
    assert run(raw.encode()) == run(raw.replace("1e400", "NaN").encode()) == 0
    called = json.dumps(tool("mcp__a__b", {"x": 0})).replace('{"x": 0}', '{"x": 1e400}')
    assert run(called.encode()) == 0
    assert [event["metadata"].get("arguments") for event in spooled(runtime)] == [None, None, {"x": "inf"}]
    assert all("duration_ms" not in event["metadata"] for event in spooled(runtime))


# More than is read


EDITED = {"filePath": "a.py", "originalFile": "x" * 500}
LONG = [
    (
        tool("Write", {"file_path": "a.py", "content": "x" * 500}),
        "file_write",
        "/home/u/proj/a.py",
        "/home/u/proj/a.py",
    ),
    (
        tool("Edit", {"file_path": "a.py", "old_string": "a"}, EDITED),
        "file_edit",
        "/home/u/proj/a.py",
        "/home/u/proj/a.py",
    ),
    (bash("cat <<END\n" + "x" * 500), "command", None, "cat <<END"),
    (failure("Bash", {"command": "make"}, "Exit code 2\n" + "x" * 500), "command_error", None, "make"),
    (payload("UserPromptSubmit", prompt="look at this:\n" + "x" * 500), "user_prompt", None, "look at this:"),
    (payload("SessionStart", source="startup", more="x" * 500), "session_start", None, "startup"),
    (
        payload("UserPromptSubmit", prompt="do this <System-Reminder a='b'>" + "hidden " * 90),
        "user_prompt",
        None,
        "do this",
    ),
]


@pytest.mark.parametrize(("told", "type", "path", "content"), LONG)
def test_a_long_event_is_known_by_its_beginning(
    run: Run,
    runtime: str,
    told: dict[str, Any],
    type: str,
    path: str | None,
    content: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Session, event, tool and path come before what is long."""
    monkeypatch.setattr(limits, "MAX_HOOK_BYTES", 400)
    monkeypatch.setattr(limits, "HOOK_BEGINNING_BYTES", 300)
    assert run(told) == 0
    (event,) = (event for event in spooled(runtime) if "type" in event)
    assert (event["session_id"], event["type"], event["file_path"]) == ("s-1", type, path)
    assert event["content"].partition("\n")[0] == content and "lines" not in event["metadata"]


def test_all_of_a_long_event_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that cannot write it all reports an error."""
    monkeypatch.setattr(limits, "MAX_HOOK_BYTES", 100)
    stdin = io.BytesIO(json.dumps(bash("ls", more="x" * 500)).encode())
    hook.main(stdin, {"NUDGE_OFF": "1"})
    assert stdin.read() == b""


LATE = json.dumps({"content": "x" * 500, **bash("ls")}).encode()


@pytest.mark.parametrize("raw", [LATE, b"[" * 500, b'"' * 500, b"{" * 500, b'{"a":' * 200])
def test_a_long_event_that_is_not_known_is_counted(
    run: Run, runtime: str, raw: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is lost, and `nudge status` tells."""
    monkeypatch.setattr(limits, "MAX_HOOK_BYTES", 400)
    assert run(raw) == 1
    assert "larger than" in capsys.readouterr().err and spool.counts(runtime) == {"files": 0, "bytes": 0, "dropped": 1}


@pytest.mark.parametrize("text", ["a\\", 'a"b', "grün 😀", "\ud83d", "\x00\x1f", ""])
def test_a_text_may_end_anywhere(text: str) -> None:
    """Also within an escape, or a character."""
    for ascii_only in (True, False):
        raw = json.dumps({"prompt": text}, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        for length in range(len(raw)):
            assert text.startswith(hook.parse_beginning(raw[:length]).get("prompt", "").rstrip("\ud83d"))


def test_a_terminal_gets_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """Instead of waiting for somebody to type JSON."""

    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    assert hook.main(Terminal(), {}) == hook.main(None, {}) == 1
    assert "nudge connect" in capsys.readouterr().err


def test_an_ignored_event_is_silent(run: Run, runtime: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A hook may be wired to all of them."""
    with FakePrimary(runtime, answering()) as primary:
        assert run(payload("Notification")) == run(payload("PreToolUse", tool_name="Bash")) == 0
    assert primary.calls == [] and spooled(runtime) == [] and capsys.readouterr() == ("", "")


def test_the_end_of_a_turn_prints_nothing(run: Run, runtime: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever PRIMARY answers: an agent that reads something when it stops goes on working. Without words there is
    nothing to record."""
    with FakePrimary(runtime, answering(record=result({"id": 1, "tell": "a line"}))) as primary:
        assert run(payload("Stop")) == run(payload("Stop", last_assistant_message="Done.")) == 0
    assert [call["params"]["event"]["metadata"] for call in primary.calls] == [{"last_words": "Done."}]
    assert capsys.readouterr() == ("", "")


def test_a_surprise_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback, and nothing of what was recorded."""

    def fail(_: str) -> None:
        raise RuntimeError("quotes the prompt")

    monkeypatch.setattr(hook, "resolve", fail)
    assert run(PROMPT) == 1
    assert capsys.readouterr().err == "nudge record: cannot record this event (internal error); see: nudge doctor\n"


# Sessions begin


def test_a_session_begins_with_context(
    run: Run, runtime: str, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """PRIMARY's words, as plain text, after the event is stored."""
    with FakePrimary(runtime, answering("# Grün\n")) as primary:
        assert run(START) == 0
    assert [request["op"] for request in primary.calls] == ["nudge.record", "nudge.inject"]
    params = primary.calls[1]["params"]
    assert (params["session_id"], params["source"], params["context"]["cwd"]) == ("s-1", "startup", "/home/u/proj")
    assert capsys.readouterr() == ("# Grün\n", "") and started == []


@pytest.mark.parametrize("served", [True, False])
def test_a_session_that_is_wired_twice_is_told_once(
    run: Run,
    runtime: str,
    served: bool,
    waiting: Waiting,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A plugin and a hook fire at the same moment: one of them speaks, by PRIMARY's words or its own. A later start is
    another."""
    if not served:
        waiting("HOOK_TIMEOUT")
    moment = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: moment[0])
    with FakePrimary(runtime, answering() if served else answering(record=None)) as primary:
        assert run(START) == run(START) == 0
        said = capsys.readouterr().out
        moment[0] += limits.SESSION_EVENT_BUCKET
        assert run(START) == 0
    assert said == ("CONTEXT\n" if served else "OFFLINE\n") == capsys.readouterr().out
    assert sum(request["op"] == "nudge.inject" for request in primary.calls) == (2 if served else 0)
    assert sum("injection" in event for event in spooled(runtime)) == (0 if served else 2)


def test_nothing_to_tell_is_nothing(run: Run, runtime: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Not even an empty line."""
    with FakePrimary(runtime, answering("")):
        assert run(START) == 0
    assert capsys.readouterr() == ("", "")


def test_scopes_may_ask_for_variables(run: Run, runtime: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the names that are asked for leave the process."""
    answers = iter([result({}), line(need_env=["STAGE", "NONE"]), result({"text": "hint"})])
    with FakePrimary(runtime, lambda _: next(answers)) as primary:
        assert run(START, STAGE="dev", OTHER="x") == 0
    assert primary.calls[2]["caller"]["env"] == {"STAGE": "dev", "NONE": None}
    assert capsys.readouterr().out == "hint\n"


@pytest.mark.parametrize(
    ("client", "shape"),
    [
        ("gemini", {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "CONTEXT"}}),
        ("cursor", {"additional_context": "CONTEXT"}),
    ],
)
def test_some_clients_read_json(
    run: Run, runtime: str, client: str, shape: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing else."""
    with FakePrimary(runtime, answering()):
        assert run(START | {"client": client}) == 0
    assert json.loads(capsys.readouterr().out) == shape


def test_without_a_server_the_hook_looks_itself(
    run: Run, runtime: str, offline: list[Any], started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Clients fire the event before they start their servers. Since an event waits, a server is started, and not waited
    for."""
    assert run(START) == 0
    assert offline == [(runtime, "/home/u/proj", "s-1", "startup", "claude-code")]
    assert capsys.readouterr() == ("OFFLINE\n", "")
    assert started == [runtime]
    assert [event.get("injection") for event in spooled(runtime)] == [
        None,
        {"text": "OFFLINE\n", "items": [{"id": 7}], "lines": [], "is_shadow": False, "project": None},
    ]


@pytest.mark.parametrize("said", [None, error(-32601, "E_METHOD", "no such method"), result({}), result(None)])
def test_a_server_without_context_is_no_end(
    run: Run, runtime: str, said: bytes | None, waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is slow or old is gone round; what was told is kept for the session's trace."""
    if said is None:
        waiting("INJECT_TIMEOUT")
    with FakePrimary(runtime, answering(inject=said)):
        assert run(START) == 0
    assert capsys.readouterr() == ("OFFLINE\n", "") and [sorted(event) for event in spooled(runtime)] == [
        ["event_id", "injection", "session_id", "timestamp"]
    ]


def test_a_failing_injection_does_not_fail_the_hook(
    run: Run, runtime: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is the matter with the database, or with the installation."""
    monkeypatch.setitem(sys.modules, "nudge.telling.offline", ModuleType("nudge.telling.offline"))
    assert run(START) == 0
    out, err = capsys.readouterr()
    assert out == "" and "no context for this session (internal error)" in err and len(spooled(runtime)) == 1


def test_no_server_is_started_against_the_setting(run: Run, started: list[str]) -> None:
    """`NUDGE_AUTOSTART=0`."""
    assert run(START, NUDGE_AUTOSTART="0") == 0
    assert started == []


def test_no_server_is_started_beside_another(run: Run, runtime: str, started: list[str]) -> None:
    """The lock says that there is one, though it does not answer yet."""
    held = locks.Flock(os.path.join(runtime, paths.LOCK))
    assert held.acquire()
    assert run(START) == 0
    held.release()
    assert started == []


def test_a_server_that_cannot_be_started_is_no_failure(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next command tries again."""

    def fail(*_: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(spawn, "start_server", fail)
    assert run(START) == 0
    assert f"no server was started ({os.strerror(errno.EAGAIN)})" in capsys.readouterr().err


def test_only_a_session_starts_a_server(run: Run, started: list[str]) -> None:
    """Not each command of an agent."""
    assert run(bash("ls")) == run(PROMPT) == 0
    assert started == []


@pytest.mark.parametrize(("version", "expected"), [("0.0.1", ["g"]), (__version__, []), ("9.0.0", [])])
def test_an_older_server_is_replaced(
    run: Run, runtime: str, monkeypatch: pytest.MonkeyPatch, version: str, expected: list[str]
) -> None:
    """After any event: versions are compared with each connection. The event is the older server's."""
    generations: list[str] = []
    monkeypatch.setattr(spawn, "start_successor", lambda _directory, generation: generations.append(generation))
    held = locks.Flock(os.path.join(runtime, paths.LOCK))
    assert held.acquire()
    with FakePrimary(runtime, answering(), version=version) as primary:
        assert run(bash("ls")) == 0
    held.release()
    assert len(primary.calls) == 1 and generations == expected


# Cost


def test_recording_loads_nothing_heavy() -> None:
    """Also when it runs, with no server and with the spool: the standard library, and of that only what is cheap."""
    raw = json.dumps(bash("echo token=abc", transcript_path="/home/u/.claude/x.jsonl")).encode()
    statement = (
        f"import io; from nudge import hook; import os; d = '/tmp/nt-thin-' + os.urandom(4).hex(); "
        f"assert hook.main(io.BytesIO({raw!r}), {{'NUDGE_RUNTIME_DIR': d, 'NUDGE_CONFIG': '/nonexistent'}}) == 0; "
        f"[os.unlink(os.path.join(d, 'spool', n)) for n in os.listdir(os.path.join(d, 'spool'))]; "
        f"os.rmdir(os.path.join(d, 'spool')); os.rmdir(d)"
    )
    loaded = loaded_by(statement)
    assert top_levels(loaded) - sys.stdlib_module_names == {"nudge"}
    assert not top_levels(loaded) & (HEAVY | {"hashlib", "argparse", "sqlite3", "tomllib", "threading"})


def in_a_process(runtime: str, raw: bytes, redirect: str = "", **environ: str) -> subprocess.CompletedProcess[bytes]:
    script = "from nudge import hook; hook.run()"
    environ |= {"NUDGE_RUNTIME_DIR": runtime, "NUDGE_CONFIG": "/nonexistent", "PYTHONPATH": str(ROOT)}
    # Without site: Python itself fails on an installation's .pth file whose path the environment cannot spell.
    command = ["sh", "-c", f'exec "$@" {redirect}', "sh", sys.executable, "-S", "-c", script]
    return subprocess.run(command, input=raw, capture_output=True, env=environ, check=False)


USUAL_EVENTS = {
    "command": bash("pytest -q tests/unit && make lint", "47 passed in 1.2 s\n" * 20, duration_ms=1_234),
    "failure": failure("Bash", {"command": "make test"}, "Exit code 2\nmake: *** [test] Error 1\nno such table: users"),
    "read": tool("Read", {"file_path": "/home/u/proj/src/components/OrderForm/index.tsx"}, {"file": {"numLines": 10}}),
    "edit": tool("Edit", {"file_path": "/home/u/proj/tests/unit/test_thin_path.py", "old_string": "a"}, {}),
    "search": tool("Grep", {"pattern": "def main", "path": "/home/u/proj/src"}, "Found 3 files"),
    "prompt": payload("UserPromptSubmit", prompt="Make the tests in tests/unit/hook green. The cause is in main.py"),
}


@pytest.mark.parametrize("event", USUAL_EVENTS.values(), ids=USUAL_EVENTS)
def test_a_usual_event_needs_no_patterns(runtime: str, event: dict[str, Any]) -> None:
    """`re` and `json`, with what they import, take as long as all else that a hook does: they are imported for an event
    that may hold a credential. Nor is what only a hook without a server needs."""
    raw = json.dumps({**event, "transcript_path": "/home/u/.claude/projects/x/y.jsonl", "session_id": SESSION_ID})
    statement = (
        f"import io, os; from nudge import hook; hook.main(io.BytesIO({raw.encode()!r}),"
        f" {{'NUDGE_RUNTIME_DIR': {runtime!r}, 'NUDGE_CONFIG': '/nonexistent'}})"
    )
    with FakePrimary(runtime, answering("")) as primary:
        loaded = loaded_by(statement)
        assert len(primary.calls) == 1
    assert not loaded & {
        "collections",
        "enum",
        "functools",
        "json",
        "nudge.security.rules",
        "nudge.storage.spool",
        "re",
    }
    assert len([name for name in loaded if name.startswith("nudge")]) <= 30  # with the packages that they are in


def test_a_real_process_is_silent(runtime: str) -> None:
    """Bytes in, nothing out, exit code 0; the environment's encoding does not matter."""
    environ = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = in_a_process(runtime, json.dumps(bash("echo grün"), ensure_ascii=False).encode(), **environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [event["content"] for event in spooled(runtime)] == ["echo grün"]


def test_a_real_process_says_what_it_has_to(runtime: str) -> None:
    """It ends without the interpreter's tear-down, and loses neither its words nor its exit code."""
    with FakePrimary(runtime, answering("# Grün")):
        begun = in_a_process(runtime, json.dumps(START).encode())
    failed = in_a_process(runtime, b"{")
    assert (begun.returncode, begun.stdout.decode(), begun.stderr) == (0, "# Grün\n", b"")
    assert (failed.returncode, failed.stdout, failed.stderr) == (1, b"", b"nudge record: stdin is not a JSON object\n")


@pytest.mark.parametrize("redirect", [">&-", "| true"])
def test_a_client_that_reads_no_output(runtime: str, redirect: str) -> None:
    """A closed stdout is nothing to report: the client does not want the context."""
    answers = answering("# Context " * 10_000, record=result({"id": 1, "tell": "a line"}))
    with FakePrimary(runtime, answers) as primary:
        done = in_a_process(runtime, json.dumps(START).encode(), redirect)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [call["op"] for call in primary.calls] == ["nudge.record", "nudge.inject"] and spooled(runtime) == []


def test_a_closed_stderr_is_no_stdout(runtime: str) -> None:
    """The agent reads stdout: an error is not printed there."""
    failed = in_a_process(runtime, b"{", "2>&-")
    assert (failed.returncode, failed.stdout) == (1, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_an_output_that_cannot_be_written(runtime: str) -> None:
    """The reason in words, once for each text."""
    with FakePrimary(runtime, answering()):
        done = in_a_process(runtime, json.dumps(START).encode(), ">/dev/full")
    assert done.returncode == 0
    assert done.stderr.decode() == f"nudge record: cannot write the output: {os.strerror(errno.ENOSPC)}\n"
