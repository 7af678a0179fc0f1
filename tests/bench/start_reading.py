"""The lines of starts that nobody has read yet, with what a reader needs to mark them and without what was expected.

`python -m tests.bench.start_reading` prints, for each start with such lines, the files of the repository, what happened
in it, the first prompt (in the replay also what the session then ran) and the lines. `start_readings.json` says in
`method` how they are marked, and keeps the marks.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from tests.bench.start_sessions import DATA, play
from tests.bench.start_texts import in_own_machine, plain, readings, replayed

_SHOWN_PROMPT, _SHOWN_COMMAND = 1_500, 160


def _step(step: Mapping[str, Any]) -> str:
    if "edit" in step:
        return f"edits {step['edit']}"
    if "attempt" in step:
        return f"opens an attempt: {json.dumps(step['attempt'])}"
    printed = f", prints {step['output']!r}" if step.get("output") else ""
    return f"runs `{step['run']}` (exit {step.get('exit', 0)}{printed})"


def _event(entry: Mapping[str, Any]) -> str:
    if "session" in entry:
        words = f"; last words {entry['last_words']!r}" if entry.get("last_words") else ""
        steps = "; ".join(map(_step, entry["steps"]))
        return f"{entry['hours_ago']}h ago on {entry['branch']}, a session, {entry['prompt']!r}: {steps}{words}"
    if "by_hand" in entry:
        return f"{entry['hours_ago']}h ago, by the user's own hand: {entry['by_hand']}"
    return json.dumps(entry, ensure_ascii=False)


def _repositories() -> Iterator[tuple[str, str]]:
    """The name of each start in `start_sessions.json`, and what was before it."""
    for repository in json.loads((DATA / "start_sessions.json").read_text(encoding="utf-8")):
        told = [f"{path}: {text!r}" for path, text in repository["files"].items()]
        number = 0
        for entry in repository["timeline"]:
            if "start" in entry:
                number += 1
                yield f"{repository['repo']} {number}", "\n".join([*told, f"client: {entry['client']}"])
            else:
                told.append(_event(entry))


def _runs() -> Iterator[tuple[str, str]]:
    """The name of each replayed start, and what its session ran."""
    with gzip.open(DATA / "replay.jsonl.gz", "rt", encoding="utf-8") as lines:
        runs = groupby(map(json.loads, lines), key=lambda event: event["_bench"]["run"])
        for number, (run, events) in enumerate(runs, 1):
            commands = (event["tool_input"]["command"][:_SHOWN_COMMAND] for event in events if "tool_input" in event)
            yield f"replay {number} {run}", "\n".join(map(repr, commands))


def main() -> None:
    read, known = readings(), {**dict(_repositories()), **dict(_runs())}
    for source in (play, replayed):
        for start in in_own_machine(source):
            unread = [line for line in map(plain, start.lines) if (start.name, line) not in read]
            if unread:
                print(f"\n=== {start.name}\n{known[start.name]}\nFIRST PROMPT: {start.prompt[:_SHOWN_PROMPT]}\nLINES:")
                print("\n".join(dict.fromkeys(unread)))


if __name__ == "__main__":
    main()
