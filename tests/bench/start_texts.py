"""What sessions read at their start, line by line.

The starts are those of ten replayed sessions, of the repositories in `start_sessions.json`, and of `decisions.json` and
`own_decisions.json`, where the first prompt follows the start and may be answered as well. Every line that is told was
read by somebody who knew the session's first prompt and, in the replay, what it then did; `start_readings.json` keeps
how it was marked, and by which rule. A line that was never read counts as unread, so a changed wording shows up.

`python -m tests.bench.start_texts` prints the starts, each line with its mark; `--unread` only the lines to be read, in
the form of the file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import groupby
from typing import Any

from nudge.core.context import Context
from nudge.core.visibility import EVERYTHING
from nudge.telling.prompt_notes import lines_about
from nudge.telling.start import STARTUP, build
from nudge.telling.start_rows import digest_options, stored_lines
from tests.bench.decisions import MAIN, NOW, SETS, ids_of, stored_notes
from tests.bench.report import Row
from tests.bench.start_sessions import DATA, Reader, Start, play
from tests.harness import Machine

USEFUL = 80.0  # % of the lines, at least
# % of what a good colleague would have said, at least. What few sessions do is answered when it fails: with such lines
# at starts it was 92 %, and 75 % of the lines were useful by reading.
SAID = 85.0
NOTES_IN_VAIN = 25.0  # % of the notes told at starts
ANSWERED = {"own": 30.0, "given": 60.0, "dev": 30.0}  # % of the starts with a useful note
_MARKS = ("useful", "harmless", "wrong")
_SHOWN = (12, 25, 38, 51, 64, 77, 90, 103, 116, 130)  # numbers of replayed sessions
_HOUR = 3_600.0
_PROMPT_CHARS = 300
# What differs from run to run: ids and ages.
_VARYING = (
    (re.compile(r"#\d+"), "#N"),
    (re.compile(r"\bm\d+\b"), "mN"),
    (re.compile(r"\b(?:\d+[smhdwy]|just now|now)(?: ago)?\b(?=[,:)\]#; ]|$)"), "T"),
)


def texts(_: Machine) -> Iterator[Row]:
    """Rows for the lines told at starts."""
    told = [*in_own_machine(play), *in_own_machine(replayed)]
    yield from _line_rows(told)
    yield from _decision_rows()


def in_own_machine(source: Any) -> list[Start]:
    machine = Machine()
    try:
        return list(source(machine))
    finally:
        machine.close()


def _line_rows(starts: Iterable[Start]) -> Iterator[Row]:
    starts, read = list(starts), readings()
    marks = Counter(read.get((start.name, plain(line)), "unread") for start in starts for line in start.lines)
    told = sum(marks.values())
    note = f"{marks['useful']} of {told} in {len(starts)} starts; {marks['harmless']} harmless"
    yield Row(
        "start-texts",
        "lines useful by reading",
        100 * marks["useful"] / max(told, 1),
        USEFUL,
        "%",
        note=note,
        at_least=True,
    )
    yield Row("start-texts", "lines wrong", marks["wrong"], 0, "")
    yield Row("start-texts", "lines that nobody has read", marks["unread"], 0, "")
    due = [(start, text) for start in starts for text in start.tell]
    missed = [f"{start.name}: {text}" for start, text in due if text not in start.text]
    said = 100 * (len(due) - len(missed)) / len(due)
    yield Row(
        "start-texts",
        "said what a colleague would say",
        said,
        SAID,
        "%",
        note=f"of {len(due)}; missed {'; '.join(missed) or 'none'}",
        at_least=True,
    )
    broken = [f"{start.name}: {text}" for start in starts for text in start.never if text in start.text]
    yield Row(
        "start-texts",
        "said what is out of date or in the client's own file",
        len(broken),
        0,
        "",
        note="; ".join(broken),
    )


# Decisions


def _decision_rows() -> Iterator[Row]:
    """Notes of a repository that has no sessions yet: which are told at the start, and which with the first prompt."""
    for name, file in ((name, SETS[name]) for name in ANSWERED):
        counts = Counter[str]()
        for repo in json.loads((DATA / file).read_text("utf-8")):
            with closing(stored_notes(repo["notes"], repo["repo"])) as notes:
                ids, names = ids_of(notes), Context(repo=f"git:{repo['repo']}", branch=MAIN)
                options = digest_options(names, EVERYTHING, None, STARTUP, NOW)
                options["project"] = repo["repo"]
                built = build(notes, hints=[], **stored_lines(notes, options), **options)
                at_start = {item["id"] for item in built.items if item["kind"] == "note"}
                for start in repo["starts"]:
                    useful = {f"m{ids[one]}" for one in start["useful"]}
                    with_prompt = {
                        line.name for line in lines_about(notes, start["first_prompt"], repo["repo"], MAIN, NOW)
                    }
                    counts["told"] += len(at_start)
                    counts["in vain"] += len(at_start - useful)
                    counts["due"] += bool(useful)
                    counts["answered"] += bool(useful & (at_start | with_prompt))
                    counts["prompts in vain"] += bool(with_prompt and not with_prompt & useful)
                    counts["starts"] += 1
        note = f"{counts['in vain']} of {counts['told']} in {counts['starts']} starts"
        share = 100 * counts["in vain"] / max(counts["told"], 1)
        yield Row("start-texts", f"{name} set: notes told in vain at starts", share, NOTES_IN_VAIN, "%", note=note)
        note = f"{counts['answered']} of {counts['due']}; {counts['prompts in vain']} first prompts answered in vain"
        share = 100 * counts["answered"] / counts["due"]
        yield Row(
            "start-texts",
            f"{name} set: useful note told by the first prompt",
            share,
            ANSWERED[name],
            "%",
            note=note,
            at_least=True,
        )


# Replay


def replayed(machine: Machine) -> Iterator[Start]:
    """Some replayed sessions, each a few hours after the one before it."""
    reader = Reader(machine)
    with gzip.open(DATA / "replay.jsonl.gz", "rt", encoding="utf-8") as lines:
        runs = groupby(map(json.loads, lines), key=lambda event: event["_bench"]["run"])
        for number, (run, events) in enumerate(runs, 1):
            at, text, prompt = time.time() - 5 * _HOUR, "", ""
            if number > _SHOWN[-1]:
                return
            for payload in events:
                del payload["_bench"]
                if payload["hook_event_name"] == "SessionStart" and number in _SHOWN:
                    text = reader.start(payload["session_id"], payload["cwd"])
                prompt = prompt or payload.get("prompt", "")
                reader.record(payload, at)
            if number in _SHOWN:
                yield Start(f"replay {number} {run}", prompt, text)


# Readings


def readings() -> dict[tuple[str, str], str]:
    """The mark of each line, by the start and the line without what varies."""
    read = json.loads((DATA / "start_readings.json").read_text(encoding="utf-8"))
    return {(start, line): mark for mark in _MARKS for start, lines in read[mark].items() for line in lines}


def plain(line: str) -> str:
    for pattern, instead in _VARYING:
        line = pattern.sub(instead, line)
    return line


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.start_texts")
    parser.add_argument("--unread", action="store_true", help="print only the lines that nobody has read, as JSON")
    options = parser.parse_args()
    read, unread = readings(), dict[str, list[str]]()
    for source in (play, replayed):
        for start in in_own_machine(source):
            if not options.unread:
                print(f"=== {start.name}\nFIRST PROMPT: {start.prompt[:_PROMPT_CHARS]}")
            for line in map(plain, start.lines):
                mark = read.get((start.name, line), "UNREAD")
                if mark == "UNREAD":
                    unread.setdefault(start.name, []).append(line)
                if not options.unread:
                    print(f"{mark:9} {line}")
            for text in start.tell:
                if text not in start.text and not options.unread:
                    print(f"MISSED    {text}")
            for text in start.never:
                if text in start.text and not options.unread:
                    print(f"NEVER     {text}")
    if options.unread:
        print(json.dumps(unread, indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
