"""What a hook takes at each moment of a session, beside a large store: 100,000 observations, 10,000 notes, 2,000 facts.

Most hooks are told nothing and may take what recording takes. One that is told something waits for it: the agent, too.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from nudge.core.context import project_name
from nudge.core.note_files import index_files
from nudge.core.passages import index_passages
from nudge.learning import store
from nudge.learning.cure import LAUNCHER, VARIABLE, Cure
from nudge.learning.fact import Evidence, Fact
from nudge.learning.facts import Changes
from nudge.storage.sqlite import open_writable
from tests.bench import histories, installation
from tests.bench.report import Row, milliseconds
from tests.bench.timing import ratio, seconds_of, take_turns
from tests.harness import Machine

RECORDED = 2.5  # x a bare interpreter: a hook that is told nothing
ANSWERED = 15.0  # x the same: one that is told something; 150 ms where a bare interpreter takes 10

OBSERVATIONS, NOTES, FACTS = 100_000, 10_000, 2_000
_PROJECT, _OTHERS = histories.PROJECTS[0], histories.PROJECTS[1:4]
_FACTS_OF_ONE = FACTS // (1 + len(_OTHERS))  # as many as a project may have
_SESSIONS_OF_FACT = 2
_ROUNDS = 15
_DECIDED = "Invoice totals are decimals, never floats"
_WHY = "Rounding of floats lost cents on refunds; invoice totals use decimal with four places. Decided after the audit."
_FILE = "src/invoices/totals.py"
_PROMPT = "make invoice totals in the billing page show decimals instead of floats"
_VARIABLE = "SHOP_DATABASE_URL"
_KNOWN = f"Traceback (most recent call last):\n  File \"src/settings.py\", line 12\nKeyError: '{_VARIABLE}'"
_NEW = "NEW"  # replaced by another word in each session: nobody else works on its file
_UNKNOWN = "Error: the flux capacitor refused to align (phase 17)"


@dataclass(frozen=True, slots=True)
class _Moment:
    """A hook event that comes again and again, each time in a new session."""

    what: str
    event: str
    fields: Mapping[str, Any]
    tells: str = ""
    """A part of what it is told; empty when it is told nothing."""


def _tool(name: str, arguments: Mapping[str, Any], **result: Any) -> dict[str, Any]:
    return {"tool_name": name, "tool_input": dict(arguments), **result}


def _moments(root: str) -> list[_Moment]:
    command = {"command": "make integration-check"}
    done = {"stdout": "47 passed in 1.2 s\n" * 20, "stderr": "", "interrupted": False}
    decided, other = f"{root}/{_FILE}", f"{root}/src/other/{_NEW}.py"
    return [
        _Moment("start", "SessionStart", {"source": "startup"}, "Known here"),
        _Moment("prompt about a decision", "UserPromptSubmit", {"prompt": _PROMPT}, "decimal"),
        _Moment("prompt about nothing", "UserPromptSubmit", {"prompt": "thanks, go on"}),
        _Moment(
            "failure that is known",
            "PostToolUseFailure",
            _tool("Bash", command, error=f"Exit code 1\n{_KNOWN}"),
            _VARIABLE,
        ),
        _Moment("failure that is not", "PostToolUseFailure", _tool("Bash", command, error=f"Exit code 1\n{_UNKNOWN}")),
        _Moment("success", "PostToolUse", _tool("Bash", {"command": "pytest -q tests/unit"}, tool_response=done)),
        _Moment(
            "read of a file with a decision",
            "PostToolUse",
            _tool("Read", {"file_path": decided}, tool_response={"type": "text", "file": {"numLines": 9}}),
            "decimal",
        ),
        _Moment(
            "read of another file",
            "PostToolUse",
            _tool("Read", {"file_path": other}, tool_response={"type": "text", "file": {"numLines": 9}}),
        ),
        _Moment(
            "edit of a file with a decision",
            "PostToolUse",
            _tool("Edit", {"file_path": decided}, tool_response={"filePath": decided, "structuredPatch": []}),
            "decimal",
        ),
        _Moment(
            "edit of another file",
            "PostToolUse",
            _tool("Edit", {"file_path": other}, tool_response={"filePath": other, "structuredPatch": []}),
        ),
    ]


def hooks(machine: Machine) -> Iterator[Row]:
    """`nudge record` from its start to its end, each in turn with a bare interpreter; with a PRIMARY that answers, and
    the start of a session with none, where the hook looks into the database itself."""
    root = _clone(machine)
    database = f"{machine.base}/large.db"
    fill(database)
    installed = installation.plain(machine.base / "plain")
    environ = {**machine.environ, "NUDGE_DB": database, "NUDGE_AUTOSTART": "0"}

    def bare() -> float:
        return seconds_of(installed.bare, environ, str(root))

    def hook(moment: _Moment) -> _Hook:
        return _Hook([installed.nudge, "record"], moment, str(root), environ)

    start, *others = _moments(str(root))
    yield from _rows([replace(start, what="start, no PRIMARY")], hook, bare)
    machine.http_only(NUDGE_DB=database)
    yield from _rows([start, *others], hook, bare)


def _rows(moments: Sequence[_Moment], hook: Callable[[_Moment], _Hook], bare: Callable[[], float]) -> Iterator[Row]:
    hooks = {moment.what: hook(moment) for moment in moments}
    samples = take_turns({"bare": bare, **hooks}, _ROUNDS)
    for what, one in hooks.items():
        yield _row(what, one, samples)


class _Hook:
    """Runs the hook of a moment, and checks what it is told."""

    def __init__(self, command: list[str], moment: _Moment, root: str, environ: Mapping[str, str]) -> None:
        self.moment, self.told = moment, ""
        self.calls = self.answers = 0
        self._command, self._root, self._environ = command, root, dict(environ)
        self._number = itertools.count()

    def __call__(self) -> float:
        identity = f"{self.moment.what.replace(' ', '-')}-{next(self._number)}"
        payload = {
            "session_id": identity,
            "transcript_path": f"/home/dev/.claude/projects/x/{identity}.jsonl",
            "cwd": self._root,
            "hook_event_name": self.moment.event,
            "tool_use_id": identity,
            **self.moment.fields,
        }
        began = time.perf_counter()
        done = subprocess.run(
            self._command,
            input=json.dumps(payload).replace(_NEW, identity),
            env=self._environ,
            cwd=self._root,
            capture_output=True,
            text=True,
            check=True,
        )
        took = time.perf_counter() - began
        self.calls += 1
        if self.moment.tells in done.stdout:
            self.told, self.answers = done.stdout, self.answers + 1
        assert self.moment.tells or not done.stdout.strip(), f"{self.moment.what}: {done.stdout!r}"
        return took


def _row(what: str, hook: _Hook, samples: Mapping[str, list[float]]) -> Row:
    bare = f"python -c pass {milliseconds(median(samples['bare']))}"
    note, budget = f"{milliseconds(median(samples[what]))}; nothing told", RECORDED
    if hook.moment.tells:
        assert hook.told, f"{what}: nothing was ever told"
        budget = ANSWERED
        note = note.replace("nothing", f"{len(hook.told):,} characters") + f" in {hook.answers} of {hook.calls}"
    return Row("moments", what, ratio(dict(samples), what, "bare"), budget, "x", bare, note)


def _clone(machine: Machine) -> Path:
    root = machine.base / project_name(_PROJECT)
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git" / "config").write_text(f'[remote "origin"]\n\turl = https://{_PROJECT}.git\n')
    (root / "Makefile").write_text("integration-check:\n\tpytest tests/integration\n")
    return root


# The store


def fill(path: str) -> None:
    """A database of this size, in which the notes and facts of one repo are those of a large one."""
    histories.generate(path, OBSERVATIONS, seed=OBSERVATIONS)
    chance = random.Random(NOTES)
    with closing(open_writable(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        _fill_notes(connection, chance)
        store.store(connection, Changes(learned=list(_facts(chance))))
        connection.execute("COMMIT")


def _fill_notes(connection: Any, chance: random.Random) -> None:
    """Half of them of one repo; every fourth names the files that it is about."""
    word, now = histories.Zipf(histories.words(), chance), time.time()
    for number in range(NOTES):
        title = " ".join(word() for _ in range(5)) + f" {number}"
        content = ". ".join(" ".join(word() for _ in range(12)) for _ in range(4))
        files = [f"src/{word()}/{word()}.py"] if number % 4 == 0 else []
        namespace = _PROJECT if number % 2 else chance.choice(_OTHERS)
        _insert_note(connection, number, namespace, title, content, files, now - number * 60)
    _insert_note(connection, NOTES, _PROJECT, _DECIDED, _WHY, [_FILE], now - 86_400)


def _insert_note(
    connection: Any, number: int, namespace: str, title: str, content: str, files: list[str], at: float
) -> None:
    metadata = {"files": files} if files else {}
    added = connection.execute(
        "INSERT INTO notes (uid, tier, namespace, kind, title, content, tags, priority, confidence, source, created_at,"
        " updated_at, metadata, origin) VALUES (?, 'long', ?, 'decision', ?, ?, '[]', 5, 1.0, 'api', ?, ?, ?, '{}')",
        (f"{number:024x}", namespace, title, content, at, at, json.dumps(metadata)),
    )
    index_passages(connection, added.lastrowid, title, content)
    index_files(connection, added.lastrowid, metadata, title, content)


def _facts(chance: random.Random) -> Iterator[tuple[str, str, Fact]]:
    """Variables that `make` needs, and programs that only work through `uv run`: all are compared with the next failure
    of `make`, and one of them answers it. Each was met in as many sessions as a start asks for."""
    word, now = histories.Zipf(histories.words(), chance), time.time()
    for project in (_PROJECT, *_OTHERS):
        for number in range(_FACTS_OF_ONE):
            fact = Fact(_cure(number, word))
            for session in range(_SESSIONS_OF_FACT):
                identity = f"fact-{number}-{session}"
                fact.support[identity] = Evidence(number + 1, number + 2, now - 3_600 - number, (2, 0), "main")
                yield project, identity, fact


def _cure(number: int, word: Callable[[], str]) -> Cure:
    if number == 0:
        return _needs_variable(_VARIABLE, "integration-check", word)
    if number % 2:
        return _needs_variable(f"{word()}_{word()}_{number}".upper(), f"{word()}-{number}", word)
    return _needs_launcher(f"{word()}-{number}", word)


def _needs_variable(name: str, target: str, word: Callable[[], str]) -> Cure:
    error = f"KeyError: '{name}'"
    answer = f"{name}=postgres://localhost/{word()} make {target}"
    return Cure(
        *(VARIABLE, f"make {target}", answer, "make", target, "make", "test", "surroundings", "variable", name, error),
        causes=(error.lower(), *_other_lines(word)),
        sign="keyerror: #",
        added=(answer.partition(" ")[0],),
    )


def _needs_launcher(program: str, word: Callable[[], str]) -> Cure:
    error = f"{program}: command not found"
    return Cure(
        *(LAUNCHER, program, f"uv run {program}", program, "", program, "test", "surroundings", "tool", program, error),
        causes=(error, *_other_lines(word)),
        sign=error,
        added=("uv", "run"),
        keeps_arguments=True,
    )


def _other_lines(word: Callable[[], str]) -> Iterator[str]:
    return (f"{word()} {word()} failed in {word()}" for _ in range(5))
