"""What the real Claude Code is told of what failed before: at a session's start, and when it fails alike."""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path

from nudge.core import limits
from tests.contract.repos import git
from tests.e2e import claude
from tests.e2e.clients import Desk
from tests.harness import eventually

BROKEN, WORKING = "env/python3 -m pytest --version", "bin/pytest --version"
WITHIN = 3  # sessions of which one gets its answer in the time that a hook has, on a busy machine too


def _prepare(desk: Desk) -> None:
    write_programs(desk)
    desk.run("nudge", "connect", "claude-code", "--yes")


TOLD_AT_START = (
    r'- "env/python3 -m pytest" fails here \(".*No module named pytest", 2 sessions lost a step to it\); '
    r'"bin/pytest …" runs the tests \((just now|last .*?) #\d+\)'
)


def write_programs(desk: Desk) -> None:
    """A Python without pytest, and a pytest."""
    _script(desk.project / "env/python3", f'exec {sys.executable} -I -S "$@"')
    _script(desk.project / "bin/pytest", "echo pytest 9")


def _script(path: Path, line: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def failure_is_answered(desk: Desk) -> None:
    """Two sessions fail and succeed in another way; the next one reads the working command, whole, before it does
    anything; one that fails alike reads it in the answer of the hook."""
    _prepare(desk)
    for number in (1, 2):
        claude.run(desk, f"learns-{number}", [claude.bash(BROKEN), claude.bash(WORKING)])
        eventually(partial(_is_learned, desk, number), "the outcome is learned")
    third = claude.run(desk, "reads")
    line = next(line for line in third.injected.splitlines() if "env/python3 -m pytest" in line)
    assert re.fullmatch(TOLD_AT_START, line), line
    assert any(_is_answered(desk, number) for number in range(WITHIN)), "no failure was answered"
    assert "Nudge record" not in "\n".join(claude.run(desk, "other", [claude.bash("exit 3")]).results)


def _is_learned(desk: Desk, sessions: int) -> bool:
    """Whether the one fact was learned in so many sessions."""
    return [fact["sessions"] for fact in desk.json("learned")["facts"]] == [sessions]


def _is_answered(desk: Desk, number: int) -> bool:
    run = claude.run(desk, f"third-{number}", [claude.bash(BROKEN), claude.bash(BROKEN)])
    text = json.dumps(run.requests[-1]["messages"])
    assert text.count("Nudge record, not an instruction:") <= 1, text
    return "Nudge record, not an instruction:" in text and "bin/pytest" in text


_HEADER = "Nudge record, not an instruction:"
ABOUT_REDIS = "move the session tokens from redis into postgres"


def prompt_is_answered(desk: Desk) -> None:
    """A prompt about a decision reaches the model with it; small talk comes alone."""
    _prepare(desk)
    decide_about_redis(desk)
    told = any(_HEADER in claude.run(desk, f"asked-{number}", prompt=ABOUT_REDIS).told for number in range(WITHIN))
    assert told, "no prompt was answered"
    small_talk = claude.run(desk, "thanks", prompt="thanks, that looks great").told
    assert _HEADER not in small_talk, small_talk


def decide_about_redis(desk: Desk) -> None:
    """More decisions than a session's start has room for: the one about Redis is not told there."""
    _decide(desk, "Session tokens live in Redis", "5")
    for number in range(limits.INJECTED_NOTES):
        _decide(desk, f"Color {number} of the logo is blue", "9")


def _decide(desk: Desk, title: str, priority: str) -> None:
    text = ("-T", title, "-c", "It was decided in March.", "--kind", "decision", "--priority", priority)
    desk.run("nudge", "memory", "store", *text)


def two_sessions_edit_one_file(desk: Desk) -> None:
    """While one session is at work on a file, another that edits it reads so; the first time only."""
    _prepare(desk)
    shared, done = desk.project / "shared.txt", desk.project / "done"
    wait = claude.bash(f"while [ ! -e {done} ]; do sleep 0.1; done")
    with claude.started(desk, "at-work", [claude.write(shared, "mine"), wait]) as (process, _):
        try:
            eventually(
                lambda: desk.json("history", str(shared))["sessions"],
                "the first edit is recorded",
            )
            told = [_edit_answers(desk, shared, number) for number in range(WITHIN)]
        finally:
            done.touch()
        process.communicate(timeout=60)
    assert max(told) == 1, told


def _edit_answers(desk: Desk, path: Path, number: int) -> int:
    """How often a session that edits the file twice is told."""
    steps = [claude.bash(f"cat {path}"), _read(path), claude.write(path, "a"), claude.write(path, "b")]
    run = claude.run(desk, f"editor-{number}", steps)
    return json.dumps(run.requests[-1]["messages"]).count("another session that is at work in claude-code")


def _read(path: Path) -> claude.Step:
    return {"name": "Read", "input": {"file_path": str(path)}}


_MAKEFILE = "test:\n\t@echo {}\n"
_STALE = "Makefile changed since"


def changed_manifest_is_said(desk: Desk) -> None:
    """When the Makefile that a hint comes from changes, the next session is told so beside the hint; after the next
    scan, or after the command worked, it is not."""
    _prepare(desk)
    git(desk.project, "init", "--quiet", "--initial-branch", "main")
    makefile = desk.project / "Makefile"
    makefile.write_text(_MAKEFILE.format("one"))
    desk.run("nudge", "scan")
    assert _STALE not in _told_of_make_test(desk, "scanned")
    makefile.write_text(_MAKEFILE.format("another"))
    assert _STALE in _told_of_make_test(desk, "changed")
    desk.run("nudge", "scan")
    assert _STALE not in _told_of_make_test(desk, "scanned-again")
    makefile.write_text(_MAKEFILE.format("a third one"))
    assert _STALE in _told_of_make_test(desk, "worked", claude.bash("make test"))
    assert _STALE not in _told_of_make_test(desk, "after-it-worked")


def _told_of_make_test(desk: Desk, name: str, *steps: claude.Step) -> str:
    """What a session is told about it before it does anything."""
    told = claude.run(desk, name, steps).injected
    return next(line for line in told.splitlines() if '"make test"' in line)


_THREAD = "## This session so far\n"
_INTENT = "make the parser of invoices stricter"


def session_goes_on(desk: Desk) -> None:
    """A session that is resumed or compacted reads its own thread first, marked as such: what was asked for,
    the files that it changed, what it left failing. Another session does not."""
    _prepare(desk)
    git(desk.project, "init", "--quiet", "--initial-branch", "main")
    desk.run("nudge", "set", "invoices", "test", "make check", "--scope-os", "linux", "--scope-os", "darwin")
    (desk.project / "Makefile").write_text("parse:\n\t@echo 'ParseError: a total without a currency' >&2; exit 2\n")
    steps = [claude.write(desk.project / "parser.py", "strict = True\n"), claude.bash("make parse")]
    first = claude.run(desk, "first", steps, prompt=_INTENT)
    resumed = claude.run(desk, "resumed", prompt="go on", resume=first.session)
    assert resumed.session == first.session
    _has_thread_first(resumed.read(0))
    compacted = claude.converse(desk, "compacted", [_INTENT, "/compact", "go on"], steps)
    assert _THREAD not in compacted.told, compacted.told
    _has_thread_first(compacted.read(-1))


def _has_thread_first(text: str) -> None:
    """The conversation itself holds the same words: those of the injection alone are looked at."""
    injected = text[text.rindex("# Nudge: records of earlier work") :]
    title = injected.index("## ")
    assert injected[title:].startswith(_THREAD), injected[:2_000]
    thread, known = injected[title:].split("\n## ", 1)
    assert known.startswith("Known here\n") and "invoices/test" in known, known[:2_000]
    assert f'"{_INTENT}"' in thread, thread
    assert "changed: parser.py" in thread and 'left failing: "make parse" (' in thread, thread
