"""What is told in the project's own sets, to be read by somebody who does not know what was expected.

`python -m tests.bench.reading` prints a sample, one JSON object a line: the moment, what the agent did or was asked,
and what it was told then. Mark each useful, harmless or wrong.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from nudge.telling.file_notes import lines_for_files
from nudge.telling.prompt_notes import lines_about
from tests.bench import decisions, failure_pairs

_SHOWN = 600  # characters of an error or a prompt


def _failures() -> Iterator[dict[str, Any]]:
    for case in failure_pairs.cases(failure_pairs.OWN):
        line = failure_pairs.replay(case).line
        if line:
            then = case["then"]
            yield {
                "moment": "a command fails",
                "command": then["command"],
                "exit": then["exit"],
                "output": then["output"][:_SHOWN],
                "told": line,
            }


def _notes() -> Iterator[dict[str, Any]]:
    for repo in json.loads((decisions.DATA / decisions.SETS["own"]).read_text("utf-8")):
        with closing(decisions.stored_notes(repo["notes"], repo["repo"])) as notes:
            for prompt in repo["prompts"]:
                lines = lines_about(notes, prompt["prompt"], repo["repo"], decisions.MAIN, decisions.NOW)
                if lines:
                    told = [line.text for line in lines]
                    yield {"moment": "a prompt", "prompt": prompt["prompt"][:_SHOWN], "told": told}
            for touch in repo["touches"]:
                lines = lines_for_files(notes, [touch["path"]], repo["repo"], decisions.MAIN, None, decisions.NOW)
                if lines:
                    yield {"moment": "a file is opened", "file": touch["path"], "told": [line.text for line in lines]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    everything = [*_failures(), *_notes()]
    sample = random.Random(chosen.seed).sample(everything, min(chosen.lines, len(everything)))
    for number, item in enumerate(sample, 1):
        print(json.dumps({"n": number, **item}, ensure_ascii=False))


if __name__ == "__main__":
    main()
